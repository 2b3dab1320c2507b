//! OpenStack: server groups for pools that ask for one (docs/openstack-server-groups.md).
//!
//! What is decided stands in [`crate::provider::openstack::server_groups`] and is pure; `nova` has the calls; here is only who
//! asks, waits and tells.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::ArgMatches;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::sync::watch;

use self::nova::Nova;
use super::background_task::{Attempt, BackgroundTask, SETTLE_TIMEOUT, TaskState, due, ended, removal_state, settle};
use super::{CloudFactory, TaskEnded, WriteAccess, WriteCheck};
use crate::api::gardener::{Cluster, Worker};
use crate::api::secret::Secrets;
use crate::cloud::dependency::{CleanUp, Cloud, DependencyRequest, DependencyState};
use crate::provider;
use crate::provider::openstack::documents::ServerGroupDependency;
use crate::provider::openstack::server_groups::{Needs, PoolNeed, ServerGroupScope, needs, needs_of_deletion};
use crate::provider::profile::ProfileFormat as _;
use crate::provider::{Dependencies, DependencyFailure, WorkerContext, WorkerError};

mod nova;

/// What waits for a removal is told.
const BEING_REMOVED: &str = "until unneeded server groups are gone";

/// OpenStack takes no arguments: Secret and CloudProfile say where it is.
pub(crate) struct OpenStackFactory;

impl CloudFactory for OpenStackFactory {
    fn worker_type(&self) -> &'static str {
        provider::openstack::OpenStack.provider_type()
    }

    fn open(
        &self,
        _: &ArgMatches,
        write_check: WriteCheck,
        task_ended: TaskEnded,
    ) -> Result<Arc<dyn Cloud>, clap::Error> {
        Ok(Arc::new(OpenStack::new(write_check, task_ended)))
    }
}

/// Server groups at OpenStack.
pub struct OpenStack {
    write_check: WriteCheck,
    task_ended: TaskEnded,
    tasks: Mutex<HashMap<String, WorkerTasks>>,
}

/// Nova, as one Worker asks it: a call at a time.
type SharedNova = Arc<tokio::sync::Mutex<Nova>>;

/// What goes on for one Worker. Its calls go out one after the other.
struct WorkerTasks {
    scope: ServerGroupScope,
    nova: Result<SharedNova, DependencyFailure>,
    pools: HashMap<String, Attempt<Provision, ServerGroupDependency>>,
    removal: Option<Attempt<Removal, Vec<ServerGroupDependency>>>,
}

/// What a pool needs, and what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Provision {
    need: PoolNeed,
    recorded: Option<ServerGroupDependency>,
}

/// What decides about what is unneeded.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Removal {
    needs: Needs,
    /// Ids that machine classes refer to.
    used: Vec<String>,
}

impl OpenStack {
    /// `task_ended` is called when a background task has ended.
    #[must_use]
    pub fn new(write_check: WriteCheck, task_ended: TaskEnded) -> Self {
        Self { write_check, task_ended, tasks: Mutex::default() }
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<String, WorkerTasks>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tasks of a Worker. Those at another place, or with other credentials, help nobody.
    fn tasks_of<'a>(
        &self,
        all: &'a mut HashMap<String, WorkerTasks>,
        uid: &str,
        scope: &ServerGroupScope,
    ) -> &'a mut WorkerTasks {
        let new = || {
            let nova = Nova::new(scope.clone(), Arc::clone(&self.write_check));
            let nova = nova.map(|nova| Arc::new(tokio::sync::Mutex::new(nova)));
            WorkerTasks { scope: scope.clone(), nova, pools: HashMap::new(), removal: None }
        };
        let tasks = all.entry(uid.to_owned()).or_insert_with(new);
        if tasks.scope != *scope {
            *tasks = new();
        }
        tasks
    }

    async fn ensure_dependencies(&self, request: DependencyRequest<'_>) -> Result<DependencyState, WorkerError> {
        let Some(needs) = needs(request.context)? else { return Ok(DependencyState::default()) };
        let uid = uid(request.context.worker);
        let watches = {
            let mut all = self.tasks();
            let tasks = self.tasks_of(&mut all, &uid, &needs.scope);
            tasks.pools.retain(|pool, _| needs.pools.iter().any(|need| need.pool == *pool));
            let is_removing = tasks.removal.as_ref().is_some_and(|removal| !removal.has_ended());
            let provisions = needs
                .pools
                .iter()
                .map(|need| Provision { need: need.clone(), recorded: needs.recorded(&need.pool).cloned() });
            // What is on its way out must not be found again.
            let provisions = provisions.filter(|_| !is_removing);
            provisions.map(|provision| self.pool_task(tasks, provision, &request)).collect()
        };
        settle(watches, SETTLE_TIMEOUT).await;
        Ok(self.dependency_state(&uid, needs))
    }

    /// Begins the task of a pool where it has none that helps.
    fn pool_task(
        &self,
        tasks: &mut WorkerTasks,
        provision: Provision,
        request: &DependencyRequest<'_>,
    ) -> watch::Receiver<TaskState<ServerGroupDependency>> {
        let is_current =
            |present: &&Attempt<_, _>| present.answers(&provision) && !(request.begins && present.has_ended());
        let present = tasks.pools.get(&provision.need.pool).filter(is_current);
        let tries = match present.map_or(Ok(0), Attempt::next_try) {
            Ok(tries) => tries,
            Err(watch) => return watch,
        };
        let purpose = provision.clone();
        let task = self.begin(tasks, request.context.worker, |nova| provision.run(nova));
        let watch = task.watch();
        tasks.pools.insert(purpose.need.pool.clone(), Attempt { purpose, task, tries });
        watch
    }

    /// Begins a task that asks Nova, once no other of the Worker does.
    fn begin<T, Work>(
        &self,
        tasks: &WorkerTasks,
        worker: &Worker,
        work: impl FnOnce(SharedNova) -> Work + Send + 'static,
    ) -> BackgroundTask<T>
    where
        T: Clone + Send + Sync + 'static,
        Work: Future<Output = Result<T, DependencyFailure>> + Send + 'static,
    {
        let nova = tasks.nova.clone();
        let notify = ended(worker, &self.task_ended);
        BackgroundTask::begin(|_| async move { work(nova?).await }, notify)
    }

    /// What is known now.
    fn dependency_state(&self, uid: &str, needs: Needs) -> DependencyState {
        let all = self.tasks();
        let mut dependencies = Dependencies { failures: needs.refused.clone(), ..Dependencies::default() };
        let by_pool = |record: &ServerGroupDependency| (record.pool_name.clone(), record.clone());
        let mut records: BTreeMap<String, ServerGroupDependency> = needs.records.iter().map(by_pool).collect();
        let mut look_again: Option<Duration> = None;
        for need in &needs.pools {
            let attempt = all.get(uid).and_then(|tasks| tasks.pools.get(&need.pool));
            let message = match attempt.map(|attempt| (attempt.task.state(), attempt.tries)) {
                Some((TaskState::Ended(Ok(record), _), _)) => {
                    records.insert(need.pool.clone(), record);
                    continue;
                }
                Some((TaskState::Ended(Err(failure), since), tries)) => {
                    let wait = due(since, tries).unwrap_or_default();
                    look_again = Some(look_again.map_or(wait, |again| again.min(wait)));
                    dependencies.failures.insert(need.pool.clone(), failure);
                    continue;
                }
                Some((TaskState::Running(_), _)) => "for its server group",
                None => BEING_REMOVED,
            };
            let awaited = DependencyFailure { message: message.to_owned(), code: None };
            dependencies.waiting.insert(need.pool.clone(), awaited);
        }
        let records: Vec<ServerGroupDependency> = records.into_values().collect();
        let records_changed = records != needs.records && (self.write_check)() != WriteAccess::DryRun;
        dependencies.records = json!(records);
        DependencyState { dependencies: Some(dependencies), has_something: true, records_changed, look_again }
    }

    async fn remove_now(&self, worker: &Worker, removal: Removal) -> CleanUp {
        let uid = uid(worker);
        let before = removal.needs.records.clone();
        let watch = {
            let mut all = self.tasks();
            let tasks = self.tasks_of(&mut all, &uid, &removal.needs.scope);
            self.removal_task(tasks, removal, worker)
        };
        settle(vec![watch], SETTLE_TIMEOUT).await;
        let mut all = self.tasks();
        let present = all.get(&uid).and_then(|tasks| tasks.removal.as_ref());
        let state = removal_state(present, "server groups", &before, "serverGroupDependencies");
        if matches!(state, CleanUp::Done(_)) {
            all.remove(&uid);
        }
        state
    }

    fn removal_task(
        &self,
        tasks: &mut WorkerTasks,
        removal: Removal,
        worker: &Worker,
    ) -> watch::Receiver<TaskState<Vec<ServerGroupDependency>>> {
        let present = tasks.removal.as_ref().filter(|present| present.purpose == removal);
        let tries = match present.map_or(Ok(0), Attempt::next_try) {
            Ok(tries) => tries,
            Err(watch) => return watch,
        };
        let purpose = removal.clone();
        let task = self.begin(tasks, worker, |nova| removal.run(nova));
        let watch = task.watch();
        tasks.removal = Some(Attempt { purpose, task, tries });
        watch
    }
}

fn uid(worker: &Worker) -> String {
    worker.metadata.uid.clone().unwrap_or_default()
}

impl Provision {
    /// Keeps what is recorded, takes over what is there, or makes one.
    async fn run(self, nova: SharedNova) -> Result<ServerGroupDependency, DependencyFailure> {
        let mut nova = nova.lock().await;
        let Self { need, recorded } = self;
        if let Some(recorded) = recorded
            && nova.get(&recorded.id).await?.is_some_and(|shown| need.is_met_by(&recorded, &shown))
        {
            return Ok(recorded);
        }
        // Also one that was made and not written down before this process was killed.
        if let Some(adopted) = need.adopted(&nova.list().await?) {
            return Ok(need.record(adopted));
        }
        Ok(need.record(&nova.create(&need).await?))
    }
}

impl Attempt<Provision, ServerGroupDependency> {
    /// Whether it is for what the pool needs; once it is over, the pool has its result for a record.
    fn answers(&self, wanted: &Provision) -> bool {
        let has_result = || matches!(self.task.state(), TaskState::Ended(Ok(record), _) if wanted.recorded.as_ref() == Some(&record));
        self.purpose.need == wanted.need && (self.purpose.recorded == wanted.recorded || has_result())
    }
}

impl Removal {
    /// Removes what is unneeded; the records that are left. All that can go has gone when something else can't.
    async fn run(self, nova: SharedNova) -> Result<Vec<ServerGroupDependency>, DependencyFailure> {
        let mut nova = nova.lock().await;
        let Self { needs, used } = self;
        let unneeded = needs.unneeded(&nova.list().await?, &used);
        let mut failures = Vec::new();
        for id in &unneeded {
            failures.extend(nova.delete(id).await.err());
        }
        match failures.into_iter().next() {
            Some(first) => Err(first),
            None => Ok(needs.records_without(&unneeded)),
        }
    }
}

impl Cloud for OpenStack {
    fn ensure<'a>(&'a self, request: DependencyRequest<'a>) -> BoxFuture<'a, Result<DependencyState, WorkerError>> {
        self.ensure_dependencies(request).boxed()
    }

    fn clean_up<'a>(
        &'a self,
        context: &'a WorkerContext<'a>,
        used: Vec<String>,
    ) -> BoxFuture<'a, Result<CleanUp, WorkerError>> {
        async move {
            let Some(needs) = needs(context)? else { return Ok(CleanUp::Done(None)) };
            Ok(self.remove_now(context.worker, Removal { needs, used }).await)
        }
        .boxed()
    }

    fn remove<'a>(
        &'a self,
        worker: &'a Worker,
        cluster: Option<&'a Cluster>,
        secrets: &'a Secrets,
    ) -> BoxFuture<'a, Result<CleanUp, WorkerError>> {
        async move {
            let Some(needs) = needs_of_deletion(worker, cluster, secrets)? else { return Ok(CleanUp::Done(None)) };
            Ok(self.remove_now(worker, Removal { needs, used: Vec::new() }).await)
        }
        .boxed()
    }

    fn forget(&self, uid: &str) {
        self.tasks().remove(uid);
    }
}
