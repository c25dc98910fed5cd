//! The secret of a bucket is in nothing that leaves the process: messages, files, what the server receives.

use base64::Engine;
use tidetable_bucket_server::Options;

use crate::harness::bucket::{InBucket, SECRET};
use crate::harness::{Project, Ran};

const JOB: &str = readings_job!(
    "in/*.csv",
    "max_rejected = 5",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\n\
     query = { sql = \"select meter, ts, kwh from T order by meter, ts\" }\n"
);

#[test]
fn the_secret_is_in_no_byte_sent_written_or_told() {
    let options = Options { log: true, ..Options::default() };
    let place = InBucket::with(Project::new("j", JOB), options);
    place.project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n2,2020-01-02T10:00:00Z,2.5\n3,x,9\n");
    let encoded = base64::engine::general_purpose::STANDARD.encode(SECRET);
    // The key begins a signature: `AWS4` and the secret.
    let looks = [SECRET.to_owned(), encoded, SECRET.replace('-', "%2D"), format!("AWS4{SECRET}")];
    let tell =
        |bytes: &[u8]| looks.iter().find(|look| bytes.windows(look.len()).any(|window| window == look.as_bytes()));
    for (code, args) in [
        (0, &["check", "j"][..]),
        (0, &["run", "j"]),
        (0, &["sql", "-c", "select * from T"]),
        (0, &["status", "j"]),
        (0, &["history"]),
        (0, &["rejects", "j"]),
        (0, &["copy", "s3://tidetable/prod", "copy"]),
        (0, &["backup", "vault"]),
        (0, &["vacuum", "--older-than", "0s", "--yes"]),
        (0, &["cache", "--output", "json"]),
        (1, &["--root", "s3://nowhere/prod", "sql", "-c", "select * from T"]),
    ] {
        let ran = Ran::of(place.command(args).env("RUST_LOG", "trace"));
        assert_eq!(ran.code, Some(code), "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(tell(ran.stdout.as_bytes()).or(tell(ran.stderr.as_bytes())), None, "{args:?}");
    }
    assert!(place.server.received().bytes() > 10_000);
    // What is searched for would be found.
    assert!(!place.server.received().find(b"AKIATESTONLY").is_empty());
    for look in &looks {
        assert!(place.server.received().find(look.as_bytes()).is_empty(), "{look}");
    }
    for key in place.server.keys("tidetable") {
        assert_eq!(tell(&place.server.object("tidetable", &key).unwrap()), None, "{key}");
    }
    let mut folders = vec![place.project.path("")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            assert_eq!(tell(&std::fs::read(&path).unwrap()), None, "{}", path.display());
        }
    }
    assert!(files > 20, "{files}");
}
