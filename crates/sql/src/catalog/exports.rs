//! Schema provider of `exports.NAME`: published files as listing tables.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::datasource::TableType;
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::{DataFusionError, Result};
use tidetable_blobs::Bucket;
use tidetable_store::published::{Part, Published};
use tidetable_store::{Store, StoreError};
use url::Url;

use crate::catalog::files::arrow_format::CheckedArrow;
use crate::catalog::lost_list::lost_list;
use crate::catalog::published::{ComparedFiles, PublishedTable, gone};
use crate::catalog::unchanged::UnchangedFiles;
use crate::error::{SqlError, external};

const FOLDER: &str = "exports";
const ENDING: &str = ".json";

/// Each export with its list; `None` if the list cannot be read.
type Lists = Vec<(String, Option<Published>)>;

/// The export lists of a store, read on first use, and the files of the exports that are read.
#[derive(Debug)]
pub(crate) struct ExportLists {
    store: Store,
    lists: Mutex<Option<Arc<Lists>>>,
    files: Arc<UnchangedFiles>,
    compared: Arc<ComparedFiles>,
}

impl ExportLists {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, lists: Mutex::default(), files: Arc::default(), compared: Arc::default() }
    }

    /// The files of exports, for a session that reads them.
    pub(crate) fn files(&self) -> &Arc<UnchangedFiles> {
        &self.files
    }

    /// Reads the lists again when they are next asked for: files that they name were replaced.
    pub(crate) fn forget(&self) {
        *self.known() = None;
        self.files.forget();
    }

    fn known(&self) -> MutexGuard<'_, Option<Arc<Lists>>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lists(&self) -> Arc<Lists> {
        let mut known = self.known();
        if let Some(lists) = known.as_ref() {
            return Arc::clone(lists);
        }
        let blobs = self.store.blobs().as_ref();
        // If the store cannot be listed, no exports are shown; reading a table reports the error.
        let names = blobs.list(FOLDER).unwrap_or_default();
        let exports = names.iter().filter_map(|name| name.strip_suffix(ENDING));
        let lists = exports.map(|name| (name.to_owned(), Published::load(blobs, name).ok())).collect();
        Arc::clone(known.insert(Arc::new(lists)))
    }

    fn names(&self) -> Vec<String> {
        let lists = self.lists();
        let mut names: Vec<String> = lists.iter().map(|(name, _)| name.clone()).collect();
        let lists = lists.iter().filter_map(|(_, list)| list.as_ref());
        names.extend(lists.flat_map(|list| list.parts.values().map(|part| part.folder.clone())));
        names.sort_unstable();
        names.dedup();
        names
    }
}

enum ListEntry<'a> {
    Parts(&'a Published, Vec<&'a Part>),
    Broken(&'a str),
}

impl<'a> ListEntry<'a> {
    /// The export `name`, or the part in the directory `name`.
    fn find(lists: &'a Lists, name: &str) -> Option<Self> {
        if let Some((export, list)) = lists.iter().find(|(export, _)| export == name) {
            return Some(match list {
                Some(list) => ListEntry::Parts(list, list.parts.values().collect()),
                None => ListEntry::Broken(export),
            });
        }

        let lists = lists.iter().filter_map(|(_, list)| list.as_ref());
        for list in lists.clone() {
            if let Some(part) = list.parts.values().find(|part| part.folder == name) {
                return Some(ListEntry::Parts(list, vec![part]));
            }
        }

        let mut without_rows = lists.filter(|list| list.empty.values().any(|part| part.folder == name));
        without_rows.next().map(|list| ListEntry::Parts(list, Vec::new()))
    }
}

#[derive(Debug)]
pub(crate) struct ExportsSchema {
    listed: Arc<ExportLists>,
}

impl ExportsSchema {
    pub(crate) fn new(listed: Arc<ExportLists>) -> Self {
        Self { listed }
    }

    fn open(&self, list: &Published, parts: &[&Part]) -> Result<Option<Arc<dyn TableProvider>>> {
        if parts.is_empty() {
            // An empty export; without columns in the list there is no schema.
            let schema = schema(list).filter(|schema| !schema.fields().is_empty());
            return Ok(schema.map(|schema| Arc::new(EmptyTable::new(schema)) as Arc<dyn TableProvider>));
        }
        let paths = parts.iter().flat_map(|part| part.paths());
        let urls: Vec<ListingTableUrl> = match self.listed.store.blobs().bucket() {
            Some(bucket) => paths.map(|path| object_url(&bucket, &path)).collect::<Result<_>>()?,
            None => {
                let root = PathBuf::from(self.listed.store.blobs().display());
                // Links and a change of the working directory must not change what is read, and a URL has no `..`.
                let root = root.canonicalize()?;
                paths.map(|path| file_url(&root.join(path))).collect::<Result<_>>()?
            }
        };
        let ending = ending(parts.first().copied());
        if parts.iter().any(|part| self::ending(Some(part)) != ending) {
            return Err(external(several_forms(list)));
        }
        let options = options(ending);
        let schema = schema(list).ok_or_else(|| external(unreadable(list)))?;
        let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options).with_schema(schema);
        let files = Arc::new(ListingTable::try_new(config)?);
        let parts = parts.iter().flat_map(|part| part.files_at()).collect();
        let list = list.name.clone();
        let (store, unchanged) = (self.listed.store.clone(), Arc::clone(self.listed.files()));
        let compared = Arc::clone(&self.listed.compared);
        Ok(Some(Arc::new(PublishedTable { files, store, list, parts, compared, unchanged })))
    }

    /// Whether files of `parts` are gone: the parts were published again since the list was read.
    fn are_gone(&self, parts: &[&Part]) -> bool {
        matches!(gone(&self.listed.store, parts.iter().flat_map(|part| part.paths())), Ok(Some(_)))
    }
}

#[async_trait]
impl SchemaProvider for ExportsSchema {
    fn table_names(&self) -> Vec<String> {
        self.listed.names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let mut lists = self.listed.lists();
        if let Some(ListEntry::Parts(_, parts)) = ListEntry::find(&lists, name)
            && self.are_gone(&parts)
        {
            self.listed.forget();
            lists = self.listed.lists();
        }
        match ListEntry::find(&lists, name) {
            Some(ListEntry::Parts(list, parts)) => self.open(list, &parts),
            // Reads the list again to return its error.
            Some(ListEntry::Broken(name)) => {
                let list = Published::load(self.listed.store.blobs().as_ref(), name).map_err(external)?;
                self.open(&list, &list.parts.values().collect::<Vec<_>>())
            }
            None => {
                let known = lists.iter().filter_map(|(_, list)| list.as_ref());
                match lost_list(self.listed.store.blobs().as_ref(), known, name).map_err(external)? {
                    Some(lost) => Err(external(lost)),
                    None => Ok(None),
                }
            }
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        ListEntry::find(&self.listed.lists(), name).is_some()
    }
}

/// File extension of the files of a part; empty without a part.
fn ending(part: Option<&Part>) -> &str {
    part.and_then(|part| part.file.rsplit_once('.')).map_or("", |(_, ending)| ending)
}

/// How DataFusion reads the files of an export with this extension.
fn options(ending: &str) -> ListingOptions {
    let format: Arc<dyn FileFormat> = match ending {
        "csv" => Arc::new(CsvFormat::default().with_has_header(true)),
        "arrow" => Arc::new(CheckedArrow),
        _ => Arc::new(ParquetFormat::default()),
    };
    ListingOptions::new(format).with_file_extension(format!(".{ending}"))
}

/// The columns that the list names, so that no file is opened for its schema.
fn schema(list: &Published) -> Option<SchemaRef> {
    let mut fields = Vec::with_capacity(list.columns.len());
    for (name, kind) in &list.columns {
        fields.push(Field::new(name, DataType::from_str(kind).ok()?, true));
    }
    Some(Arc::new(Schema::new(fields)))
}

fn several_forms(list: &Published) -> StoreError {
    StoreError::Manifest {
        path: format!("{FOLDER}/{}{ENDING}", list.name),
        reason: "its parts have files of several formats; run its job, which publishes all of them in one format"
            .to_owned(),
    }
}

fn unreadable(list: &Published) -> StoreError {
    StoreError::Manifest {
        path: format!("{FOLDER}/{}{ENDING}", list.name),
        reason: "it names an unknown column type; use the release that published it, or run its job".to_owned(),
    }
}

/// The URL of the bucket of a store, in its sessions only: a bucket may have another client, with other settings, under its
/// own URL.
pub(crate) fn bucket_url() -> Result<Url> {
    Url::parse("root://store/").map_err(|error| DataFusionError::External(Box::new(error)))
}

/// The URL under which a session registers the store's local files.
pub(crate) fn files_url() -> Result<Url> {
    Url::parse("file:///").map_err(|error| DataFusionError::External(Box::new(error)))
}

/// The URL of a file of a store in a bucket.
fn object_url(bucket: &Bucket, path: &str) -> Result<ListingTableUrl> {
    let mut url = bucket_url()?;
    if let Ok(mut parts) = url.path_segments_mut() {
        let prefix: Vec<_> = bucket.prefix.parts().map(|part| part.as_ref().to_owned()).collect();
        parts.clear().extend(prefix).extend(path.split('/'));
    }
    ListingTableUrl::try_new(url, None)
}

/// A URL that escapes `*` and `[`, which a plain path would treat as wildcards.
fn file_url(path: &Path) -> Result<ListingTableUrl> {
    let url = Url::from_file_path(path);
    let url = url.map_err(|()| external(SqlError::PublishedGone { path: path.display().to_string() }))?;
    ListingTableUrl::try_new(url, None)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn column_types_of_a_list_round_trip() {
        let kinds = [
            DataType::UInt64,
            DataType::Float64,
            DataType::Decimal128(10, 2),
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            DataType::Date32,
            DataType::Utf8,
            DataType::Utf8View,
            DataType::Binary,
        ];
        let columns = kinds.iter().enumerate().map(|(at, kind)| (format!("c{at}"), kind.to_string())).collect();
        let list = Published { columns, ..Published::default() };
        let read = schema(&list).unwrap();
        assert_eq!(
            read.fields().iter().map(|field| field.data_type()).collect::<Vec<_>>(),
            kinds.iter().collect::<Vec<_>>()
        );
    }

    #[test]
    fn wildcards_in_a_path_are_escaped() {
        let url = file_url(Path::new("/a b/[x]*/50%/é.parquet")).unwrap();
        assert!(url.get_glob().is_none());
        assert_eq!(url.prefix().as_ref(), "a b/[x]*/50%/é.parquet");
    }
}
