//! Dependency order of the jobs of a project.

use tidetable_sql::{Declared, read_by};

use crate::file::Job;

/// For each job, its name and the jobs it depends on: those named in `after`, and those whose tables or exports its
/// queries read. A query that cannot be planned adds none: its own run reports the error.
pub fn dependencies(jobs: &[Job]) -> Vec<(String, Vec<String>)> {
    let tables: Vec<Declared> =
        jobs.iter().flat_map(|job| &job.tables).map(|table| Declared::new(&table.spec.name, &table.layout)).collect();
    jobs.iter().map(|job| (job.name.clone(), before(job, jobs, &tables))).collect()
}

/// The names of the jobs on which `job` depends, ascending.
fn before(job: &Job, jobs: &[Job], tables: &[Declared]) -> Vec<String> {
    let mut before = job.after.clone();
    for export in &job.exports {
        for (_, name) in read_by(tables, &export.sql).unwrap_or_default() {
            let owner = jobs.iter().find(|owner| owner.table(&name).is_some() || owner.export(&name).is_some());
            before.extend(owner.map(|owner| owner.name.clone()));
        }
    }

    before.sort_unstable();
    before.dedup();
    before.retain(|name| *name != job.name);
    before
}

/// Topological order: indexes into `jobs` (name, dependencies), dependencies first. Otherwise the given order is kept.
///
/// # Errors
/// The names of jobs that form a cycle.
pub fn in_dependency_order(jobs: &[(String, Vec<String>)]) -> Result<Vec<usize>, Vec<String>> {
    let mut order: Vec<usize> = Vec::with_capacity(jobs.len());
    while order.len() < jobs.len() {
        let next = (0..jobs.len()).find(|index| {
            let (_, before) = &jobs[*index];
            let mut before = before.iter().filter_map(|name| jobs.iter().position(|(job, _)| job == name));
            !order.contains(index) && before.all(|before| order.contains(&before))
        });
        match next {
            Some(index) => order.push(index),
            None => {
                let left = (0..jobs.len()).filter(|index| !order.contains(index));
                return Err(left.map(|index| jobs[index].0.clone()).collect());
            }
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(text: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        text.iter().map(|(name, before)| ((*name).to_owned(), names(before))).collect()
    }

    #[test]
    fn each_comes_after_what_it_depends_on() {
        assert_eq!(in_dependency_order(&jobs(&[("a", &["c"]), ("b", &[]), ("c", &["b"])])), Ok(vec![1, 2, 0]));
        assert_eq!(in_dependency_order(&jobs(&[("a", &[]), ("b", &["gone"])])), Ok(vec![0, 1]));
        let circle = in_dependency_order(&jobs(&[("a", &["b"]), ("b", &["a"]), ("c", &[])]));
        assert_eq!(circle, Err(vec!["a".to_owned(), "b".to_owned()]));
    }
}
