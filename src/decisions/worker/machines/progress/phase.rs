//! State of one deployment, from the deployment, its machine sets and its machines only.

use crate::provider::TargetDeployment;
use crate::worker::machines::live_machine::{LiveMachine, LiveMachineSet};
use crate::worker::machines::machine_objects::LiveDeployment;
use crate::worker::machines::progress::DeploymentProgress;
use crate::worker::machines::progress::Hibernation;
use crate::worker::machines::progress::Phase;
use wire::api::machine::MachineDeployment;

/// Finalizer of machine-controller-manager on deployments that it manages.
const MCM_FINALIZER: &str = "machine.sapcloud.io/machine-controller-manager";

/// Objects that belong to a deployment.
pub(super) struct Owned<'a> {
    pub(super) sets: &'a [&'a LiveMachineSet],
    pub(super) machines: &'a [&'a LiveMachine],
}

/// Old machines of a pool with manual in-place updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ByHand {
    /// Machines of old machine sets, which need no update yet.
    old: i32,
    /// Those that a user has selected.
    selected: i32,
}

/// Computes progress; `Unobserved` if the MachineDeployment does not exist yet.
pub(super) fn evaluate(
    target: &TargetDeployment,
    live: Option<&LiveDeployment>,
    owned: &Owned<'_>,
    hibernation: Hibernation,
) -> DeploymentProgress {
    let absent = MachineDeployment::default();
    let object = live.map_or(&absent, |live| &live.object);
    let status = &object.status;
    let by_hand = by_hand(target, owned);
    let phase = live.map_or(Phase::Unobserved, |live| phase(target, live, owned, by_hand, hibernation));
    // During hibernation, only a change that is not observed yet is waited for.
    let is_waited_for =
        !hibernation.is_required() || hibernation == Hibernation::InProgress && phase == Phase::Unobserved;
    let since = if is_waited_for && is_untaken(target, object, owned) {
        live.and_then(LiveDeployment::class_changed)
    } else {
        None
    };
    DeploymentProgress {
        pool: target.pool_name.clone(),
        deployment: target.name.0.clone(),
        is_healthy: fault(object).is_none(),
        rolls: live.is_some_and(LiveDeployment::has_had_another_class)
            || owned.sets.iter().any(|set| !is_of_class(set, target)),
        desired: object.spec.replicas,
        present: status.replicas.max(left(owned, hibernation)),
        // Until the change is observed, the status counts machines of the previous template.
        updated: if phase == Phase::Unobserved { 0 } else { status.updated_replicas },
        available: status.available_replicas,
        unavailable: status.unavailable_replicas,
        preserved: status.preserved_failed_replicas,
        unselected: (by_hand.old - by_hand.selected).max(0),
        selected: by_hand.selected,
        untaken_since: since,
        phase,
    }
}

fn phase(
    target: &TargetDeployment,
    deployment: &LiveDeployment,
    owned: &Owned<'_>,
    by_hand: ByHand,
    hibernation: Hibernation,
) -> Phase {
    let live = &deployment.object;
    let status = &live.status;
    let is_observed = status.observed_generation >= live.metadata.generation.unwrap_or_default();
    // A stopped machine-controller-manager observes no change and clears no failure. A running one may still create
    // machines until it has observed the change; then its count is correct, except for machines being deleted.
    let is_empty = status.replicas == 0 && left(owned, hibernation) == 0;
    if is_empty && (hibernation == Hibernation::Done || hibernation == Hibernation::InProgress && is_observed) {
        return Phase::Ready;
    }
    // Status of an older generation, including failed machines, does not apply to the current specification.
    if !is_observed {
        return Phase::Unobserved;
    }
    if !deployment.failed_machines.is_empty() {
        return Phase::Failed(deployment.failed_machines.clone());
    }
    if hibernation.is_required() {
        return Phase::Pending;
    }
    if !has_target_set(target, owned) {
        return Phase::WithoutMachineSet;
    }
    let is_complete = status.unavailable_replicas <= status.preserved_failed_replicas.max(0)
        && status.updated_replicas + by_hand.old == status.replicas
        // Surplus machines are being deleted; their drain is not waited for.
        && status.replicas >= live.spec.replicas
        && by_hand.selected == 0;
    if is_complete && fault(live).is_none() { Phase::Ready } else { Phase::Pending }
}

fn is_of_class(set: &LiveMachineSet, target: &TargetDeployment) -> bool {
    *set.member.class == *target.class_name.0
}

fn has_target_set(target: &TargetDeployment, owned: &Owned<'_>) -> bool {
    owned.sets.iter().any(|set| is_of_class(set, target))
}

/// Whether machine-controller-manager should have created a machine set and has not. It ignores paused and frozen
/// deployments, and a deployment without its finalizer may not be visible to it yet.
fn is_untaken(target: &TargetDeployment, live: &MachineDeployment, owned: &Owned<'_>) -> bool {
    let is_taken = live.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == MCM_FINALIZER);
    let is_frozen = condition(live, "Frozen").is_some_and(|status| status == "True");
    is_taken && !live.spec.paused && !is_frozen && !has_target_set(target, owned)
}

/// Only pools with manual in-place updates may keep old machines.
fn by_hand(target: &TargetDeployment, owned: &Owned<'_>) -> ByHand {
    if !target.strategy.is_manual_in_place() {
        return ByHand::default();
    }
    let old: Vec<&&LiveMachineSet> = owned.sets.iter().filter(|set| !is_of_class(set, target)).collect();
    let is_of_old_set = |machine: &&&LiveMachine| old.iter().any(|set| machine.member.is_owned_by(&set.member.name));
    let selected = owned.machines.iter().filter(|machine| machine.is_selected).filter(is_of_old_set).count();
    ByHand { old: old.iter().map(|set| set.replicas).sum(), selected: i32::try_from(selected).unwrap_or(i32::MAX) }
}

/// Machines that a hibernation waits for, regardless of the counts in the status. These omit machines of deleted
/// machine sets, which a stopped machine-controller-manager would never delete.
fn left(owned: &Owned<'_>, hibernation: Hibernation) -> i32 {
    let is_left = |machine: &&&LiveMachine| match hibernation {
        Hibernation::NotRequested => false,
        Hibernation::InProgress => machine.is_being_deleted,
        Hibernation::Done => true,
    };
    i32::try_from(owned.machines.iter().filter(is_left).count()).unwrap_or(i32::MAX)
}

/// Fault of a deployment reported by machine-controller-manager: generation and conditions, not machines.
#[must_use]
pub fn fault(deployment: &MachineDeployment) -> Option<String> {
    let seen = deployment.status.observed_generation;
    let generation = deployment.metadata.generation.unwrap_or_default();
    if seen < generation {
        return Some(format!("generation {generation} has not been observed yet, only {seen}"));
    }
    // A pool that waits for a user makes no progress, which is no fault.
    let waits_for_person = deployment.spec.strategy.as_ref().is_some_and(|strategy| strategy.is_manual_in_place())
        && deployment.status.updated_replicas != deployment.status.replicas;
    let wrong = |name: &str, status: &str| match condition(deployment, name) {
        Some(found) if found == status => None,
        Some(_) => Some(reported(deployment, name)),
        None => None,
    };
    if condition(deployment, "Available").is_none() {
        return Some("condition Available is missing".to_owned());
    }
    wrong("Available", "True")
        .or_else(|| if waits_for_person { None } else { wrong("Progressing", "True") })
        .or_else(|| wrong("ReplicaFailure", "False"))
        .or_else(|| wrong("Frozen", "False"))
}

fn condition<'a>(deployment: &'a MachineDeployment, name: &str) -> Option<&'a str> {
    let conditions = &deployment.status.conditions;
    conditions.iter().find(|condition| condition.condition_type == name).map(|condition| condition.status.as_str())
}

fn reported(deployment: &MachineDeployment, name: &str) -> String {
    let found = deployment.status.conditions.iter().find(|condition| condition.condition_type == name);
    found.map_or_else(String::new, |condition| {
        format!("{name} is {}: {} ({})", condition.status, condition.message.trim_end_matches('.'), condition.reason)
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    use serde_json::{Value, json};

    use super::*;
    use crate::pool::strategy::deployment_strategy;
    use crate::provider::test_support::target_deployment;
    use wire::api::gardener::UpdateStrategy;

    fn healthy() -> Value {
        json!({
            "metadata": {"name": "shoot--p--s-a-z1", "generation": 2},
            "spec": {"replicas": 2},
            "status": {
                "observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
                "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"}],
            },
        })
    }

    /// The healthy deployment with changed fields.
    fn with<const N: usize>(changes: [(&str, Value); N]) -> Value {
        let mut document = healthy();
        for (pointer, value) in changes {
            let (parent, member) = pointer.rsplit_once('/').unwrap();
            document.pointer_mut(parent).unwrap()[member] = value;
        }
        document
    }

    fn set(name: &str, class: &str, replicas: i32) -> LiveMachineSet {
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"template": {"spec": {"class": {"name": class}}}},
            "status": {"replicas": replicas},
        }))
        .unwrap()
    }

    fn machine(set: &str, reason: Option<&str>) -> LiveMachine {
        let conditions: Vec<Value> =
            reason.iter().map(|reason| json!({"type": "InPlaceUpdate", "status": "True", "reason": reason})).collect();
        serde_json::from_value(json!({
            "metadata": {"name": "m", "ownerReferences": [{"apiVersion": "v1", "kind": "MachineSet", "name": set, "uid": "u"}]},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn evaluated(
        target: &TargetDeployment,
        document: &Value,
        sets: &[LiveMachineSet],
        machines: &[LiveMachine],
        hibernation: Hibernation,
    ) -> DeploymentProgress {
        let sets: Vec<&LiveMachineSet> = sets.iter().collect();
        let machines: Vec<&LiveMachine> = machines.iter().collect();
        let owned = Owned { sets: &sets, machines: &machines };
        evaluate(target, Some(&LiveDeployment::read_without_codes(document.clone()).unwrap()), &owned, hibernation)
    }

    fn phase_of(document: &Value) -> Phase {
        let target = target_deployment();
        evaluated(&target, document, &[set("new", &target.class_name.0, 2)], &[], Hibernation::NotRequested).phase
    }

    #[test]
    fn ready_requires_updated_available_machines() {
        assert_eq!(phase_of(&healthy()), Phase::Ready);
        for (document, expected) in [
            (with([("/metadata/generation", json!(3))]), Phase::Unobserved),
            (with([("/status/unavailableReplicas", json!(1))]), Phase::Pending),
            (with([("/status/updatedReplicas", json!(1))]), Phase::Pending),
            (with([("/spec/replicas", json!(3))]), Phase::Pending),
            (with([("/spec/replicas", json!(1))]), Phase::Ready),
            (with([("/status/conditions", json!([]))]), Phase::Pending),
            (
                with([(
                    "/status/conditions",
                    json!([{"type": "Available", "status": "True"}, {"type": "Frozen", "status": "True"}]),
                )]),
                Phase::Pending,
            ),
            // A failed machine that is preserved on purpose is not waited for.
            (
                with([("/status/unavailableReplicas", json!(1)), ("/status/preservedFailedReplicas", json!(1))]),
                Phase::Ready,
            ),
        ] {
            assert_eq!(phase_of(&document), expected, "{document}");
        }
        let of_another_class = [set("old", "another-class", 2)];
        let without = evaluated(&target_deployment(), &healthy(), &of_another_class, &[], Hibernation::NotRequested);
        assert_eq!(without.phase, Phase::WithoutMachineSet);
    }

    #[test]
    fn hibernated_shoot_is_ready_without_machines() {
        let hibernated = Hibernation::InProgress;
        let progress = |document: &Value, machines: &[LiveMachine], hibernation: Hibernation| {
            evaluated(&target_deployment(), document, &[set("old", "old-class", 0)], machines, hibernation)
        };
        let phase = |document: &Value, machines: &[LiveMachine], hibernation: Hibernation| {
            progress(document, machines, hibernation).phase
        };
        let empty = with([("/status/replicas", json!(0))]);
        assert_eq!(phase(&healthy(), &[], hibernated), Phase::Pending);
        assert_eq!(phase(&empty, &[], hibernated), Phase::Ready, "and needs no machine set of the wanted class");
        let leaving = LiveMachine { is_being_deleted: true, ..machine("old", None) };
        for (left, hibernation) in [(machine("old", None), Hibernation::Done), (leaving, hibernated)] {
            let progress = progress(&empty, &[left], hibernation);
            assert_eq!((progress.phase, progress.present), (Phase::Pending, 1), "a machine is left: {hibernation:?}");
        }
        let unobserved = with([("/status/replicas", json!(0)), ("/metadata/generation", json!(3))]);
        assert_eq!(phase(&unobserved, &[], hibernated), Phase::Unobserved, "it may be about to make machines");
        assert_eq!(phase(&unobserved, &[], Hibernation::Done), Phase::Ready, "nobody observes it");
    }

    #[test]
    fn manual_pool_waits_for_selected_machines() {
        let mut target = target_deployment();
        let sets = [set("old", "old-class", 1), set("new", &target.class_name.0, 1)];
        let partly = with([("/status/updatedReplicas", json!(1))]);
        let mut phase = |strategy: Option<UpdateStrategy>, reason: Option<&str>| {
            target.strategy = deployment_strategy(strategy, IntOrString::Int(1), IntOrString::Int(0));
            evaluated(&target, &partly, &sets, &[machine("old", reason)], Hibernation::NotRequested)
        };
        let manual = Some(UpdateStrategy::ManualInPlaceUpdate);
        for reason in [None, Some("CandidateForUpdate")] {
            let progress = phase(manual, reason);
            assert_eq!((progress.phase, progress.unselected), (Phase::Ready, 1), "{reason:?}");
            assert_eq!(phase(Some(UpdateStrategy::AutoInPlaceUpdate), reason).phase, Phase::Pending, "nobody selects");
            assert_eq!(phase(None, reason).phase, Phase::Pending);
        }
        for reason in ["SelectedForUpdate", "ReadyForUpdate", "UpdateFailed"] {
            let progress = phase(manual, Some(reason));
            let numbers = (progress.selected, progress.unselected);
            assert_eq!((progress.phase, numbers), (Phase::Pending, (1, 0)), "{reason}");
        }
    }

    #[test]
    fn detects_stuck_change() {
        let recorded = r#"{"v":1,"d":0,"g":[{"c":"shoot--p--s-a-4f8a0-z1","t":"2026-11-21T10:00:00Z","i":{"a":"1"}},{"c":"old","t":"2026-11-01T10:00:00Z","p":{"a":"2"}}]}"#;
        let document = |change: fn(&mut Value)| {
            let mut document = with([("/metadata/finalizers", json!([MCM_FINALIZER]))]);
            document["metadata"]["annotations"] = json!({"gardener-extension-worker/class-inputs": recorded});
            document["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
            document["spec"]["template"] = json!({"spec": {"class": {"name": "shoot--p--s-a-4f8a0-z1"}}});
            change(&mut document);
            document
        };
        let old = [set("old", "old-class", 2)];
        let evaluated = |document: &Value, sets: &[LiveMachineSet], hibernation: Hibernation| {
            evaluated(&target_deployment(), document, sets, &[], hibernation)
                .untaken_since
                .map(|since| since.to_string())
        };
        let plain = document(|_| {});
        let since = Some("2026-11-21T10:00:00Z".to_owned());
        assert_eq!(
            evaluated(&plain, &old, Hibernation::NotRequested),
            since,
            "from the change, not from the deployment's age"
        );
        let taken = [set("new", "shoot--p--s-a-4f8a0-z1", 0)];
        assert_eq!(evaluated(&plain, &taken, Hibernation::NotRequested), None);
        assert_eq!(evaluated(&plain, &old, Hibernation::InProgress), None);
        let unseen = document(|document| document["metadata"]["generation"] = json!(9));
        assert_eq!(
            evaluated(&unseen, &old, Hibernation::InProgress),
            since,
            "not even seen that no machines are wanted"
        );
        assert_eq!(evaluated(&unseen, &old, Hibernation::Done), None, "who does not run can't be stuck");
        for left_alone in [
            document(|document| document["spec"]["paused"] = json!(true)),
            document(|document| document["metadata"]["finalizers"] = json!([])),
            document(|document| document["status"]["conditions"][1] = json!({"type": "Frozen", "status": "True"})),
        ] {
            assert_eq!(evaluated(&left_alone, &old, Hibernation::NotRequested), None, "{left_alone}");
        }
    }

    #[test]
    fn rolls_while_another_class_is_recorded() {
        let target = target_deployment();
        let rolls = |classes: &[&str], of_history: &[&str]| {
            let classes_before: Vec<Value> =
                of_history.iter().map(|class| json!({"c": class, "t": "2026-11-21T10:00:00Z"})).collect();
            let record = json!({"v": 1, "d": 0, "g": classes_before}).to_string();
            let document =
                with([("/metadata/annotations", json!({ "gardener-extension-worker/class-inputs": record }))]);
            let sets: Vec<LiveMachineSet> = classes.iter().map(|class| set(class, class, 1)).collect();
            evaluated(&target, &document, &sets, &[], Hibernation::NotRequested).rolls
        };
        let class = target.class_name.0.as_str();
        assert!(!rolls(&[class], &[class]), "it has had no other");
        assert!(rolls(&[class, "old"], &[class]), "a machine set of it is left");
        assert!(rolls(&[class], &[class, "old"]), "it is recorded");
        assert!(!rolls(&[], &[]), "it is new");
    }

    #[test]
    fn counts_updated_machines_after_observation() {
        let target = target_deployment();
        let sets = [set("new", &target.class_name.0, 2)];
        let updated = |generation: i64| {
            let document = with([("/metadata/generation", json!(generation))]);
            evaluated(&target, &document, &sets, &[], Hibernation::NotRequested).updated
        };
        assert_eq!((updated(2), updated(3)), (2, 0), "until then they are those of the template before");
    }

    #[test]
    fn quotes_fault_of_machine_controller_manager() {
        let fault_with = |updated: i32, orchestration: Option<&str>, conditions: &[(&str, &str)]| {
            let of = |(name, status): &(&str, &str)| {
                let message = format!("{name} is so.");
                json!({"type": name, "status": status, "message": message, "reason": "Because"})
            };
            let conditions: Vec<Value> = conditions.iter().map(of).collect();
            let in_place = |orchestration: &str| json!({"orchestrationType": orchestration});
            let strategy = orchestration.map(|how| json!({"type": "InPlaceUpdate", "inPlaceUpdate": in_place(how)}));
            let document = with([
                ("/status/conditions", json!(conditions)),
                ("/status/updatedReplicas", json!(updated)),
                ("/spec/strategy", json!(strategy)),
            ]);
            fault(&LiveDeployment::read_without_codes(document).unwrap().object)
        };
        let available = ("Available", "True");
        for (name, status) in [("Progressing", "False"), ("ReplicaFailure", "True"), ("Frozen", "True")] {
            let text = format!("{name} is {status}: {name} is so (Because)");
            assert_eq!(fault_with(2, None, &[available, (name, status)]), Some(text));
        }
        let unavailable = "Available is Unknown: Available is so (Because)".to_owned();
        assert_eq!(fault_with(2, None, &[("Progressing", "False"), ("Available", "Unknown")]), Some(unavailable));

        let stands_still = [available, ("Progressing", "False")];
        assert_eq!(fault_with(1, Some("Manual"), &stands_still), None, "a person has to select the old machine");
        for (updated, orchestration, why) in [
            (2, Some("Manual"), "nobody has to select a machine any more"),
            (1, Some("Auto"), "machine-controller-manager selects"),
            (1, None, "it replaces the old machine"),
        ] {
            assert!(fault_with(updated, orchestration, &stands_still).is_some(), "{why}");
        }
    }
}
