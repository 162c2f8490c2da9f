//! Integers wide enough that a sum of any number of values is exact.

use arrow::datatypes::i256;

/// A two's complement integer of `N` 64-bit limbs, lowest first.
///
/// One limb more than the values have leaves room for 2^63 of them. Sums of 64-bit integers and of
/// decimals need it, because the order of retractions is free: a sum that fits in the end may leave
/// the type's range on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wide<const N: usize>([u64; N]);

impl<const N: usize> Wide<N> {
    pub(super) const ZERO: Self = Self([0; N]);
    pub(super) const BYTES: usize = N * 8;

    #[inline(always)]
    pub(super) fn add(&mut self, other: Self) {
        let mut carry = false;
        for (limb, add) in self.0.iter_mut().zip(other.0) {
            let (sum, over) = limb.overflowing_add(add);
            let (sum, over_carry) = sum.overflowing_add(u64::from(carry));
            *limb = sum;
            carry = over | over_carry;
        }
    }

    fn negated(self) -> Self {
        let mut out = Self(self.0.map(|limb| !limb));
        let mut one = Self::ZERO;
        one.0[0] = 1;
        out.add(one);
        out
    }

    /// The value `n` times; exact unless the product needs more than `N` limbs.
    #[inline(always)]
    pub(super) fn times(self, n: i64) -> Self {
        match n {
            1 => self,
            -1 => self.negated(),
            n => self.times_slowly(n),
        }
    }

    #[cold]
    fn times_slowly(self, n: i64) -> Self {
        // Modulo 2^(64 N) the product of two's complement numbers is that of the unsigned ones.
        let product = self.times_unsigned(n.unsigned_abs());
        if n < 0 { product.negated() } else { product }
    }

    fn times_unsigned(self, n: u64) -> Self {
        let mut out = Self::ZERO;
        let mut carry = 0u128;
        for (to, limb) in out.0.iter_mut().zip(self.0) {
            let product = u128::from(limb) * u128::from(n) + carry;
            *to = product as u64;
            carry = product >> 64;
        }
        out
    }

    fn is_negative(self) -> bool {
        self.0[N - 1] >> 63 == 1
    }

    /// The value times 10^`digits`, divided by `n`, rounded toward zero: how DataFusion averages
    /// decimals. `None` when the scaled sum does not fit `N` limbs. `digits` is at most 19.
    pub(super) fn average(self, digits: u32, n: u64) -> Option<Self> {
        let negative = self.is_negative();
        let magnitude = if negative { self.negated() } else { self };
        let factor = 10u64.checked_pow(digits)?;
        let headroom = magnitude.0[N - 1].leading_zeros() + factor.leading_zeros();
        if headroom <= 64 {
            return None;
        }
        let quotient = magnitude.times_unsigned(factor).divided_unsigned(n);
        Some(if negative {
            quotient.negated()
        } else {
            quotient
        })
    }

    fn divided_unsigned(self, n: u64) -> Self {
        let mut out = Self::ZERO;
        let mut rest = 0u128;
        for i in (0..N).rev() {
            let part = rest << 64 | u128::from(self.0[i]);
            out.0[i] = (part / u128::from(n)) as u64;
            rest = part % u128::from(n);
        }
        out
    }

    pub(super) fn to_i128(self) -> Option<i128> {
        let limb = |i: usize| self.limb(i);
        let value = (u128::from(limb(1)) << 64 | u128::from(limb(0))) as i128;
        let fill = (value >> 127) as u64;
        (2..N).all(|i| limb(i) == fill).then_some(value)
    }

    pub(super) fn to_i256(self) -> Option<i256> {
        let limb = |i: usize| self.limb(i);
        let low = u128::from(limb(1)) << 64 | u128::from(limb(0));
        let high = (u128::from(limb(3)) << 64 | u128::from(limb(2))) as i128;
        let fill = (high >> 127) as u64;
        (4..N)
            .all(|i| limb(i) == fill)
            .then(|| i256::from_parts(low, high))
    }

    /// Limb `i` of the value sign-extended without end.
    fn limb(self, i: usize) -> u64 {
        match self.0.get(i) {
            Some(&limb) => limb,
            None if self.is_negative() => u64::MAX,
            None => 0,
        }
    }

    pub(super) fn write_le(self, out: &mut Vec<u8>) {
        for limb in self.0 {
            out.extend_from_slice(&limb.to_le_bytes());
        }
    }

    /// Reads what [`write_le`](Self::write_le) wrote; `bytes` is exactly [`Self::BYTES`] long.
    pub(super) fn read_le(bytes: &[u8]) -> Self {
        let mut out = Self::ZERO;
        for (limb, chunk) in out.0.iter_mut().zip(bytes.chunks_exact(8)) {
            *limb = u64::from_le_bytes(chunk.try_into().expect("chunks of eight"));
        }
        out
    }
}

/// Values that a [`Wide`] can take in. `N` must be at least the limbs of the value.
pub(super) trait ToWide: Copy {
    fn to_wide<const N: usize>(self) -> Wide<N>;

    /// The value `n` times.
    #[inline(always)]
    fn times<const N: usize>(self, n: i64) -> Wide<N> {
        self.to_wide().times(n)
    }
}

macro_rules! signed_to_wide {
    ($($t:ty),*) => {$(
        impl ToWide for $t {
            #[inline(always)]
            fn to_wide<const N: usize>(self) -> Wide<N> {
                let value = i64::from(self);
                let mut limbs = [(value >> 63) as u64; N];
                limbs[0] = value as u64;
                Wide(limbs)
            }

            // Without a branch: one multiplication gives all 128 bits.
            #[inline(always)]
            fn times<const N: usize>(self, n: i64) -> Wide<N> {
                (i128::from(self) * i128::from(n)).to_wide()
            }
        }
    )*};
}
signed_to_wide!(i8, i16, i32, i64);

macro_rules! unsigned_to_wide {
    ($($t:ty),*) => {$(
        impl ToWide for $t {
            #[inline(always)]
            fn to_wide<const N: usize>(self) -> Wide<N> {
                let mut limbs = [0; N];
                limbs[0] = u64::from(self);
                Wide(limbs)
            }

            // Below 2^64 times 2^63: within 128 bits.
            #[inline(always)]
            fn times<const N: usize>(self, n: i64) -> Wide<N> {
                (i128::from(self) * i128::from(n)).to_wide()
            }
        }
    )*};
}
unsigned_to_wide!(u8, u16, u32, u64);

impl ToWide for i128 {
    #[inline(always)]
    fn to_wide<const N: usize>(self) -> Wide<N> {
        let mut limbs = [(self >> 127) as u64; N];
        limbs[0] = self as u64;
        limbs[1] = (self >> 64) as u64;
        Wide(limbs)
    }
}

impl ToWide for i256 {
    #[inline(always)]
    fn to_wide<const N: usize>(self) -> Wide<N> {
        let (low, high) = self.to_parts();
        let mut limbs = [(high >> 127) as u64; N];
        limbs[0] = low as u64;
        limbs[1] = (low >> 64) as u64;
        limbs[2] = high as u64;
        limbs[3] = (high >> 64) as u64;
        Wide(limbs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_leave_the_range_of_the_values_and_come_back() {
        let mut sum = Wide::<3>::ZERO;
        for _ in 0..3 {
            sum.add(i128::MAX.to_wide());
        }
        assert_eq!(sum.to_i128(), None);
        assert_eq!(
            sum.to_i256(),
            Some(
                i256::from_i128(i128::MAX)
                    + i256::from_i128(i128::MAX)
                    + i256::from_i128(i128::MAX)
            )
        );
        sum.add(i128::MAX.to_wide::<3>().times(-2));
        assert_eq!(sum.to_i128(), Some(i128::MAX));
        sum.add(i128::MIN.to_wide());
        assert_eq!(sum.to_i128(), Some(-1));
    }

    #[test]
    fn multiplicities_multiply() {
        for value in [0i64, 1, -1, 12_345, i64::MIN, i64::MAX] {
            for n in [0i64, 1, -1, 2, -7, 1 << 40, i64::MIN] {
                let product = value.to_wide::<3>().times(n).to_i128();
                assert_eq!(ToWide::times::<3>(value, n).to_i128(), product);
                let unsigned = ToWide::times::<2>(value as u64, n).to_i128();
                assert_eq!(unsigned, Some(i128::from(value as u64) * i128::from(n)));
                assert_eq!(
                    product,
                    Some(i128::from(value) * i128::from(n)),
                    "{value} times {n}"
                );
            }
        }
    }

    #[test]
    fn averages_round_toward_zero() {
        let average = |sum: i128, digits, n| {
            sum.to_wide::<3>()
                .average(digits, n)
                .and_then(Wide::to_i128)
        };
        assert_eq!(average(20, 0, 3), Some(6));
        assert_eq!(average(-20, 0, 3), Some(-6));
        assert_eq!(average(10, 4, 3), Some(33_333));
        assert_eq!(
            average(i128::MAX, 4, 1),
            None,
            "the quotient needs more than 128 bits"
        );
        let narrow = i128::MAX.to_wide::<2>().average(4, 100_000);
        assert_eq!(narrow, None, "the scaled sum needs more than two limbs");
    }

    #[test]
    fn bytes_go_there_and_back() {
        let value = i256::MIN.to_wide::<5>();
        let mut bytes = vec![];
        value.write_le(&mut bytes);
        assert_eq!(bytes.len(), Wide::<5>::BYTES);
        assert_eq!(Wide::read_le(&bytes), value);
        assert_eq!(value.to_i256(), Some(i256::MIN));
    }
}
