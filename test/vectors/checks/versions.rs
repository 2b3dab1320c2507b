//! Tables about maintenance of versions.

use std::collections::BTreeMap;

use gardener_extension_worker::api::gardener::{
    CapabilityDefinition, ExpirableVersion, ProfileImage, ProfileMachineType, ProfileSpec, TimeWindow, VersionedPool,
};
use gardener_extension_worker::api::gotext::version::Version;
use gardener_extension_worker::versions::candidates::FittingVersions;
use gardener_extension_worker::versions::catalog::{ListedVersion, VersionCatalog};
use gardener_extension_worker::versions::garden::Garden;
use gardener_extension_worker::versions::history::History;
use gardener_extension_worker::versions::maintenance::MaintainedShoot;
use gardener_extension_worker::versions::run::Update;
use gardener_extension_worker::versions::target::{Candidate, Reach, automatic, consecutive_minor, next_higher};
use gardener_extension_worker::versions::window::EffectiveWindow;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{Check, from_text, member, without_nulls};

pub(super) fn for_table(name: &str) -> Option<Check> {
    Some(Check::Compare(match name {
        "maintenance-filter" => filter,
        "maintenance-helpers" => helpers,
        "maintenance-images" => images,
        "maintenance-kubernetes" => kubernetes,
        "maintenance-reconcile" => reconcile,
        "maintenance-transition" => transition,
        "maintenance-window" => window,
        _ => return None,
    }))
}

type Outcome = Result<(), (Value, String)>;

fn same(expected: &Value, got: &Value) -> Outcome {
    let (plain, found) = (without_nulls(expected), without_nulls(got));
    if plain == found { Ok(()) } else { Err((expected.clone(), found.to_string())) }
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 56 + 22)
}

fn decoded<T: serde::de::DeserializeOwned + Default>(case: &Value, name: &str) -> Result<T, (Value, String)> {
    member(case, name).map_err(|error| (case.clone(), error))
}

fn helpers(case: &Value) -> Outcome {
    let versions: Vec<ExpirableVersion> = decoded(case, "versions")?;
    let listed: Vec<ListedVersion<'_>> = versions.iter().map(ListedVersion::from).collect();
    let candidates: Vec<Candidate<'_>> =
        listed.iter().map(|listed| Candidate { listed, stage: listed.at(now()) }).collect();
    let current = Version::parse(case["current"].as_str().unwrap_or_default());
    for (function, expected) in case["results"].as_object().into_iter().flatten() {
        let found = current.clone().map_err(|error| error.to_string()).and_then(|current| {
            let found = match function.as_str() {
                "GetLatestVersionForPatchAutoUpdate" => automatic(Reach::Patch, &candidates, &current),
                "GetLatestVersionForMinorAutoUpdate" => automatic(Reach::Minor, &candidates, &current),
                "GetOverallLatestVersionForAutoUpdate" => automatic(Reach::Major, &candidates, &current),
                "GetVersionForForcefulUpdateToConsecutiveMinor" => consecutive_minor(&candidates, &current),
                "GetVersionForForcefulUpdateToNextHigherMinor" => next_higher(&candidates, &current, Reach::Minor),
                _ => next_higher(&candidates, &current, Reach::Major),
            };
            found.map_err(|error| error.to_string())
        });
        // An error is expected if Gardener panics.
        let is_wrong = expected.get("error").or(expected.get("panic")).is_some();
        let got = match found {
            Err(_) if is_wrong => continue,
            Err(error) => json!({"error": error}),
            Ok(found) => json!({"found": found.is_some(), "version": found.unwrap_or_default()}),
        };
        same(expected, &got).map_err(|(expected, got)| (json!({function: expected}), got))?;
    }
    Ok(())
}

fn filter(case: &Value) -> Outcome {
    let (worker, machine_type) = (&case["worker"], &case["machineType"]);
    let definitions: Vec<CapabilityDefinition> = decoded(case, "machineCapabilities")?;
    let spec = ProfileSpec {
        machine_images: vec![decoded::<ProfileImage>(case, "machineImage")?],
        machine_types: vec![decoded::<ProfileMachineType>(case, "machineType")?],
        machine_capabilities: definitions,
        ..ProfileSpec::default()
    };
    let catalog = VersionCatalog::new("profile", &spec);
    let pool: VersionedPool = decoded(
        &json!({"pool": {
            "name": "w", "cri": worker["cri"], "updateStrategy": worker["updateStrategy"],
            "machine": {"type": machine_type["name"], "architecture": worker["architecture"],
                "image": {"name": case["machineImage"]["name"], "version": worker["imageVersion"]}},
        }}),
        "pool",
    )?;
    let kubelet = Version::parse(case["kubeletVersion"].as_str().unwrap_or_default());
    let (fitting, kubelet) = match (FittingVersions::new(&catalog, &pool), kubelet) {
        (Ok(fitting), Ok(kubelet)) => (fitting, kubelet),
        other => return Err((case["expected"].clone(), format!("{:?}", other.0.err()))),
    };
    let in_place_from = pool.is_updated_in_place().then(|| worker["imageVersion"].as_str().unwrap_or_default());
    let versions: Vec<&str> = fitting.at(&kubelet, in_place_from).map(|version| version.listed.text).collect();
    same(&case["expected"], &json!({"versions": versions}))
}

/// Runs maintenance at once, for a Shoot that requests it.
fn maintained(shoot: &Value, profile: &Value, now: Timestamp, name: &str) -> Result<Value, (Value, String)> {
    let wrong = |error: String| (shoot.clone(), error);
    let spec: ProfileSpec = from_text(&json!({"spec": profile}), "spec").map_err(wrong)?;
    let catalog = VersionCatalog::new(name, &spec);
    let state = MaintainedShoot::read(shoot, false).map_err(|error| wrong(error.to_string()))?;
    let history = History::start(state, &catalog, Garden::default(), SignedDuration::ZERO, now);
    let run = history.steps.last().map(|step| step.run.clone()).unwrap_or_default();
    let result = |update: &Update| {
        let is_updated = update.to.is_ok();
        json!({"description": update.description(), "reason": update.reason(), "successful": is_updated})
    };
    let error = run.control_plane.as_ref().and_then(|update| update.to.as_ref().err());
    Ok(json!({
        "acted": history.runs > 0,
        "panic": run.crash,
        "controlPlane": run.control_plane.as_ref().map(result),
        "controlPlaneError": error.map(ToString::to_string),
        "images": run.images.iter().map(|(pool, update)| (pool.clone(), result(update))).collect::<Map<_, _>>(),
        "operation": run.operation,
        "events": run.events(),
        "parts": run.last_maintenance.as_ref().map(|last| {
            let parts = [vec![format!("{} {}", last.summary, last.parts[0])], last.parts[1..].to_vec()];
            let mut parts = parts.concat();
            parts.sort();
            parts
        }),
        "failureReason": run.last_maintenance.as_ref().map(|last| last.failure_reasons.join(", ")),
        "state": run.last_maintenance.as_ref().map(|last| last.state),
        "annotations": history.state.shoot.metadata.annotations,
        "kubernetesVersion": history.state.shoot.spec.kubernetes.version,
        "workers": history.state.shoot.spec.provider.workers.iter().map(|pool| {
            let image = pool.machine.image.clone().unwrap_or_default();
            json!({"name": pool.name, "image": image.name, "imageVersion": image.version,
                "kubernetesVersion": pool.kubernetes.version})
        }).collect::<Vec<_>>(),
    }))
}

fn shoot(auto_kubernetes: bool, auto_image: bool, version: &str, workers: &Value) -> Value {
    json!({
        "metadata": {"annotations": {"gardener.cloud/operation": "maintain"}},
        "spec": {
            "kubernetes": {"version": version},
            "maintenance": {"autoUpdate": {"kubernetesVersion": auto_kubernetes, "machineImageVersion": auto_image}},
            "provider": {"workers": workers},
        },
        "status": {"lastOperation": {"state": "Succeeded"}},
    })
}

fn kubernetes(case: &Value) -> Outcome {
    let current = case["current"].as_str().unwrap_or_default();
    let shoot = shoot(case["autoUpdate"] == true, false, current, &json!([]));
    let got = maintained(&shoot, &json!({"kubernetes": {"versions": case["versions"]}}), now(), "profile")?;
    let version = got["kubernetesVersion"].as_str().filter(|version| *version != current).unwrap_or_default();
    let got = json!({"newVersion": version, "result": got["controlPlane"], "error": got["controlPlaneError"]});
    let expected = &case["expected"];
    if expected["error"].is_string() && expected["result"].is_null() {
        // If a version is unreadable, Gardener only logs a line.
        return same(&expected["result"], &got["result"]);
    }
    same(expected, &got)
}

fn images(case: &Value) -> Outcome {
    let machine = json!({"type": "t", "architecture": "amd64", "image": {"name": "os", "version": case["current"]}});
    let shoot = shoot(false, case["autoUpdate"] == true, "1.33.0", &json!([{"name": "w", "machine": machine}]));
    let mut versions = case["versions"].clone();
    for version in versions.as_array_mut().into_iter().flatten() {
        version["architectures"] = json!(["amd64"]);
        version["cri"] = json!([{"name": "containerd"}]);
    }
    let profile = json!({
        "kubernetes": {"versions": [{"version": "1.33.0"}]}, "machineTypes": [{"name": "t"}],
        "machineImages": [{"name": "os", "versions": versions, "updateStrategy": case["updateStrategy"]}],
    });
    let got = maintained(&shoot, &profile, now(), "profile")?;
    if case["expected"]["panic"].is_string() {
        return same(&case["expected"]["panic"], &got["panic"]);
    }
    let versions: BTreeMap<&str, &Value> =
        got["workers"].as_array().into_iter().flatten().map(|worker| ("w", &worker["imageVersion"])).collect();
    same(&case["expected"], &json!({"results": got["images"], "workerImageVersions": versions}))
}

fn reconcile(case: &Value) -> Outcome {
    let at: Timestamp = case["now"].as_str().unwrap_or_default().parse().unwrap_or_else(|_| now());
    let got = maintained(&case["shoot"], &case["cloudProfileSpec"], at, "cp")?;
    let expected = &case["expected"];
    if expected["panic"].is_string() {
        return same(&expected["panic"], &got["panic"]);
    }
    let mut annotations = got["annotations"].clone();
    if got["acted"] == true {
        annotations["shoot.gardener.cloud/tasks"] =
            "deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress".into();
        let state = &case["shoot"]["status"]["lastOperation"]["state"];
        let plain = if state.is_string() && state != "Failed" { json!("reconcile") } else { Value::Null };
        annotations["gardener.cloud/operation"] =
            if got["operation"].is_string() { got["operation"].clone() } else { plain };
    }
    let reason = got["failureReason"].as_str().filter(|reason| !reason.is_empty());
    let last = json!({"descriptionParts": got["parts"], "failureReason": reason, "state": got["state"]});
    let got = json!({
        "annotations": annotations, "eventsSorted": got["events"], "kubernetesVersion": got["kubernetesVersion"],
        "lastMaintenance": got["state"].is_string().then_some(last), "workers": got["workers"],
    });
    same(expected, &got)
}

fn transition(case: &Value) -> Outcome {
    let spec: ProfileSpec = from_text(&json!({"spec": case}), "spec").map_err(|error| (case.clone(), error))?;
    let catalog = VersionCatalog::new("profile", &spec);
    let now: Timestamp = case["now"].as_str().unwrap_or_default().parse().unwrap_or_else(|_| now());
    let of_images = catalog.images.iter().flat_map(|image| &image.versions).map(|version| &version.listed);
    let listed = catalog.kubernetes.iter().chain(of_images);
    let next = listed.filter_map(|listed| listed.next_change(now + SignedDuration::from_nanos(1))).min();
    let seconds = next.map_or(0, |next| now.duration_until(next).as_secs());
    same(&case["seconds"], &seconds.into())
}

fn window(case: &Value) -> Outcome {
    let text = |name: &str| case[name].as_str().unwrap_or_default().to_owned();
    let window = EffectiveWindow::of(Some(&TimeWindow { begin: text("begin"), end: text("end") }));
    let [begin, end] = window.times();
    same(&case["effective"], &format!("begin={begin}, end={end}").into())?;
    same(&case["effectiveDurationSeconds"], &window.length().as_secs().into())?;
    let moments = case["contains"].as_object().into_iter().flatten().map(|(moment, _)| {
        let at: Timestamp = moment.parse().unwrap_or_else(|_| now());
        (moment.clone(), window.contains(at).into())
    });
    same(&case["contains"], &Value::Object(moments.collect()))
}
