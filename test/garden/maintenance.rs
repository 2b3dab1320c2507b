//! Gardener's own maintenance controller changes Shoots, day by day, and the result is compared with our forecast.
//!
//! `HISTORIES=10000 cargo test --test garden -- maintenance` runs 10,000 random histories.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, ensure};
use gardener_extension_worker::api::gardener::ProfileSpec;
use gardener_extension_worker::versions::catalog::VersionCatalog;
use gardener_extension_worker::versions::garden::Garden;
use gardener_extension_worker::versions::history::History;
use gardener_extension_worker::versions::maintenance::MaintainedShoot;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use test_support::cluster::GardenerPart;

use crate::stage::number_of;
use crate::version_worlds::{END, moment, profile, shoot};

/// A Shoot and a CloudProfile as stored by an API server.
fn world(profile: &Value, shoot: &Value) -> [Value; 2] {
    let mut shoot = shoot.clone();
    shoot["apiVersion"] = "core.gardener.cloud/v1beta1".into();
    shoot["kind"] = "Shoot".into();
    shoot["spec"]["cloudProfile"] = json!({"kind": "CloudProfile", "name": "p"});
    for pool in shoot["spec"]["provider"]["workers"].as_array_mut().into_iter().flatten() {
        pool["machine"]["architecture"] = "amd64".into();
    }
    shoot["metadata"]["annotations"] = json!({"gardener.cloud/created-by": "owner"});
    if shoot["spec"]["maintenance"]["timeWindow"].is_null() {
        // The API server would choose a random window. Like a missing window, an unreadable one is the whole day.
        shoot["spec"]["maintenance"]["timeWindow"] = json!({"begin": "any", "end": "any"});
    }
    let mut profile = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "p"}, "spec": profile,
    });
    // An API server accepts neither an unreadable constraint nor an unreadable version; the controller would crash.
    for version in profile["spec"]["machineImages"][0]["versions"].as_array_mut().into_iter().flatten() {
        if version["kubeletVersionConstraint"] == "?" {
            version["kubeletVersionConstraint"] = Value::Null;
        }
        if version["version"] == "latest" {
            version["version"] = "2.3.0".into();
        }
    }
    [profile, shoot]
}

/// The compared fields of a Shoot: versions, and the result of its last maintenance.
fn state(history: &History<'_>) -> Value {
    let spec = &history.state.shoot.spec;
    let pools = spec.provider.workers.iter().map(|pool| {
        let image = pool.machine.image.as_ref().map(|image| image.version.clone());
        json!({"kubernetes": pool.kubernetes.version, "image": image})
    });
    json!({"kubernetes": spec.kubernetes.version, "pools": pools.collect::<Vec<_>>()})
}

/// The same fields of Gardener's response.
fn responded(state: &Value) -> Value {
    json!({"kubernetes": state["kubernetes"], "pools": state["pools"].as_array().cloned().unwrap_or_default()})
}

/// The times at which the controller runs, and our state of the Shoot after each: whenever something happens, the day
/// after, and on some other days.
struct Expected {
    times: Vec<Timestamp>,
    states: Vec<Value>,
    crashes: bool,
}

fn expected(profile: &Value, shoot: &Value, days: &[i64]) -> Result<Expected> {
    let spec: ProfileSpec = serde_json::from_str(&profile["spec"].to_string())?;
    let catalog = VersionCatalog::new("p", &spec);
    let start = || -> Result<History<'_>> {
        let state = MaintainedShoot::read(shoot, true).map_err(|error| anyhow!("{error}"))?;
        Ok(History::start(state, &catalog, Garden::default(), SignedDuration::from_secs(1), moment(0)))
    };
    let mut whole = start()?;
    whole.advance(moment(END));
    let crashes = whole.steps.iter().any(|step| step.run.crash.is_some());
    // Uses the next wake-up instead of one day after the start. Within a window, that would add a run.
    let next_run = |after: Timestamp| {
        let [wake_up, _] = whole.window().wake_up(after);
        wake_up + SignedDuration::from_secs(1)
    };
    let mut times: BTreeSet<Timestamp> = days.iter().map(|day| next_run(moment(*day))).collect();
    times.insert(moment(0));
    times.extend(whole.steps.iter().flat_map(|step| [step.time, next_run(step.time)]));
    let times: Vec<Timestamp> = times.into_iter().filter(|time| *time < moment(END)).collect();
    let mut history = start()?;
    let mut states = Vec::new();
    for time in &times {
        history.advance(*time + SignedDuration::from_nanos(1));
        states.push(state(&history));
    }
    Ok(Expected { times, states, crashes })
}

/// The difference in one history, if there is one.
async fn difference(part: &mut GardenerPart, profile: &Value, shoot: &Value, days: &[i64]) -> Result<Option<String>> {
    let [profile, shoot] = world(profile, shoot);
    let Expected { times, states, crashes } = expected(&profile, &shoot, days)?;
    let times_of_day: Vec<String> = times.iter().map(Timestamp::to_string).collect();
    let response = part.request(&json!({"cloudProfile": profile, "shoot": shoot, "times": times_of_day})).await?;
    let Some(responses) = response.as_array() else {
        return Ok((!crashes).then(|| format!("Gardener: {response}; {profile}; {shoot}")));
    };
    let mut differing =
        times.iter().zip(&states).zip(responses).filter(|((_, ours), theirs)| **ours != responded(theirs));
    Ok(differing
        .next()
        .map(|((time, ours), theirs)| format!("{time}\nours: {ours}\nGardener: {theirs}\n{profile}\n{shoot}")))
}

#[tokio::test]
async fn a_forecast_is_what_gardener_s_controller_does() -> Result<()> {
    let mut part = GardenerPart::start::<&str>("maintenance", &[]).await?;
    let strategy = (profile(), shoot(), prop::collection::vec(1..END, 4));
    let mut runner = TestRunner::deterministic();
    let mut different = Vec::new();
    let number = number_of("HISTORIES", 200)?;
    for history in 1..=number {
        let (profile, shoot, days) = strategy.new_tree(&mut runner).map_err(|reason| anyhow!("{reason}"))?.current();
        if let Some(difference) = difference(&mut part, &profile, &shoot, &days).await? {
            eprintln!("history {history}: {difference}\n");
            different.push(history);
        }
        if history % 1000 == 0 {
            eprintln!("{history} histories, {} of them differ", different.len());
        }
    }
    ensure!(different.is_empty(), "{} of {number} histories differ: {different:?}", different.len());
    Ok(())
}
