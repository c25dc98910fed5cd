//! Inputs that only lost versions of a table hold: their files are gone, so that no run can load them again.

use std::collections::BTreeSet;
use std::path::Path;

use tidetable_blobs::Blobs;
use tidetable_job::{Project, several};
use tidetable_record::{InputState, Runs};
use tidetable_source::Location;
use tidetable_store::{Version, ulid_text};

use crate::fault::error::RunError;
use crate::options::without::{Without, options_for};

/// The inputs that runs loaded into versions of a table after `readable`, that are gone from where they were, and that are not
/// given up by `without`. None without a project: their place is not known then.
///
/// # Errors
/// If the records of runs cannot be listed.
pub(super) fn gone_inputs(
    blobs: &dyn Blobs,
    project: Option<&Project>,
    readable: &Version,
    without: &[String],
) -> Result<Vec<String>, RunError> {
    let Some(project) = project else { return Ok(Vec::new()) };
    let without = Without::new(without);
    // Records of an earlier table of the name count versions of their own.
    let born = u128::from_str_radix(&readable.table_uuid, 16).map(ulid_text).unwrap_or_default();

    let mut seen = BTreeSet::new();
    let mut gone = BTreeSet::new();
    for record in Runs::of(blobs).newest_first(None)?.flatten().take_while(|record| record.run > born) {
        let table = &readable.table.spec.name;
        for load in record.loads.iter().filter(|load| load.table == *table && load.version > readable.number) {
            for input in &load.inputs {
                // What a later run removed is not asked for.
                let is_first = seen.insert(input.path.clone());
                if is_first && holds_rows(input.state) && is_gone(project, &input.path) && !without.takes(&input.path) {
                    gone.insert(input.path.clone());
                }
            }
        }
    }
    Ok(gone.into_iter().collect())
}

/// Whether a load left rows of an input in this state in the table.
fn holds_rows(state: InputState) -> bool {
    match state {
        InputState::New
        | InputState::Changed
        | InputState::Grown
        | InputState::ReadAgain
        | InputState::Unchanged
        | InputState::Renamed
        | InputState::Gone
        | InputState::Empty => true,
        InputState::SameContent | InputState::TakenOut | InputState::LeftOut => false,
    }
}

/// Whether the file of an input is known to be missing. Objects of buckets are not asked for.
fn is_gone(project: &Project, path: &str) -> bool {
    let is_here = Location::parse(path).is_ok_and(|place| matches!(place, Location::Path(_)));
    is_here && !Path::new(&project.resolve(path)).exists()
}

/// What the loss of the versions that loaded `gone` costs, besides the rest.
pub(super) fn costs(gone: &[String]) -> String {
    let names = match gone {
        [] => return String::new(),
        [only] => format!("{only} is"),
        [first, rest @ ..] => format!("{first} and {} are", several(rest.len() as u64, "more input")),
    };
    format!("; {names} gone since, so that no run loads it again")
}

/// What a person does before `--fix`.
pub(super) fn remedy(gone: &[String]) -> String {
    let (files, them) = match gone {
        [only] => (only.clone(), "it"),
        _ => (several(gone.len() as u64, "input"), "them"),
    };
    let options = options_for(gone).unwrap_or_else(|| "--without PATTERN".to_owned());
    format!(
        "put {files} back, or the manifests from a backup, and run `tidetable doctor --fix`; or give {them} up, so that \
         published days of which nothing is left are withdrawn: `tidetable doctor --fix {options}`"
    )
}
