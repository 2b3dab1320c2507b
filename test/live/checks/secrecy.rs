//! User data and credentials appear only where they must.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::ByteString;
use serde_json::json;

use crate::program;
use test_support::cluster::eventually;
use test_support::leaks::{SECRETS, ensure_no_secrets};
use test_support::shoot::{Kind, SOON, Shoot, ensure_reports};

#[tokio::test]
async fn secrets_appear_nowhere() -> Result<()> {
    let cluster = program::shared().await?;
    let good = Shoot::new(cluster, "secrecy").await?;
    let _machines = good.fake_machines(cluster, Duration::ZERO).await?;
    good.create(|_| {}).await?;
    good.succeeded().await?;
    // Verify that the user data was actually used, so it could have leaked.
    let secret = good.list(Kind::ClassSecret).await?.pop().unwrap_or_default();
    let script = format!("#!/bin/bash\necho {}\n", SECRETS[0]);
    ensure!(secret["data"]["userData"] == json!(ByteString(script.into_bytes())), "the user data is not in its secret");

    // Errors are the most likely leaks: credentials without a key, and user data with another key.
    let [no_key, other_key] = [Shoot::new(cluster, "no-key").await?, Shoot::new(cluster, "other-key").await?];
    no_key
        .create(|documents| {
            let credentials = documents.of_kind("Secret")["stringData"].as_object_mut().expect("it has data");
            credentials.remove("clientID").expect("it has the key");
        })
        .await?;
    other_key
        .create(|documents| {
            for pool in documents.of_kind("Worker")["spec"]["pools"].as_array_mut().expect("pools are a list") {
                pool["userDataSecretRef"]["key"] = json!("absent");
            }
        })
        .await?;
    // The error for a client that gets no token contains the authority's message.
    let refused = Shoot::new(cluster, "refused").await?;
    program::azure()?.refuse_client(&refused.namespace, 7_000_215, "Invalid client secret provided.");
    refused
        .create(|documents| {
            super::scale_sets::without_zones(documents, &refused.namespace);
            documents.of_kind("Secret")["stringData"]["clientID"] = json!(refused.namespace);
        })
        .await?;
    refused.fails(|worker| ensure_reports(&worker["status"]["lastError"]["description"], &["AADSTS7000215"])).await?;
    ensure!(
        program::azure()?.token_requests().iter().any(|requested| requested.reports(SECRETS[1])),
        "nobody showed the secret"
    );

    let ends = [
        good.worker().await?,
        no_key.fails(|_| Ok(())).await?,
        other_key.fails(|_| Ok(())).await?,
        refused.worker().await?,
    ];
    println!("{}\n{}", ends[1]["status"]["lastError"], ends[2]["status"]["lastError"]);

    for (worker, shoot) in ends.iter().zip([&good, &no_key, &other_key, &refused]) {
        ensure_no_secrets("the Worker", &worker.to_string())?;
        for event in shoot.list(Kind::Event).await? {
            ensure_no_secrets("an event", &event.to_string())?;
        }
        for deployment in shoot.list(Kind::MachineDeployment).await? {
            ensure_no_secrets("a machine deployment", &deployment.to_string())?;
        }
        for class in shoot.list(Kind::MachineClass).await? {
            ensure_no_secrets("a machine class", &class.to_string())?;
        }
    }
    eventually(SOON, "the log tells of all", async || {
        let log = program::log(cluster)?;
        ensure!(
            [&good, &no_key, &other_key, &refused].iter().all(|shoot| log.contains(&shoot.namespace)),
            "it does not"
        );
        Ok(())
    })
    .await?;
    ensure_no_secrets("the log", &program::log(cluster)?)
}
