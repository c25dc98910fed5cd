//! Tables and families: what is there, and making what is not. SampleRowKeys.

use bytes::Bytes;
use tidetable_layout::schema::Merge;
use tonic::{Code, Status};

use crate::client::connection::Client;
use crate::client::kinds::{MICROS, merge_of};
use crate::client::repeat::{Repeat, within};
use crate::client::rules::rule_text;
use crate::error::{BigtableError, Result};
use crate::names::TableName;
use crate::proto::admin::modify_column_families_request::{Modification, modification};
use crate::proto::admin::{
    ColumnFamily, CreateTableRequest, GetTableRequest, ModifyColumnFamiliesRequest, Table, create_table_request, table,
};
use crate::proto::data::SampleRowKeysRequest;

/// A row key with the bytes before it, about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledKey {
    /// The key at which a part of the table ends; empty for its end.
    pub key: Bytes,
    /// Bytes of all rows before it.
    pub offset: i64,
}

/// A table in Bigtable that is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceTable {
    /// Its families, by ascending names.
    pub families: Vec<SourceFamily>,
    /// Whether its timestamps are microseconds; otherwise they are milliseconds.
    pub is_micros: bool,
}

/// A family of a table in Bigtable that is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceFamily {
    /// The id of the family in its table.
    pub name: String,
    /// How its cells merge.
    pub kind: Merge,
    /// Its garbage-collection rule in cbt's notation.
    pub rule: Option<String>,
}

impl SourceTable {
    /// Checks that the table has the families `wanted`.
    ///
    /// # Errors
    /// [`BigtableError::UnknownFamily`].
    pub fn has(&self, wanted: &[String], table: &TableName) -> Result<()> {
        for name in wanted {
            if !self.families.iter().any(|family| family.name == *name) {
                return Err(BigtableError::UnknownFamily {
                    source_table: table.to_string(),
                    family: name.clone(),
                    known: self.families.iter().map(|family| family.name.clone()).collect(),
                });
            }
        }
        Ok(())
    }
}

impl Client {
    /// The families of a table; `None` if there is no such table.
    ///
    /// # Errors
    /// Of the request.
    pub async fn table(&self, name: &TableName) -> Result<Option<Table>> {
        let mut repeat = Repeat::new(self, "GetTable", name);
        loop {
            let request = GetTableRequest { name: name.to_string(), view: table::View::SchemaView.into() };
            let sent = async { Ok(self.admin().get_table(self.of_admin(request, name).await?).await?.into_inner()) };
            match within(self.options().timeout, sent).await {
                Ok(table) => return Ok(Some(table)),
                Err(status) if status.code() == Code::NotFound => return Ok(None),
                Err(status) => repeat.after(status).await?,
            }
        }
    }

    /// The families of a table that is read, by ascending names, and the granularity of its timestamps.
    ///
    /// # Errors
    /// Of the request; [`BigtableError::NoSource`], and [`BigtableError::UnknownAggregate`] for a family whose cells this build
    /// cannot merge.
    pub async fn source_schema(&self, name: &TableName) -> Result<SourceTable> {
        let table = self.table(name).await?;
        let table = table.ok_or_else(|| BigtableError::NoSource { source_table: name.to_string() })?;
        let is_micros = table.granularity == MICROS;
        let mut families = Vec::with_capacity(table.column_families.len());
        for (id, family) in table.column_families {
            let kind = merge_of(&family).ok_or_else(|| BigtableError::UnknownAggregate {
                source_table: name.to_string(),
                family: id.clone(),
            })?;
            families.push(SourceFamily { name: id, kind, rule: family.gc_rule.as_ref().and_then(rule_text) });
        }
        families.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(SourceTable { families, is_micros })
    }

    /// Creates a table, split before each of `splits`. A table that is there by now counts as created.
    ///
    /// # Errors
    /// Of the request.
    pub async fn create_table(&self, name: &TableName, table: Table, splits: &[Bytes]) -> Result<()> {
        let mut repeat = Repeat::new(self, "CreateTable", name);
        loop {
            let splits = splits.iter().map(|key| create_table_request::Split { key: key.clone() });
            let request = CreateTableRequest {
                parent: name.instance().to_string(),
                table_id: name.id().to_owned(),
                table: Some(table.clone()),
                initial_splits: splits.collect(),
            };
            let sent = async {
                self.admin().create_table(self.of_instance(request, name.instance()).await?).await?;
                Ok::<(), Status>(())
            };
            match within(self.options().timeout, sent).await {
                Ok(()) => return Ok(()),
                Err(status) if status.code() == Code::AlreadyExists => return Ok(()),
                Err(status) => repeat.after(status).await?,
            }
        }
    }

    /// Adds families to a table.
    ///
    /// # Errors
    /// Of the request.
    pub async fn add_families(&self, name: &TableName, families: Vec<(String, ColumnFamily)>) -> Result<()> {
        let mut repeat = Repeat::new(self, "ModifyColumnFamilies", name);
        let mut modifications = Vec::with_capacity(families.len());
        for (id, family) in families {
            let create = Some(modification::Mod::Create(family));
            modifications.push(Modification { id, r#mod: create, ..Modification::default() });
        }

        loop {
            let request = ModifyColumnFamiliesRequest {
                name: name.to_string(),
                modifications: modifications.clone(),
                ..ModifyColumnFamiliesRequest::default()
            };
            let sent = async {
                self.admin().modify_column_families(self.of_admin(request, name).await?).await?;
                Ok::<(), Status>(())
            };
            match within(self.options().timeout, sent).await {
                Ok(()) => return Ok(()),
                // An attempt whose answer was lost made them.
                Err(status) if status.code() == Code::AlreadyExists => return Ok(()),
                Err(status) => repeat.after(status).await?,
            }
        }
    }

    /// Keys at which the service cuts a table into parts, ascending.
    ///
    /// # Errors
    /// Of the request.
    pub async fn sample_row_keys(&self, name: &TableName) -> Result<Vec<SampledKey>> {
        let mut repeat = Repeat::new(self, "SampleRowKeys", name);
        let timeout = self.options().timeout;

        loop {
            let request = SampleRowKeysRequest {
                table_name: name.to_string(),
                app_profile_id: self.options().app_profile.clone(),
                ..SampleRowKeysRequest::default()
            };
            let sent = async {
                let request = self.of_table(request, name).await?;
                let mut stream = within(timeout, self.data().sample_row_keys(request)).await?.into_inner();
                let mut keys = Vec::new();
                while let Some(sample) = within(timeout, stream.message()).await? {
                    keys.push(SampledKey { key: sample.row_key, offset: sample.offset_bytes });
                }
                Ok::<_, Status>(keys)
            };
            match sent.await {
                Ok(keys) => return Ok(keys),
                Err(status) => repeat.after(status).await?,
            }
        }
    }
}
