//! Keyed state: how keys become slots and bytes, and where state is kept between epochs.

pub mod expiry;
pub(crate) mod fixed;
pub mod hash;
pub mod interner;
pub mod keys;
pub mod store;
#[cfg(test)]
pub(crate) mod testing;
pub mod values;
mod vnode_set;
mod writes;

pub use hash::{N_VNODES, vnodes};
pub use interner::KeyInterner;
pub use keys::{KeyCodec, KeyError, KeyRows};
pub use store::{CommitRecord, SplitPosition, StateStore, StoreStats, TableId};
pub use values::ValueCodec;
pub use vnode_set::VnodeSet;
pub use writes::StateWrites;
pub(crate) use writes::ordered;
