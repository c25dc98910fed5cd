//! Columns of a table, and how they give way where the table is wider than the terminal: text first becomes
//! narrower, then moves below its row, then the least important columns are left out. Numbers, times and row keys are
//! never cut: two of them must not look alike.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::cut::Cut;

/// Text that is cut is not made narrower than this, and text that is wrapped not than twice as much.
const NARROW: usize = 8;
/// Text that differs only after so many characters does not ask for more: it is cut in its middle.
const LONGEST_PREFIX: usize = 40;
/// Characters of an id that tell it from others: a ULID begins with ten of time.
const SHORT_ID: usize = 12;
/// Text that can move below its row does so from this width on, whatever room there is.
const LONG_TEXT: usize = 60;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    pub name: String,
    /// Whether its values are right-aligned.
    pub right: bool,
    /// What may be done to its values.
    pub give: Give,
    /// Where it does not fit: the columns with the greatest rank are left out first. Rank 0 stays.
    pub rank: usize,
}

/// What may be done to the values of a column in a table that is too wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Give {
    /// Nothing: numbers, times, row keys.
    Nothing,
    /// Text, which is cut where its values still differ.
    Cut,
    /// Text, which is wrapped.
    Wrap,
    /// Long text, which moves below its row.
    Below,
    /// An id: its first characters suffice where it is asked for.
    Prefix,
}

#[cfg(test)]
impl Heading {
    /// A column of text that stays.
    pub fn text(name: &str) -> Self {
        Self { name: name.to_owned(), right: false, give: Give::Wrap, rank: 0 }
    }
}

/// A column as shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Column `index`, in `width` characters.
    Column {
        /// Index among the headings.
        index: usize,
        /// Width in characters.
        width: usize,
        /// Where values that are wider are cut.
        cut: Cut,
    },
    /// The mark of one or more columns that are left out here.
    Gap,
}

/// Which columns are shown, and how wide.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// From left to right.
    pub shown: Vec<Shown>,
    /// Columns below each row, by index.
    pub below: Vec<usize>,
    /// Number of columns that are left out.
    pub left_out: usize,
    /// Whether values are limited to the width; otherwise a wide one makes its line longer.
    pub bounded: bool,
}

impl Layout {
    /// The layout of a table of these first rows in `room` characters; `None` for unlimited.
    pub fn of(headings: &[Heading], rows: &[Vec<String>], room: Option<usize>) -> Self {
        let mut widths = natural_widths(headings, rows);
        let (mut below, mut kept): (Vec<usize>, Vec<usize>) =
            (0..headings.len()).partition(|index| headings[*index].give == Give::Below && widths[*index] > LONG_TEXT);
        let Some(room) = room else {
            return Self { shown: columns(&kept, &widths, &[]), below, ..Self::default() };
        };

        if framed(&kept, &widths, 0) > room {
            for (width, heading) in widths.iter_mut().zip(headings) {
                if heading.give == Give::Prefix {
                    *width = (*width).min(SHORT_ID);
                }
            }
        }
        if framed(&kept, &widths, 0) > room {
            (below, kept) = (0..headings.len()).partition(|index| headings[*index].give == Give::Below);
        }

        let least: Vec<usize> = headings
            .iter()
            .enumerate()
            .map(|(index, heading)| least_width(heading, widths[index], rows.iter().filter_map(|row| row.get(index))))
            .collect();

        let fits = |kept: &[usize]| framed(kept, &least, gap_places(kept, &below, headings).len()) <= room;
        let mut left_out = Vec::new();
        while !fits(&kept) {
            let Some(place) = least_important(&kept, headings) else { break };
            left_out.push(kept.remove(place));
        }
        // A narrow column may fit in place of a wide one that is left out.
        left_out.reverse();
        left_out.retain(|index| {
            let mut more = kept.clone();
            more.insert(kept.partition_point(|other| other < index), *index);
            let is_back = fits(&more);
            if is_back {
                kept = more;
            }
            !is_back
        });

        let gaps = gap_places(&kept, &below, headings);
        let inner = room.saturating_sub(framed(&kept, &vec![0; headings.len()], gaps.len()));
        let fitted = shrunk(&kept, &widths, &least, inner);
        let mut shown = columns(&kept, &fitted, rows);
        for place in gaps.into_iter().rev() {
            shown.insert(place, Shown::Gap);
        }
        Self { shown, below, left_out: left_out.len(), bounded: true }
    }

    /// Characters between the outer borders.
    pub fn inner_width(&self) -> usize {
        let widths = self.shown.iter().map(|column| column.width() + 2).sum::<usize>();
        widths + self.shown.len().saturating_sub(1)
    }
}

impl Shown {
    /// The width in characters.
    pub fn width(self) -> usize {
        match self {
            Self::Column { width, .. } => width,
            Self::Gap => 1,
        }
    }
}

/// The columns `kept` in these widths, cut so that the values of `rows` still differ.
fn columns(kept: &[usize], widths: &[usize], rows: &[Vec<String>]) -> Vec<Shown> {
    let mut shown = Vec::with_capacity(kept.len());
    for index in kept.iter().copied() {
        let values = rows.iter().filter_map(|row| row.get(index).map(String::as_str));
        shown.push(Shown::Column { index, width: widths[index], cut: Cut::of(values, widths[index]) });
    }
    shown
}

/// The widths of the columns if nothing gives way.
fn natural_widths(headings: &[Heading], rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths: Vec<usize> = headings.iter().map(|heading| widest(&heading.name)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(widest(cell));
        }
    }
    widths
}

/// The width below which a column is not made narrower.
fn least_width<'a>(heading: &Heading, natural: usize, cells: impl Iterator<Item = &'a String> + Clone) -> usize {
    let longest_word = heading.name.split(' ').map(UnicodeWidthStr::width).max().unwrap_or_default();
    let named = longest_word.min(2 * NARROW);
    let needed = match heading.give {
        Give::Nothing => cells.map(|cell| widest(cell)).max().unwrap_or_default(),
        Give::Cut => distinct_width(cells).max(NARROW),
        Give::Wrap | Give::Below => 2 * NARROW,
        Give::Prefix => SHORT_ID,
    };
    needed.max(named).min(natural)
}

/// The width at which values that differ still do when they are cut.
fn distinct_width<'a>(cells: impl Iterator<Item = &'a String>) -> usize {
    let mut values: Vec<&str> = cells.map(String::as_str).collect();
    values.sort_unstable();
    values.dedup();
    let common = values.windows(2).map(|pair| common_prefix(pair[0], pair[1])).max().unwrap_or_default();
    // A character that differs, and the mark of the cut.
    (common + 2).min(LONGEST_PREFIX)
}

/// The width of the longest common prefix.
fn common_prefix(left: &str, right: &str) -> usize {
    let common = left.chars().zip(right.chars()).take_while(|(a, b)| a == b);
    common.map(|(c, _)| c.width().unwrap_or_default()).sum()
}

/// The width of a table of the columns `kept`: a border and two spaces for each, and the last border.
fn framed(kept: &[usize], widths: &[usize], gaps: usize) -> usize {
    kept.iter().map(|index| widths[*index] + 3).sum::<usize>() + 4 * gaps + 1
}

/// The place in `kept` of the column to leave out next; `None` if all that are left stay.
fn least_important(kept: &[usize], headings: &[Heading]) -> Option<usize> {
    let (place, index) = kept.iter().enumerate().max_by_key(|(_, index)| (headings[**index].rank, **index))?;
    (kept.len() > 1 && headings[*index].rank > 0).then_some(place)
}

/// The places in `kept` before which columns of a query are left out. Those of a command are only counted.
fn gap_places(kept: &[usize], below: &[usize], headings: &[Heading]) -> Vec<usize> {
    let is_left_out = |index: usize| !kept.contains(&index) && !below.contains(&index);
    let is_query = headings.iter().all(|heading| heading.rank > 0);
    let starts = kept.iter().map(|index| index.checked_sub(1)).chain([headings.len().checked_sub(1)]);
    let places = starts.enumerate().filter(|(_, before)| is_query && before.is_some_and(is_left_out));
    places.map(|(place, _)| place).collect()
}

/// The widths with which the columns `kept` take `inner` characters: the widest give way first.
fn shrunk(kept: &[usize], widths: &[usize], least: &[usize], inner: usize) -> Vec<usize> {
    let at_most = |limit: usize| -> Vec<usize> {
        widths.iter().zip(least).map(|(width, least)| (*width).min(limit).max(*least)).collect()
    };
    let taken = |widths: &[usize]| kept.iter().map(|index| widths[*index]).sum::<usize>();
    let (mut low, mut high) = (0, kept.iter().map(|index| widths[*index]).max().unwrap_or_default());
    while low < high {
        let middle = (low + high).div_ceil(2);
        if taken(&at_most(middle)) <= inner { low = middle } else { high = middle - 1 }
    }

    let mut fitted = at_most(low);
    // Nothing more can be left out: the widest take what is there, and their values are wrapped.
    while taken(&fitted) > inner {
        let Some(widest) = kept.iter().copied().max_by_key(|index| fitted[*index]) else { break };
        if fitted[widest] <= 1 {
            break;
        }
        fitted[widest] -= 1;
    }
    fitted
}

/// The width of the widest line of a text.
pub fn widest(text: &str) -> usize {
    text.split('\n').map(UnicodeWidthStr::width).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heading(name: &str, give: Give, rank: usize) -> Heading {
        Heading { name: name.to_owned(), right: false, give, rank }
    }

    fn rows(cells: &[&[&str]]) -> Vec<Vec<String>> {
        cells.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    fn width_of(layout: &Layout, column: usize) -> Option<usize> {
        layout.shown.iter().find_map(|shown| match shown {
            Shown::Column { index, width, .. } if *index == column => Some(*width),
            _ => None,
        })
    }

    #[test]
    fn text_gives_way_before_times_and_numbers() {
        let headings = [heading("ts", Give::Nothing, 1), heading("text", Give::Cut, 2)];
        let rows = rows(&[&["2025-11-22T00:00:00Z", &"x".repeat(50)], &["2025-11-22T00:15:00Z", &"y".repeat(50)]]);
        let layout = Layout::of(&headings, &rows, Some(40));
        assert_eq!((width_of(&layout, 0), width_of(&layout, 1)), (Some(20), Some(13)));
        let layout = Layout::of(&headings, &rows, Some(30));
        assert_eq!((width_of(&layout, 0), width_of(&layout, 1)), (Some(20), None));
        assert_eq!(layout.left_out, 1);
    }

    #[test]
    fn cut_values_still_differ() {
        let keys: Vec<String> = (0..20).map(|n| format!("plant-07/vehicle-{n:04}/front")).collect();
        let rows: Vec<Vec<String>> = keys.iter().map(|key| vec![key.clone(), "z".repeat(60)]).collect();
        let headings = [heading("key", Give::Cut, 1), heading("text", Give::Cut, 2)];
        let layout = Layout::of(&headings, &rows, Some(50));
        assert_eq!(width_of(&layout, 0), Some("plant-07/vehicle-0001".len() + 1));
    }

    #[test]
    fn the_least_important_column_goes_first() {
        let headings =
            [heading("run", Give::Wrap, 0), heading("read", Give::Nothing, 2), heading("state", Give::Wrap, 1)];
        let rows = rows(&[&["0123456789", "1234567890", "published"]]);
        let layout = Layout::of(&headings, &rows, Some(30));
        assert_eq!((width_of(&layout, 0), width_of(&layout, 1), width_of(&layout, 2)), (Some(10), None, Some(9)));
        assert!(!layout.shown.contains(&Shown::Gap));
    }

    #[test]
    fn long_text_moves_below_its_row() {
        let headings = [heading("run", Give::Nothing, 0), heading("error", Give::Below, 0)];
        let rows = rows(&[&["0123456789", &"word ".repeat(30)]]);
        let layout = Layout::of(&headings, &rows, Some(40));
        assert_eq!((layout.below.as_slice(), layout.left_out), (&[1][..], 0));
        // Wherever there is room, short text stays in its column.
        let rows = self::rows(&[&["0123456789", &"word ".repeat(10)]]);
        assert!(Layout::of(&headings, &rows, Some(400)).below.is_empty());
        assert_eq!(Layout::of(&headings, &rows, Some(40)).below, [1]);
    }

    #[test]
    fn columns_left_out_of_a_query_leave_a_mark() {
        let headings: Vec<Heading> =
            (0..10).map(|at: usize| heading("column", Give::Nothing, 1 + at.min(9 - at))).collect();
        let rows = rows(&[&["2025-11-22T00:00:00Z"; 10]]);
        let layout = Layout::of(&headings, &rows, Some(80));
        assert_eq!(layout.shown.len(), 4);
        assert_eq!(layout.shown[2], Shown::Gap);
        assert_eq!(layout.left_out, 7);
        assert!(layout.inner_width() + 2 <= 80);
    }
}
