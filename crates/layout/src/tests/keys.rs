use std::sync::Arc;

use proptest::prelude::*;

use crate::block::Keys;
use crate::plan::Layout;
use crate::schema::{FieldType, KeyTail, TailPart};
use crate::time::MINUTE;

use super::reference_loader::{batch, floats, key_of, meters, source, table, times, uints};

fn tail() -> Arc<KeyTail> {
    let parts = vec![TailPart::Digits(4), TailPart::Literal("-W".into()), TailPart::Digits(2)];
    Arc::new(KeyTail { parts })
}

#[test]
fn a_tail_is_written_and_read() {
    let tail = tail();
    assert_eq!((tail.digits(), tail.width()), (6, 8));
    let mut out = b"key#".to_vec();
    tail.write(202_109, &mut out);
    assert_eq!(out, b"key#2021-W09");
    assert_eq!(tail.read(b"2021-W09"), Some(202_109));
    for bad in [b"2021-W0".as_slice(), b"2021-W0x", b"2021_W09", b"2021-W090", b""] {
        assert_eq!(tail.read(bad), None);
    }
    let nothing = KeyTail::default();
    assert_eq!((nothing.digits(), nothing.width(), nothing.read(b"")), (0, 0, Some(0)));
    let wide = KeyTail { parts: vec![TailPart::Digits(19)] };
    assert_eq!(wide.read(b"9223372036854775807"), Some(9_223_372_036_854_775_807));
}

#[test]
fn keys_share_prefixes_and_are_found() {
    let mut keys = Keys::new(tail());
    for (prefix, tail) in [("a#", 202_101), ("a#", 202_109), ("b#", 202_101)] {
        keys.push(prefix.as_bytes(), tail);
    }
    assert_eq!((keys.len(), keys.prefix_count(), keys.prefix_of()), (3, 2, [0, 0, 1].as_slice()));
    assert_eq!(keys.get(1), b"a#2021-W09");
    assert_eq!(keys.parts(2), (b"b#".as_slice(), 202_101));
    for (bytes, row) in [("", 0), ("a#2021-W01", 0), ("a#2021-W02", 1), ("a#3", 2), ("b#2021-W01", 2), ("c", 3)] {
        assert_eq!(keys.lower_bound(bytes.as_bytes()), row, "{bytes}");
    }
    let slice = keys.slice(1..3);
    assert_eq!((slice.len(), slice.get(0), slice.get(1)), (2, keys.get(1), keys.get(2)));
    let mut whole = Keys::new(Arc::default());
    whole.push(b"k", 7);
    assert!(whole.tails().is_empty());
    assert_eq!(whole.get(0), b"k");
}

#[test]
fn keys_of_digits_are_numbers_that_sort_as_they_do() {
    let numbers = |row_key: &str| {
        let fields = [("meter", FieldType::UInt64), ("site", FieldType::Text), ("ts", FieldType::Timestamp)];
        let spec = table(row_key, &[("f", &[("site", "{site}"), ("meter", "{meter}"), ("ts", "{ts}")])]);
        Layout::compile(&spec, &source(&fields, "ts")).unwrap().key_numbers()
    };
    let days = numbers("M{meter:010}#{ts:%Y%m%d}").unwrap();
    assert!(!days.is_all_tail());
    assert_eq!(days.number(b"M0000000042#", 20_180_105), Some(4_220_180_105));
    assert_eq!((days.prefix_number(4_220_180_105), days.tail(4_220_180_105)), (42, 20_180_105));
    let mut prefix = Vec::new();
    days.write_prefix(4_220_180_105, &mut prefix);
    assert_eq!(prefix, b"M0000000042#");
    assert_eq!(days.number(b"M42#", 20_180_105), None);

    assert!(numbers("{ts:%Y%m%d%H%M}#{meter:06}").unwrap().is_all_tail());
    for other in ["{site}#{ts:%Y%m%d}", "{meter}#{ts:%Y%m%d}", "{meter:012}#{ts:%Y%m%d}"] {
        assert!(numbers(other).is_none(), "{other}");
    }
}

proptest! {
    #[test]
    fn keys_compare_as_their_bytes_do(
        mut rows in prop::collection::btree_set(("[a-c!#~]{0,3}", 0u64..=999_999), 1..40)
    ) {
        // `|` ends every prefix, so none starts another.
        let mut sorted: Vec<(String, u64)> = std::mem::take(&mut rows).into_iter().map(|(p, t)| (format!("{p}|"), t)).collect();
        let bytes = |(prefix, tail): &(String, u64)| {
            let mut key = prefix.as_bytes().to_vec();
            super::keys::tail().write(*tail, &mut key);
            key
        };
        sorted.sort_by_key(bytes);
        let mut keys = Keys::new(tail());
        sorted.iter().for_each(|(prefix, tail)| keys.push(prefix.as_bytes(), *tail));
        for (left, row) in sorted.iter().enumerate() {
            prop_assert_eq!(&keys.get(left), &bytes(row));
            prop_assert_eq!(keys.lower_bound(&keys.get(left)), left);
            for right in 0..keys.len() {
                prop_assert_eq!(keys.compare(left, &keys, right), keys.get(left).cmp(&keys.get(right)));
            }
        }
    }

    #[test]
    fn padded_numbers_and_times_sort_by_value(
        left in (0u64..10_000_000_000, 0i64..4_000_000), right in (0u64..10_000_000_000, 0i64..4_000_000)
    ) {
        let (spec, source) = meters();
        let layout = Layout::compile(&spec, &source).unwrap();
        let mut encoder = layout.encoder();
        let batch = batch(
            &source,
            vec![uints(&[left.0, right.0]), times(&[left.1 * MINUTE, right.1 * MINUTE]), floats(&[Some(1.0); 2])],
        );
        let laid = encoder.encode(&batch).unwrap();
        let (first, second) = (key_of(&layout, &encoder, &laid, 0), key_of(&layout, &encoder, &laid, 1));
        prop_assert_eq!(first.cmp(&second), (left.0, left.1 / 1440).cmp(&(right.0, right.1 / 1440)));
    }
}
