//! A fake OpenStack for the dependencies of pools: the server groups of Nova.

use std::sync::Arc;

use axum::Router;
use clap::{ArgMatches, Error};
use futures::FutureExt;
use gardener_extension_worker::cloud::dependency::Cloud;
use gardener_extension_worker::cloud::openstack::{OpenStack as Client, Transport};
use gardener_extension_worker::cloud::{CloudFactory, TaskEnded, WriteCheck};
use serde_json::{Value, json};
use test_support::openstack::{OpenStack as StandIn, Project, enable_groups, set_policy};

use crate::dependency::{Dependency, WAY};
use crate::documents::Documents;
use crate::gardenlet::Gardenlet;
use crate::random::Random;

/// Server group policies.
const POLICIES: [&str; 3] = ["affinity", "anti-affinity", "soft-anti-affinity"];

/// Connects to OpenStack through the simulated network.
struct ByNetwork;

impl CloudFactory for ByNetwork {
    fn worker_type(&self) -> &'static str {
        "openstack"
    }

    fn open(&self, _: &ArgMatches, write_check: WriteCheck, task_ended: TaskEnded) -> Result<Arc<dyn Cloud>, Error> {
        let way = WAY.get();
        let transport: Transport = Arc::new(move |request| way.clone().carry(request).boxed());
        Ok(Arc::new(Client::by(transport, write_check, task_ended)))
    }
}

/// The shoot's project.
pub(crate) struct OpenStack {
    router: Router,
    project: Project,
}

impl OpenStack {
    pub(crate) fn new() -> Self {
        let (router, project) = StandIn::in_process("shoot");
        Self { router, project }
    }
}

impl Dependency for OpenStack {
    fn provider(&self) -> &'static str {
        "openstack"
    }

    fn clouds(&self) -> &'static [&'static dyn CloudFactory] {
        &[&ByNetwork]
    }

    fn router(&self) -> Router {
        self.router.clone()
    }

    /// Sets a policy for each pool, or none.
    fn prepare(&self, documents: &mut Documents, random: &Random) {
        documents.cluster["spec"]["cloudProfile"]["spec"]["providerConfig"]["serverGroupPolicies"] = json!(POLICIES);
        let region = documents.worker["spec"]["region"].as_str().unwrap_or_default().to_owned();
        self.project.set(|state| state.regions = vec![region]);
        enable_groups(&mut documents.secrets, &self.project, &[]);
        for pool in pool_names(&documents.worker) {
            change_policy(&mut documents.worker, &pool, random);
        }
    }

    /// Changes or removes the first pool's policy.
    fn change(&self, gardenlet: &Gardenlet, random: &Random) {
        gardenlet.request("another policy", |worker| {
            if let Some(pool) = pool_names(worker).first() {
                change_policy(worker, pool, random);
            }
        });
    }

    fn is_needed(&self, worker: &Value) -> bool {
        let pools = worker["spec"]["pools"].as_array();
        let policy = |pool: &Value| pool["providerConfig"]["serverGroup"]["policy"].as_str().map(str::to_owned);
        pools.into_iter().flatten().filter_map(policy).any(|policy| !policy.is_empty())
    }

    fn names(&self) -> Vec<String> {
        let id = |group: &Value| group["id"].as_str().unwrap_or_default().to_owned();
        self.project.set(|state| state.groups.iter().map(id).collect())
    }
}

fn change_policy(worker: &mut Value, pool: &str, random: &Random) {
    let policy = POLICIES.get(usize::try_from(random.below(4)).unwrap_or_default());
    set_policy(worker, pool, policy.unwrap_or(&""));
}

fn pool_names(worker: &Value) -> Vec<String> {
    let pools = worker["spec"]["pools"].as_array().into_iter().flatten();
    pools.map(|pool| pool["name"].as_str().unwrap_or_default().to_owned()).collect()
}
