//! Runs a proof of any size: `prove PROOF [--seed N] [--seeds N] [--size N]`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command")]

use std::process::ExitCode;
use std::time::Instant;

use tidetable_proof::proofs::kills::Task;
use tidetable_proof::{Finding, Result, proofs};

const USAGE: &str = "usage: prove model|histories|power|faults|replies|kills|bits|damages|large|buckets|planted|server-model|server-steps|server-replies|server-writers|server-kills [--seed FIRST] [--seeds HOW_MANY] [--size STEPS_OF_EACH]";

struct Args {
    proof: String,
    seed: u64,
    seeds: Option<u64>,
    size: Option<u64>,
}

impl Args {
    fn seeds(&self, default: u64) -> u64 {
        self.seeds.unwrap_or(default)
    }

    fn size(&self, default: u64) -> u64 {
        self.size.unwrap_or(default)
    }
}

fn usage() -> Finding {
    Finding::new(USAGE)
}

fn args() -> Result<Args> {
    let mut args = std::env::args().skip(1);
    let mut parsed = Args { proof: args.next().ok_or_else(usage)?, seed: 1, seeds: None, size: None };
    while let Some(name) = args.next() {
        let value = args.next().and_then(|value| value.replace('_', "").parse().ok()).ok_or_else(usage)?;
        match name.as_str() {
            "--seed" => parsed.seed = value,
            "--seeds" => parsed.seeds = Some(value),
            "--size" => parsed.size = Some(value),
            _ => return Err(usage()),
        }
    }
    Ok(parsed)
}

fn run() -> Result<()> {
    let args = args()?;
    let begun = Instant::now();
    let figures = match args.proof.as_str() {
        "model" => proofs::model::prove(args.seed, args.seeds(1000), args.size(1000)),
        "histories" => proofs::histories::prove(args.seed, args.seeds(1000), args.size(1000)),
        "power" => proofs::power::prove(args.seed, args.seeds(50), args.size(20) as usize),
        "faults" => proofs::faults::prove(args.seed, args.seeds(20), args.size(12) as usize),
        "bits" => proofs::bits::every_bit(args.size(1)),
        "damages" => proofs::bits::damages(args.seed, args.size(2000)),
        "large" => proofs::bits::large(args.seed, args.size(100_000), args.size(100_000) / 10),
        "planted" => proofs::planted::prove(|bug, found| println!("{bug:?}: {found}")),
        "buckets" => {
            let place = std::env::var("TIDETABLE_BUCKET").ok();
            if place.is_none() {
                println!("TIDETABLE_BUCKET is not set: using a bucket in memory");
            }
            proofs::buckets::prove(args.seed, args.seeds(100), args.size(100), place.as_deref())
        }
        "kills" => proofs::kills::prove(&std::env::current_exe()?, args.seed, args.size(1000)),
        "replies" => proofs::replies::prove(args.seed, args.seeds(1000), args.size(100)),
        "server-model" => proofs::server::model(args.seed, args.seeds(100), args.size(100)),
        "server-steps" => proofs::server::steps(args.seed, args.seeds(100), args.size(10)),
        "server-replies" => proofs::server::replies(args.seed, args.seeds(1000), args.size(20)),
        "server-writers" => proofs::server::writers(args.seed, args.seeds(1000), args.size(10)),
        "server-kills" => proofs::server::kills(&std::env::current_exe()?, args.seed, args.seeds(4), args.size(8)),
        _ => Err(usage()),
    }?;

    println!("{} from seed {}: {figures}; no finding, in {:.0?}", args.proof, args.seed, begun.elapsed());
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.split_first() {
        Some((first, task)) if first == "child" => Task::parse(task).and_then(|task| task.run()),
        Some((first, task)) if first == "child-in-bucket" => {
            proofs::server::Task::parse(task).and_then(|task| task.run())
        }
        _ => run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(finding) => {
            eprintln!("{finding}");
            ExitCode::FAILURE
        }
    }
}
