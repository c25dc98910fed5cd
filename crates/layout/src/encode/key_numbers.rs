//! Row keys of digits as one number each.

use crate::plan::{Layout, TailField};
use crate::schema::KeyTail;

/// The most digits of a number: any 19 digits fit in a u64.
const MOST_DIGITS: u32 = 19;

/// The row keys of a layout as numbers of all their digits. All parts of such a key have fixed places, so that the numbers
/// sort as the keys do: `0000000042#20180105` is 4,220,180,105.
#[derive(Debug, Clone)]
pub struct KeyNumbers {
    prefix: KeyTail,
    /// Ten to the number of digits in the tail.
    shift: u64,
    /// The fields with digits, from left to right.
    pub(crate) fields: Vec<TailField>,
}

impl KeyNumbers {
    /// The numbers of the keys of `layout`; `None` if they have other parts than digits and literals, or more than 19 digits.
    pub fn new(layout: &Layout) -> Option<Self> {
        let key = &layout.key;
        let tail_digits = layout.stored.tail.digits();
        let mut parts = Vec::new();
        let (mut fields, mut digits) = (Vec::new(), tail_digits);
        for (at, segment) in key.prefix_segments().iter().enumerate().rev() {
            let own = segment.tail_parts()?;
            if segment.field().is_some() {
                let width = KeyTail { parts: own.clone() }.digits();
                fields.push(TailField {
                    segment: at,
                    shift: 10u64.checked_pow(digits)?,
                    modulus: 10u64.checked_pow(width)?,
                });
                digits += width;
            }
            parts.extend(own.into_iter().rev());
        }
        if digits > MOST_DIGITS || digits == 0 {
            return None;
        }

        parts.reverse();
        fields.reverse();
        fields.extend(key.tail.iter().cloned());
        Some(Self { prefix: KeyTail { parts }, shift: 10u64.checked_pow(tail_digits)?, fields })
    }

    /// Whether all prefixes are alike.
    pub fn is_all_tail(&self) -> bool {
        self.prefix.digits() == 0
    }

    /// The number of the key with this prefix and tail; `None` if that is not a prefix of the layout.
    pub fn number(&self, prefix: &[u8], tail: u64) -> Option<u64> {
        Some(self.prefix.read(prefix)? * self.shift + tail)
    }

    /// Appends the prefix of the key with this number to `out`.
    pub fn write_prefix(&self, number: u64, out: &mut Vec<u8>) {
        self.prefix.write(number / self.shift, out);
    }

    /// The number of the prefix of the key with this number.
    pub fn prefix_number(&self, number: u64) -> u64 {
        number / self.shift
    }

    /// The tail of the key with this number.
    pub fn tail(&self, number: u64) -> u64 {
        number % self.shift
    }
}

impl Layout {
    /// The numbers of its row keys; see [`KeyNumbers::new`].
    pub fn key_numbers(&self) -> Option<KeyNumbers> {
        KeyNumbers::new(self)
    }
}
