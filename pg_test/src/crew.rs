//! Clients in other threads that work at the same time, until they are stopped or have nothing left to do.

use crate::wait::{Stop, StopAtEnd, comes_true};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{JoinHandle, spawn};

/// Running workers. They are stopped when it is dropped.
pub struct Crew<T> {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<T>>,
}

struct Shared {
    stop: Stop,
    done: Vec<AtomicU64>,
}

/// What a worker sees of its crew.
pub struct Place {
    shared: Arc<Shared>,
    number: usize,
}

impl Place {
    pub fn must_stop(&self) -> bool {
        self.shared.stop.is_called()
    }

    /// Reports what it has done, such as an ID that it has got.
    pub fn has_done(&self, more: u64) {
        self.shared.done[self.number].fetch_add(more, Ordering::Relaxed);
    }
}

impl<T: Send + 'static> Crew<T> {
    pub fn start<W: FnOnce(&Place) -> T + Send + 'static>(workers: Vec<W>) -> Self {
        let done = workers.iter().map(|_| AtomicU64::default()).collect();
        let shared = Arc::new(Shared { stop: Stop::default(), done });
        let start = |(number, worker): (usize, W)| {
            let place = Place { shared: Arc::clone(&shared), number };
            spawn(move || worker(&place))
        };
        let threads = workers.into_iter().enumerate().map(start).collect();
        Crew { shared, threads }
    }

    /// Waits until all together have done this much since the start, or all have ended.
    pub fn wait_until_done(&self, done: u64) {
        let is_enough = || self.done().iter().sum::<u64>() >= done;
        assert!(comes_true(|| is_enough() || self.have_all_ended()), "{:?} of {done}", self.done());
    }

    /// How much each has done.
    pub fn done(&self) -> Vec<u64> {
        self.shared.done.iter().map(|done| done.load(Ordering::Relaxed)).collect()
    }

    pub fn has_ended(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    pub fn have_all_ended(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Has them stop, and does not wait for it.
    pub fn call_stop(&self) {
        drop(StopAtEnd(&self.shared.stop));
    }

    /// Lets each finish what it does, and returns their results.
    pub fn stop(self) -> Vec<T> {
        self.call_stop();
        self.join()
    }

    /// Waits until each has ended by itself, and returns their results.
    pub fn join(mut self) -> Vec<T> {
        let threads = std::mem::take(&mut self.threads);
        threads.into_iter().map(|thread| thread.join().expect("a worker")).collect()
    }
}

impl<T> Drop for Crew<T> {
    fn drop(&mut self) {
        drop(StopAtEnd(&self.shared.stop));
    }
}
