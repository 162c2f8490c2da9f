//! A server in this process or beside it, and clients of it.
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests are tests, though clippy cannot know it"
)]

mod bad_input;
mod cursors;
mod endings;
mod extended;
mod harness;
mod jobs;
mod psql;
mod queries;
