//! Runs the controller's own code against a simulated environment, in one process and without real time: an API server,
//! gardenlet, machine-controller-manager, an autoscaler, a user, a second controller, and an unreliable network. A seed
//! determines everything, so a life that breaks a rule can be repeated (docs/reliability-evidence.md#simulation).
//!
//! ```text
//! life ─► gardenlet, people, machines ─► actor ┐
//!   │                                          ▼
//!   └──► controllers ─► network ─────────► api_server ─► log ─► rules
//! ```
//!
//!     cargo test --test simulation                       about 400 lives
//!     cargo test --test simulation deep -- --ignored     about 3,000 lives
//!     SEEDS=100000 cargo test --test simulation lives    this many lives; SEEDS=5000..9000 for a range
//!     SEEDS=10000000000..10000002000 …                   lives of one theme (seeds.rs)
//!     SEED=4711 cargo test --test simulation lives       one life, with its trace
//!     UNTIL_VIOLATION=600 cargo test --test simulation lives   until one breaks a rule, for at most so many seconds

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may end where its own input is not what it expects"
)]
#![allow(clippy::print_stdout, reason = "the report of a test is its output")]

mod actor;
mod api_server;
mod azure;
mod cloud;
mod compared_with_real;
mod controllers;
mod defects;
mod dependency;
mod documents;
mod expected;
mod gardenlet;
mod life;
mod machines;
mod network;
mod openstack;
mod people;
mod random;
mod rules;
mod seeds;
mod sharder;
mod signal;
mod trace;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use life::{Ended, live};
use network::locked;
use seeds::Tier;

/// Follows a seed in the report and precedes the broken rules.
const BREAKS: &str = "breaks:";
/// Number of lives between progress lines.
const REPORTED: u64 = 10_000;
/// Maximum number of failing lives printed.
const PRINTED: usize = 3;
/// A life takes a second or two. After this time it is in an endless loop, which nothing inside it can end.
const SPINS_AFTER: Duration = Duration::from_secs(300);

/// The seeds to run, in order: from the environment, else those of the tier.
fn seeds(tier: Tier) -> Box<dyn Iterator<Item = u64> + Send> {
    match std::env::var("SEEDS") {
        Ok(named) => Box::new(seeds::named(&named)),
        Err(_) if until_violation().is_some() => Box::new(seeds::without_end()),
        Err(_) => Box::new(seeds::of_tier(tier)),
    }
}

/// How long to run lives until one breaks a rule, if requested.
fn until_violation() -> Option<Duration> {
    let seconds = std::env::var("UNTIL_VIOLATION").ok()?;
    Some(Duration::from_secs(seconds.parse().expect("UNTIL_VIOLATION is a number of seconds")))
}

/// Lives in progress by seed, with their start time.
#[derive(Clone, Default)]
struct GoingOn(Arc<Mutex<BTreeMap<u64, Instant>>>);

impl GoingOn {
    fn live(&self, seed: u64) -> Ended {
        locked(&self.0).insert(seed, Instant::now());
        let ended = live(seed, false);
        locked(&self.0).remove(&seed);
        ended
    }

    /// Ends the whole run if one of them is in an endless loop.
    fn watch(self) {
        loop {
            thread::sleep(Duration::from_secs(1));
            let spinning =
                locked(&self.0).iter().find(|(_, began)| began.elapsed() > SPINS_AFTER).map(|(seed, _)| *seed);
            if let Some(seed) = spinning {
                let violation = format!("seed {seed} {BREAKS} it has not ended after {} s\n", SPINS_AFTER.as_secs());
                // Bypass the harness, which captures output until a test ends. A write error cannot be reported.
                let _ = io::stdout().write_all(violation.as_bytes());
                process::exit(1);
            }
        }
    }
}

#[test]
fn lives_keep_the_rules() {
    run_lives(Tier::Default);
}

#[test]
#[ignore = "3,000 lives take minutes: the deep tier"]
fn deep_lives_keep_the_rules() {
    run_lives(Tier::Deep);
}

fn run_lives(tier: Tier) {
    if let Ok(seed) = std::env::var("SEED") {
        let seed = seed.parse().expect("SEED is a number");
        let Ended { plan, found, trace, .. } = live(seed, true);
        println!("seed {seed}: {plan}\n{trace}\n{}", found.join("\n"));
        assert!(found.is_empty(), "{found:#?}");
        return;
    }
    let (seeds, began) = (Mutex::new(seeds(tier)), Instant::now());
    let next = || locked(&seeds).next();
    let (requests, lives) = (AtomicU64::new(0), AtomicU64::new(0));
    let (failed, slowest) = (Mutex::new(Vec::new()), Mutex::new((0, 0)));
    let is_over = || {
        let has_failed = || !locked(&failed).is_empty();
        until_violation().is_some_and(|most| has_failed() || began.elapsed() >= most)
    };
    let going_on = GoingOn::default();
    let watched = going_on.clone();
    thread::spawn(move || watched.watch());
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while !is_over() {
                    let Some(seed) = next() else { return };
                    let ended = going_on.live(seed);
                    let lived = lives.fetch_add(1, Ordering::Relaxed) + 1;
                    if lived.is_multiple_of(REPORTED) {
                        println!("{lived} lives after {:.0} s", began.elapsed().as_secs_f64());
                    }
                    requests.fetch_add(ended.requests as u64, Ordering::Relaxed);
                    let mut slowest = locked(&slowest);
                    *slowest = (*slowest).max((ended.calmed_after, seed));
                    if !ended.found.is_empty() {
                        locked(&failed).push((seed, ended));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort_by_key(|(seed, _)| *seed);
    let (longest, slowest) = slowest.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{} lives, {} requests, {:.0} s, {} failed; done in the calm after {longest} s at most (seed {slowest})",
        lives.into_inner(),
        requests.into_inner(),
        began.elapsed().as_secs_f64(),
        failed.len()
    );
    for (seed, Ended { plan, trace, .. }) in failed.iter().take(PRINTED) {
        println!("\nseed {seed}: {plan}\n{trace}");
    }
    for (seed, Ended { plan, found, .. }) in &failed {
        println!("seed {seed} {BREAKS} {}\n  {plan}", found.join("; "));
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
