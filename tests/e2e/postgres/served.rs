//! A running `tidetable serve --postgres`, and the clients of this machine.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::harness::system::{KilledOnDrop, skipped};
use crate::harness::{Project, Ran};

/// A running server.
pub struct Served {
    pub process: KilledOnDrop,
    /// Host and port.
    pub address: String,
    /// What it said at its start on standard error.
    pub said: String,
    log: Arc<Mutex<String>>,
}

impl Served {
    /// A server for clients of this machine.
    pub fn start(project: &Project, args: &[&str]) -> Self {
        Self::start_at(project, "127.0.0.1:0", args)
    }

    /// A server at an address.
    pub fn start_at(project: &Project, address: &str, args: &[&str]) -> Self {
        let mut command = project.command(&[&["serve", "--postgres", address], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut said).unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let log = Arc::<Mutex<String>>::default();
        let written = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                written.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });

        let url = line.trim().strip_prefix("postgresql://").and_then(|rest| rest.strip_suffix("/tidetable"));
        let address = url.unwrap_or_else(|| panic!("the server does not start: {line}{said}"));
        let address = address.rsplit('@').next().unwrap().to_owned();
        Self { process: KilledOnDrop(child), address, said, log }
    }

    /// What it has logged since its start on standard error.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The port.
    pub fn port(&self) -> &str {
        self.address.rsplit_once(':').unwrap().1
    }

    /// `psql` with arguments; `None`, and a note, if it is not on this machine.
    pub fn psql(&self, args: &[&str]) -> Option<Ran> {
        self.psql_as("ada", &[], args)
    }

    /// As [`Self::psql`], as a user and with variables.
    pub fn psql_as(&self, user: &str, variables: &[(&str, &str)], args: &[&str]) -> Option<Ran> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|folder| folder.join("psql").is_file()) {
            skipped("psql is not here");
            return None;
        }
        let mut command = Command::new("timeout");
        command.args([
            "120",
            "psql",
            "-X",
            "-v",
            "VERBOSITY=verbose",
            "-h",
            "127.0.0.1",
            "-p",
            self.port(),
            "-U",
            user,
        ]);
        command.args(["-d", "tidetable"]).args(args).stdin(Stdio::null());
        command.env("PGCONNECT_TIMEOUT", "30").env("LC_ALL", "C.UTF-8").envs(variables.iter().copied());
        Some(Ran::of(&mut command))
    }

    /// The rows of a statement, fields between `|`; it must succeed.
    pub fn rows(&self, statement: &str) -> Option<String> {
        let ran = self.psql(&["-A", "-t", "-c", statement])?;
        assert_eq!(ran.code, Some(0), "{statement}: {}{}", ran.stdout, ran.stderr);
        Some(ran.stdout.trim_end().to_owned())
    }

    /// The message of a statement that must fail.
    pub fn refusal(&self, statement: &str) -> Option<String> {
        let ran = self.psql(&["-A", "-t", "-c", statement])?;
        assert_eq!(ran.code, Some(1), "{statement}: {}", ran.stdout);
        Some(ran.stderr)
    }

    /// Memory of the server that is in use, KiB.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(Path::new("/proc").join(self.process.0.id().to_string()).join("status"));
        let status = status.unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

/// Readings with a value of each type that a job can declare.
pub fn all_types() -> Project {
    let job = r#"
name = "j"
[sources.readings]
files = ["readings.csv"]
time = "ts"
[sources.readings.columns]
id = "uint64"
ts = "timestamp"
small = "int64"
big = "int64"
price = "decimal(12,3)"
ratio = "float64"
ok = "bool"
day = "date"
name = "text"
[tables.T]
row_key = "{id}#{ts:%Y%m%d}"
[tables.T.families.f]
columns = [{ each = "*", except = ["id", "ts"], qualifier = "{column}", value = "{value}" }]
"#;
    let project = Project::new("j", job);
    let mut csv = "id,ts,small,big,price,ratio,ok,day,name\n".to_owned();
    for row in 0..300_u64 {
        let id = if row == 0 { u64::MAX } else { row };
        let (hour, minute) = (row / 60 % 24, row % 60);
        let small = i64::try_from(row).unwrap() * 7 % 41 - 20;
        let big = if row % 5 == 0 { String::new() } else { (small * 1_000_000_007).to_string() };
        let price = format!("{}.{:03}", small * 13, row % 1_000);
        let ratio = if row % 7 == 0 { String::new() } else { format!("{}", small as f64 / 7.0) };
        let name = match row % 6 {
            0 => String::new(),
            1 => "plain".to_owned(),
            2 => "\"a, \"\"b\"\"\"".to_owned(),
            3 => "é ü 漢".to_owned(),
            _ => format!("{{n{row}}}"),
        };
        let (ok, day) = (row % 3 == 0, 1 + row % 28);
        csv.push_str(&format!(
            "{id},2024-03-0{}T{hour:02}:{minute:02}:00.{:06}Z,{small},{big},{price},{ratio},{ok},2024-02-{day:02},{name}\n",
            1 + row % 3,
            row * 3_331 % 1_000_000
        ));
    }
    project.write("readings.csv", csv);
    project.ok(&["run", "j"]);
    project
}
