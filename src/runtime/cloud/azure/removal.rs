//! Task that removes the unneeded scale sets of a Worker.

use std::sync::Arc;

use futures::future::join_all;
use tokio::time::Instant;
use tracing::info;

use super::client::ScaleSets;
use super::error::AzureError;
use super::operation::{Begun, OPERATION_TIMEOUT, PAUSES};
use crate::cloud::background_task::Report;
use crate::cloud::dependency_tasks::{self, Removed};
use decisions::provider::DependencyFailure;
use decisions::provider::azure::scale_sets::{ScaleSet, ScaleSetScope, Unneeded, unneeded};

/// Inputs that determine which scale sets are unneeded.
pub(super) type Removal = dependency_tasks::Removal<ScaleSetScope, i32>;

/// Runs the task and returns the remaining records. A failure does not stop the other deletions.
pub(super) async fn run(
    Removal { needs, used }: Removal,
    listed: Option<Vec<ScaleSet>>,
    scale_sets: ScaleSets,
    report: Arc<Report<Removed<ScaleSet>>>,
) -> Result<Removed<ScaleSet>, DependencyFailure> {
    let listed = match listed {
        Some(listed) => listed,
        None => match scale_sets.list().await {
            // Without a resource group there are no scale sets.
            Err(error) if error.is_not_found() => Vec::new(),
            other => other.map_err(|error| error.failure())?,
        },
    };
    let Unneeded { orphans, records } = unneeded(&needs, &listed, used.as_deref().unwrap_or_default());
    let recorded = records.iter().map(|record| record.name.clone());
    let names: Vec<String> = orphans.into_iter().chain(recorded).collect();
    if used.is_none() && !names.is_empty() {
        return Ok(Removed::Unneeded(listed));
    }
    let mut goings = Vec::new();
    // Requests are sent one by one in this order; Azure runs the deletions in parallel.
    for name in names {
        info!(scale_set = name, "deleting a scale set");
        let begun = scale_sets.delete(&name).await;
        goings.push((name, begun));
    }
    let ends = goings.into_iter().map(|(name, begun)| deleted(&scale_sets, name, begun, &report));
    let failures: Vec<AzureError> = join_all(ends).await.into_iter().filter_map(Result::err).collect();
    match failures.as_slice() {
        [] => Ok(Removed::Done(needs.records.into_iter().filter(|record| !records.contains(record)).collect())),
        [first, ..] => {
            let texts: Vec<String> = failures.iter().map(ToString::to_string).collect();
            let code = failures.iter().find_map(AzureError::code).or(first.code());
            Err(DependencyFailure { message: texts.join("; "), code })
        }
    }
}

/// Follows one deletion to its end. Retries it while another operation on the scale set is in progress, such as its
/// creation that is no longer needed.
async fn deleted(
    scale_sets: &ScaleSets,
    name: String,
    mut begun: Result<Begun, AzureError>,
    report: &Report<Removed<ScaleSet>>,
) -> Result<(), AzureError> {
    let since = Instant::now();
    let mut pause = PAUSES.0;
    loop {
        let end = match begun {
            Ok(Begun::Done(_)) => Ok(()),
            Ok(Begun::Running(operation)) => operation.finished().await.map(drop),
            Err(error) => Err(error),
        };
        match end {
            Err(error) if error.is_conflict() && since.elapsed() < OPERATION_TIMEOUT => {
                info!(scale_set = name, %error, "the scale set can't be deleted yet");
                report.delayed("another operation of Azure is in progress there", None);
            }
            end => return end,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
        begun = scale_sets.delete(&name).await;
    }
}
