//! The machine objects of all namespaces as watches show them, so that a look at a Worker costs no request.
//!
//! What is kept is little: of classes and their Secrets a digest, of machine sets and machines what progress is read from,
//! of deployments the text. Whoever takes a decision that can't be taken back reads anew ([`Place`](super::place::Place)).

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::live::{Digested, Live, MachineObjects};
use super::observe::ObserveError;
use crate::api::gotext::json::{DecodeError, decode_lenient};
use crate::api::machine::{Machine, MachineClass, MachineDeployment, MachineSet};

pub mod shelf;

use shelf::{Identity, Shelf};

/// The machine objects of all namespaces.
#[derive(Default)]
pub struct Mirror {
    /// Machine deployments.
    pub deployments: Shelf<Readable<DeploymentText>>,
    /// Machine classes.
    pub classes: Shelf<Readable<Digested<Value>>>,
    /// Secrets with the purpose label.
    pub class_secrets: Shelf<Readable<Digested<Secret>>>,
    /// Machine sets.
    pub machine_sets: Shelf<Readable<MachineSet>>,
    /// Machines.
    pub machines: Shelf<Readable<Machine>>,
}

/// What is kept of an object, or why it can't be read: one bad object must not hide the others.
pub type Readable<T> = Result<T, String>;

/// What is kept of the objects of a kind.
pub trait Mirrored: Sized + Send + Sync + 'static {
    /// The kind.
    type Kind: k8s_openapi::Resource<Scope = NamespaceResourceScope> + k8s_openapi::Metadata<Ty = ObjectMeta>;

    /// Which objects of the kind, by label; without it, all.
    const SELECTOR: Option<&'static str> = None;

    /// Reads it from the text of an object.
    fn read(text: &str) -> Readable<Self>;

    /// Where these objects are.
    fn shelf(mirror: &Mirror) -> &Shelf<Readable<Self>>;
}

/// Who an object is and what is kept of it.
///
/// # Errors
/// When the text is no object of an API server.
pub fn read<T: Mirrored>(text: &str) -> Result<(Identity, Readable<T>), serde_json::Error> {
    Ok((Identity::read(text)?, T::read(text)))
}

impl Mirror {
    /// Whether all watches are believed to show everything.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.deployments.is_trusted()
            && self.classes.is_trusted()
            && self.class_secrets.is_trusted()
            && self.machine_sets.is_trusted()
            && self.machines.is_trusted()
    }

    /// The machine deployments of a namespace.
    ///
    /// # Errors
    /// When one can't be read.
    pub fn deployments_of(&self, namespace: &str) -> Result<BTreeMap<String, Live<MachineDeployment>>, ObserveError> {
        let texts = readable(&self.deployments, namespace)?.into_iter();
        texts
            .map(|(name, text)| match text.live() {
                Ok(live) => Ok((name, live)),
                Err(error) => Err(unreadable::<DeploymentText>(&name, error.to_string())),
            })
            .collect()
    }

    /// The machine objects of a namespace.
    ///
    /// # Errors
    /// When one can't be read.
    pub fn of_namespace(&self, namespace: &str) -> Result<MachineObjects, ObserveError> {
        let mut objects = MachineObjects { deployments: self.deployments_of(namespace)?, ..MachineObjects::default() };
        objects.classes = readable(&self.classes, namespace)?.into_iter().collect();
        objects.class_secrets = readable(&self.class_secrets, namespace)?.into_iter().collect();
        objects.machine_sets = readable(&self.machine_sets, namespace)?.into_iter().map(|(_, set)| set).collect();
        objects.machines = readable(&self.machines, namespace)?.into_iter().map(|(_, machine)| machine).collect();
        Ok(objects)
    }
}

fn readable<T: Mirrored + Clone>(
    shelf: &Shelf<Readable<T>>,
    namespace: &str,
) -> Result<Vec<(String, T)>, ObserveError> {
    let objects = shelf.of_namespace(namespace).into_iter();
    objects
        .map(|(name, object)| match &*object {
            Ok(object) => Ok((name, object.clone())),
            Err(reason) => Err(unreadable::<T>(&name, reason.clone())),
        })
        .collect()
}

fn unreadable<T: Mirrored>(name: &str, reason: String) -> ObserveError {
    let kind = <T::Kind as k8s_openapi::Resource>::KIND;
    ObserveError::Decode { what: format!("{kind} {name:?}"), reason }
}

/// A machine deployment as text, which is a quarter as large as its parts. Parts and text are read with each look.
#[derive(Clone, Debug)]
pub struct DeploymentText(Arc<str>);

impl DeploymentText {
    /// Document and typed view.
    ///
    /// # Errors
    /// When a member has the wrong type.
    pub fn live(&self) -> Result<Live<MachineDeployment>, DecodeError> {
        Live::read(decode_lenient(&self.0)?)
    }
}

impl Mirrored for DeploymentText {
    type Kind = MachineDeployment;

    fn read(text: &str) -> Readable<Self> {
        let mut document: Value = decoded(text)?;
        if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
            // Nobody reads them, and they are as long as all the rest.
            metadata.remove("managedFields");
        }
        Ok(Self(document.to_string().into()))
    }

    fn shelf(mirror: &Mirror) -> &Shelf<Readable<Self>> {
        &mirror.deployments
    }
}

impl Mirrored for Digested<Value> {
    type Kind = MachineClass;

    fn read(text: &str) -> Readable<Self> {
        Ok(Self::class(decoded(text)?).map_err(|error| error.to_string())?.digest_only())
    }

    fn shelf(mirror: &Mirror) -> &Shelf<Readable<Self>> {
        &mirror.classes
    }
}

impl Mirrored for Digested<Secret> {
    type Kind = Secret;

    const SELECTOR: Option<&'static str> = Some("gardener.cloud/purpose=machineclass");

    fn read(text: &str) -> Readable<Self> {
        Ok(Self::secret(decoded(text)?).digest_only())
    }

    fn shelf(mirror: &Mirror) -> &Shelf<Readable<Self>> {
        &mirror.class_secrets
    }
}

impl Mirrored for MachineSet {
    type Kind = Self;

    fn read(text: &str) -> Readable<Self> {
        let mut set: Self = decoded(text)?;
        slim(&mut set.metadata);
        if set.metadata.owner_references.as_ref().is_some_and(|owners| !owners.is_empty()) {
            // Whose it is, the labels say only where nothing owns it.
            set.metadata.labels = None;
        }
        Ok(set)
    }

    fn shelf(mirror: &Mirror) -> &Shelf<Readable<Self>> {
        &mirror.machine_sets
    }
}

impl Mirrored for Machine {
    type Kind = Self;

    fn read(text: &str) -> Readable<Self> {
        let mut machine: Self = decoded(text)?;
        slim(&mut machine.metadata);
        Ok(machine)
    }

    fn shelf(mirror: &Mirror) -> &Shelf<Readable<Self>> {
        &mirror.machines
    }
}

/// Errors name the place and never show a value.
fn decoded<T: DeserializeOwned>(text: &str) -> Readable<T> {
    decode_lenient(text).map_err(|error| error.to_string())
}

/// Leaves out what is not read of machine sets and machines: there are as many as nodes.
fn slim(metadata: &mut ObjectMeta) {
    (metadata.annotations, metadata.namespace, metadata.uid) = (None, None, None);
    for owner in metadata.owner_references.iter_mut().flatten() {
        (owner.api_version, owner.uid) = (String::new(), String::new());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn put<T: Mirrored>(mirror: &Mirror, mut document: Value) {
        for (member, value) in [("namespace", "ns"), ("uid", "u"), ("resourceVersion", "3")] {
            document["metadata"][member] = json!(value);
        }
        let (identity, object) = read::<T>(&document.to_string()).unwrap();
        T::shelf(mirror).show(identity, object);
    }

    #[test]
    fn a_namespace_is_seen_as_lists_would_show_it() {
        let mirror = Mirror::default();
        let template = json!({"spec": {"class": {"name": "c"}, "nodeTemplate": {"metadata": {"labels": {"a": "b"}}}}});
        put::<DeploymentText>(
            &mirror,
            json!({"metadata": {"name": "d", "managedFields": [{}]}, "spec": {"replicas": 2, "foreign": true, "template": template}}),
        );
        put::<MachineSet>(
            &mirror,
            json!({"metadata": {"name": "s", "labels": {"name": "d"}}, "spec": {"template": template}}),
        );
        put::<Digested<Value>>(&mirror, json!({"metadata": {"name": "c"}, "provider": "Azure"}));
        put::<Digested<Secret>>(&mirror, json!({"metadata": {"name": "c"}, "data": {"userData": "eA=="}}));
        let objects = mirror.of_namespace("ns").unwrap();
        let deployment = &objects.deployments["d"];
        assert_eq!(deployment.document["spec"]["foreign"], true, "the document is whole");
        assert!(deployment.document["metadata"].get("managedFields").is_none(), "but for what nobody reads");
        assert_eq!(deployment.object.spec.replicas, 2);
        assert_eq!(objects.machine_sets[0].spec.template.spec.class.name, "c");
        assert_eq!(
            objects.machine_sets[0].metadata.labels.as_ref().unwrap()["name"],
            "d",
            "nothing else says whose it is"
        );
        assert!(objects.classes["c"].whole.is_none() && objects.class_secrets["c"].whole.is_none());
        assert!(mirror.of_namespace("other").unwrap().is_empty());
    }

    #[test]
    fn of_a_machine_set_only_its_owner_is_kept() {
        let mirror = Mirror::default();
        let owner = json!({"apiVersion": "a/v1", "kind": "MachineDeployment", "name": "d", "uid": "u"});
        let metadata =
            json!({"name": "s", "labels": {"name": "d"}, "annotations": {"a": "b"}, "ownerReferences": [owner]});
        put::<MachineSet>(&mirror, json!({"metadata": metadata, "status": {"replicas": 3}}));
        let set = &mirror.of_namespace("ns").unwrap().machine_sets[0];
        let owners = set.metadata.owner_references.as_deref().unwrap();
        assert_eq!((owners[0].kind.as_str(), owners[0].name.as_str()), ("MachineDeployment", "d"));
        assert_eq!((set.metadata.name.as_deref(), set.status.replicas), (Some("s"), 3));
        assert!(set.metadata.labels.is_none() && set.metadata.annotations.is_none() && set.metadata.uid.is_none());
    }

    #[test]
    fn an_object_that_cannot_be_read_is_named() {
        let mirror = Mirror::default();
        put::<MachineSet>(&mirror, json!({"metadata": {"name": "bad"}, "status": {"replicas": "three"}}));
        let error = mirror.of_namespace("ns").err().unwrap().to_string();
        assert!(error.starts_with("MachineSet \"bad\" can't be decoded"), "{error}");
    }
}
