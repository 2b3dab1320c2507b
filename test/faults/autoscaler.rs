//! An aggressive autoscaler: it writes the replicas of a deployment ten times a second while the Worker is reconciled,
//! rolled and given other bounds. Each written value must stay until the autoscaler writes the next one.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::try_join;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;

use crate::flow::{Flow, POOLS, request};
use crate::life::{Ends, LONG, Life};
use crate::report::Row;
use crate::world::World;
use test_support::shoot::{Kind, Shoot, pool, set_image};

/// Interval between writes.
const PERIOD: Duration = Duration::from_millis(100);
/// Maximum number of writes per reconcile. On a busy machine, the faker could never catch up with more, so no reconcile
/// would succeed.
const NUMBERS: usize = 150;

/// A change of the Worker.
type Change = fn(&mut Value);

/// Concurrent changes, with the bounds of each deployment afterwards. The written replicas are within these bounds.
const CHANGES: [(&str, [i64; 2], Change); 4] = [
    ("nothing new", [1, 2], |_| {}),
    ("another image", [1, 2], |worker| POOLS.iter().for_each(|name| set_image(worker, name, "12.2.0"))),
    ("more machines at most", [1, 3], |worker| set_bounds(worker, [3, 9])),
    ("more machines at least", [2, 3], |worker| set_bounds(worker, [6, 9])),
];

fn set_bounds(worker: &mut Value, [minimum, maximum]: [i64; 2]) {
    for name in POOLS {
        let pool = pool(worker, name);
        pool["minimum"] = json!(minimum);
        pool["maximum"] = json!(maximum);
    }
}

/// Applies all changes one after the other.
pub(crate) async fn run(world: &World, ends: &Ends) -> Result<Row> {
    let mut life = Life::begin(world, "autoscaler", ends).await?;
    let mut violations = Vec::new();
    // Revisions of the autoscaler's writes.
    let mut own = HashSet::new();
    let outcome = async {
        life.go(Flow::Create).await?;
        for (what, bounds, change) in CHANGES {
            own.extend(while_it_writes(&life, bounds, change).await.context(what)?);
            violations.extend(lost(&life, &own, bounds).into_iter().map(|lost| format!("{what}: {lost}")));
        }
        anyhow::Ok(())
    };
    if let Err(error) = outcome.await {
        violations.push(format!("an autoscaler that hardly rests: {error:#}"));
    }
    violations.extend(life.end().await?);
    Ok(Row {
        what: "an autoscaler writes replicas ten times a second".to_owned(),
        covered: format!("{} numbers, {} reconciles", own.len(), CHANGES.len()),
        violations,
        ..Row::default()
    })
}

/// Reconciles a change while the autoscaler writes. Returns the revisions of its writes.
async fn while_it_writes(life: &Life<'_>, bounds: [i64; 2], change: fn(&mut Value)) -> Result<HashSet<u64>> {
    let ended = AtomicBool::new(false);
    let reconciled = async {
        let since = request(&life.shoot, change).await?;
        let over = |seen: &crate::observer::Seen| Flow::Roll.ensure_over(seen, since);
        let outcome = life.world.observer.until(&life.shoot.namespace, LONG, "the reconcile", over).await;
        ended.store(true, Ordering::Relaxed);
        outcome
    };
    let (own, ()) = try_join!(write(&life.shoot, bounds, &ended), reconciled)?;
    // The observer must see the last write before the checks.
    let last = own.iter().max().copied().unwrap_or_default();
    let seen = |seen: &crate::observer::Seen| {
        ensure!(seen.versions.iter().any(|version| version.revision >= last), "revision {last} is missing");
        Ok(())
    };
    life.world.observer.until(&life.shoot.namespace, LONG, "the last number", seen).await?;
    Ok(own)
}

/// Writes the upper and lower bound in turn, until `ended` is set or the maximum is reached. Returns the revisions.
async fn write(shoot: &Shoot, bounds: [i64; 2], ended: &AtomicBool) -> Result<HashSet<u64>> {
    let names = shoot.names(Kind::MachineDeployment).await?;
    let api = shoot.api(Kind::MachineDeployment);
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut own = HashSet::new();
    let numbers =
        bounds.into_iter().rev().cycle().flat_map(|number| names.iter().map(move |name| (name, number))).take(NUMBERS);
    for (name, number) in numbers {
        if ended.load(Ordering::Relaxed) {
            break;
        }
        ticks.tick().await;
        let patch = Patch::Merge(json!({"spec": {"replicas": number}}));
        let name = format!("{}-{name}", shoot.namespace);
        let written = api.patch(&name, &PatchParams::default(), &patch).await?;
        own.extend(written.resource_version().and_then(|version| version.parse::<u64>().ok()));
    }
    Ok(own)
}

/// Replicas within the bounds that another writer has overwritten.
fn lost(life: &Life<'_>, own: &HashSet<u64>, [minimum, maximum]: [i64; 2]) -> Vec<String> {
    let first = own.iter().min().copied().unwrap_or_default();
    let mut replicas = std::collections::HashMap::new();
    let mut lost = Vec::new();
    for version in life.world.observer.versions(&life.shoot.namespace) {
        if version.kind != Kind::MachineDeployment {
            continue;
        }
        let Some(deployment) = version.object else { continue };
        let after = deployment["spec"]["replicas"].as_i64().unwrap_or_default();
        let before = replicas.insert(version.name.clone(), after).unwrap_or(after);
        let within = (minimum..=maximum).contains(&before);
        if version.revision > first && before != after && within && !own.contains(&version.revision) {
            lost.push(format!("revision {}: {} gets {after} after {before}", version.revision, version.name));
        }
    }
    lost
}
