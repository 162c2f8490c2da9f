//! Drives the real binary, as a user would.
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests are tests, though clippy cannot know it"
)]

mod bad_input;
mod harness;
mod kafka;
mod output;
mod pages;
mod run;
mod sample;
mod stopping;
mod tail;
mod validate;
mod watching;
