//! Pure step: what nothing needs any more. Whatever belongs to a pool that could not be planned stays.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::provider::WantedDeployment;
use crate::worker::live_machine::{LiveMachine, LiveMachineSet};
use crate::worker::machine_objects::LiveDeployment;
use crate::worker::machine_objects::{Digested, MachineObjects};
use crate::worker::plan::Plan;

/// Names of objects that are to be deleted, and of those that still have to wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Orphans {
    /// Deployments that no pool wants.
    pub deployments: BTreeSet<String>,
    /// Machine sets without machines that have lost their deployment before it took them up.
    pub machine_sets: BTreeSet<String>,
    /// Classes that no deployment uses and no machine set or machine refers to.
    pub classes: BTreeSet<String>,
    /// Secrets of such classes.
    pub class_secrets: BTreeSet<String>,
    /// Classes that no deployment uses, but old machine sets or machines still do: as long as the class is there, or its Secret.
    pub classes_in_use: BTreeSet<String>,
}

impl Orphans {
    /// Whether nothing is to be deleted and nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What of it is to be deleted now, or at first.
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

/// Name and uid of an object: the one that was seen, not one that was made under the same name since.
pub type Seen<'a> = (&'a str, Option<&'a str>);

/// Objects that are to be deleted, and that nobody deletes yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletions<'a> {
    /// Machine deployments.
    pub deployments: Vec<Seen<'a>>,
    /// Machine sets that no deployment takes with it.
    pub machine_sets: Vec<Seen<'a>>,
    /// Machine classes.
    pub classes: Vec<Seen<'a>>,
    /// Secrets of classes.
    pub class_secrets: Vec<Seen<'a>>,
}

impl<'a> Deletions<'a> {
    /// What a shoot that is deleted loses now: deployments, and machine sets that go with none of them; classes and their Secrets once
    /// nothing is left that uses classes. A machine set that machine-controller-manager does not hold stays as long as it has machines:
    /// without it nobody would delete them.
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

fn still_to_delete<T>(objects: &BTreeMap<String, Digested<T>>, is_meant: impl Fn(&String) -> bool) -> Vec<Seen<'_>> {
    let objects = objects.iter().filter(|(name, object)| is_meant(name) && !object.is_being_deleted);
    objects.map(|(name, object)| (name.as_str(), object.uid.as_deref())).collect()
}

/// Machine sets that no deployment has taken up, and that of their label is not there: none will. machine-controller-manager deletes only
/// what a deployment owns. They come with a shoot that has moved here, and whose deployment went before machine-controller-manager
/// ran: that of a hibernated shoot does not.
fn abandoned(live: &MachineObjects) -> impl Iterator<Item = &LiveMachineSet> {
    let is_gone = |deployment: &str| !live.deployments.contains_key(deployment);
    live.machine_sets.iter().filter(move |set| set.member.labelled().is_some_and(is_gone))
}

/// Whether a machine is of such a set, or may be.
fn has_machines(set: &LiveMachineSet, live: &MachineObjects) -> bool {
    let deployment = set.member.labelled();
    live.machines.iter().map(|machine| &machine.member).any(|machine| {
        machine.machine_set() == Some(&*set.member.name) || machine.labelled().is_some_and(|of| deployment == Some(of))
    })
}

/// Whether what vanishes is waited for. Without a running machine-controller-manager machine sets and machines never do, and deployments
/// only where it does not hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineController {
    /// It runs, so machine sets vanish.
    Running,
    /// It is scaled to zero or absent.
    Stopped,
}

/// Finds the orphans among the live objects.
#[must_use]
pub fn orphans(plan: &Plan, live: &MachineObjects, machine_controller: MachineController) -> Orphans {
    let wanted: BTreeSet<&str> = plan.wanted_deployments().into_iter().map(|name| name.0.as_str()).collect();
    let failed_pools = plan.failed_pools();
    let is_kept = |name: &str, deployment: &LiveDeployment| {
        wanted.contains(name) || deployment.pool().is_some_and(|pool| failed_pools.contains(pool))
    };
    let deployments = live
        .deployments
        .iter()
        .filter(|(name, deployment)| !is_kept(name, deployment))
        .map(|(name, _)| name.clone())
        .collect();

    let runs = machine_controller == MachineController::Running;
    let mut kept_classes: BTreeSet<&str> = plan.wanted_classes().into_iter().map(|name| name.0.as_str()).collect();
    for (name, deployment) in &live.deployments {
        let failed = deployment.pool().is_some_and(|pool| failed_pools.contains(pool));
        if !wanted.contains(name.as_str()) && failed {
            kept_classes.insert(&deployment.object.spec.template.spec.class.name);
        }
    }
    kept_classes.extend(classes_in_place(plan, live));
    if !runs && !failed_pools.is_empty() {
        // While a shoot comes back, its machines are there before their deployments, which alone say whose they are.
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
        // A set that machine-controller-manager has never taken up has no machines but those that are there.
        let sets = live.machine_sets.iter().filter(|set| set.observed_generation > 0 || set.replicas > 0);
        used_classes.extend(sets.map(|set| &*set.member.class));
        used_classes.extend(live.machines.iter().map(|machine| &*machine.member.class));
    }
    // Whose machine set it is, only the name of a deployment says, and those of a pool that can't be planned are unknown.
    let are_all_planned = failed_pools.is_empty();
    let lost =
        abandoned(live).filter(|set| are_all_planned && !wanted.contains(set.member.labelled().unwrap_or_default()));
    let machine_sets =
        lost.filter(|set| !has_machines(set, live)).map(|set| set.member.name.clone().into_string()).collect();
    let unwanted = |name: &&String| !kept_classes.contains(name.as_str());
    let is_used = |name: &String| used_classes.contains(name.as_str());
    let (mut classes_in_use, classes): (BTreeSet<_>, BTreeSet<_>) =
        live.classes.keys().filter(unwanted).cloned().partition(is_used);
    // Whatever names the class needs its Secret, also where the class is not there.
    let (secrets_in_use, class_secrets): (BTreeSet<_>, BTreeSet<_>) =
        live.class_secrets.keys().filter(unwanted).cloned().partition(is_used);
    classes_in_use.extend(secrets_in_use);
    Orphans { deployments, machine_sets, classes, class_secrets, classes_in_use }
}

/// Classes of machines that are updated where they are: of old ones, which a person will select one day, and of those that are done.
/// machine-controller-manager gives these to the new machine set, and they name the class that they were made with until they go.
fn classes_in_place<'a>(plan: &Plan, live: &'a MachineObjects) -> BTreeSet<&'a str> {
    let deployments = plan.machines().map(|machine| &machine.deployment);
    let in_place: BTreeMap<&str, &WantedDeployment> = deployments
        .filter(|wanted| wanted.strategy.in_place_update.is_some())
        .map(|wanted| (wanted.name.0.as_str(), wanted))
        .collect();
    let stays = |set: &&LiveMachineSet| {
        let wanted = set.member.deployment().and_then(|deployment| in_place.get(deployment));
        wanted.is_some_and(|wanted| {
            let is_by_hand = set.replicas > 0 && wanted.strategy.is_manual_in_place();
            is_by_hand || *set.member.class == *wanted.class_name.0
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

/// Whether an object is being deleted already.
#[must_use]
pub fn is_being_deleted(document: &Value) -> bool {
    document["metadata"].get("deletionTimestamp").is_some_and(|timestamp| !timestamp.is_null())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    use serde_json::json;

    use super::*;
    use crate::api::gardener::UpdateStrategy;
    use crate::pool::strategy::deployment_strategy;
    use crate::provider::test_support::machine_plan;
    use crate::provider::{PoolPlan, PoolProblem};

    /// A plan in which pool `b` could not be planned and pool `a` wants nothing.
    fn plan_with_failed_pool_b() -> Plan {
        let empty = PoolPlan { pool: "a".to_owned(), machines: vec![], status_image: json!({}), in_place_hash: None };
        Plan { pools: vec![Ok(empty), Err(PoolProblem::VolumeMissing.of_pool("b"))], provider_status: json!({}) }
    }

    fn deployment(pool: &str, class: &str) -> LiveDeployment {
        LiveDeployment::read_without_codes(json!({
            "metadata": {"name": format!("shoot--p--s-{pool}-z1"), "labels": {"worker.gardener.cloud/pool": pool}},
            "spec": {"template": {"spec": {"class": {"name": class}}}},
        }))
        .unwrap()
    }

    fn live() -> MachineObjects {
        let class = |name: &str| (name.to_owned(), Digested::class(json!({"metadata": {"name": name}})).unwrap());
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
    fn a_pool_that_cannot_be_planned_keeps_everything() {
        let found = orphans(&plan_with_failed_pool_b(), &live(), MachineController::Running);
        assert_eq!(found.deployments, ["a-z1".to_owned()].into(), "not the deployment of pool b");
        assert!(!found.classes.contains("class-b") && !found.classes_in_use.contains("class-b"));
    }

    #[test]
    fn a_class_stays_while_machines_use_it() {
        let mut live = live();
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineController::Running);
        assert_eq!(found.classes_in_use, ["class-a".to_owned(), "class-old".to_owned()].into());
        live.machine_sets.clear();
        live.deployments.remove("a-z1");
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineController::Running);
        assert_eq!(found.classes, ["class-a".to_owned(), "class-old".to_owned()].into());
    }

    #[test]
    fn the_secret_of_a_class_stays_while_a_machine_names_the_class_that_is_not_there() {
        let secret = serde_json::from_value(json!({"metadata": {"name": "class-lost"}})).unwrap();
        let mut live = live();
        live.class_secrets.insert("class-lost".to_owned(), Digested::secret(secret));
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineController::Running);
        assert!(found.class_secrets.contains("class-lost"), "{found:?}");
        live.machines = vec![serde_json::from_value(json!({"spec": {"class": {"name": "class-lost"}}})).unwrap()];
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineController::Running);
        assert!(!found.class_secrets.contains("class-lost"), "{found:?}");
        assert!(found.classes_in_use.contains("class-lost"), "it is waited for: {found:?}");
    }

    /// A move that began anew after the Secret of a class was made, and before the class and its deployment were.
    #[test]
    fn what_a_machine_that_came_back_needs_stays_while_a_pool_cannot_be_planned() {
        for machine in [true, false] {
            let spec =
                json!({"class": {"name": "class-back"}, "template": {"spec": {"class": {"name": "class-back"}}}});
            let using = [json!({"metadata": {"labels": {"name": "not-back"}}, "spec": spec})];
            let secret = serde_json::from_value(json!({"metadata": {"name": "class-back"}})).unwrap();
            let class = Digested::class(json!({"metadata": {"name": "class-back"}})).unwrap();
            let mut live = MachineObjects::default();
            live.class_secrets.insert("class-back".to_owned(), Digested::secret(secret));
            live.classes.insert("class-back".to_owned(), class);
            if machine {
                live.machines = serde_json::from_value(json!(using)).unwrap();
            } else {
                live.machine_sets = serde_json::from_value(json!(using)).unwrap();
            }
            let found = orphans(&plan_with_failed_pool_b(), &live, MachineController::Stopped);
            assert!(found.is_empty(), "nobody knows that it is not of pool b, nor waits for what stays: {found:?}");
            let found = orphans(&plan_that_wants_nothing(), &live, MachineController::Stopped);
            assert!(found.class_secrets.contains("class-back") && found.classes.contains("class-back"), "{found:?}");
        }
    }

    #[test]
    fn a_set_that_was_never_taken_up_holds_no_class() {
        let mut live = live();
        live.machine_sets[0].observed_generation = 0;
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineController::Running);
        assert!(found.classes.contains("class-old"), "{found:?}");
        let mut with_machines = live.clone();
        with_machines.machine_sets[0].replicas = 1;
        let found = orphans(&plan_with_failed_pool_b(), &with_machines, MachineController::Running);
        assert!(found.classes_in_use.contains("class-old"), "it has machines: {found:?}");
        live.machines = vec![serde_json::from_value(json!({"spec": {"class": {"name": "class-old"}}})).unwrap()];
        let found = orphans(&plan_with_failed_pool_b(), &live, MachineController::Running);
        assert!(found.classes_in_use.contains("class-old"), "{found:?}");
    }

    /// A machine set or a machine that nothing owns, of a deployment by its label.
    fn labelled<T: serde::de::DeserializeOwned>(name: &str, deployment: &str) -> T {
        let metadata = json!({"name": name, "uid": format!("uid-of-{name}"), "labels": {"name": deployment}});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    /// The plan of a Worker whose pools are gone.
    fn plan_that_wants_nothing() -> Plan {
        let mut plan = plan_with_failed_pool_b();
        plan.pools.retain(Result::is_ok);
        plan
    }

    #[test]
    fn a_machine_set_goes_that_no_deployment_will_take_up() {
        let machine_sets = vec![labelled("lost", "gone"), labelled("of-a", "a-z1")];
        let live = MachineObjects { machine_sets, ..live() };
        let found = |plan: &Plan, live: &MachineObjects| orphans(plan, live, MachineController::Stopped).machine_sets;
        assert_eq!(found(&plan_that_wants_nothing(), &live), ["lost".to_owned()].into());
        assert!(found(&plan_with_failed_pool_b(), &live).is_empty(), "it may be of the pool that can't be planned");
        let deletions = orphans(&plan_that_wants_nothing(), &live, MachineController::Stopped);
        assert_eq!(deletions.deletions(&live).machine_sets, [("lost", Some("uid-of-lost"))]);
        assert_eq!(Deletions::of_all(&live).machine_sets, [("lost", Some("uid-of-lost"))]);
        let mut is_going = live.clone();
        is_going.machine_sets[0].is_being_deleted = true;
        assert!(Deletions::of_all(&is_going).machine_sets.is_empty(), "it goes already");
        let with_machine = MachineObjects { machines: vec![labelled("m", "gone")], ..live };
        assert!(found(&plan_that_wants_nothing(), &with_machine).is_empty(), "its machines would have nobody");
    }

    #[test]
    fn a_machine_set_with_machines_goes_with_the_shoot_where_somebody_deletes_them() {
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
    fn without_machine_controller_manager_nobody_is_waited_for() {
        let mut live = live();
        let found = |live: &MachineObjects| orphans(&plan_with_failed_pool_b(), live, MachineController::Stopped);
        assert_eq!(found(&live).classes, ["class-old".to_owned()].into());
        assert_eq!(found(&live).classes_in_use, ["class-a".to_owned()].into(), "nobody has deleted its deployment yet");
        let held = live.deployments.get_mut("a-z1").unwrap();
        held.document["metadata"]["deletionTimestamp"] = json!("2026-11-26T10:00:00Z");
        assert_eq!(found(&live).classes, ["class-a".to_owned(), "class-old".to_owned()].into());
        assert!(found(&live).classes_in_use.is_empty());
    }

    /// A plan that wants one deployment, and a reference to it as an owner.
    fn updated(strategy: Option<UpdateStrategy>) -> (Plan, Value) {
        let mut machine = machine_plan();
        machine.deployment.strategy = deployment_strategy(strategy, IntOrString::Int(1), IntOrString::Int(0));
        let owner =
            json!({"apiVersion": "v1", "kind": "MachineDeployment", "name": machine.deployment.name, "uid": "u"});
        let pool =
            PoolPlan { pool: "a".to_owned(), machines: vec![machine], status_image: json!({}), in_place_hash: None };
        (Plan { pools: vec![Ok(pool)], provider_status: json!({}) }, owner)
    }

    #[test]
    fn a_class_stays_for_old_machines_that_a_person_has_to_select() {
        let (plan, owner) = updated(Some(UpdateStrategy::ManualInPlaceUpdate));
        let is_orphan = |owner: &Value, replicas: i32| {
            let set = json!({
                "metadata": {"name": "old", "ownerReferences": [owner]},
                "spec": {"template": {"spec": {"class": {"name": "class-old"}}}},
                "status": {"replicas": replicas},
            });
            let live = MachineObjects { machine_sets: vec![serde_json::from_value(set).unwrap()], ..live() };
            orphans(&plan, &live, MachineController::Stopped).classes.contains("class-old")
        };
        assert!(!is_orphan(&owner, 1));
        assert!(is_orphan(&owner, 0), "no old machine is left");
        let mut other = owner;
        other["name"] = json!("shoot--p--s-rolls-z1");
        assert!(is_orphan(&other, 1), "machines that are replaced need no person");
    }

    /// machine-controller-manager gives it to the new machine set, and leaves the name of its class as it is.
    #[test]
    fn a_machine_that_was_updated_in_place_keeps_the_class_that_it_was_made_with_and_nobody_waits_for_that() {
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
            orphans(&plan, &live, MachineController::Running)
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
    fn of_a_shoot_that_is_deleted_classes_go_last_and_nothing_is_deleted_twice() {
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
    fn only_orphans_are_deleted() {
        let live = live();
        let orphans = Orphans { deployments: ["a-z1".to_owned()].into(), ..Orphans::default() };
        let deletions = orphans.deletions(&live);
        let deployments: Vec<&str> = deletions.deployments.iter().map(|(name, _)| *name).collect();
        assert_eq!(deployments, ["a-z1"]);
        assert!(deletions.classes.is_empty() && deletions.class_secrets.is_empty());
    }
}
