//! Units that only wait.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidetable_cluster::{Ballista, Chaos, TlsFiles};
use tidetable_job::Project;
use tidetable_runner::Stop;
use tidetable_runner::units::{CarryError, Unit, UnitCarrier};

use crate::start;

fn project() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tidetable.toml"), "root = \"data\"\n").unwrap();
    dir
}

#[test]
fn each_unit_is_answered_also_under_faults() {
    let dir = project();
    let cluster = start(dir.path());
    let root = Project::find(dir.path()).unwrap().root;
    let units: Vec<Unit> = (0..150).map(|_| Unit::waiting(&root, 1)).collect();
    for chaos in [None, Some(Chaos { probability: 0.2, seed: 7 }), Some(Chaos { probability: 0.4, seed: 8 })] {
        let ballista = Ballista::new(&cluster.address, &TlsFiles::default(), "waiting").unwrap();
        let ballista = chaos.map_or_else(
            || Ballista::new(&cluster.address, &TlsFiles::default(), "waiting").unwrap(),
            |chaos| ballista.with_chaos(chaos),
        );
        let answers: Mutex<BTreeMap<usize, String>> = Mutex::default();
        let take = |unit: usize, answer: tidetable_runner::units::Answer| {
            answers.lock().unwrap().insert(unit, answer.executor);
            true
        };
        ballista.carry(&units, &Stop::default(), &take, &|_| {}).unwrap();
        let answers = answers.into_inner().unwrap();
        assert_eq!(answers.keys().copied().collect::<Vec<_>>(), (0..150).collect::<Vec<_>>(), "{chaos:?}");
        assert!(answers.values().all(|executor| ["one", "two"].contains(&executor.as_str())));
    }
}

#[test]
fn a_stop_and_enough_end_a_call() {
    let dir = project();
    let cluster = start(dir.path());
    let root = Project::find(dir.path()).unwrap().root;
    let ballista = Ballista::new(&cluster.address, &TlsFiles::default(), "stopping").unwrap();
    let long = [Unit::waiting(&root, 600_000)];
    let stop = Stop::default();
    stop.signal().store(2, Ordering::Relaxed);
    let stopped = ballista.carry(&long, &stop, &|_, _| true, &|_| {});
    assert_eq!(stopped, Err(CarryError::Stopped { signal: 2 }));
    // The executors are free again: the long unit was cancelled.
    let units: Vec<Unit> = (0..4).map(|_| Unit::waiting(&root, 1)).collect();
    ballista.carry(&units, &Stop::default(), &|_, _| true, &|_| {}).unwrap();
    ballista.carry(&units, &Stop::default(), &|_, _| false, &|_| {}).unwrap();
    // What hangs ends, too.
    let impatient = Ballista::new(&cluster.address, &TlsFiles::default(), "hanging").unwrap();
    let impatient = impatient.with_timeout(Duration::from_secs(2));
    let hung = impatient.carry(&long, &Stop::default(), &|_, _| true, &|_| {});
    let Err(CarryError::Refused { reason, .. }) = hung else { panic!("{hung:?}") };
    assert!(reason.contains("no executor has answered for 2 s") && reason.contains("`timeout`"), "{reason}");
    ballista.carry(&units, &Stop::default(), &|_, _| true, &|_| {}).unwrap();
    let gone = Ballista::new("ballista://127.0.0.1:1", &TlsFiles::default(), "gone").unwrap();
    let unreachable = gone.carry(&units, &Stop::default(), &|_, _| true, &|_| {});
    assert!(matches!(unreachable, Err(CarryError::Unreachable { .. })), "{unreachable:?}");
}
