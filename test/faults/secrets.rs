//! A Secret that the Worker refers to is missing for a while.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::flow::Flow;
use crate::life::{Ends, LONG, Life};
use crate::report::{Row, Times};
use crate::world::World;
use test_support::shoot::{Kind, ensure_reports};

const CREDENTIALS: &str = "cloudprovider";
const USER_DATA: &str = "boot";

/// Both Secrets are missing in turn. That must be reported, cause no harm, and resolve when they return. A deletion
/// needs neither.
pub(crate) async fn run(world: &World, ends: &Ends) -> Result<Row> {
    let mut life = Life::begin(world, "secrets", ends).await?;
    let (mut times, mut violations) = (Vec::new(), Vec::new());
    let outcome = async {
        life.go(Flow::Create).await?;
        for (secret, flow) in [(USER_DATA, Flow::Roll), (CREDENTIALS, Flow::PoolRemoval)] {
            let kept = take(&life, secret).await?;
            let since = life.request(flow).await?;
            reports(&life, secret).await?;
            put_back(&life, kept).await?;
            let start = Instant::now();
            life.over(flow, since).await?;
            times.push(start.elapsed());
        }
        life.go(Flow::Hibernate).await?;
        life.go(Flow::Wake).await?;
        let kept = [take(&life, USER_DATA).await?, take(&life, CREDENTIALS).await?];
        let since = life.request(Flow::Delete).await?;
        let namespace = &life.shoot.namespace;
        let deleted = |seen: &crate::observer::Seen| Flow::Delete.ensure_over(seen, since);
        world.observer.until(namespace, LONG, "a deletion without Secrets", deleted).await?;
        for secret in kept {
            put_back(&life, secret).await?;
        }
        anyhow::Ok(())
    };
    if let Err(error) = outcome.await {
        violations.push(format!("a missing Secret: {error:#}"));
    }
    violations.extend(life.evaluate().await?);
    Ok(Row {
        what: "user data or credentials missing for a while".to_owned(),
        covered: "3 flows".to_owned(),
        recovery: Times::of(times),
        violations,
        ..Row::default()
    })
}

async fn take(life: &Life<'_>, name: &str) -> Result<Value> {
    let secret = life.shoot.get(Kind::Secret, name).await?.with_context(|| format!("no Secret {name}"))?;
    life.shoot.api(Kind::Secret).delete(name, &DeleteParams::default()).await?;
    Ok(secret)
}

async fn put_back(life: &Life<'_>, mut secret: Value) -> Result<()> {
    let name = secret["metadata"]["name"].take();
    secret["metadata"] = json!({ "name": name });
    life.shoot.api(Kind::Secret).create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
    Ok(())
}

/// Waits until the Worker's error names the missing Secret.
async fn reports(life: &Life<'_>, name: &str) -> Result<()> {
    let what = format!("the Worker tells that {name} is missing");
    let reported = |seen: &crate::observer::Seen| {
        let worker = seen.now.get(&(Kind::Worker, "fleet".to_owned())).context("there is no Worker")?;
        ensure!(worker["status"]["lastOperation"]["state"] == "Error", "it is {}", worker["status"]["lastOperation"]);
        ensure_reports(&worker["status"]["lastError"]["description"], &[name])
    };
    life.world.observer.until(&life.shoot.namespace, LONG, &what, reported).await
}
