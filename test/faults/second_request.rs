//! A second request arrives while a first no-op request is being answered. The controller must neither answer it
//! unprocessed nor remove its annotation.

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::future::join_all;
use tokio::sync::mpsc;

use crate::flow::{Flow, confirm};
use crate::life::{Ends, LONG, Life};
use crate::report::{Row, Times};
use crate::world::World;
use test_support::proxy::Treatment;

/// Long enough for the second request.
const HELD: Duration = Duration::from_millis(700);

/// Who makes the first request.
#[derive(Clone, Copy, Debug)]
enum Requester {
    /// With a timestamp.
    Gardenlet,
    /// Without a timestamp.
    Person,
}

/// The write that is delayed until the second request exists: the status, or the removal of the annotation.
const WRITES: [&str; 2] = ["/workers/fleet/status", "/workers/fleet"];

/// Tests all combinations.
pub(crate) async fn run(world: &World, ends: &Ends) -> Result<Row> {
    let cases =
        [Requester::Gardenlet, Requester::Person].into_iter().flat_map(|requests| WRITES.map(|held| (requests, held)));
    let outcomes = join_all(cases.map(async |(requests, held)| {
        let mut life = Life::begin(world, "second", ends).await?;
        let outcome = second_request(&mut life, requests, held).await;
        let mut found = life.evaluate().await?;
        found.extend(outcome.err().map(|error| format!("{requests:?} asks, {held} is held: {error:#}")));
        anyhow::Ok(found)
    }))
    .await;
    let (mut violations, count) = (Vec::new(), outcomes.len());
    for outcome in outcomes {
        violations.extend(outcome?);
    }
    Ok(Row {
        what: "a second request while the first is answered".to_owned(),
        covered: format!("{count} answers"),
        recovery: Times::of(Vec::new()),
        violations,
        ..Row::default()
    })
}

async fn second_request(life: &mut Life<'_>, requests: Requester, held: &'static str) -> Result<()> {
    life.go(Flow::Create).await?;
    let (sender, mut is_held) = mpsc::unbounded_channel();
    let mut has_held = false;
    life.set_faults(move |call| {
        if has_held || !call.writes() || !call.path.ends_with(held) {
            return Treatment::Forward;
        }
        has_held = true;
        // After the second request, there is no receiver.
        let _ = sender.send(());
        Treatment::Delay(HELD)
    });
    match requests {
        Requester::Gardenlet => drop(confirm(&life.shoot).await?),
        Requester::Person => life.shoot.annotate_worker().await?,
    }
    let first = tokio::time::timeout(LONG, is_held.recv()).await;
    first.context("the first request is not answered")?;
    let since = life.request(Flow::Roll).await?;
    life.over(Flow::Roll, since).await
}
