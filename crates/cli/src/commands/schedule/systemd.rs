//! A systemd service and timer for each job. Their output goes to the journal.

use tidetable_job::{CatchUp, Cron};

use super::entry::{Invocation, Scheduled};

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// The name and the text of each unit.
pub(super) fn units(jobs: &[Scheduled], invocation: &Invocation) -> Vec<(String, String)> {
    jobs.iter().flat_map(|scheduled| [service(scheduled, invocation), timer(scheduled)]).collect()
}

fn service(scheduled: &Scheduled, invocation: &Invocation) -> (String, String) {
    let name = &scheduled.job.name;
    let root = invocation.root.as_ref().map(|root| format!(" --root {}", quoted(root))).unwrap_or_default();
    let text = format!(
        "[Unit]\nDescription=tidetable job {name}\n\n[Service]\nType=oneshot\nExecStart={} -C {} run {name} --catch-up --if-locked \
         skip{root}\nSyslogIdentifier=tidetable-{name}\n",
        quoted(&invocation.binary),
        quoted(&invocation.folder),
    );
    (format!("tidetable-{name}.service"), text)
}

fn timer(scheduled: &Scheduled) -> (String, String) {
    let Scheduled { job, written, cron } = scheduled;
    let calendars: String =
        calendars(cron).iter().map(|calendar| format!("OnCalendar={calendar} {}\n", job.timezone.name())).collect();
    let text = format!(
        "[Unit]\nDescription=tidetable job {}: {} in {}\n\n[Timer]\n{calendars}Persistent={}\nAccuracySec=1s\n\n[Install]\n\
         WantedBy=timers.target\n",
        job.name,
        written.split_whitespace().collect::<Vec<_>>().join(" "),
        job.timezone.name(),
        // Runs missed while the machine was off start at boot.
        job.catch_up != CatchUp::None,
    );
    (format!("tidetable-{}.timer", job.name), text)
}

/// The schedule as calendar events. Systemd requires both day and weekday to match, cron either of them if both are
/// given: that takes two events.
fn calendars(cron: &Cron) -> Vec<String> {
    let list = |values: Vec<u32>, all: usize| match values.len() == all {
        true => "*".to_owned(),
        false => values.iter().map(|value| format!("{value:02}")).collect::<Vec<_>>().join(","),
    };
    let months = list(cron.months().collect(), 12);
    let days = list(cron.days().collect(), 31);
    let time = format!("{}:{}:00", list(cron.hours().collect(), 24), list(cron.minutes().collect(), 60));
    let weekdays: Vec<_> = cron.weekdays().filter_map(|day| DAYS.get(usize::try_from(day).ok()?).copied()).collect();
    let weekdays = if weekdays.len() == 7 { String::new() } else { format!("{} ", weekdays.join(",")) };
    if cron.either_day() {
        vec![format!("*-{months}-{days} {time}"), format!("{weekdays}*-{months}-* {time}")]
    } else {
        vec![format!("{weekdays}*-{months}-{days} {time}")]
    }
}

/// Quotes a word for a systemd command line.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}
