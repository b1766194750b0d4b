//! Drivers, ORMs, the JavaScript module, Prometheus and the tutorial on real servers. `./dev test --examples` runs them; the programs are in
//! `drivers/`, `orms/`, `javascript/` and docs/tutorial.md, Prometheus's files in `monitoring/`.

mod drivers;
mod javascript;
mod monitoring;
mod orms;
mod site;
mod tutorial;
