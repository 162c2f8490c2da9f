//! A set of virtual partitions.

use super::N_VNODES;

const WORDS: usize = N_VNODES / 64;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VnodeSet([u64; WORDS]);

impl VnodeSet {
    pub fn insert(&mut self, vnode: u8) {
        self.0[usize::from(vnode) / 64] |= 1 << (vnode % 64);
    }

    pub fn contains(&self, vnode: u8) -> bool {
        self.0[usize::from(vnode) / 64] >> (vnode % 64) & 1 == 1
    }

    pub fn extend(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a |= b);
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// Ascending.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=u8::MAX).filter(|&vnode| self.contains(vnode))
    }
}

impl FromIterator<u8> for VnodeSet {
    fn from_iter<I: IntoIterator<Item = u8>>(vnodes: I) -> Self {
        let mut set = Self::default();
        vnodes.into_iter().for_each(|vnode| set.insert(vnode));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_put_in_and_what_another_holds() {
        let mut set: VnodeSet = [255, 0, 64].into_iter().collect();
        set.extend(&[63].into_iter().collect());
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 255]);
        assert!(set.contains(64) && !set.contains(65) && !set.is_empty());
        assert!(VnodeSet::default().is_empty());
    }
}
