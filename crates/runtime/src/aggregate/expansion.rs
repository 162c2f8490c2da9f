//! Sums of doubles that keep what rounding would take.
//!
//! Error-free transformations: Dekker, A floating-point technique for extending the available
//! precision, 1971; Shewchuk, Adaptive precision floating-point arithmetic, 1997.

/// `a + b` rounded, and exactly what the rounding took. The second is NaN where the sum overflows.
#[inline(always)]
pub(super) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    let rest = (a - (sum - b_part)) + (b - b_part);
    (sum, rest)
}

/// `a * b` rounded, and exactly what the rounding took, for factors below 2^996 and products above
/// 2^-969. Without a fused multiply-add, which baseline x86-64 computes in software.
#[inline(always)]
pub(super) fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let (a_hi, a_lo) = split(a);
    let (b_hi, b_lo) = split(b);
    let rest = ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo;
    (product, rest)
}

/// Two halves of 26 bits whose products are exact (Veltkamp).
#[inline(always)]
fn split(a: f64) -> (f64, f64) {
    const FACTOR: f64 = 134_217_729.0; // 2^27 + 1
    let big = FACTOR * a;
    let hi = big - (big - a);
    (hi, a - hi)
}

/// A sum kept in `K` doubles of falling magnitude, about 53 `K` bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Expansion<const K: usize>(pub(super) [f64; K]);

impl<const K: usize> Expansion<K> {
    pub(super) const ZERO: Self = Self([0.0; K]);

    #[inline(always)]
    pub(super) fn add(&mut self, value: f64) {
        let mut rest = value;
        for part in &mut self.0[..K - 1] {
            (*part, rest) = two_sum(*part, rest);
        }
        self.0[K - 1] += rest;
        if self.overlaps() {
            self.sift();
        }
    }

    /// Whether large parts have cancelled each other and stand in the way of smaller ones.
    #[inline(always)]
    fn overlaps(&self) -> bool {
        (1..K).any(|i| self.0[i].abs() > self.0[i - 1].abs() * f64::EPSILON)
    }

    /// Moves what parts are worth upwards, so that each has bits of its own.
    #[cold]
    fn sift(&mut self) {
        for _ in 1..K {
            for i in (1..K).rev() {
                (self.0[i - 1], self.0[i]) = two_sum(self.0[i - 1], self.0[i]);
            }
        }
    }

    pub(super) fn add_product(&mut self, a: f64, b: f64) {
        let (product, rest) = two_product(a, b);
        self.add(product);
        self.add(rest);
    }

    /// Rounded to a double.
    pub(super) fn value(&self) -> f64 {
        self.0.iter().rev().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn sums_and_products_lose_nothing() {
        assert_eq!(two_sum(1e16, 1.0), (1e16, 1.0));
        let (product, rest) = two_product(0.1, 0.1);
        // 0.1 is 3602879701896397 / 2^55; the square of the numerator is the exact product.
        let numerator = 3_602_879_701_896_397i128;
        let scale = 2f64.powi(55);
        let exact = numerator * numerator;
        let whole = (product * scale * scale) as i128;
        assert_eq!(whole + (rest * scale * scale) as i128, exact);
    }

    #[test]
    fn small_terms_survive_large_ones() {
        let mut sum = Expansion::<4>::ZERO;
        for value in [0.7, 1e36, 1e18, -1e36, -1e18] {
            sum.add(value);
        }
        assert_eq!(sum.value(), 0.7);
    }

    #[test]
    fn values_that_come_and_go_leave_no_trace() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..1000 {
            let mut sum = Expansion::<4>::ZERO;
            let values: Vec<f64> = (0..20)
                .map(|_| rng.random_range(-9..9) as f64 * 10f64.powi(rng.random_range(0..40)))
                .collect();
            values.iter().for_each(|&v| sum.add(v));
            sum.add(0.7);
            values.iter().for_each(|&v| sum.add(-v));
            assert_eq!(sum.value(), 0.7);
        }
    }
}
