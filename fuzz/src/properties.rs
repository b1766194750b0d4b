//! The properties, one module for each target. A `check` panics if one does not hold.

pub mod base32;
pub mod clock;
pub mod counter;
pub mod homed;
pub mod ids;
pub mod layout_parts;
pub mod layout_text;
pub mod uuid;
