//! The reference of JSON output, and the consistency of its lists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::json;

use super::shape::shaped;
use super::*;
use crate::output::key::{Key, Kind, key};

/// Commands with the keys of the objects they print.
const COMMANDS: &[(&[&str], &[Key])] = &[
    (&["new"], NEW),
    (&["new --stdout"], PROPOSAL),
    (&["check"], FINDINGS),
    (&["check --data"], MEASURED),
    (&["compare"], COMPARED),
    (&["advise"], ADVICE),
    (&["heatmap"], HEATMAP),
    (&["lint"], LINT),
    (&["lint --rules"], LINT_RULES),
    (&["plan", "run --dry-run"], PLAN),
    (&["run", "retry", "replay", "history --run"], RUN),
    (&["run --catch-up --dry-run"], MOMENTS),
    (&["schedule --check"], SCHEDULED),
    (&["status"], STATUS),
    (&["report"], REPORT),
    (&["history"], HISTORY),
    (&["lineage"], LINKS),
    (&["rejects"], REJECTS),
    (&["sql \"SUMMARIZE ..\""], SUMMARY),
    (&["sql \"SHOW TABLES\""], SHOWN_TABLES),
    (&["read"], READ),
    (&["read --keys-only"], READ_KEYS),
    (&["export"], WRITTEN),
    (&["push"], PUSHED),
    (&["pull"], PULLED),
    (&["diff"], COMPARED_CELLS),
    (&["tables"], TABLES),
    (&["describe"], MANIFEST),
    (&["delete", "drop-rows"], DELETED),
    (&["drop"], DROPPED),
    (&["compact"], COMPACTION),
    (&["compact --dry-run"], MERGES),
    (&["vacuum"], VACUUMED),
    (&["clean"], CLEANED),
    (&["inspect"], INSPECTION),
    (&["backup", "backup --list", "restore"], BACKUPS),
    (&["backup --verify"], BACKUP_DAMAGE),
    (&["copy"], COPIED),
    (&["cache"], CACHED),
    (&["verify"], VERIFIED),
    (&["doctor"], DAMAGE),
    (&["repair"], LOST_SSTS),
];

/// Commands that print other text, whatever `--output` says.
const OF_ANOTHER_FORM: &[&str] =
    &["try", "proto", "schema", "completions", "complete", "man", "serve", "scheduler", "executor"];

const ABOUT: &str = "\
# JSON of commands

With `--output json` these commands print one object a line. Each object has all keys of its list; new keys may come, and those that
are here keep their names and types. A value is null only where its type says so.

| type | value |
|---|---|
| string, boolean | as in JSON |
| integer, number | a number, integers without a fraction; sizes are bytes |
| time | a string, RFC 3339 in UTC: `2026-11-22T10:00:00Z`, with 3 or 6 digits of a fraction if there is one |
| day | a string: `2026-11-22` |
| bytes | a string if they are UTF-8, else `{\"base64\": \"..\"}` |
| null or .. | null where there is no value |
| list of .. | an array |
| object | an object, whose keys follow as `key.inner`; of a list as `key[].inner` |
| named .. | an object whose keys are names, such as those of stages, in snake_case |

Rows of `sql`, of `try`, and of `export --format json`, have the columns of the query: times there have the zone of the column, and decimals keep their
scale. `proto`, `schema`, `completions` and `man` print text of their own form.
";

impl Kind {
    /// Its name in the reference.
    fn word(&self) -> String {
        match self {
            Self::Text => "string".to_owned(),
            Self::Integer => "integer".to_owned(),
            Self::Number => "number".to_owned(),
            Self::Truth => "boolean".to_owned(),
            Self::Time => "time".to_owned(),
            Self::Day => "day".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::OrNull(kind) => format!("null or {}", kind.word()),
            Self::List(kind) => format!("list of {}", kind.word()),
            Self::Object(_) => "object".to_owned(),
            Self::Named(kind) => format!("named {}", kind.word()),
        }
    }

    /// The keys inside, and the separator from the key.
    fn inside(&self) -> Option<(String, &'static [Key])> {
        match self {
            Self::Object(keys) => Some((String::new(), keys)),
            Self::OrNull(kind) => kind.inside(),
            Self::List(kind) => kind.inside().map(|(between, keys)| (format!("[]{between}"), keys)),
            _ => None,
        }
    }
}

fn add(page: &mut String, before: &str, keys: &[Key]) {
    let mut names = BTreeSet::new();
    for Key { name, kind, says, .. } in keys {
        let snake = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        assert!(
            snake && name.starts_with(|first: char| first.is_ascii_lowercase()),
            "{before}{name} is not snake_case"
        );
        assert!(names.insert(name) && !says.is_empty(), "{before}{name}");
        page.push_str(&format!("| `{before}{name}` | {} | {says} |\n", kind.word()));
        if let Some((between, keys)) = kind.inside() {
            add(page, &format!("{before}{name}{between}."), keys);
        }
    }
}

#[test]
fn the_reference_is_written_from_the_lists() {
    let mut page = ABOUT.to_owned();
    for (commands, keys) in COMMANDS {
        let commands: Vec<String> = commands.iter().map(|command| format!("`{command}`")).collect();
        page.push_str(&format!("\n## {}\n\n| key | type | |\n|---|---|---|\n", commands.join(", ")));
        add(&mut page, "", keys);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/json-output.md");
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&path, &page).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == page,
        "docs/reference/json-output.md: `just snapshots` writes it anew"
    );
}

#[test]
fn every_command_is_in_the_list() {
    let listed = COMMANDS.iter().flat_map(|(commands, _)| *commands).filter_map(|command| command.split(' ').next());
    let listed: BTreeSet<&str> = listed.chain(OF_ANOTHER_FORM.iter().copied()).collect();
    let all = crate::args::command();
    let all: BTreeSet<&str> =
        all.get_subcommands().map(clap::Command::get_name).filter(|name| *name != "help").collect();
    assert_eq!(listed, all);
}

#[test]
fn what_is_stored_is_brought_into_form() {
    const INNER: &[Key] =
        &[key("at", Kind::OrNull(&Kind::Time), "t"), key("seconds", Kind::Number, "s").stored_as("s")];
    const KEYS: &[Key] = &[
        key("days", Kind::List(&Kind::Day), "d"),
        key("key", Kind::Bytes, "k"),
        key("inner", Kind::Object(INNER), "i"),
        key("by", Kind::Named(&Kind::Integer), "b"),
        key("flag", Kind::Truth, "f"),
    ];
    let stored = json!({
        "days": [0, -1], "key": "61ff", "inner": { "at": 1_577_836_800_000_001_i64, "s": 2 }, "by": { "same content": 3 },
        "not_promised": 1,
    });
    let shown = json!({
        "days": ["1970-01-01", "1969-12-31"], "key": { "base64": "Yf8=" },
        "inner": { "at": "2020-01-01T00:00:00.000001Z", "seconds": 2 }, "by": { "same_content": 3 }, "flag": false,
    });
    assert_eq!(shaped(stored, KEYS), shown);
    let nothing = shaped(json!({ "key": "6162", "inner": { "at": i64::MIN } }), KEYS);
    let said = json!({ "days": [], "key": "ab", "inner": { "at": null, "seconds": 0.0 }, "by": {}, "flag": false });
    assert_eq!(nothing, said);
}
