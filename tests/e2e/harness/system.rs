//! What tests need of the machine: Python, a terminal, signals, mounts.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::{Project, Ran, repository};

/// Reports on standard error why a test is skipped.
pub fn skipped(reason: &str) {
    let mut stderr = std::io::stderr();
    writeln!(stderr, "skipped: {reason}").unwrap();
}

/// Runs a command; its standard error if it fails.
fn succeed(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A Python that can import `modules`: `TIDETABLE_PYTHON`, or one in a venv of the project. None if it cannot be had.
pub fn python(project: &Project, modules: &str) -> Option<PathBuf> {
    python_of(project, modules, ("TIDETABLE_PYTHON", "tests/requirements.txt"))
}

/// A Python with DuckDB and its extension httpfs: `TIDETABLE_HTTPFS_PYTHON`, or one in a venv of the project. None if it
/// cannot be had.
pub fn httpfs_python(project: &Project) -> Option<PathBuf> {
    let from = ("TIDETABLE_HTTPFS_PYTHON", "bench/requirements-httpfs.txt");
    python_of(project, "duckdb, duckdb_extension_httpfs", from)
}

/// A Python with DuckDB and its extension delta, as [`httpfs_python`].
pub fn delta_python(project: &Project) -> Option<PathBuf> {
    let from = ("TIDETABLE_HTTPFS_PYTHON", "bench/requirements-httpfs.txt");
    python_of(project, "duckdb, duckdb_extension_delta", from)
}

/// A Python with DuckDB and its extension iceberg, as [`httpfs_python`].
pub fn iceberg_python(project: &Project) -> Option<PathBuf> {
    let from = ("TIDETABLE_HTTPFS_PYTHON", "bench/requirements-httpfs.txt");
    python_of(project, "duckdb, duckdb_extension_avro, duckdb_extension_iceberg, duckdb_extension_httpfs", from)
}

/// The Python that a variable names, or one with what a file requires.
fn python_of(project: &Project, modules: &str, (variable, requirements): (&str, &str)) -> Option<PathBuf> {
    let has_modules =
        |python: &PathBuf| succeed(Command::new(python).args(["-c", &format!("import {modules}")])).is_ok();
    if let Some(python) = std::env::var_os(variable).map(PathBuf::from).filter(has_modules) {
        return Some(python);
    }
    let venv = project.path("venv");
    let python = venv.join("bin/python");
    let requirements = repository().join(requirements);
    let installed = succeed(Command::new("python3").args(["-m", "venv"]).arg(&venv)).and_then(|()| {
        succeed(Command::new(&python).args(["-m", "pip", "install", "--quiet", "-r"]).arg(requirements))
    });
    if let Err(reason) = &installed {
        skipped(&format!("{modules} cannot be installed for Python: {reason}"));
    }
    installed.is_ok().then_some(python)
}

/// Runs a script of `tests/e2e`, which must succeed, with a Python that can import `modules`; its standard output.
pub fn python_script<A: AsRef<OsStr>>(
    project: &Project,
    modules: &str,
    script: &str,
    args: impl IntoIterator<Item = A>,
) -> Option<String> {
    Some(run_script(&python(project, modules)?, script, args))
}

/// Runs a script of `tests/e2e`, which must succeed, with a Python; its standard output.
pub fn run_script<A: AsRef<OsStr>>(python: &Path, script: &str, args: impl IntoIterator<Item = A>) -> String {
    let mut command = Command::new(python);
    let ran = Ran::of(command.arg("-B").arg(repository().join("tests/e2e").join(script)).args(args));
    assert_eq!(ran.code, Some(0), "{script}: {}{}", ran.stdout, ran.stderr);
    ran.stdout
}

/// Runs the command, which must succeed, on a terminal of so many columns (0: unknown), and types each line of `keys` at a prompt.
/// Returns what the terminal shows.
pub fn on_terminal(project: &Project, columns: u32, args: &[&str], keys: &str) -> String {
    let (shown, code) = shown_on_terminal(project, columns, args, keys);
    assert_eq!(code, Some(0), "{args:?}: {shown}");
    shown
}

/// As [`on_terminal`], for a command that may fail. Returns its exit code, too.
pub fn shown_on_terminal(project: &Project, columns: u32, args: &[&str], keys: &str) -> (String, Option<i32>) {
    let mut command = Command::new("python3");
    command.arg("-B").arg(repository().join("tests/e2e/query/prompt_check.py")).arg("60");
    command.arg(project.command(&[]).get_program()).args(args).current_dir(project.path(""));
    command.env("XDG_STATE_HOME", project.path("state")).env("NO_COLOR", "1").env("TERM", "xterm");
    command.env("PROMPT_COLUMNS", columns.to_string()).env_remove("COLUMNS");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(keys.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (String::from_utf8_lossy(&output.stdout).replace('\r', ""), output.status.code())
}

/// Sends a signal, such as `-INT`, to a process.
pub fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// The time of the processor that a process has taken, ticks of a hundredth of a second; 0 if it has ended.
pub fn processor_ticks(child: &Child) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).into_iter().flatten();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// The memory of a process that is no file's, MiB; `None` if it has ended.
pub fn anonymous_mebibytes(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let (_, rest) = status.split_once("RssAnon:")?;
    Some(rest.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

/// How a command ended, and what it took.
pub struct Measured {
    pub status: ExitStatus,
    /// Its standard error.
    pub said: String,
    /// The most memory that it held, without that of files, MiB.
    pub most: u64,
    /// The time of the processor, ticks of a hundredth of a second.
    pub ticks: u64,
}

/// Runs a command that says little, and measures it.
pub fn measured(command: &mut Command) -> Measured {
    let mut child = KilledOnDrop(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let (mut most, mut ticks, mut status) = (0, 0, None);
    wait_for("the end", || {
        most = most.max(anonymous_mebibytes(&child.0).unwrap_or_default());
        ticks = ticks.max(processor_ticks(&child.0));
        status = child.0.try_wait().unwrap();
        status.is_some()
    });
    let mut said = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    Measured { status: status.unwrap(), said, most, ticks }
}

/// Waits for the end of a process. Returns the time of the processor that it had taken when it was last seen, ticks.
pub fn ticks_until_the_end(child: &mut Child) -> u64 {
    let mut seen = 0;
    wait_for("the end", || {
        seen = processor_ticks(child).max(seen);
        child.try_wait().unwrap().is_some()
    });
    seen
}

/// The status of a process that was asked to end, and does within a minute.
pub fn status_at_the_end(child: &mut Child) -> ExitStatus {
    wait_at_most(Duration::from_secs(60), "the end", || child.try_wait().unwrap().is_some());
    child.wait().unwrap()
}

/// Waits until something holds, for two minutes at most.
pub fn wait_for(what: &str, holds: impl FnMut() -> bool) {
    wait_at_most(Duration::from_secs(120), what, holds);
}

fn wait_at_most(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let clock = Instant::now();
    while !holds() {
        assert!(clock.elapsed() < limit, "waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A process that is killed when dropped.
pub struct KilledOnDrop(pub Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Something mounted, and unmounted when dropped.
pub struct Mount(pub PathBuf);

impl Mount {
    /// A small file system in the root of a project. None if this machine does not allow mounts.
    pub fn new(project: &Project, size: &str) -> Option<Self> {
        Self::small(project.path("data"), size)
    }

    /// A small file system. None if this machine does not allow mounts.
    pub fn small(at: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir_all(&at).unwrap();
        mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"], &at).then(|| Self(at))
    }

    /// A directory that cannot be written. None if this machine does not allow mounts.
    pub fn read_only(at: PathBuf) -> Option<Self> {
        let mounted = mount(&["--bind", at.to_str().unwrap()], &at).then(|| Self(at))?;
        mount(&["-o", "remount,bind,ro"], &mounted.0).then_some(mounted)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// Whether something could be mounted at a path.
pub fn mount(args: &[&str], at: &Path) -> bool {
    let mounted = succeed(Command::new("mount").args(args).arg(at));
    if let Err(reason) = &mounted {
        skipped(&format!("nothing can be mounted here: {reason}"));
    }
    mounted.is_ok()
}
