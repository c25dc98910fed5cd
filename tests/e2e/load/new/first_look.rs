//! `tidetable try`: rows, answers and a page of files, and nothing left.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use crate::harness::{Project, Ran, repository};
use crate::load::object_stores::{CSV, serve};

/// A folder that is no project, with a folder for temporary files.
fn folder() -> Project {
    let project = Project::empty();
    fs::remove_file(project.path("tidetable.toml")).unwrap();
    fs::create_dir(project.path("tmp")).unwrap();
    project
}

fn tried(project: &Project, args: &[&str]) -> Ran {
    let mut command = project.command(&[&["try"], args].concat());
    Ran::of(command.env_remove("TIDETABLE_ROOT").env("TMPDIR", project.path("tmp")))
}

/// Names in the folder and in that for temporary files.
fn names(project: &Project) -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["", "tmp"] {
        let entries = fs::read_dir(project.path(folder)).unwrap();
        names.extend(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()));
    }
    names.sort();
    names
}

#[test]
fn files_are_shown_and_nothing_but_the_page_is_left() {
    let project = folder();
    for day in ["2018-01-02", "2018-01-03"] {
        let file = repository().join(format!("sample-data/smart-meters/{day}.csv"));
        fs::create_dir_all(project.path("in")).unwrap();
        fs::copy(file, project.path(&format!("in/{day}.csv"))).unwrap();
    }

    let ran = tried(&project, &["in"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for part in [
        "960 rows of 2 files in ",
        "row key {meter:010}#{ts:%Y%m%d}",
        "SELECT * FROM IN LIMIT 5;",
        "│  960 ┆ 2018-01-02T00:00:00Z ┆ 2018-01-03T23:00:00Z │",
        "SELECT meter, count(*) AS rows, avg(kwh) AS mean FROM IN GROUP BY meter ORDER BY mean DESC LIMIT 5;",
        "SELECT time_bucket(INTERVAL '3 hours', ts) AS time, count(*) AS rows, avg(kwh) AS mean",
        "  tidetable new in --from in\n",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert_eq!(names(&project), ["in", "tidetable-in.html", "tmp"]);
    assert!(project.read("tmp/tidetable-in.html").contains("<svg"), "the page has a chart");

    // Files that a shell names, and results for a program.
    let ran = tried(&project, &["in/2018-01-02.csv", "in/2018-01-03.csv", "--output", "csv", "--report", "x.html"]);
    assert!(ran.stdout.starts_with("meter,ts,kwh\n2,2018-01-0"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(names(&project), ["in", "tidetable-in.html", "tmp", "x.html"]);
}

/// The URL of a file of so many rows of `id`, which is sent once.
fn file_of(id: &'static str, rows: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/wind.csv", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The whole request: what is left unread when the connection is closed resets it.
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.is_empty()));
        let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nid,ts,v\n");
        for row in 0..rows {
            let (minute, second) = (row / 60 % 60, row % 60);
            sent = sent.and_then(|()| writeln!(stream, "{id},2020-01-01T00:{minute:02}:{second:02}Z,{row}"));
        }
    });
    url
}

#[test]
fn a_file_of_the_web_is_fetched() {
    let (project, server) = (folder(), serve(None));
    let url = format!("{}/a/wind.csv?key=1", server.endpoint);
    let ran = tried(&project, &[&url]);
    let rows = CSV.lines().count() - 1;
    assert!(ran.code == Some(0) && ran.stdout.contains(&format!("{rows} rows of 1 file in ")), "{}", ran.stderr);
    assert_eq!(names(&project), ["tidetable-wind.html", "tmp"]);
    fs::remove_file(project.path("tmp/tidetable-wind.html")).unwrap();

    // Of one name, from two places.
    let ran = tried(&project, &[&file_of("a", 100), &file_of("b", 100)]);
    assert!(ran.code == Some(0) && ran.stdout.contains("200 rows of 2 files in "), "{}{}", ran.stdout, ran.stderr);
    fs::remove_file(project.path("tmp/tidetable-wind.html")).unwrap();

    let gone = serve(Some("404 Not Found"));
    for (code, args, told) in [
        (1, vec![format!("{}/wind.csv", gone.endpoint)], "cannot be read: the answer is 404 Not Found"),
        (1, vec!["http://127.0.0.1:1/wind.csv".to_owned()], "cannot be read: "),
        (2, vec![format!("{}/wind", server.endpoint)], "does not end in a name of a data file"),
        (2, vec![file_of("a", 100_000), "--limit".to_owned(), "64KiB".to_owned()], "is larger than 65536 bytes"),
    ] {
        let ran = tried(&project, &args.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(ran.code == Some(code) && ran.stderr.contains(told), "{args:?}: {:?} {}", ran.code, ran.stderr);
        assert_eq!(names(&project), ["tmp"]);
    }
}

#[test]
fn what_cannot_be_loaded_is_told_as_new_tells_it() {
    let project = folder();
    project.write("a.csv", "name,remark\nx,y\n");
    let rows: String = (0..60).map(|minute| format!("a,2020-01-01T00:{minute:02}:00Z,{minute}\n")).collect();
    project.write("b.csv", format!("id,ts,v\n{rows}"));
    let told = |ran: &Ran| ran.stderr.replace(project.path("").to_str().unwrap(), "");
    for file in ["a.csv", "gone.csv", "gone/", "*.parquet"] {
        let ran = tried(&project, &[file]);
        let by_new = project.run(&["new", "a", "--from", file]);
        assert_eq!((ran.code, by_new.code), (Some(2), Some(2)), "{file}: {}{}", ran.stderr, ran.stdout);
        assert_eq!(told(&ran), told(&by_new), "{file}");
    }
    let ran = tried(&project, &["b.csv", "--limit", "1KiB"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("`tidetable try` takes 1.00 KiB"), "{}", ran.stderr);
    assert_eq!(names(&project), ["a.csv", "b.csv", "tmp"]);
}
