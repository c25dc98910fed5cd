use proptest::prelude::*;

use super::{Manifest, ManifestDelta, encode_delta, read};
use crate::version::inputs::{InputContent, InputName, OwedWindow};
use crate::version::{DeleteTarget, Tombstone};
use crate::version::{Input, Sst, Version, WindowState};

fn sst(id: u8, seqno: u8) -> Sst {
    Sst {
        id: id.to_string(),
        seqno: seqno.into(),
        level: 0,
        bytes: 1,
        checksum: String::new(),
        rows: 1,
        cells: 1,
        first_key: vec![id],
        last_key: vec![id],
        min_timestamp: None,
        max_timestamp: None,
        multi_window: None,
        bounds: None,
        emptied: false,
    }
}

fn input(path: u8, size: u8) -> Input {
    Input {
        input_seqno: path.into(),
        path: path.to_string(),
        size: size.into(),
        version: String::new(),
        hash: tidetable_source::ContentHash(0),
        read: 0,
        rejected: 0,
        more_lines_rejected: 0,
        reader: tidetable_source::ReaderVersion::CURRENT,
        breaks: vec![size.into()],
        shape: tidetable_source::TextShape { returns: true, width: 3 },
        days: Vec::new(),
        windows: Vec::new(),
        owed: owed(path, size),
    }
}

fn owed(path: u8, rows: u8) -> Vec<OwedWindow> {
    let held = Some(tidetable_source::ContentHash(path.into()));
    let window = OwedWindow { start: path.into(), rows: rows.into(), days: vec![1], held, lost: false };
    (0..rows).map(|_| window.clone()).collect()
}

fn name(path: u8, is_copy: bool) -> InputName {
    let (path_of, Input { input_seqno, path, size, version, hash, .. }) = (path, input(path, 1));
    InputName {
        input_seqno,
        path,
        content: is_copy.then_some(InputContent { size, version, hash }),
        owed: owed(path_of, is_copy.into()),
    }
}

fn dropped(seqno: u8) -> Tombstone {
    let target = DeleteTarget::Prefix { prefix: vec![seqno] };
    Tombstone { target, input_seqno: 1, seqno: seqno.into(), version: 1, now: 0 }
}

/// Any version, valid or not: deltas do not depend on the invariants.
fn any_version(number: u64) -> impl Strategy<Value = Version> {
    let ssts = prop::collection::vec((0u8..6, 0u8..2), 0..6);
    let days = prop::collection::btree_map(0i32..3, 0u64..3, 0..3);
    let windows = prop::collection::btree_map(0i64..4, (ssts, days), 0..4);
    let inputs = prop::collection::btree_map(0u8..6, 0u8..2, 0..6);
    let drops = prop::collection::vec(0u8..3, 0..3);
    let names = prop::collection::btree_map(10u8..16, any::<bool>(), 0..6);
    let rest = (0i64..3, prop::option::of(0i64..3), prop::option::of(0i64..3), any::<bool>());
    (windows, inputs, names, drops, rest).prop_map(move |(windows, inputs, names, drops, rest)| {
        let (now, gc_watermark, vacuum_watermark, named) = rest;
        let identity = crate::version::TableIdentity {
            job: if named { "a" } else { "b" }.to_owned(),
            spec: tidetable_layout::TableSpec::default(),
            source: tidetable_layout::SourceSchema { fields: Vec::new(), time: 0 },
            layout: String::new(),
            gc: [].into(),
        };
        let window = |(start, (ssts, days)): (i64, (Vec<(u8, u8)>, _))| {
            let ssts = ssts.into_iter().map(|(id, seqno)| sst(id, seqno)).collect();
            WindowState { start, days, ssts }
        };
        Version {
            number,
            now,
            gc_watermark,
            vacuum_watermark,
            windows: windows.into_iter().map(window).collect(),
            inputs: inputs.into_iter().map(|(path, size)| input(path, size)).collect(),
            names: names.into_iter().map(|(path, held)| name(path, held)).collect(),
            tombstones: drops.into_iter().map(dropped).collect(),
            ..Version::empty(identity)
        }
    })
}

/// What owes nothing says nothing of it: a manifest reads and is written as before there were owed windows.
#[test]
fn inputs_without_owed_windows_are_as_ever() {
    let past = r#"{"sequence":3,"path":"a.csv","size":9,"version":"v","hash":"00000000000000000000000000000007","read":2,"rejected":1,"days":[5],"windows":[6]}"#;
    let read: Input = serde_json::from_str(past).unwrap();
    assert!(read.owed.is_empty());
    assert_eq!(serde_json::to_string(&read).unwrap(), past);
    let owing = Input { owed: owed(4, 1), ..read };
    let text = serde_json::to_string(&owing).unwrap();
    let hash = "00000000000000000000000000000004";
    assert!(
        text.ends_with(&format!(r#""windows":[6],"owed":[{{"window":4,"rows":1,"days":[1],"held":"{hash}"}}]}}"#)),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<Input>(&text).unwrap(), owing);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_step_leads_from_any_version_to_any_other(before in any_version(4), next in any_version(5)) {
        let delta = ManifestDelta::between(&before, "before", &next);
        let (bytes, checksum) = encode_delta(&delta).unwrap();
        let (read, stated) = read(&bytes, 5).unwrap();
        prop_assert_eq!(stated, checksum);
        prop_assert_eq!(&read, &Manifest::Delta(Box::new(delta)));
        let Manifest::Delta(delta) = read else { return Ok(()) };
        prop_assert_eq!(&delta.apply(before).unwrap(), &next);
    }

    /// A delta applied to another version is refused or gives some version, but never panics.
    #[test]
    fn a_step_upon_another_version_does_no_harm(
        (before, next, other) in (any_version(4), any_version(5), any_version(4))
    ) {
        drop(ManifestDelta::between(&before, "", &next).apply(other));
        let off = Version { number: 7, ..before.clone() };
        prop_assert!(ManifestDelta::between(&before, "", &next).apply(off).is_err());
    }

    #[test]
    fn what_did_not_change_is_not_said(before in any_version(4)) {
        let next = Version { number: 5, ..before.clone() };
        let (bytes, _) = encode_delta(&ManifestDelta::between(&before, "", &next)).unwrap();
        prop_assert!(bytes.len() < 250, "{}", String::from_utf8_lossy(&bytes));
    }
}
