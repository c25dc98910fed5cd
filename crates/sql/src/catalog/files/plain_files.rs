//! Files of text as queries read them: without their compression, byte order mark, and lines before the table.
//!
//! DataFusion decompresses only with libraries that this build leaves out. So compressed files have a scheme of their own,
//! `plain:///in/a.csv.gz`, whose store decompresses whenever a file is read.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::{Seek, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tidetable_source::{Format, PlainContent};
use tokio::task::spawn_blocking;
use url::Url;

/// The start of the URLs of these files.
pub(crate) const PLAIN: &str = "plain://";
/// The name of the store in errors.
const STORE: &str = "files";
/// The size that all files claim. Theirs is not known before they are read, and DataFusion splits large files into ranges of bytes.
const CLAIMED_SIZE: u64 = 1;

/// The local file system, whose files are read as plain text.
#[derive(Debug, Default)]
pub(crate) struct PlainFiles {
    files: LocalFileSystem,
    /// Lines before the table, of files that have such.
    skipped: Mutex<HashMap<PathBuf, u64>>,
}

impl PlainFiles {
    /// Leaves out the first `lines` of a file whenever it is read.
    pub(crate) fn skip_lines(&self, path: PathBuf, lines: u64) {
        self.skipped.lock().unwrap_or_else(PoisonError::into_inner).insert(path, lines);
    }

    /// Opens a file.
    async fn open(&self, path: &Path) -> Result<PlainContent> {
        let local = self.files.path_to_filesystem(path)?;
        let lines = self.skipped.lock().unwrap_or_else(PoisonError::into_inner).get(&local).copied();
        let opened = spawn_blocking(move || {
            let mut content = PlainContent::open(&local).map_err(failed)?;
            content.skip_lines(lines.unwrap_or_default()).map_err(failed)?;
            Ok(content)
        });
        opened.await.map_err(failed)?
    }
}

/// The URL of a local file whose text is read as it is without its compression.
pub(crate) fn plain_url(path: &std::path::Path) -> std::io::Result<String> {
    let url = Url::from_file_path(std::path::absolute(path)?);
    let url = url.map_err(|()| std::io::Error::other(format!("{} has no URL", path.display())))?;
    Ok(format!("{PLAIN}{}", url.path()))
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: STORE, source: Box::new(error) }
}

fn read_only() -> Error {
    Error::NotSupported { source: "files that a query reads are not written".into() }
}

fn with_claimed_size(mut file: ObjectMeta) -> ObjectMeta {
    file.size = file.size.min(CLAIMED_SIZE);
    file
}

/// The pieces of a file, each read on a thread for blocking work.
fn pieces(content: PlainContent) -> BoxStream<'static, Result<Bytes>> {
    let pieces = stream::try_unfold(content, |mut content| async move {
        let read = spawn_blocking(move || content.next_piece().map(|piece| (piece, content)));
        let (piece, content) = read.await.map_err(failed)?.map_err(failed)?;
        Ok(piece.map(|piece| (piece, content)))
    });
    pieces.boxed()
}

/// The content of a file in a temporary file without a name: JSON is read to its end for its schema, and would be held in memory.
async fn in_a_file(mut content: PlainContent) -> Result<File> {
    let written = spawn_blocking(move || {
        let mut file = tempfile::tempfile().map_err(failed)?;
        while let Some(piece) = content.next_piece().map_err(failed)? {
            file.write_all(&piece).map_err(failed)?;
        }
        file.rewind().map_err(failed)?;
        Ok(file)
    });
    written.await.map_err(failed)?
}

impl Display for PlainFiles {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(STORE)
    }
}

#[async_trait]
impl ObjectStore for PlainFiles {
    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let is_head = options.head;
        let found = self.files.get_opts(path, GetOptions { head: true, range: None, ..options }).await?;
        let (meta, attributes) = (with_claimed_size(found.meta), found.attributes);

        let content = self.open(path).await?;
        let payload = match is_head {
            true => GetResultPayload::Stream(stream::empty().boxed()),
            false if Format::of_name(path.as_ref()) == Some(Format::Json) => {
                GetResultPayload::File(in_a_file(content).await?, self.files.path_to_filesystem(path)?)
            }
            false => GetResultPayload::Stream(pieces(content)),
        };
        Ok(GetResult { payload, range: 0..meta.size, meta, attributes })
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix).map(|file| file.map(with_claimed_size)).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut found = self.files.list_with_delimiter(prefix).await?;
        found.objects = found.objects.into_iter().map(with_claimed_size).collect();
        Ok(found)
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(read_only())
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(read_only())
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        stream::once(async { Err(read_only()) }).boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(read_only())
    }
}
