//! Zip archives with one text file, decompressed while it is read.

use std::io::Read;

use bytes::{Buf, Bytes};
use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, ErrorKind, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive};

use crate::error::{ArchiveFault, SourceError};
use crate::format::{Format, WORKBOOK};

/// A file in the archive.
struct Entry {
    name: String,
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    encrypted: bool,
}

/// Opens the text file in the archive `bytes`. Reading to the end verifies its checksum.
pub(crate) fn open(path: &str, bytes: Bytes) -> Result<Box<dyn Read + Send>, SourceError> {
    let failed = |fault| SourceError::Archive { path: path.to_owned(), fault };
    let broken = |error: rawzip::Error| {
        failed(match error.kind() {
            ErrorKind::MissingEndOfCentralDirectory => ArchiveFault::Unfinished,
            _ => ArchiveFault::Broken(error.to_string()),
        })
    };
    let archive = ZipArchive::from_slice(&bytes).map_err(broken)?;
    let files = files(&archive).map_err(broken)?;
    if files.iter().any(|file| file.name.starts_with("xl/")) {
        return Err(SourceError::Foreign { path: path.to_owned(), format: WORKBOOK });
    }
    let entry = choose(files).map_err(failed)?;
    if entry.encrypted {
        return Err(failed(ArchiveFault::Encrypted(entry.name)));
    }
    let found = archive.get_entry(entry.place).map_err(broken)?;
    let (start, end) = found.compressed_data_range();
    let packed = bytes.slice(start as usize..end as usize).reader();
    match entry.method {
        CompressionMethod::DEFLATE => Ok(Box::new(found.verifying_reader(DeflateDecoder::new(packed)))),
        CompressionMethod::STORE => Ok(Box::new(found.verifying_reader(packed))),
        _ => Err(failed(ArchiveFault::Method(entry.name))),
    }
}

fn files(archive: &ZipSliceArchive<&Bytes>) -> Result<Vec<Entry>, rawzip::Error> {
    let mut files = Vec::new();
    let mut entries = archive.entries();
    while let Some(entry) = entries.next_entry()? {
        let name = String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned();
        let hidden = name.starts_with("__MACOSX/") || name.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
        if !entry.is_dir() && !hidden {
            let (place, method, encrypted) =
                (entry.wayfinder(), entry.compression_method(), entry.flags().is_encrypted());
            files.push(Entry { name, place, method, encrypted });
        }
    }
    Ok(files)
}

/// Selects the only file, or the only text file.
fn choose(mut files: Vec<Entry>) -> Result<Entry, ArchiveFault> {
    if files.len() > 1 {
        let is_text = |entry: &Entry| Format::of_name(&entry.name).is_some_and(Format::is_text);
        let texts = files.iter().filter(|entry| is_text(entry)).count();
        if texts == 1 {
            files.retain(is_text);
        }
    }
    match files.len() {
        1 => files.pop().ok_or(ArchiveFault::NotOne(Vec::new())),
        _ => Err(ArchiveFault::NotOne(files.into_iter().map(|entry| entry.name).collect())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
        for (name, text) in files {
            let (mut entry, config) =
                archive.new_file(name).compression_method(CompressionMethod::DEFLATE).start().unwrap();
            let mut writer =
                config.wrap(flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::default()));
            writer.write_all(text).unwrap();
            let (encoder, descriptor) = writer.finish().unwrap();
            encoder.finish().unwrap();
            entry.finish(descriptor).unwrap();
        }
        archive.finish().unwrap();
        bytes
    }

    fn text(bytes: Vec<u8>) -> Result<String, String> {
        let mut text = String::new();
        let mut reader = open("a.zip", bytes.into()).map_err(|error| error.to_string())?;
        reader.read_to_string(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    #[test]
    fn the_one_text_of_an_archive() {
        assert_eq!(text(archive(&[("a.csv", b"x,y\n1,2\n")])).unwrap(), "x,y\n1,2\n");
        assert_eq!(text(archive(&[("readme.md", b"?"), ("in/a.TXT", b"x"), ("__MACOSX/a.csv", b"no")])).unwrap(), "x");
        assert_eq!(text(archive(&[("data", b"x")])).unwrap(), "x");
        let several = text(archive(&[("a.csv", b"x"), ("b.csv", b"y")])).unwrap_err();
        assert!(several.contains("it holds 2 files (a.csv, b.csv)"), "{several}");
        assert!(text(archive(&[])).unwrap_err().contains("no file"));
        assert!(text(b"PK\x03\x04 and no more".to_vec()).unwrap_err().contains("copy it again"));
    }

    #[test]
    fn a_broken_byte_is_an_error() {
        let whole = archive(&[("a.csv", b"x,y\n1,2\n3,4\n5,6\n1,2\n3,4\n")]);
        let good = text(whole.clone()).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            // Bytes for time and creator are arbitrary.
            assert!(text(bytes).map_or(true, |text| text == good), "byte {at}");
        }
        for end in 0..whole.len() {
            assert!(text(whole[..end].to_vec()).is_err(), "{end}");
        }
    }
}
