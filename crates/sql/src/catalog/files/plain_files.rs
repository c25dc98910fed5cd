//! Files of text as queries read them: without their compression, byte order mark, and lines before the table.
//!
//! DataFusion decompresses only with libraries that this build leaves out. So compressed files have a scheme of their own,
//! `plain:///2-csv/in/a.csv.gz`, whose store decompresses whenever a file is read, and leaves out two lines before its table. How a file
//! is read is a part of its URL, because a statement may read one file in two ways.

use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::{Seek, Write};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::{Path, PathPart};
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use tidetable_source::{Format, PlainContent};
use tokio::task::spawn_blocking;
use url::Url;

/// The start of the URLs of these files.
pub(crate) const PLAIN: &str = "plain://";
/// The formats of text, and their names in URLs.
const TEXT_FORMATS: [(Format, &str); 2] = [(Format::Csv, "csv"), (Format::Json, "json")];
/// The name of the store in errors.
const STORE: &str = "files";
/// The size that all files claim. Theirs is not known before they are read, and DataFusion splits large files into ranges of bytes.
const CLAIMED_SIZE: u64 = 1;

/// The name of a format of text, which is also the ending of files that DataFusion reads of a directory.
pub(crate) fn name_of(format: Format) -> &'static str {
    TEXT_FORMATS.into_iter().find(|(text, _)| *text == format).map_or("", |(_, name)| name)
}

/// How files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The format of the text.
    pub(crate) format: Format,
    /// Lines before the table, which are left out.
    pub(crate) skipped_lines: u64,
}

impl Reading {
    /// The URL of a local file, or of a directory of files, that is read in this way.
    ///
    /// # Errors
    /// If the path has no URL, or the working directory is unknown.
    pub(crate) fn url(self, path: &std::path::Path) -> std::io::Result<String> {
        let absolute = std::path::absolute(path)?;
        let url = if path.is_dir() { Url::from_directory_path(absolute) } else { Url::from_file_path(absolute) };
        let url = url.map_err(|()| std::io::Error::other(format!("{} has no URL", path.display())))?;
        Ok(format!("{PLAIN}/{self}{}", url.path()))
    }

    /// The way of reading that a path of the store begins with, and the path of the local file system that follows.
    fn of(path: &Path) -> Result<(Self, Path)> {
        let mut parts = path.parts();
        let parsed = parts.next().and_then(|part| Self::parse(part.as_ref()));
        match parsed {
            Some(reading) => Ok((reading, parts.collect())),
            None => Err(Error::NotFound { path: path.to_string(), source: "it does not say how it is read".into() }),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (lines, format) = text.split_once('-')?;
        let format = TEXT_FORMATS.into_iter().find(|(_, name)| *name == format)?.0;
        Some(Self { format, skipped_lines: lines.parse().ok()? })
    }

    /// Whether a directory is read for this file.
    fn takes(self, file: &ObjectMeta) -> bool {
        let is_hidden = file.location.filename().is_some_and(|name| name.starts_with('.'));
        !is_hidden && Format::of_name(file.location.as_ref()) == Some(self.format)
    }

    /// What the local file system says of a file, as this store says it.
    fn described(self, mut file: ObjectMeta) -> ObjectMeta {
        let way = PathPart::from(self.to_string());
        file.location = std::iter::once(way).chain(file.location.parts()).collect();
        file.size = file.size.min(CLAIMED_SIZE);
        file
    }
}

impl Display for Reading {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.skipped_lines, name_of(self.format))
    }
}

/// The local file system, whose files are read as plain text.
#[derive(Debug, Default)]
pub(crate) struct PlainFiles {
    files: LocalFileSystem,
}

impl PlainFiles {
    /// Opens a file of the local file system.
    async fn open(&self, reading: Reading, path: &Path) -> Result<PlainContent> {
        let local = self.files.path_to_filesystem(path)?;
        let opened = spawn_blocking(move || {
            let mut content = PlainContent::open(&local).map_err(failed)?;
            content.skip_lines(reading.skipped_lines).map_err(failed)?;
            Ok(content)
        });
        opened.await.map_err(failed)?
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: STORE, source: Box::new(error) }
}

fn read_only() -> Error {
    Error::NotSupported { source: "files that a query reads are not written".into() }
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
        let (reading, local) = Reading::of(path)?;
        let found = self.files.get_opts(&local, GetOptions { head: true, range: None, ..options }).await?;
        let (meta, attributes) = (reading.described(found.meta), found.attributes);

        let payload = match is_head {
            true => GetResultPayload::Stream(stream::empty().boxed()),
            false => {
                let content = self.open(reading, &local).await?;
                match reading.format {
                    Format::Json => {
                        GetResultPayload::File(in_a_file(content).await?, self.files.path_to_filesystem(&local)?)
                    }
                    _ => GetResultPayload::Stream(pieces(content)),
                }
            }
        };
        Ok(GetResult { payload, range: 0..meta.size, meta, attributes })
    }

    /// The files of a directory, and of those below it, that have the format.
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (reading, directory) = match Reading::of(prefix.unwrap_or(&Path::ROOT)) {
            Ok(asked) => asked,
            Err(error) => return stream::once(async { Err(error) }).boxed(),
        };
        let found = self.files.list(Some(&directory)).try_filter(move |file| std::future::ready(reading.takes(file)));
        found.map_ok(move |file| reading.described(file)).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let (reading, directory) = Reading::of(prefix.unwrap_or(&Path::ROOT))?;
        let mut found = self.files.list_with_delimiter(Some(&directory)).await?;
        found.objects.retain(|file| reading.takes(file));
        found.objects = found.objects.into_iter().map(|file| reading.described(file)).collect();

        let way = PathPart::from(reading.to_string());
        let below = found.common_prefixes.iter();
        found.common_prefixes = below.map(|path| std::iter::once(way.clone()).chain(path.parts()).collect()).collect();
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

#[cfg(test)]
mod tests {
    use datafusion::object_store::ObjectStoreExt;

    use super::*;

    fn path_of(reading: Reading, file: &std::path::Path) -> Path {
        let url = Url::parse(&reading.url(file).unwrap()).unwrap();
        Path::from_url_path(url.path()).unwrap()
    }

    #[tokio::test]
    async fn one_file_is_read_in_several_ways() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a #1?%20.csv");
        std::fs::write(&file, "note\nv\n1\n").unwrap();
        let store = PlainFiles::default();

        for (skipped_lines, text) in [(0, "note\nv\n1\n"), (1, "v\n1\n"), (2, "1\n"), (9, "")] {
            let path = path_of(Reading { format: Format::Csv, skipped_lines }, &file);
            let head = store.head(&path).await.unwrap();
            assert_eq!((head.location, head.size), (path.clone(), CLAIMED_SIZE));
            assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), text, "{skipped_lines}");
        }
        assert!(store.head(&Path::from("a/b.csv")).await.is_err());
    }

    #[tokio::test]
    async fn directories_have_the_files_of_the_format() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("site=A")).unwrap();
        for name in ["b.csv.gz", "site=A/c.tsv", "d.json", ".e.csv", "notes.md"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let directory = path_of(Reading { format: Format::Csv, skipped_lines: 3 }, folder.path());
        let store = PlainFiles::default();

        let found: Vec<ObjectMeta> = store.list(Some(&directory)).try_collect().await.unwrap();
        let mut names: Vec<String> = found.iter().map(|file| file.location.to_string()).collect();
        names.sort();
        assert_eq!(names, [format!("{directory}/b.csv.gz"), format!("{directory}/site=A/c.tsv")]);
        let direct = store.list_with_delimiter(Some(&directory)).await.unwrap();
        assert_eq!(direct.objects[0].location.to_string(), names[0]);
        assert_eq!(direct.common_prefixes, [Path::from(format!("{directory}/site=A"))]);
    }
}
