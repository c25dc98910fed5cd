//! The bytes of an SST, version 5. All integers are little-endian; `varint` is LEB128.
//!
//! ```text
//! file    header 32 B | stripe | stripe | .. | filter | meta | footer 64 B
//!
//! header  magic 8 | version u32 | zero u32 | uid u128
//! footer  meta offset u64 | file length u64 | meta checksum u64 | uid u128 | footer checksum u64
//!         | version u32 | zero u32 | magic 8              meta ends where the footer begins
//! meta    packed: schema as JSON | metadata pairs | filter kind, length, checksum | stripe table
//!         one stripe: length, head length, head checksum, rows, first key, last key,
//!         timestamp range, and for each group its records, row flags u8 (1: no row has two records of one
//!         qualifier, 2: every row has a record), and the value count and range of each column
//! filter  seed u64 | segment length u32 | segment count length u32 | fingerprints
//!
//! stripe  head | pages                                    rows of a key range, split between rows
//! head    rows varint | keys | group | group | ..         each a varint length and that many bytes
//! keys    prefixes (counted digits, or front-coded) | tails (in patterns, or one by one)
//! group   first page byte varint | mode u8 | qualifier dictionary (dynamic groups)
//!         mode 0, explicit   records of each row | codes stream (dynamic) | timestamps stream (stored)
//!         mode 1, patterns   pattern lengths, codes, timestamp offsets | pattern of each row
//!                            | stream of each row's first timestamp (stored)
//!         mode 2, gaps       as mode 1, with the number of records that each pattern lacks before the lengths, which with
//!                            codes and offsets are those of patterns that lack none; then, of the others, the
//!                            pattern of which they lack records, and these records
//!         one stream for each column | optional sums, then optional outliers
//! sums    for each column: stored u8 | if 1, a stream by row
//! outliers  for each column its greatest, then its least: stored u8
//!         | if 1: bound | count varint | a stream of records | a stream of values
//! stream  codec u8 | nullable u8 | setup block | page count varint | (length varint, checksum u64) a page
//! page    4,096 records of one stream: validity (if the stream has nulls) | the non-null values, dense
//! ```
//!
//! A row pattern is the list of qualifiers of a row's records with their timestamps relative to the first. Meters that
//! report every 15 minutes share one pattern, so that 96 qualifiers and timestamps per row take almost no space.
//!
//! Checksums are xxh3-64. The checksum of a page is seeded with its offset in the stripe and stored in the head; that of a
//! head is seeded with the file's uid and the stripe's offset and stored in meta; that of meta likewise, stored in the
//! footer. So a stripe can be copied into another file without decoding, and misplaced bytes are detected.
//!
//! A meter that missed a reading has the pattern of the others with a gap.
//!
//! Version 4 has no mode 2. Version 3 has no outliers and no row flags in its stripe table. Version 2 has no sums; version 1 has no
//! [`Codec::DecimalScaling`] and no [`Codec::Pfor`]. Otherwise they are equal, so stripes of older files are copied into
//! newer ones unchanged.

use crate::error::ReadError;

/// The first 8 bytes of a file.
pub(crate) const HEADER_MAGIC: [u8; 8] = *b"TIDESST\n";
/// The last 8 bytes of a file.
pub(crate) const FOOTER_MAGIC: [u8; 8] = *b"TSSTEND\n";
/// The format version that new files have. Raised by every change of the format, see `CONTRIBUTING.md`.
pub const VERSION: u32 = 5;
/// The oldest format version that is read; files of all versions since are supported.
pub const OLDEST_VERSION: u32 = 1;
/// The size of the header in bytes.
pub(crate) const HEADER_LEN: usize = 32;
/// The size of the footer in bytes.
pub(crate) const FOOTER_LEN: usize = 64;
/// Records of a page of a stream; the last page of a stream may hold fewer.
pub const PAGE_RECORDS: usize = 4096;
/// The most rows of a stripe, and the most records of a group in it. Readers reject more before allocating.
pub const MAX_RECORDS: usize = 1 << 24;
/// The most bytes of one column's texts, of the keys, or of any other compressed part of a stripe.
pub const MAX_RAW_BYTES: usize = 256 << 20;
/// The most bytes of meta, decompressed. Readers reject more before allocating.
pub(crate) const MAX_META_BYTES: usize = 256 << 20;

/// Group mode: the qualifiers and timestamps of each record are stored one by one.
pub(crate) const MODE_EXPLICIT: u8 = 0;
/// Group mode: each row refers to a row pattern.
pub(crate) const MODE_PATTERNS: u8 = 1;
/// Group mode: as [`MODE_PATTERNS`], and some patterns are others with gaps.
pub(crate) const MODE_GAPS: u8 = 2;

/// The codec of a stream, by its byte in the stream's entry. See `codec::numbers` and `column::values` for setups and pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Codec {
    /// All values are null; there are no pages and no validity.
    Absent = 0,
    /// One value for all records, in the setup.
    Const = 1,
    /// First value and step, in the setup; only without nulls.
    Step = 2,
    /// Pco: chunk meta in the setup, one pco page a page.
    Pco = 3,
    /// Values as they are, little-endian, without gaps between them.
    Raw = 4,
    /// One bit per value, for booleans; least significant bit first.
    Bits = 5,
    /// Sorted dictionary and pco chunk meta of the codes in the setup, one pco page a page.
    Dictionary = 6,
    /// Lengths as varints, then the bytes of all values, compressed together.
    Text = 7,
    /// The values have no content, so validity is all there is.
    Unit = 8,
    /// Scale and pco chunk meta in the setup, one pco page of integers a page.
    DecimalScaling = 9,
    /// Scale and delta order in the setup, PFOR blocks of integers in the pages.
    Pfor = 10,
}

impl Codec {
    /// The codec with this byte, if there is one.
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
            Self::DecimalScaling,
            Self::Pfor,
        ]
        .into_iter()
        .find(|codec| *codec as u8 == byte)
    }

    /// Whether pages store values; otherwise they store validity at most, and without nulls there are no pages.
    pub(crate) fn fills_pages(self) -> bool {
        matches!(
            self,
            Self::Pco | Self::DecimalScaling | Self::Pfor | Self::Raw | Self::Bits | Self::Dictionary | Self::Text
        )
    }

    /// The name that inspections print. It never changes: people compare them.
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
            Self::DecimalScaling => "scaled",
            Self::Pfor => "frames",
        }
    }
}

/// Checks that this build reads files of version `found`.
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
    fn constants_of_version_5_never_change() {
        assert_eq!(HEADER_MAGIC, [0x54, 0x49, 0x44, 0x45, 0x53, 0x53, 0x54, 0x0a]);
        assert_eq!(FOOTER_MAGIC, [0x54, 0x53, 0x53, 0x54, 0x45, 0x4e, 0x44, 0x0a]);
        assert_eq!((VERSION, HEADER_LEN, FOOTER_LEN, PAGE_RECORDS), (5, 32, 64, 4096));
        assert_eq!((MAX_RECORDS, MAX_RAW_BYTES), (16_777_216, 268_435_456));
        assert_eq!((MODE_EXPLICIT, MODE_PATTERNS, MODE_GAPS), (0, 1, 2));
        let codecs: Vec<_> = (0..=10).filter_map(Codec::of).map(Codec::name).collect();
        assert_eq!(
            codecs,
            ["absent", "const", "step", "pco", "raw", "bits", "dictionary", "text", "unit", "scaled", "frames"]
        );
        assert_eq!(Codec::of(11), None);
    }
}
