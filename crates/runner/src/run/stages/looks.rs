//! Looks into the files of a source while its tables are planned: what one table asks of a file is known to the others.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;

use tidetable_source::{
    ContentHash, Growth, HeldContent, InputFile, PackedContent, SourceError, SourceSpec, Storage, folder_values,
};

/// A path, and the contents that a table holds of it.
type Compared = (String, Vec<HeldContent>);

/// What was learned of the files of one source.
pub(super) struct Looks<'a> {
    storage: &'a Storage,
    source: &'a SourceSpec,
    hashes: RefCell<HashMap<String, ContentHash>>,
    growths: RefCell<HashMap<Compared, Option<Growth>>>,
    packed: RefCell<HashMap<Compared, Option<PackedContent>>>,
    with_rows: RefCell<HashMap<String, bool>>,
}

impl<'a> Looks<'a> {
    pub(super) fn new(storage: &'a Storage, source: &'a SourceSpec) -> Self {
        Self {
            storage,
            source,
            hashes: RefCell::default(),
            growths: RefCell::default(),
            packed: RefCell::default(),
            with_rows: RefCell::default(),
        }
    }

    /// The content hash of a file, see [`Storage::hash`].
    pub(super) fn hash(&self, file: &InputFile) -> Result<ContentHash, SourceError> {
        once(&self.hashes, file.path.clone(), || self.storage.hash(file))
    }

    /// How a file has grown, see [`Storage::growth`].
    pub(super) fn growth(&self, file: &InputFile, held: &[HeldContent]) -> Result<Option<Growth>, SourceError> {
        let compared = (file.path.clone(), held.to_vec());
        once(&self.growths, compared, || self.storage.growth(self.source, file, held))
    }

    /// The content of a packed file, see [`Storage::packed_content`].
    pub(super) fn packed_content(
        &self,
        file: &InputFile,
        held: &[HeldContent],
    ) -> Result<Option<PackedContent>, SourceError> {
        let compared = (file.path.clone(), held.to_vec());
        once(&self.packed, compared, || self.storage.packed_content(file, held))
    }

    /// The values that the folders of a path name, see [`folder_values`].
    pub(super) fn folder_values(&self, path: &str) -> String {
        folder_values(self.source, path)
    }

    /// Whether a file has rows. A file whose rows cannot be read counts as one with rows: loading it tells what is wrong.
    pub(super) fn holds_rows(&self, file: &InputFile) -> Result<bool, SourceError> {
        once(&self.with_rows, file.path.clone(), || match self.storage.holds_rows(self.source, file) {
            Err(error @ (SourceError::Io { .. } | SourceError::Store { .. })) => Err(error),
            Err(_) => Ok(true),
            holds => holds,
        })
    }
}

/// What is known of `asked`, or what `look` finds.
fn once<K: Eq + Hash, V: Copy>(
    known: &RefCell<HashMap<K, V>>,
    asked: K,
    look: impl FnOnce() -> Result<V, SourceError>,
) -> Result<V, SourceError> {
    if let Some(value) = known.borrow().get(&asked) {
        return Ok(*value);
    }

    let value = look()?;
    known.borrow_mut().insert(asked, value);
    Ok(value)
}
