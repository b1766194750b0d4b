//! The file in which the data directory keeps what this server knows of its registry.

use pg_snowflake_policies::holder::Known;
use std::fs::{self, File};
use std::io::{self, Write};

const FILE: &str = "pg_snowflake_registry";

/// What the file has; `None` without a file. A person may have removed it.
pub fn read() -> io::Result<Option<Known>> {
    match fs::read_to_string(FILE) {
        Ok(text) => text.parse().map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the file, durably.
pub fn write(known: &Known) -> io::Result<()> {
    let new = format!("{FILE}.new");
    let mut file = File::create(&new)?;
    file.write_all(known.to_string().as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, FILE)?;
    File::open(".")?.sync_all()
}
