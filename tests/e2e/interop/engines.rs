//! The guide "Exports in other engines": each piece of Python prints what stands below it.

use std::process::Command;

use crate::harness::system::{delta_python, iceberg_python, python, skipped};
use crate::harness::{Project, Ran, repository};

/// The job of the page; its exports are those of the page.
const JOB: &str = r#"
name = "meters"

[sources.readings]
files = ["in/*.csv"]
time = "ts"
columns = { meter = "uint64", ts = "timestamp", kwh = "decimal(9,3)" }

[tables.SENSOR]
row_key = "{meter:03}#{ts:%Y%m%d}"

[tables.SENSOR.families.M]
columns = [{ qualifier = "{ts:%H%M}", value = "{kwh}" }]
"#;

/// Loads the extensions of DuckDB that are packages, which it would else take from the web.
const EXTENSIONS: &str = r#"
import importlib, pathlib
import duckdb
for name in ["httpfs", "avro", "delta", "iceberg"]:
    module = importlib.import_module(f"duckdb_extension_{name}")
    [extension] = pathlib.Path(module.__file__).parent.rglob("*.duckdb_extension")
    duckdb.execute(f"LOAD '{extension}'")
"#;

fn published(exports: &str) -> Project {
    let project = Project::new("meters", &format!("{JOB}{exports}"));
    let mut rows = "meter,ts,kwh\n".to_owned();
    for hour in 0..48 {
        for meter in [7, 42] {
            let (day, hour) = (1 + hour / 24, hour % 24);
            let kwh = f64::from(meter + hour) / 4.0;
            rows.push_str(&format!("{meter},2024-03-{day:02}T{hour:02}:00:00Z,{kwh:.3}\n"));
        }
    }
    project.write("in/a.csv", rows);
    project.run_job("meters");
    project
}

/// The fenced blocks of a page: their language, and their text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("\n```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).collect()
}

#[test]
fn each_piece_prints_what_the_guide_says() {
    let page = std::fs::read_to_string(repository().join("docs/guide/engines.md")).unwrap();
    let blocks = blocks(&page);
    let (language, exports) = blocks[0];
    assert_eq!(language, "toml");
    let project = published(exports);

    let mut pieces = 0;
    for pair in blocks[1..].chunks(2) {
        let [("python", piece), ("text", printed)] = pair else { panic!("{pair:?}") };
        pieces += 1;
        let module = piece.split_whitespace().skip_while(|word| !matches!(*word, "import" | "from")).nth(1).unwrap();
        let module = if piece.contains("import chdb") { "chdb" } else { module.split('.').next().unwrap() };
        let needs_extensions = piece.contains("delta_scan");
        let found = match needs_extensions {
            true => delta_python(&project).and(iceberg_python(&project)),
            false => python(&project, if module == "pandas" { "pandas, matplotlib" } else { module }),
        };
        let Some(found) = found else { continue };
        if module == "pyspark" && Command::new("java").arg("-version").output().is_err() {
            skipped("Spark needs a Java runtime");
            continue;
        }

        let before = if needs_extensions { EXTENSIONS } else { "" };
        project.write("piece.py", format!("{before}{piece}"));
        let mut command = Command::new(&found);
        command.args(["-B", "piece.py"]).current_dir(project.path("")).env("MPLBACKEND", "agg");
        let ran = Ran::of(&mut command);
        assert_eq!((ran.code, ran.stdout.trim()), (Some(0), printed.trim()), "{piece}\n{}", ran.stderr);
    }
    assert_eq!(pieces, 8);
}
