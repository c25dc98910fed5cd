//! Columns without a name in the header.

use crate::value::blanks::trimmed_text;

/// Names the columns whose name is blank by their place: `column_1`, as programs leave the column of row labels without a
/// name. Returns which these are.
pub(crate) fn name_by_place(names: &mut [String]) -> Vec<usize> {
    let is_unnamed = |at: &usize| names.get(*at).is_some_and(|name| trimmed_text(name).is_empty());
    let unnamed: Vec<usize> = (0..names.len()).filter(is_unnamed).collect();
    for at in &unnamed {
        let name = format!("column_{}", at + 1);
        if !names.contains(&name) {
            names[*at] = name;
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
