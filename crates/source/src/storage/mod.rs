//! Storage of inputs: the local disk or an object store.
//!
//! `discover` finds files by their patterns, `walk` and `coverage` say what a pattern reaches, `fingerprint` whether a file has
//! changed; `client` opens buckets, `remote` reads objects ahead, and `resolve` finds what another process has found.

mod client;
mod coverage;
mod discover;
mod dump_set;
mod fingerprint;
mod packed;
mod pattern;
mod pull_list;
mod remote;
mod resolve;
mod secret;
mod transient;
mod unread;
mod walk;

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::NaiveDate;
use object_store::ObjectStore;
use object_store::path::Path as Key;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::blocks::BlockInput;
use crate::content_hash::{ContentHash, HASH_BUFFER, Tally, hash_all, hash_all_by};
use crate::decompress::{Content, Decoded};
use crate::error::{SourceError, at_boundary};
use crate::format::Format;
use crate::location::Split;
use crate::parquet::ParquetFile;
use crate::plan::column_plans;
use crate::read::InputReader;
use crate::read::{Growth, HeldContent, StopCheck};
use crate::reader_version::ReaderVersion;
use crate::spec::SourceSpec;
use crate::text_shape::{TextRules, TextShape};

use remote::{RangeReader, fetch};

pub use crate::bucket_error::{BucketAddress, BucketError, BucketFault, describe_request, is_missing_object};
pub use client::{OpenedBucket, is_http, open_object_store};
pub use discover::DiscoveredFiles;
pub use dump_set::folder_of_part;
pub(crate) use dump_set::{check_dump, last_by_name};
pub use packed::PackedContent;
pub use pattern::literal_folders;
pub use pull_list::{PULL_DIRECTORY, PULL_FORMAT, PULL_LIST, PULL_UNDER_WAY, PullList, PulledDirectory, PulledFamily};
pub use secret::Secret;
pub use transient::is_transient;
pub use unread::{Unread, UnreadReason};

/// The approximate size of text chunks in bytes, unless another is set.
const CHUNK_BYTES: usize = 2 << 20;
/// The largest chunk: offsets are 32-bit, with room for one more long record.
const LARGEST_CHUNK: usize = 256 << 20;

/// A file of a source. Serialised, it is only named: [`Storage::resolve`] gives it its place again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Path relative to the project root with `/`, absolute path, or URL.
    pub path: String,
    /// The size in bytes as stored, before any decompression; 0 for rows that come from no file.
    pub size: u64,
    /// Version, which changes with the file: an object's ETag; modification time, change time and inode of a local file. See
    /// [`InputFile::is_as`].
    pub version: String,
    /// The day in its name, if the pattern has a `{day:...}`.
    pub day: Option<NaiveDate>,
    /// The format by which it is read: that of the source, or that of its ending.
    pub format: Format,
    /// The rules by which it is read; those of this build, unless a table holds it by older ones.
    #[serde(default, skip_serializing_if = "ReaderVersion::is_first")]
    pub reader: ReaderVersion,
    /// Offsets in its text, ascending, at which it ended when a table loaded it while a quote was open: what was appended
    /// there does not continue the quoted field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaks: Vec<u64>,
    /// What its beginning decided when a table loaded it.
    #[serde(default, skip_serializing_if = "TextShape::is_open")]
    pub shape: TextShape,
    #[serde(with = "resolve::named")]
    location: FileAccess,
}

/// How the bytes of an input are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FileAccess {
    Local(PathBuf),
    Remote {
        base: String,
        /// The source whose settings open the bucket.
        source: String,
        key: Key,
        etag: Option<String>,
    },
    /// Rows that do not come from a file.
    Elsewhere,
    /// A file that another process found. It cannot be opened before it is resolved.
    Named {
        etag: Option<String>,
    },
}

impl InputFile {
    /// Whether it is a file that is read by older rules than those of this build.
    pub fn has_older_rules(&self) -> bool {
        self.reader.is_older() && !matches!(self.location, FileAccess::Elsewhere)
    }

    /// The same file, read by another format.
    #[must_use]
    pub(crate) fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// A local file that no source declares, to be looked at.
    ///
    /// # Errors
    /// [`SourceError::Io`], if it is missing.
    pub(crate) fn local(path: &Path, format: Format) -> Result<Self, SourceError> {
        let name = path.display().to_string();
        let found = std::fs::metadata(path).map_err(|source| SourceError::Io { path: name.clone(), source })?;
        let (reader, location) = (ReaderVersion::CURRENT, FileAccess::Local(path.to_owned()));
        Ok(Self { size: found.len(), format, reader, location, ..Self::of_rows(&name, "") })
    }

    /// An input of rows that do not come from a file, such as a query result. `path` names it, and `version` changes when its
    /// rows may have changed.
    pub fn of_rows(path: &str, version: &str) -> Self {
        Self {
            path: path.to_owned(),
            size: 0,
            version: version.to_owned(),
            day: None,
            format: Format::Parquet,
            reader: ReaderVersion::FIRST,
            breaks: Vec::new(),
            shape: TextShape::default(),
            location: FileAccess::Elsewhere,
        }
    }
}

/// Opens files relative to a project root, and objects by their URLs. Shared by threads.
///
/// Remote files block on the runtime's handle, so that the methods must not be called from its own worker threads.
pub struct Storage {
    root: PathBuf,
    handle: Option<Handle>,
    chunk_bytes: usize,
    stores: Mutex<Clients>,
    settings: HashMap<String, Vec<(String, Secret)>>,
    clock: Option<fn() -> i64>,
    stop_check: StopCheck,
}

/// Clients by the start of their URLs and, where it has settings of its own, the source.
type Clients = HashMap<(String, Option<String>), Client>;

/// The client of a bucket, and what messages call it.
#[derive(Clone)]
struct Client {
    store: Arc<dyn ObjectStore>,
    address: Arc<BucketAddress>,
}

impl Client {
    /// An error of a request for the file at `path`.
    fn error(&self, path: &str, source: object_store::Error) -> SourceError {
        SourceError::Store { path: path.to_owned(), source: Box::new(BucketError::new(&self.address, source)) }
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Storage").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Storage {
    /// Files below `project_root`, and remote ones if there is a runtime for them.
    pub fn new(project_root: PathBuf, handle: Option<Handle>) -> Self {
        Self {
            root: project_root,
            handle,
            chunk_bytes: CHUNK_BYTES,
            stores: Mutex::default(),
            settings: HashMap::new(),
            clock: None,
            stop_check: StopCheck::default(),
        }
    }

    /// The same, with the clock of the machine (microseconds since the epoch): a file that is as young as the look at it
    /// could change without a trace, so its fingerprint says so. Without a clock no file counts as young.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> i64) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Stops hashing a file as soon as `goes_on`, which is called before each read, returns false: the hash then fails.
    #[must_use]
    pub fn with_stop_check(mut self, goes_on: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.stop_check = StopCheck::new(goes_on);
        self
    }

    /// Sets the approximate size of CSV chunks in bytes (1 to 256 Mi; 2 Mi by default).
    #[must_use]
    pub fn with_chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk_bytes = bytes.clamp(1, LARGEST_CHUNK);
        self
    }

    /// The same, with `store` behind all URLs that start with `base`, such as `memory://` or `s3://bucket`. Stores of
    /// other URLs are made from the environment: `AWS_*`, `GOOGLE_*`, `AZURE_*`.
    #[must_use]
    pub fn with_store(self, base: &str, store: Arc<dyn ObjectStore>) -> Self {
        let client = Client { store, address: Arc::new(BucketAddress::of_url(base)) };
        self.stores.lock().unwrap_or_else(PoisonError::into_inner).insert((base.to_owned(), None), client);
        self
    }

    /// The same, with settings for the object stores of the source of this name: names of `object_store` for options,
    /// such as `region`, and their values. They come before what the environment says.
    #[must_use]
    pub fn with_settings(mut self, source: &str, settings: Vec<(String, Secret)>) -> Self {
        if !settings.is_empty() {
            self.settings.insert(source.to_owned(), settings);
        }
        self
    }

    /// The hash of a file's bytes as stored, reading all of it.
    ///
    /// # Errors
    /// [`SourceError::Io`] or [`SourceError::Store`].
    pub fn hash(&self, input: &InputFile) -> Result<ContentHash, SourceError> {
        let mut tally = Tally::default();
        let mut from = self.stop_check.read(self.raw(input)?);
        let buffer = usize::try_from(input.size).unwrap_or(usize::MAX).clamp(4096, HASH_BUFFER);
        hash_all_by(&mut from, &mut tally, buffer)
            .map_err(|source| SourceError::Io { path: input.path.clone(), source })?;
        Ok(tally.hash())
    }

    /// The hash of the first `size` bytes of a file whose first bytes, as many as were found, hash to `found`; `None` if they
    /// do not any more.
    ///
    /// # Errors
    /// [`SourceError::Io`] or [`SourceError::Store`].
    pub fn hash_of_first(
        &self,
        input: &InputFile,
        size: u64,
        found: ContentHash,
    ) -> Result<Option<ContentHash>, SourceError> {
        let mut tally = Tally::default();
        tally.mark(vec![size]);
        hash_all(&mut self.stop_check.read(self.raw(input)?), &mut tally)
            .map_err(|source| SourceError::Io { path: input.path.clone(), source })?;
        Ok(tally.marked(size).filter(|_| tally.hash() == found))
    }

    /// Opens a file and finds its columns: reads the header, or the footer.
    ///
    /// # Errors
    /// [`SourceError::MissingColumn`], [`SourceError::DuplicateColumn`], [`SourceError::ColumnType`], the errors of
    /// [`SourceSpec::check`], and those of reading.
    pub fn open(&self, spec: &SourceSpec, input: &InputFile) -> Result<InputReader, SourceError> {
        spec.check()?;
        let columns = column_plans(spec, input.reader)?;
        let opened = at_boundary(&input.path, || match input.format {
            Format::Csv => {
                let bytes = Decoded::new(input.path.clone(), self.raw(input)?)?.with_look(input.look());
                let rules = TextRules { reader: input.reader, shape: input.shape };
                Ok(InputReader::csv(spec, columns, rules, bytes, self.chunk_bytes)?.with_breaks(&input.breaks))
            }
            Format::Json => {
                let bytes = Decoded::new(input.path.clone(), self.raw(input)?)?.with_look(input.look());
                let rules = TextRules { reader: input.reader, shape: input.shape };
                Ok(InputReader::json(spec, columns, rules, bytes, self.chunk_bytes)?.with_breaks(&input.breaks))
            }
            Format::Arrow => InputReader::arrow(spec, columns, self.blocks(input)?),
            Format::Avro | Format::BigtableAvro => InputReader::avro(spec, columns, self.blocks(input)?),
            Format::CbtCsv => InputReader::cbt(spec, columns, self.decoded(input)?),
            Format::Parquet | Format::BigtableParquet => {
                InputReader::parquet(spec, self.parquet(input)?, columns, input.path.clone(), self.stop_check.clone())
            }
        });
        opened.map_err(|error| self.with_right_format(spec, input, error))?.in_order(spec)
    }

    /// Makes the clients of the stores of a source, so that mistakes in its places and settings are found. Asks nothing of them.
    ///
    /// # Errors
    /// [`SourceError::Location`], [`SourceError::Endpoint`], [`SourceError::StoreSettings`].
    pub fn check_stores(&self, spec: &SourceSpec) -> Result<(), SourceError> {
        for written in &spec.files {
            if let Split::Bucket { base, .. } = self.split(written)? {
                self.client(base, &spec.name)?;
            }
        }
        Ok(())
    }

    /// Takes a place in `files` apart. What begins with the base of a known store is in it, whatever its scheme.
    fn split<'a>(&self, written: &'a str) -> Result<Split<'a>, SourceError> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        for (base, _) in stores.keys() {
            if let Some((base, key)) = written.split_at_checked(base.len()).filter(|(start, _)| start == base)
                && let Some(key) = key.strip_prefix('/')
            {
                return Ok(Split::Bucket { base, key });
            }
        }
        Ok(Split::of(written)?)
    }

    /// Whether a file has any row, accepted or not: reads up to the first.
    ///
    /// # Errors
    /// As [`Self::open`], and those of reading.
    pub fn holds_rows(&self, spec: &SourceSpec, input: &InputFile) -> Result<bool, SourceError> {
        let mut reader = self.open(spec, input)?;
        let parser = reader.parser();
        while let Some(chunk) = reader.next().transpose()? {
            if parser.holds_rows(chunk)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How a file has grown since its content was the longest possible of `held`, reading it once for each reader version
    /// among them. `None` if it has not, or if it is no plain text.
    ///
    /// # Errors
    /// [`SourceError::Io`] or [`SourceError::Store`].
    pub fn growth(
        &self,
        spec: &SourceSpec,
        input: &InputFile,
        held: &[HeldContent],
    ) -> Result<Option<Growth>, SourceError> {
        let mut held: Vec<&HeldContent> = held.iter().filter(|held| (1..input.size).contains(&held.size)).collect();
        if !input.format.is_text() || held.is_empty() {
            return Ok(None);
        }
        held.sort_unstable_by_key(|held| (held.reader, &held.breaks, held.shape, held.size));

        let mut longest: Option<(u64, Growth)> = None;
        for contents in held.chunk_by(|one, next| one.has_rules_of(next)) {
            let found = match self.growth_of(spec, input, contents) {
                Err(error @ (SourceError::Io { .. } | SourceError::Store { .. })) => return Err(error),
                // Whatever else is wrong with it stops the load, which says so.
                Err(_) => None,
                Ok(found) => found.filter(|(_, growth)| growth.bytes == input.size),
            };
            // Rather a content to which whole records were added.
            longest = longest.into_iter().chain(found).max_by_key(|(size, growth)| (growth.from.is_some(), *size));
        }
        Ok(longest.map(|(_, growth)| growth))
    }

    /// The growth since the longest of `held`, which were read by the same rules, with its size.
    fn growth_of(
        &self,
        spec: &SourceSpec,
        input: &InputFile,
        held: &[&HeldContent],
    ) -> Result<Option<(u64, Growth)>, SourceError> {
        let Some(HeldContent { reader, breaks, shape, .. }) = held.first() else { return Ok(None) };
        let rules = TextRules { reader: *reader, shape: *shape };
        let mut marks: Vec<u64> = held.iter().map(|held| held.size).collect();
        marks.dedup();
        let bytes = Decoded::new(input.path.clone(), self.stop_check.read(self.raw(input)?))?.with_marks(marks);

        let columns = column_plans(spec, *reader)?;
        let reader = match input.format {
            Format::Json => InputReader::json(spec, columns, rules, bytes, self.chunk_bytes)?,
            _ => InputReader::csv(spec, columns, rules, bytes, self.chunk_bytes)?,
        };
        reader.with_breaks(breaks).growth(held)
    }

    /// The bytes of a file of blocks.
    pub(crate) fn blocks(&self, input: &InputFile) -> Result<BlockInput, SourceError> {
        Ok(BlockInput::new(self.decoded(input)?))
    }

    /// The bytes of a file without its compression.
    pub(crate) fn decoded(&self, input: &InputFile) -> Result<Decoded, SourceError> {
        Decoded::new(input.path.clone(), self.stop_check.read(self.raw(input)?))
    }

    /// A Parquet file whose footer has been read.
    pub(crate) fn parquet(&self, input: &InputFile) -> Result<ParquetFile, SourceError> {
        at_boundary(&input.path, || self.footer(input))
    }

    fn footer(&self, input: &InputFile) -> Result<ParquetFile, SourceError> {
        if Format::is_compressed_name(&input.path) {
            let Content { bytes, hash, stored } = Decoded::new(input.path.clone(), self.raw(input)?)?.into_content()?;
            return ParquetFile::open_memory(&input.path, bytes, Some((hash, stored)));
        }
        match &input.location {
            FileAccess::Local(path) => ParquetFile::open_local(&input.path, path.clone()),
            FileAccess::Remote { base, source, key, etag } => {
                let (client, handle) = self.client(base, source)?;
                let bytes = handle.block_on(fetch(&*client.store, key, etag.clone()));
                let bytes = bytes.map_err(|source| client.error(&input.path, source))?;
                ParquetFile::open_memory(&input.path, bytes, None)
            }
            FileAccess::Elsewhere | FileAccess::Named { .. } => Err(SourceError::NoFile { path: input.path.clone() }),
        }
    }

    /// The bytes as stored, before any decompression, from the start on.
    pub(crate) fn raw(&self, input: &InputFile) -> Result<Box<dyn Read + Send>, SourceError> {
        match &input.location {
            FileAccess::Local(path) => {
                let file = File::open(path).map_err(|source| SourceError::Io { path: input.path.clone(), source })?;
                // What is appended meanwhile is read by the next load.
                Ok(Box::new(file.take(input.size)))
            }
            FileAccess::Remote { base, source, key, etag } => {
                let (Client { store, address }, handle) = self.client(base, source)?;
                Ok(Box::new(RangeReader::new(store, address, handle, key.clone(), etag.clone(), input.size)))
            }
            FileAccess::Elsewhere | FileAccess::Named { .. } => Err(SourceError::NoFile { path: input.path.clone() }),
        }
    }

    /// The client of the bucket `base` with the settings of a source, and the runtime of its requests.
    fn client(&self, base: &str, source: &str) -> Result<(Client, Handle), SourceError> {
        let handle = self.handle.clone().ok_or_else(|| SourceError::NoRuntime { url: base.to_owned() })?;
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = self.settings.get(source);
        let name = (base.to_owned(), settings.map(|_| source.to_owned()));
        if let Some(client) = stores.get(&name) {
            return Ok((client.clone(), handle));
        }

        let settings = settings.map(Vec::as_slice).unwrap_or_default();
        let opened = open_object_store(base, settings, &handle)?;
        let client = Client { store: opened.store, address: Arc::new(opened.address) };
        stores.insert(name, client.clone());
        Ok((client, handle))
    }
}
