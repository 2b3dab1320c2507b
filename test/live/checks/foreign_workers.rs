//! Workers of another type or class belong to other extensions, and failed shoots must not be reconciled. None of them
//! is changed.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::program;
use crate::requests::Table;
use test_support::cluster::CONTROLLER;
use test_support::shoot::{Kind, Shoot};

#[tokio::test]
async fn workers_of_other_extensions_are_not_touched() -> Result<()> {
    let cluster = program::shared().await?;
    let audit = cluster.audit().await?;
    let before = audit.mark().await?;
    let (other_type, other_class) =
        (Shoot::new(cluster, "other-type").await?, Shoot::new(cluster, "other-class").await?);
    let failed = Shoot::new(cluster, "failed").await?;
    other_type.create(|documents| documents.of_kind("Worker")["spec"]["type"] = json!("other")).await?;
    other_class.create(|documents| documents.of_kind("Worker")["spec"]["class"] = json!("seed")).await?;
    failed
        .create(|documents| {
            documents.of_kind("Cluster")["spec"]["shoot"]["status"]["lastOperation"] = json!({"state": "Failed"});
        })
        .await?;
    let untouched = [&other_type, &other_class, &failed];
    let versions = versions(untouched).await?;

    // When a later Worker of this controller has been reconciled, it has observed the others.
    let own = Shoot::new(cluster, "own").await?;
    let _machines = own.fake_machines(cluster, Duration::ZERO).await?;
    own.create(|_| {}).await?;
    own.succeeded().await?;

    let after = self::versions(untouched).await?;
    ensure!(after == versions, "{versions:?} became {after:?}");
    let requests: Vec<_> = audit
        .requests(CONTROLLER, before)
        .await?
        .into_iter()
        .filter(|request| [&other_type.namespace, &other_class.namespace].contains(&&request.namespace))
        .collect();
    ensure!(requests.is_empty(), "requests for them:\n{}", Table::of(&requests));
    Ok(())
}

async fn versions(shoots: [&Shoot; 3]) -> Result<Vec<BTreeSet<[String; 3]>>> {
    let mut versions = Vec::new();
    for shoot in shoots {
        versions.push(shoot.versions(Kind::Worker).await?);
    }
    Ok(versions)
}
