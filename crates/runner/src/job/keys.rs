//! Every key of a job file, by section: the one list behind reading, "unknown key" and the JSON Schema.

use toml::de::DeValue;

/// A kind of table and the keys it may hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// What the table describes, for messages.
    pub(crate) noun: &'static str,
    pub(crate) keys: &'static [Key],
}

/// One key of a section.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
}

/// The TOML type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Flag,
    /// A number, or a string that SQL compares with.
    Limit,
    Table,
    Tables,
    Text,
    TextOrTable,
    TextOrWhole,
    Texts,
    Whole,
}

impl Shape {
    /// What the items of a list have; `None` for what is no list.
    pub(crate) fn item(self) -> Option<Self> {
        match self {
            Self::Tables => Some(Self::Table),
            Self::Texts => Some(Self::Text),
            _ => None,
        }
    }

    /// Whether `value` has this type, its items aside.
    pub(crate) fn fits(self, value: &DeValue<'_>) -> bool {
        match self {
            Self::Flag => value.is_bool(),
            Self::Limit => value.is_integer() || value.is_float() || value.is_str(),
            Self::Table => value.is_table(),
            Self::Tables | Self::Texts => value.is_array(),
            Self::Text => value.is_str(),
            Self::TextOrTable => value.is_str() || value.is_table(),
            Self::TextOrWhole => value.is_str() || value.is_integer(),
            Self::Whole => value.is_integer(),
        }
    }

    /// What to write, for messages.
    pub(crate) fn wanted(self) -> &'static str {
        match self {
            Self::Flag => "true or false",
            Self::Limit => "a number or a string",
            Self::Table => "a table",
            Self::Tables => "a list of tables `[ { .. }, .. ]`",
            Self::Text => "a string",
            Self::TextOrTable => "a string or a table",
            Self::TextOrWhole => "a string or an integer",
            Self::Texts => "a list of strings `[\"..\", ..]`",
            Self::Whole => "an integer",
        }
    }
}

const fn key(name: &'static str, shape: Shape) -> Key {
    Key { name, shape }
}

pub(crate) static PROJECT: Section = Section { noun: "project", keys: &[key("root", Shape::Text)] };

pub(crate) static JOB: Section = Section {
    noun: "job",
    keys: &[
        key("name", Shape::Text),
        key("description", Shape::Text),
        key("schedule", Shape::Text),
        key("timezone", Shape::Text),
        key("catch_up", Shape::Text),
        key("catch_up_window", Shape::Text),
        key("after", Shape::Texts),
        key("sources", Shape::Table),
        key("tables", Shape::Table),
        key("messages", Shape::Table),
        key("exports", Shape::Table),
        key("checks", Shape::Table),
        key("hooks", Shape::Table),
        key("metrics", Shape::Table),
        key("stages", Shape::Table),
    ],
};

pub(crate) static SOURCE: Section = Section {
    noun: "source",
    keys: &[
        key("files", Shape::Texts),
        key("format", Shape::Text),
        key("csv", Shape::Table),
        key("time", Shape::Text),
        key("max_rejected", Shape::TextOrWhole),
        key("schema", Shape::Text),
        key("columns", Shape::Table),
        key("derive", Shape::Table),
        key("storage", Shape::Table),
    ],
};

pub(crate) static STORAGE: Section = Section {
    noun: "`storage`",
    keys: &[
        key("region", Shape::TextOrTable),
        key("endpoint", Shape::TextOrTable),
        key("allow_http", Shape::Flag),
        key("anonymous", Shape::Flag),
        key("virtual_hosted", Shape::Flag),
        key("access_key_id", Shape::TextOrTable),
        // A string is refused with better advice than that of a wrong type.
        key("secret_access_key", Shape::TextOrTable),
        key("session_token", Shape::TextOrTable),
        key("service_account_key", Shape::TextOrTable),
        key("account_name", Shape::TextOrTable),
        key("account_key", Shape::TextOrTable),
        key("sas_token", Shape::TextOrTable),
        key("tenant_id", Shape::TextOrTable),
        key("client_id", Shape::TextOrTable),
        key("client_secret", Shape::TextOrTable),
    ],
};

/// Where a value stands that is not written into the job file.
pub(crate) static SECRET: Section =
    Section { noun: "value from elsewhere", keys: &[key("env", Shape::Text), key("file", Shape::Text)] };

pub(crate) static HOOKS: Section = Section {
    noun: "`hooks`",
    keys: &[
        key("success", Shape::Texts),
        key("warning", Shape::Texts),
        key("failure", Shape::Texts),
        key("interrupt", Shape::Texts),
        key("finish", Shape::Texts),
        key("error", Shape::Texts),
        key("timeout", Shape::Text),
        key("heartbeat", Shape::TextOrTable),
    ],
};

/// Stages of a run, by the names of [`super::Stage`].
pub(crate) static STAGES: Section = Section {
    noun: "`stages`",
    keys: &[
        key("load", Shape::Table),
        key("derive", Shape::Table),
        key("publish", Shape::Table),
        key("compact", Shape::Table),
    ],
};

pub(crate) static STAGE: Section =
    Section { noun: "stage", keys: &[key("retries", Shape::Whole), key("wait", Shape::Text)] };

pub(crate) static METRICS: Section = Section { noun: "`metrics`", keys: &[key("file", Shape::Text)] };

pub(crate) static CSV: Section = Section {
    noun: "`csv`",
    keys: &[
        key("delimiter", Shape::Text),
        key("quote", Shape::Text),
        key("header", Shape::Flag),
        key("null", Shape::Texts),
        key("comment", Shape::Text),
        key("decimal", Shape::Text),
    ],
};

pub(crate) static COLUMN_TYPE: Section = Section {
    noun: "column type",
    keys: &[key("type", Shape::Text), key("format", Shape::Text), key("timezone", Shape::Text)],
};

pub(crate) static TABLE: Section = Section {
    noun: "table",
    keys: &[
        key("from", Shape::TextOrTable),
        key("where", Shape::Text),
        key("row_key", Shape::Text),
        key("window", Shape::Text),
        key("granularity", Shape::Text),
        key("unpivot", Shape::Texts),
        key("upsert", Shape::Text),
        key("families", Shape::Table),
    ],
};

pub(crate) static FROM: Section =
    Section { noun: "`from`", keys: &[key("query", Shape::Table), key("time", Shape::Text)] };

pub(crate) static FAMILY: Section = Section {
    noun: "family",
    keys: &[key("gc", Shape::Text), key("kind", Shape::Text), key("columns", Shape::Tables)],
};

pub(crate) static COLUMN: Section = Section {
    noun: "column",
    keys: &[
        key("qualifier", Shape::Text),
        key("value", Shape::Text),
        key("encoding", Shape::Text),
        key("timestamp", Shape::TextOrWhole),
        key("each", Shape::Text),
        key("except", Shape::Texts),
        key("message", Shape::Text),
        key("repeated", Shape::Text),
        key("json", Shape::Text),
    ],
};

pub(crate) static MESSAGE: Section =
    Section { noun: "message", keys: &[key("fields", Shape::Table), key("proto", Shape::Text)] };

pub(crate) static EXPORT: Section = Section {
    noun: "export",
    keys: &[
        key("per", Shape::Text),
        key("name", Shape::Text),
        key("format", Shape::Text),
        key("mode", Shape::Text),
        key("keys", Shape::Texts),
        key("file_size", Shape::Text),
        key("delta", Shape::Flag),
        key("query", Shape::Table),
    ],
};

pub(crate) static QUERY: Section =
    Section { noun: "query", keys: &[key("file", Shape::Text), key("sql", Shape::Text)] };

pub(crate) static CHECK: Section = Section {
    noun: "check",
    keys: &[
        key("on", Shape::Text),
        key("severity", Shape::Text),
        key("not_null", Shape::Texts),
        key("unique", Shape::Texts),
        key("range", Shape::Table),
        key("rows", Shape::Table),
        key("query", Shape::Table),
    ],
};

pub(crate) static LIMITS: Section =
    Section { noun: "limits", keys: &[key("min", Shape::Limit), key("max", Shape::Limit)] };
