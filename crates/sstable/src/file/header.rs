//! The header: the first 32 bytes of a file.

use bytes::Bytes;

use crate::coding::Input;
use crate::error::ReadError;
use crate::format::{HEADER_LEN, HEADER_MAGIC, VERSION, check_version};

/// The bytes of the header of file `uid`.
pub(crate) fn encode(uid: u128) -> [u8; HEADER_LEN] {
    let mut out = [0; HEADER_LEN];
    out[..8].copy_from_slice(&HEADER_MAGIC);
    out[8..12].copy_from_slice(&VERSION.to_le_bytes());
    out[16..].copy_from_slice(&uid.to_le_bytes());
    out
}

/// Decodes the first bytes of a file to its format version and uid.
///
/// # Errors
/// If they are no header of a supported version.
pub(crate) fn decode(bytes: Bytes) -> Result<(u32, u128), ReadError> {
    let mut input = Input::new(bytes, 0, "header");
    if input.take(HEADER_MAGIC.len())? != HEADER_MAGIC[..] {
        return Err(ReadError::NotAnSst { offset: 0 });
    }
    let version = input.u32()?;
    check_version(version)?;
    if input.u32()? != 0 {
        return Err(input.corrupt());
    }
    let uid = input.u128()?;
    input.finish()?;
    Ok((version, uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_corruption() {
        let bytes = encode(0x0123_4567_89ab_cdef);
        let stated = (VERSION, 0x0123_4567_89ab_cdef);
        assert_eq!(decode(Bytes::copy_from_slice(&bytes)).unwrap(), stated);
        for at in 0..16 {
            let mut bytes = bytes;
            bytes[at] ^= 1;
            assert!(!decode(Bytes::copy_from_slice(&bytes)).is_ok_and(|found| found == stated));
        }
    }
}
