//! Doubles in strings of limited width, as MySQL stores them in CHAR, VARCHAR, BINARY and VARBINARY columns.

use super::{
    MAX_FIXED_LEN, has_point, shortest, write_exponent, write_f64_fixed, write_fixed, write_scientific,
};

/// Appends a DOUBLE as it is stored in a string of `width` characters: with as many digits as there is room for, without an
/// exponent or with one, whichever leaves room for more. False if that is too little, or what is appended is cut off.
pub fn write_f64_within(v: f64, width: usize, to: &mut Vec<u8>) -> bool {
    let start = to.len();
    let longest = MAX_FIXED_LEN.max(i32::try_from(width).unwrap_or(i32::MAX));
    write_scientific(shortest(v).bytes(), longest, to);
    if to.len() - start <= width {
        return true;
    }
    let sign: &[u8] = if v < 0.0 { b"-" } else { b"" };
    let room = width.saturating_sub(sign.len());
    let v = v.abs();
    // Digits beyond the width are rounded away first, and zeros at the end of the others are none.
    let shortest = Digits::of(&format!("{v:e}"));
    let all = if shortest.len() > room { Digits::rounded(v, room.max(1)).trimmed() } else { shortest };
    for count in (1..=all.len()).rev() {
        let digits = if count == all.len() { all.clone() } else { Digits::rounded(v, count) };
        for (write, has_exponent) in [(Digits::write_fixed as Write, false), (Digits::write_exponent, true)] {
            let mut long = Vec::new();
            if write(&digits, &mut long) && long.len() <= room {
                to.truncate(start);
                to.extend_from_slice(sign);
                write(&digits.trimmed(), to);
                // One digit of several, and not even room for a point behind it, is too little.
                return !(has_exponent && count == 1 && all.len() > 1 && long.len() == room);
            }
        }
    }
    let mut text = Vec::new();
    if (-2..=0).contains(&all.point) {
        // Only the digits after the point that there is room for.
        write_f64_fixed(v, room.saturating_sub(2).min(3) as u8, &mut text);
        while text.contains(&b'.') && matches!(text.last(), Some(b'0' | b'.')) {
            text.pop();
        }
    } else {
        Digits::rounded(v, 1).write_exponent(&mut text);
    }
    to.truncate(start);
    if text != b"0" {
        to.extend_from_slice(sign);
    }
    to.extend_from_slice(&text);
    let fits = room >= 2 && to.len() - start <= width;
    to.truncate(start + width);
    fits
}

type Write = fn(&Digits, &mut Vec<u8>) -> bool;

/// A number above 0 as `0.digits × 10^point`.
#[derive(Clone)]
struct Digits {
    digits: Vec<u8>,
    point: i32,
}

impl Digits {
    /// Of `d.ddde±x`.
    fn of(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        Self { digits, point: exponent.parse::<i32>().unwrap_or(0) + 1 }
    }

    fn rounded(v: f64, count: usize) -> Self {
        Self::of(&format!("{v:.*e}", count - 1))
    }

    fn len(&self) -> usize {
        self.digits.len()
    }

    fn trimmed(&self) -> Self {
        let zeros = self.digits.iter().rev().take_while(|digit| **digit == b'0').count();
        let len = (self.len() - zeros).max(1);
        Self { digits: self.digits[..len].to_vec(), point: self.point }
    }

    /// False if a number of this size is never written so.
    fn write_fixed(&self, to: &mut Vec<u8>) -> bool {
        if !has_point(&self.digits, self.point) {
            return false;
        }
        let from = to.len();
        write_fixed(&self.digits, self.point, to);
        to.len() - from <= MAX_FIXED_LEN as usize
    }

    fn write_exponent(&self, to: &mut Vec<u8>) -> bool {
        write_exponent(&self.digits, self.point, to);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MySQL 9.7: `CREATE TABLE t (v DOUBLE, c VARCHAR(width))`, `UPDATE t SET c = v * 1` out of strict mode.
    #[test]
    fn doubles_keep_the_digits_that_there_is_room_for() {
        let cases: &[(f64, usize, &str, bool)] = &[
            (1.0 / 3.0, 5, "0.333", true),
            (8103.083927575384, 5, "8103", true),
            (8103.083927575384, 8, "8103.084", true),
            (8103.083927575384, 6, "8103.1", true),
            (-8103.083927575384, 12, "-8103.083928", true),
            (123456789.125, 5, "1.2e8", true),
            (123456789.125, 12, "123456789.12", true),
            (1e100, 5, "1e100", true),
            (1e100, 3, "1e1", false),
            (1.5e-7, 5, "1e-7", true),
            (1.5e-7, 12, "0.00000015", true),
            (100000.0, 5, "1e5", true),
            (1500.0, 3, "2e3", false),
            (-1.5e-7, 5, "-1e-7", false),
            (1500.0, 1, "2", false),
            (-1.5e-10, 12, "-1.5e-10", true),
            (-1.5e-10, 3, "-1e", false),
            (0.0025, 1, "0", false),
            (0.083, 3, "0.1", true),
            (-0.71, 2, "-1", false),
            (-0.46, 2, "0", false),
            (-0.99, 1, "-", false),
            (-0.0008950172283870801, 7, "-9e-4", true),
            (0.00043481000000000005, 11, "0.00043481", true),
            (-0.0008803501, 11, "-8.8035e-4", true),
            (0.3333333432674408, 13, "0.33333334327", true),
            (1.0000000150474662e30, 13, "1.00000002e30", true),
            (3.0, 1, "3", true),
            (0.0, 1, "0", true),
        ];
        for &(v, width, text, fits) in cases {
            let mut to = b"x".to_vec();
            let fit = write_f64_within(v, width, &mut to);
            assert_eq!((std::str::from_utf8(&to[1..]), fit), (Ok(text), fits), "{v} in {width}");
        }
    }
}
