//! Manifests that vanished from a bucket: whoever reads the table is told.

use crate::harness::Project;
use crate::harness::bucket::{BUCKET, InBucket};

const JOB: &str = readings_job!(
    "in/*.csv",
    "",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\n\
     query = { sql = \"select meter, ts, kwh from T order by meter, ts\" }\n"
);

#[test]
fn a_table_that_has_lost_its_newest_manifest_is_not_read() {
    let place = InBucket::new(Project::new("j", JOB));
    place.project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n");
    place.ok(&["run", "j"]);
    place.project.write("in/b.csv", "meter,ts,kwh\n2,2020-01-02T10:00:00Z,2.5\n");
    place.ok(&["run", "j"]);
    let query = ["sql", "-c", "select count(*) as n from T"];
    assert!(place.ok(&query).contains('2'));
    let manifests: Vec<String> =
        place.server.keys(BUCKET).into_iter().filter(|key| key.contains("tables/T/manifest/")).collect();
    place.remove(manifests.last().unwrap());
    for args in [&query[..], &["read", "T"], &["export", "T", "--to", "x.csv"], &["describe", "T"], &["heatmap", "T"]] {
        let told = place.ends(1, args).stderr;
        assert!(told.contains("names version 2"), "{args:?}: {told}");
    }
    // An older version can still be asked for.
    assert!(place.ok(&["sql", "--output", "csv", "-c", "select count(*) as n from \"T@1\""]).contains('1'));
}

#[test]
fn doctor_asks_the_bucket_of_inputs_that_only_lost_versions_hold() {
    let place = InBucket::new(Project::new("j", ""));
    let storage = format!(
        "[sources.readings.storage]\nendpoint = \"{}\"\nallow_http = true\nregion = \"us-east-1\"\n\
         access_key_id = \"AKIATESTONLY\"\nsecret_access_key = {{ env = \"T_KEY\" }}\n[tables.T]",
        place.server.endpoint()
    );
    let job = JOB.replace("in/*.csv", &format!("s3://{BUCKET}/in/*.csv")).replace("[tables.T]", &storage);
    place.project.write("jobs/j/job.toml", job);
    for (name, row) in [("a", "1,2020-01-01T10:00:00Z,1.5"), ("b", "2,2020-01-02T10:00:00Z,2.5")] {
        assert!(place.server.put_object(
            BUCKET,
            &format!("in/{name}.csv"),
            format!("meter,ts,kwh\n{row}\n").into_bytes()
        ));
        place.ok(&["run", "j"]);
    }
    let keys = place.server.keys(BUCKET);
    let newest = keys.iter().rfind(|key| key.contains("tables/T/manifest/")).unwrap();
    place.remove(newest);

    // While its input is there, a run loads it again.
    let told = place.ends(1, &["doctor"]).stdout;
    assert!(!told.contains("gone since"), "{told}");
    place.remove("in/b.csv");
    let ran = place.ends(1, &["doctor", "--fix"]);
    assert!(ran.stdout.contains("gone since") && ran.stdout.contains("in/b.csv"), "{}{}", ran.stdout, ran.stderr);
    assert!(place.server.put_object(BUCKET, "in/b.csv", b"meter,ts,kwh\n2,2020-01-02T10:00:00Z,2.5\n".to_vec()));
    place.ok(&["doctor", "--fix"]);
    place.ok(&["run", "j"]);
    assert_eq!(place.sql("select count(*) as n from T")[0]["n"], 2);
}
