//! The parts of `--help` beside options: groups of commands, and examples.

use clap::{Command, CommandFactory};

use super::Cli;

/// Commands by purpose, in the order in which a user meets them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Jobs", &["try", "new", "check", "plan", "run", "retry", "replay", "schedule", "schema"]),
    ("Layouts", &["lint", "compare", "advise", "heatmap"]),
    ("Looking back", &["status", "report", "history", "lineage", "rejects"]),
    ("Data", &["sql", "read", "export", "tables", "describe", "proto"]),
    ("Bigtable", &["push", "pull", "diff", "serve"]),
    ("Other machines", &["scheduler", "executor"]),
    ("Upkeep", &["delete", "drop-rows", "drop", "compact", "vacuum", "clean", "cache", "inspect"]),
    ("Safety", &["backup", "restore", "copy", "verify", "doctor", "repair"]),
    ("Shell", &["completions", "man", "help"]),
];

/// A command line and what it does.
type Example = (&'static str, &'static str);

/// Examples for each command.
const EXAMPLES: &[(&str, [Example; 2])] = &[
    (
        "run",
        [
            ("tidetable run smart-meters", "load what is new, publish the days that changed"),
            ("tidetable run smart-meters --day yesterday --force", "publish a day again"),
        ],
    ),
    (
        "plan",
        [
            ("tidetable plan smart-meters", "what a run would do now"),
            ("tidetable plan smart-meters --rebuild", "what rebuilding all tables would do"),
        ],
    ),
    (
        "retry",
        [
            ("tidetable retry 01KAN3ZJ6Q8V3W5X7Y9Z1A2B3C", "try again the days that a run could not publish"),
            ("tidetable retry 01KAN3ZJ6Q8V3W5X7Y9Z1A2B3C --memory 1GiB", "with more memory"),
        ],
    ),
    (
        "status",
        [
            ("tidetable status", "a line for each job"),
            ("tidetable status smart-meters --fresh 26h", "exit with 1 if it is older"),
        ],
    ),
    (
        "report",
        [
            ("tidetable report smart-meters", "days, runs, checks and lineage of a job"),
            ("tidetable report smart-meters --report page.html", "the same as a page, for a browser"),
        ],
    ),
    (
        "history",
        [
            ("tidetable history smart-meters --limit 5", "the last five runs of a job"),
            ("tidetable history --failed --since 7d", "what went wrong this week"),
        ],
    ),
    (
        "lineage",
        [
            ("tidetable lineage SENSOR 2018-01-31", "what a day of a table was made from"),
            ("tidetable lineage --input meters/2018-01-31.csv", "what a file went into"),
        ],
    ),
    (
        "rejects",
        [
            ("tidetable rejects smart-meters", "the rows that the last run rejected, and why"),
            ("tidetable rejects smart-meters --output csv > rejected.csv", "as they stand in their files"),
        ],
    ),
    (
        "replay",
        [
            ("tidetable replay 01KAN3ZJ6Q8V3W5X7Y9Z1A2B3C", "read the files of a run's rejected rows again"),
            ("tidetable replay 01KAN3ZJ6Q8V3W5X7Y9Z1A2B3C --without in/a.csv", "without a file that is gone"),
        ],
    ),
    (
        "clean",
        [
            ("tidetable clean", "what would be removed"),
            ("tidetable clean --older-than 30d --yes", "remove what is older than 30 days"),
        ],
    ),
    (
        "sql",
        [
            ("tidetable sql 'select * from SENSOR limit 5'", "a query; without one there is a prompt"),
            ("tidetable sql -c 'select * from SENSOR' -O sensor.parquet", "its rows in a file"),
        ],
    ),
    (
        "read",
        [
            ("tidetable read SENSOR --prefix '0000000042#' --limit 3", "the first rows of a meter"),
            ("tidetable read SENSOR --row '0000000042#20180131' --include-expired", "all that is stored of a row"),
        ],
    ),
    (
        "export",
        [
            ("tidetable export SENSOR --to sensor.csv", "all cells of a table"),
            ("tidetable export -c 'select * from SENSOR' --to - --format json", "rows of a query, for a pipe"),
        ],
    ),
    (
        "push",
        [
            ("tidetable push SENSOR --to projects/p/instances/i --create", "what a first push would make"),
            ("tidetable push SENSOR --to projects/p/instances/i --rate 5000/s", "what changed since the last one"),
        ],
    ),
    (
        "pull",
        [
            ("tidetable pull projects/p/instances/i/tables/SENSOR --into meters", "records for a job to load"),
            ("tidetable pull projects/p/instances/i/tables/SENSOR --raw --into copy", "every cell as it is"),
        ],
    ),
    (
        "diff",
        [
            ("tidetable diff SENSOR projects/p/instances/i", "whether both hold the same cells"),
            ("tidetable diff SENSOR projects/p/instances/i --prefix 00 --limit 5", "of some rows, with few examples"),
        ],
    ),
    (
        "serve",
        [
            ("tidetable serve", "answer clients on this machine"),
            ("tidetable serve --postgres 127.0.0.1:5432 --follow", "SQL for dashboards, always the newest version"),
        ],
    ),
    (
        "tables",
        [
            ("tidetable tables", "tables and exports, with their sizes"),
            ("tidetable tables --output json", "the same, an object a line"),
        ],
    ),
    (
        "compare",
        [
            ("tidetable compare weather-balloons", "the layouts of a job side by side"),
            ("tidetable compare smart-meters --queries q.toml --report page.html", "with queries and costs, as a page"),
        ],
    ),
    (
        "advise",
        [
            ("tidetable advise readings.csv --queries q.toml", "layouts for a data file"),
            (
                "tidetable advise smart-meters --queries q.toml --write chosen --report page.html",
                "a job with the best of them, and a page",
            ),
        ],
    ),
    (
        "heatmap",
        [
            ("tidetable heatmap SENSOR", "where writes went, by time"),
            (
                "tidetable heatmap SENSOR --metric reads:one_day --queries q.toml --report page.html",
                "what a query reads, as a page",
            ),
        ],
    ),
    (
        "describe",
        [
            ("tidetable describe SENSOR", "layout, windows, inputs and files"),
            ("tidetable describe SENSOR --report page.html", "a page with its bytes, windows and versions"),
        ],
    ),
    (
        "inspect",
        [
            ("tidetable inspect data/tables/SENSOR/sst/01KAN3ZJ.sst", "what a file holds, and what it takes"),
            ("tidetable inspect data/tables/SENSOR/sst/01KAN3ZJ.sst --output json", "the same for a program"),
        ],
    ),
    (
        "proto",
        [
            ("tidetable proto READINGS", "the messages of its cells"),
            ("tidetable proto READINGS > readings.proto", "for another program"),
        ],
    ),
    (
        "check",
        [
            ("tidetable check smart-meters", "a job file, its SQL and its layouts"),
            ("tidetable check --all", "all jobs of the project, as before a commit"),
        ],
    ),
    (
        "lint",
        [
            ("tidetable lint smart-meters", "row keys, families and columns that the guides advise against"),
            ("tidetable lint smart-meters --data --deny error", "with the rows of its sources, as before a commit"),
        ],
    ),
    (
        "try",
        [
            ("tidetable try readings.csv", "rows, answers and a page of a file of your own"),
            ("tidetable try https://example.org/readings.csv.gz --report page.html", "of a file of the web"),
        ],
    ),
    (
        "new",
        [
            ("tidetable new weather --from weather.csv", "a job for a file of your own"),
            ("tidetable new weather --from weather.csv --timezone Europe/Paris --stdout", "only look at it"),
        ],
    ),
    (
        "schedule",
        [
            ("tidetable schedule", "lines to add with: crontab -e"),
            ("tidetable schedule --check", "what runs in the next 7 days, and what was missed"),
        ],
    ),
    (
        "schema",
        [
            ("tidetable schema job > jobs/job.schema.json", "for an editor that knows TOML"),
            ("tidetable schema job | less", "read what a job file may hold"),
        ],
    ),
    (
        "completions",
        [
            ("tidetable completions bash", "for this shell: source <(tidetable completions bash)"),
            ("tidetable completions fish > ~/.config/fish/completions/tidetable.fish", "for every shell"),
        ],
    ),
    (
        "man",
        [
            ("tidetable man | man -l -", "read the manual page"),
            ("tidetable man ~/.local/share/man/man1", "install those of all commands"),
        ],
    ),
    (
        "delete",
        [
            ("tidetable delete SENSOR --row '0000000042#20180131' --dry-run", "what would be hidden"),
            ("tidetable delete SENSOR --row '0000000042#20180131' --column METER:0300 --yes", "one column of a row"),
        ],
    ),
    (
        "drop-rows",
        [
            ("tidetable drop-rows SENSOR --prefix '0000000042#' --dry-run", "what would be hidden"),
            ("tidetable drop-rows SENSOR --prefix '0000000042#' --yes", "all rows of a meter"),
        ],
    ),
    (
        "drop",
        [
            ("tidetable drop SENSOR_OLD --dry-run", "what would be removed"),
            ("tidetable drop SENSOR_OLD --yes", "a table that was renamed in the job file since"),
        ],
    ),
    (
        "compact",
        [
            ("tidetable compact SENSOR --dry-run", "what is due"),
            ("tidetable compact SENSOR --full", "make all of it dense, and remove deleted cells"),
        ],
    ),
    (
        "scheduler",
        [
            ("tidetable scheduler", "for executors and runs of this machine"),
            (
                "tidetable scheduler --bind 10.0.0.5:50050 --tls-cert this.pem --tls-key this.key --tls-ca cluster.pem",
                "for those of a network that have a certificate of cluster.pem",
            ),
        ],
    ),
    (
        "executor",
        [
            ("tidetable executor --scheduler ballista://10.0.0.5:50050 --bind 10.0.0.6", "a machine that does work"),
            ("tidetable executor --scheduler ballista://127.0.0.1:50050 --slots 1", "on this machine, one core"),
        ],
    ),
    (
        "repair",
        [
            ("tidetable repair SENSOR", "which files are damaged, and what is lost with them"),
            ("tidetable repair SENSOR --yes", "remove them, so that the next run loads their inputs again"),
        ],
    ),
    (
        "vacuum",
        [
            ("tidetable vacuum", "what would be removed"),
            ("tidetable vacuum SENSOR --older-than 1d --keep-versions 3 --yes", "remove it"),
        ],
    ),
    (
        "backup",
        [
            ("tidetable backup /backups/meters", "copy what is new since the last backup"),
            ("tidetable backup /backups/meters --list", "which backups there are"),
        ],
    ),
    (
        "restore",
        [
            ("tidetable restore /backups/meters", "the newest backup, into the root of the project"),
            ("tidetable restore /backups/meters /tmp/restored", "into another folder, to look at it"),
        ],
    ),
    (
        "copy",
        [
            ("tidetable copy data s3://meters/prod", "move a store into a bucket, or keep a copy of it there"),
            ("tidetable copy s3://meters/prod data", "and back into a folder"),
        ],
    ),
    (
        "cache",
        [
            ("tidetable cache", "where blocks of the bucket are kept, and how many"),
            ("tidetable cache --empty", "remove them"),
        ],
    ),
    (
        "doctor",
        [
            ("tidetable doctor", "what is damaged, and what that costs"),
            ("tidetable doctor --fix", "move it to quarantine, so that everything else works again"),
        ],
    ),
    (
        "verify",
        [
            ("tidetable verify", "read all tables back"),
            ("tidetable verify SENSOR --checksums", "one table, and faster"),
        ],
    ),
];

/// The template of `tidetable --help`.
const TEMPLATE: &str = "{about}\n\n{usage-heading} {usage}\n";

/// The command line parser with its help.
pub fn command() -> Command {
    let mut command = Cli::command();
    let list = groups(&command);
    command = command.help_template(format!("{TEMPLATE}\n{list}Global options:\n{{options}}\n\n{{after-help}}"));
    for (name, examples) in EXAMPLES {
        command = command.mut_subcommand(*name, |sub| {
            let said = sub.get_after_help().map(|said| format!("{said}\n\n")).unwrap_or_default();
            sub.after_help(format!("{said}{}", shown(examples)))
        });
    }
    command
}

fn shown(examples: &[Example]) -> String {
    let lines = examples.iter().map(|(line, does)| format!("  {line}\n      {does}"));
    format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// The first clause of a command's description, for the list of commands.
fn first_clause(about: &str) -> String {
    let end = ["; ", ": ", ", and ", ", after "].iter().filter_map(|mark| about.find(mark)).min();
    about.get(..end.unwrap_or(about.len())).unwrap_or(about).to_owned()
}

/// Commands by group; those without a group at the end.
fn groups(command: &Command) -> String {
    let all: Vec<(&str, String)> = command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .map(|sub| (sub.get_name(), first_clause(&sub.get_about().map(ToString::to_string).unwrap_or_default())))
        .chain([("help", "Print this message or the help of a command".to_owned())])
        .collect();

    let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line = |(name, about): &(&str, String)| format!("  {name:<width$}  {about}\n");
    let grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));

    let mut text = String::new();
    for (group, names) in GROUPS {
        text.push_str(&format!("{group}:\n"));
        text.extend(names.iter().filter_map(|name| all.iter().find(|(known, _)| known == name)).map(line));
        text.push('\n');
    }

    let others: String = all.iter().filter(|(name, _)| !grouped(name)).map(line).collect();
    if !others.is_empty() {
        text.push_str(&format!("Others:\n{others}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Vec<String> {
        let mut command = command();
        command.build();
        let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        visible.map(|sub| sub.get_name().to_owned()).collect()
    }

    #[test]
    fn every_command_is_in_one_group_and_has_two_examples_that_are_right() {
        let commands = commands();
        assert!(groups_fit(), "a line of the groups is too long");
        for name in &commands {
            let groups = GROUPS.iter().flat_map(|(_, names)| *names).filter(|known| *known == name).count();
            assert_eq!(groups, 1, "{name}");
            assert!(name == "help" || EXAMPLES.iter().any(|(known, _)| known == name), "{name} has no examples");
        }
        for (name, examples) in EXAMPLES {
            assert!(commands.iter().any(|known| known == name), "there is no {name}");
            for (line, _) in examples {
                // Redirections and pipes belong to the shell.
                let own = line.split(" > ").next().unwrap_or(line).split(" | ").next().unwrap_or(line);
                let words = words(own);
                assert_eq!(words[1], *name, "{line}");
                let parsed = command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    fn groups_fit() -> bool {
        groups(&command()).lines().all(|line| line.chars().count() <= 80)
    }

    /// The words of a line, split as by a shell.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (at, part) in line.split('\'').enumerate() {
            match at % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words
    }

    #[test]
    fn options_of_every_command_stand_apart() {
        let mut command = command();
        command.build();
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
            for option in ["root", "output", "log", "verbose"] {
                let arg = sub.get_arguments().find(|arg| arg.get_id() == option);
                let heading = arg.and_then(clap::Arg::get_help_heading);
                assert_eq!(heading, Some("Global options"), "{} --{option}", sub.get_name());
            }
        }
    }
}
