//! Columns without a name of their own in the header: programs leave that of row labels blank, and write one name twice.

use std::collections::{HashMap, HashSet};

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

/// Names the columns whose name an earlier one has by their number among these: `v`, `v_2`. Returns the new names.
pub(crate) fn name_again(names: &mut [String]) -> Vec<String> {
    let mut taken: HashSet<String> = names.iter().cloned().collect();
    let mut renamed = Vec::new();
    if taken.len() == names.len() {
        return renamed;
    }
    // The last number behind each name.
    let mut numbers: HashMap<String, u32> = HashMap::new();
    for name in names.iter_mut().filter(|name| !name.is_empty()) {
        let Some(number) = numbers.get_mut(name.as_str()) else {
            numbers.insert(name.clone(), 1);
            continue;
        };
        *number += 1;
        while !taken.insert(format!("{name}_{number}")) {
            *number += 1;
        }
        *name = format!("{name}_{number}");
        renamed.push(name.clone());
    }
    renamed
}

/// As [`name_again`], where `is_wanted` says so of the new name: a file may have a name twice, if nobody reads the later one.
pub(crate) fn name_wanted_again(names: &[String], is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut all = names.to_vec();
    name_again(&mut all);
    for (name, written) in all.iter_mut().zip(names) {
        if name != written && !is_wanted(name) {
            name.clone_from(written);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_columns_of_one_name_have_a_number() {
        let written = ["v", "v", "v_2", "v", ""].map(str::to_owned);
        let mut names = written.clone();
        assert_eq!(name_again(&mut names), ["v_3", "v_4"]);
        assert_eq!(names, ["v", "v_3", "v_2", "v_4", ""]);
        assert_eq!(name_wanted_again(&written, |name| name == "v_4"), ["v", "v", "v_2", "v_4", ""]);
    }

    #[test]
    fn blank_names_are_those_of_places() {
        let mut names = ["", "ts", " ", "column_5", ""].map(str::to_owned);
        assert_eq!(name_by_place(&mut names), [0, 2, 4]);
        assert_eq!(names, ["column_1", "ts", "column_3", "column_5", ""]);
    }
}
