//! How the numbers of a column are written: separators, signs, and numbers that stand for null.

use crate::number::Exact;
use crate::spec::Thousands;

/// The minus sign of Unicode, which spreadsheets and statistical offices write.
const MINUS: &[u8] = "\u{2212}".as_bytes();

/// How numbers of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notation {
    /// The separator before the fraction: `.` or `,`.
    pub point: u8,
    pub thousands: Option<Thousands>,
    /// Whether U+2212 is read as a minus, too.
    pub unicode_minus: bool,
}

impl Notation {
    /// The number in plain notation: an ASCII sign, no thousands separators. `text` itself where it is plain, or no number.
    #[inline]
    pub fn plain<'a>(&self, text: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
        let has_minus = self.unicode_minus && text.first() == Some(&0xE2);
        if self.thousands.is_none() && !has_minus {
            return text;
        }
        buffer.clear();
        let rest = match text.strip_prefix(MINUS).filter(|_| has_minus) {
            Some(rest) => {
                buffer.push(b'-');
                rest
            }
            None => text,
        };
        let Some(thousands) = self.thousands else {
            buffer.extend_from_slice(rest);
            return buffer;
        };
        if self.ungroup(rest, thousands, buffer).is_some() { buffer } else { text }
    }

    /// Appends the number without separators; `None` if groups do not have three digits.
    fn ungroup(&self, text: &[u8], thousands: Thousands, buffer: &mut Vec<u8>) -> Option<()> {
        let text = std::str::from_utf8(text).ok()?;
        let whole_length = text.find([char::from(self.point), 'e', 'E']).unwrap_or(text.len());
        let (whole, fraction) = text.split_at_checked(whole_length)?;
        let unsigned = whole.strip_prefix(['-', '+']).unwrap_or(whole);
        buffer.extend_from_slice(whole.as_bytes().get(..whole.len() - unsigned.len())?);

        let mut groups = unsigned.split(|letter| thousands.is(letter));
        let first = groups.next()?;
        buffer.extend_from_slice(first.as_bytes());
        let mut is_grouped = false;
        for group in groups {
            if group.len() != 3 || !group.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            buffer.extend_from_slice(group.as_bytes());
            is_grouped = true;
        }

        if is_grouped && (!(1..=3).contains(&first.len()) || first.starts_with('0')) {
            return None;
        }
        buffer.extend_from_slice(fraction.as_bytes());
        Some(())
    }

    /// The exact value of a number; `None` if it is none.
    pub fn exact(&self, text: &[u8]) -> Option<Exact> {
        let mut buffer = Vec::new();
        Exact::parse(self.plain(text, &mut buffer), self.point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, point: u8, thousands: Option<Thousands>) -> String {
        let mut buffer = Vec::new();
        let notation = Notation { point, thousands, unicode_minus: true };
        String::from_utf8(notation.plain(text.as_bytes(), &mut buffer).to_vec()).unwrap()
    }

    #[test]
    fn numbers_become_plain() {
        assert_eq!(plain("1,025.3", b'.', Some(Thousands::Comma)), "1025.3");
        assert_eq!(plain("-1.234.567,25", b',', Some(Thousands::Point)), "-1234567,25");
        assert_eq!(plain("1\u{202F}025,5", b',', Some(Thousands::Blank)), "1025,5");
        assert_eq!(plain("\u{2212}12'345", b'.', Some(Thousands::Apostrophe)), "-12345");
        assert_eq!(plain("1025", b'.', Some(Thousands::Comma)), "1025");
        assert_eq!(plain("\u{2212}6.0", b'.', None), "-6.0");
        for wrong in ["1,02", "1,0255", "12345,678", ",123", "1,,234", "0,350"] {
            assert_eq!(plain(wrong, b'.', Some(Thousands::Comma)), wrong);
        }
    }
}
