//! Other Workers of the same shoot namespace. Gardener creates one per shoot. With a second one, each would delete the
//! machine objects of the other as orphans, and deleting one Worker would delete the machines of both.
//!
//! Objects are assigned to a Worker by pool: machine deployments by their label, other objects by the deployment or
//! class that they refer to, or by the prefix of their name.

use std::collections::{BTreeMap, BTreeSet};

use crate::pool::names::pool_prefix;
use crate::provider::{PoolError, PoolProblem};
use crate::worker::machines::live_machine::PoolMember;
use crate::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use crate::worker::plan::Plan;
use wire::api::gardener::Worker;

/// Pools and machine deployments of the other Workers of a namespace, except those being deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherWorkers {
    /// Pools of this Worker.
    own_pools: BTreeSet<String>,
    /// Pools of the others, with the name of a Worker that has it.
    pools: BTreeMap<String, String>,
    /// Machine deployments that the status of the others names, with the name of the Worker.
    deployments: BTreeMap<String, String>,
}

impl OtherWorkers {
    /// Of this Worker and the others of its namespace.
    pub fn new<'a>(own: &Worker, others: impl Iterator<Item = &'a Worker>) -> Self {
        let own_pools = own.spec.pools.iter().map(|pool| pool.name.clone()).collect();
        let mut found = Self { own_pools, ..Self::default() };
        for other in others.filter(|other| other.metadata.deletion_timestamp.is_none()) {
            let name = other.metadata.name.clone().unwrap_or_default();
            let pools = other.spec.pools.iter().map(|pool| (pool.name.clone(), name.clone()));
            found.pools.extend(pools);
            let published = other.status.machine_deployments.iter();
            found.deployments.extend(published.map(|deployment| (deployment.name.clone(), name.clone())));
        }
        found
    }

    /// Whether this Worker has its namespace for itself.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pools.is_empty() && self.deployments.is_empty()
    }

    /// Makes an error of each pool that writes what a pool of another Worker writes. What such a pool has stays.
    pub fn reject_shared_pools(&self, plan: &mut Plan) {
        for pool in &mut plan.pools {
            let Ok(planned) = &*pool else { continue };
            let published =
                planned.machines.iter().find_map(|machine| self.deployments.get(&machine.deployment.name.0));
            let Some(other) = self.pools.get(&planned.pool).or(published) else { continue };
            let detail = format!("the Worker {other:?} of the same namespace makes the same machine objects");
            let error: PoolError = PoolProblem::field("name", detail).of_pool(&planned.pool);
            *pool = Err(error);
        }
    }

    /// The objects without those of the other Workers. Pools of both are left out too, so that a deletion keeps their
    /// machines.
    #[must_use]
    pub fn without_theirs(&self, namespace: &str, mut live: MachineObjects) -> MachineObjects {
        if self.is_empty() {
            return live;
        }
        let (theirs, own): (BTreeMap<_, _>, _) =
            std::mem::take(&mut live.deployments).into_iter().partition(|(name, live)| self.is_theirs(name, live));
        live.deployments = own;
        let used = theirs.values().map(|deployment| deployment.object.spec.template.spec.class.name.as_str());
        let mut classes: BTreeSet<String> = used.map(str::to_owned).collect();
        let names = live.classes.keys().chain(live.class_secrets.keys());
        classes.extend(names.filter(|name| self.has_their_prefix(namespace, name)).cloned());
        let is_theirs = |member: &PoolMember| {
            classes.contains(&*member.class)
                || member.deployment().is_some_and(|deployment| theirs.contains_key(deployment))
                || self.has_their_prefix(namespace, &member.class)
        };
        live.machine_sets.retain(|set| !is_theirs(&set.member));
        live.machines.retain(|machine| !is_theirs(&machine.member));
        live.classes.retain(|name, _| !classes.contains(name));
        live.class_secrets.retain(|name, _| !classes.contains(name));
        live
    }

    /// The machine deployments without those of the other Workers.
    #[must_use]
    pub fn deployments_without_theirs(
        &self,
        mut deployments: BTreeMap<String, LiveDeployment>,
    ) -> BTreeMap<String, LiveDeployment> {
        deployments.retain(|name, deployment| !self.is_theirs(name, deployment));
        deployments
    }

    fn is_theirs(&self, name: &str, deployment: &LiveDeployment) -> bool {
        match deployment.pool() {
            Some(pool) if self.pools.contains_key(pool) => true,
            Some(pool) if self.own_pools.contains(pool) => false,
            Some(_) | None => self.deployments.contains_key(name),
        }
    }

    /// Whether the pool with the longest prefix of the name is theirs: `s-a` is a prefix of the classes of the pools `a` and `a-b`.
    fn has_their_prefix(&self, namespace: &str, name: &str) -> bool {
        let longest = |pools: &mut dyn Iterator<Item = &String>| {
            let prefixes = pools.map(|pool| pool_prefix(namespace, pool));
            let fits = |prefix: &String| name.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.starts_with('-'));
            prefixes.filter(fits).map(|prefix| prefix.len()).max()
        };
        let theirs = longest(&mut self.pools.keys());
        theirs.is_some() && theirs >= longest(&mut self.own_pools.iter())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::provider::PoolPlan;
    use crate::provider::test_support::machine_plan;
    use crate::worker::machines::machine_objects::DigestedObject;

    const NAMESPACE: &str = "shoot--p--s";

    fn worker(name: &str, pools: &[&str], is_deleted: bool) -> Worker {
        let pool = |name: &&str| {
            let image = json!({"name": "i", "version": "1"});
            json!({"name": name, "machineType": "t", "machineImage": image, "minimum": 1, "maximum": 1})
        };
        let mut metadata = json!({"name": name});
        if is_deleted {
            metadata["deletionTimestamp"] = "2026-11-28T12:00:00Z".into();
        }
        let pools: Vec<Value> = pools.iter().map(pool).collect();
        serde_json::from_value(json!({"metadata": metadata, "spec": {"type": "azure", "pools": pools}})).unwrap()
    }

    /// Objects of each of these pools.
    fn live(pools: &[&str]) -> MachineObjects {
        let mut live = MachineObjects::default();
        for pool in pools {
            let class = format!("{NAMESPACE}-{pool}-12345");
            let deployment = format!("{NAMESPACE}-{pool}");
            let document = json!({
                "metadata": {"name": deployment, "labels": {"worker.gardener.cloud/pool": pool}},
                "spec": {"template": {"spec": {"class": {"name": class}}}},
            });
            live.deployments.insert(deployment, LiveDeployment::read_without_codes(document).unwrap());
            let document = json!({"metadata": {"name": class}});
            live.classes.insert(class.clone(), DigestedObject::class(document).unwrap());
            let machine = json!({"metadata": {"name": pool}, "spec": {"class": {"name": class}}});
            live.machines.push(serde_json::from_value(machine).unwrap());
        }
        live
    }

    fn names(live: &MachineObjects) -> [Vec<String>; 3] {
        let machines = live.machines.iter().map(|machine| machine.member.name.to_string()).collect();
        [live.deployments.keys().cloned().collect(), live.classes.keys().cloned().collect(), machines]
    }

    #[test]
    fn objects_of_other_workers_are_left_out() {
        let own = worker("w", &["a-b", "both"], false);
        let others = OtherWorkers::new(&own, [worker("v", &["a", "both", "c"], false)].iter());
        let left = others.without_theirs(NAMESPACE, live(&["a", "a-b", "both", "c"]));
        assert_eq!(names(&left), names(&live(&["a-b"])));
    }

    #[test]
    fn workers_that_are_deleted_have_no_claim() {
        let own = worker("w", &["a"], false);
        let others = OtherWorkers::new(&own, [worker("v", &["a"], true)].iter());
        assert!(others.is_empty());
        assert_eq!(names(&others.without_theirs(NAMESPACE, live(&["a"]))), names(&live(&["a"])));
    }

    #[test]
    fn pools_that_two_workers_have_are_errors() {
        let own = worker("w", &["a", "b"], false);
        let planned = |pool: &str| {
            let mut machine = machine_plan();
            machine.deployment.name.0 = format!("{NAMESPACE}-{pool}");
            let pool = pool.to_owned();
            let machines = vec![machine];
            Ok(PoolPlan { pool, machines, status_image: json!({}), in_place_hash: None })
        };
        let mut plan = Plan { pools: vec![planned("a"), planned("b")], provider_status: json!({}), ..Plan::default() };
        OtherWorkers::new(&own, [worker("v", &["b", "c"], false)].iter()).reject_shared_pools(&mut plan);
        let errors: Vec<String> = plan.errors().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].contains('b') && errors[0].contains("the Worker \"v\" of the same namespace"), "{errors:?}");
        let mut other = worker("v", &["c"], false);
        let status = json!([{"name": format!("{NAMESPACE}-a"), "minimum": 1, "maximum": 1}]);
        other.status.machine_deployments = serde_json::from_value(status).unwrap();
        let mut plan = Plan { pools: vec![planned("a")], provider_status: json!({}), ..Plan::default() };
        OtherWorkers::new(&own, [other].iter()).reject_shared_pools(&mut plan);
        assert_eq!(plan.errors().count(), 1, "another Worker has published it");
    }
}
