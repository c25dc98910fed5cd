//! What a sample says of a column.

use arrow::array::{AsArray, RecordBatch, StringArray};

use crate::sample::candidate::Candidate;
use crate::sample::numbers::codes::Codes;
use crate::sample::numbers::missing::FarNumbers;
use crate::sample::numbers::unit::TextNumbers;
use crate::sample::words::KeptMarker;
use crate::spec::ColumnSpec;

/// Findings for a column besides its type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleColumn {
    /// Another time format that all values match.
    pub also: Option<String>,
    /// Whether its times have no offset, so that they are of a zone that somebody has to know.
    pub without_offset: bool,
    /// The unit, if its integers could be epoch times though its name does not suggest it.
    pub maybe_epoch: Option<&'static str>,
    /// Values that do not fit, whose rows will be rejected.
    pub odd: Option<OddValues>,
    /// Of epoch times: those that are not from 1990 to 2100 in the unit of the others. They are read in it all the same.
    pub stray: Option<OddValues>,
    /// Words that are null, of a column of numbers.
    pub words: Option<NullWords>,
    /// Of text of which most values are numbers or times: the others.
    pub nearly: Option<NearlyTyped>,
    /// The first number that a cell writes differently than the file, such as `+3.2`.
    pub rewritten: Option<String>,
    /// Why its numbers are names, so that the column stays text.
    pub codes: Option<Codes>,
    /// Of text that is numbers with a unit, or with another sign than a minus before them: how these are written.
    pub text_numbers: Option<TextNumbers>,
    /// The first value whose comma or point could be the other separator too.
    pub ambiguous_separator: Option<String>,
    /// The first number with a decimal comma, where commas separate the columns too.
    pub decimal_comma: Option<String>,
    /// Of text that looks like codes with a flag behind a comma, such as `+0081,5`: the first value.
    pub flagged: Option<String>,
    /// Of text that looks like lists of codes, such as `2,6`, where other columns have decimal points: the first value.
    pub listed: Option<String>,
    /// Numbers that may stand for missing ones, such as -999.
    pub far: Option<FarNumbers>,
    /// The number of nines that every value is.
    pub only_nines: Option<String>,
    /// Of a column named like times: two values in different forms of times.
    pub two_forms: Option<(String, String)>,
    /// Of text: the null marker of another column that is one of its values.
    pub kept_marker: Option<KeptMarker>,
    /// Days without a time of day among times, which are read as midnights.
    pub midnights: Option<OddValues>,
    /// The first value that is not empty, for messages.
    pub first: Option<String>,
    /// Its type in the file, where no job file has it.
    pub unusual: Option<UnusualType>,
}

/// Words that stand for missing numbers, such as "No Data" of a logger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NullWords {
    /// Values of the column that are not empty.
    pub values: u64,
    /// How many of these values are words.
    pub count: u64,
    /// The different words, the most frequent first.
    pub words: Vec<String>,
}

/// Text of which most values are numbers or times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearlyTyped {
    /// Whether most values are times; numbers otherwise.
    pub is_time: bool,
    /// Values of the column that are not empty.
    pub values: u64,
    /// Those of the values that are neither times nor numbers.
    pub odd: OddValues,
}

/// A few values of a column that do not fit its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OddValues {
    /// How many of the sampled rows have one.
    pub count: u64,
    /// The first of them, without the blanks around it.
    pub first: String,
    /// The line of the first, from 1; the number of its row where the format has no lines.
    pub line: u64,
}

/// A type of columns of a file that no job file has, such as a duration or a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusualType {
    /// What it is called, such as `map of text`.
    pub words: String,
    /// What its values are read as, such as `text in JSON`.
    pub read_as: String,
    /// Whether a value consists of others, so that it identifies nothing.
    pub is_nested: bool,
}

/// Declares a column as was found, and says what was found besides.
pub(super) fn settle(column: &mut ColumnSpec, found: Candidate) -> SampleColumn {
    *column = found.spec;
    SampleColumn {
        also: found.also,
        without_offset: found.without_offset,
        maybe_epoch: found.maybe_epoch,
        rewritten: found.rewritten,
        codes: found.codes,
        ..SampleColumn::default()
    }
}

/// The text column at index `at`, batch by batch.
pub(super) fn texts(batches: &[RecordBatch], at: usize) -> Vec<&StringArray> {
    batches.iter().filter_map(|batch| batch.columns().get(at)?.as_string_opt::<i32>()).collect()
}
