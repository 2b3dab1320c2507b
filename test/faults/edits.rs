//! Manual edits of the controller's objects: the next reconcile reverts them, except replicas, which the autoscaler
//! owns.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::dump::Dump;
use crate::flow::{Flow, GROWN, ensure_succeeded, request};
use crate::life::{Ends, LONG, Life};
use crate::report::{Row, Times};
use crate::world::World;
use test_support::shoot::Kind;

/// A manual edit.
type Edit = fn(&mut Value);

/// Manual edits by kind, pool and zone.
const CHANGES: [(Kind, &str, Edit); 8] = [
    (Kind::MachineClass, "bow-z1", |class| class["providerSpec"]["foreign"] = json!("edit")),
    (Kind::MachineClass, "hull-z1", |class| class["metadata"]["labels"] = json!({"foreign": "edit"})),
    (Kind::Secret, "bow-z3", |secret| secret["data"]["userData"] = json!("Zm9yZWlnbg==")),
    (Kind::Secret, "hull-z3", |secret| drop(secret["metadata"]["labels"].take())),
    (Kind::MachineDeployment, GROWN, |deployment| {
        deployment["spec"]["minReadySeconds"] = json!(7);
        deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] = json!(1);
        deployment["metadata"]["labels"] = json!({});
    }),
    (Kind::MachineDeployment, "stern-z1", |deployment| {
        deployment["spec"]["template"]["spec"]["class"]["name"] = json!("elsewhere");
    }),
    (Kind::MachineDeployment, "stern-z2", |deployment| {
        deployment["spec"]["template"]["metadata"]["labels"]["foreign"] = json!("edit");
    }),
    (Kind::MachineDeployment, "stern-z3", |deployment| {
        deployment["spec"]["template"]["spec"]["drainTimeout"] = json!("7m0s");
    }),
];

/// Manual deletions.
const DELETIONS: [(Kind, &str); 3] =
    [(Kind::MachineClass, "bow-z2"), (Kind::Secret, "hull-z2"), (Kind::MachineDeployment, "hull-z1")];

/// Applies all edits at the same time.
pub(crate) async fn run(world: &World, ends: &Ends) -> Result<Row> {
    let mut life = Life::begin(world, "edits", ends).await?;
    let (mut times, mut violations) = (Vec::new(), Vec::new());
    let outcome = async {
        life.go(Flow::Create).await?;
        let grown = format!("{}-{GROWN}", life.shoot.namespace);
        let two = |object: &mut Value| object["spec"]["replicas"] = json!(2);
        let changed = life.shoot.change(Kind::MachineDeployment, &grown, two).await?;
        life.taken_up(changed.parse().context("a version is a number")?).await?;
        let before = life.settled().await?;
        edit(&life).await?;

        let since = request(&life.shoot, |_| {}).await?;
        let start = Instant::now();
        repaired(&life, &before, since).await?;
        times.push(start.elapsed());
        for version in world.observer.versions(&life.shoot.namespace) {
            if version.name == grown
                && version.revision > since
                && let Some(object) = version.object
            {
                let replicas = &object["spec"]["replicas"];
                ensure!(replicas == 2, "{grown} has {replicas} replicas on the way");
            }
        }
        Ok(())
    };
    if let Err(error) = outcome.await {
        violations.push(format!("foreign edits: {error:#}"));
    }
    violations.extend(life.end().await?);
    Ok(Row {
        what: "objects edited and deleted by hand".to_owned(),
        covered: format!("{} edits", CHANGES.len() + DELETIONS.len()),
        recovery: Times::of(times),
        violations,
        ..Row::default()
    })
}

async fn edit(life: &Life<'_>) -> Result<()> {
    let shoot = &life.shoot;
    // Names of classes and Secrets contain the hash between pool and zone.
    let named = async |kind: Kind, placement: &str| -> Result<String> {
        let (pool, zone) = placement.split_once('-').unwrap_or_default();
        let (pool, zone) = (format!("-{pool}-"), format!("-{zone}"));
        let names: Vec<_> = shoot
            .list(kind)
            .await?
            .iter()
            .filter_map(|object| Some(object["metadata"]["name"].as_str()?.to_owned()))
            .collect();
        let mut found = names.into_iter().filter(|name| name.contains(&pool) && name.ends_with(&zone));
        let name = found.next();
        ensure!(name.is_some() && found.next().is_none(), "there is not one {kind:?} of {placement}");
        Ok(name.unwrap_or_default())
    };
    for (kind, placement, change) in CHANGES {
        shoot.change(kind, &named(kind, placement).await?, change).await?;
    }
    for (kind, placement) in DELETIONS {
        shoot.api(kind).delete(&named(kind, placement).await?, &DeleteParams::default()).await?;
    }
    Ok(())
}

async fn repaired(life: &Life<'_>, before: &Dump, since: u64) -> Result<()> {
    let namespace = &life.shoot.namespace;
    let repaired = |seen: &crate::observer::Seen| {
        Flow::Roll.ensure_over(seen, since)?;
        if let Some(worker) = seen.now.get(&(Kind::Worker, "fleet".to_owned())) {
            ensure_succeeded(worker)?;
        }
        let mut now = Dump::of(namespace, &seen.now);
        let mut before = before.clone();
        // The operation type has changed from Create to Reconcile, and the request has a timestamp.
        now.forget("Worker fleet");
        before.forget("Worker fleet");
        let difference = before.difference(&now);
        ensure!(difference.is_none(), "not repaired:\n{}", difference.unwrap_or_default());
        Ok(())
    };
    life.world.observer.until(namespace, LONG, "a repair", repaired).await
}
