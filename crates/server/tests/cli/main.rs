//! Drives the real binary, as a user would.

mod bad_input;
mod harness;
mod output;
mod run;
mod sample;
mod stopping;
mod validate;
