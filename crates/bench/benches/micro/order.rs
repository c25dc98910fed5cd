//! Sorting of events by the rank of their row key.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use tidetable_ingest::order_events;
use tidetable_testkit::Seeded;

const EVENTS: usize = 1 << 20;

fn partition(bencher: Bencher, ranks: &[u32], tails: &[u64], entities: usize) {
    bencher
        .counter(ItemsCount::new(EVENTS))
        .with_inputs(|| (ranks.to_vec(), tails.to_vec()))
        .bench_local_values(|(ranks, tails)| order_events(black_box(ranks), black_box(tails), entities));
}

/// Ranks of events in order of time, each instant with all `entities` in an order of its own.
fn ranks(entities: usize) -> Vec<u32> {
    let (mut random, mut order) = (Seeded::new(1), (0..entities as u32).collect::<Vec<u32>>());
    let mut ranks = Vec::with_capacity(EVENTS + entities);
    while ranks.len() < EVENTS {
        random.shuffle(&mut order);
        ranks.extend_from_slice(&order);
    }
    ranks.truncate(EVENTS);
    ranks
}

/// Events of instants, all in one day, so one tail.
#[divan::bench(args = [1_000, 20_000, 1_000_000])]
fn partition_by_instant(bencher: Bencher, entities: usize) {
    let ranks = ranks(entities);
    let tails = vec![20_170_726; EVENTS];
    partition(bencher, &ranks, &tails, entities);
}

/// One row per event: the tail is the time.
#[divan::bench(args = [1_000, 20_000])]
fn partition_into_rows(bencher: Bencher, entities: usize) {
    let ranks = ranks(entities);
    let tails: Vec<u64> = (0..EVENTS).map(|event| 1_501_027_200_000 + (event / entities) as u64 * 60_000).collect();
    partition(bencher, &ranks, &tails, entities);
}

/// Shuffled events, which must be compared.
#[divan::bench(args = [1_000, 20_000])]
fn partition_shuffled(bencher: Bencher, entities: usize) {
    let mut random = Seeded::new(1);
    let ranks: Vec<u32> = (0..EVENTS).map(|_| random.below(entities as u64) as u32).collect();
    let tails: Vec<u64> = (0..EVENTS).map(|_| 1_501_027_200_000 + random.below(86_400_000)).collect();
    partition(bencher, &ranks, &tails, entities);
}
