//! The marker of a root with an unfinished restore: which backup goes there, and from where.

use tidetable_blobs::Blobs;
use tidetable_job::shell_word;

use crate::fault::error::RunError;

/// The file that marks a root with an unfinished restore: nothing else may use such a root. In a bucket, no run begins in it.
pub(super) const RESTORING: &str = ".restoring";

/// What the marker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RestoreMarker {
    /// Name of the backup that is restored.
    pub id: String,
    /// The place of the backups; builds before wrote none.
    pub vault: Option<String>,
}

impl RestoreMarker {
    /// Reads the text of a marker; `None` if it is empty, as when a restore was killed while it made the marker.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let id = lines.next().map(str::trim).filter(|id| !id.is_empty())?;
        Some(Self { id: id.to_owned(), vault: lines.next().map(str::to_owned) })
    }

    /// The text that [`Self::parse`] reads.
    pub fn text(&self) -> String {
        let Self { id, vault } = self;
        match vault {
            Some(vault) => format!("{id}\n{vault}\n"),
            None => id.clone(),
        }
    }
}

/// Refuses a store with an unfinished restore into `root`, with the command that goes on with it.
///
/// # Errors
/// [`RunError::HalfRestored`], or if the marker cannot be read.
pub(crate) fn refuse_half_restored(blobs: &dyn Blobs, root: &str) -> Result<(), RunError> {
    let Some(marker) = blobs.read(RESTORING)? else { return Ok(()) };
    let marker = RestoreMarker::parse(&String::from_utf8_lossy(&marker));
    let command = match marker {
        Some(RestoreMarker { id, vault: Some(vault) }) => {
            format!("tidetable restore {} {} --at {id}", shell_word(&vault), shell_word(root))
        }
        _ => "tidetable restore".to_owned(),
    };
    Err(RunError::HalfRestored { root: root.to_owned(), command })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_of_earlier_builds_name_the_backup_only() {
        let marker = RestoreMarker { id: "01M8".to_owned(), vault: Some("/back ups".to_owned()) };
        assert_eq!(RestoreMarker::parse(&marker.text()), Some(marker));
        let earlier = RestoreMarker { id: "01M8".to_owned(), vault: None };
        assert_eq!(RestoreMarker::parse("01M8"), Some(earlier));
        assert_eq!(RestoreMarker::parse(" \n"), None);
    }
}
