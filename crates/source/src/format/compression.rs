//! Compressions that are undone while a file is read.

/// A compression: how it is called, how names of its files end, and how they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compression {
    pub name: &'static str,
    /// The ending of the names of its files, in lower case and with its point.
    pub ending: &'static str,
    /// The first bytes of its files, by which one without the ending is known.
    pub mark: &'static [u8],
    /// The command that writes the content of a file to its standard output.
    pub command: &'static str,
}

impl Compression {
    pub const GZIP: Self = Self { name: "gzip", ending: ".gz", mark: &[0x1F, 0x8B], command: "gzip -dc" };
    pub const ZSTD: Self = Self { name: "zstd", ending: ".zst", mark: &[0x28, 0xB5, 0x2F, 0xFD], command: "zstd -dc" };
    pub const ZIP: Self = Self { name: "zip", ending: ".zip", mark: b"PK\x03\x04", command: "unzip -p" };
    pub const ALL: [Self; 3] = [Self::GZIP, Self::ZSTD, Self::ZIP];

    /// The compression that a name, in lower case, ends with.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|compression| name.ends_with(compression.ending))
    }

    /// The compression of a file that begins with `bytes`.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|compression| bytes.starts_with(compression.mark))
    }
}
