use super::pick::{Pick, pick};
use super::{Compacted, CompactionExtent, CompactionReason, Replacement};
use crate::drops::{AppliedDrop, DropTarget};
use crate::version::{Edit, Sst, Version, WindowState};

fn sst(id: &str, order: u64, first: &str, last: &str) -> Sst {
    Sst {
        id: id.to_owned(),
        order,
        level: 0,
        bytes: 1,
        checksum: String::new(),
        rows: 1,
        cells: 1,
        first_key: first.into(),
        last_key: last.into(),
        min_timestamp: None,
        max_timestamp: None,
    }
}

fn dropped(prefix: &str, order: u64) -> AppliedDrop {
    let target = DropTarget::Prefix { prefix: prefix.into() };
    AppliedDrop { target, sequence: 1, order, version: 1, now: 0 }
}

/// A version of one window a day.
fn version(windows: Vec<Vec<Sst>>) -> Version {
    let identity: crate::version::TableIdentity = serde_json::from_value(serde_json::json!({
        "job": "j", "layout": "", "gc": {},
        "spec": { "name": "T", "row_key": "{id}", "window": "day", "granularity": "millis", "unpivot": [], "families": [] },
        "source": { "fields": [], "time": 0 },
    }))
    .unwrap();
    let windows = windows.into_iter().enumerate();
    let windows = windows.map(|(start, ssts)| WindowState { start: start as i64, days: [(0, 1)].into(), ssts });
    Version { number: 1, windows: windows.collect(), ..Version::empty(identity) }
}

#[test]
fn windows_are_picked_from_the_manifest() {
    let mut found = version(vec![
        vec![sst("a", 0, "a", "m")],
        vec![sst("b", 1, "a", "m"), sst("c", 2, "b", "z")],
        vec![sst("d", 3, "a", "m"), sst("e", 3, "n", "z")],
        vec![],
    ]);
    let several = Pick { start: 1, reason: CompactionReason::SeveralSsts, ssts: 0..2 };
    assert_eq!(pick(&found, CompactionExtent::Needed), [several.clone()]);
    // Fresh files could be denser, those of a compaction are.
    found.windows[2].ssts.iter_mut().for_each(|sst| sst.level = 1);
    let fresh = Pick { start: 0, reason: CompactionReason::Fresh, ssts: 0..1 };
    assert_eq!(pick(&found, CompactionExtent::Full), [fresh, several.clone()]);
    // A drop is about SSTs older than it that may hold its keys.
    found.drops = vec![dropped("b", 1), dropped("y", 4)];
    let hidden = |start, count| Pick { start, reason: CompactionReason::HiddenCells, ssts: 0..count };
    assert_eq!(pick(&found, CompactionExtent::Needed), [hidden(0, 1), several.clone(), hidden(2, 2)]);
    found.drops.clear();
    found.table.gc = [("F".to_owned(), "maxversions=1".to_owned())].into();
    assert_eq!(pick(&found, CompactionExtent::Needed), [hidden(0, 1), several, hidden(2, 2)]);
}

#[test]
fn drops_and_files_have_orders_of_their_own() {
    let before = version(vec![vec![sst("a", 0, "a", "m")]]);
    let drop = |prefix: &str| DropTarget::Prefix { prefix: prefix.into() };
    let edit = Edit { drops: vec![drop("a"), drop("b")], base: 1, ..Edit::default() };
    let next = before.apply(&edit, "c", 5).unwrap();
    assert_eq!(
        next.drops.iter().map(|drop| (drop.order, drop.version, drop.now)).collect::<Vec<_>>(),
        [(1, 2, 5), (2, 2, 5)]
    );
    let more = Edit { ssts: [(0, vec![sst("b", 0, "a", "b")])].into(), base: 2, ..Edit::default() };
    let next = next.apply(&more, "d", 6).unwrap();
    assert_eq!(next.windows[0].ssts[1].order, 3);
    // The files of a compaction stay below what was appended, and may share an order where they share no key.
    let put = |first: Sst, second: Sst| {
        let compacted = Compacted {
            replacements: vec![Replacement { window: 0, replaced: vec!["a".to_owned()], ssts: vec![first, second] }],
            ..Compacted::default()
        };
        next.apply(&Edit { compacted: Some(compacted), base: 3, ..Edit::default() }, "e", 7)
    };
    let done = put(sst("x", 2, "a", "c"), sst("y", 2, "d", "m")).unwrap();
    assert_eq!(done.windows[0].ssts.iter().map(|sst| sst.id.as_str()).collect::<Vec<_>>(), ["x", "y", "b"]);
    assert!(put(sst("x", 2, "a", "d"), sst("y", 2, "d", "m")).unwrap_err().contains("share keys"));
    assert!(put(sst("x", 4, "a", "c"), sst("y", 4, "d", "m")).unwrap_err().contains("is newer"));
}

#[test]
fn a_manifest_keeps_drops() {
    let mut found = version(vec![vec![sst("a", 0, "a", "m")]]);
    found.drops = vec![dropped("b", 1)];
    found.drops.push(AppliedDrop {
        target: DropTarget::Column {
            key: b"k\xff".to_vec(),
            family: "F".into(),
            qualifier: vec![],
            times: Some(i64::MIN..5),
        },
        ..dropped("", 2)
    });
    let bytes = crate::manifest::encode(&found).unwrap();
    assert_eq!(crate::manifest::decode(&bytes, 1).unwrap(), found);
    found.drops.reverse();
    assert!(crate::manifest::decode(&crate::manifest::encode(&found).unwrap(), 1).is_err());
}
