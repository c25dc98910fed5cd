//! The golden bytes, counts and estimates were made with ZetaSketch's Python wheel `zetasketch-py` 0.1.3 (precision 15,
//! sparse precision 20), by adding the same values.

use proptest::prelude::*;

use crate::hll::error::SketchError;
use crate::hll::parameters::REGISTERS;
use crate::hll::sketch::{Distinct, Sketch};

fn integers(values: impl IntoIterator<Item = u64>) -> Sketch {
    let mut sketch = Sketch::empty(8);
    values.into_iter().for_each(|value| sketch.add(Distinct::Integer(value)).unwrap());
    sketch
}

fn texts<'a>(values: impl IntoIterator<Item = &'a str>) -> Sketch {
    let mut sketch = Sketch::empty(11);
    values.into_iter().for_each(|value| sketch.add(Distinct::Bytes(value.as_bytes())).unwrap());
    sketch
}

fn written(sketch: Sketch) -> Vec<u8> {
    let mut out = Vec::new();
    sketch.write(&mut out);
    out
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// FNV-1a: long sketches are compared by it.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

const MINUS_ONE: &str = "087010011802200882070b1001180f20143203bdc236";

#[test]
fn the_bytes_are_zetasketch_s() {
    let of = |values: &[u64]| written(integers(values.iter().copied()));
    assert_eq!(of(&[]), hex("0870100018022008820706180f20143200"));
    assert_eq!(of(&[1]), hex("087010011802200882070b1001180f2014320396a32e"));
    assert_eq!(of(&[u64::MAX]), hex(MINUS_ONE));
    assert_eq!(of(&[1, 1, 2]), hex("087010031802200882070e1002180f20143206acfc20eaa60d"));
    let of = |values: &[&str]| written(texts(values.iter().copied()));
    assert_eq!(of(&["foo"]), hex("087010011802200b82070b1001180f20143203cb9734"));
    assert_eq!(of(&["foo", "bar", ""]), hex("087010031802200b8207111003180f20143209abdc07ac9901f4a12b"));
    assert_eq!(of(&[&"x".repeat(40)]), hex("087010011802200b82070b1001180f20143203c5803c"));
    assert_eq!(of(&[&"y".repeat(100)]), hex("087010011802200b82070b1001180f20143203f68e11"));
}

#[test]
fn long_sketches_are_zetasketch_s_too() {
    for (count, estimate, length, hash) in [
        (1000, 1000, 1950, 0x050a_dc86_952a_6fad),
        (10_000, 9992, 13_281, 0xd5cb_0d52_435a_44a4),
        (20_000, 20_002, 22_262, 0x6758_825b_4637_4836),
        (21_000, 20_992, 23_137, 0x61e7_cb0f_52ca_0089),
        (170_000, 169_638, 32_791, 0x213b_8355_0a95_6c2c),
        (300_000, 300_489, 32_791, 0xd456_2a74_6b37_1fbb),
        (1_000_000, 994_892, 32_791, 0x2d1c_c6f5_1da6_518d),
    ] {
        let sketch = integers(0..count);
        let bytes = written(sketch.clone());
        assert_eq!((sketch.estimate(), bytes.len(), fnv(&bytes)), (estimate, length, hash), "{count}");
    }
    // Texts of 1 to 400 bytes go through every branch of the hash.
    for (width, length, hash) in [
        (5, 1004, 0x8156_7261_291a_1f5a),
        (40, 1005, 0xe949_f297_7d7a_5033),
        (70, 997, 0xe231_08da_9a49_ae48),
        (200, 1003, 0x2cc5_d091_5504_1295_u64),
    ] {
        let values: Vec<String> = (0..500).map(|i| format!("{}{i}", "é".repeat(i % width))).collect();
        let bytes = written(texts(values.iter().map(String::as_str)));
        assert_eq!((bytes.len(), fnv(&bytes)), (length, hash), "{width}");
    }
}

#[test]
fn between_the_two_estimators_zetasketch_s_is_near() {
    for (count, estimate) in [
        (25_000, 25_196),
        (30_000, 30_215),
        (40_000, 40_130),
        (60_000, 59_717),
        (80_000, 79_729),
        (100_000, 99_646),
        (130_000, 129_541),
        (160_000, 160_009),
    ] {
        let own = integers(0..count).estimate();
        let off = (own as f64 / f64::from(estimate) - 1.0).abs();
        assert!(off < 0.003, "{count}: {own} and {estimate}");
    }
}

#[test]
fn errors_stay_within_four_standard_errors() {
    let standard = 1.04 / (REGISTERS as f64).sqrt();
    assert!((standard - 0.0057).abs() < 0.0001);
    for seed in 0..10u64 {
        let mut sketch = Sketch::empty(8);
        let mut added = 0u64;
        for size in [10, 100, 1000, 10_000, 30_000, 100_000, 1_000_000] {
            while added < size {
                sketch.add(Distinct::Integer((seed << 32 | added).wrapping_mul(0x9e37_79b9_7f4a_7c15))).unwrap();
                added += 1;
            }
            let estimate = sketch.clone().estimate();
            let off = (estimate as f64 / size as f64 - 1.0).abs();
            assert!(off <= 4.0 * standard, "seed {seed}, {size} values: {estimate}");
            // Two of a thousand values share one of 2^20 indexes with a chance of a half.
            assert!(size > 1000 || estimate.abs_diff(size) <= size / 250, "seed {seed}, {size} values: {estimate}");
        }
    }
}

#[test]
fn one_value_is_written_without_a_sketch() {
    for value in [Distinct::Integer(u64::MAX), Distinct::Bytes(b"foo"), Distinct::Bytes(b"")] {
        let mut bytes = Vec::new();
        value.write_sketch(&mut bytes);
        assert_eq!(bytes, written(Sketch::of(value)));
    }
}

#[test]
fn damaged_sketches_are_errors() {
    let is_damaged = |bytes: &[u8]| matches!(Sketch::read(bytes), Err(SketchError::Damaged { .. }));
    let sound = hex(MINUS_ONE);
    for cut in 0..sound.len() {
        assert!(is_damaged(&sound[..cut]), "cut at {cut}");
    }
    assert!(is_damaged(b"34.18") && is_damaged(&[0xff; 40]));
    let sparse = |data: &str| hex(&format!("087010011802200882070b1001180f20143203{data}"));
    assert!(is_damaged(&sparse("ffffff")), "a varint that does not end");
    assert!(is_damaged(&sparse("ffff7f")), "rank 63");
    assert!(is_damaged(&sparse("e08001")), "an index that should carry its zeros");
    assert!(is_damaged(&sparse("010101")), "three values, not one");
    let dense = written(integers(0..30_000));
    assert!(is_damaged(&dense[..dense.len() - 1]));
    let mut high = dense.clone();
    *high.last_mut().unwrap() = 51;
    assert!(is_damaged(&high));
    let mut other = sound.clone();
    let at = other.windows(2).position(|pair| pair == [0x18, 15]).unwrap();
    other[at + 1] = 14;
    assert_eq!(Sketch::read(&other).unwrap_err(), SketchError::Precision { normal: 14, sparse: 20 });
    let kinds = integers([1]).unite(&written(texts(["1"]))).unwrap_err();
    assert_eq!(kinds, SketchError::Kinds { left: 8, right: 11 });
}

/// Few values, or so many that the sketch is dense.
fn any_values() -> impl Strategy<Value = Vec<u64>> {
    let few = prop::collection::vec(0u64..1000, 0..60);
    prop_oneof![3 => few, 1 => (0u64..50_000, 18_000u64..40_000).prop_map(|(from, many)| (from..from + many).collect())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn unions_are_those_of_the_values(a in any_values(), b in any_values(), c in any_values()) {
        let bytes = |values: &[u64]| written(integers(values.iter().copied()));
        let union = |left: &[u8], right: &[u8]| {
            let mut sketch = Sketch::read(left).unwrap();
            sketch.unite(right).unwrap();
            written(sketch)
        };
        let all: Vec<u64> = a.iter().chain(&b).chain(&c).copied().collect();
        let (of_a, of_b, of_c) = (bytes(&a), bytes(&b), bytes(&c));
        let (ab, bc) = (union(&of_a, &of_b), union(&of_b, &of_c));
        prop_assert_eq!(&ab, &union(&of_b, &of_a));
        prop_assert_eq!(union(&ab, &of_c), union(&of_a, &bc));
        prop_assert_eq!(union(&ab, &of_c), bytes(&all));
        // The values are those of a; only the count of additions tells that they came twice.
        let twice = Sketch::read(&union(&of_a, &of_a)).unwrap();
        let once = Sketch { count: twice.count, ..integers(a.iter().copied()) };
        prop_assert_eq!(written(twice), written(once));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), at in 0usize..22, byte in any::<u8>()) {
        let _ = Sketch::read(&bytes);
        let mut changed = hex(MINUS_ONE);
        changed[at] = byte;
        let _ = Sketch::read(&changed).map(Sketch::estimate);
    }
}
