//! The project: the directory with a tidetable.toml, its store root and its jobs.

use std::path::{Component, Path, PathBuf, absolute};
use std::time::Duration;

use tidetable_source::{Location, is_url};

use crate::file::{
    CacheSettings, Cluster, Fields, JobError, JobFileError, PROJECT, ProjectError, Reader, Root, StorageSetting,
    nearest, read_cluster, read_root,
};

/// The file that marks the project directory.
const MARK: &str = "tidetable.toml";
/// The store of a project that does not name another.
const ROOT: &str = "data";

/// A directory with a tidetable.toml, which holds jobs, sources and, by default, the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Absolute path of its directory, in which its tidetable.toml is.
    pub dir: PathBuf,
    /// The store: an absolute path, or a URL such as `s3://bucket/prefix` as given.
    pub root: String,
    /// Settings of a root in a bucket. They are for the root of the command line, too.
    pub storage: Vec<StorageSetting>,
    /// How long the lock of a job in a bucket holds without being renewed; `None` for the default.
    pub lease: Option<Duration>,
    /// The cache of a root in a bucket; unused for a root in a folder.
    pub cache: CacheSettings,
    /// Other machines, which do the work of runs if a scheduler is named.
    pub cluster: Cluster,
    /// The absolute directory to which paths of the command line are relative.
    start: PathBuf,
}

impl Project {
    /// Finds the project: the nearest directory, from `start` upwards, with a
    /// tidetable.toml, which names the store (`root`, by default `data` beside it).
    ///
    /// # Errors
    /// If there is none, or it cannot be read or is invalid.
    pub fn find(start: &Path) -> Result<Self, ProjectError> {
        let start = absolute(start).map_err(|source| ProjectError::Read { path: start.to_owned(), source })?;
        let dir = start
            .ancestors()
            .find(|folder| folder.join(MARK).is_file())
            .ok_or_else(|| ProjectError::NotFound { start: start.clone() })?
            .to_owned();

        let path = dir.join(MARK);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) => return Err(ProjectError::Read { path, source }),
        };

        let mut reader = Reader::new(&text);
        let table = reader.parse();
        let root = table.as_ref().map(|table| {
            let fields = Fields::of_table(&mut reader, &PROJECT, table, 0..0);
            (read_root(&mut reader, &fields), read_cluster(&mut reader, &fields))
        });
        let problems = reader.into_problems();
        if !problems.is_empty() {
            let shown = shown(&path, &start);
            return Err(Box::new(JobFileError::new(&shown, text, problems)).into());
        }

        let (Root { place, storage, lease, cache }, cluster) = root.unwrap_or_default();
        // A place that is none was reported.
        let place = place.unwrap_or_else(|| Location::Path(ROOT.into()));
        let root = resolve(&place, &dir);
        Ok(Self { dir, root, storage, lease, cache, cluster, start })
    }

    /// A project with a store only, for commands that need no job: `root` is relative to the absolute path `start`.
    pub fn of_store(start: &Path, root: &Location) -> Self {
        let (dir, start) = (start.to_owned(), start.to_owned());
        let (empty, storage, cache) = (String::new(), Vec::new(), CacheSettings::default());
        let bare = Self { dir, root: empty, storage, lease: None, cache, cluster: Cluster::default(), start };
        bare.with_root(Some(root))
    }

    /// The project that the absolute path `dir` becomes by a tidetable.toml of [`Self::first_settings`].
    pub fn begin(dir: &Path) -> Self {
        Self::of_store(dir, &Location::Path(ROOT.into()))
    }

    /// The path and the text of its tidetable.toml, if it has none.
    pub fn first_settings(&self) -> Option<(PathBuf, String)> {
        let path = self.dir.join(MARK);
        (!path.exists()).then(|| (path, format!("root = \"{ROOT}\" # where tables and exports are\n")))
    }

    /// Overrides the store root by the option `--root` or the environment variable `TIDETABLE_ROOT`, if one is given and not
    /// empty. Paths are relative to where [`Project::find`] started.
    #[must_use]
    pub fn with_root(mut self, given: Option<&Location>) -> Self {
        if let Some(root) = given.filter(|root| !root.is_empty()) {
            self.root = resolve(root, &self.start);
        }
        self
    }

    /// Whether the store root is a URL of a bucket, and not a folder.
    pub fn root_is_url(&self) -> bool {
        is_url(&self.root)
    }

    /// Resolves a `path` of a job file: absolute paths and URLs stay, others are relative to the project
    /// directory.
    pub fn resolve(&self, path: &str) -> String {
        if is_url(path) { path.to_owned() } else { self.dir.join(path).to_string_lossy().into_owned() }
    }

    /// Converts a `path` of the command line to the form of job files: relative if it is below the project directory,
    /// absolute otherwise. URLs stay.
    pub fn given(&self, path: &str) -> String {
        if is_url(path) {
            return path.to_owned();
        }
        let whole = plain(&self.start.join(path)).unwrap_or_else(|_| self.start.join(path));
        whole.strip_prefix(&self.dir).unwrap_or(&whole).to_string_lossy().into_owned()
    }

    /// The names of the jobs in `jobs/`, sorted: directories with a job.toml, and files NAME.toml. Empty
    /// without that directory.
    pub fn jobs(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.jobs_dir()) else { return Vec::new() };
        let mut names: Vec<_> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let is_toml = path.extension().is_some_and(|ending| ending == "toml") && path.is_file();
                let name = match is_toml {
                    true => path.file_stem(),
                    false => path.file_name().filter(|_| path.join("job.toml").is_file()),
                };
                name.and_then(|name| name.to_str()).map(str::to_owned)
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn jobs_dir(&self) -> PathBuf {
        self.dir.join("jobs")
    }

    /// The job file for `asked`: the name of a job, or the path of a file or directory.
    pub fn locate(&self, asked: &str) -> Result<PathBuf, JobError> {
        let is_path = asked.contains(['/', '\\']) || asked.ends_with(".toml") || matches!(asked, "." | "..");
        if is_path {
            return [&self.start, &self.dir]
                .into_iter()
                .map(|base| base.join(asked))
                .map(|path| if path.is_dir() { path.join("job.toml") } else { path })
                .find(|path| path.is_file())
                .and_then(|path| plain(&path).ok())
                .ok_or_else(|| JobError::NoFile { path: asked.into() });
        }

        let folder = self.jobs_dir().join(asked).join("job.toml");
        let file = self.jobs_dir().join(format!("{asked}.toml"));
        match (folder.is_file(), file.is_file()) {
            _ if asked.is_empty() => Err(self.unknown(asked)),
            (true, true) => {
                Err(JobError::Twice { name: asked.to_owned(), folder: self.shown(&folder), file: self.shown(&file) })
            }
            (true, false) => Ok(folder),
            (false, true) => Ok(file),
            (false, false) => Err(self.unknown(asked)),
        }
    }

    /// `path` for messages: relative to the current directory if it is below.
    pub(crate) fn shown(&self, path: &Path) -> PathBuf {
        shown(path, &self.start)
    }

    fn unknown(&self, asked: &str) -> JobError {
        let known = self.jobs();
        let near = nearest(asked, known.iter().map(String::as_str));
        JobError::Unknown { name: asked.to_owned(), folder: self.shown(&self.jobs_dir()), known, near }
    }
}

/// `path` without `..`, which would hide the name of its directory.
fn plain(path: &Path) -> std::io::Result<PathBuf> {
    if path.components().any(|part| part == Component::ParentDir) { path.canonicalize() } else { absolute(path) }
}

fn resolve(place: &Location, base: &Path) -> String {
    match place {
        Location::Path(path) => base.join(path).to_string_lossy().into_owned(),
        Location::Bucket(url) => url.as_str().to_owned(),
    }
}

fn shown(path: &Path, start: &Path) -> PathBuf {
    path.strip_prefix(start).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_root_comes_from_the_command_line_then_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        assert!(matches!(Project::find(&below), Err(ProjectError::NotFound { .. })));

        fs::write(dir.path().join(MARK), "root = \"store\"\n").unwrap();
        let project = Project::find(&below).unwrap();
        assert_eq!(project.dir, dir.path());
        assert_eq!(Path::new(&project.root), dir.path().join("store"));
        let root = |given: Option<&str>| {
            let given = given.map(|given| Location::parse(given).unwrap());
            project.clone().with_root(given.as_ref()).root
        };
        assert_eq!(Path::new(&root(Some("x"))), below.join("x"));
        assert_eq!(Path::new(&root(Some(""))), dir.path().join("store"));
        assert_eq!(Path::new(&root(Some("file:///y"))), Path::new("/y"));
        assert_eq!(root(Some("s3://bucket/prefix")), "s3://bucket/prefix");
        fs::write(
            dir.path().join(MARK),
            "[root]\nurl = \"s3://b/p\"\nlease = \"90s\"\n[root.storage]\nregion = \"r\"\nsecret_access_key = { env = \"K\" }\n",
        )
        .unwrap();
        let bucket = Project::find(&below).unwrap();
        assert_eq!((bucket.root.as_str(), bucket.lease), ("s3://b/p", Some(Duration::from_secs(90))));
        assert_eq!(
            bucket.storage.iter().map(|setting| setting.key).collect::<Vec<_>>(),
            ["region", "secret_access_key"]
        );
        assert!(bucket.storage.iter().all(|setting| setting.is_for("s3://other") && !setting.is_for("gs://other")));
        assert_eq!(Path::new(&root(None)), dir.path().join("store"));
        assert_eq!(project.resolve("gs://b/x.csv"), "gs://b/x.csv");
        assert!(project.jobs().is_empty());
    }

    #[test]
    fn a_project_file_may_be_empty_but_not_wrong() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(MARK), "").unwrap();
        assert_eq!(Path::new(&Project::find(dir.path()).unwrap().root), dir.path().join("data"));
        for wrong in [
            "rot = \"x\"",
            "root = 3",
            "root = \"\"",
            "root =",
            "root = { url = \"\" }",
            "root = \"s3:/b/p\"",
            "root = \"http://h/p\"",
            "root = { url = \"s3://key:hush@b\" }",
            "root = { url = \"s3://b\", storage = { endpoint = \"127.0.0.1:9000\" } }",
            "root = { cache = { dir = \"s3://b/cache\" } }",
            "root = { lease = \"1s\" }",
            "root = { url = \"gs://b\", storage = { region = \"r\" } }",
            "root = { storage = { secret_access_key = \"x\" } }",
            "root = { cache = { size = \"big\" } }",
            "root = { cache = { folder = \"x\" } }",
            "cluster = { url = \"\" }",
            "cluster = { url = \"http://a:1\" }",
            "cluster = { place = \"x\" }",
            "cluster = { url = \"ballista+tls://\" }",
            "cluster = { cert = \"x.pem\" }",
            "cluster = { key = \"x.pem\" }",
            "cluster = { ca = \"\" }",
            "cluster = { timeout = \"1d\" }",
        ] {
            fs::write(dir.path().join(MARK), wrong).unwrap();
            let Err(ProjectError::File(error)) = Project::find(dir.path()) else { panic!("{wrong}") };
            assert_eq!(error.problems().len(), 1, "{wrong}");
        }
    }
}
