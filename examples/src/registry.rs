//! Installing from a registry, which may not answer.

use crate::program::run_to_end;
use pg_snowflake_harness::installation::left_out;
use std::process::Command;

/// A registry of clients.
pub struct Registry {
    name: &'static str,
    /// What its installer writes if it could not reach the registry, or the registry refused to serve it.
    no_answer: &'static [&'static str],
    /// What it writes if the registry did answer, even if it also writes one of `no_answer`.
    answer: &'static [&'static str],
}

pub const PYPI: Registry = Registry {
    name: "the Python Package Index",
    no_answer: &["connection broken by", "Max retries exceeded", "HTTP error 5"],
    // It lists the versions that exist besides the requested one.
    answer: &["(from versions: 0", "(from versions: 1", "(from versions: 2", "(from versions: 3"],
};

pub const NPM: Registry = Registry {
    name: "the npm registry",
    no_answer: &[
        "code EAI_AGAIN",
        "code ECONNREFUSED",
        "code ECONNRESET",
        "code EHOSTUNREACH",
        "code ENETUNREACH",
        "code ENOTFOUND",
        "code ERR_SOCKET_TIMEOUT",
        "code ETIMEDOUT",
        "code E50",
    ],
    answer: &[],
};

pub const APT: Registry = Registry {
    name: "the distribution's mirror",
    no_answer: &[
        "Could not connect to",
        "Could not resolve",
        "Temporary failure resolving",
        "Connection failed",
        "Connection timed out",
        "Unable to connect to",
    ],
    answer: &[],
};

impl Registry {
    /// Runs a command that installs a client from here. If the registry does not answer, reports that the client is left out
    /// and returns false.
    pub fn install(&self, client: &str, command: &mut Command) -> bool {
        let output = run_to_end(command);
        if output.status.success() {
            return true;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(self.did_not_answer(&said), "{command:?}: {}", output.status);
        left_out(client, &format!("answer from {}", self.name));
        false
    }

    fn did_not_answer(&self, said: &str) -> bool {
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        says(self.no_answer) && !says(self.answer)
    }
}

#[cfg(test)]
mod tests {
    use super::{APT, NPM, PYPI};

    #[test]
    fn an_unreachable_registry_is_distinguished_from_a_missing_version() {
        let cases = [
            (&PYPI, "WARNING: Retrying after connection broken by 'N'\nERROR: Could not find a version (from versions: none)", true),
            (&PYPI, "ERROR: HTTP error 503 while getting https://example.org/django.whl", true),
            (&PYPI, "WARNING: Retrying after connection broken by 'R'\nERROR: Could not find a version (from versions: 1.1.3, 5.2)", false),
            (&PYPI, "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", false),
            (&NPM, "npm error code ECONNREFUSED\nnpm error syscall connect", true),
            (&NPM, "npm ERR! code EAI_AGAIN", true),
            (&NPM, "npm error code E503", true),
            (&NPM, "npm error code E404\nnpm error 404 Not Found - GET", false),
            (&NPM, "npm error code EINTEGRITY", false),
            (&APT, "E: Failed to fetch http://…  Could not connect to 127.0.0.1:9 (127.0.0.1).", true),
            (&APT, "E: Failed to fetch http://…  Temporary failure resolving 'mirror.example'", true),
            (&APT, "E: Failed to fetch http://…  Hash Sum mismatch", false),
        ];
        for (registry, said, expected) in cases {
            assert_eq!(registry.did_not_answer(said), expected, "{said}");
        }
    }
}
