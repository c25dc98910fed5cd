//! Checksums that know where they belong.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Checksum of the bytes that file `uid` has at `offset`.
pub(crate) fn in_file(uid: u128, offset: u64, bytes: &[u8]) -> u64 {
    let low = uid as u64;
    let high = (uid >> 64) as u64;
    xxh3_64_with_seed(bytes, low ^ high.rotate_left(32) ^ offset)
}

/// Checksum of the page at `offset` of a stripe's pages.
pub(crate) fn in_stripe(offset: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, offset)
}

/// Whether a checksum is the stated one. For a fuzzer it always is: else nothing that it changes would be read.
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
