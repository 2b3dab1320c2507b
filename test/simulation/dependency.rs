//! Clouds that pools depend on: the fakes of other tests, connected through the simulated network.

use std::sync::Arc;

use axum::Router;
use gardener_extension_worker::cloud::CloudFactory;
use serde_json::Value;
use tokio::task_local;

use crate::actor::{is_vanishing, name_of};
use crate::api_server::kinds::{MACHINE, MACHINE_CLASS};
use crate::api_server::selector::Selector;
use crate::api_server::store::Store;
use crate::documents::{Documents, NAMESPACE};
use crate::gardenlet::Gardenlet;
use crate::network::Network;
use crate::random::Random;

task_local! {
    /// The current process's connection to its cloud.
    pub(crate) static WAY: Way;
}

/// A process's connection to a cloud.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) network: Network,
    pub(crate) author: &'static str,
    pub(crate) router: Router,
}

/// A cloud with resources that a shoot's pools depend on.
pub(crate) trait Dependency: Send + Sync {
    /// Worker type.
    fn provider(&self) -> &'static str;

    /// Cloud clients for these Workers' controllers, which connect through [`WAY`].
    fn clouds(&self) -> &'static [&'static dyn CloudFactory];

    /// The fake cloud's HTTP handler.
    fn router(&self) -> Router;

    /// Makes pools of the shoot depend on the cloud.
    fn prepare(&self, documents: &mut Documents, random: &Random);

    /// gardenlet changes what pools depend on.
    fn change(&self, gardenlet: &Gardenlet, random: &Random);

    /// Whether pools depend on anything.
    fn is_needed(&self, worker: &Value) -> bool;

    /// Whether creating and deleting resources takes time.
    fn takes_a_while(&self) -> bool {
        false
    }

    /// Completes running operations, even if no client polls them.
    fn complete(&self) {}

    /// Names of existing resources, in the form of [`recorded`] and [`of_class`].
    fn names(&self) -> Vec<String>;
}

/// The cloud that pools depend on, if any.
pub(crate) type Dependencies = Option<Arc<dyn Dependency>>;

/// Names of dependencies that a Worker's status records.
pub(crate) fn recorded(worker: &Value) -> Vec<&str> {
    let status = &worker["status"]["providerStatus"];
    let records = ["serverGroupDependencies", "vmoDependencies"].map(|member| status[member].as_array());
    records.into_iter().flatten().flatten().filter_map(|record| last_of_path(&record["id"])).collect()
}

/// Name of the dependency that a machine class refers to.
pub(crate) fn of_class(class: &Value) -> Option<&str> {
    let paths = ["/providerSpec/spec/serverGroupID", "/providerSpec/properties/machineSet/id"];
    paths.iter().find_map(|path| last_of_path(class.pointer(path)?))
}

fn last_of_path(id: &Value) -> Option<&str> {
    id.as_str()?.rsplit('/').next().filter(|name| !name.is_empty())
}

/// A user of the resource at this path: a machine class that is not being deleted, or a machine.
pub(crate) fn user_of(store: &Store, path: &str) -> Option<String> {
    let name = path.rsplit('/').next();
    let [classes, machines] = [&MACHINE_CLASS, &MACHINE]
        .map(|kind| store.list(kind, &Selector::new(Some(NAMESPACE), "", ""), store.revision));
    let referring: Vec<&Value> =
        classes.iter().map(|class| &class.value).filter(|class| of_class(class) == name).collect();
    let of_class = |machine: &Value| referring.iter().any(|class| name_of(class) == machine["spec"]["class"]["name"]);
    let class = referring.iter().find(|class| !is_vanishing(class));
    let machine = machines.iter().map(|machine| &machine.value).find(|machine| of_class(machine));
    class.copied().or(machine).map(|user| format!("{} {}", user["kind"].as_str().unwrap_or_default(), name_of(user)))
}
