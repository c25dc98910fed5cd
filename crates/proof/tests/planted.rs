//! Planted bugs in the handling of input names, each of which the histories must find. `just prove-planted` runs
//! it, too.
#![cfg(feature = "planted")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use tidetable_proof::proofs::histories;
use tidetable_sstable::tools::failpoints::{Bug, plant};

#[test]
fn histories_find_what_is_wrong_with_names() {
    histories::prove(1, 6, 100).unwrap();
    for bug in [
        Bug::ForgetCopies,
        Bug::ForgetIdleDrops,
        Bug::TakeOutOfOneWindow,
        Bug::ForgetDropsMeanwhile,
        Bug::AppendWhateverComesLater,
    ] {
        plant(Some(bug));
        let found = histories::prove(1, 30, 100);
        plant(None);
        assert!(found.is_err(), "{bug:?} is not found");
    }
}
