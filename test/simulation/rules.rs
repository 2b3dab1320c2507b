//! Invariants, checked over all writes of a life in their order. Each write of the controller needs a cause: a version
//! of the Worker that was current within the last minutes, because a write can be in transit for that long.

mod budget;
mod leftovers;
mod machine_controller;
mod stops;
mod zones;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use test_support::leaks;

use crate::actor::{has_finalizer, is_vanishing};
use crate::api_server::kinds::{
    CLUSTER, DEPLOYMENT, Kind, MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, SECRET, WORKER,
};
use crate::api_server::store::{Change, Object};
use crate::dependency::{of_class, recorded};
use crate::expected::{Expected, expected, machine_images};
use crate::gardenlet::FORCED;
use crate::sharder::{DRAIN, SHARD};
use crate::trace::Trace;
pub(crate) use budget::has_slot;
pub(crate) use leftovers::leftovers;
use machine_controller::LateStop;
use stops::Mixed;
pub(crate) use stops::{has_pause_mark, is_paused};
use zones::Zones;

/// How long after a version of the Worker writes for it may still arrive: a request, its retries, and the reconcile.
pub(crate) const ON_ITS_WAY: SignedDuration = SignedDuration::from_secs(150);
/// The Worker's finalizer until all its objects are deleted.
pub(crate) const FINALIZER: &str = "extensions.gardener.cloud/worker";
/// The label of a deployment with its pool.
pub(crate) const POOL: &str = "worker.gardener.cloud/pool";
/// Texts that messages for users must not contain: the client's debug output, and a page mistaken for a 404 of
/// Kubernetes.
const RAW: &[&str] = &[
    "ApiError",
    "ServiceError",
    "HyperError",
    "Status {",
    "Some(",
    "Failed to parse",
    "API server answers 404: <html",
];

/// A version of Worker and Cluster, and until when it was current.
#[derive(Clone)]
struct Requested {
    until: Option<Timestamp>,
    worker: Arc<Object>,
    cluster: Arc<Object>,
    expected: Arc<Expected>,
    hibernates: bool,
    is_deleted: bool,
    /// Whether the shoot is being deleted, even if the Worker is not yet.
    shoot_is_deleted: bool,
    /// Whether this deletion is forced.
    is_forced: bool,
    moves: bool,
}

impl Requested {
    fn requests(&self, deployment: &str) -> bool {
        self.expected.deployments.contains_key(deployment)
    }

    /// Whether a deployment belongs to no pool.
    fn releases(&self, name: &str, deployment: &Value) -> bool {
        let pool = deployment["metadata"]["labels"][POOL].as_str().unwrap_or_default();
        !self.requests(name) && !self.expected.unplanned.contains(pool)
    }
}

/// State after the writes so far, requested versions, and violations.
struct Rules {
    /// Whether only one controller acts as leader.
    is_alone: bool,
    /// Number of pools that may have a slot at the same time, in lives with a roll budget.
    slots: Option<usize>,
    now: BTreeMap<(&'static str, String), Arc<Object>>,
    requested: Vec<Requested>,
    /// Machines that existed when the shoot moved away.
    moved: Vec<(&'static str, String)>,
    /// Names of objects that a user has written.
    edited: Vec<String>,
    /// Class Secrets that a controller has created.
    made: BTreeSet<String>,
    /// When a user removed the Worker's finalizer.
    release: Option<Timestamp>,
    /// When machine-controller-manager was started; `None` while it is stopped.
    runs_since: Option<Timestamp>,
    /// A stop of it that arrived too late, so the controller must start it again.
    stopped_late: Option<LateStop>,
    not_started_again: Vec<LateStop>,
    /// The last controller that wrote each machine deployment.
    writers: BTreeMap<String, &'static str>,
    zones: Zones,
    mixed: Mixed,
    found: Vec<String>,
}

/// All violations. `is_alone`: only one controller acts as leader. `slots`: number of pools that may have a slot.
pub(crate) fn violations(log: &[Change], is_alone: bool, slots: Option<usize>, trace: &Trace) -> Vec<String> {
    let mut rules = Rules::new(is_alone, slots);
    log.iter().for_each(|change| rules.follow(change));
    let mut found = rules.found;
    found.extend(rules.not_started_again.iter().filter_map(|stop| stop.found(trace)));
    found
}

fn is_controller(author: &str) -> bool {
    author.starts_with("controller")
}

impl Rules {
    fn new(is_alone: bool, slots: Option<usize>) -> Self {
        Self {
            is_alone,
            slots,
            now: BTreeMap::new(),
            requested: Vec::new(),
            moved: Vec::new(),
            edited: Vec::new(),
            made: BTreeSet::new(),
            release: None,
            runs_since: None,
            stopped_late: None,
            not_started_again: Vec::new(),
            writers: BTreeMap::new(),
            zones: Zones::default(),
            mixed: Mixed::default(),
            found: Vec::new(),
        }
    }

    /// Checks a controller's write, and records every write.
    fn follow(&mut self, change: &Change) {
        if change.author == "person" {
            self.edited.push(change.name.clone());
        }
        let before = change.before.as_ref().map(|object| &object.value);
        let is_held = |worker: &Value| has_finalizer(worker, FINALIZER);
        if change.author == "person" && change.kind == &WORKER && !is_held(&change.after.value) {
            self.release = Some(change.at);
        }
        let after = (!change.is_deleted).then_some(&change.after.value);
        self.started_again(change.at);
        if is_controller(change.author) {
            let count = self.found.len();
            self.check(change, before, after);
            for found in &mut self.found[count..] {
                *found = format!("#{} by {}: {found}", change.revision, change.author);
            }
        }
        if change.author == "gardenlet" && change.kind == &MACHINE && change.is_deleted {
            self.moved.push((change.kind.kind, change.name.clone()));
        }
        self.keep(change);
        self.follow_zone(change);
        self.follow_mixed(change);
    }

    /// Records the new object and the requested version.
    fn keep(&mut self, change: &Change) {
        let key = (change.kind.kind, change.name.clone());
        if change.is_deleted {
            self.now.remove(&key)
        } else {
            self.now.insert(key, Arc::clone(&change.after))
        };
        if change.kind == &DEPLOYMENT {
            let runs = !change.is_deleted && change.after.value["spec"]["replicas"] != 0;
            self.runs_since = runs.then(|| self.runs_since.unwrap_or(change.at));
            if runs || change.is_deleted {
                self.stopped_late = None;
            }
        }
        if [&WORKER, &CLUSTER].contains(&change.kind) {
            self.request(change);
        }
    }

    /// Records the newly requested version.
    fn request(&mut self, change: &Change) {
        let Some(worker) = self.of(&WORKER).next().cloned() else { return };
        let Some(cluster) = self.of(&CLUSTER).next().cloned() else { return };
        let secrets: Vec<_> = self.of(&SECRET).cloned().collect();
        let operation = worker.value["metadata"]["annotations"]["gardener.cloud/operation"].as_str();
        let moves = operation == Some("migrate");
        let last = &worker.value["status"]["lastOperation"];
        if last["type"] == "Restore" && (operation.is_none() || last["state"] == "Succeeded") {
            self.moved.clear();
        }
        if let Some(last) = self.requested.last_mut() {
            last.until = Some(change.at);
        }
        self.carry_over(&worker.value, &cluster, &secrets);
        let requested = Requested {
            until: None,
            expected: expected(&worker.value, &cluster.value, secrets.iter().map(|secret| &secret.value)),
            hibernates: cluster.value["spec"]["shoot"]["spec"]["hibernation"]["enabled"] == true,
            is_deleted: is_vanishing(&worker.value),
            shoot_is_deleted: is_vanishing(&cluster.value["spec"]["shoot"]),
            is_forced: cluster.value["spec"]["shoot"]["metadata"]["annotations"][FORCED] == "true",
            moves: moves || operation == Some("restore") || operation == Some("wait-for-state"),
            worker,
            cluster,
        };
        self.requested.push(requested);
        self.requested.retain(|requested| requested.until.is_none_or(|until| until + ON_ITS_WAY >= change.at));
    }

    /// An earlier request may be fulfilled with dependencies recorded only now, or with images that the CloudProfile
    /// only now contains.
    fn carry_over(&mut self, now: &Value, cluster: &Arc<Object>, secrets: &[Arc<Object>]) {
        let Some(last) = self.requested.last() else { return };
        let is_recorded = recorded(&last.worker.value) != recorded(now);
        let has_images = machine_images(&last.cluster.value) != machine_images(&cluster.value);
        if !is_recorded && !has_images {
            return;
        }
        let carried = self.requested.iter().map(|requested| {
            let mut worker = requested.worker.value.clone();
            if is_recorded {
                worker["status"]["providerStatus"] = now["status"]["providerStatus"].clone();
            }
            let cluster = if has_images { cluster } else { &requested.cluster };
            let expected = expected(&worker, &cluster.value, secrets.iter().map(|secret| &secret.value));
            Requested { cluster: Arc::clone(cluster), expected, ..requested.clone() }
        });
        let carried: Vec<Requested> =
            carried.filter(|carried| !self.is_requested(|requested| requested.expected == carried.expected)).collect();
        self.requested.extend(carried);
    }

    fn of(&self, kind: &Kind) -> impl Iterator<Item = &Arc<Object>> {
        let kind = kind.kind;
        self.now.range((kind, String::new())..).take_while(move |((of, _), _)| *of == kind).map(|(_, object)| object)
    }

    fn get(&self, kind: &Kind, name: &str) -> Option<&Value> {
        self.now.get(&(kind.kind, name.to_owned())).map(|object| &object.value)
    }

    fn check(&mut self, change: &Change, before: Option<&Value>, after: Option<&Value>) {
        self.requested.retain(|requested| requested.until.is_none_or(|until| until + ON_ITS_WAY >= change.at));
        self.release = self.release.filter(|at| *at + ON_ITS_WAY >= change.at);
        match change.kind.kind {
            "MachineDeployment" => {
                self.deployment(change, before, after);
                self.writers.insert(change.name.clone(), change.author);
            }
            "MachineClass" | "Secret" => self.class_or_secret(change, before, after),
            "Worker" => self.worker(change.author, before, after),
            "Deployment" => self.machine_controller(change, before, after),
            "Event" | "Lease" | "Pod" => {}
            "MachineSet" | "Machine" => self.machine_object(change, before),
            other => self.found.push(format!("{other} {} is written", change.name)),
        }
        if ["Worker", "Event"].contains(&change.kind.kind)
            && let Some(raw) = RAW.iter().find(|raw| change.after.text().contains(**raw))
        {
            self.found.push(format!("{} {} says {raw:?}, which is for programmers", change.kind.kind, change.name));
        }
        if change.kind != &SECRET
            && let Some(Err(leak)) = after.map(|_| leaks::ensure_no_secrets(&change.name, change.after.text()))
        {
            self.found.push(leak.to_string());
        }
    }

    /// Controllers may only create machine objects to restore them after a move. Only machine-controller-manager
    /// deletes them, except for machine sets that it ignores because no deployment can adopt them.
    fn machine_object(&mut self, change: &Change, before: Option<&Value>) {
        let (kind, name) = (change.kind.kind, change.name.as_str());
        if begins_to_vanish(before, (!change.is_deleted).then_some(&change.after.value)) {
            match before {
                Some(set) if change.kind == &MACHINE_SET => {
                    if let Some(why) = self.why_it_stays(set) {
                        self.found.push(format!("{kind} {name} is deleted: {why}"));
                    }
                }
                _ => self.found.push(format!("{kind} {name} is deleted")),
            }
        }
        if before.is_none() && !self.is_requested(|requested| requested.moves) {
            self.found.push(format!("{kind} {name} is made, and nothing has moved here"));
        }
        if before.is_none() {
            self.held(&format!("{kind} {name}"));
        }
    }

    /// Why a controller must not delete a machine set.
    fn why_it_stays(&self, set: &Value) -> Option<&'static str> {
        let deployment = of_deployment(set);
        let has_machines = machines_of(self, deployment) > 0;
        let is_deleted_with_shoot = self.is_requested(|requested| requested.is_deleted);
        let is_held = set["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
        if is_owned(set) {
            Some("it goes with its owner")
        } else if !is_deleted_with_shoot && self.get(&MACHINE_DEPLOYMENT, deployment).is_some() {
            Some("its deployment is there")
        } else if has_machines && !(is_deleted_with_shoot && is_held) {
            Some("it has machines")
        } else if !is_deleted_with_shoot && !self.is_requested(|requested| !requested.requests(deployment)) {
            Some("its deployment is wanted")
        } else {
            None
        }
    }

    fn is_edited(&self, name: &str) -> bool {
        self.edited.iter().any(|edited| edited == name)
    }

    /// Whether two independent controllers can disagree about a class, because one has not yet observed that it is
    /// needed again, or no longer needed.
    fn is_disputed(&self, class: &str) -> bool {
        let requests =
            |requested: &Requested| requested.expected.deployments.values().any(|expected| expected.class == class);
        !self.is_alone && self.is_requested(|requested| !requests(requested)) && self.is_requested(requests)
    }

    /// Whether a version that is or was recently current satisfies the condition.
    fn is_requested(&self, requires: impl Fn(&Requested) -> bool) -> bool {
        self.requested.iter().any(requires)
    }

    fn deployment(&mut self, change: &Change, before: Option<&Value>, after: Option<&Value>) {
        let name = change.name.as_str();
        if let Some(before) = before
            && begins_to_vanish(Some(before), after)
            && !self
                .is_requested(|requested| requested.is_deleted || requested.moves || requested.releases(name, before))
        {
            self.found.push(format!("MachineDeployment {name} is deleted, which is wanted"));
        }
        let Some(after) = after else { return };
        let class = class_of(after);
        let is_new_class = before.is_none_or(|before| class_of(before) != class);
        match self.get(&MACHINE_CLASS, class) {
            _ if !is_new_class || self.is_disputed(class) => {}
            None => self.found.push(format!("MachineDeployment {name} refers to class {class}, which is not there")),
            Some(document) => {
                let secret = document["secretRef"]["name"].as_str().unwrap_or_default().to_owned();
                if self.get(&SECRET, &secret).is_none() {
                    self.found.push(format!("MachineDeployment {name} needs Secret {secret}, which is not there"));
                }
            }
        }
        self.pause(name, before, after, change.at);
        match before {
            None => self.new_deployment(name, after),
            Some(before) => {
                self.template(name, before, after);
                self.key(name, before, after);
                self.order(name, before, after, change.at);
                self.slot(name, before, after);
                self.stop(name, before, after);
                self.replicas(name, &before["spec"]["replicas"], &after["spec"]["replicas"]);
            }
        }
    }

    fn new_deployment(&mut self, name: &str, after: &Value) {
        self.held(&format!("MachineDeployment {name}"));
        let replicas = after["spec"]["replicas"].as_i64().unwrap_or_default();
        let is_right = |requested: &Requested| {
            requested.expected.get(name).is_some_and(|expected| match (requested.hibernates, requested.moves) {
                (true, false) => replicas == 0,
                (_, true) => replicas <= expected.maximum,
                _ => replicas == expected.minimum,
            })
        };
        let is_hibernated = replicas == 0 && self.is_requested(|requested| requested.hibernates);
        if !is_hibernated && !self.is_requested(is_right) {
            self.found.push(format!("MachineDeployment {name} begins with {replicas} replicas"));
        }
    }

    /// Checks a change of the template, which makes machine-controller-manager replace machines.
    fn template(&mut self, name: &str, before: &Value, after: &Value) {
        let facts = |deployment: &Value| {
            let template = &deployment["spec"]["template"];
            (template["metadata"].clone(), template["spec"]["class"]["name"].clone())
        };
        if facts(before) == facts(after) {
            return;
        }
        let (old, new) = (class_of(before), class_of(after));
        let causes = |requested: &Requested| {
            requested.expected.get(name).is_some_and(|expected| expected.class == new && expected.class != old)
        };
        if !self.is_requested(causes) && !self.is_edited(name) {
            self.found.push(format!("MachineDeployment {name} rolls from {old} to {new} without a cause"));
        }
    }

    fn replicas(&mut self, name: &str, before: &Value, after: &Value) {
        let [from, to] = [before, after].map(|number| number.as_i64().unwrap_or_default());
        let causes = |requested: &Requested| {
            let Some(expected) = requested.expected.get(name) else { return false };
            match requested.hibernates {
                true => to == 0,
                false => {
                    from < expected.minimum && to == expected.minimum
                        || from > expected.maximum && to == expected.maximum
                }
            }
        };
        // The Cluster may already request hibernation while an older Worker still needs the machine deployment.
        let is_hibernated = to == 0
            && self.is_requested(|requested| requested.hibernates)
            && self.is_requested(|requested| requested.requests(name));
        if from != to && !is_hibernated && !self.is_requested(causes) {
            self.found.push(format!("MachineDeployment {name} gets {to} replicas after {from}"));
        }
    }

    fn class_or_secret(&mut self, change: &Change, before: Option<&Value>, after: Option<&Value>) {
        let (kind, name) = (change.kind.kind, change.name.as_str());
        // A user may have removed the label of a class Secret, which is still deleted.
        let is_ours = self.made.contains(name) || [before, after].into_iter().flatten().any(is_of_class);
        if change.kind == &SECRET && !is_ours {
            self.found.push(format!("{kind} {name} is written, which is somebody else's"));
            return;
        }
        if change.kind == &SECRET && before.is_none() {
            self.made.insert(name.to_owned());
        }
        if begins_to_vanish(before, after) && !self.is_disputed(name) {
            // A set without machines needs no class while machine-controller-manager is stopped. The deletion may be
            // based on a read before it started.
            let runs = |set: &Value| {
                let ran = self.runs_since.is_some_and(|since| since + ON_ITS_WAY < change.at);
                ran || self.runs_since.is_some() && set["spec"]["replicas"] != 0
            };
            // It is deleted without machines, as soon as its finalizers are removed.
            let needs_nothing = |deployment: &Value| {
                self.runs_since.is_none() && is_vanishing(deployment) && deployment["spec"]["replicas"] == 0
            };
            let user = self.now.iter().find(|((kind, _), object)| match *kind {
                "MachineDeployment" => class_of(&object.value) == name && !needs_nothing(&object.value),
                "MachineSet" => runs(&object.value) && class_of(&object.value) == name,
                "Machine" => object.value["spec"]["class"]["name"] == name,
                _ => false,
            });
            if let Some(((user, of), _)) = user {
                self.found.push(format!("{kind} {name} is deleted although {user} {of} needs it"));
            }
        }
        if before.is_none() {
            self.held(&format!("{kind} {name}"));
        }
        // The record must exist first, so that a process can find the resource after a crash.
        if self.is_alone
            && before.is_none()
            && let Some(dependency) = after.and_then(of_class)
            && !self.of(&WORKER).any(|worker| recorded(&worker.value).contains(&dependency))
        {
            self.found.push(format!("{kind} {name} refers to {dependency}, which is not recorded"));
        }
        let [old, new] = [before, after].map(|object| object.map(|object| &object["providerSpec"]));
        let is_required = |new: &Value| {
            let same =
                |expected: &crate::expected::TargetDeployment| expected.class == name && expected.provider_spec == *new;
            self.is_requested(|requested| requested.expected.deployments.values().any(same))
        };
        if let (Some(old), Some(new)) = (old, new)
            && old != new
            && !is_required(new)
        {
            self.found.push(format!("{kind} {name} changes"));
        }
    }

    fn worker(&mut self, author: &str, before: Option<&Value>, after: Option<&Value>) {
        let (Some(before), Some(now)) = (before, after.or(before)) else { return };
        let loses_finalizer =
            has_finalizer(before, FINALIZER) && after.is_none_or(|after| !has_finalizer(after, FINALIZER));
        let operation = &before["metadata"]["annotations"]["gardener.cloud/operation"];
        if loses_finalizer && *operation != "migrate" {
            let left: Vec<String> = self.machine_objects();
            if !left.is_empty() && !self.is_requested(|requested| requested.is_forced) {
                self.found.push(format!("the Worker's finalizer goes before {}", left.join(", ")));
            }
            if !is_vanishing(before) {
                self.found.push("the finalizer of a Worker goes that nobody deletes".to_owned());
            }
        }
        if before["spec"] != now["spec"] || !are_labels_kept(before, now) {
            self.found.push("the Worker's spec or labels are written".to_owned());
        }
        let succeeds = |worker: &Value| worker["status"]["lastOperation"]["state"] == "Succeeded";
        if !succeeds(before) && succeeds(now) && now["status"]["lastOperation"]["type"] != "Delete" {
            self.success(author, now);
        }
    }

    /// A success must reflect some requested version. Of two controllers that both act as leaders, the other may have
    /// written for another version since.
    fn success(&mut self, author: &str, worker: &Value) {
        if worker["status"]["lastOperation"]["type"] == "Migrate" {
            return;
        }
        self.success_while_paused();
        // The controller has read this version of the Worker, so it must have noticed the missing finalizer.
        if !has_finalizer(worker, FINALIZER) {
            self.found.push("the Worker is told to have succeeded, and no finalizer holds it".to_owned());
        }
        let is_there = |(name, expected): (&String, &crate::expected::TargetDeployment)| {
            let is_of_another = !self.is_alone && self.writers.get(name).is_some_and(|writer| *writer != author);
            self.is_edited(name)
                || is_of_another
                || self.get(&MACHINE_DEPLOYMENT, name).is_some_and(|live| {
                    class_of(live) == expected.class || self.may_be_held(live, expected.key.as_deref())
                })
        };
        let is_done = |requested: &Requested| {
            requested.expected.unplanned.is_empty() && requested.expected.deployments.iter().all(is_there)
        };
        if !self.is_requested(is_done) {
            self.found
                .push("the Worker is told to have succeeded, and its machine deployments are not as wanted".to_owned());
        }
    }

    fn machine_objects(&self) -> Vec<String> {
        let is_one = |kind: &str, object: &Object| match kind {
            "Secret" => is_of_class(&object.value),
            "MachineDeployment" | "MachineSet" | "Machine" | "MachineClass" => true,
            _ => false,
        };
        let left = self.now.iter().filter(|((kind, _), object)| is_one(kind, object));
        left.map(|((kind, name), _)| format!("{kind} {name}")).collect()
    }

    /// Machine objects may only be created while the Worker has its finalizer, or they would be orphaned with it.
    fn held(&mut self, what: &str) {
        let is_held = self.of(&WORKER).any(|worker| has_finalizer(&worker.value, FINALIZER));
        // Writes that were in transit when a user removed the finalizer may still arrive.
        if !is_held && self.release.is_none() {
            self.found.push(format!("{what} comes without the Worker's finalizer"));
        }
    }
}

fn machines_of(rules: &Rules, deployment: &str) -> i64 {
    let own = rules.of(&MACHINE).filter(|machine| of_deployment(&machine.value) == deployment);
    i64::try_from(own.count()).unwrap_or(i64::MAX)
}

/// The deployment of a machine set or machine, from its label.
fn of_deployment(object: &Value) -> &str {
    object["metadata"]["labels"]["name"].as_str().unwrap_or_default()
}

fn is_owned(object: &Value) -> bool {
    object["metadata"]["ownerReferences"].as_array().is_some_and(|owners| !owners.is_empty())
}

fn begins_to_vanish(before: Option<&Value>, after: Option<&Value>) -> bool {
    before.is_some_and(|before| !is_vanishing(before)) && after.is_none_or(is_vanishing)
}

/// The class in the template of a deployment or set.
fn class_of(object: &Value) -> &str {
    object["spec"]["template"]["spec"]["class"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn is_of_class(secret: &Value) -> bool {
    secret["metadata"]["labels"]["gardener.cloud/purpose"] == "machineclass"
}

/// Whether a controller has kept the labels of a Worker. It may only remove the shard labels of a drained one.
fn are_labels_kept(before: &Value, now: &Value) -> bool {
    let mut kept = before["metadata"]["labels"].clone();
    let has_released = now["metadata"]["labels"][SHARD].is_null();
    if let Some(labels) = kept.as_object_mut().filter(|labels| has_released && labels.contains_key(DRAIN)) {
        [SHARD, DRAIN].iter().for_each(|label| drop(labels.remove(*label)));
    }
    let labels = |labels: &Value| labels.as_object().cloned().unwrap_or_default();
    labels(&kept) == labels(&now["metadata"]["labels"])
}
