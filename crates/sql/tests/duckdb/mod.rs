//! DuckDB, asked by a script in Python.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};

/// The Python of `TIDETABLE_PYTHON`, if it has these modules; otherwise a line says what is skipped.
pub fn python_with(modules: &str) -> Option<OsString> {
    let has_modules = |python: &OsString| {
        let import = format!("import {modules}");
        Command::new(python).args(["-c", &import]).output().is_ok_and(|output| output.status.success())
    };
    let python = std::env::var_os("TIDETABLE_PYTHON").filter(has_modules);
    if python.is_none() {
        eprintln!("skipped: TIDETABLE_PYTHON names no Python that has {modules}");
    }
    python
}

/// Runs `script`, a path below `tests`, with `input`, and shows what it says. It must find no difference.
pub fn run_script(python: &OsString, script: &str, args: &[&str], input: String) {
    eprintln!("{}", output_of(python, script, args, input));
}

/// What `script`, a path below `tests`, prints. It must succeed.
pub fn output_of(python: &OsString, script: &str, args: &[&str], input: String) -> String {
    let mut asked = Command::new(python)
        .arg("-B")
        .arg(format!("{}/tests/{script}", env!("CARGO_MANIFEST_DIR")))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It answers while it reads: both pipes may be full.
    let mut stdin = asked.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = asked.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    writer.join().unwrap().unwrap();
    said
}
