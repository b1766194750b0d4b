//! Properties that hold for the crates without a server on any input. `./dev fuzz` searches for inputs that violate them.

#![forbid(unsafe_code)]

mod any;
pub mod properties;
