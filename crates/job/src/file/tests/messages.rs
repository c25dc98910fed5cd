//! Messages declared in a job file, and read from a `.proto` beside it.

use std::fs;

use super::*;

/// A job with the column `column` in its table and `messages` at its end.
fn job(column: &str, messages: &str) -> String {
    edited(r#"{ qualifier = "ID",        value = "{meter}" }"#, column) + messages
}

const EVENT: &str = r#"{ qualifier = "b", message = "Reading" }"#;
const ALL: &str = r#"{ qualifier = "b", repeated = "Reading" }"#;

/// The job's problems, with `text` in reading.proto beside it.
fn with_proto(job: &str, text: &str) -> Result<Job, String> {
    let (dir, project) = project(job);
    fs::write(dir.path().join("jobs/smart-meters/reading.proto"), text).unwrap();
    Job::load(&project, "smart-meters").map_err(|error| {
        let JobError::File(error) = error else { panic!("{error}") };
        let shown = error.problems().iter().map(|problem| {
            let (line, column) = problem.line_column(error.text());
            format!("{line}:{column} {problem}")
        });
        shown.collect::<Vec<_>>().join("\n")
    })
}

#[test]
fn fields_take_the_types_of_their_columns() {
    let declared = "\n[messages.Reading]\nfields = { kwh = 2, ts = 1, meter = 20000 }\n";
    let job = load(&job(&format!("{EVENT}, {}", ALL.replace("\"b\"", "\"c\"")), declared)).unwrap();
    let messages = &job.tables[0].spec.messages;
    let fields: Vec<_> =
        messages[0].fields.iter().map(|field| (field.name.as_str(), field.number, field.kind.name())).collect();
    assert_eq!((messages.len(), &messages[0].list), (1, &("ReadingList".to_owned(), 1)));
    assert_eq!(fields, [("kwh", 2, "double"), ("ts", 1, "int64"), ("meter", 20_000, "uint64")]);
}

#[test]
fn wrong_messages_are_shown_where_they_are() {
    for (declared, said) in [
        ("Reading]\nfields = { kwhh = 1 }", "31:12 the source `readings` has no column `kwhh` | did you mean `kwh`?"),
        (
            "Reading]\nfields = { kwh = 0 }",
            "31:18 this cannot be the number of the field `kwh` | write 1 to 536870911, but not 19000 to 19999",
        ),
        (
            "Reading]\nfields = { kwh = 19999 }",
            "31:18 this cannot be the number of the field `kwh` | write 1 to 536870911, but not 19000 to 19999",
        ),
        (
            "Reading]\nfields = { kwh = 'x' }",
            "31:18 this cannot be the number of the field `kwh` | write 1 to 536870911, but not 19000 to 19999",
        ),
        (
            "Reading]\nfields = { kwh = 1, ts = 1 }",
            "31:26 `ts` and `kwh` have one number, 1 | give each field a number of its own, and keep it for ever",
        ),
        ("Reading]\nfields = {}", "31:1 `fields` is empty"),
        (
            "Reading]\n",
            "30:11 a message has either `fields` or `proto` | write `fields = { column = 1, .. }`, or `proto = \"file.proto\"`",
        ),
        (
            "Reading]\nproto = \"none.proto\"",
            "31:9 there is no file `none.proto` | the path is relative to the job file",
        ),
        ("Readings]\nfields = { kwh = 1 }", "21:32 there is no message `Reading` | did you mean `Readings`?"),
    ] {
        assert_eq!(problems(&job(EVENT, &format!("\n[messages.{declared}\n"))), [said], "{declared}");
    }
    let odd = "\n[messages.Reading]\nfields = { kwh = 1 }\n[messages.\"a b\"]\nfields = { \"c d\" = 1 }\n";
    let found = problems(&job(EVENT, odd));
    assert!(found[0].starts_with("32:11 `a b` cannot be a name") && found[1].starts_with("33:12 `c d`"), "{found:?}");
    let named = job(&EVENT.replace("Reading", "string"), "\n[messages.string]\nfields = { kwh = 1 }\n");
    assert!(problems(&named)[0].starts_with("30:11 `string` cannot be a name in a `.proto`"));
    // Two names with the same JSON name in protobuf.
    let derived = job(EVENT, "\n[messages.Reading]\nfields = { k_wh = 1, kWh = 2 }\n");
    let derived = derived.replace("max_rejected =", "derive = { k_wh = \"kwh\", kWh = \"kwh\" }\nmax_rejected =");
    let found = problems(&derived);
    assert!(found.len() == 1 && found[0].starts_with("31:11 not protobuf: generated.proto"), "{found:?}");
}

#[test]
fn a_message_of_two_tables_is_told_of_once() {
    let text = job(EVENT, "\n[messages.Reading]\nfields = { kwhh = 1 }\n[tables.OTHER]\nrow_key = \"{meter}\"\n")
        + &format!("[tables.OTHER.families.F]\ncolumns = [{EVENT}]\n");
    assert_eq!(problems(&text).len(), 1);
}

#[test]
fn a_message_of_a_file() {
    let declared = "\n[messages.Reading]\nproto = \"reading.proto\"\n";
    let text = "syntax = \"proto3\";\npackage p.q;\nmessage Outer { repeated Reading all = 7; }\n\
                message Reading { optional float kwh = 4; fixed64 meter = 2; map<string, string> more = 3; }\n";
    let read = with_proto(&job(ALL, declared), text).unwrap();
    let message = &read.tables[0].spec.messages[0];
    let fields: Vec<_> =
        message.fields.iter().map(|field| (field.name.as_str(), field.number, field.kind.name())).collect();
    assert_eq!(fields, [("meter", 2, "fixed64"), ("kwh", 4, "float")]);
    assert_eq!((&message.list, message.has_list), (&("Outer".to_owned(), 7), true));
    assert_eq!(message.proto.as_deref(), Some(text));

    let qualified = job(&ALL.replace("Reading", "p.q.Reading"), &declared.replace("Reading", "\"p.q.Reading\""));
    let alone = text.replace("repeated Reading all = 7;", "");
    let message = &with_proto(&qualified, &alone).unwrap().tables[0].spec.messages[0];
    assert_eq!((&message.list, message.has_list), (&("ReadingList".to_owned(), 1), false));
}

#[test]
fn wrong_files_of_messages() {
    let declared = "\n[messages.Reading]\nproto = \"reading.proto\"\n";
    let proto3 = |body: &str| format!("syntax = \"proto3\";\n{body}\n");
    for (text, said) in [
        (
            proto3("message Reading {\n  double kwh = x;\n}"),
            "31:9 not protobuf: reading.proto:3:16: expected an integer",
        ),
        (
            proto3("message Reading {\n  Kwh kwh = 1;\n}"),
            "31:9 not protobuf: reading.proto:3:3: name 'Kwh' is not defined",
        ),
        (proto3("import \"none.proto\";"), "31:9 not protobuf: reading.proto:2:1: import 'none.proto' not found"),
        (proto3("message Readings { double kwh = 1; }"), "31:9 `reading.proto` has no message `Reading`"),
        (
            proto3("message Reading { double x = 1; }"),
            "31:9 no field of the message `Reading` is a column of the source `readings`",
        ),
        (
            proto3("message Reading { repeated double kwh = 1; }"),
            "31:9 the field `kwh` of the message `Reading` is repeated",
        ),
        (
            proto3("message Reading { map<string, string> kwh = 1; }"),
            "31:9 the field `kwh` of the message `Reading` is a map",
        ),
        (
            proto3("message Reading { message K {} K kwh = 1; }"),
            "31:9 the field `kwh` of the message `Reading` is a message",
        ),
        (
            proto3("message Reading { enum K { A = 0; } K kwh = 1; }"),
            "31:9 the field `kwh` of the message `Reading` is an enum",
        ),
        (
            proto3("message Reading { oneof k { double kwh = 1; } }"),
            "31:9 the field `kwh` of the message `Reading` is one of a oneof",
        ),
        (
            "syntax = \"proto2\"; message Reading { required double x = 1; optional double kwh = 2; }".to_owned(),
            "31:9 the field `x` of the message `Reading` is required",
        ),
        (
            proto3("message Reading { string kwh = 1; }"),
            "21:33 field `kwh` of message `Reading` is string, and the column `kwh` is float64: it takes double or float",
        ),
    ] {
        let found = with_proto(&job(EVENT, declared), &text).unwrap_err();
        assert!(found.starts_with(said), "{text}: {found}");
    }
}
