//! Columns of bytes that turn out not to be text.

use crate::reject::RejectReason;
use crate::sample::Pass;
use crate::spec::{Format, SourceSpec};

/// Takes a column of Parquet whose bytes are not UTF-8 from the declaration.
pub(super) fn take_unreadable(spec: &mut SourceSpec, pass: &Pass) -> Option<String> {
    let rejected = pass.first.as_ref().filter(|first| first.reason == RejectReason::InvalidUtf8)?;
    let name = rejected.column.as_ref().filter(|_| spec.format == Some(Format::Parquet))?;
    let at = spec.columns.iter().position(|column| column.name == *name)?;
    Some(spec.columns.remove(at).name)
}
