//! Two concurrent controllers, by mistake: they do the work twice, but no invariant is violated.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::controller::{Chatter, Controller};
use crate::flow::Flow;
use crate::life::{Ends, Life};
use crate::report::{Row, Times};
use crate::world::World;

/// Runs a life with two controllers.
pub(crate) async fn run(world: &World, ends: &Ends) -> Result<Row> {
    let mut life = Life::begin(world, "two-controllers", ends).await?;
    let other = Controller::start(world.control_plane, &life.shoot.namespace, 1, Chatter::Debug).await?;
    let (mut times, mut violations) = (Vec::new(), Vec::new());
    let (mut writes, mut writes_of_other) = (0, 0);
    for flow in Flow::ALL {
        let outcome = async {
            times.push(life.go(flow).await?.took);
            writes += life.controller.proxy.take_writes().len();
            writes_of_other += other.proxy.take_writes().len();
            at_rest(&life).await
        };
        if let Err(error) = outcome.await {
            violations.push(format!("two controllers, {}: {error:#}", flow.name()));
            break;
        }
    }
    other.ensure_running()?;
    violations.extend(life.evaluate().await?);
    other.stop().await?;
    Ok(Row {
        what: "two controllers at once, without election".to_owned(),
        covered: format!("{} flows, {writes} and {writes_of_other} writes", times.len()),
        recovery: Times::of(times),
        violations,
        ..Row::default()
    })
}

/// Waits until nothing changes for a second, because both must leave a completed flow unchanged.
async fn at_rest(life: &Life<'_>) -> Result<()> {
    let rest = tokio::time::timeout(Duration::from_secs(30), life.settled()).await;
    ensure!(rest.is_ok(), "they never come to rest");
    Ok(())
}
