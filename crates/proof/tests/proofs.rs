//! Every proof in a small size. `just prove` runs significant sizes.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use tidetable_proof::proofs::{Figures, bits, buckets, faults, histories, kills, model, power, replies, server};
use tidetable_proof::{Finding, Result};

fn proven(done: Result<Figures>) -> Figures {
    done.unwrap_or_else(|finding: Finding| panic!("{finding}"))
}

#[test]
fn a_table_holds_what_a_map_of_cells_holds() {
    let figures = proven(model::prove(1, 10, 100));
    assert_eq!(figures.get("operations"), 1000);
    for name in ["loads", "changed inputs", "drops", "compactions", "ranges", "rows", "reads of snapshots"] {
        assert!(figures.get(name) > 0, "{name}: {figures}");
    }
}

#[test]
fn a_table_follows_the_names_of_its_inputs() {
    // In an optimised build, the size of CI.
    let seeds = if cfg!(debug_assertions) { 12 } else { 1000 };
    let figures = proven(histories::prove(1, seeds, 100));
    assert_eq!(figures.get("operations"), seeds * 100);
    let rare = [
        "runs without what is gone",
        "runs in part, then without what is gone",
        "runs in part, then with files put back",
        "runs stopped, and files put back",
        "runs that gave way to a delete",
    ];
    for name in [
        "runs",
        "runs that append",
        "rebuilds",
        "deletes",
        "files grown",
        "files renamed and grown",
        "files renamed",
        "files copied",
        "runs that met a delete",
    ]
    .into_iter()
    .chain(rare)
    {
        assert!(figures.get(name) > 0, "{name}: {figures}");
    }
}

#[test]
fn inputs_of_many_pages_are_held_too() {
    assert!(proven(model::prove(49, 1, 200)).get("loads") > 0);
}

#[test]
fn a_loss_of_power_leaves_a_prefix_of_the_commits() {
    let figures = proven(power::prove(1, 2, 6));
    assert!(figures.get("boundaries") > 100 && figures.get("runs ended after a loss") > 0, "{figures}");
}

#[test]
fn a_failed_call_hurts_nothing() {
    let figures = proven(faults::prove(1, 2, 5));
    assert!(figures.get("faults") > 200 && figures.get("errors") > 100, "{figures}");
}

#[test]
fn a_commit_whose_answer_is_lost_is_made_once() {
    let figures = proven(replies::prove(1, 20, 30));
    assert!(figures.get("commits") == 600 && figures.get("errors") > 50, "{figures}");
}

#[test]
fn a_process_may_be_killed_at_any_time() {
    let figures = proven(kills::prove(Path::new(env!("CARGO_BIN_EXE_prove")), 1, 12));
    assert!(figures.get("kills") >= 12 && figures.get("commits") > 0, "{figures}");
}

#[test]
fn a_flipped_bit_is_an_error_or_nothing() {
    let figures = proven(bits::every_bit(101));
    assert!(figures.get("shapes") == 10 && figures.get("errors") > figures.get("flips") / 2, "{figures}");
}

#[test]
fn a_damaged_file_is_an_error_or_the_same() {
    let figures = proven(bits::damages(1, 20));
    assert!(figures.get("swapped and stale files") > 0 && figures.get("truncations") > 10_000, "{figures}");
}

#[test]
fn a_damaged_page_of_many_is_an_error() {
    let figures = proven(bits::large(1, 500, 100));
    assert!(figures.get("flips") == 500 && figures.get("bytes") > 1 << 20, "{figures}");
}

#[test]
fn a_bucket_holds_what_a_disk_holds() {
    let figures = proven(buckets::prove(1, 2, 30, None));
    assert!(figures.get("commits") == 60 && figures.get("steps") == 6, "{figures}");
}

#[test]
fn a_server_holds_what_a_map_of_cells_holds() {
    let figures = proven(server::model(1, 2, 60));
    assert!(figures.get("operations") == 120 && figures.get("faults") > 10, "{figures}");
}

#[test]
fn steps_over_a_bad_line_to_a_server_are_repeated() {
    let figures = proven(server::steps(1, 2, 6));
    assert!(figures.get("steps") == 12 && figures.get("faults") > 5, "{figures}");
}

#[test]
fn a_commit_to_a_server_is_made_once() {
    let figures = proven(server::replies(1, 6, 15));
    assert!(figures.get("commits") == 90 && figures.get("faults") > 30, "{figures}");
}

#[test]
fn two_writers_to_a_server_lose_and_double_nothing() {
    let figures = proven(server::writers(1, 6, 10));
    assert!(figures.get("commits") == 120 && figures.get("faults") > 30, "{figures}");
}

#[test]
fn a_client_may_be_killed_at_any_request() {
    let figures = proven(server::kills(Path::new(env!("CARGO_BIN_EXE_prove")), 1, 1, 1));
    assert!(figures.get("kills") == 2 * figures.get("requests of scripts") && figures.get("kills") > 10, "{figures}");
}
