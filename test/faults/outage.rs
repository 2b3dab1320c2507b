//! The API server is killed in the middle of a flow and restarted.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::future::{join_all, try_join_all};

use crate::flow::Flow;
use crate::life::{Ends, Life};
use crate::recovery::SteadyWorker;
use crate::report::{Row, Times};
use crate::world::World;
use test_support::proxy::{Call, Refusal, Treatment};

/// Duration of the outage, in addition to the seconds that a start takes.
const AWAY: Duration = Duration::from_secs(3);
/// Number of no-op reconciles until one needs as few requests as before. A restarted API server rejects resumed watches
/// once, so they relist, and it does not answer every first attempt.
const NO_OPS_AFTER_OUTAGE: usize = 3;
/// Number of lives in progress.
const LIVES: usize = 4;
/// The flows in which it happens.
const DISTURBED: [Flow; 4] = [Flow::Create, Flow::Roll, Flow::Restore, Flow::Delete];

/// Kills it right after the start of each flow that creates or deletes many objects. This would affect all other tests,
/// so it uses its own control plane.
pub(crate) async fn run(ends: &Ends) -> Result<Row> {
    let world = World::start_alone().await?;
    let world = &world;
    let steady = SteadyWorker::begin(world, ends).await?;
    let mut lives = try_join_all((0..LIVES).map(async |_| Life::begin(world, "outage", ends).await)).await?;
    let (mut times, mut violations) = (Vec::new(), Vec::new());
    for flow in Flow::ALL {
        let is_disturbed = DISTURBED.contains(&flow);
        let requested = try_join_all(lives.iter_mut().map(async |life| life.request(flow).await)).await?;
        if is_disturbed {
            outage(world, &lives).await?;
            lives.iter().for_each(|life| life.controller.proxy.clear_faults());
        }
        let start = Instant::now();
        let over = lives.iter().zip(requested).map(async |(life, since)| {
            life.over(flow, since).await?;
            anyhow::Ok(start.elapsed())
        });
        for outcome in join_all(over).await {
            match outcome {
                Ok(time) if is_disturbed => times.push(time),
                Ok(_) => {}
                Err(error) => violations.push(format!("the API server was away, {}: {error:#}", flow.name())),
            }
        }
        if !violations.is_empty() {
            break;
        }
    }
    for life in lives {
        violations.extend(life.evaluate().await?);
    }
    let outage = async || {
        outage(world, std::slice::from_ref(&steady.life)).await?;
        steady.count(|_| Treatment::Forward);
        steady.watches_begin().await
    };
    let unseen = steady.reports_changes_after(outage, NO_OPS_AFTER_OUTAGE).await;
    violations.extend(unseen.err().map(|error| format!("the API server was away, then recovery: {error:#}")));
    violations.extend(steady.life.end().await?);
    Ok(Row {
        what: format!("the API server killed and back after {} s", AWAY.as_secs()),
        covered: format!("{LIVES} Workers, {} flows", DISTURBED.len()),
        recovery: Times::of(times),
        violations,
        ..Row::default()
    })
}

/// Returns when the API server is running. The controllers cannot reach it yet.
async fn outage(world: &World, lives: &[Life<'_>]) -> Result<()> {
    let apiserver = world.control_plane.apiserver();
    apiserver.signal("KILL")?;
    apiserver.wait(Duration::from_secs(10)).await?;
    // Controllers stay disconnected until the observer is active, so that it sees all of their writes.
    let away = |_: &Call| Treatment::Refuse(Refusal::Unavailable);
    lives.iter().for_each(|life| life.set_faults(away));
    tokio::time::sleep(AWAY).await;
    world.control_plane.start_apiserver_again().await.context("starting the API server again")?;
    world.observer.sees_everything().await;
    Ok(())
}
