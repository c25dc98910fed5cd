//! `tidetable sql --memory`: statements whose memory nobody counts end before they hold much more than the limit.

use std::fs;
use std::process::Stdio;

use crate::harness::Project;
use crate::harness::system::{
    KilledOnDrop, Measured, anonymous_mebibytes, measured, processor_ticks, signal, ticks_until_the_end, wait_for,
};

/// What a statement may hold beyond its limit, and the process before it begins, MiB.
const ALLOWED: u64 = 128 + 32;

/// Runs a statement, and measures it.
fn statement(project: &Project, args: &[&str]) -> Measured {
    measured(&mut project.command(&[&["sql"], args].concat()))
}

#[test]
fn what_cannot_spill_ends_at_the_limit() {
    let project = Project::empty();
    let series = "from generate_series(1, 60000)";
    for query in [
        format!(
            "select max(length(s)) from (select string_agg(cast(value as varchar), ',') over (order by value) as s {series})"
        ),
        format!("select max(array_length(s)) from (select array_agg(value) over (order by value) as s {series})"),
        "select max(length(to_char(ts, repeat('%Y', 10000000)))) from (select timestamp '2020-01-01' as ts \
         from generate_series(1, 40))"
            .to_owned(),
        "select max(length(t)) from (select unnest(range(2000000)) as v, repeat('x', 1000) as t)".to_owned(),
    ] {
        let ended = statement(&project, &["--memory", "64MiB", "-c", &query]);
        assert_eq!(ended.status.code(), Some(1), "{query}: {}", ended.said);
        assert!(ended.said.contains("memory limit") && ended.said.contains("raise"), "{query}: {}", ended.said);
        assert!(ended.most < 64 + ALLOWED, "{query}: {} MiB", ended.most);
    }
    // With enough memory they are answered.
    let query = "select max(length(s)) as n from (select string_agg('x', ',') over (order by value) as s \
                 from generate_series(1, 3000))";
    assert_eq!(project.ok(&["sql", "--memory", "256MiB", "--output", "csv", "-c", query]), "n\n5999\n");
}

#[test]
fn a_limit_is_named_with_what_to_do() {
    let project = Project::empty();
    let query = "select max(length(s)) from (select string_agg(cast(value as varchar), ',') over (order by value) as s \
                 from generate_series(1, 60000))";
    let ended = statement(&project, &["--memory", "64MiB", "-c", query]);
    assert!(
        ended.said.contains("memory limit of 64.00 MiB") && ended.said.contains("raise --memory"),
        "{}",
        ended.said
    );
}

#[test]
fn an_interrupt_ends_a_long_series_at_once() {
    let project = Project::empty();
    let series = "from generate_series(1, 3000000000) as s (v)";
    // A debug build ends the sort of what is in memory: some ticks of work, not the minutes of the series.
    let sorts = 600;
    for (query, allowed) in [
        (format!("select count(*), sum(v) {series}"), 100),
        (format!("select count(distinct v % 1000) {series}"), 100),
        (format!("select count(*) {series} cross join generate_series(1, 1000) as t (w) where v * w = 7"), 100),
        (format!("select median(v) {series}"), sorts),
        (format!("select v {series} order by v desc"), sorts),
        (format!("select v, row_number() over (order by v) {series}"), sorts),
    ] {
        let mut command = project.command(&["sql", "--memory", "256MiB", "-c", &query]);
        let mut child = KilledOnDrop(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        let mut most = 0;
        wait_for("the statement", || {
            most = most.max(anonymous_mebibytes(&child.0).unwrap_or_default());
            processor_ticks(&child.0) > 150
        });
        assert!(child.0.try_wait().unwrap().is_none(), "{query} has ended");
        assert!(most < 256 + ALLOWED, "{query}: {most} MiB");

        signal(child.0.id(), "-INT");
        let before = processor_ticks(&child.0);
        let worked = ticks_until_the_end(&mut child.0) - before;
        assert_eq!(child.0.wait().unwrap().code(), Some(130), "{query}");
        assert!(worked < allowed, "{query}: {worked} ticks");
    }
    // As a list it would not fit, and is refused before it is made.
    let list = statement(&project, &["--memory", "256MiB", "-c", "select generate_series(1, 3000000000)"]);
    assert_eq!(list.status.code(), Some(1), "{}", list.said);
    assert!(list.said.contains("generate_series makes values of 24000000000 bytes"), "{}", list.said);
}

/// Replaces the bytes at `at`.
fn patched(whole: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut damaged = whole.to_vec();
    damaged[at..at + bytes.len()].copy_from_slice(bytes);
    damaged
}

#[test]
fn a_damaged_arrow_file_is_an_error_that_names_it() {
    let project = Project::empty();
    let rows = "select value as a, cast(value as varchar) as b from generate_series(1, 500)";
    project.ok(&["sql", "-c", rows, "-O", "whole.arrow"]);
    let whole = fs::read(project.path("whole.arrow")).unwrap();
    let query = "select count(*), min(a), max(b), sum(length(b)) from 'bad.arrow'";

    // A length of 1.36 GiB at some of the places that could be one, in the messages and in the footer.
    let mut damaged = 0;
    for at in (8..520).step_by(16).chain((whole.len() - 400..whole.len() - 4).step_by(16)) {
        project.write("bad.arrow", patched(&whole, at, &1_460_288_880_i32.to_le_bytes()));
        let ended = statement(&project, &["--memory", "64MiB", "-c", query]);
        let place = format!("byte {at}: {}", ended.said);
        assert!(matches!(ended.status.code(), Some(0 | 1)) || ended.said.contains("No field named"), "{place}");
        assert!(!ended.said.contains("panicked") && !ended.said.contains("please report"), "{place}");
        assert!(ended.most < 64 + ALLOWED, "{place}: {} MiB", ended.most);
        if ended.status.code() == Some(1) {
            assert!(ended.said.contains("bad.arrow") && ended.said.contains("damaged"), "{place}");
            damaged += 1;
        }
    }
    assert!(damaged > 8, "{damaged}");
    // With declared columns, for which no file is asked before it is read.
    for at in (8..520).step_by(16) {
        project.write("bad.arrow", patched(&whole, at, &1_460_288_880_i32.to_le_bytes()));
        let declared = "create external table t (a bigint) stored as arrow location 'bad.arrow'; select max(a) from t";
        let ended = statement(&project, &["--memory", "64MiB", "-c", declared]);
        assert!(matches!(ended.status.code(), Some(0 | 1)), "byte {at}: {}", ended.said);
        assert!(ended.most < 64 + ALLOWED, "byte {at}: {} MiB", ended.most);
    }
    // As an external table, and cut off.
    project.write("bad.arrow", &whole[..whole.len() / 2]);
    let declared = "create external table t stored as arrow location 'bad.arrow'; select count(*) from t";
    for query in ["select count(*) from 'bad.arrow'", "select count(*) from 'b*.arrow'", declared] {
        let told = project.fails(1, &["sql", "-c", query]);
        assert!(told.contains("bad.arrow"), "{query}: {told}");
    }
}
