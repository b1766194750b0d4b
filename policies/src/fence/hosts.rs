//! Lists of host names, such as `db-1, db-2.example.com`.
//!
//! A name is compared whole, as the command `hostname` prints it. `db-7` and `db-7.example.com` are different
//! names: a server does not know its domain for certain, and a guess could allow `db-7` at another site.

use super::list::{InvalidSetting, check_length, elements, with_room};
use pg_snowflake_ids::excerpt::excerpt;

const HINT: &str = "Specify host names as the command hostname prints them on each server, separated by commas, \
                       such as \"db-1, db-2\". An empty string allows all servers.";

/// The host names in `text`; none if it is empty. `room` makes an empty list for so many elements; `None` if memory is short.
pub fn parse<'a>(text: &'a str, room: impl FnOnce(usize) -> Option<Vec<&'a str>>) -> Result<Vec<&'a str>, InvalidSetting> {
    check_length(text, HINT)?;
    let mut hosts = with_room(text, HINT, room)?;
    for element in elements(text) {
        hosts.push(parse_host(element)?);
    }
    Ok(hosts)
}

/// Whether the list contains the name, ignoring case.
pub fn contains(hosts: &[&str], name: &str) -> bool {
    hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
}

/// The name, if a list can contain it.
pub fn parse_host(name: &str) -> Result<&str, InvalidSetting> {
    let invalid = |detail| Err(InvalidSetting { detail, hint: HINT });
    if name.is_empty() {
        return invalid("The list has an empty element.".into());
    }
    match name.chars().find(|&c| !is_host_name_character(c)) {
        None => Ok(name),
        Some(illegal) => invalid(format!("\"{}\" is not a host name: it contains \"{illegal}\".", excerpt(name))),
    }
}

/// RFC 1123 allows letters, digits, hyphens and dots. Underscores occur in practice.
fn is_host_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')
}

#[cfg(test)]
mod tests {
    use super::{InvalidSetting, contains};
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Vec<&str>, InvalidSetting> {
        super::parse(text, |count| Some(Vec::with_capacity(count)))
    }

    #[test]
    fn host_names_are_parsed() {
        let cases: [(&str, &[&str]); 4] =
            [("", &[]), ("db-1", &["db-1"]), ("db-1,DB_2 , db-3.example.com", &["db-1", "DB_2", "db-3.example.com"]), ("7", &["7"])];
        for (text, hosts) in cases {
            assert_eq!(parse(text).expect(text), hosts, "{text:?}");
        }
    }

    /// Beside those whose whole errors the script `fences` has.
    #[test]
    fn an_address_is_not_a_host_name() {
        assert!(parse("db-1:5432").is_err() && parse("bücher").is_err());
    }

    #[test]
    fn names_are_compared_whole_and_ignoring_case() {
        let hosts = ["db-1", "DB-2.example.com"];
        for name in ["db-1", "DB-1", "db-2.EXAMPLE.com"] {
            assert!(contains(&hosts, name), "{name}");
        }
        for name in ["db-1.example.com", "db-2", "db-11", "db", ""] {
            assert!(!contains(&hosts, name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_list_contains_exactly_its_names(
            names in prop::collection::vec("[A-Za-z0-9._-]{1,12}", 1..6),
            other in "[A-Za-z0-9._-]{13}",
        ) {
            let text = names.join(", ");
            let hosts = parse(&text).unwrap();
            prop_assert!(names.iter().all(|name| contains(&hosts, &name.to_ascii_uppercase())));
            prop_assert!(!contains(&hosts, &other));
        }
    }
}
