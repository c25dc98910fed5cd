//! Random layouts measured twice: by the command, and by a program in Python that knows only the definitions.

use std::ffi::OsStr;

use crate::harness::Project;
use crate::harness::system::python_script;

/// Jobs of eight layouts each.
const JOBS: u32 = 25;

#[test]
fn numbers_are_those_of_the_definitions() {
    for seed in 0..JOBS {
        let project = Project::empty();
        let (folder, seed) = (project.path(""), seed.to_string());
        let script = "advisor/oracle.py";
        let args = [OsStr::new("make"), folder.as_os_str(), OsStr::new(&seed)];
        if python_script(&project, "tomllib", script, args).is_none() {
            return;
        }
        project.write("found.jsonl", project.ok(&["compare", "j", "--output", "json"]));
        let found = project.path("found.jsonl");
        let said =
            python_script(&project, "tomllib", script, [OsStr::new("check"), folder.as_os_str(), found.as_os_str()]);
        assert_eq!(said.as_deref(), Some("8 layouts\n"), "seed {seed}");
    }
}
