//! What a line of a table is.

/// An error, a warning or a line of the server log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Report {
    /// The SQLSTATE, as [`sqlstate`] returns it.
    pub code: i32,
    /// The primary message.
    pub message: String,
    /// The detail, with figures.
    pub detail: Option<String>,
    /// The hint.
    pub hint: Option<String>,
}

impl Report {
    /// The message and the detail in one line, for a row that shows them.
    pub fn summary(self) -> String {
        Report { hint: None, ..self }.line()
    }

    /// The message, the detail and the hint in one line, for a row.
    pub fn line(self) -> String {
        let mut line = self.message;
        for (separator, part) in [(": ", self.detail), (" ", self.hint)] {
            line.extend(part.map(|part| format!("{separator}{part}")));
        }
        line
    }

    /// With a sentence after the detail, if it is not empty.
    pub fn adding(mut self, sentence: &str) -> Self {
        self.detail = part([self.detail.as_deref().unwrap_or_default(), sentence].join(" ").trim());
        self
    }
}

/// A line of a table. Its texts have the arguments' names in braces.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The SQLSTATE, which is 00000 in the server log and in rows; empty for a sentence that several errors contain.
    pub sqlstate: &'static str,
    /// The primary message; empty for a sentence.
    pub message: &'static str,
    /// The detail, or the sentence; empty if there is none.
    pub detail: &'static str,
    /// The hint; empty if there is none.
    pub hint: &'static str,
    /// Whether it needs an operator: `docs/operate.md` has a runbook for it.
    pub has_runbook: bool,
}

impl Message {
    /// The heading of its runbook, in which a function has no brackets.
    pub fn heading(&self) -> String {
        general(self.message).replace("…()", "…").replace("\"…\"", "…")
    }
}

/// A text with … for each name and figure.
pub fn general(text: &str) -> String {
    let mut parts = text.split(['{', '}']);
    let mut general = String::new();
    while let Some(text) = parts.next() {
        general += text;
        general += parts.next().map_or("", |_| "…");
    }
    general
}

/// An SQLSTATE as PostgreSQL packs it (`MAKE_SQLSTATE` of utils/elog.h).
pub const fn sqlstate(code: &str) -> i32 {
    let [a, b, c, d, e] = code.as_bytes() else { panic!("an SQLSTATE has 5 characters") };
    const fn six_bits(character: u8) -> i32 {
        ((character - b'0') & 0x3f) as i32
    }
    six_bits(*a) | six_bits(*b) << 6 | six_bits(*c) << 12 | six_bits(*d) << 18 | six_bits(*e) << 24
}

/// A detail or hint; `None` if it is empty.
pub(super) fn part(text: impl Into<String>) -> Option<String> {
    Some(text.into()).filter(|text| !text.is_empty())
}

/// A table: `name(arguments) "SQLSTATE" "message" detail "…" hint "…";`. A detail or hint that is empty is left out.
macro_rules! messages {
    (@function $name:ident ($($argument:ident),*) $sentence:literal) => {
        #[doc = $sentence]
        pub fn $name($($argument: impl std::fmt::Display),*) -> String {
            format!($sentence)
        }
    };
    (@function $name:ident ($($argument:ident),*) $state:literal $message:literal $(detail $detail:literal)? $(hint $hint:literal)?) => {
        #[doc = $message]
        pub fn $name($($argument: impl std::fmt::Display),*) -> $crate::messages::table::Report {
            $crate::messages::table::Report {
                code: const { $crate::messages::table::sqlstate($state) },
                message: format!($message),
                detail: None$(.or_else(|| $crate::messages::table::part(format!($detail))))?,
                hint: None$(.or_else(|| $crate::messages::table::part(format!($hint))))?,
            }
        }
    };
    (@line sentences $sentence:literal) => { messages!(@line others "" "" detail $sentence) };
    (@line $group:ident $state:literal $message:literal $(detail $detail:literal)? $(hint $hint:literal)?) => {
        $crate::messages::table::Message {
            sqlstate: $state,
            message: $message,
            detail: concat!($($detail)?),
            hint: concat!($($hint)?),
            has_runbook: messages!(@has_runbook $group),
        }
    };
    (@has_runbook runbooks) => { true };
    (@has_runbook others) => { false };
    ($($group:ident { $($name:ident $arguments:tt $($text:literal)+ $(detail $detail:literal)? $(hint $hint:literal)?;)* })*) => {
        $($(messages!(@function $name $arguments $($text)+ $(detail $detail)? $(hint $hint)?);)*)*
        /// The lines of the table.
        pub const ALL: &[$crate::messages::table::Message] =
            &[$($(messages!(@line $group $($text)+ $(detail $detail)? $(hint $hint)?)),*),*];
    };
}
pub(super) use messages;

#[cfg(test)]
mod tests {
    use super::*;

    messages! {
        runbooks {
            lost(shard, call, why) "55000" "shard {shard} of {call}() is \"{why}\"" detail "It is {shard}." hint "{why}";
        }
        sentences {
            too_late(at) "It was at {at}.";
        }
    }

    #[test]
    fn a_line_of_a_table_is_a_function_and_an_entry_of_the_list() {
        let report = lost(5, "f", "");
        assert_eq!(report.message, "shard 5 of f() is \"\"");
        assert_eq!((report.detail.as_deref(), &report.hint), (Some("It is 5."), &None));
        assert_eq!(report.clone().summary(), "shard 5 of f() is \"\": It is 5.");
        assert_eq!(report.clone().adding(""), report);
        assert_eq!(report.adding(&too_late(7)).detail.unwrap(), "It is 5. It was at 7.");

        let [message, sentence] = ALL else { panic!("{ALL:?}") };
        assert_eq!(message.heading(), "shard … of … is …");
        let Message { sqlstate, detail, hint, .. } = message;
        assert_eq!([*sqlstate, detail, hint], ["55000", "It is {shard}.", "{why}"]);
        assert_eq!((sentence.sqlstate, sentence.detail), ("", "It was at {at}."));
        assert!(message.has_runbook && !sentence.has_runbook);
    }

    #[test]
    fn an_sqlstate_is_packed_as_in_core() {
        assert_eq!([sqlstate("00000"), sqlstate("55000"), sqlstate("42P01")], [0, 325, 16_908_420]);
    }
}
