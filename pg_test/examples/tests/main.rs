//! Drivers and ORMs at work on real servers. `./dev examples` runs them; the programs are in `drivers/` and `orms/`.

mod drivers;
mod orms;
