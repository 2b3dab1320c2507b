//! Names in a seed. Requests are made in an order that finds usual names with one or two of them.

use kube::api::{Api, ApiResource, DynamicObject, ListParams, PartialObjectMeta};
use kube::{Client, Resource};
use serde_json::{Value, json};

use super::Scope;
use super::arguments::{Given, Reading};
use super::files::not_found;
use super::garden;
use super::names::{Meaning, NameIndex, Target, ambiguous, namespace_of_shoot};
use crate::cli::exit::wrong_usage;
use runtime::cluster::garden_cluster::is_garden;
use runtime::cluster::seed::workers_unlisted;
use wire::api::gardener::Worker;
use wire::api::machine::{Machine, MachineDeployment};

/// How namespaces of shoots begin.
const SHOOT_NAMESPACE: &str = "shoot-";
/// The namespace of a context that names none.
const UNSET_NAMESPACE: &str = "default";

const NOTHING_NAMED: &str =
    "name a shoot, its namespace, a Worker, a pool, a machine deployment, a machine, a node or a file, or use -n or -A";

/// What a command reads without a name, `-n` and `-A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Fallback {
    /// All namespaces.
    All,
    /// The namespace of the kubeconfig's context.
    ContextNamespace,
}

/// A client for a command that reads nothing without a name.
pub(in crate::cli) async fn client_for(reading: &Reading, given: &Given) -> anyhow::Result<Client> {
    let selects = !given.names.is_empty() || reading.namespace.is_some() || reading.all_namespaces;
    match reading.seed.client().await {
        // A user without a kubeconfig probably forgot a file.
        Err(error) if !selects && reading.selector.is_none() && !reading.seed.is_named() => {
            Err(wrong_usage(format!("{NOTHING_NAMED} ({error:#})")))
        }
        client => client,
    }
}

/// The Workers of a seed that the names and flags select.
pub(in crate::cli) async fn live_scope(
    client: &Client,
    reading: &Reading,
    names: &[String],
    fallback: Fallback,
) -> anyhow::Result<Scope> {
    let within = reading.namespace.as_deref();
    if !names.is_empty() {
        let mut targets = Vec::new();
        for name in names {
            targets.push(Search { client, names }.resolve(name, within).await?);
        }
        return Ok(Scope::Targets(targets));
    }
    if let Some(namespace) = within {
        return Ok(Scope::Targets(vec![Target::namespace(namespace)]));
    }
    if reading.all_namespaces || reading.selector.is_some() || fallback == Fallback::All {
        return Ok(Scope::All);
    }
    match client.default_namespace() {
        UNSET_NAMESPACE | "" => Err(wrong_usage(NOTHING_NAMED)),
        namespace => Ok(Scope::Targets(vec![Target::namespace(namespace)])),
    }
}

/// The error of a list of Workers. In a garden it names the seed of the shoot.
pub(in crate::cli) async fn not_listed(
    client: &Client,
    names: &[String],
    namespace: Option<&str>,
    error: kube::Error,
) -> anyhow::Error {
    let is_unserved = matches!(&error, kube::Error::Api(status) if status.code == 404);
    // A failure of the second request must not hide the first.
    if is_unserved && is_garden(client).await.is_ok_and(|is_garden| is_garden) {
        return garden::seed_of(client, names, namespace).await;
    }
    workers_unlisted(error)
}

struct Search<'a> {
    client: &'a Client,
    /// All names, for errors.
    names: &'a [String],
}

impl Search<'_> {
    async fn resolve(&self, name: &str, within: Option<&str>) -> anyhow::Result<Target> {
        if let Some(namespace) = within {
            let (index, meaning) = self.in_namespace(namespace, name).await?;
            return chosen(name, meaning, &index);
        }
        if let Some(target) = self.in_likely_namespace(name).await? {
            return Ok(target);
        }
        let mut index = NameIndex::default();
        self.add_names::<Worker>(None, &mut index).await?;
        let meaning = index.resolve(name, None);
        if meaning != Meaning::None {
            return chosen(name, meaning, &index);
        }
        if let Some(namespace) = index.namespace_of_prefix(name).map(str::to_owned) {
            let (index, meaning) = self.in_namespace(&namespace, name).await?;
            if meaning != Meaning::None {
                return chosen(name, meaning, &index);
            }
        }
        self.add_names::<MachineDeployment>(None, &mut index).await?;
        self.add_names::<Machine>(None, &mut index).await?;
        let meaning = index.resolve(name, None);
        chosen(name, meaning, &index)
    }

    /// Searches the namespace that the name itself contains, because a user may not be allowed to list all namespaces.
    async fn in_likely_namespace(&self, name: &str) -> anyhow::Result<Option<Target>> {
        let likely = match name.split_once('/') {
            Some((namespace, _)) if namespace.starts_with(SHOOT_NAMESPACE) => Some(namespace.to_owned()),
            Some(_) => namespace_of_shoot(name),
            None if name.starts_with(SHOOT_NAMESPACE) => Some(name.to_owned()),
            None => None,
        };
        let Some(namespace) = likely else { return Ok(None) };
        match self.in_namespace(&namespace, name).await? {
            (_, Meaning::One(target)) => Ok(Some(target)),
            (_, Meaning::Several(meanings)) => Err(ambiguous(name, &meanings)),
            (_, Meaning::None) => Ok(None),
        }
    }

    async fn in_namespace(&self, namespace: &str, name: &str) -> anyhow::Result<(NameIndex, Meaning)> {
        let mut index = NameIndex::default();
        let resource = ApiResource::erase::<Worker>(&());
        let workers: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        match workers.list(&ListParams::default()).await {
            Ok(listed) => {
                for worker in listed.items {
                    let mut worker = serde_json::to_value(worker)?;
                    worker["kind"] = "Worker".into();
                    index.add(&worker);
                }
            }
            Err(error) => return Err(not_listed(self.client, self.names, Some(namespace), error).await),
        }
        let meaning = index.resolve(name, Some(namespace));
        // A name that is the namespace itself is no machine object.
        if meaning != Meaning::None || name == namespace {
            return Ok((index, meaning));
        }
        self.add_names::<MachineDeployment>(Some(namespace), &mut index).await?;
        self.add_names::<Machine>(Some(namespace), &mut index).await?;
        let meaning = index.resolve(name, Some(namespace));
        Ok((index, meaning))
    }

    /// Adds the names and labels of all objects of a kind.
    async fn add_names<Kind: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        index: &mut NameIndex,
    ) -> anyhow::Result<()> {
        let resource = ApiResource::erase::<Kind>(&());
        let objects: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        match objects.list_metadata(&ListParams::default()).await {
            Ok(listed) => listed.items.iter().for_each(|object| index.add(&named_document(object, &resource.kind))),
            Err(error) if resource.kind == "Worker" => {
                return Err(not_listed(self.client, self.names, namespace, error).await);
            }
            Err(error) => {
                return Err(anyhow::Error::new(error).context(format!("{} can't be listed", resource.plural)));
            }
        }
        Ok(())
    }
}

fn named_document(object: &PartialObjectMeta<DynamicObject>, kind: &str) -> Value {
    let metadata = &object.metadata;
    json!({
        "kind": kind,
        "metadata": {"name": metadata.name, "namespace": metadata.namespace, "labels": metadata.labels},
    })
}

fn chosen(name: &str, meaning: Meaning, index: &NameIndex) -> anyhow::Result<Target> {
    match meaning {
        Meaning::One(target) => Ok(target),
        Meaning::Several(meanings) => Err(ambiguous(name, &meanings)),
        Meaning::None => Err(not_found(name, index)),
    }
}
