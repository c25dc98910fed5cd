//! `tidetable new` on the first lines of files: rows of another length, rows for a header, names in comments, and what the marks of
//! numbers are.

use super::readings::{answer, notes, proposed, rows};
use crate::harness::Project;

#[test]
fn rows_of_another_length_are_no_preamble() {
    let project = Project::empty();
    let row = |at: usize| format!("2024-01-14 00:{at:02},20.{at},{at}");
    let refused = [
        // A column ends, or is added.
        (
            "n,Time,C,Serial\n1,14/01/2024 00:00:00,20.5,0100\n",
            "2,14/01/2024 00:05:00,20.6\n",
            "expected 4 columns, found 3",
        ),
        (
            "time,temp,rh\n2024-01-14 00:00,20.1,4\n2024-01-14 00:01,20.2,4\n",
            "2024-01-14 00:02,20.3,4,1\n",
            "the header has 3 names",
        ),
        // Commas are decimal marks, and the first values are whole.
        ("time,temp\n2024-01-14 00:00,20\n", "2024-01-14 00:15,20,5\n", "are commas decimal marks?"),
        ("time,temp,rh\n2024-01-14 00:00,20,40\n", "2024-01-14 00:15,20,5,40,2\n", "are commas decimal marks?"),
        // Without a header.
        ("2024-01-14 00:00,20.5,boot\n", "2024-01-14 00:15,20.6\n", "line 1: expected 2 columns, found 3"),
        (
            "2024-01-14 00:00,20\n2024-01-14 00:15,21\n",
            "2024-01-14 00:30,20,ok\n",
            "line 1: expected 3 columns, found 2",
        ),
        ("# started\n2024-01-14 00:00,20.5,boot\n", "2024-01-14 00:15,20.6\n", "line 2: expected 2 columns, found 3"),
    ];
    for (first, next, told) in refused {
        project.write("a.csv", format!("{first}{}", next.repeat(8)));
        let said = project.fails(2, &["new", "a", "--from", "a.csv"]);
        assert!(said.contains(told), "{first}: {said}");
    }

    // A few of many rows are rejects, and told.
    project.write("few.csv", rows(&format!("{},boot", row(0)), 2000, |at| row(at % 60)));
    let (said, record) = proposed(&project, "few", "few.csv", &[]);
    assert_eq!(record["rows_rejected"], 1, "{said}");
    assert!(notes(&said).contains("line 1: expected 3 columns, found 4"), "{said}");

    // A logger that starts again with another column reads on.
    let again = format!(
        "{}{}",
        rows("time,temp", 3, |at| format!("2024-01-14 00:0{at},20.{at}")),
        rows("time,temp,rh", 20, |at| row(at + 3))
    );
    project.write("again.csv", again);
    let (said, _) = proposed(&project, "again", "again.csv", &[]);
    assert_eq!(answer(&project, "SELECT count(*) AS a, count(rh) AS b FROM AGAIN"), "23 20", "{said}");

    // Lines of as many fields may stand before the header.
    let text = format!(
        "Glucose Data,01-02-2024 10:00 UTC,Jane Doe\n{}",
        rows("Device,Time,mmol/L", 20, |at| format!("Libre,14-01-2024 00:{at:02},7.{at}"))
    );
    project.write("libre.csv", text);
    let (said, _) = proposed(&project, "libre", "libre.csv", &[]);
    assert_eq!(answer(&project, "SELECT count(\"mmol/L\") AS n FROM LIBRE"), "20", "{said}");
    assert!(notes(&said).contains("The line before the header is left out"), "{said}");
    let before = [
        ("davis", "\"My Station\",,\n\"Timezone: Europe/Vienna\",,\n", "Date & Time,Temp - C,Wind"),
        ("site", "Station,1234,\nLatitude,48.1,\nElevation,520,m\n", "Time,Temp - C,Wind"),
        ("scope", "Model,MDO\nRecord Length,500,,\nVertical Units,V,V,\n", "TIME,Temp - C,CH2,"),
    ];
    for (job, lines, header) in before {
        let text = rows(&format!("{lines}{header}"), 20, |at| match job {
            "davis" => format!("\"1/14/24 12:{at:02} AM\",\"{at}.5\",\"NE\""),
            "site" => format!("2024-01-14 00:{at:02},{at}.5,2.25"),
            _ => format!("-{at}.5e-03,{at}.5,0.25,"),
        });
        project.write(&format!("{job}.csv"), text);
        let (said, _) = proposed(&project, job, &format!("{job}.csv"), &[]);
        let query = format!("SELECT count(\"Temp - C\") AS n FROM {}", job.to_uppercase());
        assert_eq!(answer(&project, &query), "20", "{said}");
    }

    // Keys and values above rows without a header.
    let pairs = "file,timestamp,2024-02-01T10:00\nstation,id,39001\nstation,name,Thames\ndata,units,m3/s\ndata,first,2023-01-01";
    project.write("pairs.csv", rows(pairs, 20, |at| format!("2023-01-{:02},{at}.4,E", at + 1)));
    let (said, _) = proposed(&project, "pairs", "pairs.csv", &[]);
    assert_eq!(answer(&project, "SELECT count(*) AS n FROM PAIRS"), "20", "{said}");
    assert!(notes(&said).contains("Line 6 holds values"), "{said}");
    assert!(notes(&said).contains("The 5 lines before the rows are left out"), "{said}");

    // Names of groups of columns above the names.
    let inverters = "Time,INV1,,INV2,\n,Power(kW),Energy(kWh),Power(kW),Energy(kWh)";
    project.write("inv.csv", rows(inverters, 20, |at| format!("2024-01-14 00:{at:02},{at}.5,2.25,--,4.5")));
    let (said, record) = proposed(&project, "inv", "inv.csv", &[]);
    assert_eq!(record["rows_rejected"], 0, "{said}");
    let query = "SELECT count(\"INV1 Power(kW)\") AS a, count(\"INV2 Energy(kWh)\") AS b FROM INV";
    assert_eq!(answer(&project, query), "20 20", "{said}");
    assert!(notes(&said).contains("The names of the columns stand in two lines"), "{said}");

    // What has the form of no row is a preamble.
    project.write("report.csv", format!("Made,2024-01-13 12:00\n{}", rows("time,temp,rh", 20, row)));
    let (said, _) = proposed(&project, "report", "report.csv", &[]);
    assert_eq!(answer(&project, "SELECT count(*) AS n FROM REPORT"), "20", "{said}");
}

#[test]
fn a_row_of_values_is_no_header() {
    let project = Project::empty();
    let code = |at: usize| ["A1B2C3", "4CA2D6"][at % 2];
    let day = "2024/01/01";
    let files = [
        rows(&format!("{},{day},00:00:00,{day},1000", code(0)), 19, |at| {
            format!("{},{day},00:00:{:02},{day},{}", code(at + 1), at + 1, 1000 + at)
        }),
        rows(&format!("MSG,3,{},{day},00:00:00.000", code(0)), 19, |at| {
            format!("MSG,3,{},{day},00:00:{:02}.430", code(at + 1), at + 1)
        }),
        rows(&format!("MSG,3,{0},{day},00:00:00.000,{day},00:00:00.000", code(0)), 19, |at| {
            format!("MSG,3,{0},{day},00:00:{1:02}.430,{day},00:00:{1:02}.430", code(at + 1), at + 1)
        }),
    ];
    for (at, text) in files.into_iter().enumerate() {
        let job = format!("j{at}");
        project.write(&format!("{job}.csv"), text);
        let (said, record) = proposed(&project, &job, &format!("{job}.csv"), &[]);
        assert_eq!(record["rows_rejected"], 0, "{said}");
        let found = answer(&project, &format!("SELECT count(*) AS a, count(DISTINCT ts) AS b FROM J{at}"));
        assert_eq!(found, "20 20", "{said}");
        assert!(notes(&said).contains("The first line holds values"), "{said}");
    }
}

#[test]
fn marks_of_numbers_are_those_of_the_file() {
    let project = Project::empty();
    // The header of a tab file ends in a tab.
    let header = "time/s\tEwe/V\tI/mA\t";
    project.write("tab.txt", rows(header, 20, |at| format!("{},0E-01\t3,{}\t0,25", at + 5, 810 + at)));
    let (said, _) = proposed(&project, "tab", "tab.txt", &[]);
    let job = project.read("jobs/tab/job.toml");
    assert!(job.contains("delimiter = \"\\t\"") && job.contains("decimal = \",\""), "{said} {job}");
    assert_eq!(answer(&project, "SELECT count(*) AS n, cast(max(\"Ewe/V\") AS double) AS v FROM TAB"), "20 3.829");

    // A list of codes beside numbers with points.
    let codes = rows("site\tday\tcode\tgage", 40, |at| {
        format!("0164\t2001-03-{:02}\t{}\t{}.25", at % 28 + 1, ["1", "2,6", "6", "2,8"][at % 4], at + 3)
    });
    project.write("codes.txt", codes);
    let (said, _) = proposed(&project, "codes", "codes.txt", &[]);
    assert!(notes(&said).contains("code: values such as '2,6' look like lists"), "{said}");
    assert_eq!(answer(&project, "SELECT max(code) AS c FROM CODES"), "6");
    assert_eq!(answer(&project, "SELECT count(*) AS n FROM CODES WHERE code = '2,6'"), "10");
    // Measured values stay numbers, and that is said.
    let both = rows("day;temp;level", 28, |at| format!("2001-03-{:02};2{},5;{}.25", at + 1, at % 9, at + 3));
    project.write("both.csv", both);
    let (said, _) = proposed(&project, "both", "both.csv", &[]);
    assert!(
        notes(&said).contains("temp: the comma of '20,5' precedes a fraction, though other columns write points"),
        "{said}"
    );
}

#[test]
fn names_in_a_comment_are_those_of_the_columns() {
    let project = Project::empty();
    let zeek = "#fields\tts\tuid\tbytes\n#types\ttime\tstring\tcount";
    let iis = "#Software: IIS\n#Fields: date time s-ip status";
    let knmi = "# BRON: KNMI\n# STN,YYYYMMDD,   HH,    T\n#";
    let files = [
        ("zeek", rows(zeek, 20, |at| format!("{}.25\tC{at}\t{}", 1_705_269_600 + at, at * 7)), "ts"),
        ("iis", rows(iis, 20, |at| format!("2024-01-01 00:00:{at:02} 10.0.0.1 200")), "date"),
        (
            "cloud",
            rows("#Version: 1.0\n#Fields: date time sc-bytes", 20, |at| format!("2024-01-01\t00:00:{at:02}\t{at}")),
            "date",
        ),
        ("knmi", rows(knmi, 20, |at| format!("  260,20240114,{:5},  -1{at}", at + 1)), "\"T\""),
    ];
    for (job, text, name) in files {
        project.write(&format!("{job}.csv"), text);
        let (said, _) = proposed(&project, job, &format!("{job}.csv"), &[]);
        assert!(notes(&said).contains("The names of the columns stand in a comment line"), "{said}");
        let job_file = project.read(&format!("jobs/{job}/job.toml"));
        assert!(job_file.contains(&format!("\n{} = ", name.trim_matches('"'))), "{job_file}");
        let count = answer(&project, &format!("SELECT count(*) AS n FROM {}", job.to_uppercase()));
        assert_eq!(count, "20", "{said}");
    }
}

#[test]
fn numbers_that_stay_text_are_told() {
    let project = Project::empty();
    let markers = rows("time,hr,note", 20, |at| {
        let rate = if at % 3 == 0 { "M".to_owned() } else { (60 + at).to_string() };
        format!("2024-01-31 22:{at:02},{rate},{}", ["fog", "rain"][at % 2])
    });
    project.write("a.csv", markers);
    let (said, _) = proposed(&project, "a", "a.csv", &[]);
    assert!(notes(&said).contains("hr: 13 of 20 values are numbers, 7 are not (the first is 'M' in line 2)"), "{said}");

    let words = rows("time,hr,note", 20, |at| {
        let rate = if at % 10 == 3 { "---".to_owned() } else { (60 + at).to_string() };
        format!("2024-01-31 22:{at:02},{rate},{}", if at % 7 == 2 { "---" } else { "120/80" })
    });
    project.write("b.csv", words);
    let (said, _) = proposed(&project, "b", "b.csv", &[]);
    assert!(
        notes(&said).contains("hr: 18 of 20 values are numbers, 2 are not (the first is '---' in line 5)"),
        "{said}"
    );

    // Nothing but a reading tells the rows apart.
    project.write("c.csv", rows("state,level,depth", 20, |at| format!("on,{},{}.5", at / 2, at)));
    let (said, _) = proposed(&project, "c", "c.csv", &[]);
    assert!(notes(&said).contains("of the key, although no name says so"), "{said}");
}
