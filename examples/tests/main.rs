//! Drivers, ORMs, the JavaScript module and the tutorial on real servers. `./dev examples` runs them; the programs are in `drivers/`,
//! `orms/`, `javascript/` and docs/tutorial.md.

mod drivers;
mod javascript;
mod orms;
mod tutorial;
