//! Installing from a registry, which may not answer.

use crate::run_to_end;
use pg_snowflake_harness::installation::left_out;
use std::process::Command;

/// What an installer writes if it could not reach its registry, or the registry refused to serve it: pip, npm and apt.
const NO_ANSWER: [&str; 18] = [
    "connection broken by",
    "Max retries exceeded",
    "HTTP error 5",
    "code EAI_AGAIN",
    "code ECONNREFUSED",
    "code ECONNRESET",
    "code EHOSTUNREACH",
    "code ENETUNREACH",
    "code ENOTFOUND",
    "code ERR_SOCKET_TIMEOUT",
    "code ETIMEDOUT",
    "code E50",
    "Could not connect to",
    "Could not resolve",
    "Temporary failure resolving",
    "Connection failed",
    "Connection timed out",
    "Unable to connect to",
];

/// Runs a command that installs a client from that registry. If the registry does not answer, reports that the client is left out and
/// returns false.
pub fn install(client: &str, registry: &str, command: &mut Command) -> bool {
    let output = run_to_end(command);
    if output.status.success() {
        return true;
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(did_not_answer(&said), "{command:?}: {}", output.status);
    left_out(client, &format!("answer from {registry}"));
    false
}

fn did_not_answer(said: &str) -> bool {
    // pip lists the versions that exist besides the requested one, if the index did answer.
    let lists_versions = said.split("(from versions: ").skip(1).any(|list| list.starts_with(|c: char| c.is_ascii_digit()));
    !lists_versions && NO_ANSWER.iter().any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use super::did_not_answer;

    #[test]
    fn an_unreachable_registry_is_distinguished_from_a_missing_version() {
        let cases = [
            ("WARNING: Retrying after connection broken by 'N'\nERROR: Could not find a version (from versions: none)", true),
            ("ERROR: HTTP error 503 while getting https://example.org/django.whl", true),
            ("WARNING: Retrying after connection broken by 'R'\nERROR: Could not find a version (from versions: 1.1.3, 5.2)", false),
            ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", false),
            ("npm error code ECONNREFUSED\nnpm error syscall connect", true),
            ("npm ERR! code EAI_AGAIN", true),
            ("npm error code E503", true),
            ("npm error code E404\nnpm error 404 Not Found - GET", false),
            ("npm error code EINTEGRITY", false),
            ("E: Failed to fetch http://…  Could not connect to 127.0.0.1:9 (127.0.0.1).", true),
            ("E: Failed to fetch http://…  Temporary failure resolving 'mirror.example'", true),
            ("E: Failed to fetch http://…  Hash Sum mismatch", false),
        ];
        for (said, expected) in cases {
            assert_eq!(did_not_answer(said), expected, "{said}");
        }
    }
}
