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

    /// The value.
    ///
    /// # Safety
    /// No other reference is used before the last use of this one. Meanwhile, server functions may be called that run no SQL.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "as static variables in C")]
    pub unsafe fn get(&'static self) -> &'static mut T {
        // SAFETY: one thread, and the caller promises that there is no other reference.
        unsafe { &mut *self.0.get() }
    }
}
