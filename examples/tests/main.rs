//! Drivers, ORMs and the tutorial on real servers. `./dev examples` runs them; the programs are in `drivers/`, `orms/` and
//! docs/tutorial.md.

mod drivers;
mod orms;
mod tutorial;
