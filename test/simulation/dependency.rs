//! What pools depend on at a cloud, by the stand-ins of the other tests, and behind the network of a life.

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
    /// The way of a process to its cloud.
    pub(crate) static WAY: Way;
}

/// The way of a process to a cloud.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) network: Network,
    pub(crate) author: &'static str,
    pub(crate) router: Router,
}

/// A cloud at which the pools of a shoot depend on something.
pub(crate) trait Dependency: Send + Sync {
    /// The type of Workers.
    fn provider(&self) -> &'static str;

    /// For the controllers of these Workers: asked by [`WAY`].
    fn clouds(&self) -> &'static [&'static dyn CloudFactory];

    /// What answers there.
    fn router(&self) -> Router;

    /// Lets pools of the shoot depend on something.
    fn prepare(&self, documents: &mut Documents, random: &Random);

    /// gardenlet asks for something else.
    fn change(&self, gardenlet: &Gardenlet, random: &Random);

    /// Whether pools depend on anything.
    fn is_needed(&self, worker: &Value) -> bool;

    /// Whether what is made there, or goes, takes a while.
    fn takes_a_while(&self) -> bool {
        false
    }

    /// What goes on there comes to its end, also where nobody asks how it stands.
    fn complete(&self) {}

    /// Names of what is there, as [`recorded`] and [`of_class`] have them.
    fn names(&self) -> Vec<String>;
}

/// What pools depend on, if on anything.
pub(crate) type Dependencies = Option<Arc<dyn Dependency>>;

/// What a Worker records of it.
pub(crate) fn recorded(worker: &Value) -> Vec<&str> {
    let status = &worker["status"]["providerStatus"];
    let records = ["serverGroupDependencies", "vmoDependencies"].map(|member| status[member].as_array());
    records.into_iter().flatten().flatten().filter_map(|record| last_of_path(&record["id"])).collect()
}

/// What a machine class refers to.
pub(crate) fn of_class(class: &Value) -> Option<&str> {
    let paths = ["/providerSpec/spec/serverGroupID", "/providerSpec/properties/machineSet/id"];
    paths.iter().find_map(|path| last_of_path(class.pointer(path)?))
}

fn last_of_path(id: &Value) -> Option<&str> {
    id.as_str()?.rsplit('/').next().filter(|name| !name.is_empty())
}

/// What needs that whose address ends so: a machine class that stays, or a machine.
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
