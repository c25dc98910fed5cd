//! Reads `lint = { K6 = "reason" }`: rules of schema design that do not hold here.

use std::ops::Range;

use crate::file::fields::{Fields, Reader};
use crate::file::keys::ValueShape;
use crate::file::problem::Mistake;

/// A rule that is silenced, for a table or for the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// Id of the rule of `tidetable lint`, as written.
    pub rule: String,
    /// Why it does not hold here, in the words of the author.
    pub reason: String,
    /// Byte range of the id in the job file.
    pub at: Range<usize>,
}

/// The silenced rules of a table or a job, in file order.
pub(crate) fn read(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Vec<Allowance> {
    let mut allowances = Vec::new();
    for named in fields.named("lint") {
        let value = named.value.get_ref();
        match value.as_str().map(str::trim) {
            Some("") => reader.refuse(named.value.span(), Mistake::NoReason { rule: named.name.to_owned() }),
            Some(reason) => {
                let (rule, reason) = (named.name.to_owned(), reason.to_owned());
                allowances.push(Allowance { rule, reason, at: named.at.clone() });
            }
            None => {
                let (key, shape) = (named.name.to_owned(), ValueShape::Text);
                reader.refuse(named.value.span(), Mistake::WrongType { key, shape, found: value.type_str() });
            }
        }
    }
    allowances
}
