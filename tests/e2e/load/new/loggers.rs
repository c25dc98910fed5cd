//! Times, keys and files as loggers and collectors leave them.

use std::fmt::Write as _;
use std::process::Command;

use crate::harness::{Project, gz};

#[test]
fn printed_commands_destroy_nothing() {
    let project = Project::empty();
    let text = b"ts,caf\xE9\n2021-04-01,1\n2021-04-02,2\n";
    for (name, bytes, made) in [
        ("NEW.csv", text.to_vec(), "NEW2.csv"),
        ("my $data.csv", text.to_vec(), "NEW.csv"),
        ("a.csv.gz", gz(text), "NEW.csv"),
    ] {
        project.write(name, &bytes);
        let error = project.fails(2, &["new", "n", "--from", name]);
        let command = error.trim().rsplit_once(": ").unwrap().1;
        let done = Command::new("sh").args(["-c", command]).current_dir(project.path("")).status().unwrap();
        assert!(done.success(), "{command}");
        assert_eq!(project.read(made), "ts,café\n2021-04-01,1\n2021-04-02,2\n", "{command}");
        assert_eq!(std::fs::read(project.path(name)).unwrap(), bytes, "{command}");
    }
}

#[test]
fn a_json_key_that_comes_late_is_read_or_told() {
    let project = Project::empty();
    let line = |at: usize, more: &str| {
        let pad = "x".repeat(60);
        format!(
            "{{\"ts\":\"2021-04-01T{:02}:{:02}:{:02}Z\",\"pad\":\"{pad}\",\"v\":{at}{more}}}\n",
            at / 3600,
            at / 60 % 60,
            at % 60
        )
    };
    let early: String = (0..12_000).map(|at| line(at, "")).collect();
    let late: String = (12_000..12_100).map(|at| line(at, ",\"hum\":5")).collect();
    assert!(early.len() > 1 << 20);

    project.write("a.jsonl", format!("{early}{late}"));
    project.ok(&["new", "a", "--from", "a.jsonl"]);
    project.ok(&["run", "a"]);
    assert_eq!(project.sql("select count(hum) as n from A")[0]["n"], 100);

    project.write("in/1.jsonl", &early);
    project.ok(&["new", "b", "--from", "in/*.jsonl"]);
    project.ok(&["run", "b"]);
    let moved = |text: &str| text.replace("2021-04-01", "2021-04-02");
    project.write("in/2.jsonl", moved(&format!("{early}{late}")));
    let said = project.messages(&["run", "b"]);
    assert!(said.contains("in/2.jsonl, line 12001: a key that is not declared and not read: hum."), "{said}");
    project.write("in/3.jsonl", moved(&format!("{early}{late}")).replace("04-02", "04-03"));
    let said = project.messages(&["run", "b"]);
    assert!(!said.contains("hum"), "{said}");
}

#[test]
fn an_epoch_in_another_unit_is_named() {
    let project = Project::empty();
    let times = |odd: &str| {
        let mut text = "ts,host,v\n".to_owned();
        for at in 0..1500_u64 {
            let time = if at == 700 { odd.to_owned() } else { (1_785_715_000_521 + at * 1000).to_string() };
            writeln!(text, "{time},h,{at}").unwrap();
        }
        text
    };
    for (job, odd, also) in
        [("a", "1785715700", "in s it would be 2026-08-03"), ("b", "0", "0 is 1970-01-01T00:00:00Z in ms")]
    {
        project.write(&format!("{job}.csv"), times(odd));
        let said = project.ok(&["new", job, "--from", &format!("{job}.csv")]);
        assert!(said.contains(&format!("ts, line 702: '{odd}' is no time of 1990 to 2100 in ms")), "{said}");
        let said = project.messages(&["run", job]);
        assert!(
            said.contains(&format!("warning: {job}.csv, line 702, ts: {odd} is 1970-01-")) && said.contains(also),
            "{said}"
        );
        assert_eq!(project.sql(&format!("select count(*) as n from {}", job.to_uppercase()))[0]["n"], 1500);
    }

    // A later file all of another unit.
    project.write("in/1.csv", times("1785715700521"));
    project.ok(&["new", "c", "--from", "in/*.csv"]);
    project.ok(&["run", "c"]);
    let seconds: String = (0..60).map(|at| format!("{},h,{at}\n", 1_785_800_000 + at)).collect();
    project.write("in/2.csv", format!("ts,host,v\n{seconds}"));
    let said = project.messages(&["run", "c"]);
    assert!(said.contains("warning: in/2.csv, line 2, ts: 1785800000 is 1970-01-21"), "{said}");
}

#[test]
fn records_with_their_length_before_them_are_named() {
    let project = Project::empty();
    let message = |body: &[u8]| [&u32::try_from(body.len()).unwrap().to_be_bytes(), body].concat();
    let body = [&b"\x28\xB5\x2F\xFD"[..], &[7; 40]].concat();
    let records = [message(&body), message(&body)].concat();
    for name in ["m.json", "m.json.zst", "m.jsonl"] {
        project.write(name, &records);
        let error = project.fails(2, &["new", "n", "--from", name]);
        assert!(error.contains("4-byte length before each, as OpenTelemetry's file exporter"), "{error}");
    }

    // A packed .json is data, also in a folder.
    let lines: String = (0..60).map(|at| format!("{{\"ts\":\"2021-04-01T00:{at:02}:00Z\",\"v\":{at}}}\n")).collect();
    project.write("f/metrics.json.gz", gz(lines));
    project.ok(&["new", "f", "--from", "f"]);
    project.ok(&["run", "f"]);
    assert_eq!(project.sql("select count(*) as n from F")[0]["n"], 60);
}

#[test]
fn spanish_halves_of_the_day_are_read() {
    let project = Project::empty();
    let mut text = "fecha,v\n".to_owned();
    for at in 0..96 {
        let (hour, half) = (at / 4 % 12, if at < 48 { "a.\u{a0}m." } else { "p.\u{a0}m." });
        let hour = if hour == 0 { 12 } else { hour };
        writeln!(text, "13/3/2023 {hour}:{:02}:00\u{a0}{half},{at}", at % 4 * 15).unwrap();
    }
    project.write("a.csv", &text);
    project.write("b.csv", text.replace('\u{a0}', " "));
    for job in ["a", "b"] {
        project.ok(&["new", job, "--from", &format!("{job}.csv")]);
        project.ok(&["run", job]);
        let found = project.csv(&format!("select count(*), min(fecha), max(fecha) from {}", job.to_uppercase()));
        assert!(found.contains("96,2023-03-13T00:00:00Z,2023-03-13T23:45:00Z"), "{found}");
    }
}
