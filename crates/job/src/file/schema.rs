//! The JSON Schema of job files, generated from the list of keys.

use serde_json::{Map, Value, json};

use tidetable_source::{Format, Preset};

use crate::file::keys::{
    CATALOG, CHECK, COLUMN, COLUMN_TYPE, CSV, EXPORT, FAMILY, FROM, HOOKS, JOB, Key, LIMITS, LINEAGE, MESSAGE, METRICS,
    PUSH, QUERY, SECRET, SOURCE, STAGE, STAGES, STORAGE, Section, TABLE, ValueShape,
};

/// What a key holds, where its [`ValueShape`] does not say it all.
enum Holds {
    /// A table with the keys of this section.
    One(&'static Section),
    /// Tables by name, each with the keys of this section.
    Named(&'static Section),
    /// A string, or a table with the keys of this section, by name.
    NamedOrText(&'static Section),
    /// A list of tables with the keys of this section.
    List(&'static Section),
    /// Strings by name; for messages, field numbers.
    NamedPlain(&'static str),
    /// A reference to a secret, never a string.
    Secret,
    Words(&'static [&'static str]),
}

/// What a key of a section holds; `None` if its shape says it.
fn holds(section: &Section, key: &str) -> Option<Holds> {
    use Holds::{List, Named, NamedOrText, NamedPlain, One, Secret, Words};
    Some(match (section.noun, key) {
        ("job", "sources") => Named(&SOURCE),
        ("job", "tables") => Named(&TABLE),
        ("job", "messages") => Named(&MESSAGE),
        ("job", "exports") => Named(&EXPORT),
        ("job", "checks") => Named(&CHECK),
        ("job", "catalog") => One(&CATALOG),
        ("job", "push") => Named(&PUSH),
        ("job", "hooks") => One(&HOOKS),
        ("job", "metrics") => One(&METRICS),
        ("job", "lineage") => One(&LINEAGE),
        ("job", "stages") => One(&STAGES),
        ("job" | "table", "lint") => NamedPlain("string"),
        ("job", "catch_up") => Words(&["all", "latest", "none"]),
        ("`stages`", _) => One(&STAGE),

        ("source", "storage") => One(&STORAGE),
        (
            "`storage`",
            "secret_access_key"
            | "session_token"
            | "service_account_key"
            | "account_key"
            | "sas_token"
            | "client_secret",
        ) => Secret,
        ("`storage`", key) if !matches!(key, "allow_http" | "anonymous" | "virtual_hosted") => One(&SECRET),

        ("`catalog`", "token") => Secret,

        ("check", "severity") => Words(&["error", "warn"]),
        ("check", "range") => Named(&LIMITS),
        ("check", "rows") => One(&LIMITS),

        ("source", "csv") => One(&CSV),
        ("source", "columns") => NamedOrText(&COLUMN_TYPE),
        ("source", "derive" | "families") => NamedPlain("string"),
        ("source", "format") => Words(&Format::KEYS),
        ("source", "preset") => Words(&Preset::KEYS),
        ("source", "schema") => Words(&["freeze", "evolve", "reject"]),
        ("source", "nan") => Words(&["null", "reject"]),
        ("column type", "decimal") => Words(&[".", ","]),
        ("column type", "thousands") => Words(&[",", ".", " ", "'"]),
        ("`csv`", "decimal") => Words(&[".", ","]),

        ("table", "from") => One(&FROM),
        ("table", "families") => Named(&FAMILY),
        ("table", "window") => Words(&["day", "hour", "week", "month", "none"]),
        ("table", "granularity") => Words(&["millis", "micros"]),
        ("table", "upsert") => Words(&["row"]),
        ("message", "fields") => NamedPlain("integer"),

        ("`from`" | "export" | "check", "query") => One(&QUERY),

        ("family", "columns") => List(&COLUMN),
        ("family", "kind") => Words(&["sum", "min", "max", "hll"]),
        ("column", "encoding") => Words(&["text", "int64", "float64", "bytes", "json"]),
        ("column", "each" | "json") => Words(&["*"]),

        ("export", "per") => Words(&["day", "hour", "month", "query"]),
        ("export", "format") => Words(&["parquet", "csv", "arrow", "bigtable-parquet", "bigtable-avro", "cbt-csv"]),
        ("export", "decimals") => Words(&["exact", "float"]),
        ("export", "mode") => Words(&["replace", "append", "upsert"]),
        _ => return None,
    })
}

/// Required keys of a section, which the reader demands by itself.
fn required(section: &Section) -> &'static [&'static str] {
    match section.noun {
        "job" => &["name"],
        "source" => &["files", "time", "columns"],
        "table" => &["row_key", "families"],
        "`from`" => &["query"],
        "family" => &["columns"],
        "column" => &["qualifier"],
        "export" => &["per", "name", "query"],
        "check" => &["on"],
        "push" => &["table", "to"],
        "`catalog`" => &["uri", "namespace"],
        "`metrics`" => &["file"],
        _ => &[],
    }
}

/// The JSON Schema (draft-07) of job files, by which editors complete keys and underline mistakes.
pub fn job_schema() -> Value {
    let mut schema = table_of(&JOB);
    if let Some(object) = schema.as_object_mut() {
        object.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
        object.insert("title".to_owned(), json!("A job of tidetable"));
    }
    schema
}

fn table_of(section: &Section) -> Value {
    let properties: Map<String, Value> =
        section.keys.iter().map(|key| (key.name.to_owned(), said(key, value_of(section, key)))).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    let required = required(section);
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn said(key: &Key, mut value: Value) -> Value {
    if let Some(object) = value.as_object_mut().filter(|_| !key.says.is_empty()) {
        object.insert("description".to_owned(), json!(key.says));
    }
    value
}

/// An object of any keys, whose values are `item`.
fn by_name(item: Value) -> Value {
    json!({ "type": "object", "additionalProperties": item })
}

fn value_of(section: &Section, key: &Key) -> Value {
    let held = match holds(section, key.name) {
        None => return of_shape(key.shape),
        Some(Holds::Words(words)) => return json!({ "enum": words }),
        Some(Holds::Secret) => return table_of(&SECRET),
        Some(Holds::One(section)) => table_of(section),
        Some(Holds::Named(section)) => by_name(table_of(section)),
        Some(Holds::NamedOrText(section)) => by_name(json!({ "anyOf": [{ "type": "string" }, table_of(section)] })),
        Some(Holds::NamedPlain(kind)) => by_name(json!({ "type": kind })),
        Some(Holds::List(section)) => json!({ "type": "array", "items": table_of(section) }),
    };
    match key.shape {
        ValueShape::TextOrTable => json!({ "anyOf": [{ "type": "string" }, held] }),
        _ => held,
    }
}

fn of_shape(shape: ValueShape) -> Value {
    match shape {
        ValueShape::Flag => json!({ "type": "boolean" }),
        ValueShape::Limit => json!({ "type": ["number", "string"] }),
        ValueShape::Table => json!({ "type": "object" }),
        ValueShape::Tables => json!({ "type": "array", "items": { "type": "object" } }),
        ValueShape::Text => json!({ "type": "string" }),
        ValueShape::TextOrTable => json!({ "type": ["string", "object"] }),
        ValueShape::TextOrWhole => json!({ "type": ["string", "integer"] }),
        ValueShape::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        ValueShape::Whole => json!({ "type": "integer" }),
    }
}
