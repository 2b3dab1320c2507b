//! A roll saved with `preview --save`, and an unsaved one.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::program;
use test_support::cluster::eventually;
use test_support::program::binary;
use test_support::shoot::{Kind, Shoot, ensure_reports, set_image};

/// An unsaved roll is reported within two seconds; the rest is for busy machines.
const LATEST: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_roll_that_was_not_saved_is_reported_at_once() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "planned").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    let mut documents = Vec::new();
    shoot.create(|created| documents = created.all().to_vec()).await?;
    shoot.succeeded().await?;
    ensure!(condition(&shoot).await?.is_none(), "nobody has saved rolls");

    let planned = saved_rolls(&documents)?;
    shoot
        .change_worker(|worker| {
            set_image(worker, "bow", "12.2.0");
            worker["metadata"]["annotations"]["gardener-extension-worker/planned-rolls"] = json!(planned);
        })
        .await?;
    let worker = shoot.succeeded().await?;
    let found = of_worker(&worker).context("RollsAsPlanned is not there")?;
    ensure!(found["status"] == "True" && found["reason"] == "RollsArePlanned", "{found}");
    ensure_reports(&found["message"], &["1 pool rolls, as in the rolls saved at"])?;

    let shoot = &shoot;
    shoot.change_worker(|worker| set_image(worker, "stern", "12.2.0")).await?;
    let edited = Instant::now();
    let reported = eventually(LATEST, "RollsAsPlanned is false", || async move {
        let condition = condition(shoot).await?.filter(|condition| condition["status"] == "False");
        condition.context("it is not")
    });
    let reported = reported.await?;
    println!("an unplanned roll is told {:.2?} after the edit", edited.elapsed());
    ensure!(reported["reason"] == "UnplannedRoll", "{reported}");
    ensure_reports(&reported["message"], &["pool \"stern\" rolls because of machineImage, and was not to roll"])?;
    let worker = shoot.succeeded().await?;
    ensure!(of_worker(&worker) == Some(reported), "what happened stays told: {:?}", of_worker(&worker));
    Ok(())
}

/// The annotation for another image of pool bow.
fn saved_rolls(documents: &[Value]) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let write = |name: &str, documents: &[Value]| -> Result<String> {
        let path = folder.path().join(name);
        std::fs::write(&path, serde_json::to_string(&json!({"kind": "List", "items": documents}))?)?;
        Ok(path.display().to_string())
    };
    let mut changed = documents.to_vec();
    let worker = changed.iter_mut().find(|document| document["kind"] == "Worker").context("no Worker")?;
    set_image(worker, "bow", "12.2.0");
    let (old, new, rolls) =
        (write("old.json", documents)?, write("new.json", &changed)?, folder.path().join("rolls.json"));
    let output = Command::new(binary()).args(["preview", &old, &new, "--save"]).arg(&rolls).output()?;
    ensure!(output.status.code() == Some(5), "{output:?}");
    let saved: Value = serde_json::from_slice(&std::fs::read(&rolls)?)?;
    let worker = &saved["workers"][0];
    ensure!(worker["nodes"]["bow"].as_i64() > Some(0), "{saved}");
    Ok(worker["plannedRolls"].as_str().context("no annotation")?.to_owned())
}

async fn condition(shoot: &Shoot) -> Result<Option<Value>> {
    let workers = shoot.list(Kind::Worker).await?;
    Ok(workers.first().and_then(of_worker))
}

fn of_worker(worker: &Value) -> Option<Value> {
    let conditions = worker["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == "RollsAsPlanned").cloned()
}
