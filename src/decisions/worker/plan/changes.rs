//! Pure step: the writes that bring the cluster to the planned state. Empty if nothing differs.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::pool::settings::is_autoscaler_used;
use crate::provider::{MachinePlan, WorkerContext};
use crate::worker::machines::machine_objects::{
    DigestedObject, LiveDeployment, MachineObjects, PURPOSE_LABEL, document_of,
};
use crate::worker::plan::Plan;
use crate::worker::plan::class_images::{self, ClassImages};
use crate::worker::plan::class_inputs::{
    BudgetMembers, annotate, inputs_of, keep_hold, keep_record, keep_wait, owner_digest,
};
use crate::worker::plan::deployment::{ReplicaRules, target_document, target_replicas};
use crate::worker::plan::difference::merge_patch;
use crate::worker::plan::digest;
use crate::worker::plan::zone_waits::WaitingZone;
use wire::api::machine::MachineClass;

/// A write that brings an object to its target state.
#[derive(Clone, Debug, PartialEq)]
pub enum Write<T> {
    /// The object does not exist.
    Create(T),
    /// The object differs and is replaced, with the known resource version as precondition.
    Replace(T),
    /// The object differs and gets a JSON merge patch.
    Patch {
        /// The merge patch.
        patch: Value,
        /// The object after the patch.
        after: T,
    },
}

impl<T> Write<T> {
    /// The object after the write.
    pub fn after(&self) -> &T {
        match self {
            Self::Create(after) | Self::Replace(after) | Self::Patch { after, .. } => after,
        }
    }

    /// Name of the write operation.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Replace(_) => "replace",
            Self::Patch { .. } => "patch",
        }
    }
}

impl Write<Value> {
    /// The sent document, keyed by [`verb`](Self::verb).
    #[must_use]
    pub fn document(&self) -> Value {
        let (Self::Create(sent) | Self::Replace(sent) | Self::Patch { patch: sent, .. }) = self;
        json!({ self.verb(): sent })
    }
}

/// Writes for one placement of a pool, in the required order.
#[derive(Clone)]
pub struct MachineChanges<'a> {
    /// The planned placement.
    pub machine: &'a MachinePlan,
    /// The Secret with the user data.
    pub secret: Option<Write<Secret>>,
    /// The machine class.
    pub class: Option<Write<Value>>,
    /// The machine deployment.
    pub deployment: Option<Write<Value>>,
    /// Whether the target class is about to disappear: its deletion was requested and nothing uses it, or it does not
    /// exist and its Secret is being deleted. A Secret is only deleted after its class.
    pub is_class_being_deleted: bool,
}

impl<'a> MachineChanges<'a> {
    /// Writes of the Secret and class only.
    #[must_use]
    pub fn of_class(machine: &'a MachinePlan, namespace: &str, live: &MachineObjects) -> Self {
        let name = &machine.deployment.class_name.0;
        Self {
            machine,
            secret: secret_write(machine, namespace, live.class_secrets.get(name)),
            class: class_write(machine, live.classes.get(name)),
            deployment: None,
            is_class_being_deleted: false,
        }
    }

    /// Whether there is anything to write.
    #[must_use]
    pub fn is_to_write(&self) -> bool {
        self.secret.is_some() || self.class.is_some() || self.deployment.is_some()
    }
}

/// Compares a plan with the live objects. Returns one entry per planned placement, even without changes. New classes
/// are recorded with the time `now`.
#[must_use]
pub fn changes<'a>(
    context: &WorkerContext<'_>,
    plan: &'a Plan,
    images: &ClassImages,
    live: &MachineObjects,
    now: Timestamp,
) -> Vec<MachineChanges<'a>> {
    let namespace = context.worker.metadata.namespace.as_deref().unwrap_or_default();
    // Rarely needed, but then once per placement.
    let used_classes = LazyCell::new(|| live.used_classes());
    let is_going = |class: &str| match live.classes.get(class) {
        Some(live) => live.is_being_deleted && !used_classes.contains(class),
        None => live.class_secrets.get(class).is_some_and(|secret| secret.is_being_deleted),
    };
    let inputs = ChangeInputs {
        context,
        plan,
        images,
        live,
        rules: replica_rules(context, live),
        worker_name: context.worker.metadata.name.as_deref().unwrap_or_default(),
        namespace,
        now,
    };
    let of_machine = |machine: &'a MachinePlan| {
        let name = &machine.deployment.name.0;
        let class = &machine.deployment.class_name.0;
        if let Some(waiting) = waiting(machine, plan, live) {
            let deployment = inputs.of_waiting(machine, &waiting);
            return MachineChanges { machine, secret: None, class: None, deployment, is_class_being_deleted: false };
        }
        let changes = MachineChanges {
            deployment: inputs.of_deployment(machine),
            is_class_being_deleted: is_going(class),
            ..MachineChanges::of_class(machine, namespace, live)
        };
        // The content of an existing class on hold is that of another name.
        let keeps_class = plan.budget.hold_of(name).is_some() && live.classes.contains_key(class);
        if keeps_class { MachineChanges { class: None, ..changes } } else { changes }
    };
    plan.machines().map(of_machine).collect()
}

/// What the changes are computed from.
struct ChangeInputs<'a, 'b> {
    context: &'b WorkerContext<'b>,
    plan: &'a Plan,
    images: &'b ClassImages,
    live: &'b MachineObjects,
    rules: ReplicaRules,
    worker_name: &'b str,
    namespace: &'b str,
    now: Timestamp,
}

impl ChangeInputs<'_, '_> {
    fn of_waiting(&self, machine: &MachinePlan, waiting: &Waiting<'_>) -> Option<Write<Value>> {
        let Waiting { zone, live } = waiting;
        let mut target = waiting_document(self.worker_name, self.namespace, machine, waiting, self.rules);
        self.plan.stops.set_pause(&machine.deployment.name.0, &mut target);
        let budget = self.budget_members(machine);
        keep_wait(&mut target, live, &zone.planned_class, zone.since, &budget, self.now);
        deployment_write(target, Some(&live.document))
    }

    /// The write of a deployment that does not wait.
    fn of_deployment(&self, machine: &MachinePlan) -> Option<Write<Value>> {
        let deployment = &machine.deployment;
        let name = &deployment.name.0;
        let live = self.live.deployments.get(name);
        let mut target = target_document(self.worker_name, self.namespace, deployment, live, self.rules);
        self.plan.stops.set_pause(name, &mut target);
        if let (None, Some(kept)) = (live, self.live.moved_replicas.get(name)) {
            target["spec"]["replicas"] = json!(target_replicas(deployment, Some(*kept), self.rules));
        }
        if let Some(pool) = self.context.pool(&deployment.pool_name) {
            match (live, self.plan.budget.hold_of(name)) {
                (Some(live), Some(_)) => keep_hold(&mut target, live, &owner_digest(pool), self.now),
                (None, _) | (_, None) => {
                    let inputs = inputs_of(&machine.hash_items, pool, self.context.shoot);
                    let budget = self.plan.budget.members(machine, pool);
                    keep_record(&mut target, live, &deployment.class_name.0, &inputs, &budget, self.now);
                }
            }
        }
        if let Some(image) = self.images.to_record(name) {
            annotate(&mut target, class_images::ANNOTATION, image);
        }
        deployment_write(target, live.map(|live| &live.document))
    }

    fn budget_members(&self, machine: &MachinePlan) -> BudgetMembers {
        let pool = self.context.pool(&machine.deployment.pool_name);
        pool.map_or(BudgetMembers::Off, |pool| self.plan.budget.members(machine, pool))
    }
}

/// A zone that waits or is stopped, and its live deployment.
pub(super) struct Waiting<'a> {
    zone: &'a WaitingZone,
    live: &'a LiveDeployment,
}

/// The wait of a planned placement.
pub(super) fn waiting<'a>(machine: &MachinePlan, plan: &'a Plan, live: &'a MachineObjects) -> Option<Waiting<'a>> {
    let name = &machine.deployment.name.0;
    Some(Waiting { zone: plan.waiting_zone(name)?, live: live.deployments.get(name)? })
}

/// The target MachineDeployment of a zone that waits, without its record. A template is never mixed: while the name of
/// the node agent Secret changes, running nodes would otherwise get the configuration of the new class.
pub(super) fn waiting_document(
    worker_name: &str,
    namespace: &str,
    machine: &MachinePlan,
    waiting: &Waiting<'_>,
    rules: ReplicaRules,
) -> Value {
    let Waiting { zone, live } = waiting;
    let mut target = target_document(worker_name, namespace, &machine.deployment, Some(live), rules);
    if zone.keeps_template {
        target["spec"]["template"] = live.document["spec"]["template"].clone();
    }
    target
}

/// Rules for replicas, from the Shoot, the pools, and all live or restored deployments.
#[must_use]
pub fn replica_rules(context: &WorkerContext<'_>, live: &MachineObjects) -> ReplicaRules {
    ReplicaRules {
        hibernated: context.shoot.should_hibernate(),
        autoscaler_used: is_autoscaler_used(&context.worker.spec.pools),
        waking: live.deployments.values().all(|deployment| deployment.object.spec.replicas == 0)
            && live.moved_replicas.values().all(|replicas| *replicas == 0),
    }
}

/// The Secret with the user data, named like the class.
#[must_use]
pub fn class_secret(machine: &MachinePlan, namespace: &str) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(machine.deployment.secret_name.0.clone()),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(PURPOSE_LABEL.0.to_owned(), PURPOSE_LABEL.1.to_owned())])),
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".to_owned()),
        data: Some(BTreeMap::from([("userData".to_owned(), ByteString(machine.user_data.0.clone()))])),
        ..Secret::default()
    }
}

/// The machine class as a document.
#[must_use]
pub fn class_document(machine: &MachinePlan) -> Value {
    document_of::<MachineClass>(json!(machine.class))
}

/// Secret and class under the name of another class, for machines created with that one. machine-controller-manager
/// needs a class to manage and delete a machine, but it need not be the one that the machine was created from.
#[must_use]
pub fn class_of_name(machine: &MachinePlan, namespace: &str, name: &str) -> (Secret, Value) {
    let mut secret = class_secret(machine, namespace);
    let mut class = class_document(machine);
    secret.metadata.name = Some(name.to_owned());
    class["metadata"]["name"] = json!(name);
    class["secretRef"]["name"] = json!(name);
    (secret, class)
}

fn secret_write(
    machine: &MachinePlan,
    namespace: &str,
    live: Option<&DigestedObject<Secret>>,
) -> Option<Write<Secret>> {
    let mut target = class_secret(machine, namespace);
    let Some(live) = live else { return Some(Write::Create(target)) };
    if digest::of_secret(&target) == live.digest {
        return None;
    }
    target.metadata.resource_version = live.version.as_deref().map(str::to_owned);
    target.metadata.finalizers = (!live.finalizers.is_empty()).then(|| live.finalizers.to_vec());
    Some(Write::Replace(target))
}

fn class_write(machine: &MachinePlan, live: Option<&DigestedObject<Value>>) -> Option<Write<Value>> {
    let mut target = class_document(machine);
    let Some(live) = live else { return Some(Write::Create(target)) };
    if digest::of_document(&target) == live.digest {
        return None;
    }
    if let Some(version) = &live.version {
        target["metadata"]["resourceVersion"] = json!(version);
    }
    if !live.finalizers.is_empty() {
        target["metadata"]["finalizers"] = json!(live.finalizers);
    }
    Some(Write::Replace(target))
}

fn deployment_write(target: Value, live: Option<&Value>) -> Option<Write<Value>> {
    let Some(live) = live else { return Some(Write::Create(target)) };
    let mut patch = merge_patch(live, &target)?;
    let is_written_by_others = patch.pointer("/spec/replicas").is_some() || patch.pointer("/spec/paused").is_some();
    if is_written_by_others {
        // The autoscaler writes replicas and a person may pause, so a patch computed from an outdated object must conflict.
        patch["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
    }
    Some(Write::Patch { patch, after: target })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::test_support::{NAMESPACE, machine_plan};
    use crate::worker::plan::desired::test_support::Objects;

    #[test]
    fn writes_class_secret_only_if_different() {
        let machine = machine_plan();
        let secret = class_secret(&machine, NAMESPACE);
        assert_eq!(
            secret.type_.as_deref(),
            Some("Opaque"),
            "the API server's default is not relied on: it can't be changed"
        );
        assert_eq!(secret.metadata.labels.as_ref().unwrap()[PURPOSE_LABEL.0], PURPOSE_LABEL.1);
        assert_eq!(secret.data.as_ref().unwrap()["userData"].0, machine.user_data.0);
        let location = [&secret.metadata.name, &secret.metadata.namespace].map(|name| name.as_deref().unwrap());
        assert_eq!(location, [machine.deployment.secret_name.0.as_str(), NAMESPACE]);
        assert!(matches!(secret_write(&machine, NAMESPACE, None), Some(Write::Create(_))));

        let live = |change: fn(&mut Secret)| {
            let mut live = secret.clone();
            live.metadata.resource_version = Some("7".to_owned());
            live.metadata.finalizers = Some(vec!["machine.sapcloud.io/machine-controller".to_owned()]);
            change(&mut live);
            DigestedObject::secret(live)
        };
        assert!(
            secret_write(&machine, NAMESPACE, Some(&live(|_| {}))).is_none(),
            "version and finalizers are not ours"
        );
        let other = live(|live| drop(live.data.take()));
        let Some(Write::Replace(written)) = secret_write(&machine, NAMESPACE, Some(&other)) else {
            panic!("it differs")
        };
        assert_eq!(written.metadata.resource_version.as_deref(), Some("7"), "only over what was seen");
        assert_eq!(written.metadata.finalizers.unwrap(), ["machine.sapcloud.io/machine-controller"], "they stay");
        let without = live(|live| (live.data, live.metadata.finalizers) = (None, None));
        let Some(Write::Replace(written)) = secret_write(&machine, NAMESPACE, Some(&without)) else {
            panic!("it differs")
        };
        assert_eq!(written.metadata.finalizers, None, "an empty list would be a difference");
    }

    #[test]
    fn replaced_class_keeps_version_and_finalizers() {
        let machine = machine_plan();
        let written = |metadata: Value| {
            let live = DigestedObject::class(json!({"metadata": metadata, "provider": "another"})).unwrap();
            let Some(Write::Replace(written)) = class_write(&machine, Some(&live)) else { panic!("it differs") };
            written["metadata"].clone()
        };
        let metadata = class_document(&machine)["metadata"].clone();
        assert_eq!(written(json!({})), metadata, "an empty list would be a difference");
        let mut held = metadata;
        held["resourceVersion"] = json!("7");
        held["finalizers"] = json!(["machine.sapcloud.io/machine-controller-manager"]);
        assert_eq!(written(held.clone()), held);
    }

    #[test]
    fn detects_wake_up_without_replicas() {
        let Objects(worker, cloud_profile, shoot, secrets) = &Objects::new(&json!({}));
        let context = WorkerContext { worker, cloud_profile, shoot, secrets, dependencies: None };
        let is_waking = |replicas: &[i32], moved: &[i32]| {
            let deployment = |(number, replicas): (usize, &i32)| {
                let document = json!({"metadata": {"name": "d"}, "spec": {"replicas": replicas}});
                (number.to_string(), LiveDeployment::read_without_codes(document).unwrap())
            };
            let moved = moved.iter().enumerate().map(|(number, replicas)| (number.to_string(), *replicas));
            let live = MachineObjects {
                deployments: replicas.iter().enumerate().map(deployment).collect(),
                moved_replicas: moved.collect(),
                ..MachineObjects::default()
            };
            replica_rules(&context, &live).waking
        };
        assert!(is_waking(&[], &[]) && is_waking(&[0, 0], &[]) && is_waking(&[0], &[0]));
        assert!(!is_waking(&[0, 2], &[]) && !is_waking(&[2], &[]), "one has machines");
        assert!(!is_waking(&[0], &[0, 3]), "one had some before the shoot moved");
    }
}
