//! What must hold at every moment, checked over everything that was written in a life, in its order. What the controller writes has to
//! have a cause: a version of the Worker that stood within the last minutes, because a write may have been on its way for so long.

mod leftovers;
mod machine_controller;

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
use crate::gardenlet::FORCED;
use crate::sharder::{DRAIN, SHARD};
use crate::trace::Trace;
use crate::wanted::{Wanted, machine_images, wanted};
pub(crate) use leftovers::leftovers;
use machine_controller::LateStop;

/// How long ago a Worker may have stood that somebody still writes for: a request, its tries, and a reconcile around them.
pub(crate) const ON_ITS_WAY: SignedDuration = SignedDuration::from_secs(150);
/// What holds a Worker until everything of it has gone.
pub(crate) const FINALIZER: &str = "extensions.gardener.cloud/worker";
/// The label of a deployment that has its pool.
const POOL: &str = "worker.gardener.cloud/pool";
/// What texts for people must not hold: how the client prints its errors, and a page that counts as "not found" of Kubernetes.
const RAW: &[&str] = &[
    "ApiError",
    "ServiceError",
    "HyperError",
    "Status {",
    "Some(",
    "Failed to parse",
    "API server answers 404: <html",
];

/// What a Worker and its Cluster asked for from a moment on.
#[derive(Clone)]
struct Asked {
    until: Option<Timestamp>,
    worker: Arc<Object>,
    cluster: Arc<Object>,
    wanted: Arc<Wanted>,
    hibernates: bool,
    is_deleted: bool,
    /// The shoot is deleted, though perhaps not yet the Worker.
    shoot_is_deleted: bool,
    /// And that by force.
    is_forced: bool,
    moves: bool,
}

impl Asked {
    fn wants(&self, deployment: &str) -> bool {
        self.wanted.deployments.contains_key(deployment)
    }

    /// Whether a deployment, as it is, is of no pool.
    fn lets_go(&self, name: &str, deployment: &Value) -> bool {
        let pool = deployment["metadata"]["labels"][POOL].as_str().unwrap_or_default();
        !self.wants(name) && !self.wanted.unplanned.contains(pool)
    }
}

/// What has been written until now, what was asked for, and which rules were broken.
struct Rules {
    /// Whether only one controller believes that it leads.
    is_alone: bool,
    now: BTreeMap<(&'static str, String), Arc<Object>>,
    asked: Vec<Asked>,
    /// Machines that were there when the shoot moved away.
    moved: Vec<(&'static str, String)>,
    /// Names of what a person has written.
    edited: Vec<String>,
    /// Secrets of classes that a controller has made.
    made: BTreeSet<String>,
    /// When a person has taken the Worker's finalizer off.
    let_go: Option<Timestamp>,
    /// When machine-controller-manager has begun to run; nothing while it does not.
    runs_since: Option<Timestamp>,
    /// It was stopped too late: whoever has done that has to start it again.
    stopped_late: Option<LateStop>,
    not_started_again: Vec<LateStop>,
    /// Which controller has written a machine deployment last.
    writers: BTreeMap<String, &'static str>,
    found: Vec<String>,
}

/// Every way in which a rule was broken. `is_alone`: only one controller believes that it leads.
pub(crate) fn violations(log: &[Change], is_alone: bool, trace: &Trace) -> Vec<String> {
    let mut rules = Rules::new(is_alone);
    log.iter().for_each(|change| rules.follow(change));
    let mut found = rules.found;
    found.extend(rules.not_started_again.iter().filter_map(|stop| stop.found(trace)));
    found
}

fn is_controller(author: &str) -> bool {
    author.starts_with("controller")
}

impl Rules {
    fn new(is_alone: bool) -> Self {
        Self {
            is_alone,
            now: BTreeMap::new(),
            asked: Vec::new(),
            moved: Vec::new(),
            edited: Vec::new(),
            made: BTreeSet::new(),
            let_go: None,
            runs_since: None,
            stopped_late: None,
            not_started_again: Vec::new(),
            writers: BTreeMap::new(),
            found: Vec::new(),
        }
    }

    /// Checks a write of a controller, and keeps every write.
    fn follow(&mut self, change: &Change) {
        if change.author == "person" {
            self.edited.push(change.name.clone());
        }
        let before = change.before.as_ref().map(|object| &object.value);
        let is_held = |worker: &Value| has_finalizer(worker, FINALIZER);
        if change.author == "person" && change.kind == &WORKER && !is_held(&change.after.value) {
            self.let_go = Some(change.at);
        }
        let after = (!change.is_gone).then_some(&change.after.value);
        self.started_again(change.at);
        if is_controller(change.author) {
            let count = self.found.len();
            self.check(change, before, after);
            for found in &mut self.found[count..] {
                *found = format!("#{} by {}: {found}", change.revision, change.author);
            }
        }
        if change.author == "gardenlet" && change.kind == &MACHINE && change.is_gone {
            self.moved.push((change.kind.kind, change.name.clone()));
        }
        self.keep(change);
    }

    /// Keeps what stands from now on, and what is asked for.
    fn keep(&mut self, change: &Change) {
        let key = (change.kind.kind, change.name.clone());
        if change.is_gone {
            self.now.remove(&key)
        } else {
            self.now.insert(key, Arc::clone(&change.after))
        };
        if change.kind == &DEPLOYMENT {
            let runs = !change.is_gone && change.after.value["spec"]["replicas"] != 0;
            self.runs_since = runs.then(|| self.runs_since.unwrap_or(change.at));
            self.stopped_late = self.stopped_late.filter(|_| !runs && !change.is_gone);
        }
        if [&WORKER, &CLUSTER].contains(&change.kind) {
            self.ask(change);
        }
    }

    /// Takes down what is asked for from now on.
    fn ask(&mut self, change: &Change) {
        let Some(worker) = self.of(&WORKER).next().cloned() else { return };
        let Some(cluster) = self.of(&CLUSTER).next().cloned() else { return };
        let secrets: Vec<_> = self.of(&SECRET).cloned().collect();
        let operation = worker.value["metadata"]["annotations"]["gardener.cloud/operation"].as_str();
        let moves = operation == Some("migrate");
        let last = &worker.value["status"]["lastOperation"];
        if last["type"] == "Restore" && (operation.is_none() || last["state"] == "Succeeded") {
            self.moved.clear();
        }
        if let Some(last) = self.asked.last_mut() {
            last.until = Some(change.at);
        }
        self.carry_over(&worker.value, &cluster, &secrets);
        let asked = Asked {
            until: None,
            wanted: wanted(&worker.value, &cluster.value, secrets.iter().map(|secret| &secret.value)),
            hibernates: cluster.value["spec"]["shoot"]["spec"]["hibernation"]["enabled"] == true,
            is_deleted: is_vanishing(&worker.value),
            shoot_is_deleted: is_vanishing(&cluster.value["spec"]["shoot"]),
            is_forced: cluster.value["spec"]["shoot"]["metadata"]["annotations"][FORCED] == "true",
            moves: moves || operation == Some("restore") || operation == Some("wait-for-state"),
            worker,
            cluster,
        };
        self.asked.push(asked);
        self.asked.retain(|asked| asked.until.is_none_or(|until| until + ON_ITS_WAY >= change.at));
    }

    /// What was asked for before may be done with what is recorded only now, or with images that only now the CloudProfile has.
    fn carry_over(&mut self, now: &Value, cluster: &Arc<Object>, secrets: &[Arc<Object>]) {
        let Some(last) = self.asked.last() else { return };
        let is_recorded = recorded(&last.worker.value) != recorded(now);
        let has_images = machine_images(&last.cluster.value) != machine_images(&cluster.value);
        if !is_recorded && !has_images {
            return;
        }
        let carried = self.asked.iter().map(|asked| {
            let mut worker = asked.worker.value.clone();
            if is_recorded {
                worker["status"]["providerStatus"] = now["status"]["providerStatus"].clone();
            }
            let cluster = if has_images { cluster } else { &asked.cluster };
            let wanted = wanted(&worker, &cluster.value, secrets.iter().map(|secret| &secret.value));
            Asked { cluster: Arc::clone(cluster), wanted, ..asked.clone() }
        });
        let carried: Vec<Asked> =
            carried.filter(|carried| !self.is_asked(|asked| asked.wanted == carried.wanted)).collect();
        self.asked.extend(carried);
    }

    fn of(&self, kind: &Kind) -> impl Iterator<Item = &Arc<Object>> {
        let kind = kind.kind;
        self.now.range((kind, String::new())..).take_while(move |((of, _), _)| *of == kind).map(|(_, object)| object)
    }

    fn get(&self, kind: &Kind, name: &str) -> Option<&Value> {
        self.now.get(&(kind.kind, name.to_owned())).map(|object| &object.value)
    }

    fn check(&mut self, change: &Change, before: Option<&Value>, after: Option<&Value>) {
        self.asked.retain(|asked| asked.until.is_none_or(|until| until + ON_ITS_WAY >= change.at));
        self.let_go = self.let_go.filter(|at| *at + ON_ITS_WAY >= change.at);
        match change.kind.kind {
            "MachineDeployment" => {
                self.deployment(&change.name, before, after);
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
            && let Some(Err(leak)) = after.map(|_| leaks::nothing_in(&change.name, change.after.text()))
        {
            self.found.push(leak.to_string());
        }
    }

    /// Only what has moved here is made. Deletions are for machine-controller-manager, but for machine sets that it leaves alone because no
    /// deployment is there that could take them up.
    fn machine_object(&mut self, change: &Change, before: Option<&Value>) {
        let (kind, name) = (change.kind.kind, change.name.as_str());
        if begins_to_vanish(before, (!change.is_gone).then_some(&change.after.value)) {
            let set = before.filter(|_| change.kind == &MACHINE_SET);
            match set.map(|set| self.why_it_stays(set)) {
                Some(None) => {}
                Some(Some(why)) => self.found.push(format!("{kind} {name} is deleted: {why}")),
                None => self.found.push(format!("{kind} {name} is deleted")),
            }
        }
        if before.is_none() && !self.is_asked(|asked| asked.moves) {
            self.found.push(format!("{kind} {name} is made, and nothing has moved here"));
        }
        if before.is_none() {
            self.held(&format!("{kind} {name}"));
        }
    }

    /// Why a machine set may not be deleted by a controller.
    fn why_it_stays(&self, set: &Value) -> Option<&'static str> {
        let deployment = of_deployment(set);
        let has_machines = machines_of(self, deployment) > 0;
        let goes_with_shoot = self.is_asked(|asked| asked.is_deleted);
        let is_held = set["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
        if is_owned(set) {
            Some("it goes with its owner")
        } else if !goes_with_shoot && self.get(&MACHINE_DEPLOYMENT, deployment).is_some() {
            Some("its deployment is there")
        } else if has_machines && !(goes_with_shoot && is_held) {
            Some("it has machines")
        } else if !goes_with_shoot && !self.is_asked(|asked| !asked.wants(deployment)) {
            Some("its deployment is wanted")
        } else {
            None
        }
    }

    fn is_edited(&self, name: &str) -> bool {
        self.edited.iter().any(|edited| edited == name)
    }

    /// Whether two controllers that know nothing of each other may see it in two ways: one has not seen yet that a class is wanted
    /// again, or not wanted any more.
    fn is_disputed(&self, class: &str) -> bool {
        let wants = |asked: &Asked| asked.wanted.deployments.values().any(|wanted| wanted.class == class);
        !self.is_alone && self.is_asked(|asked| !wants(asked)) && self.is_asked(wants)
    }

    /// Whether some version that stands or has stood until lately asks for this.
    fn is_asked(&self, asks: impl Fn(&Asked) -> bool) -> bool {
        self.asked.iter().any(asks)
    }

    fn deployment(&mut self, name: &str, before: Option<&Value>, after: Option<&Value>) {
        if let Some(before) = before.filter(|_| begins_to_vanish(before, after))
            && !self.is_asked(|asked| asked.is_deleted || asked.moves || asked.lets_go(name, before))
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
        match before {
            None => self.new_deployment(name, after),
            Some(before) => {
                self.template(name, before, after);
                self.replicas(name, &before["spec"]["replicas"], &after["spec"]["replicas"]);
            }
        }
    }

    fn new_deployment(&mut self, name: &str, after: &Value) {
        self.held(&format!("MachineDeployment {name}"));
        let replicas = after["spec"]["replicas"].as_i64().unwrap_or_default();
        let is_right = |asked: &Asked| {
            asked.wanted.get(name).is_some_and(|wanted| match (asked.hibernates, asked.moves) {
                (true, false) => replicas == 0,
                (_, true) => replicas <= wanted.maximum,
                _ => replicas == wanted.minimum,
            })
        };
        let is_hibernated = replicas == 0 && self.is_asked(|asked| asked.hibernates);
        if !is_hibernated && !self.is_asked(is_right) {
            self.found.push(format!("MachineDeployment {name} begins with {replicas} replicas"));
        }
    }

    /// What makes machine-controller-manager replace machines.
    fn template(&mut self, name: &str, before: &Value, after: &Value) {
        let facts = |deployment: &Value| {
            let template = &deployment["spec"]["template"];
            (template["metadata"].clone(), template["spec"]["class"]["name"].clone())
        };
        if facts(before) == facts(after) {
            return;
        }
        let (old, new) = (class_of(before), class_of(after));
        let causes =
            |asked: &Asked| asked.wanted.get(name).is_some_and(|wanted| wanted.class == new && wanted.class != old);
        if !self.is_asked(causes) && !self.is_edited(name) {
            self.found.push(format!("MachineDeployment {name} rolls from {old} to {new} without a cause"));
        }
    }

    fn replicas(&mut self, name: &str, before: &Value, after: &Value) {
        let [from, to] = [before, after].map(|number| number.as_i64().unwrap_or_default());
        let causes = |asked: &Asked| {
            let Some(wanted) = asked.wanted.get(name) else { return false };
            match asked.hibernates {
                true => to == 0,
                false => from < wanted.minimum && to == wanted.minimum || from > wanted.maximum && to == wanted.maximum,
            }
        };
        // The Cluster says that the shoot is to be hibernated, and an older Worker may still want the machine deployment.
        let is_hibernated =
            to == 0 && self.is_asked(|asked| asked.hibernates) && self.is_asked(|asked| asked.wants(name));
        if from != to && !is_hibernated && !self.is_asked(causes) {
            self.found.push(format!("MachineDeployment {name} gets {to} replicas after {from}"));
        }
    }

    fn class_or_secret(&mut self, change: &Change, before: Option<&Value>, after: Option<&Value>) {
        let (kind, name) = (change.kind.kind, change.name.as_str());
        // A person may take the label off a Secret that was made here; it is deleted all the same.
        let is_ours = self.made.contains(name) || [before, after].into_iter().flatten().any(is_of_class);
        if change.kind == &SECRET && !is_ours {
            self.found.push(format!("{kind} {name} is written, which is somebody else's"));
            return;
        }
        if change.kind == &SECRET && before.is_none() {
            self.made.insert(name.to_owned());
        }
        if begins_to_vanish(before, after) && !self.is_disputed(name) {
            // One without machines needs nothing when nobody makes any; who deletes may have seen that before somebody began to.
            let runs = |set: &Value| {
                let ran = self.runs_since.is_some_and(|since| since + ON_ITS_WAY < change.at);
                ran || self.runs_since.is_some() && set["spec"]["replicas"] != 0
            };
            // It goes without machines, and as soon as somebody lets go of it.
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
        // Whoever comes after a crash has to find it.
        if let Some(dependency) = after.filter(|_| self.is_alone && before.is_none()).and_then(of_class)
            && !self.of(&WORKER).any(|worker| recorded(&worker.value).contains(&dependency))
        {
            self.found.push(format!("{kind} {name} refers to {dependency}, which is not recorded"));
        }
        let [old, new] = [before, after].map(|object| object.map(|object| &object["providerSpec"]));
        let is_wanted = |new: &Value| {
            let same = |wanted: &crate::wanted::WantedDeployment| wanted.class == name && wanted.provider_spec == *new;
            self.is_asked(|asked| asked.wanted.deployments.values().any(same))
        };
        if let (Some(old), Some(new)) = (old, new)
            && old != new
            && !is_wanted(new)
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
            if !left.is_empty() && !self.is_asked(|asked| asked.is_forced) {
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

    /// Whoever says that all is well has done it for some version that was asked for. Of two that both believe that they lead, the
    /// other may have written for another version since.
    fn success(&mut self, author: &str, worker: &Value) {
        if worker["status"]["lastOperation"]["type"] == "Migrate" {
            return;
        }
        // Whoever says so has read this version: only it may have written it.
        if !has_finalizer(worker, FINALIZER) {
            self.found.push("the Worker is told to have succeeded, and no finalizer holds it".to_owned());
        }
        let is_there = |(name, wanted): (&String, &crate::wanted::WantedDeployment)| {
            let is_of_another = !self.is_alone && self.writers.get(name).is_some_and(|writer| *writer != author);
            self.is_edited(name)
                || is_of_another
                || self.get(&MACHINE_DEPLOYMENT, name).is_some_and(|live| class_of(live) == wanted.class)
        };
        let is_done =
            |asked: &Asked| asked.wanted.unplanned.is_empty() && asked.wanted.deployments.iter().all(is_there);
        if !self.is_asked(is_done) {
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

    /// Machine objects come only when the Worker is held, or they would be forgotten with it.
    fn held(&mut self, what: &str) {
        let is_held = self.of(&WORKER).any(|worker| has_finalizer(&worker.value, FINALIZER));
        // What was on its way when a person took it off may still come.
        if !is_held && self.let_go.is_none() {
            self.found.push(format!("{what} comes without the Worker's finalizer"));
        }
    }
}

fn machines_of(rules: &Rules, deployment: &str) -> i64 {
    let own = rules.of(&MACHINE).filter(|machine| of_deployment(&machine.value) == deployment);
    i64::try_from(own.count()).unwrap_or(i64::MAX)
}

/// The deployment that a machine set or a machine is of by its label.
fn of_deployment(object: &Value) -> &str {
    object["metadata"]["labels"]["name"].as_str().unwrap_or_default()
}

fn is_owned(object: &Value) -> bool {
    object["metadata"]["ownerReferences"].as_array().is_some_and(|owners| !owners.is_empty())
}

fn begins_to_vanish(before: Option<&Value>, after: Option<&Value>) -> bool {
    before.is_some_and(|before| !is_vanishing(before)) && after.is_none_or(is_vanishing)
}

/// The class of a deployment's or set's template.
fn class_of(object: &Value) -> &str {
    object["spec"]["template"]["spec"]["class"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn is_of_class(secret: &Value) -> bool {
    secret["metadata"]["labels"]["gardener.cloud/purpose"] == "machineclass"
}

/// Whether a controller has left the labels of a Worker alone. One that is drained loses those of its shard.
fn are_labels_kept(before: &Value, now: &Value) -> bool {
    let mut kept = before["metadata"]["labels"].clone();
    let has_let_go = now["metadata"]["labels"][SHARD].is_null();
    if let Some(labels) = kept.as_object_mut().filter(|labels| has_let_go && labels.contains_key(DRAIN)) {
        [SHARD, DRAIN].iter().for_each(|label| drop(labels.remove(*label)));
    }
    let labels = |labels: &Value| labels.as_object().cloned().unwrap_or_default();
    labels(&kept) == labels(&now["metadata"]["labels"])
}
