//! Progress of a load, from reading to writing, and cancelling it at any point.

use std::sync::Mutex;

use tidetable_ingest::{Feed, FeedEnd, FeedPiece, FileFeed, Progress};
use tidetable_source::InputFile;
use tidetable_store::{Result, StoreError};

use super::model::{Model, World};
use super::{event, path};

/// A feed that cancels the load after reading.
#[derive(Debug)]
struct Unwanted<'a>(FileFeed<'a>);

impl Feed for Unwanted<'_> {
    fn read(
        &self,
        input: &InputFile,
        cuts: &[u64],
        give: &mut dyn FnMut(FeedPiece, u64) -> bool,
    ) -> Result<Option<FeedEnd>> {
        self.0.read(input, cuts, give)
    }

    fn go_on(&self) -> Result<()> {
        Err(StoreError::Feed { input: "a".to_owned(), source: "ended".into() })
    }
}

/// A table with an input of three days that is not loaded.
fn unloaded() -> World {
    let (world, mut model) = (World::new(true, ""), Model::new(true, ""));
    world.write(&model.load((0..72_i64).map(|hour| event(hour.cast_unsigned() % 5, hour)).collect()));
    world
}

#[test]
fn all_that_is_to_be_read_is_read_and_all_that_is_laid_out_is_written() {
    let world = unloaded();
    let (storage, source, base, plan) = world.to_load();
    let told = Mutex::new(Vec::new());
    let feed = FileFeed { storage: &storage, source: &source };
    world.load_planned(&base, &plan, &feed, &|progress| told.lock().unwrap().push(progress)).unwrap();
    let told = told.into_inner().unwrap();
    let sum = |of: fn(&Progress) -> u64| told.iter().map(of).sum::<u64>();
    let to_read = sum(|progress| if let Progress::ToRead { bytes } = progress { *bytes } else { 0 });
    let read = sum(|progress| if let Progress::Read { bytes, .. } = progress { *bytes } else { 0 });
    let rows = sum(|progress| if let Progress::Read { rows, .. } = progress { *rows } else { 0 });
    let laid = sum(|progress| if let Progress::Encoded { rows } = progress { *rows } else { 0 });
    let written = sum(|progress| if let Progress::Wrote { rows } = progress { *rows } else { 0 });
    assert_eq!((to_read, rows, laid, written), (read, 72, 72, 72));
    assert!(read > 0 && matches!(told.first(), Some(Progress::ToRead { .. })), "{told:?}");
}

#[test]
fn a_load_that_is_ended_while_it_writes_leaves_nothing() {
    let world = unloaded();
    let (storage, source, base, plan) = world.to_load();
    let feed = Unwanted(FileFeed { storage: &storage, source: &source });
    let error = world.load_planned(&base, &plan, &feed, &|_| {}).unwrap_err();
    assert!(matches!(error, StoreError::Feed { .. }), "{error}");
    let left = std::fs::read_dir(path(&world, "tables/T/sst")).into_iter().flatten().count();
    assert_eq!(left, 0);
}
