//! A second request comes while the first one, which finds everything done, is being answered: neither answer nor taking off
//! may be meant for it.

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

/// Who asks first.
#[derive(Clone, Copy, Debug)]
enum Asks {
    /// With the time of the request.
    Gardenlet,
    /// Without one.
    Person,
}

/// Which write is held until the second request is there: of the status, or what takes the request off.
const WRITES: [&str; 2] = ["/workers/fleet/status", "/workers/fleet"];

/// Each way of asking, with each write held.
pub(crate) async fn run(world: &World, ends: &Ends) -> Result<Row> {
    let cases = [Asks::Gardenlet, Asks::Person].into_iter().flat_map(|asks| WRITES.map(|held| (asks, held)));
    let outcomes = join_all(cases.map(async |(asks, held)| {
        let mut life = Life::begin(world, "second", ends).await?;
        let outcome = second_request(&mut life, asks, held).await;
        let mut found = life.judge().await?;
        found.extend(outcome.err().map(|error| format!("{asks:?} asks, {held} is held: {error:#}")));
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

async fn second_request(life: &mut Life<'_>, asks: Asks, held: &'static str) -> Result<()> {
    life.go(Flow::Create).await?;
    let (sender, mut is_held) = mpsc::unbounded_channel();
    let mut has_held = false;
    life.set_faults(move |call| {
        if has_held || !call.writes() || !call.path.ends_with(held) {
            return Treatment::Forward;
        }
        has_held = true;
        // Nobody listens once the second request was made.
        let _ = sender.send(());
        Treatment::Delay(HELD)
    });
    match asks {
        Asks::Gardenlet => drop(confirm(&life.shoot).await?),
        Asks::Person => life.shoot.annotate_worker().await?,
    }
    let first = tokio::time::timeout(LONG, is_held.recv()).await;
    first.context("the first request is not answered")?;
    let since = life.ask(Flow::Roll).await?;
    life.over(Flow::Roll, since).await
}
