//! Completions in a real shell, and manual pages.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::harness::Project;

/// What bash offers for a line, the cursor at its end.
fn bash(project: &Project, line: &str) -> Vec<String> {
    let (words, last) = words_of(line);
    let script = format!(
        "source <(tidetable completions bash)\nCOMP_WORDS=({words})\nCOMP_CWORD={last}\n_tidetable\n\
         complete -p tidetable >&2\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
    );
    offered(project, "bash", &["--norc", "-c", &script])
}

/// What zsh offers for a line. Its own functions for completion need a terminal: what the script calls of them is put in their place.
fn zsh(project: &Project, line: &str) -> Vec<String> {
    let (words, last) = words_of(line);
    let script = format!(
        "compadd() {{ shift; print -l -- \"$@\" }}\n_files() {{ print -- FILES }}\ncompdef() {{ }}\n\
         source <(tidetable completions zsh)\nwords=({words})\nCURRENT={}\n_tidetable\n",
        last + 1,
    );
    offered(project, "zsh", &["-f", "-c", &script])
}

/// What fish offers for a line.
fn fish(project: &Project, line: &str) -> Vec<String> {
    let script = format!("source (tidetable completions fish | psub)\ncomplete -C '{line}'\n");
    offered(project, "fish", &["--no-config", "-c", &script])
}

/// The words of a line as an array of bash and zsh, and the place of the last one.
fn words_of(line: &str) -> (String, usize) {
    let words: Vec<String> = line.split(' ').map(|word| format!("'{word}'")).collect();
    (words.join(" "), words.len() - 1)
}

/// The lines that a script of a shell prints, in the folder of a project with the command in `bin`.
fn offered(project: &Project, shell: &str, args: &[&str]) -> Vec<String> {
    let path = format!("{}:{}", project.path("bin").display(), std::env::var("PATH").unwrap());
    let output = Command::new(shell)
        .args(args)
        .current_dir(project.path(""))
        .env("PATH", path)
        .env("HOME", project.path(""))
        .env_remove("TIDETABLE_ROOT")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

/// The sample after a run, with the command in `bin`; `None` where a shell is not installed.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn project_for(shell: &str) -> Option<Project> {
    if Command::new(shell).arg("--version").output().is_err() {
        eprintln!("skipped: there is no {shell}");
        return None;
    }
    let project = Project::smart_meters();
    std::fs::create_dir(project.path("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_tidetable-e2e"), project.path("bin/tidetable")).unwrap();
    project.ok(&["run", "smart-meters"]);
    Some(project)
}

#[test]
fn zsh_and_fish_complete_commands_jobs_and_tables() {
    type Offers = fn(&Project, &str) -> Vec<String>;
    let shells: [(&str, Offers); 2] = [("zsh", zsh), ("fish", fish)];
    for (shell, offers) in shells {
        let Some(project) = project_for(shell) else { continue };
        assert_eq!(offers(&project, "tidetable insp"), ["inspect"], "{shell}");
        assert_eq!(offers(&project, "tidetable run sm"), ["smart-meters"], "{shell}");
        assert_eq!(offers(&project, "tidetable describe SE"), ["SENSOR"], "{shell}");
        assert_eq!(offers(&project, "tidetable run --fr"), ["--from"], "{shell}");
        assert_eq!(offers(&project, "tidetable history --run la"), ["last"], "{shell}");
        assert_eq!(offers(&project, "tidetable -C . run sm"), ["smart-meters"], "{shell}");
        // Values that are no names are left to the shell, which offers files.
        let files = offers(&project, "tidetable new jo");
        assert!(files == ["FILES"] || files == ["jobs/"], "{shell}: {files:?}");
    }
}

#[test]
fn bash_completes_commands_jobs_and_tables() {
    let Some(project) = project_for("bash") else { return };
    assert_eq!(bash(&project, "tidetable insp"), ["inspect"]);
    assert_eq!(bash(&project, "tidetable run sm"), ["smart-meters"]);
    assert!(bash(&project, "tidetable check ").contains(&"smart-meters".to_owned()));
    assert_eq!(bash(&project, "tidetable describe SE"), ["SENSOR"]);
    assert!(bash(&project, "tidetable run x").is_empty());
    assert_eq!(bash(&project, "tidetable run --fr"), ["--from"]);
    assert_eq!(bash(&project, "tidetable --output js"), ["json"]);
    assert_eq!(bash(&project, "tidetable run --output json sm"), ["smart-meters"]);
    assert_eq!(bash(&project, "tidetable schedule --due sm"), ["smart-meters"]);
    // Values that are no names are left to the shell, which offers files.
    assert!(bash(&project, "tidetable new sm").is_empty() && bash(&project, "tidetable sql --file j").is_empty());
    // An option and its value in one word, of which bash makes several.
    assert_eq!(bash(&project, "tidetable run --output = js"), ["json"]);
    assert_eq!(bash(&project, "tidetable run --output =").len(), 9);
    // Outside a project there are no names and no error messages.
    std::fs::remove_file(project.path("tidetable.toml")).unwrap();
    assert!(bash(&project, "tidetable run sm").is_empty());
}

#[test]
fn runs_exports_and_parts_are_completed_in_the_folder_of_the_line() {
    let Some(project) = project_for("bash") else { return };
    let history = project.json(&["history"]);
    let run = history[0]["run"].as_str().unwrap();
    let export = "SENSOR_DAY".to_owned();

    for line in ["retry", "replay", "history --run", "lineage --run"] {
        assert_eq!(bash(&project, &format!("tidetable {line} ")), ["last", run, "smart-meters"], "{line}");
        assert_eq!(bash(&project, &format!("tidetable {line} {}", &run[..5])), [run], "{line}");
    }
    assert_eq!(bash(&project, &format!("tidetable history --run={}", &run[..5])), [format!("--run={run}")]);
    assert_eq!(bash(&project, "tidetable rejects smart-meters --run la"), ["last"]);

    let names = bash(&project, "tidetable lineage SENSOR");
    assert!(names.contains(&"SENSOR".to_owned()) && names.contains(&export), "{names:?}");
    assert!(names.contains(&"SENSOR_20180102".to_owned()), "{names:?}");

    let (table, whole) = ("table:SENSOR".to_owned(), format!("export:{export}"));
    assert!([&table, &whole].iter().all(|name| bash(&project, "tidetable run smart-meters --select ").contains(name)));
    let line = format!("tidetable run --select {table},{}", whole.strip_suffix('Y').unwrap());
    assert_eq!(bash(&project, &line), [format!("{table},{whole}")]);
    // Bash cuts at colons, and replaces what comes after one.
    assert_eq!(bash(&project, "tidetable plan smart-meters --select table :"), ["SENSOR"]);
    assert_eq!(bash(&project, "tidetable plan smart-meters --select table : SE"), ["SENSOR"]);

    assert!(bash(&project, "tidetable -").contains(&"-C".to_owned()));
    std::fs::create_dir(project.path("elsewhere")).unwrap();
    std::fs::create_dir(project.path("elsewhere/jobs")).unwrap();
    project.write("elsewhere/tidetable.toml", "");
    assert!(bash(&project, "tidetable -C elsewhere run sm").is_empty());
    for line in ["-C elsewhere -C ..", "-Celsewhere/..", "-C elsewhere/.."] {
        assert_eq!(bash(&project, &format!("tidetable {line} run sm")), ["smart-meters"], "{line}");
        assert_eq!(bash(&project, &format!("tidetable {line} retry la")), ["last"], "{line}");
    }
    assert_eq!(bash(&project, "tidetable run -C elsewhere/.. sm"), ["smart-meters"]);
    // A root alone names what is in it.
    std::fs::remove_file(project.path("tidetable.toml")).unwrap();
    assert!(bash(&project, "tidetable retry ").is_empty());
    assert_eq!(bash(&project, "tidetable --root data describe SE"), ["SENSOR"]);
}

#[test]
fn every_shell_has_a_script() {
    let project = Project::empty();
    for (shell, part) in [("bash", "complete "), ("zsh", "#compdef tidetable"), ("fish", "complete -c tidetable")] {
        let script = project.ok(&["completions", shell]);
        assert!(script.contains(part) && script.contains("tidetable complete -- "), "{shell}: {script}");
    }
    assert!(project.fails(2, &["completions", "tcsh"]).contains("possible values: bash, zsh, fish"));
    assert!(!project.ok(&["--help"]).contains("  complete "));
}

#[test]
fn manual_pages_are_printed_and_written() {
    let project = Project::empty();
    let page = project.ok(&["man"]);
    assert!(page.contains(".TH tidetable 1") && page.contains("Exit codes"), "{page}");
    project.ok(&["man", "pages/man1"]);
    for name in ["tidetable.1", "tidetable-run.1", "tidetable-new.1", "tidetable-schedule.1"] {
        assert!(project.read(&format!("pages/man1/{name}")).contains(".SH SYNOPSIS"), "{name}");
    }
    project.write("file", "");
    assert!(project.fails(1, &["man", "file/below"]).contains("cannot write file/below"));
}
