//! What names and functions of a session mean in queries of system catalogs.

use std::ops::Range;
use std::sync::Arc;

use tidetable_sql::{ScalarValue, SystemNames};

use crate::catalog::cache::Catalog;
use crate::catalog::relations::oids_of;
use crate::catalog::{DATABASE, shapes};
use crate::statement::{Settings, VERSION};
use crate::types::{PgType, TYPES};

/// A session as queries of system catalogs see it.
#[derive(Debug)]
pub(crate) struct SessionNames {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) settings: Settings,
    pub(crate) user: String,
    pub(crate) process: i32,
}

impl SystemNames for SessionNames {
    fn relation(&self, name: &str) -> Option<i64> {
        let parts = name_parts(name);
        let (schema, table) = match parts.as_slice() {
            [table] => (None, table),
            [.., schema, table] => (Some(schema.as_str()), table),
            [] => return None,
        };
        if schema.is_none_or(|schema| schema == "pg_catalog")
            && let Some(oid) = shapes::table_oid(table)
        {
            return Some(oid);
        }
        self.catalog.relation(schema.unwrap_or(self.settings.schema()), table)
    }

    fn type_id(&self, name: &str) -> Option<i64> {
        let name = name.trim().to_lowercase();
        let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
        let (item, is_array) = match name.strip_suffix("[]") {
            Some(item) => (item, true),
            None => (name, false),
        };
        let found = TYPES.iter().find(|entry| entry.name == item || entry.sql == item);
        let kind = found.map(|entry| PgType { base: entry.base, is_array }).or_else(|| PgType::of_name(name))?;
        Some(kind.oid().into())
    }

    fn type_names(&self) -> Vec<(i64, String)> {
        let one = TYPES.iter().map(|entry| (i64::from(entry.oid), entry.sql.to_owned()));
        let arrays = TYPES.iter().filter(|entry| entry.array != 0);
        one.chain(arrays.map(|entry| (i64::from(entry.array), format!("{}[]", entry.sql)))).collect()
    }

    fn constant(&self, function: &str, arguments: &[String]) -> Option<ScalarValue> {
        let text = |text: &str| Some(ScalarValue::Utf8(Some(text.to_owned())));
        let integer = |number: i64| Some(ScalarValue::Int64(Some(number)));
        match function {
            "version" => text(&format!("PostgreSQL {VERSION} (tidetable {})", env!("CARGO_PKG_VERSION"))),
            "current_database" | "current_catalog" => text(DATABASE),
            "current_schema" => text(self.settings.schema()),
            "current_user" | "session_user" | "current_role" => text(&self.user),
            "current_setting" => text(self.settings.get(arguments.first()?)?),
            "pg_client_encoding" => text("UTF8"),
            "pg_backend_pid" => integer(self.process.into()),
            "txid_current" => integer(1),
            "pg_my_temp_schema" => integer(0),
            "to_regclass" => self.relation(arguments.first()?).and_then(integer),
            "to_regtype" => self.type_id(arguments.first()?).and_then(integer),
            "pg_is_in_recovery" | "pg_is_wal_replay_paused" => Some(ScalarValue::Boolean(Some(false))),
            _ => None,
        }
    }

    fn search_path(&self) -> Vec<String> {
        vec![self.settings.schema().to_owned()]
    }

    fn visible_oids(&self) -> Range<i64> {
        oids_of(self.settings.schema())
    }

    fn keeps_case(&self, word: &str) -> bool {
        self.catalog.has_word(word)
    }
}

/// The parts of a name, which may be in quotes. Case is kept, as everywhere.
fn name_parts(name: &str) -> Vec<String> {
    let (mut parts, mut part, mut is_quoted) = (Vec::new(), String::new(), false);
    for letter in name.trim().chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => parts.push(std::mem::take(&mut part)),
            letter => part.push(letter),
        }
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_parts() {
        assert_eq!(name_parts("SENSOR"), ["SENSOR"]);
        assert_eq!(name_parts("records.\"A.b\""), ["records", "A.b"]);
    }
}
