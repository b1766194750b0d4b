//! Prints all messages as the chapter of the site that lists them, for `site/build.sh`.

use pg_snowflake_policies::messages::{TABLES, general};
use std::collections::BTreeMap;

fn main() {
    let mut messages = BTreeMap::<_, (&str, bool, Vec<String>)>::new();
    for message in TABLES.into_iter().flatten().filter(|message| !message.message.is_empty()) {
        let (sqlstate, has_runbook, lines) = messages.entry(message.heading()).or_default();
        (*sqlstate, *has_runbook) = (message.sqlstate, message.has_runbook);
        for (label, text) in [("DETAIL", message.detail), ("HINT", message.hint)] {
            let text = general(text);
            let line = format!("- {label}: {text}");
            if !["", "…"].contains(&text.as_str()) && !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    println!("# Error messages\n\nEach message with its SQLSTATE, details and hints; … stands for names and figures.");
    for (message, (sqlstate, has_runbook, lines)) in &messages {
        let state = if *sqlstate == "00000" { "Server log" } else { sqlstate };
        let runbook = format!(", [runbook](docs/operate.md#{})", anchor(message));
        let runbook = if *has_runbook { &*runbook } else { "" };
        println!("\n## {message}\n\n{state}{runbook}\n\n{}", lines.join("\n"));
    }
}

/// Where a heading is in its page.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|&c| c.is_alphanumeric() || "_-".contains(c)).collect()
}
