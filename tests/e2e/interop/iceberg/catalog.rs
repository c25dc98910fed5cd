//! PyIceberg reads tables by their names from a REST catalog, to which runs commit them.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::tables::{FIRST, JOB, SECOND, THIRD, column, newest, write};
use crate::harness::system::{KilledOnDrop, python};
use crate::harness::{Project, Ran, json_lines, repository};

const TOKEN: &str = "HUSHHUSH";

/// A project whose job has a catalog.
struct World {
    project: Project,
    python: PathBuf,
    /// Files of the catalog.
    folder: TempDir,
    port: u16,
    server: Option<KilledOnDrop>,
}

impl World {
    /// A catalog that answers, and a job of which nothing is published yet; `None` without PyIceberg.
    fn new(more: &str) -> Option<Self> {
        let project = Project::new("j", "");
        let python = python(&project, "pyiceberg.catalog.sql, sqlalchemy, pyarrow")?;
        let mut world = Self { project, python, folder: TempDir::new().unwrap(), port: 0, server: None };
        world.begin();
        world.job(more, "price, note");
        write(&world.project, &[FIRST, SECOND, THIRD]);
        Some(world)
    }

    /// Writes the job with these columns at the end of its query.
    fn job(&self, more: &str, columns: &str) {
        let job = JOB.replace("iceberg = true\n", &format!("iceberg = true\n{more}"));
        let job = job.replace("price, note from", &format!("{columns} from"));
        let catalog = format!(
            "\n[catalog]\nuri = \"{}\"\nwarehouse = \"w\"\nnamespace = \"plant.meters\"\ntoken = {{ env = \"TOKEN\" }}\n",
            self.uri()
        );
        self.project.write("jobs/j/job.toml", job + &catalog);
    }

    fn uri(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Starts the server, on the port that it had.
    fn begin(&mut self) {
        let mut command = Command::new(&self.python);
        command.arg("-B").arg(script()).arg("serve").arg(self.folder.path()).env("TOKEN", TOKEN);
        let port = Some(self.port).filter(|port| *port > 0).map(|port| port.to_string());
        let mut child = KilledOnDrop(command.args(port).stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        self.port = line.trim().parse().unwrap();
        self.server = Some(child);
    }

    /// Ends the server.
    fn end(&mut self) {
        drop(self.server.take());
    }

    fn run_with(&self, token: &str, args: &[&str]) -> Ran {
        let ran = Ran::of(self.project.command(args).env("TOKEN", token));
        assert!(!ran.stdout.contains(TOKEN) && !ran.stderr.contains(TOKEN), "{}{}", ran.stdout, ran.stderr);
        ran
    }

    /// Runs the job, which must end so; what it says.
    fn run(&self, code: i32) -> String {
        let ran = self.run_with(TOKEN, &["run", "j"]);
        let said = ran.stdout + &ran.stderr;
        assert_eq!(ran.code, Some(code), "{said}");
        said
    }

    /// What the client does and says.
    fn client(&self, args: &[&str]) -> Value {
        let mut command = Command::new(&self.python);
        command.arg("-B").arg(script()).args([args[0], &self.uri()]).args(&args[1..]).env("TOKEN", TOKEN);
        let ran = Ran::of(&mut command);
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
        json_lines(&ran.stdout).pop().unwrap_or_default()
    }

    /// The changes that the server was asked for since the last call, with the status of each answer.
    fn changes(&self) -> Vec<String> {
        let asked = self.asked();
        let changes = asked.into_iter().filter(|line| line.starts_with("POST"));
        changes.map(|line| line.replace("/v1/of/w/namespaces/plant%1Fmeters", "")).collect()
    }

    /// All requests since the last call.
    fn asked(&self) -> Vec<String> {
        let path = self.folder.path().join("requests");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, "").unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn fault(&self, what: &str) {
        std::fs::write(self.folder.path().join("fault"), what).unwrap();
    }

    fn replace_day(&self, price: &str) {
        write(&self.project, &[FIRST, SECOND, &THIRD.replace("3.00", price)]);
    }

    /// Prices as the client reads them.
    fn prices(&self, args: &[&str]) -> Vec<Option<String>> {
        column(&self.client(args), "price")
    }

    /// Checks that the catalog has the snapshots and columns of the metadata beside the files, and the client its rows.
    fn agrees(&self) {
        let (_, metadata) = newest(&self.project);
        let state = self.client(&["state"]);
        let ours = metadata["snapshots"].as_array().unwrap();
        let ids: Vec<&Value> = ours.iter().map(|snapshot| &snapshot["snapshot-id"]).collect();
        assert_eq!(state["snapshots"], json!(ids), "{state}");
        assert_eq!(state["head"], metadata["current-snapshot-id"]);
        assert_eq!(state["uuid"], metadata["table-uuid"]);
        let current = metadata["current-schema-id"].as_u64().unwrap();
        let schemas = metadata["schemas"].as_array().unwrap();
        let schema = schemas.iter().find(|schema| schema["schema-id"] == current).unwrap();
        let fields = schema["fields"].as_array().unwrap().iter();
        let fields: Vec<_> = fields.map(|field| json!([field["id"], field["name"]])).collect();
        assert_eq!(state["columns"], json!(fields));

        let ours = self.project.sql("select cast(price as varchar) as price from exports.E");
        let mut prices: Vec<_> = ours.iter().map(|row| row["price"].as_str().map(str::to_owned)).collect();
        prices.sort();
        assert_eq!(self.prices(&["read"]), prices);
        self.asked();
    }
}

fn script() -> PathBuf {
    repository().join("tests/e2e/interop/iceberg/catalog.py")
}

fn texts<const N: usize>(values: [&str; N]) -> Vec<Option<String>> {
    values.map(|value| Some(value.to_owned()).filter(|value| !value.is_empty())).to_vec()
}

#[test]
fn each_run_is_a_commit() {
    let Some(world) = World::new("") else { return };
    world.run(0);
    let created = ["POST /v1/of/w/namespaces 200", "POST /v1/of/w/namespaces 200", "POST /register 200"];
    assert_eq!(world.changes(), created, "both levels of the namespace");
    world.agrees();

    world.replace_day("4.00");
    world.run(0);
    assert_eq!(world.changes(), ["POST /tables/E 200"]);
    world.agrees();
    write(&world.project, &[FIRST, SECOND]);
    world.run(0);
    world.agrees();
    world.job("", "price, note, kwh");
    world.run(0);
    assert_eq!(world.changes(), ["POST /tables/E 200"]);
    world.agrees();
    world.job("", "price, kwh");
    world.run(0);
    world.agrees();
    for (number, prices) in [("0", &["", "1.50", "3.00"][..]), ("1", &["", "1.50", "4.00"]), ("2", &["", "1.50"])] {
        let prices: Vec<_> =
            prices.iter().map(|price| Some((*price).to_owned()).filter(|price| !price.is_empty())).collect();
        assert_eq!(world.prices(&["read", number]), prices, "{number}");
    }
    world.asked();

    // A run that owes nothing asks nothing, and files of the catalog beside the metadata are no damage.
    world.run(0);
    assert_eq!(world.asked(), [""; 0]);
    for command in [&["verify", "--exports"][..], &["doctor"], &["status"], &["clean"], &["check", "j"]] {
        world.project.ok(command);
    }
    assert_eq!(world.asked(), [""; 0]);
}

#[test]
fn what_a_catalog_that_was_down_lacks_is_committed_once() {
    let Some(mut world) = World::new("") else { return };
    world.end();
    let said = world.run(4);
    let table = format!("plant.meters.E of {}, warehouse w", world.uri());
    assert!(
        said.contains(&format!("commit {table} was left undone")) && said.contains("the next run commits"),
        "{said}"
    );
    assert_eq!(world.project.sql("select count(*) as n from exports.E"), [json!({ "n": 3 })]);
    let said = world.project.messages(&["status"]);
    assert!(said.contains("lacks version 1 of E: the next run commits it"), "{said}");
    world.replace_day("4.00");
    world.run(4);

    // Nothing else is new.
    world.begin();
    world.run(0);
    assert_eq!(world.changes().last().map(String::as_str), Some("POST /register 200"));
    world.agrees();
    assert!(!world.project.messages(&["status"]).contains("lacks version"));

    // Two versions behind.
    world.end();
    world.replace_day("5.00");
    world.run(4);
    world.job("", "price, note, kwh");
    world.run(4);
    world.begin();
    world.run(0);
    assert_eq!(world.changes(), ["POST /tables/E 200"]);
    world.agrees();
    world.run(0);
    assert_eq!(world.asked(), [""; 0]);
}

#[test]
fn a_lost_reply_is_no_second_commit() {
    let Some(world) = World::new("") else { return };
    world.fault("lose");
    world.run(0);
    world.changes();
    world.replace_day("4.00");
    world.fault("lose");
    world.run(0);
    assert_eq!(world.changes(), ["POST /tables/E 200"]);
    world.agrees();

    // Refused once, and made anew.
    for (fault, status) in [("refuse", 503), ("race", 409)] {
        world.replace_day(&format!("{status}.00"));
        world.fault(fault);
        world.run(0);
        assert_eq!(world.changes(), [format!("POST /tables/E {status}"), "POST /tables/E 200".to_owned()]);
        world.agrees();
    }
}

#[test]
fn a_run_that_was_killed_before_its_commit_is_completed() {
    let Some(world) = World::new("") else { return };
    world.run(0);
    let list = world.project.read("data/exports/E.json");
    world.replace_day("4.00");
    world.run(0);
    // As it is between the metadata and the commit, and between the commit and the list: the list notes the version before.
    let noted = |text: &str| serde_json::from_str::<Value>(text).unwrap()["cataloged"].clone();
    let mut behind: Value = serde_json::from_str(&world.project.read("data/exports/E.json")).unwrap();
    behind["cataloged"] = noted(&list);
    world.project.write("data/exports/E.json", behind.to_string());
    world.changes();
    world.run(0);
    assert_eq!(world.changes(), [""; 0], "the catalog has it");
    assert_eq!(noted(&world.project.read("data/exports/E.json"))["version"], 2);

    behind["cataloged"] = json!(null);
    world.project.write("data/exports/E.json", behind.to_string());
    world.client(&["drop"]);
    world.run(0);
    assert_eq!(world.changes(), ["POST /register 200"]);
    world.agrees();
}

#[test]
fn refusals_leave_the_files_and_name_a_way_on() {
    let Some(world) = World::new("") else { return };
    let refused = |token: &str, wanted: &[&str]| {
        let ran = world.run_with(token, &["run", "j"]);
        assert_eq!(ran.code, Some(4), "{}", ran.stderr);
        for wanted in wanted {
            assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
        }
    };
    refused("wrong", &["plant.meters.E", "401", "(not authorized: Bearer ***)", "check `token`"]);
    let ran = Ran::of(world.project.command(&["run", "j"]).env_remove("TOKEN"));
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(ran.stderr.contains("the environment variable TOKEN is not set"), "{}", ran.stderr);
    assert_eq!(world.project.sql("select count(*) as n from exports.E"), [json!({ "n": 3 })]);

    let job = world.project.read("jobs/j/job.toml");
    world.project.write("jobs/j/job.toml", job.replace("warehouse = \"w\"", "warehouse = \"of another & place\""));
    refused(TOKEN, &["404", "there is no such warehouse", "check `uri` and `warehouse`"]);
    world.project.write("jobs/j/job.toml", job);
    world.run(0);
    world.agrees();
}

#[test]
fn commits_of_others_are_not_undone() {
    let Some(world) = World::new("") else { return };
    world.run(0);
    world.client(&["write"]);
    world.replace_day("4.00");
    let said = world.run(4);
    assert!(
        said.contains("another writer has committed the snapshot") && said.contains("drop the table there"),
        "{said}"
    );
    assert_eq!(world.project.sql("select sum(price) as p from exports.E").len(), 1);
    assert_eq!(world.prices(&["read"]), texts(["1.50"]), "as the other writer left it");
    world.client(&["drop"]);
    world.run(0);
    world.agrees();

    // Metadata that was begun anew is another table.
    world.replace_day("5.00");
    world.run(0);
    for version in 1..=3 {
        std::fs::remove_file(world.project.path(&format!("data/exports/E/metadata/v{version}.metadata.json"))).unwrap();
    }
    let said = world.run(4);
    assert!(said.contains("another one than that of this export"), "{said}");
}

#[test]
fn snapshots_go_from_the_catalog_before_their_files() {
    let Some(world) = World::new("snapshot_retention = \"1h\"\n") else { return };
    world.run(0);
    world.replace_day("4.00");
    world.run(0);
    world.client(&["tag", "month", "0"]);
    world.replace_day("5.00");
    world.run(0);

    // An hour later.
    let (path, mut metadata) = newest(&world.project);
    let earlier = |value: &mut Value| *value = json!(value.as_i64().unwrap() - 3_600_001);
    for key in ["snapshots", "snapshot-log", "metadata-log"] {
        metadata[key].as_array_mut().unwrap().iter_mut().for_each(|entry| earlier(&mut entry["timestamp-ms"]));
    }
    earlier(&mut metadata["last-updated-ms"]);
    world.project.write(&path, metadata.to_string());
    let files =
        |world: &World| world.project.files("data/exports").keys().filter(|path| path.ends_with(".parquet")).count();
    assert_eq!(files(&world), 5);
    world.project.ok(&["clean", "--yes"]);
    assert_eq!(files(&world), 5, "the catalog names them");

    let paths: Vec<String> = world.project.files("data/exports").into_keys().collect();
    for path in paths {
        let file = std::fs::File::options().append(true).open(world.project.path(&path)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3601)).unwrap();
    }
    world.replace_day("6.00");
    world.run(0);
    let state = world.client(&["state"]);
    assert_eq!(state["refs"], json!(["main", "month"]));
    assert_eq!(state["snapshots"].as_array().unwrap().len(), 3, "the second one is gone: {state}");
    world.agrees();
    world.project.ok(&["clean", "--yes"]);
    assert_eq!(files(&world), 5, "without the file of the second one");
    assert_eq!(world.prices(&["read", "0"]), texts(["", "1.50", "3.00"]));
    world.agrees();
    world.project.ok(&["verify", "--exports"]);
}

#[test]
fn a_catalog_that_cannot_be_is_refused() {
    const CATALOG: &str = "\n[catalog]\nuri = \"http://127.0.0.1:1\"\nnamespace = \"plant\"\n";
    for (from, to, wrong) in [
        ("http://127.0.0.1:1", "catalog:8181", "write http://HOST:PORT or https://HOST"),
        ("http://127.0.0.1:1", "http://u:HUSH@h", "write http://HOST:PORT or https://HOST"),
        ("\"plant\"", "\"plant..meters\"", "with dots between them"),
        ("\"plant\"", "\"plant/meters\"", "with dots between them"),
        ("namespace", "namespaces", "did you mean `namespace`?"),
        ("namespace = \"plant\"\n", "", "add `namespace`"),
        ("namespace = \"plant\"\n", "namespace = \"plant\"\ntoken = \"HUSH\"\n", "write `token = { env = \"NAME\" }`"),
        ("iceberg = true\n", "", "write `iceberg = true` in an export"),
    ] {
        let project = Project::new("j", &format!("{JOB}{CATALOG}").replace(from, to));
        write(&project, &[FIRST]);
        let said = project.fails(2, &["check", "j"]);
        assert!(said.contains(wrong) && !said.contains("HUSH"), "{to}: {said}");
    }
}
