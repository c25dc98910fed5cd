//! The commands of `docs/recipes.md`, run as they stand there.

use std::fs;

use crate::harness::{Project, repository};

const JOB: &str = r#"name = "meters"
[sources.readings]
files = ["in/*.csv"]
time = "ts"
max_rejected = "50%"
[sources.readings.columns]
meter = "uint64"
ts = "timestamp"
kwh = "float64"
[tables.SENSOR]
row_key = "{meter:03}#{ts:%Y%m%d}"
[tables.SENSOR.families.M]
columns = [{ qualifier = "{ts:%H%M}", value = "{kwh}" }]
[exports.SENSOR_DAY]
per = "day"
name = "SENSOR_{day:%Y%m%d}"
query = { sql = "SELECT * FROM SENSOR ORDER BY meter, ts" }
"#;

/// The words of a line of a shell: quotes hold words together, and `#` after a blank begins a comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.chars() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, open @ ('"' | '\'')) => {
                quote = Some(open);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#') if word.is_none() => break,
            (_, character) => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

#[test]
fn every_recipe_works_as_it_is_written() {
    let text = fs::read_to_string(repository().join("docs/recipes.md")).unwrap();
    let recipes: Vec<&str> = text.split("\n## ").skip(1).collect();
    assert_eq!(recipes.len(), 6);
    for recipe in recipes {
        let project = Project::new("meters", JOB);
        project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T00:00:00Z,1.5\nx,y,z\n");
        project.ok(&["run", "meters"]);
        project.write("in/b.csv", "meter,ts,kwh\n1,2020-01-02T06:00:00Z,2.5\nx,y,z\n");
        // A file where the folder of a day goes: only the first recipe begins with a run that failed.
        let in_the_way = project.path("data/exports/SENSOR_20200102");
        let fails = recipe.contains("retry last");
        if fails {
            project.write("data/exports/SENSOR_20200102", "in the way");
            project.fails(4, &["run", "meters"]);
        } else {
            project.ok(&["run", "meters"]);
        }
        let commands: Vec<&str> = recipe.lines().filter(|line| line.starts_with("tidetable ")).collect();
        assert!(commands.len() >= 4, "{recipe}");
        for command in commands {
            let words = words(command);
            let args: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
            if args[0] == "doctor" && fails {
                let said = project.run(&args);
                assert_eq!((said.code, said.stdout.matches("  costs ").count()), (Some(1), 1), "{}", said.stdout);
                assert!(said.stdout.contains("exports/SENSOR_20200102: it is a file"), "{}", said.stdout);
                continue;
            }
            if args[0] == "retry" {
                fs::remove_file(&in_the_way).unwrap();
            }
            project.ok(&args);
        }
        if fails {
            assert!(in_the_way.is_dir(), "the day is published");
        }
    }
}

#[test]
fn words_are_those_of_a_shell() {
    assert_eq!(words("tidetable read T --prefix '001#' # a comment"), ["tidetable", "read", "T", "--prefix", "001#"]);
    assert_eq!(words("tidetable sql 'select \"a\"'"), ["tidetable", "sql", "select \"a\""]);
}
