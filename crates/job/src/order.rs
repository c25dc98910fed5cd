//! Dependency order of the jobs of a project.

use tidetable_sql::{Declared, read_by};

use crate::file::Job;

/// For each job, its name and the jobs it depends on: those named in `after`, and those whose tables or exports its
/// queries read. A query that cannot be planned adds none: its own run reports the error.
pub fn dependencies(jobs: &[Job]) -> Vec<(String, Vec<String>)> {
    let tables: Vec<Declared> =
        jobs.iter().flat_map(|job| &job.tables).map(|table| Declared::new(&table.spec.name, &table.layout)).collect();
    let owner = |name: &str| jobs.iter().find(|job| job.table(name).is_some() || job.export(name).is_some());
    let before = |job: &Job| {
        let mut before = job.after.clone();
        for export in &job.exports {
            let reads = read_by(&tables, &export.sql).unwrap_or_default();
            before.extend(reads.iter().filter_map(|(_, name)| owner(name)).map(|owner| owner.name.clone()));
        }
        before.sort_unstable();
        before.dedup();
        before.retain(|name| *name != job.name);
        before
    };
    jobs.iter().map(|job| (job.name.clone(), before(job))).collect()
}

/// Topological order: indexes into `jobs` (name, dependencies), dependencies first. Otherwise the given order is kept.
///
/// # Errors
/// The names of jobs that form a cycle.
pub fn in_dependency_order(jobs: &[(String, Vec<String>)]) -> Result<Vec<usize>, Vec<String>> {
    let place = |name: &String| jobs.iter().position(|(job, _)| job == name);
    let mut order: Vec<usize> = Vec::with_capacity(jobs.len());
    while order.len() < jobs.len() {
        let ready = |at: &usize| {
            let (_, before) = &jobs[*at];
            !order.contains(at) && before.iter().filter_map(place).all(|before| order.contains(&before))
        };
        match (0..jobs.len()).find(ready) {
            Some(at) => order.push(at),
            None => {
                let left = (0..jobs.len()).filter(|at| !order.contains(at));
                return Err(left.map(|at| jobs[at].0.clone()).collect());
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
