//! Crontab lines, for the cron of Debian and others, which knows one time zone and takes `%` for a line end.

use chrono_tz::Tz;
use tidetable_job::schedule::minutes_elsewhere;
use tidetable_job::{CatchUp, shell_word};

use super::entry::{Invocation, Scheduled};

/// A line for each job, and an `@reboot` line if missed runs are made up for.
pub(super) fn lines(jobs: &[Scheduled], invocation: &Invocation, cron_zone: Option<Tz>, now: i64) -> String {
    let mut text =
        format!("# Jobs of tidetable in {}; add these lines with: crontab -e\n", invocation.folder.replace('\n', " "));
    if jobs.is_empty() {
        text.push_str("# No job has a `schedule`.\n");
    }
    for Scheduled { job, written, cron } in jobs {
        let zone = job.timezone;
        let fields: Vec<&str> = written.split_whitespace().collect();
        text.push_str(&format!("# {}: {} in {}\n", job.name, fields.join(" "), zone.name()));
        let same = cron_zone.is_some_and(|cron_zone| cron_zone == zone || is_utc(cron_zone) && is_utc(zone));
        // Any zone is possible if it is unknown.
        let other = cron_zone.unwrap_or(Tz::UTC);
        let (times, guard) = if same {
            (fields.join(" "), String::new())
        } else {
            let minutes = match cron_zone {
                Some(_) => listed(&minutes_elsewhere(cron, zone, other, now)),
                None => "*".to_owned(),
            };
            (
                format!("{minutes} * * * *"),
                format!("{} schedule --due {}{} && ", called(invocation), job.name, root(invocation)),
            )
        };
        let mut line = |times: &str, guard: &str| {
            let logs = shell_word(&invocation.logs);
            let command = format!(
                "{guard}mkdir -p {logs} && {} run {} --catch-up --if-locked skip{} >> {logs}/{}.log 2>&1",
                called(invocation),
                job.name,
                root(invocation),
                job.name
            );
            text.push_str(&format!("{times} {}\n", command.replace('%', "\\%")));
        };
        line(&times, &guard);
        if job.catch_up != CatchUp::None {
            // Makes up for runs missed while the machine was off.
            line("@reboot", "");
        }
    }
    text
}

/// The command, run in the project directory.
fn called(invocation: &Invocation) -> String {
    format!("{} -C {}", shell_word(&invocation.binary), shell_word(&invocation.folder))
}

fn root(invocation: &Invocation) -> String {
    invocation.root.as_ref().map(|root| format!(" --root {}", shell_word(root))).unwrap_or_default()
}

fn listed(minutes: &[u32]) -> String {
    if minutes.len() == 60 {
        return "*".to_owned();
    }
    minutes.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn is_utc(zone: Tz) -> bool {
    matches!(
        zone,
        Tz::UTC | Tz::Etc__UTC | Tz::Etc__UCT | Tz::Etc__Universal | Tz::Etc__Zulu | Tz::UCT | Tz::Universal | Tz::Zulu
    )
}
