//! However a Worker disappears, its metrics disappear too, so no series of a deleted Worker keeps an alert firing.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::controller::Controller;
use crate::stalls;
use test_support::cluster::{ControlPlane, FAKER, Faker, eventually};
use test_support::proxy::{Refusal, Treatment};
use test_support::shoot::{Kind, SOON, Shoot, pool};

/// How a Worker disappears.
#[derive(Clone, Copy, Debug)]
enum Departure {
    /// gardenlet deletes it.
    Deleted,
    /// Its control plane moves to another seed.
    Migrated,
    /// A user removes the finalizer and deletes it.
    FinalizerRemoved,
    /// The same, while the controller is disconnected; it relists afterwards.
    WhileNobodyWatches,
}

const DEPARTURES: [Departure; 4] =
    [Departure::Deleted, Departure::Migrated, Departure::FinalizerRemoved, Departure::WhileNobodyWatches];

#[tokio::test]
async fn measures_nothing_of_a_deleted_worker() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let _machines = Faker::start(control_plane.client(FAKER).await?, None, Duration::ZERO);
    let (controller, proxy) = stalls::start(&control_plane, "departures", |program| program).await?;
    for departure in DEPARTURES {
        let shoot = Shoot::new(&control_plane, "departing").await?;
        shoot.create(|documents| pool(documents.of_kind("Worker"), "bow")["machineType"] = json!("unknown")).await?;
        shoot.fails(|_| Ok(())).await?;
        let namespace = shoot.namespace.clone();
        eventually(SOON, "the failing Worker is measured", async || {
            let series = series_of(&controller, &namespace).await?;
            ensure!(series.iter().any(|line| line.contains("_failing_since_timestamp")), "{series:#?}");
            Ok(())
        })
        .await?;
        match departure {
            Departure::Deleted => delete(&shoot).await?,
            Departure::Migrated => migrate(&shoot).await?,
            Departure::FinalizerRemoved => remove(&shoot).await?,
            Departure::WhileNobodyWatches => {
                proxy.set_faults(
                    |call| {
                        if call.watches { Treatment::Refuse(Refusal::Expired) } else { Treatment::Forward }
                    },
                );
                proxy.reset_connections();
                remove(&shoot).await?;
                proxy.clear_faults();
            }
        }
        eventually(SOON, &format!("nothing is measured of a Worker that was {departure:?}"), async || {
            let series = series_of(&controller, &namespace).await?;
            ensure!(series.is_empty(), "{series:#?}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// The series of a namespace.
async fn series_of(controller: &Controller, namespace: &str) -> Result<Vec<String>> {
    let metrics = controller.metrics().await?;
    Ok(metrics.lines().filter(|line| line.contains(&format!("namespace=\"{namespace}\""))).map(str::to_owned).collect())
}

async fn delete(shoot: &Shoot) -> Result<()> {
    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    shoot.deleted().await
}

async fn migrate(shoot: &Shoot) -> Result<()> {
    let request = |worker: &mut Value| worker["metadata"]["annotations"]["gardener.cloud/operation"] = json!("migrate");
    shoot.change(Kind::Worker, "fleet", request).await?;
    eventually(SOON, "the migration has ended", async || {
        let worker = shoot.worker().await?;
        let last = &worker["status"]["lastOperation"];
        ensure!(last["type"] == "Migrate" && last["state"] == "Succeeded", "{last}");
        ensure!(worker["metadata"]["finalizers"].is_null(), "{}", worker["metadata"]);
        Ok(())
    })
    .await
}

async fn remove(shoot: &Shoot) -> Result<()> {
    let nothing = json!({"metadata": {"finalizers": null, "annotations": {"gardener.cloud/operation": null}}});
    let workers = shoot.api(Kind::Worker);
    workers.delete("fleet", &DeleteParams::default()).await?;
    workers.patch("fleet", &PatchParams::default(), &Patch::Merge(&nothing)).await?;
    eventually(SOON, "the Worker is gone", async || {
        ensure!(shoot.get(Kind::Worker, "fleet").await?.is_none(), "it is there");
        Ok(())
    })
    .await
}
