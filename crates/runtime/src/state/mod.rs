//! Keyed state: how keys become slots and bytes, and where state is kept between epochs.

pub(crate) mod fixed;

/// What one subtask changed since the last commit.
#[derive(Default)]
pub struct StateWrites {}
