//! Telling clients in other threads to stop.

use std::sync::atomic::{AtomicBool, Ordering};

/// Tells the clients to stop, at the latest when [`StopAtEnd`] goes out of scope: a panic beside them would wait for them.
#[derive(Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Whether they are told to.
    pub fn is_called(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Calls the stop when dropped.
pub struct StopAtEnd<'a>(pub &'a Stop);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
