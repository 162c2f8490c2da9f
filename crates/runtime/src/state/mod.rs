//! Keyed state.
#[derive(Default)]
pub struct StateWrites {}
