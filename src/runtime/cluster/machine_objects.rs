//! Machine objects of all namespaces, cached from watches so that a reconcile needs no reads.
//!
//! The cache is small: digests of classes and their Secrets, the fields of machine sets and machines that progress
//! depends on, and packed text of deployments. Irreversible decisions use fresh lists instead, see
//! [`ShootNamespace`](crate::cluster::shoot_namespace::ShootNamespace).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::cluster::error::ReadError;
use crate::cluster::store::{Kept, Store};
use decisions::provider::{Provider, Providers};
use decisions::worker::machines::live_machine::{LiveMachine, LiveMachineSet};
use decisions::worker::machines::machine_objects::{DigestedObject, LiveDeployment, MachineObjects};
use decisions::worker::plan::gate::Mark;
use decisions::worker::plan::slots::PoolOfSeed;
use wire::api::gotext::json::{DecodeError, decode_lenient};
use wire::api::machine::{Machine, MachineClass, MachineDeployment, MachineSet};
use wire::api::packed_text::PackedText;

/// Machine objects of all namespaces.
pub struct MachineObjectCache {
    /// Providers, which parse the cloud dependencies of machine classes.
    providers: Providers,
    pub deployments: Store<Readable<DeploymentText>>,
    pub classes: Store<Readable<DigestedObject<Value>>>,
    /// Secrets with the purpose label.
    pub class_secrets: Store<Readable<DigestedObject<Secret>>>,
    pub machine_sets: Store<Readable<LiveMachineSet>>,
    pub machines: Store<Readable<LiveMachine>>,
}

/// The cached part of an object, or why decoding failed. One invalid object must not hide the others.
pub(crate) type Readable<T> = Result<T, String>;

impl<T> Kept for Readable<T> {}

/// The cached part of objects of one kind.
pub trait Cached: Sized + Send + Sync + 'static {
    type Kind: k8s_openapi::Resource<Scope = NamespaceResourceScope> + k8s_openapi::Metadata<Ty = ObjectMeta>;

    /// Label selector; `None` selects all objects.
    const SELECTOR: Option<&'static str> = None;

    /// Whether reconciles compare these objects with the plan.
    const IS_PLANNED: bool;

    /// Decodes the text of an object. Providers parse their own fields.
    fn read(text: &str, providers: Providers) -> Readable<Self>;

    fn store(cache: &MachineObjectCache) -> &Store<Readable<Self>>;
}

impl MachineObjectCache {
    pub(crate) fn new(providers: Providers) -> Self {
        Self {
            providers,
            deployments: Store::default(),
            classes: Store::default(),
            class_secrets: Store::default(),
            machine_sets: Store::default(),
            machines: Store::default(),
        }
    }

    /// Decodes the text of an object.
    pub fn kept<T: Cached>(&self, text: &str) -> Readable<T> {
        T::read(text, self.providers)
    }

    /// Whether all watches are up to date, as far as is known.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.deployments.is_fresh()
            && self.classes.is_fresh()
            && self.class_secrets.is_fresh()
            && self.machine_sets.is_fresh()
            && self.machines.is_fresh()
    }

    /// Whether the cache has any machine object of a namespace.
    #[must_use]
    pub fn has_entries(&self, namespace: &str) -> bool {
        self.deployments.has_any_of(namespace)
            || self.classes.has_any_of(namespace)
            || self.class_secrets.has_any_of(namespace)
            || self.machine_sets.has_any_of(namespace)
            || self.machines.has_any_of(namespace)
    }

    /// Forgets the lists of a namespace that has no Worker any more. A recreated Worker lists all machine objects again.
    pub fn forget_lists(&self, namespace: &str) {
        self.deployments.forget_list(namespace);
        self.classes.forget_list(namespace);
        self.class_secrets.forget_list(namespace);
        self.machine_sets.forget_list(namespace);
        self.machines.forget_list(namespace);
    }

    /// The machine deployments of a namespace. Unchanged ones are reused from `known`.
    ///
    /// # Errors
    /// When one can't be read.
    pub(crate) fn deployments_of(
        &self,
        namespace: &str,
        provider: &dyn Provider,
        mut cached: BTreeMap<String, LiveDeployment>,
    ) -> Result<BTreeMap<String, LiveDeployment>, ReadError> {
        let mut cached_in = |name: &str| {
            let version = self.deployments.version(namespace, name)?.to_string();
            cached.remove(name).filter(|live| live.object.metadata.resource_version.as_ref() == Some(&version))
        };
        let texts = readable(&self.deployments, namespace)?.into_iter();
        texts
            .map(|(name, text)| match cached_in(&name).map_or_else(|| text.live(provider), Ok) {
                Ok(live) => Ok((name, live)),
                Err(reason) => Err(unreadable::<DeploymentText>(&name, reason)),
            })
            .collect()
    }

    /// The machine objects of a namespace. Unchanged deployments are reused from `known`.
    ///
    /// # Errors
    /// When one can't be read.
    pub(crate) fn of_namespace(
        &self,
        namespace: &str,
        provider: &dyn Provider,
        cached: BTreeMap<String, LiveDeployment>,
    ) -> Result<MachineObjects, ReadError> {
        let mut objects = self.classes_of(namespace)?;
        objects.deployments = self.deployments_of(namespace, provider, cached)?;
        objects.machine_sets = readable(&self.machine_sets, namespace)?.into_iter().map(|(_, set)| set).collect();
        objects.machines = readable(&self.machines, namespace)?.into_iter().map(|(_, machine)| machine).collect();
        Ok(objects)
    }

    /// Namespace and name of the pools of all namespaces that have a slot of the roll budget.
    #[must_use]
    pub fn pools_with_slots(&self) -> BTreeSet<PoolOfSeed> {
        let marked = self.deployments.matching(|text| text.as_ref().is_ok_and(|text| text.has_slot));
        let pools = marked.into_iter().map(|(namespace, name, text)| {
            let live = text.as_ref().as_ref().ok().and_then(|text| decoded_mark(&text.text.unpack()?));
            (namespace, live.and_then(|live| live.pool().map(str::to_owned)).unwrap_or(name))
        });
        pools.collect()
    }

    /// Only the classes of a namespace and their Secrets.
    ///
    /// # Errors
    /// When one can't be read.
    pub(crate) fn classes_of(&self, namespace: &str) -> Result<MachineObjects, ReadError> {
        let classes = readable(&self.classes, namespace)?.into_iter().collect();
        let class_secrets = readable(&self.class_secrets, namespace)?.into_iter().collect();
        Ok(MachineObjects { classes, class_secrets, ..MachineObjects::default() })
    }
}

fn readable<T: Cached + Clone>(store: &Store<Readable<T>>, namespace: &str) -> Result<Vec<(String, T)>, ReadError> {
    let objects = store.of_namespace(namespace).into_iter();
    objects
        .map(|(name, object)| match &*object {
            Ok(object) => Ok((name, object.clone())),
            Err(reason) => Err(unreadable::<T>(&name, reason.clone())),
        })
        .collect()
}

fn unreadable<T: Cached>(name: &str, reason: String) -> ReadError {
    let kind = <T::Kind as k8s_openapi::Resource>::KIND;
    ReadError::Decode { what: format!("{kind} {name:?}"), reason }
}

/// A machine deployment as packed text, a tenth of its decoded size. Each reconcile unpacks it.
#[derive(Clone, Debug)]
pub struct DeploymentText {
    text: Arc<PackedText>,
    /// Whether its pool has a slot of the roll budget.
    has_slot: bool,
}

/// The mark of a slot within the annotation, as it is in the text of a deployment.
const SLOT: &str = r#"\"u\":\"budget\""#;

impl DeploymentText {
    /// Decodes the document and its typed view.
    ///
    /// # Errors
    /// When a field has the wrong type.
    pub fn live(&self, provider: &dyn Provider) -> Result<LiveDeployment, String> {
        let text = self.text.unpack().ok_or("its packed text is incomplete")?;
        let live = decode_lenient(&text).and_then(|document| LiveDeployment::read(document, provider));
        live.map_err(|error| error.to_string())
    }

    /// Decodes a deployment from its plain text.
    ///
    /// # Errors
    /// When a field has the wrong type.
    pub(crate) fn live_of(text: &str, provider: &dyn Provider) -> Result<LiveDeployment, DecodeError> {
        LiveDeployment::read(decode_lenient(&without_managers(text)?)?, provider)
    }
}

impl Cached for DeploymentText {
    type Kind = MachineDeployment;

    const IS_PLANNED: bool = true;

    fn read(text: &str, _: Providers) -> Readable<Self> {
        let text = without_managers(text).map_err(|error| error.to_string())?;
        Ok(Self { has_slot: has_slot(&text), text: Arc::new(PackedText::of(&text)) })
    }

    fn store(cache: &MachineObjectCache) -> &Store<Readable<Self>> {
        &cache.deployments
    }
}

impl Cached for DigestedObject<Value> {
    type Kind = MachineClass;

    const IS_PLANNED: bool = true;

    fn read(text: &str, providers: Providers) -> Readable<Self> {
        let class = Self::class(decoded(text)?).map_err(|error| error.to_string())?;
        Ok(class.with_dependency(providers).digest_only())
    }

    fn store(cache: &MachineObjectCache) -> &Store<Readable<Self>> {
        &cache.classes
    }
}

impl Cached for DigestedObject<Secret> {
    type Kind = Secret;

    const SELECTOR: Option<&'static str> = Some("gardener.cloud/purpose=machineclass");
    const IS_PLANNED: bool = true;

    fn read(text: &str, _: Providers) -> Readable<Self> {
        Ok(Self::secret(decoded(text)?).digest_only())
    }

    fn store(cache: &MachineObjectCache) -> &Store<Readable<Self>> {
        &cache.class_secrets
    }
}

impl Cached for LiveMachineSet {
    type Kind = MachineSet;

    const IS_PLANNED: bool = false;

    fn read(text: &str, _: Providers) -> Readable<Self> {
        decoded(text)
    }

    fn store(cache: &MachineObjectCache) -> &Store<Readable<Self>> {
        &cache.machine_sets
    }
}

impl Cached for LiveMachine {
    type Kind = Machine;

    const IS_PLANNED: bool = false;

    fn read(text: &str, _: Providers) -> Readable<Self> {
        decoded(text)
    }

    fn store(cache: &MachineObjectCache) -> &Store<Readable<Self>> {
        &cache.machines
    }
}

fn has_slot(text: &str) -> bool {
    text.contains(SLOT) && decoded_mark(text).is_some_and(|live| live.mark() == Some(Mark::Budget))
}

fn decoded_mark(text: &str) -> Option<LiveDeployment> {
    LiveDeployment::read_without_codes(decode_lenient(text).ok()?).ok()
}

/// The text of an object without `managedFields`, which are unused and half of its size. All other fields stay
/// undecoded.
fn without_managers(text: &str) -> Result<String, DecodeError> {
    #[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
    struct Member<'a>(#[serde(borrow)] Cow<'a, str>);
    type Members<'a> = BTreeMap<Member<'a>, &'a RawValue>;
    let member = |name: &'static str| Member(name.into());
    let unwritable = |error: serde_json::Error| DecodeError { path: String::new(), message: error.to_string() };
    let mut object: Members<'_> = decode_lenient(text)?;
    let Some(metadata) = object.get(&member("metadata")) else { return Ok(text.to_owned()) };
    let mut members: Members<'_> = decode_lenient(metadata.get())?;
    members.remove(&member("managedFields"));
    let metadata = to_raw_value(&members).map_err(unwritable)?;
    object.insert(member("metadata"), &metadata);
    serde_json::to_string(&object).map_err(unwritable)
}

/// Decoding errors contain a path but no values.
fn decoded<T: DeserializeOwned>(text: &str) -> Readable<T> {
    decode_lenient(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::identity::Identity;
    use decisions::provider::azure::Azure;

    fn put<T: Cached>(cache: &MachineObjectCache, mut document: Value) {
        for (member, value) in [("namespace", "ns"), ("uid", "u"), ("resourceVersion", "3")] {
            document["metadata"][member] = json!(value);
        }
        let text = document.to_string();
        T::store(cache).event(Identity::read(&text).unwrap(), || cache.kept(&text));
    }

    #[test]
    fn counts_pools_with_the_mark_of_a_slot() {
        let cache = MachineObjectCache::new(Providers::SHIPPED);
        let put_record = |name: &str, pool: &str, record: Value| {
            let annotations = json!({"gardener-extension-worker/class-inputs": record.to_string(), "other": SLOT});
            let labels = json!({"worker.gardener.cloud/pool": pool});
            put::<DeploymentText>(
                &cache,
                json!({"metadata": {"name": name, "labels": labels, "annotations": annotations}}),
            );
        };
        let record = |mark: Value| {
            let class = json!({"c": "class", "t": "2026-11-29T12:00:00Z"});
            json!({"v": 1, "d": 0, "g": [class], "u": mark})
        };
        put_record("a-z1", "a", record(json!("budget")));
        put_record("a-z2", "a", record(json!("budget")));
        put_record("b-z1", "b", record(json!("released")));
        put_record("c-z1", "c", record(Value::Null));
        put_record("d-z1", "d", json!("no record"));
        assert_eq!(cache.pools_with_slots(), [("ns".to_owned(), "a".to_owned())].into());
        assert_eq!(size_of::<Readable<DeploymentText>>(), 24, "the mark needs no more memory");
    }

    #[test]
    fn cache_returns_same_objects_as_lists() {
        let cache = MachineObjectCache::new(Providers::SHIPPED);
        let template = json!({"spec": {"class": {"name": "c"}, "nodeTemplate": {"metadata": {"labels": {"a": "b"}}}}});
        put::<DeploymentText>(
            &cache,
            json!({"metadata": {"name": "d", "managedFields": [{}]}, "spec": {"replicas": 2, "foreign": true, "template": template}}),
        );
        put::<LiveMachineSet>(
            &cache,
            json!({"metadata": {"name": "s", "labels": {"name": "d"}}, "spec": {"template": template}}),
        );
        put::<DigestedObject<Value>>(&cache, json!({"metadata": {"name": "c"}, "provider": "Azure"}));
        put::<DigestedObject<Secret>>(&cache, json!({"metadata": {"name": "c"}, "data": {"userData": "eA=="}}));
        let objects = cache.of_namespace("ns", &Azure, BTreeMap::new()).unwrap();
        let deployment = &objects.deployments["d"];
        assert_eq!(deployment.document["spec"]["foreign"], true, "the document is whole");
        assert!(deployment.document["metadata"].get("managedFields").is_none(), "but for what nobody reads");
        assert_eq!(deployment.object.spec.replicas, 2);
        let set = &objects.machine_sets[0].member;
        assert_eq!((&*set.class, set.deployment()), ("c", Some("d")), "its owner is recorded nowhere else");
        assert!(objects.classes["c"].whole.is_none() && objects.class_secrets["c"].whole.is_none());
        assert!(cache.of_namespace("other", &Azure, BTreeMap::new()).unwrap().is_empty());
    }

    #[test]
    fn decodes_each_deployment_version_once() {
        let cache = MachineObjectCache::new(Providers::SHIPPED);
        put::<DeploymentText>(&cache, json!({"metadata": {"name": "d"}, "spec": {"replicas": 2}}));
        let replicas_beside = |version: &str| {
            let cached = json!({"metadata": {"name": "d", "resourceVersion": version}, "spec": {"replicas": 7}});
            let cached = LiveDeployment::read(cached, &Azure).unwrap();
            let deleted = cached.clone();
            let cached = [("d".to_owned(), cached), ("gone".to_owned(), deleted)].into();
            let deployments = cache.of_namespace("ns", &Azure, cached).unwrap().deployments;
            assert_eq!(deployments.len(), 1, "what has gone does not come back");
            deployments["d"].object.spec.replicas
        };
        assert_eq!((replicas_beside("3"), replicas_beside("2")), (7, 2));
    }

    #[test]
    fn decodes_packed_and_plain_text_equally() {
        let metadata = json!({"name": "d\"\u{e9}", "managedFields": [{"manager": "m"}], "labels": {"a": "b"}});
        let text = json!({"spec": {"replicas": 2}, "metadata": metadata, "kind": "MachineDeployment"}).to_string();
        let responded = DeploymentText::live_of(&text, &Azure).unwrap();
        let packed = DeploymentText::read(&text, Providers::SHIPPED).unwrap().live(&Azure).unwrap();
        assert_eq!(responded.document, packed.document);
        let metadata = json!({"name": "d\"\u{e9}", "labels": {"a": "b"}});
        assert_eq!(
            responded.document,
            json!({"spec": {"replicas": 2}, "metadata": metadata, "kind": "MachineDeployment"})
        );
        let error = DeploymentText::live_of(r#"{"spec": {"replicas": "two"}}"#, &Azure).unwrap_err();
        assert!(error.path == "spec.replicas" && !error.to_string().contains("two"), "{error}");
    }

    #[test]
    fn cached_machines_equal_those_from_files() {
        let cache = MachineObjectCache::new(Providers::SHIPPED);
        let owner = |kind: &str, name: &str| json!([{"apiVersion": "a/v1", "kind": kind, "name": name, "uid": "u"}]);
        let metadata = json!({"name": "s", "finalizers": ["f"], "ownerReferences": owner("MachineDeployment", "d")});
        put::<LiveMachineSet>(
            &cache,
            json!({"metadata": metadata, "status": {"replicas": 3, "observedGeneration": 2}}),
        );
        let conditions =
            json!([{"type": "Ready", "status": "True"}, {"type": "InPlaceUpdate", "reason": "SelectedForUpdate"}]);
        let marked = json!({"name": "a", "labels": {"name": "d", "force-deletion": "True"}, "deletionTimestamp": "2026-11-25T10:00:00Z",
            "ownerReferences": owner("MachineSet", "s")});
        let status = json!({"conditions": conditions, "lastOperation": {"description": "no room"}});
        put::<LiveMachine>(&cache, json!({"metadata": marked, "spec": {"class": {"name": "c"}}, "status": status}));
        put::<LiveMachine>(&cache, json!({"metadata": {"name": "b", "labels": {"name": "d"}}}));
        let MachineObjects { machine_sets, machines, .. } = cache.of_namespace("ns", &Azure, BTreeMap::new()).unwrap();
        let set = &machine_sets[0];
        assert_eq!((&*set.member.name, set.member.deployment()), ("s", Some("d")));
        assert_eq!((set.replicas, set.observed_generation, &*set.member.finalizers), (3, 2, &["f".to_owned()][..]));
        let [a, b] = &*machines else { panic!("{machines:?}") };
        assert_eq!((&*a.member.name, &*a.member.class, a.member.machine_set()), ("a", "c", Some("s")));
        assert!(
            a.is_selected && a.is_marked_for_force_deletion && a.is_being_deleted && *a.last_description == *"no room"
        );
        assert!(!b.is_selected && !b.is_marked_for_force_deletion && !b.is_being_deleted);
        assert_eq!(b.member.labelled(), Some("d"), "nothing owns it yet");
    }

    #[test]
    fn names_unreadable_object() {
        let cache = MachineObjectCache::new(Providers::SHIPPED);
        put::<LiveMachineSet>(&cache, json!({"metadata": {"name": "bad"}, "status": {"replicas": "three"}}));
        let error = cache.of_namespace("ns", &Azure, BTreeMap::new()).err().unwrap().to_string();
        assert!(error.starts_with("MachineSet \"bad\" can't be decoded"), "{error}");
    }

    #[test]
    fn cache_is_fresh_only_if_all_stores_are() {
        let cache = MachineObjectCache::new(Providers::SHIPPED);
        let resume = || {
            cache.deployments.mark_resumed();
            cache.classes.mark_resumed();
            cache.class_secrets.mark_resumed();
            cache.machine_sets.mark_resumed();
            cache.machines.mark_resumed();
        };
        assert!(!cache.is_fresh(), "no watch has begun");
        let failures: [(&str, &dyn Fn()); 5] = [
            ("deployments", &|| cache.deployments.mark_stale()),
            ("classes", &|| cache.classes.mark_stale()),
            ("Secrets of classes", &|| cache.class_secrets.mark_stale()),
            ("machine sets", &|| cache.machine_sets.mark_stale()),
            ("machines", &|| cache.machines.mark_stale()),
        ];
        for (kind, fail) in failures {
            resume();
            assert!(cache.is_fresh());
            fail();
            assert!(!cache.is_fresh(), "the watch of {kind} has failed");
        }
    }
}
