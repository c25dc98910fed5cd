//! Checksums of parts of a file: xxh3-64, seeded with where the bytes belong, so that bytes in another place do not match.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The checksum of `bytes` if they lie at `offset` of file `uid`: of heads, filter and meta.
pub(crate) fn in_file(uid: u128, offset: u64, bytes: &[u8]) -> u64 {
    let low = uid as u64;
    let high = (uid >> 64) as u64;
    xxh3_64_with_seed(bytes, low ^ high.rotate_left(32) ^ offset)
}

/// The checksum of a page at `offset` of its stripe's pages. It does not depend on the file, so stripes can be copied.
pub(crate) fn in_stripe(offset: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, offset)
}

/// Whether a computed checksum is the stated one. Under a fuzzer always, or nothing that it mutates would be read.
pub(crate) fn matches(found: u64, stated: u64) -> bool {
    cfg!(fuzzing) || found == stated || crate::failpoint!(IgnoreChecksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depends_on_file_and_place() {
        assert_ne!(in_file(1, 0, b"x"), in_file(2, 0, b"x"));
        assert_ne!(in_file(1, 0, b"x"), in_file(1, 8, b"x"));
        assert_ne!(in_stripe(0, b"x"), in_stripe(8, b"x"));
        assert_eq!(in_stripe(0, b"tide"), xxh3_64_with_seed(b"tide", 0));
    }
}
