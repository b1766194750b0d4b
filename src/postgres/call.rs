//! Calls of the server's functions under one guard, which makes an ERROR a panic. pgrx's declaration of a function has one of its own,
//! 2 kB of code in each place that calls it, so `call!` takes only the types from there.

use pgrx::pg_sys;
use std::mem::{MaybeUninit, transmute};

/// What pgrx declares for a function of the server with these arguments.
pub trait Declared<Arguments, Output> {
    /// Calls the function.
    ///
    /// # Safety
    /// `function` has the declared types, and may be called with the arguments.
    unsafe fn call(self, function: unsafe extern "C-unwind" fn(), arguments: Arguments) -> Output;
}

macro_rules! declared {
    ($($($argument:ident)*);*) => {
        $(impl<Output, $($argument: Copy),*> Declared<($($argument,)*), Output> for unsafe fn($($argument),*) -> Output {
            #[inline(always)]
            #[allow(non_snake_case)]
            unsafe fn call(self, function: unsafe extern "C-unwind" fn(), ($($argument,)*): ($($argument,)*)) -> Output {
                // SAFETY: as the caller promises.
                unsafe {
                    let function: unsafe extern "C-unwind" fn($($argument),*) -> Output = transmute(function);
                    guarded(|| function($($argument),*))
                }
            }
        })*
    };
}
declared!(; A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H);

/// Calls functions of the server that are declared without a guard.
///
/// # Safety
/// The frames that an ERROR jumps over, from there to here, hold nothing with a destructor.
#[inline(always)]
pub unsafe fn guarded<T>(mut call: impl FnMut() -> T) -> T {
    let mut output = MaybeUninit::uninit();
    // SAFETY: as the caller promises; without an ERROR, the output has been written.
    unsafe {
        guard(&mut || {
            output.write(call());
        });
        output.assume_init()
    }
}

/// pgrx's guard, once.
#[inline(never)]
unsafe fn guard(call: &mut dyn FnMut()) {
    // SAFETY: as the caller promises.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(call) }
}
