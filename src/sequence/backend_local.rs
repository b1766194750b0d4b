//! Variables of a backend: what is a `static` variable in C.

use std::cell::UnsafeCell;

/// A variable of this backend. Thread-local storage would do as well, but a library that is loaded later asks for its
/// address by a function call each time, and a `RefCell` in it keeps a count that an ERROR would leave wrong.
pub struct BackendLocal<T>(UnsafeCell<T>);

// SAFETY: a backend has one thread.
unsafe impl<T> Sync for BackendLocal<T> {}

impl<T> BackendLocal<T> {
    /// A variable with the value that each backend begins with.
    pub const fn new(value: T) -> Self {
        BackendLocal(UnsafeCell::new(value))
    }

    /// Calls `f` with the value.
    ///
    /// # Safety
    /// Nothing that `f` calls comes back for the same value. A server function may be called that runs no SQL.
    pub unsafe fn with<R>(&'static self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: one thread, and the caller promises that there is no other reference.
        f(unsafe { &mut *self.0.get() })
    }
}
