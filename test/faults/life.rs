//! One Worker through its flows, with the expected end states.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::controller::{Chatter, Controller};
use crate::dump::Dump;
use crate::flow::{Fleet, Flow};
use crate::invariants::{Mark, violations};
use crate::observer::Seen;
use crate::world::World;
use test_support::cluster::eventually;
use test_support::leaks;
use test_support::openstack::Project;
use test_support::proxy::{Call, Treatment};
use test_support::shoot::{Kind, Shoot};

/// Longer than any flow takes on a busy machine, including backoff.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// The end state of each flow without faults.
#[derive(Clone, Default)]
pub(crate) struct Ends(Arc<Mutex<BTreeMap<Flow, Dump>>>);

impl Ends {
    fn of(&self, flow: Flow) -> Option<Dump> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&flow).cloned()
    }

    fn learn(&self, flow: Flow, dump: Dump) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(flow, dump);
    }
}

/// A Worker with its controller.
pub(crate) struct Life<'a> {
    pub(crate) world: &'a World,
    pub(crate) shoot: Shoot,
    pub(crate) controller: Controller,
    fleet: Fleet,
    openstack: Project,
    ends: Ends,
    marks: Vec<Mark>,
}

/// The course of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Went {
    /// From the request to its end.
    pub(crate) took: Duration,
    /// From the last kill to the end, if there was one.
    pub(crate) recovered_in: Option<Duration>,
}

impl<'a> Life<'a> {
    /// Starts a life in a new namespace.
    pub(crate) async fn begin(world: &'a World, prefix: &str, ends: &Ends) -> Result<Self> {
        Self::begin_with(world, prefix, ends, Chatter::Debug, Fleet::Azure).await
    }

    /// Same as [`Self::begin`] for a fleet and a log level.
    pub(crate) async fn begin_with(
        world: &'a World,
        prefix: &str,
        ends: &Ends,
        chatter: Chatter,
        fleet: Fleet,
    ) -> Result<Self> {
        let (shoot, controller) = world.shoot(prefix, chatter).await?;
        let openstack = world.openstack.project(&shoot.namespace);
        // Pools are processed concurrently, so ids must not depend on the order.
        openstack.set(|state| state.id_of = Box::new(|name, _| format!("id-of-{name}")));
        Ok(Self { world, shoot, controller, fleet, openstack, ends: ends.clone(), marks: Vec::new() })
    }

    /// Runs one flow to its end. Whenever the proxy stops the world, kills and restarts the controller.
    pub(crate) async fn go(&mut self, flow: Flow) -> Result<Went> {
        let start = Instant::now();
        let since = self.request(flow).await?;
        let mut killed = None;
        loop {
            tokio::select! {
                biased;
                () = self.controller.proxy.stopped() => {}
                over = self.over(flow, since) => over.with_context(|| self.controller.last_words())?,
            }
            if !self.controller.proxy.stops() {
                break;
            }
            // The flow may be complete with the last write, without the controller knowing it.
            self.controller.proxy.stopped().await;
            killed = Some(Instant::now());
            self.controller.kill().await?;
            self.controller.restart()?;
        }
        self.controller.ensure_running()?;
        if self.fleet == Fleet::Example("openstack") {
            self.has_recorded_groups_alone().await?;
        }
        Ok(Went { took: start.elapsed(), recovered_in: killed.map(|killed| killed.elapsed()) })
    }

    /// OpenStack has exactly the server groups that the Worker's status records.
    async fn has_recorded_groups_alone(&self) -> Result<()> {
        eventually(LONG, "as many server groups as records", async || {
            let worker = self.shoot.get(Kind::Worker, "fleet").await?.unwrap_or_default();
            let records = &worker["status"]["providerStatus"]["serverGroupDependencies"];
            let name = |record: &Value| record["name"].as_str().unwrap_or_default().to_owned();
            let mut recorded: Vec<String> = records.as_array().into_iter().flatten().map(name).collect();
            let mut there = self.openstack.names();
            recorded.sort();
            there.sort();
            ensure!(recorded == there, "{recorded:?} are recorded, {there:?} are there");
            Ok(())
        })
        .await
    }

    /// Starts a flow. Returns the revision after which it can complete.
    pub(crate) async fn request(&mut self, flow: Flow) -> Result<u64> {
        let since = flow.begin(&self.shoot, self.fleet, &self.openstack).await?;
        self.marks.push(Mark { since, flow });
        Ok(since)
    }

    /// Waits until a flow is complete and has the expected end state, which the first run determines.
    pub(crate) async fn over(&self, flow: Flow, since: u64) -> Result<()> {
        let namespace = &self.shoot.namespace;
        let what = format!("{} in {namespace}", flow.name());
        let observer = &self.world.observer;
        let Some(end) = self.ends.of(flow) else {
            observer.until(namespace, LONG, &what, |seen| flow.ensure_over(seen, since)).await?;
            self.ends.learn(flow, self.settled().await?);
            return Ok(());
        };
        observer
            .until(namespace, LONG, &what, |seen| {
                flow.ensure_over(seen, since)?;
                let difference = end.difference(&Dump::of(namespace, &seen.now));
                ensure!(difference.is_none(), "it has another end:\n{}", difference.unwrap_or_default());
                Ok(())
            })
            .await
    }

    /// Waits until machine-controller-manager has observed the last version of each deployment, one of which was
    /// changed at a revision.
    pub(crate) async fn taken_up(&self, changed: u64) -> Result<()> {
        let taken_up = |seen: &Seen| {
            ensure!(seen.versions.iter().any(|version| version.revision >= changed), "the change has not been seen");
            let deployments = seen.now.iter().filter(|((kind, _), _)| *kind == Kind::MachineDeployment);
            for ((_, name), deployment) in deployments {
                let observed = &deployment["status"]["observedGeneration"];
                ensure!(*observed == deployment["metadata"]["generation"], "{name} has been taken up as of {observed}");
            }
            Ok(())
        };
        self.world.observer.until(&self.shoot.namespace, LONG, "all deployments taken up", taken_up).await
    }

    /// The objects of the namespace once nothing has changed for a second.
    pub(crate) async fn settled(&self) -> Result<Dump> {
        let namespace = &self.shoot.namespace;
        loop {
            let count = self.world.observer.versions(namespace).len();
            let quiet = self.world.observer.until(namespace, Duration::from_secs(1), "a change", |seen| {
                ensure!(seen.versions.len() > count, "there is none");
                Ok(())
            });
            if quiet.await.is_err() {
                break;
            }
        }
        self.world.observer.until(namespace, LONG, "objects", |seen| Ok(Dump::of(namespace, &seen.now))).await
    }

    pub(crate) fn set_faults(&self, faults: impl FnMut(&Call) -> Treatment + Send + 'static) {
        self.controller.proxy.set_faults(faults);
    }

    /// Ends the life. Returns all violated invariants, and secrets and panics in the log.
    pub(crate) async fn evaluate(self) -> Result<Vec<String>> {
        let mut found = violations(&self.world.observer.versions(&self.shoot.namespace), &self.marks);
        found.iter_mut().for_each(|violation| violation.insert_str(0, &format!("{}: ", self.shoot.namespace)));
        found.extend(self.end().await?);
        Ok(found)
    }

    /// Ends a life in which other writers violate the invariants. Returns only secrets and panics in the log.
    pub(crate) async fn end(self) -> Result<Vec<String>> {
        let namespace = &self.shoot.namespace;
        let log = self.controller.log()?;
        let mut found = Vec::new();
        found.extend(
            leaks::ensure_no_secrets(&format!("the log of {namespace}"), &log).err().map(|leak| leak.to_string()),
        );
        found.extend(log.lines().find(|line| line.contains("panicked")).map(str::to_owned));
        self.world.observer.forget(namespace);
        self.controller.stop().await.context("stopping the controller")?;
        Ok(found)
    }
}
