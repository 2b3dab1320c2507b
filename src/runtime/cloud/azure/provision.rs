//! Task that provides the scale set of one pool: finds, keeps or creates it, and follows its creation to the end.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;
use tracing::info;

use super::client::ScaleSets;
use super::error::AzureError;
use super::operation::{Begun, OPERATION_TIMEOUT, Operation, PAUSES};
use crate::cloud::background_task::Report;
use decisions::provider::azure::scale_sets::{
    Adoption, PoolNeed, ScaleSet, ScaleSetScope, Step, adoption, record, step,
};
use decisions::provider::{DependencyFailure, DependencyRecord};

/// How long a request keeps its turn, so that repeated retries do not block the other pools.
const TURN: Duration = Duration::from_secs(1);

/// One pool and the inputs of its task.
pub(super) struct Provision {
    pub(super) location: Arc<ScaleSetScope>,
    pub(super) need: PoolNeed,
    /// Whether the record may be lost, so that existing scale sets have to be searched.
    pub(super) searches: bool,
    /// Scale sets of the pool's machines, according to machine classes.
    pub(super) ids_of_machines: Vec<String>,
    /// Queue among the pools of the Worker.
    pub(super) turns: Turns,
}

/// Queue that sends the requests of one Worker in the order of its pools.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<()>>);

impl Turns {
    /// Takes a place in the queue immediately. The returned future resolves when its turn has come.
    pub(super) fn queue(&self) -> impl Future<Output = OwnedMutexGuard<()>> + Send + 'static {
        let mut turn = Box::pin(Arc::clone(&self.0).lock_owned());
        let at_once = turn.as_mut().now_or_never();
        async move {
            match at_once {
                Some(turn) => turn,
                None => turn.await,
            }
        }
    }
}

/// Result of one try.
enum Try {
    Ready(DependencyRecord),
    Creating(Box<Operation>),
    /// Another operation on it is in progress.
    Wait(String),
}

/// Why a try fails.
enum Failed {
    AtAzure(AzureError),
    ForGood(DependencyFailure),
}

impl From<AzureError> for Failed {
    fn from(error: AzureError) -> Self {
        Self::AtAzure(error)
    }
}

impl From<DependencyFailure> for Failed {
    fn from(failure: DependencyFailure) -> Self {
        Self::ForGood(failure)
    }
}

impl Provision {
    /// Runs the task. Waits for transient errors to pass, because this delays no other work.
    pub(super) async fn run(
        self,
        turn: impl Future<Output = OwnedMutexGuard<()>>,
        scale_sets: ScaleSets,
        report: Arc<Report<DependencyRecord>>,
    ) -> Result<DependencyRecord, DependencyFailure> {
        let begun = Instant::now();
        let mut pause = PAUSES.0;
        let mut turn = turn.await;
        loop {
            let reason = match in_turn(turn, self.attempt(&scale_sets)).await {
                Ok(Try::Ready(record)) => return Ok(record),
                Ok(Try::Creating(operation)) => match self.created(*operation).await {
                    Err(Failed::AtAzure(error)) if error.is_conflict() => error.to_string(),
                    Err(failed) => return Err(failed.into()),
                    Ok(record) => return Ok(record),
                },
                Ok(Try::Wait(text)) => text,
                Err(Failed::AtAzure(error)) if error.is_conflict() => error.to_string(),
                Err(failed) => return Err(failed.into()),
            };
            if begun.elapsed() > OPERATION_TIMEOUT {
                return Err(DependencyFailure::without_code(reason));
            }
            report.delayed(reason, None);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
            turn = self.turns.queue().await;
        }
    }

    async fn attempt(&self, scale_sets: &ScaleSets) -> Result<Try, Failed> {
        let need = &self.need;
        let recorded = need.recorded.as_ref().map(|record| record.name.as_str());
        let observed = match recorded {
            Some(name) => scale_sets.get(name).await?,
            None if self.searches => self.adopted(&scale_sets.list().await?)?,
            None => None,
        };
        let predecessor = recorded.or(observed.as_ref().map(|observed| observed.name.as_str()));
        match step(&self.location, need, predecessor, observed.as_ref())? {
            Step::Keep(record) => Ok(Try::Ready(record)),
            Step::Wait(text) => Ok(Try::Wait(text)),
            Step::Create(name) => {
                info!(pool = need.pool, scale_set = name, fault_domains = need.target, "creating a scale set");
                match scale_sets.create(&name, &need.pool, need.target).await? {
                    Begun::Done(made) => Ok(Try::Ready(self.made(made)?)),
                    Begun::Running(operation) => Ok(Try::Creating(Box::new(operation))),
                }
            }
        }
    }

    fn adopted(&self, listed: &[ScaleSet]) -> Result<Option<ScaleSet>, DependencyFailure> {
        let pool = &self.need.pool;
        match adoption(pool, listed, &self.ids_of_machines) {
            Adoption::Of(own) => {
                info!(pool, scale_set = own.name, "taking over a scale set that was not recorded");
                Ok(Some(own.clone()))
            }
            Adoption::None => Ok(None),
            Adoption::Unclear(names) => Err(DependencyFailure::of_configuration(format!(
                "resource group {:?} has several scale sets of the pool and none is recorded: {}; delete those that its \
                 machines are not in",
                self.location.resource_group,
                names.join(", ")
            ))),
        }
    }

    async fn created(&self, operation: Operation) -> Result<DependencyRecord, Failed> {
        Ok(self.made(operation.finished().await?)?)
    }

    fn made(&self, made: Option<ScaleSet>) -> Result<DependencyRecord, DependencyFailure> {
        let record = record(&self.need.pool, &made.unwrap_or_default())?;
        info!(pool = record.pool_name, scale_set = record.name, "scale set is there");
        Ok(record)
    }
}

impl From<Failed> for DependencyFailure {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::AtAzure(error) => error.failure(),
            Failed::ForGood(failure) => failure,
        }
    }
}

/// Runs the work within its turn, but gives up the turn if it takes long.
async fn in_turn<T>(turn: OwnedMutexGuard<()>, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let soon = tokio::time::timeout(TURN, &mut work).await;
    drop(turn);
    match soon {
        Ok(result) => result,
        Err(_) => work.await,
    }
}
