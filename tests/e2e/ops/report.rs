//! `report`, and `--report` of `report` and `describe`.

use serde_json::Value;

use crate::harness::Project;

const JOB: &str = readings_job!(
    "in/*.csv",
    "max_rejected = \"50%\"",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\nquery = { sql = \"select * from T\" }\n\
     [checks.low]\non = \"E\"\nrange = { kwh = { max = 99 } }\n"
);

/// Day 1 in time, day 2 a run too late, day 3 not at all, day 4 with a rejected row, day 5 with a value that fails its check.
fn project() -> Project {
    let project = Project::new("j", JOB);
    let day = |day: u32, kwh: &str| {
        project.write(&format!("in/{day}.csv"), format!("meter,ts,kwh\n1,2020-01-{day:02}T06:00:00Z,{kwh}\n"));
    };
    let run = |day: u32| project.run(&["run", "j", "--now", &format!("2020-01-{day:02}T01:15:00Z")]);
    day(1, "1");
    run(2);
    run(3);
    day(2, "2");
    run(4);
    day(4, "4\n2,2020-01-04T06:00:00Z,much");
    run(5);
    day(5, "100");
    run(6);
    project
}

/// What a page holds as JSON.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn days_are_published_late_missing_or_failed() {
    let project = project();
    let report = project.json(&["report", "j"]).remove(0);
    let days: Vec<(&str, &str, i64)> = report["days"]
        .as_array()
        .unwrap()
        .iter()
        .map(|day| (day["day"].as_str().unwrap(), day["state"].as_str().unwrap(), day["rejected"].as_i64().unwrap()))
        .collect();
    let expected = [
        ("2020-01-01", "published", 0),
        ("2020-01-02", "late", 0),
        ("2020-01-03", "missing", 0),
        ("2020-01-04", "published", 1),
        ("2020-01-05", "failed", 0),
    ];
    assert_eq!(days, expected);
    let runs: Vec<&Value> = report["runs"].as_array().unwrap().iter().map(|run| &run["outcome"]).collect();
    assert_eq!(runs, ["ok", "ok", "ok", "ok", "checks"]);
    let [check] = report["checks"].as_array().unwrap().as_slice() else { panic!("one rule: {}", report["checks"]) };
    let failed: Vec<&Value> = check["values"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|value| value["passed"] == false)
        .map(|value| &value["label"])
        .collect();
    assert_eq!(failed, ["2020-01-05"]);
    let steps: Vec<(&str, &str, i64)> = report["lineage"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            (step["name"].as_str().unwrap(), step["into_name"].as_str().unwrap(), step["items"].as_i64().unwrap())
        })
        .collect();
    assert_eq!(steps, [("readings", "T", 4), ("T", "E", 3)]);
    let text = project.ok(&["report", "j"]);
    let said = "j: there are days up to 2020-01-04; 1 day failed (2020-01-05), 1 day missing (2020-01-03), 1 day late \
                (2020-01-02).";
    assert!(text.starts_with(said), "{text}");
}

#[test]
fn days_of_another_zone_are_said_to_be_so() {
    let project = project();
    assert!(!project.ok(&["status", "j"]).contains("UTC"));
    let job = JOB
        .replace("[sources.readings]", "timezone = \"Europe/Paris\"\n[sources.readings]")
        .replace("per = \"day\"", "per = \"month\"");
    let project = Project::new("j", &job.replace("E_{day:%Y%m%d}", "E_{month:%Y%m}"));
    project.write("in/1.csv", "meter,ts,kwh\n1,2020-01-01T06:00:00Z,1\n1,2020-02-28T06:00:00Z,1\n");
    project.ok(&["run", "j"]);

    let report = project.ok(&["report", "j"]);
    assert!(
        report.starts_with(
            "j: there are days up to 2020-02-29, none is missing, failed or late. Days are of Europe/Paris."
        ),
        "{report}"
    );
    assert!(report.contains(" 2 months (60 days) "), "{report}");
    let status = project.ok(&["status", "j"]);
    for what in [
        "newest event day (UTC)",
        "newest published day (Europe/Paris)",
        "failed days (Europe/Paris)",
        "owed windows (UTC)",
    ] {
        assert!(status.contains(what), "{what}: {status}");
    }
}

#[test]
fn pages_hold_what_the_commands_print() {
    let project = project();
    for command in [["report", "j"], ["describe", "T"]] {
        let printed = project.json(&[&command[..], &["--report", "page.html"]].concat()).remove(0);
        let page = project.read("page.html");
        assert_eq!(data(&page), printed, "{command:?}");
        project.ok(&[&command[..], &["--report", "page.html"]].concat());
        assert_eq!(project.read("page.html"), page, "{command:?}: the same bytes again");
        assert_eq!(
            project.ok(&[&command[..], &["--report", "-"]].concat()),
            page,
            "{command:?}: a page and nothing else"
        );
        project.fails(2, &[&command[..], &["--report", "nowhere/page.html"]].concat());
    }
    assert!(project.fails(2, &["report", "k", "--report", "k.html"]).contains("j"));
    assert!(!project.path("k.html").exists());
}

/// The part of a page with this id, up to the end of its section.
fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("<section id=\"{id}\"")).unwrap_or_else(|| panic!("no section {id}"));
    rest.split_once("</section>").unwrap().0
}

#[test]
fn the_page_of_a_table_shows_its_records_by_time_and_its_bytes() {
    let project = project();
    let records = project.sql("select count(*) as n from T")[0]["n"].as_u64().unwrap();
    let page = project.ok(&["describe", "T", "--report", "-"]);

    let bars = section(&page, "time").split("<title>").skip(1).map(|title| title.split("</title>").next().unwrap());
    let counts: Vec<u64> = bars
        .map(|says| says.split(": ").nth(1).unwrap().split(' ').next().unwrap().replace(',', "").parse().unwrap())
        .collect();
    assert!(counts.len() > 1, "{counts:?}");
    assert_eq!(counts.iter().sum::<u64>(), records, "{counts:?}");

    // A bar and its number for each column.
    let columns = section(&page, "bytes");
    let bars = columns.lines().filter(|line| line.contains("<th scope=\"row\">")).collect::<Vec<_>>();
    assert!(!bars.is_empty(), "{columns}");
    for bar in bars {
        let number = bar.split("<td class=\"n\">").nth(1).unwrap().split("</td>").next().unwrap();
        assert!(
            number.starts_with(|first: char| first.is_ascii_digit()) && bar.contains("<rect class=\"part0\" width="),
            "{bar}"
        );
    }
}

#[test]
fn files_of_several_windows_count_in_each_of_them() {
    let project = Project::new("j", JOB);
    for day in 0..39 {
        let date = if day < 31 { format!("2020-01-{:02}", day + 1) } else { format!("2020-02-{:02}", day - 30) };
        project.write(&format!("in/{date}.csv"), format!("meter,ts,kwh\n1,{date}T06:00:00Z,1\n2,{date}T07:00:00Z,1\n"));
    }
    let record = project.run_job("j");
    assert_eq!(record["compactions"][0]["windows"], 1, "January is one file: {record}");
    project.ok(&["describe", "T", "--report", "page.html"]);
    let page = project.read("page.html");
    let windows = section(&page, "windows");
    let lines: Vec<&str> = windows.lines().filter(|line| line.contains("<th scope=\"row\">2020-")).collect();
    assert_eq!(lines.len(), 39);
    for line in lines {
        let numbers: Vec<&str> =
            line.split("<td class=\"n\">").skip(1).map(|cell| cell.split("</td>").next().unwrap()).collect();
        assert_eq!(&numbers[..3], ["1", "2", "2"], "files, rows and cells: {line}");
        assert_ne!(numbers[3].split(' ').next(), Some("0"), "{line}");
    }
    assert!(windows.contains("spread over these evenly"));
}
