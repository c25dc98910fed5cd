//! What a REST catalog lacks of a table: the request that brings it up to the metadata beside the files. Pure functions.
//!
//! A catalog without the table registers the newest `vN.metadata.json`, with its schemas, snapshots and ids. From then on it
//! writes metadata of its own, and each version of ours is a commit of what that lacks: schemas, partitions, properties,
//! snapshots, the head of `main`, and snapshots to take out. A request has the table's id and the head that was read as its
//! requirements, so it is applied once, however often it is sent.
//!
//! What others have added to the catalog's table stays: properties, tags, branches. Commits to `main` by others are refused, since
//! the next of ours would undo them. Requests are those of the [REST specification](https://iceberg.apache.org/rest-catalog-spec/).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use tidetable_blobs::Blobs;
use tidetable_store::published::Cataloged;

use crate::error::Result;
use crate::iceberg::history::is_ours;
use crate::iceberg::metadata::Metadata;
use crate::table::Pinned;

/// What tells columns of schemas apart.
const COLUMN: [&str; 3] = ["id", "name", "type"];
/// What tells fields of partition specifications apart.
const PARTITION: [&str; 3] = ["source-id", "name", "transform"];

/// A request to a catalog.
#[derive(Debug, Clone, PartialEq)]
pub enum CatalogRequest {
    /// It has no table of this name, and takes the one of this metadata file.
    Register {
        /// URI of the file.
        metadata: String,
    },
    /// It has an earlier version.
    Commit {
        /// What must hold of its table.
        requirements: Vec<Value>,
        /// What is changed.
        updates: Vec<Value>,
    },
}

/// Why the table of a catalog cannot be brought up to the metadata of an export.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogConflict {
    /// A table of the same name has another id.
    #[error(
        "its table has the id {found} and is another one than that of this export, {own}: drop it there without its files, or name \
         another namespace, and run again"
    )]
    OtherTable {
        /// The id in the catalog.
        found: String,
        /// That of the export.
        own: String,
    },
    /// Another writer has committed to the table.
    #[error(
        "another writer has committed the snapshot {snapshot} to its table: drop the table there without its files, and run again"
    )]
    OtherWriter {
        /// The snapshot.
        snapshot: i64,
    },
    /// A schema or partition specification of the same number differs.
    #[error(
        "another writer has changed the columns or partitions of its table: drop it there without its files, and run again"
    )]
    OtherForm,
}

/// The newest metadata of the table of an export, for a catalog.
#[derive(Debug, Clone)]
pub struct CatalogTable(Metadata);

impl CatalogTable {
    /// The table in `folder`, below `exports/`; `None` before its first version.
    ///
    /// # Errors
    /// If its metadata cannot be read.
    pub fn open(blobs: &dyn Blobs, folder: &str) -> Result<Option<Self>> {
        Ok(Metadata::newest(blobs, folder)?.map(Self))
    }

    /// What the list notes once the catalog has it; `table` names both.
    pub fn noted(&self, table: String) -> Cataloged {
        Cataloged { table, version: self.0.version }
    }

    /// The request that brings a catalog up to it, which has `theirs`, the metadata that it answers with; `None` if it lacks
    /// nothing.
    ///
    /// # Errors
    /// If others have changed what the catalog has.
    pub fn request(&self, theirs: Option<&Value>) -> Result<Option<CatalogRequest>, CatalogConflict> {
        let ours = &self.0;
        let Some(theirs) = theirs else {
            let metadata = format!("{}/metadata/v{}.metadata.json", ours.location(), ours.version);
            return Ok(Some(CatalogRequest::Register { metadata }));
        };
        let theirs = &Metadata { version: 0, value: theirs.clone() };
        let (found, own) = (text(&theirs.value, "table-uuid"), text(&ours.value, "table-uuid"));
        if found != own {
            return Err(CatalogConflict::OtherTable { found, own });
        }
        self.check_writer(theirs)?;

        let mut updates = Vec::new();
        self.schemas(theirs, &mut updates)?;
        self.partitions(theirs, &mut updates)?;
        self.properties(theirs, &mut updates);
        self.snapshots(theirs, &mut updates);
        if updates.is_empty() {
            return Ok(None);
        }
        let requirements = vec![
            json!({ "type": "assert-table-uuid", "uuid": own }),
            json!({ "type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": theirs.current_snapshot() }),
            json!({ "type": "assert-current-schema-id", "current-schema-id": theirs.value["current-schema-id"] }),
        ];
        Ok(Some(CatalogRequest::Commit { requirements, updates }))
    }

    /// Refuses a head of `main` that no run of the export made, and sequence numbers after ours: snapshots of later runs would
    /// not follow them.
    fn check_writer(&self, theirs: &Metadata) -> Result<(), CatalogConflict> {
        let (snapshots, head) = (theirs.snapshots(), theirs.current_snapshot());
        let others = snapshots.into_iter().filter(|snapshot| !is_of_export(snapshot, self.0.location()));
        let others: Vec<i64> = others.map(id_of).collect();
        let head_is_ours = head.is_none_or(|head| !others.contains(&head));
        if head_is_ours && theirs.last_sequence() <= self.0.last_sequence() {
            return Ok(());
        }
        Err(CatalogConflict::OtherWriter { snapshot: others.last().copied().or(head).unwrap_or_default() })
    }

    fn schemas(&self, theirs: &Metadata, updates: &mut Vec<Value>) -> Result<(), CatalogConflict> {
        let ours = &self.0;
        for schema in ours.items("schemas") {
            let id = &schema["schema-id"];
            match theirs.items("schemas").find(|known| known["schema-id"] == *id) {
                Some(known) if fields_of(known, COLUMN) == fields_of(schema, COLUMN) => {}
                Some(_) => return Err(CatalogConflict::OtherForm),
                None => updates.push(
                    json!({ "action": "add-schema", "schema": schema, "last-column-id": ours.value["last-column-id"] }),
                ),
            }
        }
        let current = &ours.value["current-schema-id"];
        if theirs.value["current-schema-id"] != *current {
            updates.push(json!({ "action": "set-current-schema", "schema-id": current }));
        }
        Ok(())
    }

    fn partitions(&self, theirs: &Metadata, updates: &mut Vec<Value>) -> Result<(), CatalogConflict> {
        let ours = &self.0;
        for spec in ours.items("partition-specs") {
            let id = &spec["spec-id"];
            match theirs.items("partition-specs").find(|known| known["spec-id"] == *id) {
                Some(known) if fields_of(known, PARTITION) == fields_of(spec, PARTITION) => {}
                Some(_) => return Err(CatalogConflict::OtherForm),
                None => updates.push(json!({ "action": "add-spec", "spec": spec })),
            }
        }
        let default = &ours.value["default-spec-id"];
        if theirs.value["default-spec-id"] != *default {
            updates.push(json!({ "action": "set-default-spec", "spec-id": default }));
        }
        Ok(())
    }

    fn properties(&self, theirs: &Metadata, updates: &mut Vec<Value>) {
        let known = &theirs.value["properties"];
        let ours = self.0.value["properties"].as_object().into_iter().flatten();
        let changed: Map<String, Value> = ours
            .filter(|(key, value)| known[key.as_str()] != **value)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !changed.is_empty() {
            updates.push(json!({ "action": "set-properties", "updates": changed }));
        }
    }

    /// Snapshots that are new here, the head, and snapshots that are no longer here.
    fn snapshots(&self, theirs: &Metadata, updates: &mut Vec<Value>) {
        let ours = &self.0;
        let ids = |metadata: &Metadata| -> BTreeSet<i64> { metadata.items("snapshots").map(id_of).collect() };
        let (here, there) = (ids(ours), ids(theirs));
        for snapshot in ours.snapshots() {
            let is_new = snapshot["sequence-number"].as_i64() > Some(theirs.last_sequence());
            if is_new && !there.contains(&id_of(snapshot)) {
                updates.push(json!({ "action": "add-snapshot", "snapshot": snapshot }));
            }
        }

        let head = ours.current_snapshot();
        if let Some(head) = head.filter(|_| head != theirs.current_snapshot()) {
            updates.push(
                json!({ "action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": head }),
            );
        }

        let named = named_in(&theirs.value);
        let gone = theirs.snapshots().into_iter().filter(|snapshot| is_of_export(snapshot, ours.location()));
        let gone: Vec<i64> = gone.map(id_of).filter(|id| !here.contains(id) && !named.contains(id)).collect();
        if !gone.is_empty() {
            updates.push(json!({ "action": "remove-snapshots", "snapshot-ids": gone }));
        }
    }
}

/// The snapshots that tags and other branches than `main` of a catalog's table name.
fn named_in(theirs: &Value) -> BTreeSet<i64> {
    let refs = theirs["refs"].as_object().into_iter().flatten().filter(|(name, _)| *name != "main");
    refs.filter_map(|(_, named)| named["snapshot-id"].as_i64()).collect()
}

impl Pinned {
    /// What tags and branches name in `theirs`, the metadata that a catalog has; nothing if it has no table.
    pub fn by_catalog(theirs: Option<&Value>) -> Self {
        Self::Ids(theirs.map(named_in).unwrap_or_default())
    }
}

/// Whether a run of the export at `location` made a snapshot: names of its lists differ from those of other engines.
fn is_of_export(snapshot: &Value, location: &str) -> bool {
    let list =
        snapshot["manifest-list"].as_str().and_then(|list| list.strip_prefix(location)?.strip_prefix("/metadata/"));
    list.is_some_and(is_ours)
}

fn id_of(snapshot: &Value) -> i64 {
    snapshot["snapshot-id"].as_i64().unwrap_or_default()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// These keys of the fields of a schema or partition specification; a catalog may write more, and `decimal(9,2)` without a blank.
fn fields_of(of: &Value, keys: [&str; 3]) -> Vec<[String; 3]> {
    let fields = of["fields"].as_array().into_iter().flatten();
    fields.map(|field| keys.map(|key| field[key].to_string().replace(' ', ""))).collect()
}
