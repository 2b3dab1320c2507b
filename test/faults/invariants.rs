//! Invariants that must always hold, checked for all versions of all objects in a namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::flow::{Flow, NODE_AGENT_SECRET, REMOVED, ZONE_BY_ZONE, is_grown};
use crate::observer::{Objects, Version};
use test_support::leaks;
use test_support::shoot::Kind;

const FINALIZER: &str = "extensions.gardener.cloud/worker";
/// Label of a pool's deployments.
const POOL: &str = "worker.gardener.cloud/pool";
const PURPOSE: &str = "gardener.cloud/purpose";

/// The revision from which changes belong to a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) since: u64,
    pub(crate) flow: Flow,
}

/// All violations in the versions. `marks` are in order.
pub(crate) fn violations(versions: &[Version], marks: &[Mark]) -> Vec<String> {
    let mut check =
        Check { now: Objects::new(), template_changes: BTreeMap::new(), moved: Vec::new(), found: Vec::new() };
    for version in versions {
        let mark = marks.iter().rev().find(|mark| mark.since < version.revision);
        check.see(version, mark.map_or(Flow::Create, |mark| mark.flow));
    }
    check.found
}

struct Check {
    /// The objects at this revision.
    now: Objects,
    /// Number of template changes by flow and deployment.
    template_changes: BTreeMap<(Flow, String), u32>,
    /// Machines that existed when the control plane moved away.
    moved: Vec<(Kind, String)>,
    found: Vec<String>,
}

impl Check {
    fn see(&mut self, version: &Version, flow: Flow) {
        let key = (version.kind, version.name.clone());
        let before = match &version.object {
            Some(object) => self.now.insert(key, object.clone()),
            None => self.now.remove(&key),
        };
        let (before, after) = (before.as_deref(), version.object.as_deref());
        let count = self.found.len();
        match version.kind {
            Kind::MachineDeployment => self.deployment(version, before, after, flow),
            Kind::MachineClass => self.class(version, before, after),
            Kind::Secret if [before, after].into_iter().flatten().any(is_of_class) => {
                self.class_secret(version, before, after);
            }
            Kind::Worker => self.worker(before, after, flow),
            Kind::Deployment => self.machine_controller(before, after, flow),
            _ => {}
        }
        if version.kind != Kind::Secret
            && let Some(object) = after
            && let Err(leak) =
                leaks::ensure_no_secrets(&format!("{:?} {}", version.kind, version.name), &object.to_string())
        {
            self.found.push(leak.to_string());
        }
        for found in &mut self.found[count..] {
            *found = format!("{}, revision {}: {found}", flow.name(), version.revision);
        }
    }

    fn deployment(&mut self, version: &Version, before: Option<&Value>, after: Option<&Value>, flow: Flow) {
        let name = &version.name;
        if begins_to_vanish(before, after) {
            let pool = before.or(after).map(|object| &object["metadata"]["labels"][POOL]);
            let allowed = match flow {
                // After the control plane has moved away, gardenlet deletes them.
                Flow::Delete => true,
                Flow::Migrate => !self.moved.is_empty(),
                Flow::PoolRemoval => pool.is_some_and(|pool| *pool == REMOVED),
                _ => false,
            };
            if !allowed {
                self.found.push(format!("MachineDeployment {name} is deleted"));
            }
        }
        let Some(after) = after else { return };
        let class = class_of(after);
        match self.get(Kind::MachineClass, class) {
            None => self.found.push(format!("MachineDeployment {name} refers to class {class}, which is not there")),
            Some(document) => {
                let secret = document["secretRef"]["name"].as_str().unwrap_or_default();
                if self.get(Kind::Secret, secret).is_none() {
                    self.found.push(format!("MachineDeployment {name} needs Secret {secret}, which is not there"));
                }
            }
        }
        let Some(before) = before else {
            self.held(&format!("MachineDeployment {name}"));
            let replicas = if flow == Flow::Restore && is_grown(name) { 2 } else { 1 };
            if after["spec"]["replicas"] != replicas {
                self.found.push(format!("MachineDeployment {name} begins with {} replicas", after["spec"]["replicas"]));
            }
            return;
        };
        self.unseen(name, &before["metadata"], &after["metadata"]);
        self.template(name, before, after, flow);
        self.replicas(name, &before["spec"]["replicas"], &after["spec"]["replicas"], flow);
    }

    /// Detects versions that the observer has missed: each change of the spec increments the generation.
    fn unseen(&mut self, name: &str, before: &Value, after: &Value) {
        let generation = |metadata: &Value| metadata["generation"].as_u64().unwrap_or_default();
        if generation(before) + 1 < generation(after) || before["uid"] != after["uid"] {
            self.found
                .push(format!("not all versions of MachineDeployment {name} were seen: {before} becomes {after}"));
        }
    }

    /// Checks a change of the template, which makes machine-controller-manager replace machines.
    fn template(&mut self, name: &str, before: &Value, after: &Value, flow: Flow) {
        let facts = |deployment: &Value| {
            let template = &deployment["spec"]["template"];
            (template["metadata"].clone(), template["spec"]["class"].clone(), template["spec"]["providerID"].clone())
        };
        if secret_of(before) != secret_of(after) && class_of(before) == class_of(after) {
            self.found.push(format!("MachineDeployment {name} gets another node agent Secret with the same class"));
        }
        if facts(before) == facts(after) {
            return;
        }
        self.one_zone_at_a_time(name, after);
        let times = self.template_changes.entry((flow, name.to_owned())).or_default();
        *times += 1;
        if flow != Flow::Roll || *times > 1 {
            let (before, after) = (facts(before), facts(after));
            self.found.push(format!("MachineDeployment {name} rolls, time {times}: {before:?} becomes {after:?}"));
        }
    }

    /// Where zones roll one after the other, all others are complete when one gets another class.
    fn one_zone_at_a_time(&mut self, name: &str, deployment: &Value) {
        let worker = self.get(Kind::Worker, "fleet");
        if worker.is_none_or(|worker| worker["metadata"]["annotations"][ZONE_BY_ZONE].is_null()) {
            return;
        }
        let is_other_zone = |((kind, other), object): &(&(Kind, String), &Arc<Value>)| {
            let labels = &object["metadata"]["labels"];
            *kind == Kind::MachineDeployment && other != name && labels[POOL] == deployment["metadata"]["labels"][POOL]
        };
        let others = self.now.iter().filter(is_other_zone);
        let rolling: Vec<&str> =
            others.filter(|(_, object)| !is_complete(object)).map(|((_, other), _)| other.as_str()).collect();
        if !rolling.is_empty() {
            self.found.push(format!("MachineDeployment {name} rolls while {} do", rolling.join(", ")));
        }
    }

    /// With one exception, only the controller writes replicas in the flows, and each deployment has at least one
    /// machine.
    fn replicas(&mut self, name: &str, before: &Value, after: &Value, flow: Flow) {
        let allowed = match flow {
            _ if before == after => true,
            Flow::Hibernate => *after == 0,
            Flow::Wake if *before == 0 => *after == 1,
            // The test scales up before it starts the next flow.
            Flow::Wake => is_grown(name) && *before == 1 && *after == 2,
            _ => false,
        };
        if !allowed {
            self.found.push(format!("MachineDeployment {name} gets {after} replicas after {before}"));
        }
    }

    fn class(&mut self, version: &Version, before: Option<&Value>, after: Option<&Value>) {
        let name = &version.name;
        if begins_to_vanish(before, after) {
            self.not_in_use(&format!("MachineClass {name}"), name);
        }
        match (before, after) {
            (None, Some(_)) => self.held(&format!("MachineClass {name}")),
            (Some(before), Some(after)) if before["providerSpec"] != after["providerSpec"] => {
                self.found.push(format!("MachineClass {name} changes"));
            }
            _ => {}
        }
    }

    fn class_secret(&mut self, version: &Version, before: Option<&Value>, after: Option<&Value>) {
        let name = &version.name;
        if begins_to_vanish(before, after) {
            self.not_in_use(&format!("Secret {name}"), name);
        }
        if before.is_none() {
            self.held(&format!("Secret {name}"));
        }
    }

    fn worker(&mut self, before: Option<&Value>, after: Option<&Value>, flow: Flow) {
        let had = before.is_some_and(is_held);
        if !had || after.is_some_and(is_held) {
            return;
        }
        if flow == Flow::Migrate {
            self.moved = self.now.keys().filter(|(kind, _)| *kind == Kind::Machine).cloned().collect();
            return;
        }
        let left: Vec<_> = self.now.iter().filter(|((kind, _), object)| is_machine_object(*kind, object)).collect();
        if !left.is_empty() {
            let names: Vec<String> = left.iter().map(|((kind, name), _)| format!("{kind:?} {name}")).collect();
            self.found.push(format!("the Worker's finalizer goes before {}", names.join(", ")));
        }
    }

    /// machine-controller-manager must not run before all machines are restored, because it would create others.
    fn machine_controller(&mut self, before: Option<&Value>, after: Option<&Value>, flow: Flow) {
        let runs = |object: Option<&Value>| object.is_some_and(|object| object["spec"]["replicas"] != 0);
        if flow != Flow::Restore || runs(before) || !runs(after) {
            return;
        }
        let missing: Vec<_> = self.moved.iter().filter(|key| !self.now.contains_key(*key)).collect();
        if !missing.is_empty() {
            self.found.push(format!("machine-controller-manager starts before {missing:?} are back"));
        }
    }

    fn get(&self, kind: Kind, name: &str) -> Option<&Value> {
        self.now.get(&(kind, name.to_owned())).map(|object| &**object)
    }

    /// Machine objects may only be created while the Worker has its finalizer, or they would be orphaned with it.
    fn held(&mut self, what: &str) {
        if !self.get(Kind::Worker, "fleet").is_some_and(is_held) {
            self.found.push(format!("{what} comes before the Worker's finalizer"));
        }
    }

    /// A class and its Secret may only be deleted when no object refers to the class.
    fn not_in_use(&mut self, what: &str, class: &str) {
        let user = self.now.iter().find(|((kind, _), object)| match kind {
            Kind::MachineDeployment | Kind::MachineSet => class_of(object) == class,
            Kind::Machine => object["spec"]["class"]["name"] == class,
            _ => false,
        });
        if let Some(((kind, name), _)) = user {
            self.found.push(format!("{what} is deleted although {kind:?} {name} needs it"));
        }
    }
}

fn begins_to_vanish(before: Option<&Value>, after: Option<&Value>) -> bool {
    let vanishes =
        |object: Option<&Value>| object.is_none_or(|object| !object["metadata"]["deletionTimestamp"].is_null());
    before.is_some() && !vanishes(before) && vanishes(after)
}

/// The class in the template of a deployment or set.
fn class_of(object: &Value) -> &str {
    object["spec"]["template"]["spec"]["class"]["name"].as_str().unwrap_or_default()
}

/// The node agent Secret of a deployment's nodes.
fn secret_of(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["nodeTemplate"]["metadata"]["labels"][NODE_AGENT_SECRET]
}

/// Whether machine-controller-manager has observed a deployment and made all machines of its class.
fn is_complete(deployment: &Value) -> bool {
    let (spec, status) = (&deployment["spec"], &deployment["status"]);
    let is_observed = status["observedGeneration"] == deployment["metadata"]["generation"];
    is_observed
        && ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|number| status[number] == spec["replicas"])
}

fn is_held(worker: &Value) -> bool {
    worker["metadata"]["finalizers"].as_array().is_some_and(|finalizers| finalizers.iter().any(|one| one == FINALIZER))
}

fn is_of_class(secret: &Value) -> bool {
    secret["metadata"]["labels"][PURPOSE] == "machineclass"
}

fn is_machine_object(kind: Kind, object: &Value) -> bool {
    match kind {
        Kind::Secret => is_of_class(object),
        Kind::MachineDeployment | Kind::MachineSet | Kind::Machine | Kind::MachineClass => true,
        _ => false,
    }
}
