//! Lost replies: commits of several writers over a connection that loses replies.
//!
//! Each writer has a base version that may be old, an input and a file to commit, and retries after errors until it
//! succeeds. In the end each input must be there once, in one version, with its file.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidetable_blobs::BlobError;
use tidetable_blobs::Blobs;
use tidetable_source::{ContentHash, ReaderVersion, TextShape};
use tidetable_store::{Ids, Input, Sst, Store, StoreError, Table, Version, VersionEdit, ulid_text};

use super::{Figures, each_seed};
use crate::event::{DAY, START};
use crate::finding::{Finding, Result};
use crate::random::{Names, Random};
use crate::sim::{Flaky, Shelf};
use crate::step::Kind;
use crate::world::World;

/// Tries after which a writer must have succeeded.
const TRIES: usize = 1000;
/// Name of the table of every [`World`], which has one.
pub(super) const TABLE: &str = "T";
/// Newest versions from which the base of a commit is chosen.
const HELD: usize = 4;

/// Makes `commits` commits to a table per seed.
///
/// # Errors
/// A commit that does not exist exactly once.
pub fn prove(first: u64, seeds: u64, commits: u64) -> Result<Figures> {
    each_seed(first, seeds, |seed| one(seed, commits))
}

fn one(seed: u64, commits: u64) -> Result<Figures> {
    let mut random = Random::new(seed);
    let kind = Kind::any(&mut random);
    let shelf = Shelf::default();
    let one_in = 1 + random.below(6);
    let flaky = Flaky::new(shelf.clone(), Random::new(random.number()), 1 + one_in);
    line(&mut random, kind, Arc::new(flaky), &(Arc::new(shelf) as Arc<dyn Blobs>), seed, commits)
}

/// Makes `commits` commits over the unreliable connection `flaky` to `blobs`, and checks them.
pub(super) fn line(
    random: &mut Random,
    kind: Kind,
    flaky: Arc<dyn Blobs>,
    blobs: &Arc<dyn Blobs>,
    seed: u64,
    commits: u64,
) -> Result<Figures> {
    let writer = Writer { run: seed, first: 0, commits };
    let (figures, acknowledged) = writer.commit_all(random, kind, flaky, blobs.as_ref())?;
    check(&Store::new(Arc::clone(blobs)).table(TABLE), &acknowledged).map(|()| figures)
}

/// The version that each input was acknowledged in.
pub(super) type Acknowledged = BTreeMap<String, u64>;

/// A writer with inputs of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writer {
    /// Makes its ids unique among the writers of a table.
    pub run: u64,
    /// Number of its first input; inputs of different writers have different numbers.
    pub first: u64,
    /// How many commits it makes, of an input each.
    pub commits: u64,
}

impl Writer {
    /// Makes its commits over the unreliable connection `flaky`; their files go to `blobs`, where nothing is lost.
    ///
    /// # Errors
    /// If one never succeeds.
    pub fn commit_all(
        self,
        random: &mut Random,
        kind: Kind,
        flaky: Arc<dyn Blobs>,
        blobs: &dyn Blobs,
    ) -> Result<(Figures, Acknowledged)> {
        let world = World::new(flaky, kind, self.run)?;
        let (table, ids) = (world.table().clone(), Names::new(!self.run));
        let mut held = vec![retried(|| world.prepared(&crate::event::Inputs::default()))?.0];
        let mut figures = Figures::default();
        let mut acknowledged = Acknowledged::new();

        for number in self.first..self.first + self.commits {
            let Some(base) = held.get(random.place(held.len())).cloned() else { break };
            let edit = edit(&table, blobs, &base, number, &ids)?;
            let (version, errors) = commit(&table, &base, &edit, &ids)?;
            figures.add(&Figures(vec![("commits", 1), ("errors", errors)]));
            acknowledged.insert(edit.inputs.iter().map(|input| input.path.clone()).collect(), version.number);
            held.push(version);
            if held.len() > HELD {
                held.remove(0);
            }
        }
        Ok((figures, acknowledged))
    }
}

/// Repeats what may fail for the connection, until it succeeds.
pub(super) fn retried<T, E: Into<Finding>>(act: impl Fn() -> std::result::Result<T, E>) -> Result<T> {
    for _ in 0..TRIES {
        match act().map_err(Into::into) {
            Err(Finding::Store(StoreError::Blob(BlobError::Io { .. }))) => {}
            done => return done,
        }
    }
    Err(Finding::new(format!("no answer in {TRIES} tries")))
}

/// An edit of `base` with a new input and SST.
fn edit(table: &Table, blobs: &dyn Blobs, base: &Version, number: u64, ids: &Names) -> Result<VersionEdit> {
    let id = ulid_text(ids.next());
    retried(|| blobs.replace(&table.sst_path(&id), &number.to_le_bytes()))?;
    let (window, day) = (START, (START / DAY) as i32);
    let input = Input {
        input_seqno: base.inputs.iter().map(|input| input.input_seqno).max().unwrap_or(0) + 1,
        path: format!("input-{number:06}"),
        size: 0,
        version: "1".to_owned(),
        hash: ContentHash(u128::from(number) + 1),
        read: 1,
        rejected: 0,
        more_lines_rejected: 0,
        reader: ReaderVersion::CURRENT,
        breaks: Vec::new(),
        shape: TextShape::default(),
        days: vec![day],
        windows: vec![window],
        owed: Vec::new(),
    };

    let sst = Sst {
        id,
        seqno: 0,
        level: 0,
        bytes: 8,
        checksum: String::new(),
        rows: 1,
        cells: 1,
        first_key: b"k".to_vec(),
        last_key: b"k".to_vec(),
        min_timestamp: None,
        max_timestamp: None,
        multi_window: None,
        bounds: None,
        emptied: false,
    };

    Ok(VersionEdit {
        inputs: vec![input],
        ssts: [(window, vec![sst])].into(),
        days: [(window, [day].into())].into(),
        base: base.number,
        ..VersionEdit::default()
    })
}

/// Commits until it succeeds; also returns the number of errors.
fn commit(table: &Table, base: &Version, edit: &VersionEdit, ids: &Names) -> Result<(Version, u64)> {
    let mut errors = 0;
    for _ in 0..TRIES {
        match table.commit(base.clone(), edit, ids, START) {
            Ok(version) => return Ok((version, errors)),
            Err(StoreError::Blob(BlobError::Io { .. })) => errors += 1,
            Err(error) => return Err(Finding::from(error).at(format_args!("after {errors} lost answers"))),
        }
    }
    Err(Finding::new(format!("no answer in {TRIES} tries")))
}

/// Checks that every input exists once, came with the acknowledged version, and has its file.
pub(super) fn check(table: &Table, acknowledged: &Acknowledged) -> Result<()> {
    let latest = table.latest()?.ok_or_else(|| Finding::new("there is no version"))?;
    if latest.number != acknowledged.len() as u64 {
        return Err(Finding::new(format!("{} commits made {} versions", acknowledged.len(), latest.number)));
    }

    for sst in latest.ssts() {
        if table.blobs().read(&table.sst_path(&sst.id))?.is_none() {
            return Err(Finding::new(format!("SST {} of version {} is gone", sst.id, latest.number)));
        }
    }
    let ssts = latest.ssts().count();
    if ssts != acknowledged.len() || latest.inputs.len() != acknowledged.len() {
        let inputs = latest.inputs.len();
        return Err(Finding::new(format!("{} commits left {inputs} inputs and {ssts} files", acknowledged.len())));
    }

    let mut before: Vec<String> = Vec::new();
    for number in 1..=latest.number {
        let version = table.version(number)?;
        let new: Vec<&Input> = version.inputs.iter().filter(|input| !before.contains(&input.path)).collect();
        match new.as_slice() {
            [one] if acknowledged.get(&one.path) == Some(&number) => before.push(one.path.clone()),
            several => {
                return Err(Finding::new(format!("version {number} brought {} inputs, or another one", several.len())));
            }
        }
    }
    Ok(())
}
