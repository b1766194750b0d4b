//! Drivers and ORMs on real servers. `./dev examples` runs them; the programs are in `drivers/` and `orms/`.

mod drivers;
mod orms;
