//! A contender: how it returns IDs, and in which statements.

use postgres::Client;

/// A way to get IDs. Each has its own database, named after it.
#[derive(Debug)]
pub struct Contender {
    /// As in the CSV.
    pub name: &'static str,
    /// The name for people, in Markdown.
    pub title: &'static str,
    /// What not every server has.
    pub needs: Option<Need>,
    /// The library that its first call in a session loads; empty if there is none.
    pub library: &'static str,
    /// The statements that create the sequence `ids`, and what else is needed.
    pub setup: &'static [&'static str],
    /// The type of its IDs.
    pub id_type: &'static str,
    /// How it returns them.
    pub ids: Ids,
    /// Its IDs are known to repeat. If a key rejects them, that is its result; for every other contender it is an error.
    pub may_repeat: bool,
}

/// What not every server has.
#[derive(Debug)]
pub struct Need {
    /// A query that returns a row if the server has it: its version, or NULL if that is the server's.
    pub query: &'static str,
    /// The sentence that a report has if the server lacks it.
    pub if_missing: &'static str,
}

/// How a contender returns IDs.
#[derive(Clone, Copy, Debug)]
pub enum Ids {
    /// One per call: the expression for a sequence (itself an expression) and a layout.
    One(fn(&str, &str) -> String),
    /// Many per call: the same for a sequence, a count and a layout.
    Many(fn(&str, i64, &str) -> String),
    /// To a column that is declared so, in an INSERT. No call returns them.
    Column(&'static str),
    /// In the table `source`, where they were generated before by this expression of a sequence and a layout.
    Ready(fn(&str, &str) -> String),
}

/// The sequence that `setup` creates, as an expression.
const SEQUENCE: &str = "'ids'";

/// 262,144 IDs in a millisecond: a layout in which no call waits for the clock.
pub const ROOMY: &str = "time:41 shard:4 seq:18 epoch:2024-01-01 unit:1ms";

/// One row, whose ID the table supplies.
pub const INSERT: &str = "INSERT INTO posts (body) VALUES ('a post')";

/// The cost that every contender includes: the loop around its calls.
pub fn empty_loop(count: i64) -> String {
    in_loop("1", count)
}

/// A statement that evaluates an expression this many times.
pub fn in_loop(expression: &str, count: i64) -> String {
    // In a sub-select the series streams; in FROM it would fill a tuplestore before the first ID.
    format!("SELECT count({expression}) FROM (SELECT generate_series(1, {count})) AS series")
}

/// A statement that evaluates an expression in this many transactions, once in each.
pub fn in_transactions(count: i64, expression: &str) -> String {
    format!(
        "DO $$ BEGIN FOR turn IN 1..{count} LOOP PERFORM {expression}; COMMIT; END LOOP; END $$"
    )
}

impl Contender {
    /// The expression that returns one ID; `None` if no call returns IDs.
    pub fn take_one(&self) -> Option<String> {
        match self.ids {
            Ids::One(id) => Some(id(SEQUENCE, ROOMY)),
            Ids::Many(ids) => Some(ids(SEQUENCE, 1, ROOMY)),
            Ids::Column(_) | Ids::Ready(_) => None,
        }
    }

    /// A statement that takes this many IDs and returns their number; `None` if no call returns IDs.
    pub fn take(&self, count: i64, layout: &str) -> Option<String> {
        match self.ids {
            Ids::One(id) => Some(in_loop(&id(SEQUENCE, layout), count)),
            Ids::Many(ids) => Some(format!(
                "SELECT count(id) FROM (SELECT {} AS id) AS ids",
                ids(SEQUENCE, count, layout)
            )),
            Ids::Column(_) | Ids::Ready(_) => None,
        }
    }

    /// A query that returns this many IDs; `None` if no call returns IDs.
    pub fn series(&self, count: i64) -> Option<String> {
        match self.ids {
            Ids::One(id) => Some(format!(
                "SELECT {} AS id FROM (SELECT generate_series(1, {count})) AS series",
                id(SEQUENCE, ROOMY)
            )),
            Ids::Many(ids) => Some(format!("SELECT {} AS id", ids(SEQUENCE, count, ROOMY))),
            Ids::Column(_) | Ids::Ready(_) => None,
        }
    }

    /// The table `posts`, whose key gets the contender's IDs if a call returns one.
    pub fn create_table(&self) -> String {
        let ids = match self.ids {
            Ids::One(id) => format!("DEFAULT {}", id(SEQUENCE, ROOMY)),
            Ids::Many(_) | Ids::Ready(_) => String::new(),
            Ids::Column(declared) => declared.to_owned(),
        };
        format!("CREATE TABLE posts (id {} PRIMARY KEY {ids}, body text NOT NULL)", self.id_type)
    }

    /// A table `source` of this many rows, from which [`insert_from_source`](Self::insert_from_source) reads. Contenders that generate
    /// their IDs read as many rows as those that stand ready in it.
    pub fn create_source(&self, count: i64) -> String {
        let id = match self.ids {
            Ids::Ready(id) => id(SEQUENCE, ROOMY),
            Ids::One(_) | Ids::Many(_) | Ids::Column(_) => "n::bigint".to_owned(),
        };
        format!("CREATE TABLE source AS SELECT {id} AS id FROM generate_series(1, {count}) AS n")
    }

    /// A statement that inserts into `posts` as many rows as `source` has. A batch makes its rows itself.
    pub fn insert_from_source(&self, count: i64) -> String {
        match self.ids {
            Ids::One(_) | Ids::Column(_) => {
                "INSERT INTO posts (body) SELECT 'a post' FROM source".to_owned()
            }
            Ids::Ready(_) => {
                "INSERT INTO posts (id, body) SELECT id, 'a post' FROM source".to_owned()
            }
            Ids::Many(_) => self.insert(count),
        }
    }

    /// A statement that inserts this many rows into `posts`.
    pub fn insert(&self, count: i64) -> String {
        match self.ids {
            Ids::One(_) | Ids::Column(_) => {
                format!("INSERT INTO posts (body) SELECT 'a post' FROM generate_series(1, {count})")
            }
            Ids::Many(ids) => format!(
                "INSERT INTO posts (id, body) SELECT id, 'a post' FROM (SELECT {} AS id) AS ids",
                ids(SEQUENCE, count, ROOMY)
            ),
            Ids::Ready(_) => self.insert_from_source(count),
        }
    }

    /// Takes an ID from each of the sequences that `turns` names, one per row; `None` unless one call returns one ID.
    pub fn take_in_turn(&self, turns: &str) -> Option<String> {
        match self.ids {
            Ids::One(id) => Some(format!("SELECT count({}) FROM {turns}", id("sequence", ROOMY))),
            Ids::Many(_) | Ids::Column(_) | Ids::Ready(_) => None,
        }
    }

    /// Whether it is measured beyond an INSERT of many rows.
    pub fn is_called(&self) -> bool {
        !matches!(self.ids, Ids::Ready(_))
    }

    /// Whether [`INSERT`] gets its ID from it.
    pub fn fills_single_rows(&self) -> bool {
        matches!(self.ids, Ids::One(_) | Ids::Column(_))
    }

    /// Its version, if the server has it and says it.
    ///
    /// # Errors
    /// The reason why it cannot be compared on this server.
    pub fn version(&self, client: &mut Client) -> Result<Option<String>, &'static str> {
        let Some(need) = &self.needs else { return Ok(None) };
        let row = client.query_opt(need.query, &[]).expect("the catalog can be read");
        row.map(|row| row.get(0)).ok_or(need.if_missing)
    }
}
