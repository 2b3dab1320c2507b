//! The program is killed at any moment and restarted: the end state is the same.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use serde_json::Value;

use crate::program;
use test_support::cluster::{ControlPlane, FAKER, Faker, Process, eventually};
use test_support::shoot::{Kind, SOON, Shoot, set_image};

/// A moment at which to kill the program.
type Moment = (&'static str, fn(&Seen) -> bool);

/// The parts of a shoot's state that define moments.
struct Seen {
    worker: Value,
    deployments: Vec<Value>,
    classes: BTreeSet<String>,
    secrets: BTreeSet<String>,
}

#[tokio::test]
async fn a_program_that_dies_at_any_moment_finishes_after_a_restart() -> Result<()> {
    let cluster = ControlPlane::start().await?;
    let _machines = Faker::start(cluster.client(FAKER).await?, None, Duration::from_millis(300));
    let mut program = program::start(&cluster)?;

    let undisturbed = Shoot::new(&cluster, "undisturbed").await?;
    undisturbed.create(|_| {}).await?;
    undisturbed.succeeded().await?;
    let created = state(&undisturbed).await?;
    undisturbed.change_worker(|worker| set_image(worker, "bow", "12.2.0")).await?;
    undisturbed.succeeded().await?;
    let rolled = state(&undisturbed).await?;
    ensure!(created != rolled, "the roll changes nothing");

    let moments_of_creation: [Moment; 4] = [
        ("it holds the Worker", |seen| !seen.worker["metadata"]["finalizers"].is_null()),
        ("the first secret is there", |seen| !seen.secrets.is_empty()),
        ("the first deployment is there", |seen| !seen.deployments.is_empty()),
        ("bounds are published", |seen| !seen.worker["status"]["machineDeployments"].is_null()),
    ];
    let mut shoots = Vec::new();
    for (number, moment) in moments_of_creation.into_iter().enumerate() {
        let shoot = Shoot::new(&cluster, &format!("killed-{number}")).await?;
        shoot.create(|_| {}).await?;
        program = die_at(&cluster, &shoot, program, moment).await?;
        shoot.succeeded().await?;
        ensure_same(&state(&shoot).await?, &created, moment.0)?;
        shoots.push(shoot);
    }

    let moments_of_a_roll: [Moment; 4] = [
        ("the roll has begun", |seen| seen.worker["status"]["lastOperation"]["state"] == "Processing"),
        ("a new class is there", |seen| seen.classes.len() > 3),
        ("a deployment has its new class", |seen| {
            seen.deployments.iter().any(|deployment| deployment["metadata"]["generation"].as_i64() > Some(1))
        }),
        ("old and new are there", |seen| seen.classes.len() == 5 && seen.secrets.len() == 5),
    ];
    for (shoot, moment) in shoots.iter().zip(moments_of_a_roll) {
        shoot.change_worker(|worker| set_image(worker, "bow", "12.2.0")).await?;
        program = die_at(&cluster, shoot, program, moment).await?;
        shoot.succeeded().await?;
        ensure_same(&state(shoot).await?, &rolled, moment.0)?;
    }

    let moments_of_deletion: [Moment; 2] = [
        ("the deletion has begun", |seen| seen.worker["status"]["lastOperation"]["type"] == "Delete"),
        ("the deployments are gone", |seen| seen.deployments.is_empty()),
    ];
    for (shoot, moment) in shoots.iter().zip(moments_of_deletion) {
        shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
        program = die_at(&cluster, shoot, program, moment).await?;
        shoot.deleted().await?;
    }
    program.ensure_running()
}

/// Kills the program at that moment, and restarts it.
async fn die_at(cluster: &ControlPlane, shoot: &Shoot, program: Process, (what, is_now): Moment) -> Result<Process> {
    eventually(SOON, what, async || {
        let worker = shoot.get(Kind::Worker, "fleet").await?.unwrap_or_default();
        let seen = Seen {
            deployments: shoot.list(Kind::MachineDeployment).await?,
            classes: shoot.names(Kind::MachineClass).await?,
            secrets: shoot.names(Kind::ClassSecret).await?,
            worker,
        };
        // The program may have been too fast to observe the moment.
        let is_over = seen.worker.is_null() || seen.worker["status"]["lastOperation"]["state"] == "Succeeded";
        ensure!(is_now(&seen) || is_over, "not yet: {}", seen.worker["status"]["lastOperation"]);
        Ok(())
    })
    .await?;
    program::kill(program).await?;
    program::start(cluster)
}

/// Names of all objects, and the spec of deployments. Names do not contain anything that differs between runs.
async fn state(shoot: &Shoot) -> Result<BTreeSet<String>> {
    let mut state = BTreeSet::new();
    for kind in Kind::OF_MACHINES {
        let names = shoot.names(kind).await?;
        match kind {
            // The faker derives their names from class names, which contain the namespace.
            Kind::MachineSet => state.insert(format!("{} machine sets", names.len())),
            _ => {
                state.extend(names.iter().map(|name| format!("{kind:?} {name}")));
                true
            }
        };
    }
    for deployment in shoot.list(Kind::MachineDeployment).await? {
        state.insert(deployment["spec"].to_string().replace(&shoot.namespace, ""));
    }
    let status = &shoot.worker().await?["status"];
    for member in ["machineDeployments", "providerStatus"] {
        state.insert(status[member].to_string().replace(&shoot.namespace, ""));
    }
    Ok(state)
}

fn ensure_same(state: &BTreeSet<String>, expected: &BTreeSet<String>, moment: &str) -> Result<()> {
    let surplus: Vec<_> = state.difference(expected).collect();
    let missing: Vec<_> = expected.difference(state).collect();
    ensure!(
        surplus.is_empty() && missing.is_empty(),
        "killed when {moment}; surplus: {surplus:#?}, missing: {missing:#?}"
    );
    Ok(())
}
