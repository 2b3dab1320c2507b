//! Prerequisites of all machine operations: machine-controller-manager, Secrets, classes.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::facts::{Facts, MACHINE_CONTROLLER_MANAGER, ObjectKind};
use super::finding::{Finding, FindingKind, Severity};
use decisions::worker::request::decode::is_shoot_failed;

/// After a change of a machine, machine-controller-manager counts as running for this time.
const STILL_AT_WORK: SignedDuration = SignedDuration::from_mins(3);

/// The findings about missing prerequisites.
pub(super) fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = machine_controller_manager(facts).into_iter().collect();
    if facts.cluster.as_ref().is_some_and(is_shoot_failed) {
        let message = "Gardener has given up on the Shoot: nothing happens until you request another try";
        findings.push(FindingKind::ShootFailed.found("the Shoot", message));
    }
    if facts.is_known(ObjectKind::Cluster) && facts.cluster.is_none() {
        let message = "it does not exist, so nothing can be planned";
        let found = FindingKind::PoolInvalid.found(format!("Cluster {}", facts.namespace()), message);
        findings.push(found.next("Let gardenlet write it again: reconcile the Shoot."));
    }
    findings.extend(secrets(facts));
    findings.extend(classes(facts));
    findings
}

fn machine_controller_manager(facts: &Facts<'_>) -> Option<Finding> {
    let found = |message: &str| {
        FindingKind::MachineControllerManager.found(format!("Deployment {MACHINE_CONTROLLER_MANAGER}"), message)
    };
    let Some(deployment) = &facts.machine_controller_manager else {
        let has_machines = !facts.deployments.is_empty() && !facts.is_hibernated();
        let is_needed = has_machines || !facts.held.is_empty();
        let is_missing = facts.is_absent(ObjectKind::Deployment, MACHINE_CONTROLLER_MANAGER) && is_needed;
        return is_missing.then(|| {
            found("does not exist")
                .next("Let gardenlet deploy it: reconcile the Shoot. Nothing happens to machines before.")
        });
    };
    if deployment.replicas() == 0 {
        return scaled_to_zero(facts).map(|(message, step)| found(&message).next(step));
    }
    let mut conditions = deployment.status.conditions.iter();
    let unmet = conditions.find(|condition| {
        condition.condition_type == "Available" && condition.status != "True" && !condition.message.is_empty()
    });
    let detail = unmet.map(|condition| format!(": {}", condition.message)).unwrap_or_default();
    if deployment.status.available_replicas > 0 {
        return None;
    }
    // A status can be late or wrong. Machines that change show that it runs.
    if let Some(change) =
        facts.last_machine_change().filter(|change| facts.now.duration_since(*change) <= STILL_AT_WORK)
    {
        let message = format!("reports no available pod{detail}, although a machine changed at {change}");
        let step = "It works: nothing has to be done, unless machines stop changing.";
        return Some(Finding { severity: Severity::Note, ..found(&message).next(step) });
    }
    Some(found(&format!("has no available pod{detail}")))
}

/// What does not happen because machine-controller-manager is scaled to zero, and the next step; `None` if it has nothing to do.
fn scaled_to_zero(facts: &Facts<'_>) -> Option<(String, String)> {
    let waits_for_it = match &facts.held[..] {
        [] => "nothing happens to machines".to_owned(),
        [one] => format!("the finalizer of {one} waits for it"),
        [one, other] => format!("the finalizers of {one} and {other} wait for it"),
        [first, others @ ..] => format!("the finalizers of {first} and {} more objects wait for it", others.len()),
    };
    let message = format!("is scaled to zero: {waits_for_it}");
    if facts.is_hibernated() && !(facts.held.is_empty() && facts.machines.is_empty()) {
        let what = if facts.machines.is_empty() {
            "Scale it up, so that it removes its finalizers"
        } else {
            "Let it delete the machines that are left"
        };
        let step = format!(
            "{what}: kubectl -n {} scale deployment {MACHINE_CONTROLLER_MANAGER} --replicas=1. The next request to the Worker \
             stops it again. Or wake the shoot up.",
            facts.namespace()
        );
        return Some((message, step));
    }
    let has_something_to_do = !facts.held.is_empty() || !facts.deployments.is_empty();
    if facts.is_hibernated() || !has_something_to_do {
        return None;
    }
    let step = "See whether the API server of the shoot can be reached: dependency-watchdog scales machine-controller-manager to \
                zero while it can't.";
    Some((message, step.to_owned()))
}

/// Secrets by name only: values are not asked for.
fn secrets(facts: &Facts<'_>) -> Vec<Finding> {
    let is_absent = |name: &str| !name.is_empty() && facts.is_absent(ObjectKind::Secret, name);
    let mut findings = Vec::new();
    let reference = &facts.worker.spec.secret_ref;
    let [namespace, name] = [&reference.namespace, &reference.name].map(|text| text.as_deref().unwrap_or_default());
    if (namespace.is_empty() || namespace == facts.namespace()) && is_absent(name) {
        let found = FindingKind::SecretMissing
            .found(format!("Secret {name}"), "the Secret with the cloud credentials does not exist");
        findings.push(found.next("Put it back: without credentials no machine can be created or deleted."));
    }
    let mut user_data: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    // A Worker that is being deleted needs no boot scripts.
    let pools = if facts.is_being_deleted() { &[] } else { facts.worker.spec.pools.as_slice() };
    for pool in pools {
        if is_absent(&pool.user_data_secret_ref.name) {
            user_data.entry(&pool.user_data_secret_ref.name).or_default().push(&pool.name);
        }
    }
    findings.extend(user_data.into_iter().map(|(secret, pools)| {
        let message = format!("the Secret with the user data of pool {} does not exist", pools.join(", "));
        FindingKind::SecretMissing.found(format!("Secret {secret}"), message)
    }));
    findings
}

fn classes(facts: &Facts<'_>) -> Vec<Finding> {
    let mut used: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for machine in facts.machines.iter().filter(|machine| !machine.spec.class.name.is_empty()) {
        used.entry(&machine.spec.class.name).or_default().push(machine.name().to_owned());
    }
    let found = |(class, machines): (&str, Vec<String>)| {
        let missing = match [ObjectKind::MachineClass, ObjectKind::Secret].map(|kind| facts.is_absent(kind, class)) {
            [true, true] => "the class and its Secret do not exist",
            [true, false] => "the class does not exist",
            [false, true] => "the Secret of the class does not exist",
            [false, false] => return None,
        };
        let message = format!("{missing}, so its machines can't be created or deleted");
        Some(Finding { machines, ..FindingKind::ClassMissing.found(format!("MachineClass {class}"), message) })
    };
    used.into_iter().filter_map(found).collect()
}
