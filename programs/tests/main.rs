//! The programs of `./dev`, and `./dev` itself.

mod bench;
mod campaign;
mod makefile;
mod toolchain;
