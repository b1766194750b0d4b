//! The programs of `./dev` that share code: the bench and the campaign.
//!
//! | module | for |
//! | --- | --- |
//! | [`campaign`], [`mod@bench`] | `./dev campaign` and `./dev bench` |
//! | [`output`] | what a program prints: steps and their details |
//! | [`record`] | figures that go into the documentation |

#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

pub mod bench;
pub mod campaign;
pub mod output;
pub mod record;
