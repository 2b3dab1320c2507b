//! OpenStack, as far as pools depend on it: the server groups of Nova, by the stand-in of the other tests, and behind the network of a life.

use std::sync::Arc;

use axum::Router;
use clap::{ArgMatches, Error};
use futures::FutureExt;
use gardener_extension_worker::cloud::dependency::Cloud;
use gardener_extension_worker::cloud::openstack::{OpenStack as Client, Transport};
use gardener_extension_worker::cloud::{CloudFactory, TaskEnded, WriteCheck};
use serde_json::{Value, json};
use test_support::openstack::{OpenStack as StandIn, Project, ask_for_groups, set_policy};
use tokio::task_local;

use crate::actor::{is_vanishing, name_of};
use crate::api_server::kinds::{MACHINE, MACHINE_CLASS};
use crate::api_server::selector::Selector;
use crate::api_server::store::Store;
use crate::documents::{Documents, NAMESPACE};
use crate::network::Network;
use crate::random::Random;

/// What server groups may be for.
const POLICIES: [&str; 3] = ["affinity", "anti-affinity", "soft-anti-affinity"];

/// For controllers whose pools depend on OpenStack.
pub(crate) const CLOUDS: &[&dyn CloudFactory] = &[&ByNetwork];

task_local! {
    /// The way of a process to OpenStack.
    pub(crate) static TRANSPORT: Transport;
}

/// OpenStack, asked by the network of a life.
struct ByNetwork;

impl CloudFactory for ByNetwork {
    fn worker_type(&self) -> &'static str {
        "openstack"
    }

    fn open(&self, _: &ArgMatches, write_check: WriteCheck, task_ended: TaskEnded) -> Result<Arc<dyn Cloud>, Error> {
        Ok(Arc::new(Client::by(TRANSPORT.get(), write_check, task_ended)))
    }
}

/// The project of the shoot.
#[derive(Clone)]
pub(crate) struct OpenStack {
    router: Router,
    project: Project,
}

impl OpenStack {
    pub(crate) fn new() -> Self {
        let (router, project) = StandIn::in_process("shoot");
        Self { router, project }
    }

    /// The way of that process there.
    pub(crate) fn transport(&self, network: &Network, author: &'static str) -> Transport {
        let (network, openstack) = (network.clone(), self.clone());
        Arc::new(move |request| network.clone().carried(author, openstack.router.clone(), request).boxed())
    }

    /// Lets pools of the shoot ask for groups.
    pub(crate) fn prepare(&self, documents: &mut Documents, random: &Random) {
        documents.cluster["spec"]["cloudProfile"]["spec"]["providerConfig"]["serverGroupPolicies"] = json!(POLICIES);
        let region = documents.worker["spec"]["region"].as_str().unwrap_or_default().to_owned();
        self.project.set(|state| state.regions = vec![region]);
        ask_for_groups(&mut documents.secrets, &self.project, &[]);
        for pool in pool_names(&documents.worker) {
            self.set_policy(&mut documents.worker, &pool, random);
        }
    }

    /// Another policy for the first pool, or none.
    pub(crate) fn change_policy(&self, worker: &mut Value, random: &Random) {
        if let Some(pool) = pool_names(worker).first() {
            self.set_policy(worker, pool, random);
        }
    }

    fn set_policy(&self, worker: &mut Value, pool: &str, random: &Random) {
        match POLICIES.get(usize::try_from(random.below(4)).unwrap_or_default()) {
            Some(policy) => set_policy(worker, pool, policy),
            None => set_policy(worker, pool, ""),
        }
    }

    /// Ids of the groups that are there.
    pub(crate) fn groups(&self) -> Vec<String> {
        let id = |group: &Value| group["id"].as_str().unwrap_or_default().to_owned();
        self.project.set(|state| state.groups.iter().map(id).collect())
    }
}

fn pool_names(worker: &Value) -> Vec<String> {
    let pools = worker["spec"]["pools"].as_array().into_iter().flatten();
    pools.map(|pool| pool["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The records of server groups in a Worker.
pub(crate) fn recorded_groups(worker: &Value) -> Vec<&str> {
    let records = worker["status"]["providerStatus"]["serverGroupDependencies"].as_array();
    records.into_iter().flatten().filter_map(|record| record["id"].as_str()).collect()
}

/// Whether any pool asks for a group.
pub(crate) fn asks_for_groups(worker: &Value) -> bool {
    let pools = worker["spec"]["pools"].as_array();
    let policy = |pool: &Value| pool["providerConfig"]["serverGroup"]["policy"].as_str().map(str::to_owned);
    pools.into_iter().flatten().filter_map(policy).any(|policy| !policy.is_empty())
}

/// The group that a machine class refers to.
pub(crate) fn group_of_class(class: &Value) -> Option<&str> {
    class.pointer("/providerSpec/spec/serverGroupID").and_then(Value::as_str).filter(|id| !id.is_empty())
}

/// What needs the group whose path ends so: a machine class that stays, or a machine.
pub(crate) fn user_of_group(store: &Store, path: &str) -> Option<String> {
    let id = path.rsplit('/').next();
    let [classes, machines] = [&MACHINE_CLASS, &MACHINE]
        .map(|kind| store.list(kind, &Selector::new(Some(NAMESPACE), "", ""), store.revision));
    let with_group: Vec<&Value> =
        classes.iter().map(|class| &class.value).filter(|class| group_of_class(class) == id).collect();
    let of_class = |machine: &Value| with_group.iter().any(|class| name_of(class) == machine["spec"]["class"]["name"]);
    let class = with_group.iter().find(|class| !is_vanishing(class));
    let machine = machines.iter().map(|machine| &machine.value).find(|machine| of_class(machine));
    class.copied().or(machine).map(|user| format!("{} {}", user["kind"].as_str().unwrap_or_default(), name_of(user)))
}
