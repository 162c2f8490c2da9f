//! Which slots are taken.

/// Slots below `n_slots`, each taken or free.
#[derive(Default)]
pub(super) struct Slots {
    taken: Vec<bool>,
    free: Vec<u32>,
}

impl Slots {
    /// Gives out a free slot, and notes it in `new`.
    #[inline]
    pub(super) fn give(&mut self, new: &mut Vec<u32>) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.taken[slot as usize] = true;
                slot
            }
            None => {
                self.taken.push(true);
                u32::try_from(self.taken.len() - 1).expect("at most 2^32 keys in memory")
            }
        };
        new.push(slot);
        slot
    }

    pub(super) fn take_back(&mut self, slots: &[u32]) {
        for &slot in slots {
            let was_taken = std::mem::replace(&mut self.taken[slot as usize], false);
            assert!(was_taken, "slot {slot} holds no key");
            self.free.push(slot);
        }
    }

    pub(super) fn clear(&mut self) {
        self.taken.clear();
        self.free.clear();
    }

    pub(super) fn n_slots(&self) -> usize {
        self.taken.len()
    }

    pub(super) fn n_taken(&self) -> usize {
        self.taken.len() - self.free.len()
    }

    pub(super) fn taken(&self) -> Vec<u32> {
        (0u32..)
            .zip(&self.taken)
            .filter(|(_, taken)| **taken)
            .map(|(slot, _)| slot)
            .collect()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.taken.capacity() + self.free.capacity() * size_of::<u32>()
    }
}
