//! Jobs for several files: directories, patterns and lists.

use super::rows;
use crate::harness::Project;

/// A project with two files of a kind, one with a column more, and one of another kind.
fn project() -> Project {
    let project = Project::empty();
    project.write("in/1.csv", rows(0, 20));
    project.write("in/2.csv", rows(20, 20));
    project.write("in/3.csv", rows(40, 20).replace('\n', ",9\n").replace("v,9", "v,hum"));
    project.write("in/stations.csv", "id,name,place\n1,a,here\n2,b,there\n3,c,nowhere\n");
    project
}

#[test]
fn directories_patterns_and_lists_are_proposed_for_all_their_files() {
    for (job, from) in [
        ("folder", &["in"][..]),
        ("slash", &["./in/"]),
        ("pattern", &["in/*.csv"]),
        ("list", &["in/1.csv", "in/2.csv", "in/3.csv", "in/stations.csv"]),
    ] {
        let project = project();
        let said = project.ok(&[&["new", job, "--from"], from].concat());
        assert!(said.contains("in/stations.csv is left out, because it is not like the others"), "{job}: {said}");
        assert!(said.contains("hum is not in all files (in/1.csv lacks it)"), "{job}: {said}");
        assert!(said.contains("3 files are of one kind"), "{job}: {said}");
        project.ok(&["run", job]);
        let table = job.to_uppercase();
        let counted = project.csv(&format!("select count(*) as n, count(hum) as hum from {table}"));
        assert_eq!(counted, "n,hum\n60,20\n", "{job}");
    }
}

#[test]
fn a_list_that_a_shell_expanded_is_one_pattern() {
    let project = Project::empty();
    project.write("in/1.csv", rows(0, 20));
    project.write("in/2.csv", rows(20, 20).replace(".5", ""));
    project.ok(&["new", "a", "--from", "in/1.csv", "in/2.csv"]);
    let text = project.read("jobs/a/job.toml");
    assert!(text.contains("files = [\"in/*.csv\"]"), "{text}");
    project.ok(&["run", "a"]);
    assert_eq!(project.sql("select count(*) as n from A")[0]["n"], 40);
}

#[test]
fn advise_and_compare_take_them_too() {
    let project = project();
    project.write(
        "w.toml",
        "[queries.day]\ntable = \"ADVISED\"\nrate = \"1/h\"\nsql = \"select * from ADVISED where host = $host\"\n",
    );
    let compared = project.succeeds(&["compare", "in"]);
    assert!(compared.stderr.contains("in/stations.csv is left out"), "{}", compared.stderr);
    assert!(compared.stdout.contains("COMPARED"), "{}", compared.stdout);
}

#[test]
fn what_is_not_there_is_said() {
    let project = Project::empty();
    project.write("in/notes.md", "x");
    let error = project.fails(2, &["new", "a", "--from", "in"]);
    assert!(error.contains("in/notes.md is not read"), "{error}");
    let error = project.fails(2, &["new", "a", "--from", "in/*.csv"]);
    assert!(error.contains("there is no file with a name that ends in .csv"), "{error}");
}
