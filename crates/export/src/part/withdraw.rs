//! Withdraws parts without rows: their files are removed.

use std::collections::HashSet;

use tidetable_store::Store;
use tidetable_store::published::{MadeFrom, Part, Published};

use crate::error::Result;
use crate::part::files::{part_path, take_place};
use crate::part::request::{Outcome, PublishedPart};
use crate::part::settle::part_names;

/// A part without rows.
#[derive(Debug)]
pub struct EmptyPart<'a> {
    /// The store whose `exports/` has the part.
    pub store: &'a Store,
    /// Name of the export.
    pub export: &'a str,
    /// Label of the part.
    pub label: &'a str,
    /// What it was made from, with the directory that it would have.
    pub made_from: MadeFrom,
    /// The part as listed before.
    pub previous: Option<&'a Part>,
    /// Whether old files stay for readers of older snapshots.
    pub keep_old: bool,
}

impl EmptyPart<'_> {
    /// Removes the files, atomically if the store can; in a bucket they become obsolete. [`record`](crate::record) then lists the part
    /// as empty: if a run is interrupted in between, the list names missing files, and the next run
    /// withdraws the part again.
    ///
    /// # Errors
    /// If a list cannot be read or a file cannot be removed.
    pub fn withdraw(self) -> Result<PublishedPart> {
        let mut withdrawn = self.previous.is_some();
        let mut obsolete = Vec::new();
        if !self.store.blobs().capabilities().renames {
            // The list is the switch.
            obsolete.extend(self.previous.filter(|_| !self.keep_old).map(Part::paths).unwrap_or_default());
        } else if !self.keep_old {
            let mut folders = vec![self.made_from.folder.as_str()];
            folders.extend(self.previous.map(|previous| previous.folder.as_str()));
            folders.dedup();
            for folder in folders {
                withdrawn |= self.remove(folder)?;
            }
        }

        Ok(PublishedPart {
            label: self.label.to_owned(),
            outcome: if withdrawn { Outcome::Withdrawn } else { Outcome::Skipped },
            part: None,
            made_from: self.made_from,
            columns: Vec::new(),
            obsolete,
        })
    }

    /// Removes files with names of files of parts, unless another part is listed there. Returns whether there were any.
    fn remove(&self, folder: &str) -> Result<bool> {
        let names = part_names(self.store, folder)?;
        if names.is_empty() {
            return Ok(false);
        }

        let blobs = self.store.blobs().as_ref();
        let lists = Published::all(blobs)?;
        let parts = lists.iter().flat_map(|list| list.parts.iter().map(move |(label, part)| (&list.name, label, part)));
        let others = parts.filter(|(export, label, _)| *export != self.export || *label != self.label);
        let kept: HashSet<String> = others.flat_map(|(_, _, part)| part.paths()).collect();
        let goes: Vec<String> =
            names.iter().map(|name| part_path(folder, name)).filter(|path| !kept.contains(path)).collect();

        match goes.as_slice() {
            [] => return Ok(false),
            [only] => blobs.delete(only)?,
            // A listing of the directory shows all files of the part or none.
            several if several.len() == names.len() => match blobs.staging(&format!("exports/{folder}"))? {
                Some(aside) => take_place(aside)?,
                None => several.iter().try_for_each(|path| blobs.delete(path))?,
            },
            several => several.iter().try_for_each(|path| blobs.delete(path))?,
        }
        Ok(true)
    }
}
