//! Pure step: finds objects that are no longer needed. Objects of pools that could not be planned are kept.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::provider::TargetDeployment;
use crate::worker::machines::live_machine::{LiveMachine, LiveMachineSet};
use crate::worker::machines::machine_objects::LiveDeployment;
use crate::worker::machines::machine_objects::{DigestedObject, MachineObjects};
use crate::worker::plan::Plan;

/// Names of objects to delete, and of classes that are still in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Orphans {
    /// Deployments that belong to no pool.
    pub deployments: BTreeSet<String>,
    /// Machine sets without machines whose deployment was deleted before it adopted them.
    pub machine_sets: BTreeSet<String>,
    /// Classes that no deployment uses and no machine set or machine refers to.
    pub classes: BTreeSet<String>,
    /// Secrets of such classes.
    pub class_secrets: BTreeSet<String>,
    /// Classes that no deployment uses but old machine sets or machines still do, while the class or its Secret exists.
    pub classes_in_use: BTreeSet<String>,
}

impl Orphans {
    /// Whether there is nothing to delete and nothing to wait for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The objects among them that are not being deleted yet.
    #[must_use]
    pub fn deletions<'a>(&self, live: &'a MachineObjects) -> Deletions<'a> {
        Deletions::of(
            live,
            |name| self.deployments.contains(name),
            |set| self.machine_sets.contains(&*set.member.name),
            |name| self.classes.contains(name),
            |name| self.class_secrets.contains(name),
        )
    }
}

/// Name and UID of an object. The UID protects an object recreated with the same name.
pub type Seen<'a> = (&'a str, Option<&'a str>);

/// Objects to delete whose deletion was not requested yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletions<'a> {
    /// Machine deployments.
    pub deployments: Vec<Seen<'a>>,
    /// Machine sets that are not deleted together with a deployment.
    pub machine_sets: Vec<Seen<'a>>,
    /// Machine classes.
    pub classes: Vec<Seen<'a>>,
    /// Secrets of classes.
    pub class_secrets: Vec<Seen<'a>>,
}

impl<'a> Deletions<'a> {
    /// Objects to delete now for a deleted shoot: deployments and ownerless machine sets, then classes and their
    /// Secrets once no object uses classes. A machine set without the finalizer of machine-controller-manager is kept
    /// while it has machines, because otherwise its machines would never be deleted.
    #[must_use]
    pub fn of_all(live: &'a MachineObjects) -> Self {
        let is_free = !live.uses_classes();
        let is_safe = |set: &LiveMachineSet| !set.member.finalizers.is_empty() || !has_machines(set, live);
        Self::of(live, |_| true, is_safe, |_| is_free, |_| is_free)
    }

    /// Whether there is nothing to delete.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn of(
        live: &'a MachineObjects,
        deployment: impl Fn(&String) -> bool,
        machine_set: impl Fn(&LiveMachineSet) -> bool,
        class: impl Fn(&String) -> bool,
        class_secret: impl Fn(&String) -> bool,
    ) -> Self {
        let deployments =
            live.deployments.iter().filter(|(name, live)| deployment(name) && !is_being_deleted(&live.document));
        let machine_sets = abandoned(live).filter(|set| machine_set(set) && !set.is_being_deleted);
        Self {
            machine_sets: machine_sets.map(|set| (&*set.member.name, set.member.labelled_uid())).collect(),
            deployments: deployments.map(|(name, live)| (name.as_str(), live.object.metadata.uid.as_deref())).collect(),
            classes: still_to_delete(&live.classes, class),
            class_secrets: still_to_delete(&live.class_secrets, class_secret),
        }
    }
}

fn still_to_delete<T>(
    objects: &BTreeMap<String, DigestedObject<T>>,
    is_meant: impl Fn(&String) -> bool,
) -> Vec<Seen<'_>> {
    let objects = objects.iter().filter(|(name, object)| is_meant(name) && !object.is_being_deleted);
    objects.map(|(name, object)| (name.as_str(), object.uid.as_deref())).collect()
}

/// Machine sets without an owner whose labelled deployment does not exist, so no deployment will adopt them.
/// machine-controller-manager only deletes machine sets owned by a deployment. They occur when a shoot has moved here
/// and its deployment was deleted before machine-controller-manager ran, as for a hibernated shoot.
fn abandoned(live: &MachineObjects) -> impl Iterator<Item = &LiveMachineSet> {
    let is_deleted = |deployment: &str| !live.deployments.contains_key(deployment);
    live.machine_sets.iter().filter(move |set| set.member.labelled().is_some_and(is_deleted))
}

/// Whether the machine set has machines, by owner or by label.
fn has_machines(set: &LiveMachineSet, live: &MachineObjects) -> bool {
    let deployment = set.member.labelled();
    live.machines.iter().map(|machine| &machine.member).any(|machine| {
        machine.machine_set() == Some(&*set.member.name) || machine.labelled().is_some_and(|of| deployment == Some(of))
    })
}

/// State of machine-controller-manager. While it is stopped, machine sets and machines are never removed, and
/// deployments only if they lack its finalizer, so their removal is not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineControllerManagerState {
    /// It runs, so deleted machine sets disappear.
    Running,
    /// It is scaled to zero or absent.
    Stopped,
}

/// Finds the orphans among the live objects.
#[must_use]
pub fn orphans(plan: &Plan, live: &MachineObjects, machine_controller: MachineControllerManagerState) -> Orphans {
    let target: BTreeSet<&str> = plan.target_deployments().into_iter().map(|name| name.0.as_str()).collect();
    let failed_pools = plan.failed_pools();
    let is_kept = |name: &str, deployment: &LiveDeployment| {
        target.contains(name) || deployment.pool().is_some_and(|pool| failed_pools.contains(pool))
    };
    let deployments = live
        .deployments
        .iter()
        .filter(|(name, deployment)| !is_kept(name, deployment))
        .map(|(name, _)| name.clone())
        .collect();

    let runs = machine_controller == MachineControllerManagerState::Running;
    let mut kept_classes: BTreeSet<&str> = plan.target_classes().into_iter().map(|name| name.0.as_str()).collect();
    for (name, deployment) in &live.deployments {
        let failed = deployment.pool().is_some_and(|pool| failed_pools.contains(pool));
        if !target.contains(name.as_str()) && failed {
            kept_classes.insert(&deployment.object.spec.template.spec.class.name);
        }
    }
    kept_classes.extend(classes_in_place(plan, live));
    if !runs && !failed_pools.is_empty() {
        // While a shoot is restored, its machines exist before their deployments, and only deployments have the pool
        // label.
        kept_classes.extend(abandoned(live).map(|set| &*set.member.class));
        let machines = live.machines.iter().map(|machine| &machine.member);
        let without =
            machines.filter(|machine| machine.labelled().is_some_and(|of| !live.deployments.contains_key(of)));
        kept_classes.extend(without.map(|machine| &*machine.class));
    }
    let using = live.deployments.values().filter(|deployment| runs || !is_being_deleted(&deployment.document));
    let mut used_classes: BTreeSet<&str> =
        using.map(|deployment| deployment.object.spec.template.spec.class.name.as_str()).collect();
    if runs {
        // A set that machine-controller-manager never observed has no machines except existing ones, which are added
        // next.
        let sets = live.machine_sets.iter().filter(|set| set.observed_generation > 0 || set.replicas > 0);
        used_classes.extend(sets.map(|set| &*set.member.class));
        used_classes.extend(live.machines.iter().map(|machine| &*machine.member.class));
    }
    // Only the name of its deployment links a machine set to a pool, and deployment names of unplanned pools are
    // unknown.
    let are_all_planned = failed_pools.is_empty();
    let lost =
        abandoned(live).filter(|set| are_all_planned && !target.contains(set.member.labelled().unwrap_or_default()));
    let machine_sets =
        lost.filter(|set| !has_machines(set, live)).map(|set| set.member.name.clone().into_string()).collect();
    let unwanted = |name: &&String| !kept_classes.contains(name.as_str());
    let is_used = |name: &String| used_classes.contains(name.as_str());
    let (mut classes_in_use, classes): (BTreeSet<_>, BTreeSet<_>) =
        live.classes.keys().filter(unwanted).cloned().partition(is_used);
    // Objects that refer to a class need its Secret, even if the class does not exist.
    let (secrets_in_use, class_secrets): (BTreeSet<_>, BTreeSet<_>) =
        live.class_secrets.keys().filter(unwanted).cloned().partition(is_used);
    classes_in_use.extend(secrets_in_use);
    Orphans { deployments, machine_sets, classes, class_secrets, classes_in_use }
}

/// Classes of machines with in-place updates: of old machines that a user still has to select, and of updated machines.
/// machine-controller-manager moves updated machines to the new machine set, but they keep the name of their original
/// class.
fn classes_in_place<'a>(plan: &Plan, live: &'a MachineObjects) -> BTreeSet<&'a str> {
    let deployments = plan.machines().map(|machine| &machine.deployment);
    let in_place: BTreeMap<&str, &TargetDeployment> = deployments
        .filter(|target| target.strategy.in_place_update.is_some())
        .map(|target| (target.name.0.as_str(), target))
        .collect();
    let stays = |set: &&LiveMachineSet| {
        let target = set.member.deployment().and_then(|deployment| in_place.get(deployment));
        target.is_some_and(|target| {
            let is_manual_update = set.replicas > 0 && target.strategy.is_manual_in_place();
            is_manual_update || *set.member.class == *target.class_name.0
        })
    };
    let sets: BTreeMap<&str, &str> =
        live.machine_sets.iter().filter(stays).map(|set| (&*set.member.name, &*set.member.class)).collect();
    let stays = |machine: &&LiveMachine| {
        !machine.is_being_deleted && machine.member.machine_set().is_some_and(|set| sets.contains_key(set))
    };
    let machines = live.machines.iter().filter(stays).map(|machine| &*machine.member.class);
    sets.values().copied().chain(machines).collect()
}

/// Whether an object is being deleted.
#[must_use]
pub fn is_being_deleted(document: &Value) -> bool {
    document["metadata"].get("deletionTimestamp").is_some_and(|timestamp| !timestamp.is_null())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    use serde_json::json;

    use super::*;
    use crate::pool::strategy::deployment_strategy;
    use crate::provider::test_support::machine_plan;
    use crate::provider::{PoolPlan, PoolProblem};
    use wire::api::gardener::UpdateStrategy;

    /// A plan in which pool `b` could not be planned and pool `a` has no machines.
    fn plan_with_failed_pool_b() -> Plan {
        let empty = PoolPlan { pool: "a".to_owned(), machines: vec![], status_image: json!({}), in_place_hash: None };
        Plan {
            pools: vec![Ok(empty), Err(PoolProblem::VolumeMissing.of_pool("b"))],
            provider_status: json!({}),
            ..Plan::default()
        }
    }

    fn deployment(pool: &str, class: &str) -> LiveDeployment {
        LiveDeployment::read_without_codes(json!({
            "metadata": {"name": format!("shoot--p--s-{pool}-z1"), "labels": {"worker.gardener.cloud/pool": pool}},
            "spec": {"template": {"spec": {"class": {"name": class}}}},
        }))
        .unwrap()
    }

    fn live() -> MachineObjects {
        let class = |name: &str| (name.to_owned(), DigestedObject::class(json!({"metadata": {"name": name}})).unwrap());
        MachineObjects {
            deployments: [
                ("a-z1".to_owned(), deployment("a", "class-a")),
                ("b-z1".to_owned(), deployment("b", "class-b")),
            ]
            .into(),
            classes: [class("class-a"), class("class-b"), class("class-old")].into(),
            machine_sets: vec![
                serde_json::from_value(json!({
                    "metadata": {"name": "old"},
                    "spec": {"template": {"spec": {"class": {"name": "class-old"}}}},
                    "status": {"observedGeneration": 1},
                }))
                .unwrap(),
            ],
            ..MachineObjects::default()
        }
    }

    #[test]
    fn patched_machine_names_free_the_old_class() {
        let mut live = live();
        live.machine_sets[0].observed_generation = 0;
        let machine = |class: &str| serde_json::from_value(json!({"spec": {"class": {"name": class}}})).unwrap();
        live.machines = vec![machine("class-old")];
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineControllerManagerState::Running);
        assert!(found.classes_in_use.contains("class-old"), "up to 0.62 the machine keeps the name: {found:?}");
        live.machines = vec![machine("class-b")];
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineControllerManagerState::Running);
        assert!(found.classes.contains("class-old"), "from 0.63 on it has the new name: {found:?}");
        assert!(!found.classes.contains("class-b"), "{found:?}");
    }

    #[test]
    fn unplanned_pool_keeps_its_objects() {
        let found = orphans(&plan_with_failed_pool_b(), &live(), MachineControllerManagerState::Running);
        assert_eq!(found.deployments, ["a-z1".to_owned()].into(), "not the deployment of pool b");
        assert!(!found.classes.contains("class-b") && !found.classes_in_use.contains("class-b"));
    }

    #[test]
    fn keeps_class_while_machines_use_it() {
        let mut live = live();
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineControllerManagerState::Running);
        assert_eq!(found.classes_in_use, ["class-a".to_owned(), "class-old".to_owned()].into());
        live.machine_sets.clear();
        live.deployments.remove("a-z1");
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineControllerManagerState::Running);
        assert_eq!(found.classes, ["class-a".to_owned(), "class-old".to_owned()].into());
    }

    #[test]
    fn keeps_secret_of_missing_class_in_use() {
        let secret = serde_json::from_value(json!({"metadata": {"name": "class-lost"}})).unwrap();
        let mut live = live();
        live.class_secrets.insert("class-lost".to_owned(), DigestedObject::secret(secret));
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineControllerManagerState::Running);
        assert!(found.class_secrets.contains("class-lost"), "{found:?}");
        live.machines = vec![serde_json::from_value(json!({"spec": {"class": {"name": "class-lost"}}})).unwrap()];
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineControllerManagerState::Running);
        assert!(!found.class_secrets.contains("class-lost"), "{found:?}");
        assert!(found.classes_in_use.contains("class-lost"), "it is waited for: {found:?}");
    }

    /// A restore that was restarted after the Secret of a class was created, but before the class and its deployment
    /// were.
    #[test]
    fn keeps_classes_of_restored_machines() {
        for machine in [true, false] {
            let spec =
                json!({"class": {"name": "class-back"}, "template": {"spec": {"class": {"name": "class-back"}}}});
            let using = [json!({"metadata": {"labels": {"name": "not-back"}}, "spec": spec})];
            let secret = serde_json::from_value(json!({"metadata": {"name": "class-back"}})).unwrap();
            let class = DigestedObject::class(json!({"metadata": {"name": "class-back"}})).unwrap();
            let mut live = MachineObjects::default();
            live.class_secrets.insert("class-back".to_owned(), DigestedObject::secret(secret));
            live.classes.insert("class-back".to_owned(), class);
            if machine {
                live.machines = serde_json::from_value(json!(using)).unwrap();
            } else {
                live.machine_sets = serde_json::from_value(json!(using)).unwrap();
            }
            let found = orphans(&plan_with_failed_pool_b(), &live, MachineControllerManagerState::Stopped);
            assert!(found.is_empty(), "nobody knows that it is not of pool b, nor waits for what stays: {found:?}");
            let found = orphans(&plan_without_pools(), &live, MachineControllerManagerState::Stopped);
            assert!(found.class_secrets.contains("class-back") && found.classes.contains("class-back"), "{found:?}");
        }
    }

    #[test]
    fn unobserved_machine_set_uses_no_class() {
        let mut live = live();
        live.machine_sets[0].observed_generation = 0;
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineControllerManagerState::Running);
        assert!(found.classes.contains("class-old"), "{found:?}");
        let mut with_machines = live.clone();
        with_machines.machine_sets[0].replicas = 1;
        let found = orphans(&plan_with_failed_pool_b(), &with_machines, MachineControllerManagerState::Running);
        assert!(found.classes_in_use.contains("class-old"), "it has machines: {found:?}");
        live.machines = vec![serde_json::from_value(json!({"spec": {"class": {"name": "class-old"}}})).unwrap()];
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineControllerManagerState::Running);
        assert!(found.classes_in_use.contains("class-old"), "{found:?}");
    }

    /// A machine set or machine without an owner, labelled with its deployment.
    fn labelled<T: serde::de::DeserializeOwned>(name: &str, deployment: &str) -> T {
        let metadata = json!({"name": name, "uid": format!("uid-of-{name}"), "labels": {"name": deployment}});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    /// The plan of a Worker whose pools were removed.
    fn plan_without_pools() -> Plan {
        let mut plan = plan_with_failed_pool_b();
        plan.pools.retain(Result::is_ok);
        plan
    }

    #[test]
    fn deletes_unowned_machine_set() {
        let machine_sets = vec![labelled("lost", "gone"), labelled("of-a", "a-z1")];
        let live = MachineObjects { machine_sets, ..live() };
        let found = |plan: &Plan, live: &MachineObjects| {
            orphans(plan, live, MachineControllerManagerState::Stopped).machine_sets
        };
        assert_eq!(found(&plan_without_pools(), &live), ["lost".to_owned()].into());
        assert!(found(&plan_with_failed_pool_b(), &live).is_empty(), "it may be of the pool that can't be planned");
        let deletions = orphans(&plan_without_pools(), &live, MachineControllerManagerState::Stopped);
        assert_eq!(deletions.deletions(&live).machine_sets, [("lost", Some("uid-of-lost"))]);
        assert_eq!(Deletions::of_all(&live).machine_sets, [("lost", Some("uid-of-lost"))]);
        let mut is_going = live.clone();
        is_going.machine_sets[0].is_being_deleted = true;
        assert!(Deletions::of_all(&is_going).machine_sets.is_empty(), "it goes already");
        let with_machine = MachineObjects { machines: vec![labelled("m", "gone")], ..live };
        assert!(found(&plan_without_pools(), &with_machine).is_empty(), "its machines would have nobody");
    }

    #[test]
    fn shoot_deletion_keeps_unfinalized_sets_with_machines() {
        let deleted = |finalizers: &[&str], machine: Value| {
            let mut set: LiveMachineSet = labelled("lost", "gone");
            set.member.finalizers = finalizers.iter().map(|finalizer| (*finalizer).to_owned()).collect();
            let machines = vec![serde_json::from_value(json!({ "metadata": machine })).unwrap()];
            let live = MachineObjects { machine_sets: vec![set], machines, ..MachineObjects::default() };
            !Deletions::of_all(&live).machine_sets.is_empty()
        };
        let owners = json!([{"apiVersion": "v1", "kind": "MachineSet", "name": "lost", "uid": "u"}]);
        for machine in [json!({"labels": {"name": "gone"}}), json!({"ownerReferences": owners})] {
            assert!(!deleted(&[], machine.clone()), "{machine}");
            assert!(deleted(&["machine.sapcloud.io/machine-controller-manager"], machine));
        }
        assert!(deleted(&[], json!({"labels": {"name": "of-another"}})), "it has no machine");
    }

    #[test]
    fn stopped_mcm_blocks_no_class() {
        let mut live = live();
        let found =
            |live: &MachineObjects| orphans(&plan_with_failed_pool_b(), live, MachineControllerManagerState::Stopped);
        assert_eq!(found(&live).classes, ["class-old".to_owned()].into());
        assert_eq!(found(&live).classes_in_use, ["class-a".to_owned()].into(), "nobody has deleted its deployment yet");
        let held = live.deployments.get_mut("a-z1").unwrap();
        held.document["metadata"]["deletionTimestamp"] = json!("2026-11-26T10:00:00Z");
        assert_eq!(found(&live).classes, ["class-a".to_owned(), "class-old".to_owned()].into());
        assert!(found(&live).classes_in_use.is_empty());
    }

    /// A plan with one deployment, and an owner reference to it.
    fn updated(strategy: Option<UpdateStrategy>) -> (Plan, Value) {
        let mut machine = machine_plan();
        machine.deployment.strategy = deployment_strategy(strategy, IntOrString::Int(1), IntOrString::Int(0));
        let owner =
            json!({"apiVersion": "v1", "kind": "MachineDeployment", "name": machine.deployment.name, "uid": "u"});
        let pool =
            PoolPlan { pool: "a".to_owned(), machines: vec![machine], status_image: json!({}), in_place_hash: None };
        (Plan { pools: vec![Ok(pool)], provider_status: json!({}), ..Plan::default() }, owner)
    }

    #[test]
    fn keeps_class_of_machines_to_select() {
        let (plan, owner) = updated(Some(UpdateStrategy::ManualInPlaceUpdate));
        let is_orphan = |owner: &Value, replicas: i32| {
            let set = json!({
                "metadata": {"name": "old", "ownerReferences": [owner]},
                "spec": {"template": {"spec": {"class": {"name": "class-old"}}}},
                "status": {"replicas": replicas},
            });
            let live = MachineObjects { machine_sets: vec![serde_json::from_value(set).unwrap()], ..live() };
            orphans(&plan, &live, MachineControllerManagerState::Stopped).classes.contains("class-old")
        };
        assert!(!is_orphan(&owner, 1));
        assert!(is_orphan(&owner, 0), "no old machine is left");
        let mut other = owner;
        other["name"] = json!("shoot--p--s-rolls-z1");
        assert!(is_orphan(&other, 1), "machines that are replaced need no person");
    }

    /// machine-controller-manager moves the machine to the new machine set but keeps its class name.
    #[test]
    fn keeps_original_class_of_in_place_machine() {
        let of_class =
            |class: &str| json!({"class": {"name": class}, "template": {"spec": {"class": {"name": class}}}});
        let found = |strategy: Option<UpdateStrategy>, is_new: bool, deleted: Value| {
            let (plan, deployment) = updated(strategy);
            let class = plan.machines().next().unwrap().deployment.class_name.0.clone();
            let spec = of_class(if is_new { &class } else { "class-between" });
            let set = json!({"metadata": {"name": "s", "ownerReferences": [deployment]}, "spec": spec,
                "status": {"replicas": 1, "observedGeneration": 1}});
            let owner = json!({"apiVersion": "v1", "kind": "MachineSet", "name": "s", "uid": "n"});
            let metadata = json!({"name": "m", "ownerReferences": [owner], "deletionTimestamp": deleted});
            let machine = json!({"metadata": metadata, "spec": of_class("class-old")});
            let live = MachineObjects {
                machine_sets: vec![serde_json::from_value(set).unwrap()],
                machines: vec![serde_json::from_value(machine).unwrap()],
                ..live()
            };
            orphans(&plan, &live, MachineControllerManagerState::Running)
        };
        let stays =
            |found: Orphans| !found.classes.contains("class-old") && !found.classes_in_use.contains("class-old");
        for strategy in [UpdateStrategy::AutoInPlaceUpdate, UpdateStrategy::ManualInPlaceUpdate] {
            assert!(stays(found(Some(strategy), true, Value::Null)), "{strategy:?}");
            let going = found(Some(strategy), true, json!("2026-11-26T10:00:00Z"));
            assert!(going.classes_in_use.contains("class-old"), "it goes with its last machine: {going:?}");
        }
        let again = |strategy: UpdateStrategy| found(Some(strategy), false, Value::Null);
        assert!(stays(again(UpdateStrategy::ManualInPlaceUpdate)), "nobody has selected it for its second update");
        assert!(!stays(again(UpdateStrategy::AutoInPlaceUpdate)), "it is more than wanted, and goes");
        let replaced = found(None, true, Value::Null);
        assert!(replaced.classes_in_use.contains("class-old"), "a machine that is replaced goes: {replaced:?}");
    }

    #[test]
    fn deletes_classes_last_and_once() {
        let mut live = live();
        let names = |deletions: &Deletions<'_>| {
            let [deployments, classes] = [&deletions.deployments, &deletions.classes].map(|seen| seen.len());
            (deployments, classes)
        };
        assert_eq!(names(&Deletions::of_all(&live)), (2, 0), "classes are used");
        live.deployments.values_mut().for_each(|live| {
            live.document["metadata"]["deletionTimestamp"] = json!("2026-11-21T10:00:00Z");
        });
        assert_eq!(names(&Deletions::of_all(&live)), (0, 0), "deployments are on their way");
        live.deployments.clear();
        live.machine_sets.clear();
        assert_eq!(names(&Deletions::of_all(&live)), (0, 3));
        live.classes.values_mut().for_each(|class| class.is_being_deleted = true);
        assert!(Deletions::of_all(&live).is_empty());
    }

    #[test]
    fn deletes_only_orphans() {
        let live = live();
        let orphans = Orphans { deployments: ["a-z1".to_owned()].into(), ..Orphans::default() };
        let deletions = orphans.deletions(&live);
        let deployments: Vec<&str> = deletions.deployments.iter().map(|(name, _)| *name).collect();
        assert_eq!(deployments, ["a-z1"]);
        assert!(deletions.classes.is_empty() && deletions.class_secrets.is_empty());
    }
}
