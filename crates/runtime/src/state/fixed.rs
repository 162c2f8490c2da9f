//! Column types whose values have a fixed width, and what keys need to know of them.

use arrow::array::ArrowPrimitiveType;
use arrow::datatypes::*;

/// Calls `$m!(ArrowType, args…)` for the primitive type behind a `&DataType`, except for 256-bit
/// decimals; for those and all other types takes a fallback arm.
macro_rules! with_word_type {
    ($data_type:expr => $m:ident!($($args:tt),*), $($p:pat => $fallback:expr),* $(,)?) => {{
        use arrow::datatypes::{self as T, DataType as D, IntervalUnit as I, TimeUnit as U};
        match $data_type {
            D::Int8 => $m!(T::Int8Type $(, $args)*),
            D::Int16 => $m!(T::Int16Type $(, $args)*),
            D::Int32 => $m!(T::Int32Type $(, $args)*),
            D::Int64 => $m!(T::Int64Type $(, $args)*),
            D::UInt8 => $m!(T::UInt8Type $(, $args)*),
            D::UInt16 => $m!(T::UInt16Type $(, $args)*),
            D::UInt32 => $m!(T::UInt32Type $(, $args)*),
            D::UInt64 => $m!(T::UInt64Type $(, $args)*),
            D::Float16 => $m!(T::Float16Type $(, $args)*),
            D::Float32 => $m!(T::Float32Type $(, $args)*),
            D::Float64 => $m!(T::Float64Type $(, $args)*),
            D::Decimal32(..) => $m!(T::Decimal32Type $(, $args)*),
            D::Decimal64(..) => $m!(T::Decimal64Type $(, $args)*),
            D::Decimal128(..) => $m!(T::Decimal128Type $(, $args)*),
            D::Date32 => $m!(T::Date32Type $(, $args)*),
            D::Date64 => $m!(T::Date64Type $(, $args)*),
            D::Time32(U::Second) => $m!(T::Time32SecondType $(, $args)*),
            D::Time32(U::Millisecond) => $m!(T::Time32MillisecondType $(, $args)*),
            D::Time64(U::Microsecond) => $m!(T::Time64MicrosecondType $(, $args)*),
            D::Time64(U::Nanosecond) => $m!(T::Time64NanosecondType $(, $args)*),
            D::Timestamp(U::Second, _) => $m!(T::TimestampSecondType $(, $args)*),
            D::Timestamp(U::Millisecond, _) => $m!(T::TimestampMillisecondType $(, $args)*),
            D::Timestamp(U::Microsecond, _) => $m!(T::TimestampMicrosecondType $(, $args)*),
            D::Timestamp(U::Nanosecond, _) => $m!(T::TimestampNanosecondType $(, $args)*),
            D::Duration(U::Second) => $m!(T::DurationSecondType $(, $args)*),
            D::Duration(U::Millisecond) => $m!(T::DurationMillisecondType $(, $args)*),
            D::Duration(U::Microsecond) => $m!(T::DurationMicrosecondType $(, $args)*),
            D::Duration(U::Nanosecond) => $m!(T::DurationNanosecondType $(, $args)*),
            D::Interval(I::YearMonth) => $m!(T::IntervalYearMonthType $(, $args)*),
            D::Interval(I::DayTime) => $m!(T::IntervalDayTimeType $(, $args)*),
            D::Interval(I::MonthDayNano) => $m!(T::IntervalMonthDayNanoType $(, $args)*),
            $($p => $fallback,)*
        }
    }};
}

/// As [`with_word_type`], 256-bit decimals included.
macro_rules! with_fixed_type {
    ($data_type:expr => $m:ident!($($args:tt),*), $($p:pat => $fallback:expr),* $(,)?) => {
        match $data_type {
            arrow::datatypes::DataType::Decimal256(..) => {
                $m!(arrow::datatypes::Decimal256Type $(, $args)*)
            }
            other => $crate::state::fixed::with_word_type!(other => $m!($($args),*), $($p => $fallback),*),
        }
    };
}

pub(crate) use {with_fixed_type, with_word_type};

/// A primitive type as part of a key: which values are the same key, and in what order they stand.
pub(crate) trait FixedType: ArrowPrimitiveType {
    /// The one form of a value among those that are the same key: 0.0 for −0.0, one NaN for all
    /// (semantics 4.6).
    fn canonical(value: Self::Native) -> Self::Native {
        value
    }

    /// Writes bytes in the order of the values, as many as the type is wide, for a canonical value.
    fn write_ordered(value: Self::Native, out: &mut [u8]);

    /// Reads what [`write_ordered`](Self::write_ordered) wrote.
    fn read_ordered(bytes: &[u8]) -> Self::Native;
}

/// A primitive type of at most 128 bits.
pub(crate) trait WordType: FixedType {
    /// The value as an unsigned number in the order of the values, for a canonical value.
    fn to_word(value: Self::Native) -> u128;

    fn from_word(word: u128) -> Self::Native;
}

/// The two traits for a type, from how a value becomes a word and back.
macro_rules! word_type {
    ($($t:ty),+; $canonical:expr, $to:expr, $from:expr) => {$(
        impl FixedType for $t {
            #[inline(always)]
            fn canonical(value: Self::Native) -> Self::Native {
                $canonical(value)
            }

            #[inline(always)]
            fn write_ordered(value: Self::Native, out: &mut [u8]) {
                let unused = 16 - size_of::<Self::Native>();
                out.copy_from_slice(&Self::to_word(value).to_be_bytes()[unused..]);
            }

            #[inline(always)]
            fn read_ordered(bytes: &[u8]) -> Self::Native {
                let mut word = [0; 16];
                word[16 - size_of::<Self::Native>()..].copy_from_slice(bytes);
                Self::from_word(u128::from_be_bytes(word))
            }
        }

        impl WordType for $t {
            #[inline(always)]
            fn to_word(value: Self::Native) -> u128 {
                $to(value)
            }

            #[inline(always)]
            fn from_word(word: u128) -> Self::Native {
                $from(word)
            }
        }
    )+};
}

/// Signed numbers in the order of unsigned ones: the sign bit flipped.
macro_rules! signed_types {
    ($native:ty, $unsigned:ty; $($t:ty),+) => {
        word_type!($($t),+; |v| v,
            |v: $native| (v as $unsigned ^ (1 << (<$unsigned>::BITS - 1))) as u128,
            |w: u128| (w as $unsigned ^ (1 << (<$unsigned>::BITS - 1))) as $native);
    };
}

macro_rules! unsigned_types {
    ($native:ty; $($t:ty),+) => {
        word_type!($($t),+; |v| v, |v: $native| v as u128, |w: u128| w as $native);
    };
}

/// IEEE 754 numbers: the sign bit flipped where it is clear, all bits where it is set, which puts the
/// canonical NaN last.
macro_rules! float_type {
    ($t:ty, $bits:ty) => {
        word_type!($t;
            |v: <$t as ArrowPrimitiveType>::Native| {
                if v.is_nan() {
                    <$t as ArrowPrimitiveType>::Native::NAN
                } else if v == <$t as ArrowPrimitiveType>::Native::default() {
                    Default::default()
                } else {
                    v
                }
            },
            |v: <$t as ArrowPrimitiveType>::Native| {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = v.to_bits();
                u128::from(if bits & SIGN == 0 { bits | SIGN } else { !bits })
            },
            |w: u128| {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = w as $bits;
                <$t as ArrowPrimitiveType>::Native::from_bits(if bits & SIGN == 0 { !bits } else { bits & !SIGN })
            });
    };
}

signed_types!(i8, u8; Int8Type);
signed_types!(i16, u16; Int16Type);
signed_types!(i32, u32; Int32Type, Decimal32Type, Date32Type, Time32SecondType,
    Time32MillisecondType, IntervalYearMonthType);
signed_types!(i64, u64; Int64Type, Decimal64Type, Date64Type, Time64MicrosecondType,
    Time64NanosecondType, TimestampSecondType, TimestampMillisecondType, TimestampMicrosecondType,
    TimestampNanosecondType, DurationSecondType, DurationMillisecondType, DurationMicrosecondType,
    DurationNanosecondType);
signed_types!(i128, u128; Decimal128Type);
unsigned_types!(u8; UInt8Type);
unsigned_types!(u16; UInt16Type);
unsigned_types!(u32; UInt32Type);
unsigned_types!(u64; UInt64Type);
float_type!(Float16Type, u16);
float_type!(Float32Type, u32);
float_type!(Float64Type, u64);

// The parts of an interval one after another, as DataFusion compares them.
word_type!(IntervalDayTimeType; |v| v,
    |v: IntervalDayTime| {
        Int32Type::to_word(v.days) << 32 | Int32Type::to_word(v.milliseconds)
    },
    |w: u128| IntervalDayTime::new(Int32Type::from_word(w >> 32), Int32Type::from_word(w)));
word_type!(IntervalMonthDayNanoType; |v| v,
    |v: IntervalMonthDayNano| {
        Int32Type::to_word(v.months) << 96
            | Int32Type::to_word(v.days) << 64
            | Int64Type::to_word(v.nanoseconds)
    },
    |w: u128| IntervalMonthDayNano::new(
        Int32Type::from_word(w >> 96), Int32Type::from_word(w >> 64), Int64Type::from_word(w)));

impl FixedType for Decimal256Type {
    fn write_ordered(value: i256, out: &mut [u8]) {
        out.copy_from_slice(&value.to_be_bytes());
        out[0] ^= 0x80;
    }

    fn read_ordered(bytes: &[u8]) -> i256 {
        let mut be: [u8; 32] = bytes.try_into().expect("a decimal of 256 bits");
        be[0] ^= 0x80;
        i256::from_be_bytes(be)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: FixedType>(ascending: &[T::Native]) {
        let width = size_of::<T::Native>();
        let bytes = |v: &T::Native| {
            let mut out = vec![0; width];
            T::write_ordered(T::canonical(*v), &mut out);
            out
        };
        for pair in ascending.windows(2) {
            assert!(bytes(&pair[0]) < bytes(&pair[1]), "{pair:?}");
        }
        for value in ascending {
            assert_eq!(
                format!("{:?}", T::read_ordered(&bytes(value))),
                format!("{value:?}")
            );
        }
    }

    #[test]
    fn bytes_stand_in_the_order_of_the_values_and_read_back() {
        check::<Int8Type>(&[i8::MIN, -1, 0, 1, i8::MAX]);
        check::<Int64Type>(&[i64::MIN, -1, 0, 1, i64::MAX]);
        check::<UInt64Type>(&[0, 1, u64::MAX]);
        check::<Decimal128Type>(&[i128::MIN, -1, 0, 1, i128::MAX]);
        check::<Decimal256Type>(&[i256::MIN, i256::MINUS_ONE, i256::ZERO, i256::ONE, i256::MAX]);
        check::<Float64Type>(&[
            f64::NEG_INFINITY,
            f64::MIN,
            -1.0,
            -f64::MIN_POSITIVE,
            0.0,
            1.0,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ]);
        check::<Float32Type>(&[f32::MIN, -1.0, 0.0, f32::MAX, f32::NAN]);
        let interval = IntervalMonthDayNano::new;
        check::<IntervalMonthDayNanoType>(&[
            interval(-1, 5, 5),
            interval(0, -1, 9),
            interval(0, 0, i64::MIN),
            interval(0, 0, 7),
            interval(2, 0, -1),
        ]);
        check::<IntervalDayTimeType>(&[
            IntervalDayTime::new(-1, 5),
            IntervalDayTime::new(3, -1),
            IntervalDayTime::new(3, 0),
        ]);
    }

    #[test]
    fn zeros_are_one_key_and_so_are_nans() {
        assert_eq!(Float64Type::canonical(-0.0).to_bits(), 0);
        let negative_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63 | 7);
        assert_eq!(
            Float64Type::canonical(negative_nan).to_bits(),
            f64::NAN.to_bits()
        );
        assert_eq!(Float64Type::canonical(-1.5), -1.5);
    }
}
