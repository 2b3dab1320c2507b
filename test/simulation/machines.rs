//! machine-controller-manager, from the perspective of the controller: machine sets and machines of deployments, rolls,
//! failures of the cloud, finalizers on classes and credentials, and deletions that need both.

pub(crate) mod in_place;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep, timeout};

use crate::actor::{Actor, has_finalizer, is_vanishing, name_of};
use crate::api_server::kinds::{
    DEPLOYMENT, Kind, MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, POD, SECRET, WORKER,
};
use crate::api_server::store::Object;
use crate::cloud::Cloud;
use crate::documents::WORKER_NAME;
use crate::random::Random;
use in_place::is_in_place;

/// Name of the actor, and of the Deployment in the seed.
pub(crate) const NAME: &str = "machine-controller-manager";
/// Finalizer of deployments and machine sets.
const OF_MANAGER: &str = "machine.sapcloud.io/machine-controller-manager";
/// Finalizer of machines, classes and their Secrets.
const OF_DRIVER: &str = "machine.sapcloud.io/machine-controller";

/// The label that distinguishes the machines of sets when in-place updates move them between sets.
const OF_TEMPLATE: &str = "machine-template-hash";

/// Label of a pool's nodes with the name of their node agent Secret.
pub(crate) const NODE_AGENT_LABEL: &str = "worker.gardener.cloud/gardener-node-agent-secret-name";
/// End of the names of node agent Secrets whose nodes never join.
pub(crate) const NO_BOOT: &str = "-no-boot";

/// The running program.
pub(crate) struct MachineControllerManager {
    actor: Actor,
    cloud: Cloud,
    random: Random,
    /// Maximum reaction time in milliseconds.
    delay: u64,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    made: u64,
    /// When VMs will be created or deleted.
    due: BTreeMap<(bool, String), Instant>,
    /// When in-place updates of machines will finish.
    updates: BTreeMap<String, Instant>,
    /// Deployments that it has overlooked, with the uid of its pod. A restart of the pod helps.
    overlooked: BTreeSet<String>,
    /// Whether it also sets finalizers on unused classes, so that deletions never finish immediately.
    holds_unused: bool,
    /// Whether the status of a deployment leaves out old machines that are being deleted, as the real one does.
    omits_deleted: bool,
}

impl MachineControllerManager {
    pub(crate) fn new(
        actor: Actor,
        cloud: Cloud,
        random: Random,
        delay: u64,
        now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    ) -> Self {
        let (due, updates, overlooked) = Default::default();
        Self {
            actor,
            cloud,
            random,
            delay,
            now,
            made: 0,
            due,
            updates,
            overlooked,
            holds_unused: true,
            omits_deleted: false,
        }
    }

    /// Only sets finalizers on classes that machines use.
    pub(crate) fn holding_used_ones(self) -> Self {
        Self { holds_unused: false, ..self }
    }

    /// Leaves old machines that are being deleted out of the status.
    pub(crate) fn omitting_deleted_ones(self) -> Self {
        Self { omits_deleted: true, ..self }
    }

    /// Runs until dropped.
    pub(crate) async fn run(mut self) {
        let mut writes = self.actor.writes();
        loop {
            self.keep_pod();
            if self.is_running() {
                self.step();
            }
            // Mark before sleeping, so that its own writes trigger only one more step.
            writes.mark_seen();
            // Wait for a change or the next VM.
            let _ = timeout(self.until_due(), writes.changed()).await;
            sleep(self.random.millis(20, 20 + self.delay)).await;
        }
    }

    fn is_running(&self) -> bool {
        self.actor.get(&DEPLOYMENT, NAME).is_some_and(|deployment| deployment.value["spec"]["replicas"] != 0)
    }

    /// Recreates its pod after a deletion.
    fn keep_pod(&self) {
        if self.is_running() && self.actor.list(&POD).is_empty() {
            let metadata = json!({"name": NAME, "labels": {"role": NAME}});
            self.actor.create(&POD, json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}));
        }
    }

    fn until_due(&self) -> Duration {
        let now = Instant::now();
        let next = self.due.values().chain(self.updates.values()).filter(|due| **due > now).min();
        next.map_or(Duration::from_secs(5), |due| (*due - now).min(Duration::from_secs(5)))
    }

    fn step(&mut self) {
        self.hold_classes();
        for deployment in self.actor.list(&MACHINE_DEPLOYMENT) {
            self.deployment(&deployment.value);
        }
        for machine in self.actor.list(&MACHINE) {
            self.machine(&machine.value);
        }
    }

    /// Sets finalizers on classes in use, and on their Secrets, and removes them otherwise.
    fn hold_classes(&self) {
        let (machines, classes) = (self.actor.list(&MACHINE), self.actor.list(&MACHINE_CLASS));
        for class in classes.iter().map(|class| &class.value) {
            let is_used = machines.iter().any(|machine| class_of_machine(&machine.value) == name_of(class));
            if !is_vanishing(class) || !is_used {
                let is_held = !is_vanishing(class) && (is_used || self.holds_unused);
                self.actor.set_finalizer(&MACHINE_CLASS, class, OF_DRIVER, is_held);
            }
        }
        let mut classes = self.actor.list(&MACHINE_CLASS);
        classes.retain(|class| self.holds_unused || has_finalizer(&class.value, OF_DRIVER));
        let references = |class: &Arc<Object>| {
            ["secretRef", "credentialsSecretRef"]
                .map(|member| class.value[member]["name"].as_str().unwrap_or_default().to_owned())
        };
        let needed: BTreeSet<String> = classes.iter().flat_map(references).collect();
        for secret in self.actor.list(&SECRET) {
            let is_needed = needed.contains(name_of(&secret.value));
            if !is_needed || !is_vanishing(&secret.value) {
                self.actor.set_finalizer(&SECRET, &secret.value, OF_DRIVER, is_needed);
            }
        }
    }

    fn deployment(&mut self, deployment: &Value) {
        let sets = self.owned(&MACHINE_SET, deployment, "MachineDeployment");
        if is_vanishing(deployment) {
            let left = sets.iter().filter(|set| !self.end_set(&set.value)).count();
            let is_empty = left == 0;
            if is_empty {
                self.actor.set_finalizer(&MACHINE_DEPLOYMENT, deployment, OF_MANAGER, false);
            }
            return;
        }
        self.actor.set_finalizer(&MACHINE_DEPLOYMENT, deployment, OF_MANAGER, true);
        // The machine set controller completes deletions, even of sets whose deployment is overlooked.
        for set in sets.iter().filter(|set| is_vanishing(&set.value)) {
            self.end_set(&set.value);
        }
        let replicas = deployment["spec"]["replicas"].as_u64().unwrap_or_default();
        if deployment["spec"]["paused"] == true && !is_in_place(deployment) {
            return self.scale_paused(deployment, &sets, replicas);
        }
        let Some(expected) = self.target_set(deployment, &sets) else { return };
        let expected = &expected.value;
        if is_in_place(deployment) {
            return self.update_in_place(deployment, expected, &sets, replicas);
        }
        let machines = self.scale_set(expected, replicas);
        let ready = machines.iter().filter(|machine| is_ready(&machine.value)).count();
        // Machines count until they are deleted.
        let present = self.owned(&MACHINE, expected, "MachineSet").len();
        let mut old = 0;
        for set in sets.iter().map(|set| &set.value).filter(|set| name_of(set) != name_of(expected)) {
            let machines = self.owned(&MACHINE, set, "MachineSet");
            let counted =
                machines.iter().filter(|machine| !self.omits_deleted || !is_vanishing(&machine.value)).count();
            let is_deleted = ready as u64 >= replicas && self.end_set(set);
            old += if is_deleted { 0 } else { counted };
        }
        self.report(deployment, present, ready, old);
    }

    /// Scales a paused deployment as the real one does: without a set for its template it scales the set that has machines,
    /// otherwise the new set, which surges by all machines here. Old machines stay, unless none are required.
    fn scale_paused(&mut self, deployment: &Value, sets: &[Arc<Object>], replicas: u64) {
        let template = &deployment["spec"]["template"];
        let is_new = |set: &Value| same_template(&set["spec"]["template"], template);
        let sets: Vec<&Value> = sets.iter().map(|set| &set.value).filter(|set| !is_vanishing(set)).collect();
        let scaled = sets.iter().find(|set| is_new(set)).or(sets.last()).map(|set| name_of(set).to_owned());
        let (mut updated, mut ready, mut old) = (0, 0, 0);
        for set in sets {
            let is_scaled = scaled.as_deref() == Some(name_of(set));
            let kept = set["spec"]["replicas"].as_u64().unwrap_or_default();
            let target = if is_scaled || replicas == 0 { replicas } else { kept };
            let machines = self.scale_set(set, target);
            if is_new(set) {
                ready = machines.iter().filter(|machine| is_ready(&machine.value)).count();
                updated = self.owned(&MACHINE, set, "MachineSet").len();
            } else {
                old += machines.len();
            }
        }
        self.report(deployment, updated, ready, old);
    }

    /// The machine set for a deployment's template, created if missing.
    fn target_set(&mut self, deployment: &Value, sets: &[Arc<Object>]) -> Option<Arc<Object>> {
        let template = &deployment["spec"]["template"];
        let is_same = |set: &Value| same_template(&set["spec"]["template"], template);
        if let Some(set) = sets.iter().find(|set| is_same(&set.value)) {
            // A set being deleted blocks its name.
            return (!is_vanishing(&set.value)).then(|| Arc::clone(set));
        }
        let class = template["spec"]["class"]["name"].as_str().unwrap_or_default();
        self.actor.get(&MACHINE_CLASS, class)?;
        let pod = self.actor.list(&POD).first().map(|pod| pod.value["metadata"]["uid"].to_string()).unwrap_or_default();
        let sight = format!("{pod} {} {class}", name_of(deployment));
        if self.cloud.overlooks() && !self.overlooked.iter().any(|seen| seen.ends_with(class)) {
            self.actor.note(format!("overlooks the new class of {}", name_of(deployment)));
            self.overlooked.insert(sight.clone());
        }
        if self.overlooked.contains(&sight) {
            return None;
        }
        let digest = hex::encode(Sha256::digest(template.to_string()));
        let name = format!("{}-{}", name_of(deployment), &digest[..5]);
        let mut set = json!({
            "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineSet",
            "metadata": {"name": name, "labels": template["metadata"]["labels"], "finalizers": [OF_MANAGER],
                         "ownerReferences": [owner(deployment)]},
            "spec": {"replicas": deployment["spec"]["replicas"], "selector": deployment["spec"]["selector"], "template": template},
        });
        if is_in_place(deployment) {
            set["metadata"]["labels"][OF_TEMPLATE] = json!(&digest[..5]);
            set["spec"]["replicas"] = json!(0);
        }
        self.actor.create(&MACHINE_SET, set);
        self.actor.get(&MACHINE_SET, &name)
    }

    /// Creates or deletes machines until a set has this number. Returns them.
    fn scale_set(&mut self, set: &Value, replicas: u64) -> Vec<Arc<Object>> {
        if set["spec"]["replicas"] != replicas {
            self.actor.change(&MACHINE_SET, name_of(set), |set| set["spec"]["replicas"] = json!(replicas));
        }
        let mut machines = self.owned(&MACHINE, set, "MachineSet");
        machines.retain(|machine| !is_vanishing(&machine.value));
        while (machines.len() as u64) < replicas {
            self.made += 1;
            let name = format!("{}-{:05}", name_of(set), self.made);
            let mut labels = set["spec"]["template"]["metadata"]["labels"].clone();
            if let Some(template) = set["metadata"]["labels"].get(OF_TEMPLATE) {
                labels[OF_TEMPLATE] = template.clone();
            }
            let machine = json!({
                "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
                "metadata": {"name": name, "labels": labels, "finalizers": [OF_DRIVER],
                             "ownerReferences": [owner(set)]},
                "spec": set["spec"]["template"]["spec"],
            });
            self.actor.create(&MACHINE, machine);
            let Some(made) = self.actor.get(&MACHINE, &name) else { break };
            machines.push(made);
        }
        while machines.len() as u64 > replicas {
            if let Some(surplus) = machines.pop() {
                self.actor.delete(&MACHINE, name_of(&surplus.value));
            }
        }
        let present = self.owned(&MACHINE, set, "MachineSet").len();
        if let Some(set) = self.actor.get(&MACHINE_SET, name_of(set)) {
            let status = json!({"observedGeneration": set.value["metadata"]["generation"], "replicas": present});
            if set.value["status"] != status {
                self.actor.change_status(&MACHINE_SET, name_of(&set.value), |set| set["status"] = status);
            }
        }
        machines
    }

    /// Deletes a set with its machines. Returns whether it is deleted.
    fn end_set(&self, set: &Value) -> bool {
        let machines = self.owned(&MACHINE, set, "MachineSet");
        for machine in machines.iter().map(|machine| &machine.value).filter(|machine| !is_vanishing(machine)) {
            self.actor.delete(&MACHINE, name_of(machine));
        }
        if self.actor.get(&MACHINE_SET, name_of(set)).is_some_and(|set| !is_vanishing(&set.value)) {
            self.actor.delete(&MACHINE_SET, name_of(set));
        }
        if machines.is_empty()
            && let Some(set) = self.actor.get(&MACHINE_SET, name_of(set))
        {
            self.actor.set_finalizer(&MACHINE_SET, &set.value, OF_MANAGER, false);
        }
        self.actor.get(&MACHINE_SET, name_of(set)).is_none()
    }

    /// Creates or deletes the VM of a machine, which needs its class, the class's dependencies, and the cloud.
    fn machine(&mut self, machine: &Value) {
        let (name, vanishes) = (name_of(machine).to_owned(), is_vanishing(machine));
        if !vanishes && is_ready(machine) {
            return;
        }
        let delay = if vanishes { self.random.millis(500, 12_000) } else { self.random.millis(500, 20_000) };
        let due = *self.due.entry((vanishes, name.clone())).or_insert_with(|| Instant::now() + delay);
        if due > Instant::now() || !self.has_what_it_needs(class_of_machine(machine)) {
            return;
        }
        if !vanishes && !self.joins(machine) || vanishes && self.cloud.drains_endlessly() {
            self.due.insert((vanishes, name), Instant::now() + Duration::from_secs(10));
            return;
        }
        let deployment = machine["metadata"]["labels"]["name"].as_str();
        let error = match (self.cloud.error(vanishes), deployment) {
            (None, Some(deployment)) if !vanishes => self.cloud.lacks_capacity(deployment),
            (error, _) => error,
        };
        if let Some(error) = error {
            let operation = if vanishes { "Delete" } else { "Create" };
            if machine["status"]["lastOperation"]["state"] != "Failed" {
                let last = json!({"description": error, "state": "Failed", "type": operation, "errorCode": "ResourceExhausted",
                                  "lastUpdateTime": self.seconds()});
                self.actor.change_status(&MACHINE, &name, |machine| machine["status"]["lastOperation"] = last);
            }
            self.due.insert((vanishes, name), Instant::now() + Duration::from_secs(10));
            return;
        }
        if vanishes {
            self.actor.set_finalizer(&MACHINE, machine, OF_DRIVER, false);
            self.due.remove(&(vanishes, name));
        } else {
            let last =
                json!({"description": "", "state": "Successful", "type": "Create", "lastUpdateTime": self.seconds()});
            let status =
                json!({"lastOperation": last, "currentStatus": {"phase": "Running", "lastUpdateTime": self.seconds()}});
            self.actor.change_status(&MACHINE, &name, |machine| machine["status"] = status);
        }
    }

    /// Whether the node of a machine joins the cluster. It needs its node agent Secret, and gardenlet keeps only those that the
    /// pools of the Worker name.
    fn joins(&self, machine: &Value) -> bool {
        let Some(key) = machine["spec"]["nodeTemplate"]["metadata"]["labels"][NODE_AGENT_LABEL].as_str() else {
            return true;
        };
        let worker = self.actor.get(&WORKER, WORKER_NAME);
        let pools = worker.as_ref().and_then(|worker| worker.value["spec"]["pools"].as_array());
        let is_current = pools.into_iter().flatten().any(|pool| pool["nodeAgentSecretName"] == key);
        is_current && !key.ends_with(NO_BOOT)
    }

    fn has_what_it_needs(&self, class: &str) -> bool {
        let Some(class) = self.actor.get(&MACHINE_CLASS, class) else { return false };
        ["secretRef", "credentialsSecretRef"].into_iter().all(|member| {
            let name = class.value[member]["name"].as_str().unwrap_or_default();
            name.is_empty() || self.actor.get(&SECRET, name).is_some()
        })
    }

    /// Writes the status of a deployment if it differs.
    fn report(&self, deployment: &Value, updated: usize, ready: usize, old: usize) {
        let Some(deployment) = self.actor.get(&MACHINE_DEPLOYMENT, name_of(deployment)) else { return };
        let deployment = &deployment.value;
        let expected = usize::try_from(deployment["spec"]["replicas"].as_u64().unwrap_or_default()).unwrap_or_default();
        let (replicas, available) = (updated + old, (ready + old).min(updated + old));
        let failed: Vec<Value> = self
            .owned_by_deployment(deployment)
            .iter()
            .map(|machine| &machine.value)
            .filter(|machine| machine["status"]["lastOperation"]["state"] == "Failed")
            .map(|machine| json!({"name": name_of(machine), "ownerRef": name_of(deployment), "lastOperation": machine["status"]["lastOperation"]}))
            .collect();
        let is_available = available >= expected;
        let condition = |kind: &str, reason: &str, status: &str| {
            let before = deployment["status"]["conditions"].as_array().into_iter().flatten();
            let same = before
                .into_iter()
                .find(|before| before["type"] == kind && before["status"] == status && before["reason"] == reason);
            same.cloned().unwrap_or_else(|| {
                json!({"type": kind, "status": status, "reason": reason, "message": "", "lastUpdateTime": self.seconds(),
                       "lastTransitionTime": self.seconds()})
            })
        };
        let available_reason = if is_available { "MinimumReplicasAvailable" } else { "MinimumReplicasUnavailable" };
        let is_complete = updated == expected && ready >= expected && old == 0;
        let progress = match deployment["spec"]["paused"] == true {
            true => condition("Progressing", "DeploymentPaused", "Unknown"),
            false if is_complete => condition("Progressing", "NewMachineSetAvailable", "True"),
            false => condition("Progressing", "MachineSetUpdated", "True"),
        };
        let available_status = if is_available { "True" } else { "False" };
        let mut status = json!({
            "observedGeneration": deployment["metadata"]["generation"], "replicas": replicas, "updatedReplicas": updated,
            "readyReplicas": available, "availableReplicas": available, "unavailableReplicas": expected.saturating_sub(available),
            "conditions": [condition("Available", available_reason, available_status), progress],
        });
        if !failed.is_empty() {
            status["failedMachines"] = json!(failed);
        }
        if deployment["status"] != status {
            self.actor
                .change_status(&MACHINE_DEPLOYMENT, name_of(deployment), |deployment| deployment["status"] = status);
        }
    }

    fn owned_by_deployment(&self, deployment: &Value) -> Vec<Arc<Object>> {
        let sets = self.owned(&MACHINE_SET, deployment, "MachineDeployment");
        sets.iter().flat_map(|set| self.owned(&MACHINE, &set.value, "MachineSet")).collect()
    }

    /// Objects of an owner. Adopts objects without one by their labels, as after a move.
    fn owned(&self, kind: &'static Kind, of: &Value, of_kind: &str) -> Vec<Arc<Object>> {
        let mut owned = Vec::new();
        for object in self.actor.list(kind) {
            let owners = object.value["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
            if owners.is_empty() && is_for(&object.value, of, of_kind) {
                let owner = owner(of);
                self.actor.change(kind, name_of(&object.value), |object| {
                    object["metadata"]["ownerReferences"] = json!([owner]);
                });
                owned.extend(self.actor.get(kind, name_of(&object.value)));
            } else if owners.iter().any(|owner| owner["uid"] == of["metadata"]["uid"]) {
                owned.push(object);
            }
        }
        owned
    }

    /// Fails a VM until the cloud has room for a replacement.
    pub(crate) fn fail(actor: &Actor, machine: &str, now: Timestamp) {
        actor.note(format!("machine {machine} fails"));
        let last = json!({"description": "the VM has failed", "state": "Failed", "type": "HealthCheck", "lastUpdateTime": now.to_string()});
        let status =
            json!({"lastOperation": last, "currentStatus": {"phase": "Failed", "lastUpdateTime": now.to_string()}});
        actor.change_status(&MACHINE, machine, |machine| machine["status"] = status);
    }

    fn seconds(&self) -> String {
        (self.now)().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

fn is_for(orphan: &Value, of: &Value, of_kind: &str) -> bool {
    let template = &orphan["metadata"]["labels"][OF_TEMPLATE];
    match of_kind {
        _ if of["kind"] == "MachineSet" && !template.is_null() => *template == of["metadata"]["labels"][OF_TEMPLATE],
        "MachineSet" => name_of(orphan).starts_with(&format!("{}-", name_of(of))),
        _ => orphan["metadata"]["labels"]["name"] == name_of(of),
    }
}

fn same_template(one: &Value, other: &Value) -> bool {
    one["metadata"]["labels"] == other["metadata"]["labels"]
        && one["spec"]["class"]["name"] == other["spec"]["class"]["name"]
}

pub(crate) fn is_ready(machine: &Value) -> bool {
    machine["status"]["currentStatus"]["phase"] == "Running"
}

fn class_of_machine(machine: &Value) -> &str {
    machine["spec"]["class"]["name"].as_str().unwrap_or_default()
}

fn owner(of: &Value) -> Value {
    json!({"apiVersion": of["apiVersion"], "kind": of["kind"], "name": of["metadata"]["name"], "uid": of["metadata"]["uid"],
           "controller": true, "blockOwnerDeletion": true})
}
