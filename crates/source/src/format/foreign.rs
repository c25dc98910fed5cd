//! Formats that are not read, told by the first bytes of a file.

use std::fmt;

use crate::format::compression::Compression;
use crate::format::{BYTE_ORDER_MARK, Format, conversion, operand};

/// Bytes that [`Foreign::of`] looks at: a tar archive has its mark at byte 257.
pub(crate) const LOOKED_AT: usize = 4096;

/// A format that is not read, or not under the name of a file, with the way to one that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// What people call it, for messages: `bzip2`, `an Excel workbook (.xls)`.
    pub name: &'static str,
    way_on: WayOn,
    /// Whether the stored bytes are so, whatever compression the name of the file promises.
    is_stored: bool,
}

/// How to make a file of it that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WayOn {
    /// A command that writes the text of the file, or of its standard input, to its standard output.
    Command(&'static str),
    /// A command that unpacks files of their own names.
    Unpack(&'static str),
    Say(&'static str),
}

use WayOn::{Command, Say, Unpack};

/// Formats with a mark in their first bytes.
const MARKS: [(&[u8], &str, WayOn); 21] = [
    (b"\xFF\xFE", "UTF-16 text", Command("iconv -f UTF-16 -t UTF-8")),
    (b"\xFE\xFF", "UTF-16 text", Command("iconv -f UTF-16 -t UTF-8")),
    (b"BZh", "bzip2", Command("bzip2 -dc")),
    (b"\xFD7zXZ\0", "xz", Command("xz -dc")),
    (b"\x04\x22\x4D\x18", "lz4", Command("lz4 -dc")),
    (b"\x1F\x9D", "compress (.Z)", Command("gzip -dc")),
    (b"\x1F\x8B", "gzip inside a compressed file", Command("gzip -dc")),
    (b"7z\xBC\xAF\x27\x1C", "7-Zip", Unpack("7z x")),
    (b"Rar!", "RAR", Unpack("unrar x")),
    (b"\xFF\x06\0\0sNaPpY", "snappy", Command("snzip -dc")),
    (b"\xD0\xCF\x11\xE0", "an Excel workbook (.xls)", Say("open it and save it as CSV")),
    (b"%PDF", "PDF", Say("ask for the data as CSV or Parquet")),
    (b"SQLite format 3\0", "an SQLite database", Say("export a table of it: sqlite3 -header -csv FILE \"SELECT ..\"")),
    (b"Obj\x01", "Avro", Say("set `format = \"avro\"`, or name it .avro")),
    (b"SEQ\x06", "a Hadoop SequenceFile", Say("dump the table as Avro or Parquet")),
    (b"ORC", "ORC", Say("convert it to Parquet")),
    (b"ARROW1\0\0", "Arrow IPC", Say("set `format = \"arrow\"`, or name it .arrow")),
    (b"\xFF\xFF\xFF\xFF", "an Arrow IPC stream", Say("set `format = \"arrow\"`, or name it .arrow")),
    (b"FEA1", "Feather, version 1", Say("write it again as version 2, or as Parquet")),
    (b"\x89HDF", "HDF5", Say("export its tables as CSV or Parquet")),
    (b"PAR1", "Parquet", Say("set `format = \"parquet\"`, or name it .parquet")),
];

/// Endings of such formats: their files are opened, so that the message has the format and the way on.
const ENDINGS: [&str; 10] = [".bz2", ".xz", ".lz4", ".z", ".7z", ".tar", ".tgz", ".tar.gz", ".xls", ".xlsx"];

/// Where the mark of a tar archive is.
const TAR_MARK: std::ops::Range<usize> = 257..262;

impl Foreign {
    const fn new(name: &'static str, way_on: WayOn) -> Self {
        Self { name, way_on, is_stored: false }
    }

    /// The same, found in the stored bytes of a file.
    pub(crate) fn as_stored(self) -> Self {
        Self { is_stored: true, ..self }
    }

    /// The same, of a file that was to be a dump of Bigtable.
    pub(crate) fn as_dump(self) -> Self {
        let way_on = match self.name {
            "Avro" => Say("if it is a dump of Bigtable, write `format = \"bigtable-avro\"`"),
            "Parquet" => Say("if it is a dump of Bigtable, write `format = \"bigtable-parquet\"`"),
            _ if self == TEXT => Say("if it is a CSV of cbt, write `format = \"cbt-csv\"`"),
            _ => self.way_on,
        };
        Self { way_on, ..self }
    }

    /// The format of a file that was to be read as text and begins with `bytes`; `None` for text, and for an unknown format.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..LOOKED_AT).unwrap_or(bytes);
        if bytes.get(TAR_MARK) == Some(b"ustar") {
            return Some(Self::new("a tar archive", Unpack("tar -xf")));
        }

        if let Some((_, name, way_on)) = MARKS.iter().find(|(mark, name, _)| {
            // Headers may begin with such letters.
            bytes.starts_with(mark) && (*name != "bzip2" && *name != "ORC" || !is_text(bytes))
        }) {
            return Some(Self::new(name, *way_on));
        }

        if let Some(encoding) = utf16_without_mark(bytes) {
            return Some(Self::new("UTF-16 text", Command(encoding)));
        }
        if bytes.first() == Some(&0) {
            if let Some(name) = length_prefixed(bytes) {
                let way_on = Say("let it write JSON lines: `format: json`, without `compression`");
                return Some(Self::new(name, way_on));
            }
            let way_on = Command("tr -d '\\000'");
            return Some(Self::new("text behind NUL bytes, as a crash of its writer leaves it", way_on));
        }
        markup(bytes)
    }

    /// The format of a file that was to be read as lines of JSON and begins with `bytes`.
    pub(crate) fn instead_of_json(bytes: &[u8]) -> Option<Self> {
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).trim_ascii_start();
        if text.starts_with(b"[") {
            return Some(Self::new("one JSON array", Command("jq -c '.[]'")));
        }
        Self::of(bytes).filter(|foreign| foreign.name != JSON)
    }

    /// The format of a file that was to be read as `wanted`, of blocks, and begins with `bytes`, which are not its mark.
    pub(crate) fn instead_of_blocks(bytes: &[u8], wanted: Format) -> Option<Self> {
        let is_stream = bytes.starts_with(b"\xFF\xFF\xFF\xFF") && wanted == Format::Arrow;
        let known = Self::of(bytes).filter(|_| !is_stream);
        known.or_else(|| (bytes.len() >= 8 && is_text(bytes)).then_some(TEXT))
    }

    /// The format of a file that was to be read as Parquet and begins with `bytes`.
    pub(crate) fn instead_of_parquet(bytes: &[u8]) -> Option<Self> {
        let packed = [Compression::GZIP, Compression::ZSTD].into_iter().find(|known| bytes.starts_with(known.mark));
        if let Some(Compression { name, command, .. }) = packed {
            return Some(Self::new(name, Command(command)));
        }
        let known = Self::of(bytes).filter(|foreign| foreign.name != "Parquet");
        known.or_else(|| (!bytes.is_empty() && is_text(bytes)).then_some(TEXT))
    }

    /// Whether a name ends as files of a format do that is not read.
    pub fn has_ending(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        ENDINGS.iter().any(|ending| name.ends_with(ending))
    }

    /// What to do with the file at `path`.
    pub(crate) fn way_on(&self, path: &str) -> String {
        match self.way_on {
            Command(command) => format!("convert it first: {}", conversion(path, command, !self.is_stored)),
            Unpack(command) => format!("unpack it first: {command} {}", operand(path)),
            Say(text) => text.to_owned(),
        }
    }
}

const JSON: &str = "JSON";
/// Text in a file that was to be Parquet, Arrow or Avro.
const TEXT: Foreign = Foreign::new("text", Say("name it .csv, set `format = \"csv\"`, or write it again"));
/// A workbook of Excel, which is a zip archive.
pub(crate) const WORKBOOK: Foreign =
    Foreign::new("an Excel workbook (.xlsx)", Say("open it and save the sheet as CSV"));

impl fmt::Display for Foreign {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

/// Whether bytes look like UTF-8 text with lines.
fn is_text(bytes: &[u8]) -> bool {
    let is_utf8 = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        // A character may be cut at the end.
        Err(error) => error.error_len().is_none(),
    };
    is_utf8 && bytes.iter().all(|byte| *byte >= b' ' || matches!(byte, b'\n' | b'\r' | b'\t'))
}

/// The command that converts UTF-16 without a byte order mark: every other byte of western text is NUL.
fn utf16_without_mark(bytes: &[u8]) -> Option<&'static str> {
    const FEWEST: usize = 8;
    let pairs = bytes.len() / 2;
    if pairs < FEWEST {
        return None;
    }

    let mut nulls = [0; 2];
    for pair in bytes.chunks(2) {
        for (count, byte) in nulls.iter_mut().zip(pair) {
            *count += usize::from(*byte == 0);
        }
    }
    match nulls.map(|count| count * 10 > pairs * 6) {
        [false, true] => Some("iconv -f UTF-16LE -t UTF-8"),
        [true, false] => Some("iconv -f UTF-16BE -t UTF-8"),
        _ => None,
    }
}

/// What records are called that have their length before them, in four bytes with the largest first.
///
/// So the file exporter of the OpenTelemetry collector writes them with `format: proto` or `compression: zstd`.
fn length_prefixed(bytes: &[u8]) -> Option<&'static str> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length) as usize;
    // Lengths below 16 MiB begin with NUL, as does that of the second record.
    let is_whole = rest.get(length).is_none_or(|next| *next == 0);
    if length < 2 || !is_whole {
        return None;
    }
    match rest {
        // The first field of a batch is a message.
        [0x0A, ..] => {
            Some("protobuf, with a 4-byte length before each record, as OpenTelemetry's file exporter writes it")
        }
        [0x28, 0xB5, 0x2F, 0xFD, ..] | [b'{', ..] => {
            Some("compressed records with a 4-byte length before each, as OpenTelemetry's file exporter writes them")
        }
        _ => None,
    }
}

/// HTML, XML and JSON, which begin as no line of columns does.
fn markup(bytes: &[u8]) -> Option<Foreign> {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).trim_ascii_start();
    let start = String::from_utf8_lossy(text.get(..256).unwrap_or(text)).to_ascii_lowercase();
    let is_html = ["<!doctype html", "<html", "<table", "<head", "<body", "<meta", "<div", "<style"];
    if is_html.iter().any(|tag| start.starts_with(tag)) || start.starts_with("<?xml") && start.contains("<html") {
        let way_on = Say("open it in a spreadsheet and save it as CSV");
        return Some(Foreign::new("HTML, as programs export it under the name of a table", way_on));
    }

    if start.starts_with("<?xml") {
        return Some(Foreign::new("XML", Say("convert it to CSV or Parquet")));
    }

    let inside = start.strip_prefix(['{', '[']).map(str::trim_start);
    let is_json = inside.is_some_and(|rest| rest.starts_with(['"', '{', '[']) && start.contains("\":"));
    is_json.then_some(Foreign::new(JSON, Say("set `format = \"json\"`, or name it .jsonl")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(bytes: &[u8]) -> Option<&'static str> {
        Foreign::of(bytes).map(|foreign| foreign.name)
    }

    #[test]
    fn formats_are_called_by_their_names() {
        let little: Vec<u8> = "time,pump,flow\r\n1,2,3\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "time,pump,flow\r\n1,2,3\r\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let mut tar = vec![0; 512];
        tar[..5].copy_from_slice(b"a.csv");
        tar[257..262].copy_from_slice(b"ustar");
        for (bytes, wanted) in [
            (&little[..], "UTF-16 text"),
            (&big, "UTF-16 text"),
            (b"\xFF\xFEt\0i\0m\0e\0", "UTF-16 text"),
            (b"BZh91AY&SY\x01", "bzip2"),
            (b"\xFD7zXZ\0\0", "xz"),
            (&tar, "a tar archive"),
            (
                b"\n<HTML xmlns:x=\"urn:schemas-microsoft-com:office:excel\">",
                "HTML, as programs export it under the name of a table",
            ),
            (b"<?xml version=\"1.0\"?><Workbook>", "XML"),
            (b"{\"ts\": 1}\n{\"ts\": 2}\n", "JSON"),
            (b"[{\"ts\": 1}]", "JSON"),
            (b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0ts,v\n", "text behind NUL bytes, as a crash of its writer leaves it"),
            (b"PAR1\x15\x04", "Parquet"),
        ] {
            assert_eq!(name(bytes), Some(wanted), "{bytes:?}");
        }
        let message = |body: &[u8]| [&(body.len() as u32).to_be_bytes(), body].concat();
        for body in [&b"\x0A\x05abcde"[..], b"\x28\xB5\x2F\xFD\x24\x05"] {
            let records = [message(body), message(body)].concat();
            assert!(name(&records).is_some_and(|name| name.contains("4-byte length")), "{records:?}");
        }
        let foreign = Foreign::of(&little).unwrap();
        assert_eq!(foreign.way_on("a.csv"), "convert it first: iconv -f UTF-16LE -t UTF-8 a.csv > NEW.csv");
    }

    #[test]
    fn text_is_not_foreign() {
        for text in [
            &b"ts,v\n1,2\n"[..],
            b"BZh,ORC\n1,2\n",
            b"ORC,ts\n1,2\n",
            b"<5,b\n1,2\n",
            b"[m],b\n",
            b"{a},b\n",
            b"",
            b"a",
            b"ts,v\n1,\0\0\0\0\0\0\0\0\0\0\0\0\n",
            "zeit;stärke\n".as_bytes(),
        ] {
            assert_eq!(name(text), None, "{text:?}");
        }
        let instead = |bytes: &[u8]| Foreign::instead_of_parquet(bytes).map(|foreign| foreign.name);
        assert_eq!(instead(b"ts,v\n1,2\n"), Some("text"));
        assert_eq!(instead(b"\x1F\x8B\x08\0"), Some("gzip"));
        assert_eq!(instead(b"PAR1\x15"), None);
    }
}
