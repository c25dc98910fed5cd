//! Reads `[lineage]`: where the events of a job's runs go.

use std::path::PathBuf;

use tidetable_source::is_http;

use crate::file::fields::{Fields, Reader};
use crate::file::keys::LINEAGE;
use crate::file::problem::Mistake;
use crate::file::sections::storage::{SettingValue, elsewhere};

/// The namespace of jobs without one of their own.
const NAMESPACE: &str = "tidetable";

/// Where the events of a job's runs go, in the form of [OpenLineage](https://openlineage.io/docs/spec/object-model).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineageSettings {
    /// Who receives them.
    pub target: LineageTarget,
    /// The namespace of the job in them.
    pub namespace: String,
}

/// Who receives the events of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineageTarget {
    /// A server, to which each event is posted.
    Url {
        /// The URL with its path.
        url: SettingValue,
        /// Bearer token of the requests.
        token: Option<SettingValue>,
    },
    /// A file to which a line is appended for each event, relative to the project directory.
    File(PathBuf),
}

/// Reads `[lineage]`; `None` without it.
pub(crate) fn read(reader: &mut Reader<'_>, job: &Fields<'_>) -> Option<LineageSettings> {
    let at = job.key_at("lineage");
    let fields = Fields::of_value(reader, &LINEAGE, job.value("lineage")?, at.clone())?;
    let namespace = fields.text(reader, "namespace").map_or_else(|| NAMESPACE.to_owned(), |text| text.owned());
    let token = match fields.text(reader, "token") {
        Some(text) => {
            reader.refuse(text.at.clone(), Mistake::PlainSecret { key: "token" });
            None
        }
        None => elsewhere(reader, &fields, "token"),
    };

    let target = match (fields.value("url"), fields.text(reader, "file")) {
        (Some(value), None) => {
            let url = match value.get_ref().as_str() {
                Some(url) if is_http(url) => SettingValue::Plain(url.to_owned()),
                Some(_) => {
                    reader.refuse(fields.value_at("url"), Mistake::NoUrl { key: "url" });
                    return None;
                }
                None => elsewhere(reader, &fields, "url")?,
            };
            LineageTarget::Url { url, token }
        }
        (None, Some(file)) => LineageTarget::File(PathBuf::from(reader.path("file", &file, "a file of events")?)),
        _ => {
            reader.refuse(at, Mistake::LineageTarget);
            return None;
        }
    };
    Some(LineageSettings { target, namespace })
}
