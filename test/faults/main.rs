//! Injects all possible faults between the shipped controller and a real API server, at every point.
//!
//!     cargo test --test faults                default tier: kills at each write for Azure, and faults that share its control plane
//!     cargo test --test faults -- --ignored   deep tier: kills at each write for the other clouds, and while zones roll one after the other
//!     cargo test --test faults -- crash       cases by name, of any tier
//!
//! ```text
//! controller   the binary under test behind its own proxy, killed and restarted
//! flow         create, roll, pool removal, hibernation, waking up, move to another seed, deletion
//! life         one Worker through its flows, with the expected end states
//! observer     an independent observer of every version of every object
//! invariants   invariants that must always hold
//! dump         the objects of a namespace in comparable form
//! crash        kills before and after each write, with a Worker of each cloud
//! images       the same for the controllers for images
//! network      lost responses, errors, broken watches
//! secrets      temporarily missing user data or credentials
//! edits        objects edited and deleted by hand
//! autoscaler   replicas written ten times a second
//! two_controllers  two concurrent controllers
//! second_request  a second request before the first is answered
//! outage       the API server killed and restarted
//! recovery     changes of a single object after a fault
//! report       the table of results
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test may end where its own input is not what it expects")]
#![allow(clippy::print_stdout, reason = "the report of this program is its output")]

mod autoscaler;
mod controller;
mod crash;
mod dump;
mod edits;
mod flow;
mod images;
mod invariants;
mod life;
mod network;
mod observer;
mod outage;
mod random;
mod recovery;
mod report;
mod second_request;
mod secrets;
mod two_controllers;
mod world;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use futures::FutureExt as _;
use futures::future::{LocalBoxFuture, try_join_all};
use futures::try_join;

use controller::Chatter;
use flow::Fleet;
use life::{Ends, Life};
use network::NetworkFault;
use recovery::WatchFault;
use report::{Row, table};
use test_support::tier::Tier;
use world::World;

/// Number of concurrent lives; more would only wait for the CPU.
const SIDE_BY_SIDE: usize = 8;

/// Kills per run of a flow when all cases run. With `-- crash` alone, each flow completes after each kill, which takes
/// three times as long.
const MOST_KILLS: usize = 4;

/// Seed of random numbers, fixed for reproducibility.
const SEED: u64 = 20_261_121;

fn main() -> ExitCode {
    match run() {
        Ok(rows) => {
            println!("\n{}", table(&rows));
            let violations: Vec<_> = rows.iter().flat_map(|row| &row.violations).collect();
            for violation in &violations {
                println!("{violation}\n");
            }
            if violations.is_empty() && !rows.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether to run a case of a tier: by name, else by the selected tier.
fn is_selected(named: &[String], case: &str, tier: Tier) -> bool {
    if named.is_empty() { tier == Tier::of_arguments() } else { named.iter().any(|name| case.contains(name.as_str())) }
}

/// Runs the named cases, or those of the tier.
fn run() -> Result<Vec<Row>> {
    let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_required = |case: &str| is_selected(&named, case, Tier::Default);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        let world = World::start().await?;
        let ends = Ends::default();
        undisturbed(&world, &ends, Fleet::Azure).await.context("a life without faults")?;
        let most_kills = if named.iter().any(|name| name.starts_with("crash")) { 1 } else { MOST_KILLS };
        let azure = async {
            if !is_required("crash azure") {
                return Ok(Vec::new());
            }
            let azure = crash::run(&world, &ends, Fleet::Azure, SIDE_BY_SIDE, most_kills);
            timed("crash of azure", azure).await
        };
        // They take as long as all other cases together, and run the same code.
        let is_deep = |fleet: &Fleet| is_selected(&named, &format!("clouds: crash {}", fleet.name()), Tier::Deep);
        let others = [Fleet::AzureByZone].into_iter().chain(Fleet::EXAMPLES).filter(is_deep);
        let others = try_join_all(others.map(async |fleet| {
            let ends = Ends::default();
            undisturbed(&world, &ends, fleet).await.with_context(|| format!("{} without faults", fleet.name()))?;
            crash::run(&world, &ends, fleet, SIDE_BY_SIDE / Fleet::EXAMPLES.len(), most_kills).await
        }));
        let others = timed("crash of deep tier", others);
        let waiting = timed("cases that wait", beside_each_other(&world, &ends, is_required));
        // The crashes compute and the other cases wait, so together they take little more than the longer of both.
        let (azure, others, waiting) = try_join!(azure, others, waiting)?;
        let mut rows = azure;
        rows.extend(others.into_iter().flatten());
        rows.extend(waiting);
        Ok(rows)
    })
}

/// Runs the cases that mostly wait concurrently.
async fn beside_each_other(world: &World, ends: &Ends, is_required: impl Fn(&str) -> bool) -> Result<Vec<Row>> {
    let mut cases: Vec<LocalBoxFuture<'_, Result<Row>>> = Vec::new();
    for fault in NetworkFault::ALL {
        if is_required(&format!("network {fault:?}")) {
            cases.push(network::run(world, ends, fault, SEED).boxed_local());
        }
    }
    if is_required("secrets") {
        cases.push(secrets::run(world, ends).boxed_local());
    }
    if is_required("edits") {
        cases.push(edits::run(world, ends).boxed_local());
    }
    if is_required("autoscaler") {
        cases.push(autoscaler::run(world, ends).boxed_local());
    }
    if is_required("second request") {
        cases.push(second_request::run(world, ends).boxed_local());
    }
    if is_required("two controllers") {
        cases.push(two_controllers::run(world, ends).boxed_local());
    }
    for fault in WatchFault::ALL {
        if is_required(&format!("recovery {fault:?}")) {
            cases.push(recovery::run(world, ends, fault).boxed_local());
        }
    }
    if is_required("crash images") {
        cases.push(images::run().boxed_local());
    }
    if is_required("outage") {
        cases.push(outage::run(ends).boxed_local());
    }
    try_join_all(cases).await
}

/// Determines the expected end state of each flow in a life without faults.
async fn undisturbed(world: &World, ends: &Ends, fleet: Fleet) -> Result<()> {
    let mut life = Life::begin_with(world, "undisturbed", ends, Chatter::Debug, fleet).await?;
    for flow in fleet.flows() {
        life.go(*flow).await?;
    }
    let violations = life.evaluate().await?;
    ensure!(violations.is_empty(), "{violations:#?}");
    Ok(())
}

/// Prints the duration of a case.
async fn timed<T>(case: &str, run: impl Future<Output = Result<T>>) -> Result<T> {
    let start = Instant::now();
    let outcome = run.await.with_context(|| case.to_owned())?;
    println!("{case}: {:.0} s", start.elapsed().as_secs_f64());
    Ok(outcome)
}
