//! The 64-bit hash under ZetaSketch's sketches, Fingerprint2011.

const A: u64 = 0xa5b8_5c5e_198e_d849;
const B: u64 = 0x8d58_ac26_afe1_2e47;
const C: u64 = 0xc47b_6e9e_3a97_0ed3;
const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;

/// Eight bytes at `at`, little-endian; 0 if out of bounds, which callers avoid.
fn load(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn mix(value: u64) -> u64 {
    value ^ (value >> 47)
}

/// Combines two hashes to one.
fn both(high: u64, low: u64) -> u64 {
    let first = mix((low ^ high).wrapping_mul(MULTIPLIER));
    mix((high ^ first).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER)
}

/// The hash of `bytes`, by one of three functions for their length.
pub(super) fn fingerprint(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    let body = match length {
        0..=32 => short(bytes),
        33..=64 => medium(bytes),
        _ => long(bytes),
    };

    let first = if length >= 8 { load(bytes, 0) } else { A };
    let last = if length >= 9 { load(bytes, length - 8) } else { A };
    let hash = both(body.wrapping_add(last), first);
    // Fingerprint2011 reserves 0 and 1.
    if hash <= 1 { hash.wrapping_sub(2) } else { hash }
}

fn short(bytes: &[u8]) -> u64 {
    let mut hash = A ^ B ^ C ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let whole = bytes.len() & !7;
    for at in (0..whole).step_by(8) {
        let word = mix(load(bytes, at).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
        hash = (hash ^ word).wrapping_mul(MULTIPLIER);
    }
    let rest = bytes.get(whole..).unwrap_or_default();
    if !rest.is_empty() {
        let word = rest.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ word).wrapping_mul(MULTIPLIER);
    }
    mix(mix(hash).wrapping_mul(MULTIPLIER))
}

/// Two sums of four words, as the hash of 33 to 64 bytes needs them.
fn quarter(words: [u64; 4], start: u64) -> (u64, u64) {
    let [one, two, three, four] = words;
    let first = start.wrapping_add(one);
    let mut turned = first.rotate_right(37);
    let rolled = first.wrapping_add(four).rotate_right(52);
    let second = first.wrapping_add(two);
    turned = turned.wrapping_add(second.rotate_right(7));
    let third = second.wrapping_add(three);
    (third.wrapping_add(four), rolled.wrapping_add(third.rotate_right(31)).wrapping_add(turned))
}

fn medium(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    let start = (length as u64).wrapping_add(load(bytes, length - 16)).wrapping_mul(A);
    let front = quarter([load(bytes, 0), load(bytes, 8), load(bytes, 16), load(bytes, 24)], start);
    let end = [load(bytes, length - 32), load(bytes, length - 24), load(bytes, length - 16), load(bytes, length - 8)];
    let back = quarter(end, load(bytes, 16));

    let left = front.0.wrapping_add(back.1).wrapping_mul(C);
    let right = back.0.wrapping_add(front.1).wrapping_mul(A);
    let sum = mix(left.wrapping_add(right));
    mix(sum.wrapping_mul(A).wrapping_add(front.1)).wrapping_mul(C)
}

/// Two sums of the 32 bytes from `at` on.
fn half(bytes: &[u8], at: usize, seed: (u64, u64)) -> (u64, u64) {
    let last = load(bytes, at + 24);
    let first = seed.0.wrapping_add(load(bytes, at));
    let rolled = seed.1.wrapping_add(first).wrapping_add(last).rotate_right(51);
    let sum = first.wrapping_add(load(bytes, at + 8)).wrapping_add(load(bytes, at + 16));
    (sum.wrapping_add(last), rolled.wrapping_add(sum.rotate_right(23)).wrapping_add(first))
}

fn long(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    let size = length as u64;
    // The end comes first, then 64 bytes at a time.
    let mut y = load(bytes, length - 16) ^ B;
    let mut z = load(bytes, length - 56) ^ A;
    let mut v = half(bytes, length - 64, (size, y));
    let mut w = half(bytes, length - 32, (size.wrapping_mul(B), A));
    z = z.wrapping_add(mix(v.1).wrapping_mul(B));
    let mut x = z.wrapping_add(load(bytes, 0)).rotate_right(39).wrapping_mul(B);
    y = y.rotate_right(33).wrapping_mul(B);

    for at in (0..(length - 1) & !63).step_by(64) {
        x = x.wrapping_add(y).wrapping_add(v.0).wrapping_add(load(bytes, at + 16)).rotate_right(37).wrapping_mul(B);
        y = y.wrapping_add(v.1).wrapping_add(load(bytes, at + 48)).rotate_right(42).wrapping_mul(B);
        x ^= w.1;
        y ^= v.0;
        z = (z ^ w.0).rotate_right(33);
        v = half(bytes, at, (v.1.wrapping_mul(B), x.wrapping_add(w.0)));
        w = half(bytes, at + 32, (z.wrapping_add(w.1), y));
        std::mem::swap(&mut x, &mut z);
    }

    let high = both(v.0, w.0).wrapping_add(mix(y).wrapping_mul(B)).wrapping_add(z);
    both(high, both(v.1, w.1).wrapping_add(x))
}
