//! Reads `catch_up` and `catch_up_window`.

use tidetable_layout::time::{DAY, HOUR, MINUTE};

use crate::file::fields::{Fields, Reader};
use crate::file::problem::Mistake;

/// Which missed runs are made up for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// The last one: a run loads all that is new.
    #[default]
    Latest,
    /// Each, in order.
    All,
    /// None.
    None,
}

/// Default window: a week covers a machine that is off over a long weekend.
const WINDOW: i64 = 7 * DAY;

pub(crate) fn read(reader: &mut Reader<'_>, fields: &Fields<'_>) -> (CatchUp, i64) {
    let choices = [("all", CatchUp::All), ("latest", CatchUp::Latest), ("none", CatchUp::None)];
    let catch_up = fields.choice(reader, "catch_up", &choices);
    let Some(text) = fields.text(reader, "catch_up_window") else { return (catch_up, WINDOW) };
    let window = window(text.value).unwrap_or_else(|| {
        reader.refuse(text.at.clone(), Mistake::CatchUpWindow { value: text.owned() });
        WINDOW
    });
    (catch_up, window)
}

/// Parses `7d`, `36h` or `90m` into microseconds.
fn window(text: &str) -> Option<i64> {
    let units = [('d', DAY), ('h', HOUR), ('m', MINUTE)];
    let (number, micros) = units.iter().find_map(|(unit, micros)| Some((text.strip_suffix(*unit)?, *micros)))?;
    let number = i64::from(number.parse::<u16>().ok()?);
    (number > 0).then_some(number * micros)
}

#[cfg(test)]
mod tests {
    use super::window;

    #[test]
    fn windows() {
        assert_eq!(window("7d"), Some(super::WINDOW));
        assert_eq!(window("36h"), window("2160m"));
        for wrong in ["", "7", "d", "0d", "-1d", "1w", "99999d"] {
            assert_eq!(window(wrong), None, "{wrong}");
        }
    }
}
