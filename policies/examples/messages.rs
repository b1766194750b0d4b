//! Prints all messages as the chapter of the site that lists them, for `docs/site/build.sh`.

use pg_snowflake_policies::messages::{TABLES, general};
use std::collections::{BTreeMap, BTreeSet};

fn main() {
    let mut messages = BTreeMap::<_, (BTreeSet<&str>, bool, Vec<String>)>::new();
    for message in TABLES.into_iter().flatten().filter(|message| !["", "…"].contains(&&*message.heading())) {
        let (places, has_runbook, lines) = messages.entry(message.heading()).or_default();
        places.insert(match message.sqlstate {
            "00000" if message.message.starts_with("pg_snowflake: ") => "Server log",
            "00000" => "`snowflake_columns`",
            sqlstate => sqlstate,
        });
        *has_runbook |= message.has_runbook;
        for (label, text) in [("DETAIL", message.detail), ("HINT", message.hint)] {
            let text = general(text);
            let line = format!("- {label}: {text}");
            if !["", "…"].contains(&text.as_str()) && !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    println!("# Error messages\n\nEach message with its SQLSTATE, details and hints; … stands for names and figures.");
    for (message, (places, has_runbook, lines)) in &messages {
        let places = places.iter().copied().collect::<Vec<_>>().join(", ");
        let runbook = format!(", [runbook](docs/operate.md#{})", anchor(message));
        let runbook = if *has_runbook { &*runbook } else { "" };
        println!("\n## {message}\n\n{places}{runbook}\n\n{}", lines.join("\n"));
    }
}

/// Where a heading is in its page.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|&c| c.is_alphanumeric() || "_-".contains(c)).collect()
}
