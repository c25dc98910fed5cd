//! A part that is written and that no reader sees yet. It can be settled here, or parked for another process.

use serde::{Deserialize, Serialize};
use tidetable_blobs::Blobs;
use tidetable_store::Store;
use tidetable_store::published::{Part, PartFile};

use crate::error::Result;
use crate::file::writer::WrittenFile;
use crate::part::files::{WrittenPart, part_path};
use crate::part::request::{Outcome, PublishRequest, PublishedPart};
use crate::part::settle::settle;

/// A part that is written and not settled. Dropped, it removes what is under temporary names; files under names of their own
/// stay, and no list names them.
pub struct PartDraft {
    pub(crate) columns: Vec<(String, String)>,
    pub(crate) rows: u64,
    /// Name of the file of a part with one file.
    pub(crate) file_name: String,
    pub(crate) content: DraftContent,
}

impl std::fmt::Debug for PartDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartDraft").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// The files of a draft.
pub(crate) enum DraftContent {
    /// The query returned no row.
    NoRows,
    /// An interrupted run has published these rows without listing them.
    Made(Part),
    /// Files that are written, and that no reader sees yet.
    Files(WrittenPart),
}

/// A draft as it goes to another process. Its files stay, under temporary names, until they are settled or vacuumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkedDraft {
    columns: Vec<(String, String)>,
    rows: u64,
    file_name: String,
    content: ParkedContent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum ParkedContent {
    NoRows,
    Made(Part),
    /// Path, bytes, and xxh3-128 in hexadecimal.
    One(String, u64, String),
    /// The files, and the path of their staging directory; without one they have names of their own in place.
    Several(Vec<PartFile>, Option<String>),
}

impl PartDraft {
    /// Rows of the part.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Makes the files visible, unless the same ones exist already, or withdraws a part without rows. `request` is the one
    /// that the draft was written for; its session is not used.
    ///
    /// # Errors
    /// [`crate::ExportError`]; the published part is the old one or the new one.
    pub fn settle(self, request: &PublishRequest<'_>) -> Result<PublishedPart> {
        let Self { columns, rows, file_name, content } = self;
        let mut published = PublishedPart {
            label: request.label.to_owned(),
            outcome: Outcome::Skipped,
            part: None,
            made_from: request.made_from(),
            columns,
            obsolete: Vec::new(),
        };

        let (part, outcome) = match content {
            DraftContent::NoRows => {
                return Ok(PublishedPart { columns: published.columns, ..request.as_empty().withdraw()? });
            }
            DraftContent::Made(part) => (part, Outcome::Unchanged),
            DraftContent::Files(written) => {
                let Some(settled) = settle(request, written, &file_name)? else { return Ok(published) };
                published.obsolete = settled.obsolete;
                let part = Part { folder: settled.folder, rows, ..Part::default() };
                (part.with_files(&settled.files), settled.outcome)
            }
        };

        published.outcome = outcome;
        published.part = Some(Part {
            query: published.made_from.query.clone(),
            sources: published.made_from.sources.clone(),
            now: request.now,
            run: request.run.to_owned(),
            ..stamped(request.store, part)?
        });
        Ok(published)
    }

    /// Leaves the files to another process, which [takes the draft over](ParkedDraft::take_over).
    ///
    /// # Errors
    /// If a file cannot be made durable.
    pub fn park(self) -> Result<ParkedDraft> {
        let Self { columns, rows, file_name, content } = self;
        let content = match content {
            DraftContent::NoRows | DraftContent::Files(WrittenPart::Nothing) => ParkedContent::NoRows,
            DraftContent::Made(part) => ParkedContent::Made(part),
            DraftContent::Files(WrittenPart::One(WrittenFile { blob, bytes, checksum })) => {
                ParkedContent::One(blob.park()?, bytes, checksum)
            }
            DraftContent::Files(WrittenPart::Several(files, aside)) => {
                ParkedContent::Several(files, aside.map(|aside| aside.park()))
            }
        };
        Ok(ParkedDraft { columns, rows, file_name, content })
    }
}

impl ParkedDraft {
    /// The draft of the part in `folder` that another process parked in the same root.
    ///
    /// # Errors
    /// If its files cannot be taken over.
    pub fn take_over(self, blobs: &dyn Blobs, folder: &str) -> Result<PartDraft> {
        let Self { columns, rows, file_name, content } = self;
        let content = match content {
            ParkedContent::NoRows => DraftContent::NoRows,
            ParkedContent::Made(part) => DraftContent::Made(part),
            ParkedContent::One(path, bytes, checksum) => {
                let blob = blobs.parked(&path, &part_path(folder, &file_name))?;
                DraftContent::Files(WrittenPart::One(WrittenFile { blob, bytes, checksum }))
            }
            ParkedContent::Several(files, aside) => {
                let directory = format!("exports/{folder}");
                let aside = aside.map(|path| blobs.parked_staging(&path, &directory)).transpose()?;
                DraftContent::Files(WrittenPart::Several(files, aside))
            }
        };
        Ok(PartDraft { columns, rows, file_name, content })
    }
}

/// The part with the current stamps of its files.
fn stamped(store: &Store, part: Part) -> Result<Part> {
    let mut files = part.files_at();
    let found = store.blobs().stat_all(&part.paths())?;
    for ((_, file), found) in files.iter_mut().zip(found) {
        file.stamp = found.and_then(|found| found.stamp);
    }

    let files: Vec<_> = files.into_iter().map(|(_, file)| file).collect();
    Ok(part.with_files(&files))
}
