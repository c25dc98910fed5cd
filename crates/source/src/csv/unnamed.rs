//! Columns without a name in the header, as programs leave the column of row labels.

use crate::value::blanks::trimmed_text;

/// Names the columns whose name is blank by their place: `column_1` for the first. Returns which these are, from 0.
pub(crate) fn name_by_place(names: &mut [String]) -> Vec<usize> {
    let mut unnamed = Vec::new();
    for (place, name) in names.iter().enumerate() {
        if trimmed_text(name).is_empty() {
            unnamed.push(place);
        }
    }

    for place in &unnamed {
        let name = format!("column_{}", place + 1);
        if !names.contains(&name) {
            names[*place] = name;
        }
    }
    unnamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_names_are_those_of_places() {
        let mut names = ["", "ts", " ", "column_5", ""].map(str::to_owned);
        assert_eq!(name_by_place(&mut names), [0, 2, 4]);
        assert_eq!(names, ["column_1", "ts", "column_3", "column_5", ""]);
    }
}
