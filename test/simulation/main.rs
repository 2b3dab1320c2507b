//! The controller's own code in a world of ours, in one process and without real time: an API server, gardenlet,
//! machine-controller-manager, an autoscaler, a person, a second controller, and a network that loses what can be lost. One seed
//! decides everything, so a life that breaks a rule can be lived again (docs/reliability.md#simulation).
//!
//! ```text
//! life ─► gardenlet, people, machines ─► hand ─┐
//!   │                                          ▼
//!   └──► controllers ─► network ─────────► api_server ─► log ─► rules
//! ```
//!
//!     cargo test --test simulation                       800 lives
//!     SEEDS=100000 cargo test --test simulation lives    so many; SEEDS=5000..9000 those
//!     SEED=4711 cargo test --test simulation lives       one, with everything that happens in it

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may end where its own input is not what it expects"
)]
#![allow(clippy::print_stdout, reason = "the report of a test is its output")]

mod api_server;
mod cloud;
mod controllers;
mod documents;
mod gardenlet;
mod hand;
mod life;
mod machines;
mod network;
mod people;
mod random;
mod rules;
mod signal;
mod trace;
mod wanted;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use life::{Ended, live};

/// Lives when nobody says how many.
const LIVES: u64 = 800;
/// Failing lives that are printed.
const PRINTED: usize = 3;

/// Which seeds are asked for.
fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("SEEDS") else { return 0..LIVES };
    let number = |text: &str| text.trim().parse::<u64>().expect("SEEDS is a number or a range");
    match asked.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => 0..number(&asked),
    }
}

#[test]
fn lives_keep_the_rules() {
    if let Ok(seed) = std::env::var("SEED") {
        let seed = seed.parse().expect("SEED is a number");
        let Ended { plan, found, trace, .. } = live(seed, true);
        println!("seed {seed}: {plan}\n{trace}\n{}", found.join("\n"));
        assert!(found.is_empty(), "{found:#?}");
        return;
    }
    let (seeds, began) = (seeds(), Instant::now());
    let (next, requests) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let failed = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) {
                        return;
                    }
                    let ended = live(seed, false);
                    requests.fetch_add(ended.requests as u64, Ordering::Relaxed);
                    if !ended.found.is_empty() {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push((seed, ended));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort_by_key(|(seed, _)| *seed);
    let lives = seeds.end - seeds.start;
    println!(
        "{lives} lives, {} requests, {:.0} s, {} failed",
        requests.into_inner(),
        began.elapsed().as_secs_f64(),
        failed.len()
    );
    for (seed, Ended { plan, found, .. }) in failed.iter().skip(PRINTED) {
        println!("seed {seed}: {plan}\n  {}", found.join("\n  "));
    }
    for (seed, Ended { plan, found, trace, .. }) in failed.iter().take(PRINTED) {
        println!("\nseed {seed}: {plan}\n{trace}\n  {}", found.join("\n  "));
    }
    let numbers: Vec<u64> = failed.iter().map(|(seed, _)| *seed).collect();
    assert!(numbers.is_empty(), "lives that break rules; SEED=… lives one again: {numbers:?}");
}

#[test]
fn the_same_seed_is_the_same_life() {
    for seed in 0..10 {
        let [one, other] = [live(seed, true), live(seed, true)].map(|ended| ended.trace);
        let difference = one.lines().zip(other.lines()).find(|(one, other)| one != other);
        assert_eq!(difference, None, "seed {seed}");
        assert_eq!(one.len(), other.len(), "seed {seed}");
    }
}
