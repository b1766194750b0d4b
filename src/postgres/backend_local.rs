//! Backend-local variables, which are `static` variables in C.

use std::cell::UnsafeCell;

/// A variable of this backend. Thread-local storage would be slower, since a library that is loaded at run time
/// gets its address from a function call each time. A `RefCell` would keep a borrow count that an ERROR leaves
/// wrong.
pub struct BackendLocal<T>(UnsafeCell<T>);

// SAFETY: a backend has one thread.
unsafe impl<T> Sync for BackendLocal<T> {}

impl<T> BackendLocal<T> {
    /// A variable with this value in a new backend.
    pub const fn new(value: T) -> Self {
        BackendLocal(UnsafeCell::new(value))
    }

    /// The value, for one thread.
    #[inline(always)]
    pub const fn as_ptr(&self) -> *mut T {
        self.0.get()
    }

    /// Calls `f` with the value.
    ///
    /// # Safety
    /// `f` must not access the same variable again. It may call server functions that run no SQL.
    #[inline(always)]
    pub unsafe fn with<R>(&'static self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: one thread, and the caller promises that there is no other reference.
        f(unsafe { &mut *self.as_ptr() })
    }
}
