//! Buckets: random steps against the model, and commits over a connection that loses replies.

use std::io::Write;
use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, parse_url_opts};
use tidetable_blobs::BlobError;
use tidetable_blobs::Blobs;
use tidetable_blobs::BucketBlobs;
use tidetable_store::StoreError;
use tokio::runtime::{Builder, Handle};

use super::replies::{self, retried};
use super::{Figures, each_seed};
use crate::cells::same;
use crate::finding::{Finding, Result};
use crate::random::Random;
use crate::sim::FaultyBucket;
use crate::step::{Kind, Script};
use crate::world::{World, offer, tell};

/// Makes `commits` commits, and a tenth as many random steps, in each of `seeds` prefixes of the bucket `url`, or of
/// one in memory. The environment has the credentials.
///
/// # Errors
/// The first difference, or an error of the bucket.
pub fn prove(first: u64, seeds: u64, commits: u64, url: Option<&str>) -> Result<Figures> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let handle = runtime.handle().clone();
    let store = bucket(url, &handle)?;
    each_seed(first, seeds, |seed| {
        let (store, prefix) = (Arc::clone(&store.0), store.1.clone().join(format!("prove-{seed}")));
        let place = |part: &str, store: &Arc<dyn ObjectStore>| -> Arc<dyn Blobs> {
            Arc::new(BucketBlobs::new(Arc::clone(store), prefix.clone().join(part), handle.clone(), part.to_owned()))
        };
        contract(place("contract", &store).as_ref())?;

        let mut random = Random::new(seed);
        let kind = Kind::any(&mut random);
        let faulty = FaultyBucket::new(Arc::clone(&store), Random::new(random.number()), 2 + random.below(6));
        let faulty: Arc<dyn ObjectStore> = Arc::new(faulty);
        let mut figures = steps(place("steps", &faulty), kind, random.number(), commits / 10)?;
        let (flaky, sound) = (place("commits", &faulty), place("commits", &store));
        figures.add(&replies::line(&mut random, kind, flaky, &sound, seed, commits)?);
        Ok(figures)
    })
}

/// The bucket of a URL and the prefix in it, or a bucket in memory.
fn bucket(url: Option<&str>, handle: &Handle) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let Some(url) = url else { return Ok((Arc::new(InMemory::new()), Path::default())) };
    let environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let inside = handle.enter();
    let parsed = parse_url_opts(&url.parse().map_err(|_| Finding::new(format!("invalid URL {url}")))?, environment);
    drop(inside);
    let (store, prefix) = parsed.map_err(|error| Finding::new(format!("{url}: {error}")))?;
    Ok((Arc::from(store), prefix))
}

/// A finding unless a part of the contract is kept.
fn hold(sound: bool, what: &str) -> Result<()> {
    if sound { Ok(()) } else { Err(Finding::new(what.to_owned())) }
}

/// The contract of [`Blobs`], call by call: names are taken once, and what was written is read.
pub(super) fn contract(blobs: &dyn Blobs) -> Result<()> {
    for path in blobs.list("a")? {
        blobs.delete(&format!("a/{path}"))?;
    }
    blobs.delete("a/b/1.json")?;
    hold(blobs.read("a/none")?.is_none() && blobs.open("a/none").is_err(), "a missing file is read")?;
    hold(blobs.create_new("a/b/1.json", b"one")?, "a free name is taken")?;
    hold(!blobs.create_new("a/b/1.json", b"two")?, "a name is created twice")?;
    hold(blobs.read("a/b/1.json")?.as_deref() == Some(b"one"), "wrong content is read")?;
    hold(blobs.list("a")? == ["b"] && blobs.list("a/b")? == ["1.json"], "a wrong listing")?;

    blobs.delete("a/large")?;
    // In several parts.
    let piece: Vec<u8> = (0..1_000_003_u32).flat_map(|number| number.to_le_bytes()).collect();
    for taken in [false, true] {
        let mut writer = blobs.writer("a/large")?;
        for _ in 0..5 {
            writer.write_all(&piece)?;
        }
        if !taken {
            hold(blobs.read("a/large")?.is_none(), "an unfinished file is read")?;
        }
        match writer.finish() {
            Ok(()) => hold(!taken, "an existing file is replaced")?,
            Err(BlobError::Exists { .. }) => hold(taken, "a free name is refused")?,
            Err(error) => return Err(error.into()),
        }
    }

    let file = blobs.open("a/large")?;
    let start = piece.len() as u64 * 3 + 40;
    let read = file.read_at(start, 4096)?;
    hold(file.len() == piece.len() as u64 * 5 && read == piece[40..40 + 4096], "a wrong range of a file is read")?;
    hold(file.read_at(file.len() - 1, 2).is_err(), "bytes beyond the end are read")?;
    blobs.replace("a/large", b"small")?;
    hold(blobs.read("a/large")?.as_deref() == Some(b"small"), "old bytes are read after a replace")?;
    let mut writer = blobs.overwrite_writer("a/large")?;
    writer.write_all(b"again")?;
    writer.finish()?;
    hold(blobs.read("a/large")?.as_deref() == Some(b"again"), "old bytes are read after a replace")?;

    // Written under another name, in several parts, over a file that exists.
    let mut writer = blobs.writer("a/.large")?;
    for _ in 0..5 {
        writer.write_all(&piece)?;
    }
    writer.finish_as("a/large")?;
    hold(blobs.open("a/large")?.len() == piece.len() as u64 * 5, "a file that was renamed is not the new one")?;
    blobs.delete("a/large")?;
    blobs.delete("a/large")?;

    blobs.replace("a/b/1.json", b"one")?;
    let Some((_, Some(first))) = blobs.read_tagged("a/b/1.json")? else { return Err(Finding::new("no tag is read")) };
    let second = blobs.replace_if("a/b/1.json", b"two", &first)?;
    let Some(second) = second else { return Err(Finding::new("an unchanged file is not replaced")) };
    hold(blobs.replace_if("a/b/1.json", b"three", &first)?.is_none(), "a changed file is replaced")?;
    hold(blobs.replace_if("a/b/1.json", b"three", &second)?.is_some(), "the tag of a replacement is not its own")?;
    hold(blobs.read("a/b/1.json")?.as_deref() == Some(b"three"), "old bytes are read after a replacement")?;
    Ok(())
}

/// Random steps over an unreliable connection, each retried until it succeeds.
pub(super) fn steps(blobs: Arc<dyn Blobs>, kind: Kind, seed: u64, steps: u64) -> Result<Figures> {
    let world = World::new(blobs, kind, seed)?;
    let mut model = World::model(kind)?;
    let mut script = Script::new(kind, Random::new(seed), 12);
    for _ in 0..steps {
        let step = script.next(model.inputs().len());
        offer(&mut model, &step);

        let before = retried(|| world.table().latest_number())?;
        let mut tries = 0;
        let done = loop {
            match world.act(&step, model.inputs(), model.now()) {
                Ok(done) => break done,
                Err(Finding::Store(StoreError::Blob(BlobError::Io { .. }) | StoreError::Write { .. }))
                    if tries < 100 =>
                {
                    tries += 1
                }
                Err(finding) => return Err(finding.at(format_args!("{} after {tries} errors", step.name()))),
            }
        };

        // A try that returned an error may have succeeded.
        let after = retried(|| world.table().latest_number())?;
        let done = if after > before { crate::world::Done::Committed(after) } else { done };
        let now = retried(|| world.snapshot())?.map_or(model.now(), |snapshot| snapshot.version().now);
        tell(&mut model, &step, done, now);
        same(step.name(), &retried(|| world.cells())?, model.cells())?;
    }
    Ok(Figures(vec![("steps", steps)]))
}
