//! Reads `catch_up` and `catch_up_window`.

use tidetable_layout::time::DAY;

use crate::file::fields::{Fields, Reader};
use crate::file::problem::Mistake;
use crate::size::parse_age;

/// Which runs are made up for that were due while the scheduler was off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// The last one: a run loads all that is new.
    #[default]
    Latest,
    /// Each missed run, in order, as of its own time.
    All,
    /// No missed run: the next one is the next that is due.
    None,
}

/// Default window: a week covers a machine that is off over a long weekend.
const WINDOW: i64 = 7 * DAY;

pub(crate) fn read(reader: &mut Reader<'_>, fields: &Fields<'_>) -> (CatchUp, i64) {
    let choices = [("all", CatchUp::All), ("latest", CatchUp::Latest), ("none", CatchUp::None)];
    let catch_up = fields.choice(reader, "catch_up", &choices);
    let Some(text) = fields.text(reader, "catch_up_window") else { return (catch_up, WINDOW) };
    let window = parse_age(text.value).unwrap_or_else(|| {
        reader.refuse(text.at.clone(), Mistake::CatchUpWindow { value: text.owned() });
        WINDOW
    });
    (catch_up, window)
}
