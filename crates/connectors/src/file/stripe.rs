//! How several readers share one file.
//!
//! A file is cut into stripes of fixed size, which are dealt out in turn, so that all readers are at
//! about the same place in it and event time stays roughly in order. A record belongs to the stripe
//! in which its first byte lies.

/// Bytes.
pub const STRIPE: u64 = 1 << 20;

/// The stripes `index`, `index + of`, `index + 2 · of`, … of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stripes {
    pub index: u64,
    pub of: u64,
    /// Bytes.
    pub size: u64,
}

impl Stripes {
    /// Whether a record that begins at byte `at` belongs to these stripes.
    pub fn owns(&self, at: u64) -> bool {
        (at / self.size) % self.of == self.index
    }

    /// Where the first of these stripes begins whose beginning lies behind `at`.
    pub fn next(&self, at: u64) -> u64 {
        let stripe = at / self.size + 1;
        let wait = (self.index + self.of - stripe % self.of) % self.of;
        (stripe + wait).saturating_mul(self.size)
    }

    /// Where the run of these stripes ends in which `at` lies: never, where there is only one reader.
    pub fn end(&self, at: u64) -> u64 {
        if self.of == 1 {
            u64::MAX
        } else {
            (at / self.size + 1) * self.size
        }
    }
}

/// Among how many readers to share a file of `len` bytes that can be cut into `n_units`, when `parallelism`
/// readers share files of `total` bytes: as many as its share, so that they all have about the same to do.
pub fn n_readers(len: u64, total: u64, parallelism: usize, n_units: u64) -> u64 {
    let parallelism = parallelism as u64;
    let share = (u128::from(len) * u128::from(parallelism)).div_ceil(u128::from(total.max(1)));
    let share = u64::try_from(share).unwrap_or(parallelism);
    share.min(n_units).clamp(1, parallelism.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_are_dealt_out_in_turn() {
        let middle = Stripes {
            index: 1,
            of: 3,
            size: 10,
        };
        let owned: Vec<_> = (0..60).filter(|&at| middle.owns(at)).collect();
        assert_eq!(owned, (10..20).chain(40..50).collect::<Vec<_>>());
        assert_eq!(
            (
                middle.next(0),
                middle.next(9),
                middle.next(10),
                middle.next(39)
            ),
            (10, 10, 40, 40)
        );
        assert_eq!((middle.end(10), middle.end(19)), (20, 20));
        let alone = Stripes {
            index: 0,
            of: 1,
            size: 10,
        };
        assert!((0..50).all(|at| alone.owns(at) && alone.end(at) == u64::MAX));
    }

    #[test]
    fn readers_are_shared_out_by_size() {
        let n = |len, total, parallelism| n_readers(len, total, parallelism, len);
        assert_eq!(n(100, 100, 4), 4);
        assert_eq!(n(50, 100, 4), 2);
        assert_eq!(n(51, 100, 4), 3);
        assert_eq!(n(1, 100, 4), 1);
        assert_eq!(n(2, 2, 8), 2);
        assert_eq!(n(0, 0, 4), 1);
        assert_eq!(n_readers(100, 100, 4, 1), 1);
    }
}
