//! Finds out why a Worker is not ready, from the objects in its namespace. Nothing is planned, so no values of Secrets
//! are needed.
//!
//! ```text
//!  objects ─► facts ─► machine: what each machine waits for ─┐
//!                 ├──► status, prerequisites, pools ─────────┴─► findings, the most severe first ─► Diagnosis
//!                 ├──► progress: why and how far pools roll ────────────────────────────────────────────┘
//!                 └──► rollouts: pools that roll, wait, are stopped or on hold, for the command `rollouts`
//! ```

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use decisions::provider::Providers;
use wire::api::gardener::{LastError, LastOperation, Worker};

mod command;
mod facts;
mod finding;
mod machine;
mod machine_document;
mod paste_command;
mod pools;
mod prerequisites;
mod preserved;
mod progress;
mod roll_cause;
mod rollouts;
mod rolls;
mod status;

use facts::Facts;
pub use facts::ObjectKind;
pub use finding::{Actor, Finding, FindingKind, Severity};
pub use paste_command::{CommandCluster, PROGRAM, PasteCommand};
pub use pools::{PoolRow, PoolState};
pub use progress::{Activity, PoolProgress};
pub use roll_cause::{KnownValues, RollCause, roll_causes};
pub use rollouts::{PoolRollout, RolloutState, WorkerRollouts, rollouts};
pub use rolls::{Roll, RollTrigger, rolls, unrecorded};

/// The objects around a Worker, as far as they are known.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The objects of the namespace, and its Cluster.
    pub objects: &'a [Value],
    /// Kinds that were read completely, so that missing objects are known not to exist.
    pub known: &'a BTreeSet<ObjectKind>,
    /// Providers, which interpret the messages of their clouds.
    pub providers: Providers,
    /// The time of the diagnosis.
    pub now: Timestamp,
}

/// The reasons why a Worker is not ready.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// Namespace and name of the Worker, as `namespace/name`.
    pub worker: String,
    /// The value of `spec.type`.
    pub provider: String,
    /// Whether the Worker is ready.
    pub ready: bool,
    /// The current or last operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<LastOperation>,
    /// The last error; absent after a success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// One row for each machine deployment, and for each pool without one.
    pub pools: Vec<PoolRow>,
    /// The pools whose machines change.
    pub progress: Vec<PoolProgress>,
    /// The findings, the most severe first.
    pub findings: Vec<Finding>,
    /// Kinds of objects that were not read.
    pub unknown: Vec<ObjectKind>,
}

impl Diagnosis {
    /// Whether a user or operator has to act.
    #[must_use]
    pub fn has_problem(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Leaves out other pools and what was found about them.
    pub fn keep_pools(&mut self, pools: &BTreeSet<&str>) {
        let other: BTreeSet<String> = self
            .pools
            .iter()
            .map(|row| &row.pool)
            .filter(|pool| !pools.contains(pool.as_str()))
            .map(|pool| pools::subject(pool))
            .collect();
        self.pools.retain(|row| pools.contains(row.pool.as_str()));
        self.progress.retain(|progress| pools.contains(progress.pool.as_str()));
        self.findings.retain(|finding| !other.contains(&finding.subject));
    }
}

/// Diagnoses why the Worker in this document is not ready.
#[must_use]
pub fn diagnose(worker: &Value, surroundings: Surroundings<'_>) -> Diagnosis {
    let text = |pointer: &str| worker.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let mut diagnosis = Diagnosis {
        worker: format!("{}/{}", text("/metadata/namespace"), text("/metadata/name")),
        provider: text("/spec/type").to_owned(),
        ready: false,
        last_operation: None,
        last_error: None,
        pools: Vec::new(),
        progress: Vec::new(),
        findings: Vec::new(),
        unknown: ObjectKind::ALL.iter().filter(|kind| !surroundings.known.contains(kind)).copied().collect(),
    };
    match facts::read(worker) {
        Err(error) => {
            let command = command::show_worker(text("/metadata/namespace"), text("/metadata/name"));
            let finding = FindingKind::Undecodable.found("the Worker", error.to_string());
            diagnosis.findings.push(Finding { command: Some(command), ..finding });
        }
        Ok(worker) => complete(&mut diagnosis, worker, surroundings),
    }
    diagnosis.findings.sort_by_key(|finding| (finding.severity, finding.kind));
    diagnosis.ready = diagnosis.findings.iter().all(|finding| finding.severity == Severity::Note);
    diagnosis
}

fn complete(diagnosis: &mut Diagnosis, worker: Worker, surroundings: Surroundings<'_>) {
    let (facts, malformed) = Facts::of(worker, surroundings);
    let mut findings = malformed;
    findings.extend(prerequisites::findings(&facts));
    findings.extend(machine::findings(&facts));
    findings.extend(preserved::findings(&facts));
    let (rows, of_pools) = pools::rows(&facts);
    findings.extend(of_pools);
    // Runs last, so that an error of the operation with another finding is not reported twice.
    let of_status = status::findings(&facts, &findings);
    if of_status.iter().any(|finding| [FindingKind::ImageNotResolved, FindingKind::PoolInvalid].contains(&finding.kind))
    {
        findings.retain(|finding| finding.kind != FindingKind::NoDeployment);
    }
    findings.extend(of_status);
    diagnosis.progress = progress::progress(&facts, &rows);
    diagnosis.pools = rows;
    diagnosis.findings = findings.into_iter().map(|finding| command::with_command(finding, &facts)).collect();
    diagnosis.last_operation = facts.worker.status.last_operation;
    diagnosis.last_error = facts.worker.status.last_error;
}
