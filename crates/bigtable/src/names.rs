//! Names of instances and tables of Bigtable.

use std::fmt;
use std::str::FromStr;

/// Characters of a table id after the first, beside letters and digits.
const TABLE_MARKS: &str = "_-.";
/// Longest table id, bytes.
const LONGEST_TABLE: usize = 50;

/// The name of an instance in its full form: `projects/P/instances/I`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceName {
    project: String,
    instance: String,
}

/// The name of a table in its full form: `projects/P/instances/I/tables/T`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    instance: InstanceName,
    table: String,
}

/// An instance, or a table of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The instance that is named, or that of the table.
    pub instance: InstanceName,
    /// The table, if it is named.
    pub table: Option<String>,
}

/// Why a text does not name an instance or a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum NameError {
    /// It has another form.
    #[error("`{given}` names no instance: write projects/PROJECT/instances/INSTANCE, with /tables/TABLE for a table")]
    Form { given: String },
    /// A table id that Bigtable refuses.
    #[error(
        "`{table}` is no table id of Bigtable: it takes letters, digits, `_`, `-` and `.`, at most 50, the first a letter, \
         a digit or `_`"
    )]
    Table { table: String },
    /// A table is needed.
    #[error("`{given}` names an instance, not a table: add /tables/TABLE")]
    NoTable { given: String },
}

impl FromStr for Target {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (project, instance, table) = match parts.as_slice() {
            ["projects", project, "instances", instance] => (project, instance, None),
            ["projects", project, "instances", instance, "tables", table] => (project, instance, Some(table)),
            _ => return Err(NameError::Form { given: text.to_owned() }),
        };
        if project.is_empty() || instance.is_empty() {
            return Err(NameError::Form { given: text.to_owned() });
        }
        let instance = InstanceName { project: (*project).to_owned(), instance: (*instance).to_owned() };
        if let Some(table) = table {
            instance.table(table)?;
        }
        Ok(Self { instance, table: table.map(|table| (*table).to_owned()) })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.instance)?;
        self.table.as_ref().map_or(Ok(()), |table| write!(f, "/tables/{table}"))
    }
}

impl Target {
    /// The table, or the one called `default` of the instance.
    ///
    /// # Errors
    /// If Bigtable refuses `default` as a table id.
    pub fn table_or(&self, default: &str) -> Result<TableName, NameError> {
        self.instance.table(self.table.as_deref().unwrap_or(default))
    }

    /// The table.
    ///
    /// # Errors
    /// If only the instance is named.
    pub fn table(&self) -> Result<TableName, NameError> {
        match &self.table {
            Some(table) => self.instance.table(table),
            None => Err(NameError::NoTable { given: self.to_string() }),
        }
    }
}

impl InstanceName {
    /// A table of the instance.
    ///
    /// # Errors
    /// If Bigtable refuses the id.
    pub fn table(&self, table: &str) -> Result<TableName, NameError> {
        let first = table.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let all = table.chars().all(|c| c.is_ascii_alphanumeric() || TABLE_MARKS.contains(c));
        if !first || !all || table.len() > LONGEST_TABLE {
            return Err(NameError::Table { table: table.to_owned() });
        }
        Ok(TableName { instance: self.clone(), table: table.to_owned() })
    }
}

impl fmt::Display for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "projects/{}/instances/{}", self.project, self.instance)
    }
}

impl TableName {
    /// The instance that has the table.
    pub fn instance(&self) -> &InstanceName {
        &self.instance
    }

    /// The table's id: the last part of its name.
    pub fn id(&self) -> &str {
        &self.table
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/tables/{}", self.instance, self.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_printed() {
        for text in ["projects/p/instances/i", "projects/p-1/instances/i/tables/T.a_b-c"] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        let instance: Target = "projects/p/instances/i".parse().unwrap();
        assert_eq!(instance.table_or("SENSOR").unwrap().to_string(), "projects/p/instances/i/tables/SENSOR");
        assert!(matches!(instance.table(), Err(NameError::NoTable { .. })));
    }

    #[test]
    fn wrong_names_say_what_to_write() {
        for text in ["", "p/i", "projects//instances/i", "projects/p/instances/i/tables", "projects/p/instances/i/x/T"]
        {
            assert!(matches!(text.parse::<Target>(), Err(NameError::Form { .. })), "{text}");
        }
        let long = "x".repeat(51);
        for table in ["-a", "a b", "", &long] {
            let text = format!("projects/p/instances/i/tables/{table}");
            assert!(matches!(text.parse::<Target>(), Err(NameError::Table { .. })), "{text}");
        }
    }
}
