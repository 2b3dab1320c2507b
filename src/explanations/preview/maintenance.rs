//! The inputs of a Worker after the next maintenance window of its shoot (docs/versions.md).

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::finding::{Finding, FindingKind};
use super::inputs::{Document, Inputs};
use decisions::pool::hash::node_agent_secret_name;
use profiles::versions::catalog::VersionCatalog;
use profiles::versions::forecast::{Forecast, ForecastStep, Move, Stuck, next_window};
use profiles::versions::garden::{Garden, Validation};
use profiles::versions::maintenance::{MaintainedShoot, operations};
use wire::api::gardener::{NODE_AGENT_SECRET_LABEL, Shoot, VersionedPool, WorkerPool};
use wire::api::gotext::json::{DecodeError, decode_lenient, to_go_json};

/// Suffix of the node agent Secret's name if gardenlet will choose another name that can't be computed.
const NEXT: &str = "-next";
/// Operations for which gardenlet replaces the nodes of all pools that are not updated in place.
const ROTATIONS: [&str; 3] = ["rotate-credentials-start", "rotate-ca-start", "rotate-serviceaccount-key-start"];
/// Operations for which gardenlet replaces the nodes of the pools that they name.
const ROLLOUTS: [&str; 2] = ["rotate-rollout-workers=", "rollout-workers="];

/// The inputs after a window, and what the user should know about it.
#[derive(Clone, Debug)]
pub struct Maintained {
    /// The Worker and the Shoot with their new versions.
    pub inputs: Inputs,
    /// Versions that change, and versions that are stuck.
    pub findings: Vec<Finding>,
}

/// Why a window can't be computed.
#[derive(Debug, thiserror::Error)]
pub enum NoMaintenance {
    /// There is no Shoot, or no CloudProfile.
    #[error("its Cluster has no {0}, which decides over maintenance")]
    Missing(&'static str),
    /// The Shoot or the CloudProfile can't be decoded.
    #[error("{0}: {1}")]
    Unreadable(&'static str, DecodeError),
}

/// Computes the inputs after the first window that begins at `now` or later.
///
/// gardenlet changes the name of the node agent Secret if nodes are replaced. If today's name can be computed, so can
/// the new one. Otherwise it gets a placeholder, so that the predicted rolls are right, but not the names of classes.
///
/// # Errors
/// If the Cluster lacks the Shoot or the CloudProfile, or one of them can't be decoded.
pub fn after_next_window(inputs: &Inputs, now: Timestamp) -> Result<Maintained, NoMaintenance> {
    let shoot = inputs.shoot.as_ref().ok_or(NoMaintenance::Missing("Shoot"))?;
    let profile = inputs.cloud_profile.as_ref().ok_or(NoMaintenance::Missing("CloudProfile"))?;
    let spec = profile.complete().map_err(|error| NoMaintenance::Unreadable("CloudProfile", error))?;
    let state = MaintainedShoot::read(&shoot.value, true);
    let state = state.map_err(|error| NoMaintenance::Unreadable("Shoot", error))?;
    let catalog = VersionCatalog::new(profile.name(), spec);
    let garden = Garden { validation: Validation::WithProfile, ..Garden::default() };
    let (forecast, after) = next_window(&state, &catalog, &garden, now);
    let mut new_shoot = shoot.value.clone();
    let mut worker = inputs.worker.value.clone();
    for step in &forecast.steps {
        after.write(state.settings.as_ref(), &mut new_shoot);
        write_versions(step, &state, &mut worker);
    }
    let pools = &state.shoot.spec.provider.workers;
    rename_secrets(&forecast, pools, [&shoot.value, &new_shoot], &inputs.worker.value, &mut worker);
    let findings = findings(&forecast);
    let is_quiet = forecast.steps.is_empty();
    let inputs = match is_quiet {
        true => inputs.clone(),
        false => Inputs {
            worker: Arc::new(Document::new(worker)),
            shoot: Some(Arc::new(Document::new(new_shoot))),
            made_from_shoot: inputs.made_from_shoot.as_ref().map(|source| Arc::new(source.by_maintenance())),
            ..inputs.clone()
        },
    };
    Ok(Maintained { inputs, findings })
}

/// Writes the new versions into the Worker, as gardenlet does.
fn write_versions(step: &ForecastStep, state: &MaintainedShoot, worker: &mut Value) {
    let pools = worker.pointer_mut("/spec/pools").and_then(Value::as_array_mut);
    for pool in pools.into_iter().flatten() {
        let name = pool["name"].as_str().unwrap_or_default().to_owned();
        let mut workers = state.shoot.spec.provider.workers.iter();
        let Some(of_shoot) = workers.find(|pool| pool.name == name) else { continue };
        let has_own_version = of_shoot.kubernetes.version.is_some();
        for moved in &step.moves {
            let is_its = moved.pool.as_ref().map_or(!has_own_version, |pool| *pool == name);
            match &moved.image {
                Some(_) if is_its => pool["machineImage"]["version"] = moved.to.as_str().into(),
                None if is_its => pool["kubernetesVersion"] = moved.to.as_str().into(),
                _ => {}
            }
        }
    }
}

/// Renames the node agent Secret of each pool that rolls. `shoots` are the Shoot before and after the window.
fn rename_secrets(
    forecast: &Forecast,
    pools_of_shoot: &[VersionedPool],
    shoots: [&Value; 2],
    before: &Value,
    worker: &mut Value,
) {
    let [old_shoot, new_shoot] = shoots.map(|shoot| decode_lenient::<Shoot>(&to_go_json(shoot)).ok());
    let name_by = |pool: &Value, shoot: Option<&Shoot>| {
        let pool: WorkerPool = decode_lenient(&to_go_json(pool)).ok()?;
        node_agent_secret_name(&pool, shoot?).ok()
    };
    let pools = |worker| Some(Value::pointer(worker, "/spec/pools")?.as_array()?.as_slice());
    let pools_before = pools(before).unwrap_or_default();
    let pools = worker.pointer_mut("/spec/pools").and_then(Value::as_array_mut);
    for (pool, before) in pools.into_iter().flatten().zip(pools_before) {
        let mut of_shoot = pools_of_shoot.iter().filter(|of_shoot| pool["name"] == of_shoot.name.as_str());
        let Some(of_shoot) = of_shoot.next().filter(|of_shoot| !of_shoot.is_updated_in_place()) else { continue };
        let Some(name) = pool["nodeAgentSecretName"].as_str() else { continue };
        let rolls = |step: &ForecastStep| step.touches(of_shoot) || is_rolled_by_operation(&of_shoot.name, step);
        if !forecast.steps.iter().any(rolls) {
            continue;
        }
        let is_known = name_by(before, old_shoot.as_ref()).as_deref() == Some(name);
        let next = if is_known { name_by(pool, new_shoot.as_ref()) } else { None };
        // A computed name that stays the same is wrong: it lacks what the operation adds.
        let next = next.filter(|next| next != name);
        let next = Value::from(next.unwrap_or_else(|| format!("{name}{NEXT}")));
        if let Some(label) = pool.get_mut("labels").and_then(|labels| labels.get_mut(NODE_AGENT_SECRET_LABEL)) {
            label.clone_from(&next);
        }
        pool["nodeAgentSecretName"] = next;
    }
}

/// Whether a maintenance operation makes gardenlet replace the nodes of a pool that is not updated in place.
fn is_rolled_by_operation(name: &str, step: &ForecastStep) -> bool {
    let rolls = |operation: &str| {
        let named = ROLLOUTS.iter().find_map(|rollout| operation.strip_prefix(rollout));
        ROTATIONS.contains(&operation)
            || named.is_some_and(|pools| pools.split(',').any(|pool| pool == "*" || pool == name))
    };
    step.operation.as_deref().is_some_and(|operation| operations(operation).any(rolls))
}

fn findings(forecast: &Forecast) -> Vec<Finding> {
    let day = |step: &ForecastStep| step.time.to_zoned(forecast.window.time_zone()).strftime("%F %R %:z").to_string();
    let mut findings = Vec::new();
    for step in &forecast.steps {
        let moves = step.moves.iter().map(|moved| moved_text(moved, &day(step)));
        findings.extend(moves.map(|(pool, text)| Finding::of_pool(FindingKind::Maintenance, pool, text)));
        let operations = step.operations.iter().map(|text| format!("in the window of {}: {text}", day(step)));
        findings.extend(operations.map(|text| Finding::of_pool(FindingKind::Maintenance, "", text)));
    }
    findings.extend(forecast.stuck.iter().map(|stuck| {
        let (pool, text) = stuck_text(stuck);
        Finding::of_pool(FindingKind::MaintenanceStuck, pool, text)
    }));
    findings.extend(forecast.findings.iter().map(|text| Finding::of_pool(FindingKind::Maintenance, "", text.clone())));
    findings
}

fn moved_text<'m>(moved: &'m Move, day: &str) -> (&'m str, String) {
    let what = moved.image.as_deref().unwrap_or("Kubernetes");
    let Move { from, to, cause, .. } = moved;
    let text = format!("in the window of {day} {what} goes from {from} to {to} ({})", cause.text());
    (moved.pool.as_deref().unwrap_or_default(), text)
}

fn stuck_text(stuck: &Stuck) -> (&str, String) {
    let Stuck { version, why, remedy, .. } = stuck;
    let what = match (&stuck.image, version.is_empty()) {
        (_, true) => String::new(),
        (Some(image), _) => format!(" at {image} {version}"),
        (None, _) => format!(" at Kubernetes {version}"),
    };
    (stuck.pool.as_deref().unwrap_or_default(), format!("stuck{what}: {why}. {remedy}"))
}
