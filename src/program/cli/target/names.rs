//! What a name can mean: a shoot, a namespace, a Worker, a pool, a machine deployment, a machine or a node.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use decisions::worker::machines::machine_objects::POOL_LABEL;
use wire::api::bounded_text::{Bound, named};

/// Label of a Machine with the name of its node.
const NODE_LABEL: &str = "node";
/// Label of a Machine with the name of its machine deployment.
const DEPLOYMENT_LABEL: &str = "name";
/// How namespaces of projects begin, in most landscapes.
const PROJECT_NAMESPACE: &str = "garden-";
/// Maximum number of meanings in an error.
const NAMED: Bound = Bound { items: 6, bytes: 1_000 };

/// A Worker, or a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct Target {
    /// The shoot namespace.
    pub(in crate::cli) namespace: String,
    /// Name of the Worker; `None` for all Workers of the namespace.
    pub(in crate::cli) worker: Option<String>,
    /// Name of the pool; `None` for all pools.
    pub(in crate::cli) pool: Option<String>,
    /// Name of the machine deployment; `None` for all of the pool.
    pub(in crate::cli) deployment: Option<String>,
    /// Name of the machine; `None` for all of the machine deployment.
    pub(in crate::cli) machine: Option<String>,
}

impl Target {
    /// All Workers of a namespace.
    pub(super) fn namespace(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..Self::default() }
    }

    /// Whether a Worker is the target, or the target is a part of it.
    pub(super) fn includes(&self, namespace: &str, name: &str) -> bool {
        self.namespace == namespace && self.worker.as_ref().is_none_or(|worker| worker == name)
    }
}

/// The kinds of named objects. Of several meanings, those of the first kind count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NameKind {
    Worker,
    Pool,
    MachineDeployment,
    Machine,
    Node,
}

impl NameKind {
    fn word(self) -> &'static str {
        match self {
            Self::Worker => "Worker",
            Self::Pool => "pool",
            Self::MachineDeployment => "machine deployment",
            Self::Machine => "machine",
            Self::Node => "node",
        }
    }
}

/// An object with a name.
#[derive(Debug)]
struct NamedObject {
    kind: NameKind,
    name: String,
    target: Target,
    /// Project and name of the shoot, for Workers whose Cluster is known.
    shoot: Option<(String, String)>,
}

impl fmt::Display for NamedObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shoot {
            Some((project, shoot)) => write!(formatter, "Shoot {project}/{shoot}"),
            None if self.name.is_empty() => write!(formatter, "namespace {}", self.target.namespace),
            None => write!(formatter, "{} {}/{}", self.kind.word(), self.target.namespace, self.name),
        }
    }
}

/// The meanings of a name.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) enum Meaning {
    One(Target),
    /// Several objects of the same kind, in words.
    Several(Vec<String>),
    None,
}

/// The names of known objects.
#[derive(Debug, Default)]
pub(in crate::cli) struct NameIndex {
    objects: Vec<NamedObject>,
}

impl NameIndex {
    /// Adds an object with its kind; objects of other kinds have no names here.
    pub(in crate::cli) fn add(&mut self, object: &Value) {
        match object["kind"].as_str().unwrap_or_default() {
            "Worker" => self.add_worker(object),
            "Cluster" => self.add_cluster(object),
            "MachineDeployment" => self.add_deployment(object),
            "Machine" => self.add_machine(object),
            _ => {}
        }
    }

    fn push(&mut self, kind: NameKind, name: &str, target: Target) {
        self.objects.push(NamedObject { kind, name: name.to_owned(), target, shoot: None });
    }

    fn add_worker(&mut self, worker: &Value) {
        let [namespace, name] = key(worker);
        let target = Target { worker: Some(name.to_owned()), ..Target::namespace(namespace) };
        self.push(NameKind::Worker, name, target.clone());
        let pools = worker["spec"]["pools"].as_array().into_iter().flatten();
        for pool in pools.filter_map(|pool| pool["name"].as_str()) {
            self.push(NameKind::Pool, pool, Target { pool: Some(pool.to_owned()), ..target.clone() });
        }
    }

    fn add_cluster(&mut self, cluster: &Value) {
        let [_, namespace] = key(cluster);
        let [project, shoot] = key(&cluster["spec"]["shoot"]);
        if !shoot.is_empty() {
            let target = Target::namespace(namespace);
            let shoot = Some((project.to_owned(), shoot.to_owned()));
            self.objects.push(NamedObject { kind: NameKind::Worker, name: String::new(), target, shoot });
        }
    }

    fn add_deployment(&mut self, deployment: &Value) {
        let [namespace, name] = key(deployment);
        let pool = deployment["metadata"]["labels"][POOL_LABEL].as_str().map(str::to_owned);
        if let Some(pool) = &pool {
            let target = Target { pool: Some(pool.clone()), ..Target::namespace(namespace) };
            self.push(NameKind::Pool, pool, target);
        }
        let target = Target { pool, deployment: Some(name.to_owned()), ..Target::namespace(namespace) };
        self.push(NameKind::MachineDeployment, name, target);
    }

    fn add_machine(&mut self, machine: &Value) {
        let [namespace, name] = key(machine);
        let label = |label: &str| machine["metadata"]["labels"][label].as_str();
        let target = Target {
            deployment: label(DEPLOYMENT_LABEL).map(str::to_owned),
            machine: Some(name.to_owned()),
            ..Target::namespace(namespace)
        };
        self.push(NameKind::Machine, name, target.clone());
        if let Some(node) = label(NODE_LABEL) {
            self.push(NameKind::Node, node, target);
        }
    }

    /// Adds the namespaces of which only machine deployments or machines are known, so that their names and those of
    /// their shoots have a meaning.
    pub(in crate::cli) fn add_namespaces_without_worker(&mut self) {
        let mut namespaces: BTreeSet<String> =
            self.objects.iter().map(|object| object.target.namespace.clone()).collect();
        namespaces.remove("");
        for namespace in self.namespaces() {
            namespaces.remove(namespace);
        }
        for namespace in namespaces {
            self.push(NameKind::Worker, "", Target::namespace(&namespace));
        }
    }

    /// Resolves a name within a namespace, or within all of them.
    pub(in crate::cli) fn resolve(&self, text: &str, within: Option<&str>) -> Meaning {
        let is_within = |object: &&NamedObject| within.is_none_or(|namespace| object.target.namespace == namespace);
        let mut meanings: Vec<&NamedObject> = self.objects.iter().filter(is_within).collect();
        meanings.retain(|object| object.is_called(text));
        let Some(first) = meanings.iter().map(|object| object.kind).min() else { return Meaning::None };
        meanings.retain(|object| object.kind == first);
        let mut targets: Vec<Target> = meanings.iter().map(|object| self.complete(&object.target, text)).collect();
        targets.sort();
        targets.dedup();
        let known: Vec<Target> = targets.clone();
        // A pool of a machine deployment is that of a Worker.
        let is_same = |target: &Target, other: &Target| {
            other.worker.is_some() && target.namespace == other.namespace && target.pool == other.pool
        };
        targets.retain(|target| target.worker.is_some() || !known.iter().any(|other| is_same(target, other)));
        if targets.len() == 1 {
            return targets.pop().map_or(Meaning::None, Meaning::One);
        }
        let mut words: Vec<String> = meanings.iter().map(ToString::to_string).collect();
        words.sort();
        words.dedup();
        Meaning::Several(words)
    }

    /// Adds the Worker, machine deployment and pool that a part belongs to. A namespace stands for all its Workers.
    fn complete(&self, target: &Target, text: &str) -> Target {
        let mut target = target.clone();
        if text == target.namespace {
            return Target::namespace(&target.namespace);
        }
        if target.pool.is_none()
            && let Some(deployment) = &target.deployment
        {
            target.pool = self.deployment(&target.namespace, deployment).and_then(|known| known.target.pool.clone());
        }
        let of_namespace = |object: &&NamedObject| {
            object.kind == NameKind::Worker && object.shoot.is_none() && object.target.namespace == target.namespace
        };
        let mut workers = self.objects.iter().filter(of_namespace);
        if target.worker.is_none()
            && let (Some(only), None) = (workers.next(), workers.next())
        {
            target.worker.clone_from(&only.target.worker);
        }
        target
    }

    fn deployment(&self, namespace: &str, name: &str) -> Option<&NamedObject> {
        let is_it = |object: &&NamedObject| {
            object.kind == NameKind::MachineDeployment && object.target.namespace == namespace && object.name == name
        };
        self.objects.iter().find(is_it)
    }

    /// Namespaces of known Workers.
    pub(in crate::cli) fn namespaces(&self) -> impl Iterator<Item = &str> {
        let workers = self.objects.iter().filter(|object| object.kind == NameKind::Worker);
        workers.map(|object| object.target.namespace.as_str())
    }

    /// The namespace whose machine objects may have this name, because their names begin with it.
    pub(in crate::cli) fn namespace_of_prefix(&self, text: &str) -> Option<&str> {
        let is_prefix = |namespace: &&str| text.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('-'));
        self.namespaces().filter(|namespace| !namespace.is_empty()).filter(is_prefix).max_by_key(|name| name.len())
    }
}

impl NamedObject {
    fn is_called(&self, text: &str) -> bool {
        let is_named = text == self.name || text.split_once('/') == Some((&self.target.namespace, &self.name));
        if is_named && !self.name.is_empty() {
            return true;
        }
        if self.kind != NameKind::Worker {
            return false;
        }
        let of_namespace = shoot_of_namespace(&self.target.namespace);
        let of_cluster = self.shoot.as_ref().map(|(project, shoot)| (project.as_str(), shoot.as_str()));
        text == self.target.namespace
            || of_namespace.is_some_and(|shoot| is_shoot_called(shoot, text))
            || of_cluster.is_some_and(|shoot| is_shoot_called(shoot, text))
    }
}

/// Whether a text is the name of a shoot, alone or with its project or the project's namespace.
pub(in crate::cli) fn is_shoot_called((project, shoot): (&str, &str), text: &str) -> bool {
    let project = project.strip_prefix(PROJECT_NAMESPACE).unwrap_or(project);
    match text.split_once('/') {
        None => text == shoot,
        Some((qualifier, name)) => {
            let qualifier = qualifier.strip_prefix(PROJECT_NAMESPACE).unwrap_or(qualifier);
            name == shoot && qualifier == project
        }
    }
}

/// Project and name of a shoot, from the usual name of its namespace. Neither has two hyphens in a row.
pub(in crate::cli) fn shoot_of_namespace(namespace: &str) -> Option<(&str, &str)> {
    namespace.strip_prefix("shoot--")?.split_once("--")
}

/// The namespace of a shoot in its seed, for `project/shoot`.
pub(super) fn namespace_of_shoot(text: &str) -> Option<String> {
    let (project, shoot) = text.split_once('/')?;
    let project = project.strip_prefix(PROJECT_NAMESPACE).unwrap_or(project);
    Some(format!("shoot--{project}--{shoot}"))
}

/// Namespace and name of an object.
fn key(object: &Value) -> [&str; 2] {
    let metadata = &object["metadata"];
    [&metadata["namespace"], &metadata["name"]].map(|text| text.as_str().unwrap_or_default())
}

/// The error for a name with several meanings.
pub(super) fn ambiguous(text: &str, meanings: &[String]) -> anyhow::Error {
    let first = named(meanings, NAMED);
    anyhow::anyhow!("{text:?} can mean {first}: name one of them with -n NAMESPACE, or as NAMESPACE/NAME")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn index() -> NameIndex {
        let object = |kind: &str, namespace: &str, name: &str, labels: Value| json!({"kind": kind, "metadata": {"namespace": namespace, "name": name, "labels": labels}});
        let mut index = NameIndex::default();
        for (namespace, name) in [("shoot--a--web", "web"), ("shoot--b--web", "web"), ("shoot--a--db", "db")] {
            let mut worker = object("Worker", namespace, name, json!({}));
            worker["spec"] = json!({"pools": [{"name": "services"}, {"name": format!("only-{name}")}]});
            index.add(&worker);
        }
        let labels = json!({POOL_LABEL: "services"});
        index.add(&object("MachineDeployment", "shoot--a--db", "shoot--a--db-services-z1", labels));
        let labels = json!({"name": "shoot--a--db-services-z1", "node": "ip-10-250-0-7"});
        index.add(&object("Machine", "shoot--a--db", "shoot--a--db-services-z1-5f-xk", labels));
        index.add(&json!({"kind": "Cluster", "metadata": {"name": "shoot--a--db"},
            "spec": {"shoot": {"metadata": {"name": "database", "namespace": "garden-first"}}}}));
        index
    }

    #[test]
    fn resolves_what_a_person_has() {
        let worker =
            |namespace: &str, name: &str| Target { worker: Some(name.to_owned()), ..Target::namespace(namespace) };
        let db = worker("shoot--a--db", "db");
        let services = Target { pool: Some("services".to_owned()), ..db.clone() };
        let deployment = Target { deployment: Some("shoot--a--db-services-z1".to_owned()), ..services.clone() };
        let machine = Target { machine: Some("shoot--a--db-services-z1-5f-xk".to_owned()), ..deployment.clone() };
        for (text, target) in [
            ("db", db.clone()),
            ("a/db", db.clone()),
            ("garden-a/db", db.clone()),
            ("database", db.clone()),
            ("first/database", db.clone()),
            ("garden-first/database", db.clone()),
            ("shoot--a--db", Target::namespace("shoot--a--db")),
            ("shoot--a--db/db", db.clone()),
            ("b/web", worker("shoot--b--web", "web")),
            ("shoot--a--db/services", services),
            ("only-db", Target { pool: Some("only-db".to_owned()), ..db }),
            ("shoot--a--db-services-z1", deployment.clone()),
            ("shoot--a--db/shoot--a--db-services-z1", deployment),
            ("shoot--a--db-services-z1-5f-xk", machine.clone()),
            ("ip-10-250-0-7", machine),
        ] {
            assert_eq!(index().resolve(text, None), Meaning::One(target), "{text}");
        }
        assert_eq!(index().resolve("web", Some("shoot--b--web")), Meaning::One(worker("shoot--b--web", "web")));
    }

    #[test]
    fn lists_what_a_name_can_mean() {
        let several =
            Meaning::Several(vec!["Worker shoot--a--web/web".to_owned(), "Worker shoot--b--web/web".to_owned()]);
        assert_eq!(index().resolve("web", None), several);
        assert!(matches!(index().resolve("services", None), Meaning::Several(pools) if pools.len() == 3));
        for text in ["we", "shoot--c--web", "a/", "/web", "a/web/services", "", "shoot--a--web/db"] {
            assert_eq!(index().resolve(text, None), Meaning::None, "{text}");
        }
        let many: Vec<String> = (0..1000).map(|number| format!("Worker n{number}/{}", "x".repeat(300))).collect();
        assert!(ambiguous("x", &many).to_string().len() < 1500);
    }

    #[test]
    fn machine_objects_alone_name_their_shoot() {
        let mut index = NameIndex::default();
        for (namespace, pool) in
            [("shoot--a--web", "services"), ("shoot--a--web", "batch"), ("shoot--b--web", "services")]
        {
            index.add(&json!({"kind": "MachineDeployment", "metadata": {
                "namespace": namespace, "name": format!("{namespace}-{pool}-z1"), "labels": {POOL_LABEL: pool}}}));
        }
        assert_eq!(index.resolve("a/web", None), Meaning::None, "unless they count");
        index.add_namespaces_without_worker();
        for text in ["a/web", "shoot--a--web"] {
            assert_eq!(index.resolve(text, None), Meaning::One(Target::namespace("shoot--a--web")), "{text}");
        }
        let both = Meaning::Several(vec!["namespace shoot--a--web".to_owned(), "namespace shoot--b--web".to_owned()]);
        assert_eq!(index.resolve("web", None), both);
        let pool = Target { pool: Some("batch".to_owned()), ..Target::namespace("shoot--a--web") };
        assert_eq!(index.resolve("batch", None), Meaning::One(pool));
    }

    #[test]
    fn finds_the_namespace_of_a_machine() {
        assert_eq!(index().namespace_of_prefix("shoot--a--web-services-z1-5f-xk"), Some("shoot--a--web"));
        assert_eq!(index().namespace_of_prefix("shoot--a--webs"), None);
        assert_eq!(namespace_of_shoot("garden-a/web").as_deref(), Some("shoot--a--web"));
    }
}
