//! The footer: the last 64 bytes of a file, from which a reader finds everything else.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::coding::Input;
use crate::error::{FilePart, ReadError};
use crate::format::{FOOTER_LEN, FOOTER_MAGIC, HEADER_LEN, check_version};
use crate::io::checksum::matches;

/// Where the footer's own checksum is. It covers the rest of the footer.
const CHECKSUM: std::ops::Range<usize> = 40..48;

/// The location and checksum of meta, and the identity of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) meta_offset: u64,
    pub(crate) file_len: u64,
    pub(crate) meta_checksum: u64,
    pub(crate) uid: u128,
    pub(crate) version: u32,
}

impl Footer {
    /// The bytes of the footer.
    pub(crate) fn encode(&self) -> [u8; FOOTER_LEN] {
        let mut out = [0; FOOTER_LEN];
        out[..8].copy_from_slice(&self.meta_offset.to_le_bytes());
        out[8..16].copy_from_slice(&self.file_len.to_le_bytes());
        out[16..24].copy_from_slice(&self.meta_checksum.to_le_bytes());
        out[24..40].copy_from_slice(&self.uid.to_le_bytes());
        out[48..52].copy_from_slice(&self.version.to_le_bytes());
        out[56..].copy_from_slice(&FOOTER_MAGIC);
        let checksum = checksum(&out);
        out[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Decodes the last bytes of a file of `file_len` bytes.
    ///
    /// # Errors
    /// If they are no footer of a supported version, or the footer is that of a file of another length.
    pub(crate) fn decode(bytes: &Bytes, file_len: u64) -> Result<Self, ReadError> {
        let offset = file_len.saturating_sub(FOOTER_LEN as u64);
        if bytes.len() != FOOTER_LEN || !bytes.ends_with(&FOOTER_MAGIC) {
            return Err(ReadError::NotAnSst { offset: file_len.saturating_sub(FOOTER_MAGIC.len() as u64) });
        }

        let mut input = Input::new(bytes.clone(), offset, "footer");
        let (meta_offset, length, meta_checksum) = (input.u64()?, input.u64()?, input.u64()?);
        let uid = input.u128()?;
        let stated = input.u64()?;
        let version = input.u32()?;
        check_version(version)?;

        let whole: [u8; FOOTER_LEN] = bytes.as_ref().try_into().map_err(|_| input.corrupt())?;
        if !matches(checksum(&whole), stated) {
            return Err(ReadError::Checksum { stripe: None, stream: FilePart::Footer, page: 0, offset });
        }

        if length > file_len {
            return Err(ReadError::Truncated { what: "file", offset: 0, wanted: length, length: file_len });
        }
        if length != file_len || !(HEADER_LEN as u64..=offset).contains(&meta_offset) {
            return Err(input.corrupt());
        }
        Ok(Self { meta_offset, file_len, meta_checksum, uid, version })
    }
}

/// The checksum of all bytes of the footer but the checksum's.
fn checksum(footer: &[u8; FOOTER_LEN]) -> u64 {
    let mut covered = [0; FOOTER_LEN - 8];
    covered[..CHECKSUM.start].copy_from_slice(&footer[..CHECKSUM.start]);
    covered[CHECKSUM.start..].copy_from_slice(&footer[CHECKSUM.end..]);
    xxh3_64(&covered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_corruption() {
        let footer = Footer { meta_offset: 1000, file_len: 2000, meta_checksum: 3, uid: 4, version: 2 };
        let bytes = footer.encode();
        assert_eq!(Footer::decode(&Bytes::copy_from_slice(&bytes), 2000).unwrap(), footer);
        assert!(Footer::decode(&Bytes::copy_from_slice(&bytes), 1999).is_err());
        for at in 0..FOOTER_LEN {
            let mut bytes = bytes;
            bytes[at] ^= 0x10;
            assert!(Footer::decode(&Bytes::copy_from_slice(&bytes), 2000).is_err());
        }
    }
}
