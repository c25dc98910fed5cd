//! A project in a temporary folder, and the command run in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A job `j` of readings of meters, a row a meter and day in the table `T`: the files, more about the source, and what else it has.
macro_rules! readings_job {
    ($files:literal, $source:literal, $more:literal) => {
        concat!(
            "name = \"j\"\n[sources.readings]\nfiles = [\"",
            $files,
            "\"]\ntime = \"ts\"\n",
            $source,
            "\n[sources.readings.columns]\nmeter = \"uint64\"\nts = \"timestamp\"\nkwh = \"float64\"\n",
            "[tables.T]\nrow_key = \"{meter:03}#{ts:%Y%m%d}\"\n",
            "[tables.T.families.M]\ncolumns = [{ qualifier = \"{ts:%H%M}\", value = \"{kwh}\" }]\n",
            $more
        )
    };
}

/// The repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_owned()
}

/// A project of its own: the repository's sample data and job, or files a test writes.
pub struct Project {
    folder: TempDir,
}

/// What a command did.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Project {
    /// An empty project with this job.
    pub fn new(job: &str, text: &str) -> Self {
        let project = Self { folder: TempDir::new().unwrap() };
        project.write("tidetable.toml", "root = \"data\"\n");
        project.write(&format!("jobs/{job}/job.toml"), text);
        project
    }

    /// A project without jobs.
    pub fn empty() -> Self {
        let project = Self { folder: TempDir::new().unwrap() };
        project.write("tidetable.toml", "root = \"data\"\n");
        project
    }

    /// The smart-meters job on its sample data.
    pub fn smart_meters() -> Self {
        let job = repository().join("jobs/smart-meters");
        let project = Self::new("smart-meters", &fs::read_to_string(job.join("job.toml")).unwrap());
        for query in ["sensor_day.sql", "sensor_rollup.sql"] {
            fs::copy(job.join(query), project.path(&format!("jobs/smart-meters/{query}"))).unwrap();
        }
        let sample = repository().join("sample-data/smart-meters");
        fs::create_dir_all(project.path("sample-data/smart-meters")).unwrap();
        for file in fs::read_dir(sample).unwrap() {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            if name.ends_with(".csv") || name.ends_with(".parquet") {
                fs::copy(file.path(), project.path(&format!("sample-data/smart-meters/{name}"))).unwrap();
            }
        }
        project
    }

    pub fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// The command, not yet run.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidetable-e2e"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_remove("TIDETABLE_ROOT").env_remove("RUST_LOG").env("NO_COLOR", "1").env("COLUMNS", "100");
        // Servers of tests are on this machine.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command
    }

    /// Runs the command to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().unwrap();
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the command, which must succeed; its standard output.
    pub fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// Runs the command, which must fail with `code`; its standard error.
    pub fn fails(&self, code: i32, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran.stderr
    }

    /// The rows of a query.
    pub fn sql(&self, query: &str) -> Vec<Value> {
        json_lines(&self.ok(&["sql", "--output", "json", "-c", query]))
    }

    /// Runs the job; its record.
    pub fn run_job(&self, job: &str) -> Value {
        json_lines(&self.ok(&["run", job, "--output", "json"])).remove(0)
    }

    /// The record of a run as it is stored.
    pub fn stored_record(&self, run: &Value) -> Value {
        serde_json::from_str(&self.read(&format!("data/runs/{}.json", run.as_str().unwrap()))).unwrap()
    }

    /// Every file below `folder` with its bytes, but for run records and what goes with them.
    pub fn files(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.path(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(self.folder.path()).unwrap().display().to_string();
                    files.insert(name, fs::read(path).unwrap());
                }
            }
        }
        files.retain(|name, _| !["/runs/", "/locks/", "/seen/"].iter().any(|folder| name.contains(folder)));
        files
    }
}

/// The objects of a text, one a line.
pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// A time in JSON, in microseconds since the epoch.
pub fn micros(time: &Value) -> i64 {
    chrono::DateTime::parse_from_rfc3339(time.as_str().unwrap()).unwrap().timestamp_micros()
}

/// The bytes of a cell in JSON: text, or base64 where they are none.
pub fn cell_bytes(value: &Value) -> Vec<u8> {
    if let Some(text) = value.as_str() {
        return text.as_bytes().to_vec();
    }
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let text = value["base64"].as_str().unwrap_or_else(|| panic!("no bytes: {value}"));
    let mut bytes = Vec::new();
    let (mut held, mut bits) = (0u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        held = held << 6 | u32::from(digit(byte));
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    bytes
}

/// The integer of a cell of eight bytes.
pub fn cell_integer(value: &Value) -> i64 {
    i64::from_be_bytes(cell_bytes(value).try_into().unwrap())
}

/// A Python that can import `modules`: the one `just test` has made, or one in a venv of the test's own.
pub fn python(project: &Project, modules: &str) -> Result<PathBuf, String> {
    let has_modules = |python: &PathBuf| {
        let tried = Command::new(python).args(["-c", &format!("import {modules}")]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    if let Some(python) = std::env::var_os("TIDETABLE_PYTHON").map(PathBuf::from).filter(has_modules) {
        return Ok(python);
    }
    let venv = project.path("venv");
    let step = |command: &mut Command| match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    };
    step(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let python = venv.join("bin/python");
    let requirements = repository().join("tests/requirements.txt");
    step(Command::new(&python).args(["-m", "pip", "install", "--quiet", "-r"]).arg(requirements))?;
    Ok(python)
}

/// A small file system of its own, if this machine lets us have one. Taken away again at the end.
pub struct Mount(pub PathBuf);

impl Mount {
    pub fn new(project: &Project, size: &str) -> Result<Self, String> {
        let at = project.path("data");
        fs::create_dir_all(&at).unwrap();
        mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"], &at).map(|()| Self(at))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

pub fn mount(args: &[&str], at: &Path) -> Result<(), String> {
    match Command::new("mount").args(args).arg(at).output() {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
