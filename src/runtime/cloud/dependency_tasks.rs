//! Common part of all clouds with dependencies. Each pool with a dependency has a background task, another task
//! removes unneeded dependencies, and reconciles get their state. A cloud implements [`Dependency`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::background_task::{BackgroundTask, Delay, Report, SETTLE_TIMEOUT, TaskState, due, ended, settle};
use super::dependency::{CleanUp, Cloud, DependencyRequest, DependencyState, UsedByClasses};
use super::{TaskEnded, WriteAccess, WriteCheck};
use decisions::provider::{
    Dependencies, DependencyFailure, DependencyRecord, Needs, PoolNeed, WorkerContext, WorkerError,
};
use decisions::worker::status::reconcile_outcome::Failure;
use wire::api::gardener::{Cluster, Worker};
use wire::api::secret::Secrets;

/// Result of a task.
pub(super) type TaskResult<T> = BoxFuture<'static, Result<T, DependencyFailure>>;

/// Result of a removal.
#[derive(Clone, Debug)]
pub enum Removed<Listed> {
    /// Something could be removed, which was the only question. Has the existing dependencies.
    Unneeded(Vec<Listed>),
    /// Everything removable was removed. Has the remaining records.
    Done(Vec<DependencyRecord>),
}

/// `None` if pools need nothing and no former dependency is left.
pub(super) type NeedsResult<D> =
    Result<Option<Needs<<D as Dependency>::Scope, <D as Dependency>::Target>>, WorkerError>;

/// Terms for the dependency in messages.
pub struct Words {
    /// Singular.
    pub one: &'static str,
    /// Plural.
    pub many: &'static str,
    /// End of the message of a pool whose dependency is still being removed.
    pub until_removed: &'static str,
    /// Member of the provider status that holds the records.
    pub member: &'static str,
}

/// The parts of dependencies that are specific to a cloud.
pub trait Dependency: Sized + Send + Sync + 'static {
    /// Location and credentials.
    type Scope: Clone + PartialEq + Send + Sync;
    /// Target state of a pool's dependency.
    type Target: Clone + PartialEq + Send + Sync;
    /// An existing dependency.
    type Listed: Clone + Send + Sync;
    /// State shared by the tasks of one Worker.
    type Session: Send;
    /// Terms for messages.
    const WORDS: Words;

    /// Computes the dependencies of the pools.
    ///
    /// # Errors
    /// If the pools or the credentials are invalid.
    fn needs(context: &WorkerContext<'_>) -> NeedsResult<Self>;
    /// Computes what has to be removed with a Worker.
    ///
    /// # Errors
    /// If the credentials are invalid.
    fn needs_of_deletion(worker: &Worker, cluster: Option<&Cluster>, secrets: &Secrets) -> NeedsResult<Self>;

    /// Whether no pool has a dependency and only former ones have to be removed.
    fn only_leftovers(_scope: &Self::Scope) -> bool {
        false
    }

    /// Creates the session of a Worker. Sends no request yet.
    fn session(&self, scope: &Self::Scope, write_check: &WriteCheck) -> Self::Session;

    /// Provides the dependency of a pool.
    fn provide(
        &self,
        session: &Self::Session,
        need: PoolNeed<Self::Target>,
        request: &DependencyRequest<'_>,
        report: Arc<Report<DependencyRecord>>,
    ) -> TaskResult<DependencyRecord>;

    /// Removes unneeded dependencies among the `listed`. Without a list, it requests one from the cloud.
    fn remove(
        &self,
        session: &Self::Session,
        removal: Removal<Self::Scope, Self::Target>,
        listed: Option<Vec<Self::Listed>>,
        report: Arc<Report<Removed<Self::Listed>>>,
    ) -> TaskResult<Removed<Self::Listed>>;

    /// Whether a running removal may delete the pool's dependency, or one that the pool would adopt.
    fn may_take(removal: &Needs<Self::Scope, Self::Target>, need: &PoolNeed<Self::Target>) -> bool;

    /// Sorts records into the order in which they are written.
    fn sort(_records: &mut [DependencyRecord]) {}
}

/// Inputs that determine what is unneeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal<Scope, Target> {
    /// Dependencies of the pools.
    pub needs: Needs<Scope, Target>,
    /// IDs that machine classes refer to. `None` if they were not read, so that nothing may be removed yet.
    pub used: Option<Vec<String>>,
}

/// A task, its purpose, and how often that has failed before.
struct Attempt<Purpose, T> {
    purpose: Purpose,
    task: BackgroundTask<T>,
    tries: u32,
}

impl<Purpose, T: Clone + Send + Sync + 'static> Attempt<Purpose, T> {
    /// Returns the number of failures if the next try is due, otherwise a receiver for the result.
    fn next_try(&self) -> Result<u32, watch::Receiver<TaskState<T>>> {
        match self.task.state() {
            TaskState::Ended(Err(_), since) if due(since, self.tries).is_none() => Ok(self.tries + 1),
            TaskState::Running(_) | TaskState::Ended(..) => Err(self.task.watch()),
        }
    }
}

impl<Target: PartialEq> Attempt<PoolNeed<Target>, DependencyRecord> {
    /// Whether the task provides what the pool needs. After its end, its result is the record in the need.
    fn provides(&self, need: &PoolNeed<Target>) -> bool {
        let is_result =
            || matches!(self.task.state(), TaskState::Ended(Ok(record), _) if need.recorded.as_ref() == Some(&record));
        self.purpose.target == need.target && (self.purpose.recorded == need.recorded || is_result())
    }
}

type RemovalAttempt<D> =
    Attempt<Removal<<D as Dependency>::Scope, <D as Dependency>::Target>, Removed<<D as Dependency>::Listed>>;

impl<Scope, Target, Listed> Attempt<Removal<Scope, Target>, Removed<Listed>>
where
    Listed: Clone + Send + Sync + 'static,
{
    /// Whether it was decided by references that have changed since, or without reading them.
    fn is_outdated(&self, used: &UsedByClasses) -> bool {
        match (used, &self.purpose.used) {
            (UsedByClasses::Read(read), decided_by) => decided_by.as_ref() != Some(read),
            (UsedByClasses::Seen(seen), Some(decided_by)) => {
                decided_by != seen && matches!(self.task.state(), TaskState::Ended(Ok(Removed::Done(_)), _))
            }
            (UsedByClasses::Seen(_), None) => false,
        }
    }
}

/// Tasks of one Worker.
struct WorkerTasks<D: Dependency> {
    scope: D::Scope,
    session: D::Session,
    pools: HashMap<String, Attempt<PoolNeed<D::Target>, DependencyRecord>>,
    removal: Option<RemovalAttempt<D>>,
}

impl<D: Dependency> WorkerTasks<D> {
    fn is_busy(&self) -> bool {
        let mut pools = self.pools.values().map(|attempt| attempt.task.is_running());
        pools.any(|is_running| is_running) || self.removal.as_ref().is_some_and(|removal| removal.task.is_running())
    }

    /// Whether the pool's dependency may be about to be deleted, so that it must not be adopted.
    fn is_being_removed(&self, need: &PoolNeed<D::Target>) -> bool {
        let removal = self.removal.as_ref().filter(|removal| removal.task.is_running());
        removal.is_some_and(|removal| D::may_take(&removal.purpose.needs, need))
    }
}

/// The tasks of all Workers at a cloud.
pub struct DependencyTasks<D: Dependency> {
    dependency: D,
    write_check: WriteCheck,
    task_ended: TaskEnded,
    workers: Mutex<HashMap<String, WorkerTasks<D>>>,
}

impl<D: Dependency> DependencyTasks<D> {
    /// `task_ended` is called when a background task has ended.
    pub(in crate::cloud) fn of(dependency: D, write_check: WriteCheck, task_ended: TaskEnded) -> Self {
        Self { dependency, write_check, task_ended, workers: Mutex::default() }
    }

    fn workers(&self) -> MutexGuard<'_, HashMap<String, WorkerTasks<D>>> {
        self.workers.lock()
    }

    /// The tasks of a Worker. Tasks for another location or with other credentials are replaced.
    fn tasks_of<'a>(
        &self,
        workers: &'a mut HashMap<String, WorkerTasks<D>>,
        uid: &str,
        scope: &D::Scope,
    ) -> &'a mut WorkerTasks<D> {
        let new = || WorkerTasks {
            scope: scope.clone(),
            session: self.dependency.session(scope, &self.write_check),
            pools: HashMap::new(),
            removal: None,
        };
        let tasks = workers.entry(uid.to_owned()).or_insert_with(new);
        if tasks.scope != *scope {
            *tasks = new();
        }
        tasks
    }

    async fn ensure_dependencies(&self, request: DependencyRequest<'_>) -> Result<DependencyState, WorkerError> {
        let Some(needs) = D::needs(request.context)? else { return Ok(DependencyState::default()) };
        if D::only_leftovers(&needs.scope) {
            return Ok(DependencyState { has_something: true, ..DependencyState::default() });
        }
        let uid = uid(request.context.worker);
        let watches = {
            let mut workers = self.workers();
            let tasks = self.tasks_of(&mut workers, &uid, &needs.scope);
            let (blocked, free): (Vec<_>, Vec<_>) = needs.pools.iter().partition(|need| tasks.is_being_removed(need));
            tasks.pools.retain(|pool, attempt| {
                let is_needed = |need: &&&PoolNeed<_>| need.pool == *pool;
                free.iter().any(|need| is_needed(&need))
                    || blocked.iter().find(is_needed).is_some_and(|need| attempt.provides(need))
            });
            free.into_iter().map(|need| self.pool_task(tasks, need, &request)).collect()
        };
        settle(watches, SETTLE_TIMEOUT).await;
        Ok(self.dependency_state(&uid, needs))
    }

    /// Starts the task of a pool unless a suitable one exists.
    fn pool_task(
        &self,
        tasks: &mut WorkerTasks<D>,
        need: &PoolNeed<D::Target>,
        request: &DependencyRequest<'_>,
    ) -> watch::Receiver<TaskState<DependencyRecord>> {
        let is_current =
            |present: &&Attempt<_, _>| present.provides(need) && (!request.begins || present.task.is_running());
        let present = tasks.pools.get(&need.pool).filter(is_current);
        let tries = match present.map_or(Ok(0), Attempt::next_try) {
            Ok(tries) => tries,
            Err(watch) => return watch,
        };
        let work = |report| self.dependency.provide(&tasks.session, need.clone(), request, report);
        let task = BackgroundTask::begin(work, ended(request.context.worker, &self.task_ended));
        let watch = task.watch();
        tasks.pools.insert(need.pool.clone(), Attempt { purpose: need.clone(), task, tries });
        watch
    }

    /// The current state.
    fn dependency_state(&self, uid: &str, needs: Needs<D::Scope, D::Target>) -> DependencyState {
        let workers = self.workers();
        let mut dependencies = Dependencies { failures: needs.refused, ..Dependencies::default() };
        let mut records = needs.records.clone();
        let mut check_again: Option<Duration> = None;
        for PoolNeed { pool, .. } in needs.pools {
            let attempt = workers.get(uid).and_then(|tasks| tasks.pools.get(&pool));
            match attempt.map(|attempt| (attempt.task.state(), attempt.tries)) {
                Some((TaskState::Ended(Ok(record), _), _)) => put(&mut records, record),
                Some((TaskState::Ended(Err(failure), since), tries)) => {
                    let wait = due(since, tries).unwrap_or_default();
                    check_again = Some(check_again.map_or(wait, |again| again.min(wait)));
                    dependencies.failures.insert(pool, failure);
                }
                Some((TaskState::Running(delay), _)) => {
                    let Delay { text, code } = delay.unwrap_or_default();
                    let message = format!("for its {}{}", D::WORDS.one, because(&text));
                    dependencies.waiting.insert(pool, DependencyFailure { message, code });
                }
                None => {
                    dependencies.waiting.insert(pool, DependencyFailure::without_code(D::WORDS.until_removed));
                }
            }
        }
        D::sort(&mut records);
        let records_changed = records != needs.records && (self.write_check)() != WriteAccess::DryRun;
        dependencies.records = json!(records);
        DependencyState { dependencies: Some(dependencies), has_something: true, records_changed, check_again }
    }

    async fn remove_now(&self, worker: &Worker, needs: Needs<D::Scope, D::Target>, used: UsedByClasses) -> CleanUp {
        let uid = uid(worker);
        let before = needs.records.clone();
        self.settle_removal(&uid, &needs, &used, worker).await;
        if self.removal_is_outdated(&uid, &used) {
            self.settle_removal(&uid, &needs, &used, worker).await;
        }
        let mut workers = self.workers();
        let present = workers.get(&uid).and_then(|tasks| tasks.removal.as_ref());
        let state = clean_up_state(&D::WORDS, present.map(|present| (present.task.state(), present.tries)), &before);
        if matches!(state, CleanUp::Done(_)) {
            workers.remove(&uid);
        }
        state
    }

    /// A removal that was decided earlier may have ended in the meantime.
    fn removal_is_outdated(&self, uid: &str, used: &UsedByClasses) -> bool {
        let workers = self.workers();
        let removal = workers.get(uid).and_then(|tasks| tasks.removal.as_ref());
        removal.is_some_and(|removal| removal.is_outdated(used))
    }

    async fn settle_removal(
        &self,
        uid: &str,
        needs: &Needs<D::Scope, D::Target>,
        used: &UsedByClasses,
        worker: &Worker,
    ) {
        let watch = {
            let mut workers = self.workers();
            let tasks = self.tasks_of(&mut workers, uid, &needs.scope);
            self.removal_task(tasks, needs, used, worker)
        };
        settle(vec![watch], SETTLE_TIMEOUT).await;
    }

    fn removal_task(
        &self,
        tasks: &mut WorkerTasks<D>,
        needs: &Needs<D::Scope, D::Target>,
        used: &UsedByClasses,
        worker: &Worker,
    ) -> watch::Receiver<TaskState<Removed<D::Listed>>> {
        let mut listed = None;
        let tries = match tasks.removal.as_ref().filter(|present| present.purpose.needs == *needs) {
            None => Ok(0),
            Some(present) if present.is_outdated(used) => {
                if let TaskState::Ended(Ok(Removed::Unneeded(found)), _) = present.task.state() {
                    listed = Some(found);
                }
                Ok(present.tries)
            }
            // A mere check also waits for a removal that is already running.
            Some(present) => present.next_try(),
        };
        let tries = match tries {
            Ok(tries) => tries,
            Err(watch) => return watch,
        };
        let used = match used {
            UsedByClasses::Seen(_) => None,
            UsedByClasses::Read(used) => Some(used.clone()),
        };
        let removal = Removal { needs: needs.clone(), used };
        let work = |report| self.dependency.remove(&tasks.session, removal.clone(), listed, report);
        let task = BackgroundTask::begin(work, ended(worker, &self.task_ended));
        let watch = task.watch();
        tasks.removal = Some(Attempt { purpose: removal, task, tries });
        watch
    }
}

fn uid(worker: &Worker) -> String {
    worker.metadata.uid.clone().unwrap_or_default()
}

fn because(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// Replaces the record of the same pool, or appends it.
fn put(records: &mut Vec<DependencyRecord>, record: DependencyRecord) {
    match records.iter_mut().find(|present| present.pool_name == record.pool_name) {
        Some(present) => *present = record,
        None => records.push(record),
    }
}

/// State of the clean-up, from its task and number of failures; `before` are the previous records.
fn clean_up_state<Listed>(
    words: &Words,
    present: Option<(TaskState<Removed<Listed>>, u32)>,
    before: &[DependencyRecord],
) -> CleanUp {
    let Words { many, member, .. } = words;
    let waiting = |delay: &str| CleanUp::Waiting(format!("until unneeded {many} are gone{}", because(delay)));
    match present {
        None => waiting(""),
        Some((TaskState::Running(delay), _)) => waiting(&delay.unwrap_or_default().text),
        Some((TaskState::Ended(Ok(Removed::Unneeded(_)), _), _)) => CleanUp::Unneeded,
        Some((TaskState::Ended(Ok(Removed::Done(records)), _), _)) => {
            // The provider status omits an empty list.
            let written = if records.is_empty() { Value::Null } else { json!(records) };
            CleanUp::Done((records != before).then(|| json!({ *member: written })))
        }
        Some((TaskState::Ended(Err(failure), since), tries)) => {
            let message = format!("unneeded {many} can't be removed: {failure}");
            let failure = Failure { message, codes: failure.code.into_iter().collect() };
            CleanUp::Failed(failure, due(since, tries).unwrap_or_default())
        }
    }
}

impl<D: Dependency> Cloud for DependencyTasks<D> {
    fn ensure<'a>(&'a self, request: DependencyRequest<'a>) -> BoxFuture<'a, Result<DependencyState, WorkerError>> {
        self.ensure_dependencies(request).boxed()
    }

    fn clean_up<'a>(
        &'a self,
        context: &'a WorkerContext<'a>,
        used: UsedByClasses,
    ) -> BoxFuture<'a, Result<CleanUp, WorkerError>> {
        async move {
            let Some(needs) = D::needs(context)? else { return Ok(CleanUp::Done(None)) };
            Ok(self.remove_now(context.worker, needs, used).await)
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
            let Some(needs) = D::needs_of_deletion(worker, cluster, secrets)? else {
                return Ok(CleanUp::Done(None));
            };
            Ok(self.remove_now(worker, needs, UsedByClasses::Read(Vec::new())).await)
        }
        .boxed()
    }

    fn is_busy(&self, uid: &str) -> bool {
        self.workers().get(uid).is_some_and(WorkerTasks::is_busy)
    }

    fn forget(&self, uid: &str) {
        self.workers().remove(uid);
    }
}
