//! Formats that are not read are called by their names, with a way on that works.

use std::process::Command;

use super::{count, job, rows};
use crate::harness::{Project, gz};

/// The error of `new` for a file.
fn refused(project: &Project, name: &str, bytes: &[u8]) -> String {
    project.write(name, bytes);
    project.fails(2, &["new", "n", "--from", name])
}

/// Proposes a job for a file and runs it; how many rows its table has.
fn loaded(project: &Project, job: &str, file: &str) -> u64 {
    project.ok(&["new", job, "--from", file]);
    project.ok(&["run", job]);
    let table = job.to_uppercase();
    project.sql(&format!("select count(*) as n from {table}"))[0]["n"].as_u64().unwrap()
}

/// Runs the command behind `: ` at the end of a message.
fn follow(project: &Project, message: &str) {
    let command = message.trim().rsplit_once(": ").unwrap().1;
    let done = Command::new("sh").args(["-c", command]).current_dir(project.path("")).status().unwrap();
    assert!(done.success(), "{command}");
}

#[test]
fn utf16_is_named_and_its_command_works() {
    let text = rows(0, 60);
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = [b"\xFF\xFE", little.as_slice()].concat();
    let project = Project::new("j", &job("\"in/*.csv\"", ""));
    for bytes in [&marked, &little] {
        let error = refused(&project, "a.csv", bytes);
        assert!(error.contains("a.csv: this is UTF-16 text"), "{error}");
        follow(&project, &error);
        assert_eq!(project.read("NEW.csv"), text);
    }

    project.write("in/1.csv", rows(0, 5));
    project.write("in/2.csv", &marked);
    let error = project.fails(1, &["run", "j"]);
    assert!(error.contains("in/2.csv: this is UTF-16 text"), "{error}");
}

#[test]
fn foreign_formats_are_named() {
    let project = Project::empty();
    let mut tar = vec![0; 1024];
    tar[..5].copy_from_slice(b"a.csv");
    tar[257..262].copy_from_slice(b"ustar");
    for (name, bytes, wanted) in [
        ("a.csv", b"BZh91AY&SY\x01\x02".to_vec(), "bzip2"),
        ("a.csv", b"\xFD7zXZ\0\0\x04".to_vec(), "xz"),
        ("a.csv.bz2", b"BZh91AY&SY\x01\x02".to_vec(), "bzip2"),
        ("a.tar.gz", gz(&tar), "tar archive"),
        ("a.csv", tar.clone(), "tar archive"),
        ("a.csv.gz", gz(&tar), "tar archive"),
        ("a.csv.gz", gz(gz(b"ts,v\n")), "gzip inside"),
        ("a.csv", b"<html><table><tr><td>ts</td></tr></table></html>".to_vec(), "HTML"),
        ("a.csv", b"{\"ts\": 1, \"v\": 2}\n".to_vec(), "JSON"),
        ("a.csv", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1".to_vec(), "Excel"),
        ("a.parquet", gz(b"PAR1"), "gzip"),
        ("a.csv", b"\x83e\x83X\x83g,v\n\x93\xFA\x96{,1\n\x93\xFA,2\n".to_vec(), "SHIFT_JIS"),
        ("a.csv", b"ts,caf\xE9\n2021-04-01,1\n2021-04-02,2\n".to_vec(), "latin1"),
    ] {
        let error = refused(&project, name, &bytes);
        assert!(error.contains(name) && error.contains(wanted), "{wanted}: {error}");
    }
}

#[test]
fn nul_bytes_reject_their_line() {
    let project = Project::empty();
    let text = rows(0, 1000);
    let at = text.match_indices('\n').nth(700).unwrap().0 + 1;
    project.write("a.csv", [&text.as_bytes()[..at], &[0; 512], &text.as_bytes()[at..]].concat());
    let said = project.ok(&["new", "a", "--from", "a.csv"]);
    assert!(said.contains("line 702: '512 NUL bytes and 2021-04-01T"), "{said}");
    project.ok(&["run", "a"]);
    assert_eq!(project.sql("select count(*) as n from A")[0]["n"], 999);
}

#[test]
fn dialects_of_instruments_are_read_or_named() {
    let project = Project::empty();
    let times = |at: usize| format!("2021-04-01 {:02}:{:02}:00", at / 60, at % 60);

    let toa5 = "\"TOA5\",\"S9\",\"CR1000X\",\"1\",\"Std\",\"CPU:met\",\"4\",\"Met60\"\r\n\"TIMESTAMP\",\"RECORD\",\"AirTC\"\r\n\
                \"TS\",\"RN\",\"Deg C\"\r\n\"\",\"\",\"Avg\"\r\n";
    let lines: String = (0..120).map(|at| format!("\"{}\",{at},{at}.25\r\n", times(at))).collect();
    let error = refused(&project, "toa5.csv", format!("{toa5}{lines}").as_bytes());
    assert!(error.contains("toa5.csv: the header is on line 2, as in all files of TOA5"), "{error}");
    follow(&project, &error);
    assert_eq!(loaded(&project, "toa", "NEW.csv"), 120);

    let told = "Station report\nmade 2021-05-01\n\n";
    let lines: String = (0..60).map(|at| format!("{},{at}\n", times(at))).collect();
    project.write("told.csv", format!("{told}time,v\n{lines}"));
    let said = project.ok(&["new", "seen", "--from", "told.csv"]);
    assert!(said.contains("The 3 lines before the header are left out"), "{said}");
    assert_eq!(loaded(&project, "told", "told.csv"), 60);

    let annotated = "#group,false,false,true\r\n#datatype,string,long,dateTime:RFC3339,double\r\n#default,_result,,,\r\n\
                     ,result,table,_time,_value\r\n";
    let lines: String = (0..60).map(|at| format!(",,0,2021-04-01T00:{at:02}:00Z,{at}.5\r\n")).collect();
    project.write("influx.csv", format!("{annotated}{lines}"));
    assert_eq!(loaded(&project, "influx", "influx.csv"), 60);

    for (delimiter, name) in [(";", "semi"), (",", "comma")] {
        let row = |at: usize| format!("{}{delimiter}M{}{delimiter}{at}\r\n", times(at), at % 2);
        let lines: String = (0..96).map(row).collect();
        project
            .write(&format!("{name}.csv"), format!("sep={delimiter}\r\ntime{delimiter}meter{delimiter}w\r\n{lines}"));
        assert_eq!(loaded(&project, name, &format!("{name}.csv")), 96);
    }

    let lines: String = (0..120).map(|at| format!("'{}','h{}','{at}.5'\n", times(at), at % 2)).collect();
    project.write("single.csv", format!("'ts','host','v'\n{lines}"));
    assert_eq!(loaded(&project, "single", "single.csv"), 120);
    assert!(project.read("jobs/single/job.toml").contains("quote = \"'\""));
}

#[test]
fn what_compressors_and_tapes_leave_is_read() {
    let project = Project::new("j", &job("\"in/*\"", ""));
    let text = rows(0, 60);
    project.write("in/zeros.csv.gz", [gz(text.as_bytes()), vec![0; 1000]].concat());
    // A frame that holds no data, then one with a window of 1 GiB.
    let size = u32::try_from(rows(60, 60).len()).unwrap() << 3 | 1;
    let skipped = [0x184D_2A50_u32.to_le_bytes(), 4_u32.to_le_bytes(), 7_u32.to_le_bytes()].concat();
    let frame = [b"\x28\xB5\x2F\xFD\0\xA0", &size.to_le_bytes()[..3], rows(60, 60).as_bytes()].concat();
    project.write("in/window.csv.zst", [skipped, frame].concat());
    project.ok(&["run", "j"]);
    assert_eq!(count(&project), 120);

    project.write("in/behind.csv.gz", [gz(rows(120, 60).as_bytes()), b"end of tape".to_vec()].concat());
    let error = project.fails(1, &["run", "j"]);
    assert!(error.contains("in/behind.csv.gz") && error.contains("11 bytes behind the end"), "{error}");
}

#[test]
fn headers_of_thousands_of_columns_are_read() {
    let project = Project::empty();
    let names: String = (0..3000)
        .map(|at| format!(",plant_{at:06}.unit_{}.sensor.temperature_of_the_inlet_degC_{at:040}", at % 7))
        .collect();
    let row = |at: usize| format!("2021-04-01T00:0{at}:00Z{}\n", ",1".repeat(3000));
    let text: String = std::iter::once(format!("ts{names}\n")).chain((0..5).map(row)).collect();
    assert!(names.len() > 256 << 10);
    project.write("a.csv", text);
    let said = project.json(&["new", "a", "--from", "a.csv"]);
    assert!(project.read("jobs/a/job.toml").contains("plant_002999"), "{said:?}");
}
