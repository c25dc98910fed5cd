//! A cluster whose root is in a bucket, as it is where machines share no directory.

use std::collections::BTreeMap;

use super::same_results::{JOB, NOW, readings};
use super::servers::Cluster;
use crate::export::sample_bytes::{parts, published};
use crate::harness::Project;
use crate::harness::bucket::{BUCKET, InBucket, SECRET};

/// Published files in the bucket, by part.
fn published_in(place: &InBucket) -> BTreeMap<String, Vec<Vec<u8>>> {
    let keys = place.server.keys(BUCKET).into_iter();
    let exports = keys.filter_map(|key| Some((key.strip_prefix("prod/exports/")?.to_owned(), key.clone())));
    parts(exports.map(|(name, key)| (name, place.server.object(BUCKET, &key).unwrap())).collect())
}

/// The rows of a query in the bucket, or in a directory.
fn rows(place: &InBucket, root: &[&str], query: &str) -> String {
    place.ok(&[&["sql", "--output", "csv", "-c", query], root].concat())
}

#[test]
fn exports_and_tables_are_those_of_one_process_in_a_directory() {
    let project = Project::new("j", JOB);
    (0..8).for_each(|file| project.write(&format!("in/{file:02}.csv"), readings(file, 9)));
    let place = InBucket::new(project);
    let root = format!("s3://{BUCKET}/prod");
    let cluster = Cluster::by(&|args| place.command(args), &root, &[], &[]);
    let both = |more: &[&str]| {
        place.ok(&[&["run", "j", "--root", "local", "--now", NOW], more].concat());
        place.ok(&[&["run", "j", "--now", NOW, "--on", &cluster.address], more].concat());
        let (here, there) = (published(&place.project, "local"), published_in(&place));
        assert!(!here.is_empty());
        assert_eq!(here.keys().collect::<Vec<_>>(), there.keys().collect::<Vec<_>>());
        for (part, files) in &here {
            assert!(files == &there[part], "{part} has other bytes");
        }
        for table in ["T", "WIDE", "DAYS"] {
            let query = format!("SELECT * FROM cells.\"{table}\" ORDER BY row_key, family, qualifier, timestamp");
            let here = rows(&place, &["--root", "local"], &query);
            assert!(here.lines().count() > 10, "{here}");
            assert!(here == rows(&place, &[], &query), "{table} has other cells");
        }
    };
    both(&[]);
    place.project.write("in/03.csv", readings(40, 5));
    std::fs::remove_file(place.project.path("in/05.csv")).unwrap();
    both(&["--without", "in/05.csv"]);
    both(&["--rebuild"]);
    place.ok(&["compact", "WIDE", "--full", "--root", "local", "--now", NOW]);
    place.ok(&["compact", "WIDE", "--full", "--now", NOW, "--on", &cluster.address]);
    both(&["--force"]);
    place.ok(&["verify"]);
    // The work was done by the executors.
    let run = place.ok(&["run", "j", "--force", "--now", NOW, "--on", &cluster.address, "--output", "json"]);
    assert!(run.contains("\"executor\":\"one\"") && run.contains("\"executor\":\"two\""), "{run}");
    // The key of the bucket was sent to nobody.
    assert!(place.server.received().find(SECRET.as_bytes()).is_empty());
}
