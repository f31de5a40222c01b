//! Bit-packing of vectors of 1,024 unsigned integers, in the manner of FastLanes (Afroozeh and Boncz,
//! PVLDB 16(9), 2023): a vector packed to `w` bits is a table of 1,024-bit rows of lanes, so that every lane
//! goes through the same shifts and one instruction works on as many lanes as a register holds.
//!
//! ```text
//!  lanes of T bits (T = 8, 16, 32, 64: the narrowest that holds w);  L = 1024 / T lanes
//!
//!            lane 0   lane 1  …  lane L-1
//!          ┌────────┬────────┬───┬────────┐   value i sits in lane i % L as the (i / L)-th field of
//!   word 0 │▓▓▓░░░▓▓│▓▓▓░░░▓▓│   │▓▓▓░░░▓▓│   w bits, lowest bits first; fields cross from word to
//!   word 1 │▓░░░▓▓▓░│▓░░░▓▓▓░│   │▓░░░▓▓▓░│   word of the same lane
//!   …      └────────┴────────┴───┴────────┘   w words per lane: 128 · w bytes in all
//! ```
//!
//! Values stay in row order (field-major), so a comparison yields its bits in row order too, and a single
//! value is found with a division by a constant. The width is a run-time value: the shift is uniform over a
//! row of lanes, so a kernel per width would gain little and cost sixty-four times the code.
//!
//! Every kernel is compiled for the baseline, for AVX2 and for AVX-512 and chosen once at run time.

/// Values per vector.
pub const VECTOR: usize = 1024;

/// Bytes of a vector packed to `width` bits.
pub const fn packed_len(width: u8) -> usize {
    VECTOR / 8 * width as usize
}

/// Bits that `v` needs.
pub const fn bits(v: u64) -> u8 {
    (u64::BITS - v.leading_zeros()) as u8
}

/// The lane type of a width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneWidth {
    L8,
    L16,
    L32,
    L64,
}

impl LaneWidth {
    pub const fn of(width: u8) -> Self {
        match width {
            0..=8 => Self::L8,
            9..=16 => Self::L16,
            17..=32 => Self::L32,
            _ => Self::L64,
        }
    }
}

/// An unsigned integer that vectors are packed in.
pub trait Lane: Copy + Default + Ord + 'static {
    const BITS: usize;
    const LANES: usize = VECTOR / Self::BITS;

    fn from_u64(v: u64) -> Self;
    fn to_u64(self) -> u64;

    /// Packs 1,024 values below `2^width` into `width · LANES` lanes.
    fn pack(width: u8, values: &[Self; VECTOR], packed: &mut [Self]);
    /// The inverse of [`Lane::pack`].
    fn unpack(width: u8, packed: &[Self], values: &mut [Self; VECTOR]);
    /// Bit `i` of the result: whether `low <= value i <= low + span`, in wrapping arithmetic.
    fn within(width: u8, packed: &[Self], low: Self, span: Self, bits: &mut [u64; VECTOR / 64]);
    /// Sum of the first `count` values, in wrapping arithmetic.
    fn sum(width: u8, packed: &[Self], count: usize) -> u64;
    /// Value `at` alone.
    fn unpack_one(width: u8, packed: &[Self], at: usize) -> Self;
    /// Bytes as lanes. They must be aligned for lanes, and a whole number of them.
    fn cast(bytes: &[u8]) -> &[Self];
    /// Appends lanes as little-endian bytes.
    fn append_le(lanes: &[Self], bytes: &mut Vec<u8>);
}

#[cfg(target_endian = "big")]
compile_error!("column blocks are mapped as little-endian words");

/// Instruction sets that kernels are compiled for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Isa {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

fn isa() -> Isa {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
        {
            return Isa::Avx512;
        }
        if is_x86_feature_detected!("avx2") {
            return Isa::Avx2;
        }
    }
    Isa::Baseline
}

/// Compiles `$body` (an `#[inline(always)]` function) for each instruction set and calls the best one.
macro_rules! dispatch {
    ($body:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi1,bmi2")]
        fn avx2($($arg: $ty),*) $(-> $ret)? {
            $body($($arg),*)
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi1,bmi2,avx512f,avx512bw,avx512vl,avx512dq")]
        fn avx512($($arg: $ty),*) $(-> $ret)? {
            $body($($arg),*)
        }
        match isa() {
            Isa::Baseline => $body($($arg),*),
            // SAFETY: `isa` has seen that this processor has the features.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2($($arg),*) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512($($arg),*) },
        }
    }};
}

macro_rules! lane {
    ($module:ident, $t:ty) => {
        mod $module {
            use super::{Isa, Lane, VECTOR, isa};

            const BITS: usize = <$t>::BITS as usize;
            const LANES: usize = VECTOR / BITS;

            const fn mask(width: usize) -> $t {
                if width == 0 { 0 } else { <$t>::MAX >> (BITS - width) }
            }

            /// The lanes of word `at`.
            #[inline(always)]
            fn word(packed: &[$t], at: usize) -> &[$t; LANES] {
                packed[at * LANES..].first_chunk().expect("a packed vector has width words")
            }

            /// Field `row` of every lane.
            #[inline(always)]
            fn fields(width: usize, packed: &[$t], row: usize, out: &mut [$t; LANES]) {
                let (at, shift) = (row * width / BITS, row * width % BITS);
                let low = word(packed, at);
                if shift + width <= BITS {
                    for l in 0..LANES {
                        out[l] = low[l] >> shift & mask(width);
                    }
                } else {
                    let high = word(packed, at + 1);
                    for l in 0..LANES {
                        out[l] = (low[l] >> shift | high[l] << (BITS - shift)) & mask(width);
                    }
                }
            }

            #[inline(always)]
            fn unpack(width: usize, packed: &[$t], values: &mut [$t; VECTOR]) {
                let (rows, _) = values.as_chunks_mut::<LANES>();
                for (row, out) in rows.iter_mut().enumerate() {
                    fields(width, packed, row, out);
                }
            }

            #[inline(always)]
            fn within(width: usize, packed: &[$t], low: $t, span: $t, bits: &mut [u64; VECTOR / 64]) {
                let mut hits = [0u8; VECTOR];
                let (rows, _) = hits.as_chunks_mut::<LANES>();
                let mut values = [0; LANES];
                for (row, hit) in rows.iter_mut().enumerate() {
                    fields(width, packed, row, &mut values);
                    for l in 0..LANES {
                        hit[l] = u8::from(values[l].wrapping_sub(low) <= span);
                    }
                }
                let (words, _) = hits.as_chunks::<64>();
                for (bits, hits) in bits.iter_mut().zip(words) {
                    *bits = super::gather_bits(hits);
                }
            }

            #[inline(always)]
            fn sum(width: usize, packed: &[$t], count: usize) -> u64 {
                let mut sums = [0u64; LANES];
                let mut values = [0; LANES];
                for row in 0..count / LANES {
                    fields(width, packed, row, &mut values);
                    for l in 0..LANES {
                        sums[l] = sums[l].wrapping_add(u64::from(values[l]));
                    }
                }
                if count % LANES > 0 {
                    fields(width, packed, count / LANES, &mut values);
                    for (sum, value) in sums.iter_mut().zip(values).take(count % LANES) {
                        *sum = sum.wrapping_add(u64::from(value));
                    }
                }
                sums.iter().fold(0, |a, &b| a.wrapping_add(b))
            }

            #[inline(always)]
            fn pack(width: usize, values: &[$t; VECTOR], packed: &mut [$t]) {
                packed.fill(0);
                let (rows, _) = values.as_chunks::<LANES>();
                let (words, _) = packed.as_chunks_mut::<LANES>();
                for (row, fields) in rows.iter().enumerate() {
                    let (at, shift) = (row * width / BITS, row * width % BITS);
                    for l in 0..LANES {
                        words[at][l] |= (fields[l] & mask(width)) << shift;
                    }
                    if shift + width > BITS {
                        for l in 0..LANES {
                            words[at + 1][l] |= (fields[l] & mask(width)) >> (BITS - shift);
                        }
                    }
                }
            }

            impl Lane for $t {
                const BITS: usize = BITS;

                #[inline(always)]
                fn from_u64(v: u64) -> Self {
                    v as Self
                }

                #[inline(always)]
                fn to_u64(self) -> u64 {
                    u64::from(self)
                }

                fn pack(width: u8, values: &[Self; VECTOR], packed: &mut [Self]) {
                    let width = usize::from(width);
                    assert!(width <= BITS && packed.len() == width * LANES);
                    if width > 0 {
                        dispatch!(pack(width: usize, values: &[$t; VECTOR], packed: &mut [$t]));
                    }
                }

                fn unpack(width: u8, packed: &[Self], values: &mut [Self; VECTOR]) {
                    let width = usize::from(width);
                    assert!(width <= BITS && packed.len() == width * LANES);
                    if width == 0 {
                        values.fill(0);
                    } else {
                        dispatch!(unpack(width: usize, packed: &[$t], values: &mut [$t; VECTOR]));
                    }
                }

                fn within(width: u8, packed: &[Self], low: Self, span: Self, bits: &mut [u64; VECTOR / 64]) {
                    let width = usize::from(width);
                    assert!(width <= BITS && packed.len() == width * LANES);
                    if width == 0 {
                        bits.fill(if (0 as $t).wrapping_sub(low) <= span { u64::MAX } else { 0 });
                    } else {
                        dispatch!(within(
                            width: usize, packed: &[$t], low: $t, span: $t, bits: &mut [u64; VECTOR / 64]
                        ));
                    }
                }

                fn sum(width: u8, packed: &[Self], count: usize) -> u64 {
                    let width = usize::from(width);
                    assert!(width <= BITS && packed.len() == width * LANES && count <= VECTOR);
                    if width == 0 {
                        return 0;
                    }
                    dispatch!(sum(width: usize, packed: &[$t], count: usize) -> u64)
                }

                #[inline]
                fn cast(bytes: &[u8]) -> &[Self] {
                    // SAFETY: every bit pattern is a value of an unsigned integer type.
                    let (before, lanes, after) = unsafe { bytes.align_to::<$t>() };
                    assert!(before.is_empty() && after.is_empty(), "packed data is aligned and whole");
                    lanes
                }

                fn append_le(lanes: &[Self], bytes: &mut Vec<u8>) {
                    bytes.extend(lanes.iter().flat_map(|lane| lane.to_le_bytes()));
                }

                #[inline]
                fn unpack_one(width: u8, packed: &[Self], at: usize) -> Self {
                    let width = usize::from(width);
                    if width == 0 {
                        return 0;
                    }
                    let (row, lane) = (at / LANES, at % LANES);
                    let (word, shift) = (row * width / BITS, row * width % BITS);
                    let mut field = packed[word * LANES + lane] >> shift;
                    if shift + width > BITS {
                        field |= packed[(word + 1) * LANES + lane] << (BITS - shift);
                    }
                    field & mask(width)
                }
            }
        }
    };
}

lane!(lane8, u8);
lane!(lane16, u16);
lane!(lane32, u32);
lane!(lane64, u64);

/// Bit `i` of the result is byte `i`, each 0 or 1.
#[inline(always)]
pub(crate) fn gather_bits(bytes: &[u8; 64]) -> u64 {
    let (eights, _) = bytes.as_chunks::<8>();
    let mut word = 0;
    for (i, eight) in eights.iter().enumerate() {
        // The product moves bit 8k of the input to bit 56 + k; no two terms meet there.
        let gathered = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word |= gathered << (8 * i);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Lane + std::fmt::Debug>() {
        let mut seed = 7u64;
        for width in 0..=T::BITS as u8 {
            let limit = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            let mut values = [T::default(); VECTOR];
            for v in &mut values {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                *v = T::from_u64(seed.rotate_left(29) & limit);
            }
            let mut packed = vec![T::default(); T::LANES * usize::from(width)];
            T::pack(width, &values, &mut packed);
            let mut back = [T::default(); VECTOR];
            T::unpack(width, &packed, &mut back);
            assert_eq!(values, back, "width {width}");
            let (low, span) = (values[3].to_u64(), limit / 3);
            let mut hits = [0; VECTOR / 64];
            T::within(width, &packed, T::from_u64(low), T::from_u64(span), &mut hits);
            let wrap = if T::BITS == 64 { u64::MAX } else { (1 << T::BITS) - 1 };
            for (at, v) in values.iter().enumerate() {
                assert_eq!(T::unpack_one(width, &packed, at), *v);
                if at % 111 == 0 {
                    let sum = values[..at].iter().fold(0u64, |sum, v| sum.wrapping_add(v.to_u64()));
                    assert_eq!(T::sum(width, &packed, at), sum);
                }
                let hit = v.to_u64().wrapping_sub(low) & wrap <= span;
                assert_eq!(hits[at / 64] >> (at % 64) & 1 == 1, hit, "width {width} value {at}");
            }
        }
    }

    #[test]
    fn every_width_of_every_lane_type_round_trips() {
        round_trip::<u8>();
        round_trip::<u16>();
        round_trip::<u32>();
        round_trip::<u64>();
    }

    #[test]
    fn widths_and_lanes() {
        assert_eq!([bits(0), bits(1), bits(255), bits(256), bits(u64::MAX)], [0, 1, 8, 9, 64]);
        assert_eq!(LaneWidth::of(0), LaneWidth::L8);
        assert_eq!(LaneWidth::of(33), LaneWidth::L64);
        assert_eq!(packed_len(10), 1280);
    }
}
