//! `tidetable doctor`: reports damage of a store, its costs and the remedy.

use std::io::Write;

use tidetable_runner::report::Diagnosis;
use tidetable_runner::{UlidIds, runtime};

use crate::activity::Activity;
use crate::args::{Doctor, Global, Output};
use crate::commands::{clock, project_if_any, store};
use crate::error::CliError;
use crate::objects;
use crate::output::values::count;
use crate::output::{ResultRows, row, sentences};

/// Reports damage, and fixes it with `--fix`.
pub fn doctor(global: &Global, args: &Doctor) -> Result<(), CliError> {
    let store = store(global)?;
    let now = clock();

    let activity = Activity::begin(global, "looking at the files of the root");
    let project = project_if_any(global)?;
    let runtime = runtime()?;
    let mut found = Diagnosis::new(&store, project.as_ref(), &args.without, runtime.handle(), now)?;
    let fixed = if args.fix { found.fix(&store, project.as_ref(), &UlidIds::default()) } else { Ok(()) };
    drop(activity);

    let mut out = sentences(global.output);
    match global.output {
        Output::Table => tell(&found, &mut out)?,
        output => rows(&found).write(output, &mut out)?,
    }
    out.flush()?;

    fixed?;
    let left = found.findings.iter().filter(|finding| !finding.fixed);
    let (files, fixable) = left.fold((0, false), |(files, any), finding| (files + 1, any || finding.fixable));
    match files {
        0 => Ok(()),
        files => {
            let verb = if files == 1 { "is" } else { "are" };
            let advice = if fixable { "; `tidetable doctor --fix` fixes what can be" } else { "" };
            Err(CliError::Unsound { files: format!("{} {verb}", count(files, "file")), advice })
        }
    }
}

fn tell(found: &Diagnosis, out: &mut impl Write) -> Result<(), CliError> {
    for finding in &found.findings {
        writeln!(out, "{}: {}", finding.path, finding.damage)?;
        writeln!(out, "  costs    {}", finding.costs)?;
        if !finding.fixed {
            let label = if finding.fixable { "--fix" } else { "do   " };
            writeln!(out, "  {label}    {}", finding.remedy)?;
            continue;
        }

        match &finding.set_aside {
            Some(to) => writeln!(out, "  moved to {to}")?,
            None => writeln!(out, "  fixed")?,
        }
        // What --fix did is said; what is left to do stands after it.
        if let Some((_, next)) = finding.remedy.split_once("; then ") {
            writeln!(out, "  next     {next}")?;
        }
    }
    found.notes.iter().try_for_each(|note| writeln!(out, "{note}"))?;
    let read: Vec<String> = found
        .read
        .iter()
        .map(|(kind, files)| match kind.name().split_once(' ') {
            Some((noun @ ("file" | "list"), rest)) => format!("{} {rest}", count(*files, noun)),
            _ => count(*files, kind.name()),
        })
        .collect();
    let state = if found.findings.is_empty() { "sound" } else { "looked at" };
    writeln!(out, "{state}: {}", if read.is_empty() { "nothing is there".to_owned() } else { read.join(", ") })?;
    Ok(())
}

fn rows(found: &Diagnosis) -> ResultRows {
    let mut rows =
        ResultRows::of(objects::DAMAGE).below(&["costs", "remedy"]).minor(&["set_aside", "fixed", "fixable"]);
    for finding in &found.findings {
        rows.push(row![
            finding.path,
            finding.kind,
            finding.damage,
            finding.costs,
            finding.remedy,
            finding.fixable,
            finding.fixed,
            finding.set_aside
        ]);
    }
    rows
}
