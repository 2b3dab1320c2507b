//! Azure: scale sets for non-zonal pools (docs/azure-scale-sets.md).
//!
//! ```text
//!  a reconcile of a Worker ──► [`Azure`] ── begins, waits a moment at most ──► background task ──► requeue
//!                                                                          provision · removal
//!                                                                              │
//!    accounts     one pipeline and token for the same credentials             client   list, get, create, delete
//!    addresses    the three clouds, and where requests go instead              │
//!    transport    the last step of a request                                  operation  until Azure is done
//! ```
//!
//! What is decided stands in [`crate::provider::azure::scale_sets`] and is pure; here is
//! only who asks, waits and tells.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::sync::watch;

use self::accounts::Accounts;
use self::client::ScaleSets;
use self::provision::{Provision, Turns};
use self::removal::Removal;
use self::retry_listener::RetryListener;
use super::background_task::{
    Attempt, BackgroundTask, Report, SETTLE_TIMEOUT, TaskState, due, ended, removal_state, settle,
};
use super::{CloudFactory, TaskEnded, WriteAccess, WriteCheck};
use crate::api::gardener::{Cluster, Worker};
use crate::api::secret::Secrets;
use crate::cloud::dependency::{CleanUp, Cloud, DependencyRequest, DependencyState};
use crate::provider;
use crate::provider::azure::documents::ScaleSetDependency;
use crate::provider::azure::scale_sets::{Needs, PoolNeed, ScaleSetScope, needs, needs_of_deletion};
use crate::provider::profile::ProfileFormat as _;
use crate::provider::{Dependencies, DependencyFailure, WorkerContext, WorkerError};
use crate::worker::machine_objects::MachineObjects;

mod accounts;
mod addresses;
mod client;
mod error;
mod operation;
mod provision;
mod removal;
mod retry_listener;
mod transport;

pub use addresses::{Addresses, Origin};

// Azure's arguments of the controller. No doc comment: it would become the text of the command.
#[derive(Args)]
struct AzureArguments {
    /// Address for requests to Azure's resource manager, for every cloud: a proxy, or a simulator for tests.
    #[arg(long, env = "AZURE_RESOURCE_MANAGER_URL", value_name = "URL")]
    azure_resource_manager_url: Option<Origin>,
    /// Address for requests for Azure's access tokens, for every cloud.
    #[arg(long, env = "AZURE_AUTHORITY_HOST", value_name = "URL")]
    azure_authority_url: Option<Origin>,
}

/// Scale sets at Azure, before there is a controller.
pub(crate) struct AzureFactory;

impl CloudFactory for AzureFactory {
    fn worker_type(&self) -> &'static str {
        provider::azure::Azure.provider_type()
    }

    fn with_arguments(&self, command: Command) -> Command {
        AzureArguments::augment_args(command)
    }

    fn open(
        &self,
        typed: &ArgMatches,
        write_check: WriteCheck,
        task_ended: TaskEnded,
    ) -> Result<Arc<dyn Cloud>, clap::Error> {
        let AzureArguments { azure_resource_manager_url, azure_authority_url } =
            AzureArguments::from_arg_matches(typed)?;
        let addresses = Addresses { resource_manager: azure_resource_manager_url, authority: azure_authority_url };
        Ok(Arc::new(Azure::new(addresses, write_check, task_ended)))
    }
}

/// Scale sets at Azure.
pub struct Azure {
    accounts: Arc<Accounts>,
    write_check: WriteCheck,
    task_ended: TaskEnded,
    tasks: Mutex<HashMap<String, WorkerTasks>>,
}

/// What goes on for one Worker.
struct WorkerTasks {
    place: Arc<ScaleSetScope>,
    turns: Turns,
    pools: HashMap<String, Attempt<PoolNeed, ScaleSetDependency>>,
    removal: Option<Attempt<Removal, Vec<ScaleSetDependency>>>,
}

impl Azure {
    /// At these addresses; `task_ended` is called when a background task has ended.
    #[must_use]
    pub fn new(addresses: Addresses, write_check: WriteCheck, task_ended: TaskEnded) -> Self {
        let accounts = Arc::new(Accounts::new(addresses, Arc::clone(&write_check)));
        Self { accounts, write_check, task_ended, tasks: Mutex::default() }
    }

    fn pretends(&self) -> bool {
        (self.write_check)() == WriteAccess::DryRun
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<String, WorkerTasks>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ensure_dependencies(&self, request: DependencyRequest<'_>) -> Result<DependencyState, WorkerError> {
        let worker = request.context.worker;
        let uid = worker.metadata.uid.clone().unwrap_or_default();
        let Some(needs) = needs(request.context)? else { return Ok(DependencyState::default()) };
        if needs.zonal {
            return Ok(DependencyState { has_something: true, ..DependencyState::default() });
        }
        let watches = {
            let mut all = self.tasks();
            let tasks = WorkerTasks::of(&mut all, &uid, &needs.place);
            let affected = |need: &&PoolNeed| !tasks.is_being_removed(need);
            let needed: Vec<PoolNeed> = needs.pools.iter().filter(affected).cloned().collect();
            tasks.pools.retain(|pool, _| needed.iter().any(|need| need.pool == *pool));
            needed.into_iter().map(|need| self.pool_task(tasks, need, &request)).collect()
        };
        settle(watches, SETTLE_TIMEOUT).await;
        Ok(self.dependency_state(&uid, needs))
    }

    /// Begins the task of a pool where it has none that helps.
    fn pool_task(
        &self,
        tasks: &mut WorkerTasks,
        need: PoolNeed,
        request: &DependencyRequest<'_>,
    ) -> watch::Receiver<TaskState<ScaleSetDependency>> {
        let is_current = |present: &&Attempt<_, _>| present.answers(&need) && !(request.begins && present.has_ended());
        let present = tasks.pools.get(&need.pool).filter(is_current);
        let tries = match present.map_or(Ok(0), Attempt::next_try) {
            Ok(tries) => tries,
            Err(watch) => return watch,
        };
        let has_machines = request.live.deployments.values().any(|live| live.pool() == Some(&need.pool));
        let provision = Provision {
            place: Arc::clone(&tasks.place),
            need: need.clone(),
            searches: request.has_moved || has_machines,
            ids_of_machines: scale_sets_of_machines(&need.pool, request.live),
            turns: tasks.turns.clone(),
        };
        let turn = tasks.turns.queue();
        let work = |scale_sets, report| provision.run(turn, scale_sets, report);
        let task = self.begin(&tasks.place, request.context.worker, work);
        let watch = task.watch();
        tasks.pools.insert(need.pool.clone(), Attempt { purpose: need, task, tries });
        watch
    }

    /// Begins a task that asks at a place.
    fn begin<T, Work>(
        &self,
        place: &Arc<ScaleSetScope>,
        worker: &Worker,
        work: impl FnOnce(ScaleSets, Arc<Report<T>>) -> Work + Send + 'static,
    ) -> BackgroundTask<T>
    where
        T: Clone + Send + Sync + 'static,
        Work: Future<Output = Result<T, DependencyFailure>> + Send + 'static,
    {
        let account = self.accounts.account(place.cloud, &place.credentials).map_err(|error| error.failure());
        let (accounts, place, pretends) = (Arc::clone(&self.accounts), Arc::clone(place), self.pretends());
        let notify = ended(worker, &self.task_ended);
        let asks = |report: Arc<Report<T>>| async move {
            let listener = Arc::clone(&report) as Arc<dyn RetryListener>;
            work(ScaleSets { accounts, account: account?, place, pretends, listener }, report).await
        };
        BackgroundTask::begin(asks, notify)
    }

    /// What is known now.
    fn dependency_state(&self, uid: &str, needs: Needs) -> DependencyState {
        let all = self.tasks();
        let mut dependencies = Dependencies { failures: needs.refused.clone(), ..Dependencies::default() };
        let mut records = needs.records.clone();
        let mut again: Option<Duration> = None;
        for need in &needs.pools {
            let task = all.get(uid).and_then(|tasks| tasks.pools.get(&need.pool));
            match task.map(|task| (task.task.state(), task.tries)) {
                Some((TaskState::Ended(Ok(record), _), _)) => put(&mut records, record),
                Some((TaskState::Ended(Err(failure), since), tries)) => {
                    let wait = due(since, tries).unwrap_or_default();
                    again = Some(again.map_or(wait, |again| again.min(wait)));
                    dependencies.failures.insert(need.pool.clone(), failure);
                }
                Some((TaskState::Running(delay), _)) => {
                    let (text, code) = delay.map_or((None, None), |delay| (Some(delay.text), delay.code));
                    let text = text.map(|text| format!(": {text}")).unwrap_or_default();
                    let failure = DependencyFailure { message: format!("for its scale set{text}"), code };
                    dependencies.waiting.insert(need.pool.clone(), failure);
                }
                None => {
                    let message = "until its scale set, which was no longer needed, is gone".to_owned();
                    dependencies.waiting.insert(need.pool.clone(), DependencyFailure { message, code: None });
                }
            }
        }
        let records_changed = records != needs.records && !self.pretends();
        dependencies.records = json!(records);
        DependencyState { dependencies: Some(dependencies), has_something: true, records_changed, look_again: again }
    }

    async fn remove_now(&self, worker: &Worker, removal: Removal) -> CleanUp {
        let uid = worker.metadata.uid.clone().unwrap_or_default();
        let before = removal.needs.records.clone();
        let watch = {
            let mut all = self.tasks();
            let tasks = WorkerTasks::of(&mut all, &uid, &removal.needs.place);
            self.removal_task(tasks, removal, worker)
        };
        settle(vec![watch], SETTLE_TIMEOUT).await;
        let mut all = self.tasks();
        let present = all.get(&uid).and_then(|tasks| tasks.removal.as_ref());
        let state = removal_state(present, "scale sets", &before, "vmoDependencies");
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
    ) -> watch::Receiver<TaskState<Vec<ScaleSetDependency>>> {
        let present = tasks.removal.as_ref().filter(|present| present.purpose == removal);
        let tries = match present.map_or(Ok(0), Attempt::next_try) {
            Ok(tries) => tries,
            Err(watch) => return watch,
        };
        let runs = removal.clone();
        let task = self.begin(&tasks.place, worker, |scale_sets, report| runs.run(scale_sets, report));
        let watch = task.watch();
        tasks.removal = Some(Attempt { purpose: removal, task, tries });
        watch
    }
}

impl WorkerTasks {
    /// Those of a Worker. WorkerTasks at another place, or with other credentials, help nobody.
    fn of<'a>(all: &'a mut HashMap<String, Self>, uid: &str, place: &ScaleSetScope) -> &'a mut Self {
        let new =
            || Self { place: Arc::new(place.clone()), turns: Turns::default(), pools: HashMap::new(), removal: None };
        let tasks = all.entry(uid.to_owned()).or_insert_with(new);
        if *tasks.place != *place {
            *tasks = new();
        }
        tasks
    }

    /// Whether the recorded scale set of a pool is on its way out, because nobody needed it a moment ago.
    fn is_being_removed(&self, need: &PoolNeed) -> bool {
        let Some(removal) = self.removal.as_ref().filter(|removal| removal.task.is_running()) else { return false };
        need.recorded.as_ref().is_some_and(|name| removal.purpose.may_remove(name))
    }
}

impl Attempt<PoolNeed, ScaleSetDependency> {
    /// Whether it is for what the pool needs; once it is over, the need has its result for a record.
    fn answers(&self, need: &PoolNeed) -> bool {
        let has_result =
            |name: &String| matches!(self.task.state(), TaskState::Ended(Ok(record), _) if record.name == *name);
        self.purpose.fault_domains == need.fault_domains
            && (self.purpose.recorded == need.recorded || need.recorded.as_ref().is_some_and(has_result))
    }
}

/// Puts a record in place of that of its pool, or behind all others.
fn put(records: &mut Vec<ScaleSetDependency>, record: ScaleSetDependency) {
    match records.iter_mut().find(|present| present.pool_name == record.pool_name) {
        Some(present) => *present = record,
        None => records.push(record),
    }
}

/// The scale sets that the machines of a pool are in, as the classes of its deployments say.
fn scale_sets_of_machines(pool: &str, live: &MachineObjects) -> Vec<String> {
    let of_pool = live.deployments.values().filter(|live| live.pool() == Some(pool));
    let classes = of_pool.filter_map(|deployment| live.classes.get(&deployment.object.spec.template.spec.class.name));
    classes.filter_map(|class| class.placed_in.clone()).collect()
}

impl Cloud for Azure {
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
