//! Groups the parts of an export that share files. Pure functions.

use std::collections::HashMap;

/// The files that a part reads of a table: for each scan range, the SSTs as one string.
pub(crate) type PartSsts = Vec<String>;

/// Groups of parts that have a file in common, in their order; parts without one are in no group.
pub(crate) fn sharing(parts: &[PartSsts]) -> Vec<Vec<usize>> {
    let mut runs: Vec<Vec<usize>> = Vec::new();
    let mut run_of: HashMap<&str, usize> = HashMap::new();
    for (at, files) in parts.iter().enumerate() {
        if files.is_empty() {
            continue;
        }

        let known = files.iter().find_map(|file| run_of.get(file.as_str()).copied());
        let run = known.unwrap_or_else(|| {
            runs.push(Vec::new());
            runs.len() - 1
        });

        if let Some(run) = runs.get_mut(run) {
            run.push(at);
        }
        for file in files {
            run_of.entry(file).or_insert(run);
        }
    }

    runs.retain(|run| run.len() > 1);
    runs
}

/// Splits `parts` of `bytes` each into groups of about equal size that fit in `memory`. Groups of one are left out:
/// a single part shares nothing.
pub(crate) fn groups(parts: &[usize], bytes: u64, memory: u64) -> Vec<Vec<usize>> {
    let most = usize::try_from(memory / bytes.max(1)).unwrap_or(usize::MAX);
    if most < 2 || parts.len() < 2 {
        return Vec::new();
    }

    let count = parts.len().div_ceil(most);
    let cut = |group: usize| group * parts.len() / count;
    let groups = (0..count).filter_map(|group| parts.get(cut(group)..cut(group + 1)));
    groups.filter(|group| group.len() > 1).map(<[usize]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(parts: &[&[&str]]) -> Vec<PartSsts> {
        parts.iter().map(|files| files.iter().map(|file| (*file).to_owned()).collect()).collect()
    }

    #[test]
    fn days_of_a_joined_month_are_read_together() {
        let parts = files(&[&["jan"], &["jan"], &["jan"], &["feb"], &["feb"], &["mar 1"], &["mar 2"]]);
        assert_eq!(sharing(&parts), [vec![0, 1, 2], vec![3, 4]]);
    }

    #[test]
    fn a_day_with_a_file_of_its_own_is_passed_over() {
        let parts = files(&[&["jan"], &["jan+late"], &["jan"], &[], &["jan"]]);
        assert_eq!(sharing(&parts), [vec![0, 2, 4]]);
    }

    #[test]
    fn a_day_that_lies_in_two_months_joins_them() {
        let parts = files(&[&["jan"], &["jan", "feb"], &["feb"], &["feb"]]);
        assert_eq!(sharing(&parts), [vec![0, 1, 2, 3]]);
    }

    #[test]
    fn groups_fit_the_memory_and_are_about_alike() {
        let days: Vec<usize> = (0..30).collect();
        let lengths = |bytes, memory| groups(&days, bytes, memory).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(10, 1000), [30]);
        assert_eq!(lengths(10, 300), [30]);
        assert_eq!(lengths(10, 85), [7, 8, 7, 8]);
        assert_eq!(lengths(10, 20), [2; 15]);
        assert_eq!(lengths(10, 19), [0; 0]);
        assert_eq!(lengths(0, u64::MAX), [30]);
        assert_eq!(groups(&days, 10, 85).concat(), days);
        assert_eq!(groups(&days[..1], 1, 100), Vec::<Vec<usize>>::new());
        // Three in two groups: the one left alone is not shared.
        assert_eq!(groups(&days[..3], 10, 20), [vec![1, 2]]);
    }
}
