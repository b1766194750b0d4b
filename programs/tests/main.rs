//! The program of `./dev bench`.

mod bench;
