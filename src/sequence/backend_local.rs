//! What belongs to one backend, and lives as long.

use std::cell::UnsafeCell;

/// A value of this backend. Thread-local storage would do as well, but a library that is loaded later asks for its
/// address by a function call each time, and a `RefCell` in it keeps a count that an ERROR would leave wrong.
pub struct OfBackend<T>(UnsafeCell<T>);

// SAFETY: a backend has one thread.
unsafe impl<T> Sync for OfBackend<T> {}

impl<T> OfBackend<T> {
    /// The value that the backend begins with.
    pub const fn new(value: T) -> Self {
        OfBackend(UnsafeCell::new(value))
    }

    /// Lets `f` have the value.
    ///
    /// # Safety
    /// Nothing that `f` calls comes back for the same value. A server function may be called that runs no SQL.
    pub unsafe fn with<R>(&'static self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: one thread, and the caller promises that there is no other reference.
        f(unsafe { &mut *self.0.get() })
    }
}
