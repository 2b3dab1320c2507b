//! Azure: scale sets for non-zonal pools (docs/azure-scale-sets.md).
//!
//! ```text
//!  a look at a Worker ──► [`Azure`] ── begins, at most waits a moment ──► errand behind the scenes ──► bell
//!                                                                          provision · removal
//!                                                                              │
//!    accounts     one pipeline and token for the same credentials             client   list, get, create, delete
//!    addresses    the three clouds, and where requests go instead              │
//!    transport    the last step of a request                                  operation  until Azure is done
//! ```
//!
//! What is decided stands in [`provider::azure::scale_sets`](crate::provider::azure::scale_sets) and is pure; here is only who
//! asks, waits and tells.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;

use self::accounts::Accounts;
use self::client::ScaleSets;
use self::errand::{Errand, State, settle};
use self::error::AzureError;
use self::notes::Listener;
use self::provision::{Provision, Turns};
use self::removal::Removal;
use super::{Bell, Gate, WorkerName, Writes};
use crate::api::gardener::{Cluster, Worker};
use crate::api::secret::Secrets;
use crate::provider::azure::documents::ScaleSetDependency;
use crate::provider::azure::scale_sets::{Needs, Place, PoolNeed, needs, needs_of_deletion};
use crate::provider::{Dependencies, DependencyFailure, WorkerContext, WorkerError};
use crate::worker::dependencies::{Asked, CleanUp, Cloud, Provided};
use crate::worker::live::MachineObjects;
use crate::worker::report::Failure;
use serde_json::{Value, json};

mod accounts;
mod addresses;
mod client;
mod errand;
mod error;
mod notes;
mod operation;
mod provision;
mod removal;
mod transport;

pub use addresses::{Addresses, Origin};

/// How long a look waits for errands: long enough for an Azure that has nothing to do, too short for anybody to notice.
const MOMENT: Duration = Duration::from_millis(400);
/// When a failed errand is tried again: after the first time, then after twice as long each time, up to the second.
const RETRIES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// Scale sets at Azure.
pub struct Azure {
    accounts: Arc<Accounts>,
    gate: Gate,
    bell: Bell,
    errands: Mutex<HashMap<String, Errands>>,
}

/// What goes on for one Worker.
struct Errands {
    place: Arc<Place>,
    turns: Turns,
    pools: HashMap<String, PoolErrand>,
    removal: Option<RemovalErrand>,
}

struct PoolErrand {
    need: PoolNeed,
    errand: Errand<ScaleSetDependency>,
    tries: u32,
}

struct RemovalErrand {
    removal: Removal,
    errand: Errand<Vec<ScaleSetDependency>>,
    tries: u32,
}

impl Azure {
    /// At these addresses; the bell rings when an errand is over.
    #[must_use]
    pub fn new(addresses: Addresses, gate: Gate, bell: Bell) -> Self {
        let accounts = Arc::new(Accounts::new(addresses, Arc::clone(&gate)));
        Self { accounts, gate, bell, errands: Mutex::default() }
    }

    /// Who asks at a place.
    fn scale_sets(
        &self,
        place: &Arc<Place>,
    ) -> Result<impl FnOnce(Arc<dyn Listener>) -> ScaleSets + use<>, AzureError> {
        let account = self.accounts.account(place.cloud, &place.credentials)?;
        let (accounts, place, pretends) = (Arc::clone(&self.accounts), Arc::clone(place), self.pretends());
        Ok(move |listener| ScaleSets { accounts, account, place, pretends, listener })
    }

    fn pretends(&self) -> bool {
        (self.gate)() == Writes::Pretended
    }

    fn errands(&self) -> MutexGuard<'_, HashMap<String, Errands>> {
        self.errands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn provide_now(&self, asked: Asked<'_>) -> Result<Provided, WorkerError> {
        let worker = asked.context.worker;
        let uid = worker.metadata.uid.clone().unwrap_or_default();
        let Some(needs) = needs(asked.context)? else { return Ok(Provided::default()) };
        if needs.zonal {
            return Ok(Provided { has_something: true, ..Provided::default() });
        }
        let watches = {
            let mut all = self.errands();
            let errands = Errands::of(&mut all, &uid, &needs.place);
            let affected = |need: &&PoolNeed| !errands.is_being_removed(need);
            let needed: Vec<PoolNeed> = needs.pools.iter().filter(affected).cloned().collect();
            errands.pools.retain(|pool, _| needed.iter().any(|need| need.pool == *pool));
            needed.into_iter().map(|need| self.pool_errand(errands, need, &asked)).collect()
        };
        settle(watches, MOMENT).await;
        Ok(self.provided(&uid, needs))
    }

    /// Begins the errand of a pool where it has none that helps.
    fn pool_errand(
        &self,
        errands: &mut Errands,
        need: PoolNeed,
        asked: &Asked<'_>,
    ) -> tokio::sync::watch::Receiver<State<ScaleSetDependency>> {
        let mut tries = 0;
        if let Some(present) = errands.pools.get(&need.pool).filter(|present| present.answers(&need)) {
            match present.errand.state() {
                State::Over(..) if asked.begins => {}
                State::Over(Err(_), since) if due(since, present.tries).is_none() => tries = present.tries + 1,
                State::Going(_) | State::Over(..) => return present.errand.watch(),
            }
        }
        let ids_of_machines = scale_sets_of_machines(&need.pool, asked.live);
        let has_machines = asked.live.deployments.values().any(|live| live.pool() == Some(&need.pool));
        let provision = Provision {
            place: Arc::clone(&errands.place),
            need: need.clone(),
            searches: asked.has_moved || has_machines,
            ids_of_machines,
            turns: errands.turns.clone(),
        };
        let (asking, turn) = (self.scale_sets(&errands.place), errands.turns.queue());
        let errand = Errand::begin(
            |report| async move {
                let scale_sets = asking.map_err(|error| error.failure())?(report.clone());
                provision.run(turn, scale_sets, report).await
            },
            self.ring(asked.context.worker),
        );
        let watch = errand.watch();
        errands.pools.insert(need.pool.clone(), PoolErrand { need, errand, tries });
        watch
    }

    /// What is known now.
    fn provided(&self, uid: &str, needs: Needs) -> Provided {
        let all = self.errands();
        let mut dependencies = Dependencies { failures: needs.refused.clone(), ..Dependencies::default() };
        let mut records = needs.records.clone();
        let mut again: Option<Duration> = None;
        for need in &needs.pools {
            let errand = all.get(uid).and_then(|errands| errands.pools.get(&need.pool));
            match errand.map(|errand| (errand.errand.state(), errand.tries)) {
                Some((State::Over(Ok(record), _), _)) => put(&mut records, record),
                Some((State::Over(Err(failure), since), tries)) => {
                    let wait = due(since, tries).unwrap_or_default();
                    again = Some(again.map_or(wait, |again| again.min(wait)));
                    dependencies.failures.insert(need.pool.clone(), failure);
                }
                Some((State::Going(holdup), _)) => {
                    let (text, code) = holdup.map_or((None, None), |holdup| (Some(holdup.text), holdup.code));
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
        Provided { dependencies: Some(dependencies), has_something: true, records_changed, look_again: again }
    }

    async fn remove_now(&self, worker: &Worker, removal: Removal) -> CleanUp {
        let uid = worker.metadata.uid.clone().unwrap_or_default();
        let before = removal.needs.records.clone();
        let watch = {
            let mut all = self.errands();
            let errands = Errands::of(&mut all, &uid, &removal.needs.place);
            self.removal_errand(errands, removal, worker)
        };
        settle(vec![watch], MOMENT).await;
        let mut all = self.errands();
        let present = all.get(&uid).and_then(|errands| errands.removal.as_ref());
        let Some((state, tries)) = present.map(|present| (present.errand.state(), present.tries)) else {
            return CleanUp::Waiting("until unneeded scale sets are gone".to_owned());
        };
        match state {
            State::Going(holdup) => {
                let text = holdup.map(|holdup| format!(": {}", holdup.text)).unwrap_or_default();
                CleanUp::Waiting(format!("until unneeded scale sets are gone{text}"))
            }
            State::Over(Ok(records), _) => {
                all.remove(&uid);
                CleanUp::Done((records != before).then(|| json!({"vmoDependencies": without_nothing(&records)})))
            }
            State::Over(Err(failure), since) => {
                let message = format!("unneeded scale sets can't be removed: {failure}");
                let failure = Failure { message, codes: failure.code.into_iter().collect() };
                CleanUp::Failed(failure, due(since, tries).unwrap_or_default())
            }
        }
    }

    fn removal_errand(
        &self,
        errands: &mut Errands,
        removal: Removal,
        worker: &Worker,
    ) -> tokio::sync::watch::Receiver<State<Vec<ScaleSetDependency>>> {
        let mut tries = 0;
        if let Some(present) = errands.removal.as_ref().filter(|present| present.removal == removal) {
            match present.errand.state() {
                State::Over(Err(_), since) if due(since, present.tries).is_none() => tries = present.tries + 1,
                State::Going(_) | State::Over(..) => return present.errand.watch(),
            }
        }
        let (asking, runs) = (self.scale_sets(&errands.place), removal.clone());
        let errand = Errand::begin(
            |report| async move {
                let scale_sets = asking.map_err(|error| error.failure())?(report.clone());
                runs.run(scale_sets, report).await
            },
            self.ring(worker),
        );
        let watch = errand.watch();
        errands.removal = Some(RemovalErrand { removal, errand, tries });
        watch
    }

    fn ring(&self, worker: &Worker) -> impl FnOnce() + Send + use<> {
        let bell = Arc::clone(&self.bell);
        let name = WorkerName {
            namespace: worker.metadata.namespace.clone().unwrap_or_default(),
            name: worker.metadata.name.clone().unwrap_or_default(),
        };
        let begun = Instant::now();
        move || {
            // Whoever began it has waited that long.
            if begun.elapsed() >= MOMENT {
                bell(name);
            }
        }
    }
}

impl Errands {
    /// Those of a Worker. Errands at another place, or with other credentials, help nobody.
    fn of<'a>(all: &'a mut HashMap<String, Self>, uid: &str, place: &Place) -> &'a mut Self {
        let new =
            || Self { place: Arc::new(place.clone()), turns: Turns::default(), pools: HashMap::new(), removal: None };
        let errands = all.entry(uid.to_owned()).or_insert_with(new);
        if *errands.place != *place {
            *errands = new();
        }
        errands
    }

    /// Whether the recorded scale set of a pool is on its way out, because nobody needed it a moment ago.
    fn is_being_removed(&self, need: &PoolNeed) -> bool {
        let Some(removal) = self.removal.as_ref().filter(|removal| removal.errand.is_going()) else { return false };
        need.recorded.as_ref().is_some_and(|name| removal.removal.may_remove(name))
    }
}

impl PoolErrand {
    /// Whether it is for what the pool needs; once it is over, the need has its result for a record.
    fn answers(&self, need: &PoolNeed) -> bool {
        let has_result =
            |name: &String| matches!(self.errand.state(), State::Over(Ok(record), _) if record.name == *name);
        self.need.fault_domains == need.fault_domains
            && (self.need.recorded == need.recorded || need.recorded.as_ref().is_some_and(has_result))
    }
}

/// How long until a failed errand is tried again; `None` when it is time.
fn due(since: Instant, tries: u32) -> Option<Duration> {
    let delay = RETRIES.0.saturating_mul(2_u32.saturating_pow(tries)).min(RETRIES.1);
    (since + delay).checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
}

/// The records as the provider status has them, which leaves out an empty list.
fn without_nothing(records: &[ScaleSetDependency]) -> Value {
    if records.is_empty() { Value::Null } else { json!(records) }
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
    fn provide<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Result<Provided, WorkerError>> {
        self.provide_now(asked).boxed()
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
        self.errands().remove(uid);
    }
}
