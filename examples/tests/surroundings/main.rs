//! Programs that people run around their servers: what stands still, what is refused, and that no ID is returned twice. `./dev surroundings`
//! runs them. They take minutes each, since these programs wait for times of their own; no test asserts a time.

mod auto_failover;
mod events;
mod patroni;
mod pgbouncer;
mod pgpool;
mod plugins;
mod pooler;
mod repmgr;
mod servers;
mod writers;
