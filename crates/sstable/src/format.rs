//! The bytes of an SST, version 4. All integers are little-endian; `varint` is LEB128.
//!
//! ```text
//! file    header 32 B | stripe | stripe | .. | filter | meta | footer 64 B
//!
//! header  magic 8 | version u32 | zero u32 | uid u128
//! footer  meta offset u64 | file length u64 | meta checksum u64 | uid u128 | footer checksum u64
//!         | version u32 | zero u32 | magic 8              meta ends where the footer begins
//! meta    packed: schema as JSON | metadata pairs | filter kind, length, checksum | stripe table
//!         one stripe: length, head length, head checksum, rows, first key, last key,
//!         timestamp range, and for each group its records, u8 of what is known of its rows (1: none has two
//!         records of one qualifier, 2: each has a record), and each column's present count and range
//! filter  seed u64 | segment length u32 | segment count length u32 | fingerprints
//!
//! stripe  head | pages                                    rows of a key range, cut between rows
//! head    rows varint | keys | group | group | ..         each a varint length and that many bytes
//! keys    prefixes (counted digits, or front-coded) | tails (in shapes, or one by one)
//! group   first page byte varint | mode u8 | qualifier dictionary (dynamic groups)
//!         mode 0, explicit   records of each row | codes stream (dynamic) | timestamps stream (stored)
//!         mode 1, shapes     shape lengths, codes, timestamp offsets | shape of each row
//!                            | stream of each row's first timestamp (stored)
//!         one stream for each column | nothing, or sums, and after them nothing or extremes
//! sums    for each column: kept u8 | if 1, a stream of rows
//! extremes  for each column its greatest, then its least: kept u8
//!         | if 1: bound | count varint | a stream of records | a stream of values
//! stream  codec u8 | presence u8 | setup block | page count varint | (length varint, checksum u64) a page
//! page    4,096 records of one stream: presence (if the stream has nulls) | the present values, dense
//! ```
//!
//! A shape is what the records of one row look like: their qualifiers, and their timestamps less the first. Meters
//! that report every 15 minutes share one shape, so that 96 qualifiers and timestamps a row cost next to nothing.
//!
//! Checksums are xxh3-64. A page's is seeded with its offset in its stripe and kept in the head; the head's is seeded
//! with the file's uid and the stripe's offset and kept in meta; meta's is seeded so too and kept in the footer. So a
//! stripe can be copied into another file without decoding it, and yet nothing misplaced is ever read.
//!
//! Version 3 has no extremes, and its stripe table tells nothing of rows. Version 2 has no sums; version 1 has no [`Codec::Scaled`] and no [`Codec::Frames`] either. They are the same in all else, so that
//! stripes of older files are copied into newer ones as they are.

use crate::error::ReadError;

/// First bytes of a file.
pub(crate) const HEADER_MAGIC: [u8; 8] = *b"TIDESST\n";
/// Last bytes of a file.
pub(crate) const FOOTER_MAGIC: [u8; 8] = *b"TSSTEND\n";
/// The version this build writes.
pub const VERSION: u32 = 4;
/// The oldest version it reads.
pub const OLDEST_VERSION: u32 = 1;
/// Bytes of the header.
pub(crate) const HEADER_LEN: usize = 32;
/// Bytes of the footer.
pub(crate) const FOOTER_LEN: usize = 64;
/// Records of a page of a stream; the last page of a stream may hold fewer.
pub const PAGE_RECORDS: usize = 4096;
/// Most rows of a stripe, and most records of one group in it. Readers allocate nothing for more.
pub const MAX_RECORDS: usize = 1 << 24;
/// Most bytes of the texts of one column, of the keys or of any other packed part of one stripe.
pub const MAX_RAW_BYTES: usize = 256 << 20;
/// Most bytes of meta, unpacked.
pub(crate) const MAX_META_BYTES: usize = 256 << 20;

/// Group modes.
pub(crate) const MODE_EXPLICIT: u8 = 0;
/// See [`MODE_EXPLICIT`].
pub(crate) const MODE_SHAPES: u8 = 1;

/// How the values of a stream are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Codec {
    /// No value is present: no pages.
    Absent = 0,
    /// One value for all, in the setup.
    Const = 1,
    /// First value and step, in the setup; only where every record has a value.
    Step = 2,
    /// Pco: chunk meta in the setup, one pco page a page.
    Pco = 3,
    /// The values' own bytes.
    Raw = 4,
    /// One bit a value.
    Bits = 5,
    /// Sorted dictionary and pco chunk meta of the codes in the setup, one pco page a page.
    Dictionary = 6,
    /// Lengths, then bytes.
    Text = 7,
    /// Presence is the value.
    Unit = 8,
    /// Scale and pco chunk meta in the setup, one pco page of integers a page.
    Scaled = 9,
    /// Scale and order of differences in the setup, frames of integers in the pages.
    Frames = 10,
}

impl Codec {
    pub(crate) fn of(byte: u8) -> Option<Self> {
        [
            Self::Absent,
            Self::Const,
            Self::Step,
            Self::Pco,
            Self::Raw,
            Self::Bits,
            Self::Dictionary,
            Self::Text,
            Self::Unit,
            Self::Scaled,
            Self::Frames,
        ]
        .into_iter()
        .find(|codec| *codec as u8 == byte)
    }

    /// Whether the pages of such a stream hold values, not presence only.
    pub(crate) fn fills_pages(self) -> bool {
        matches!(self, Self::Pco | Self::Scaled | Self::Frames | Self::Raw | Self::Bits | Self::Dictionary | Self::Text)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Const => "const",
            Self::Step => "step",
            Self::Pco => "pco",
            Self::Raw => "raw",
            Self::Bits => "bits",
            Self::Dictionary => "dictionary",
            Self::Text => "text",
            Self::Unit => "unit",
            Self::Scaled => "scaled",
            Self::Frames => "frames",
        }
    }
}

/// Whether this build reads files of version `found`.
///
/// # Errors
/// [`ReadError::UnsupportedVersion`].
pub(crate) fn check_version(found: u32) -> Result<(), ReadError> {
    if (OLDEST_VERSION..=VERSION).contains(&found) {
        return Ok(());
    }
    Err(ReadError::UnsupportedVersion { found, newest: VERSION })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_version_4_never_change() {
        assert_eq!(HEADER_MAGIC, [0x54, 0x49, 0x44, 0x45, 0x53, 0x53, 0x54, 0x0a]);
        assert_eq!(FOOTER_MAGIC, [0x54, 0x53, 0x53, 0x54, 0x45, 0x4e, 0x44, 0x0a]);
        assert_eq!((VERSION, HEADER_LEN, FOOTER_LEN, PAGE_RECORDS), (4, 32, 64, 4096));
        assert_eq!((MAX_RECORDS, MAX_RAW_BYTES), (16_777_216, 268_435_456));
        assert_eq!((MODE_EXPLICIT, MODE_SHAPES), (0, 1));
        let codecs: Vec<_> = (0..=10).filter_map(Codec::of).map(Codec::name).collect();
        assert_eq!(
            codecs,
            ["absent", "const", "step", "pco", "raw", "bits", "dictionary", "text", "unit", "scaled", "frames"]
        );
        assert_eq!(Codec::of(11), None);
    }
}
