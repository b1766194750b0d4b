//! What holds, one module for each target. A `check` panics where it does not.

pub mod base32;
pub mod clock;
pub mod counter;
pub mod ids;
pub mod layout_parts;
pub mod layout_text;
pub mod uuid;
