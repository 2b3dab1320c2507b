//! Reasons why a Worker is not ready: what is wrong, since when, the original message, and the next step.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use serde_with::apply;

use super::paste_command::PasteCommand;
use wire::api::gardener::ErrorCode;

/// The severity of a finding, by who has to act. The order is that of printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// A user or operator has to act.
    Error,
    /// It resolves without intervention.
    Waiting,
    /// It does not delay anything.
    Note,
}

/// Defines the kinds in one table: `/// what it is`, name, usual severity, usual next step.
macro_rules! kinds {
    ($($(#[$meaning:meta])* $kind:ident = $severity:ident $step:literal,)*) => {
        /// Reasons why a Worker is not ready, causes before their consequences.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "camelCase")]
        pub enum FindingKind {
            $($(#[$meaning])* $kind,)*
        }

        impl FindingKind {
            /// A finding of this kind.
            pub(super) fn found(self, subject: impl Into<String>, message: impl Into<String>) -> Finding {
                let (severity, step) = match self {
                    $(Self::$kind => (Severity::$severity, $step),)*
                };
                Finding {
                    severity,
                    kind: self,
                    subject: subject.into(),
                    message: message.into(),
                    since: None,
                    codes: BTreeSet::new(),
                    machines: Vec::new(),
                    driver_code: None,
                    driver_text: None,
                    disruption_budgets: Vec::new(),
                    next_step: step.to_owned(),
                    command: None,
                    deployment: None,
                }
            }
        }
    };
}

kinds! {
    /// The Worker can't be decoded.
    Undecodable = Error "Correct the member: nothing is done for the Worker before.",
    /// An object in the namespace can't be decoded.
    Malformed = Error "Correct the object.",
    /// Gardener stopped retrying the Shoot's failed operation.
    ShootFailed = Error "Solve what failed, then request another try.",
    /// No controller has started the operation that gardenlet requested.
    NotTakenUp = Error "See whether a controller for Workers of this type runs and leads: its pods, its Lease, its logs.",
    /// A Secret that pools need is missing.
    SecretMissing = Error "Let gardenlet write it again: reconcile the Shoot.",
    /// machine-controller-manager does not run.
    MachineControllerManager = Error "No machine is created or deleted before it runs. See its conditions and events:",
    /// A pool can't be planned or written.
    PoolInvalid = Error "Correct the field that the message names.",
    /// No image fits a pool.
    ImageNotResolved = Error "Choose an image that fits the machine type, or correct the CloudProfile. This shows why each image is rejected:",
    /// A class that machines use, or its Secret, is missing.
    ClassMissing = Error "The next reconcile creates the class again if its pool is valid and still uses it; otherwise see docs/status.md. Request one:",
    /// Failed machines are preserved, so nothing replaces them.
    Preserved = Error "Release the machines when you have seen enough:",
    /// Machines can't be created.
    CreationFailed = Error "Read the driver's message above, then the events:",
    /// A machine can't be drained.
    DrainBlocked = Error "Find the pods that can't be evicted, and the disruption budget that protects them, in the shoot.",
    /// A machine can't be deleted at the cloud.
    DeletionFailed = Error "Read the driver's message above, then the events:",
    /// Nodes are unhealthy.
    Unhealthy = Error "The machine is replaced after its health timeout. See the conditions of the node:",
    /// A MachineDeployment is paused.
    Paused = Error "Nothing is rolled out before spec.paused is removed.",
    /// machine-controller-manager has frozen a MachineDeployment.
    Frozen = Error "See the logs of machine-controller-manager: it freezes what has more machines than it may.",
    /// A zone fails because of its new class, and other zones of the pool wait for it.
    ZoneFails = Error "See the machines of that zone. Correct or revert the edit of the pool: the other zones keep their old nodes, but get no new ones while the node agent Secret differs.",
    /// A person has stopped rolls with an annotation.
    RollsStopped = Error "It continues when the annotation gardener-extension-worker/stop-rolls no longer names the pool. An empty value on the Worker ends the stop, also one of the Shoot.",
    /// The last operation failed for a reason that no other finding shows.
    OperationFailed = Error "Read the text; docs/status.md explains it. The operation is tried again by itself.",
    /// machine-controller-manager has not observed a change.
    NotObserved = Waiting "It should take seconds. If it stays, see the logs of machine-controller-manager.",
    /// There is no machine set for the class of a MachineDeployment.
    NoMachineSet = Waiting "After two minutes the pods of machine-controller-manager are restarted. If it stays, see its logs.",
    /// Machines have not joined.
    NotJoined = Waiting "After 20 minutes a machine that has not joined is replaced: see its console, gardener-node-agent, and whether it reaches the API server.",
    /// Zones of a pool wait for another zone.
    ZonesWait = Waiting "It continues by itself, zone by zone. To roll all zones now, set the annotation gardener-extension-worker/zone-by-zone of the Worker to an empty value.",
    /// Old machines are being deleted.
    Terminating = Waiting "It continues by itself. If it does not end, see which pods are left on the nodes.",
    /// A MachineDeployment is not healthy, and no machine shows the reason.
    DeploymentUnhealthy = Waiting "See its conditions and events, then the logs of machine-controller-manager.",
    /// A pool has no machine deployment.
    NoDeployment = Waiting "It is made by a reconcile.",
    /// The Worker is being deleted.
    Deletion = Waiting "It continues by itself. Objects with finalizers wait for machine-controller-manager.",
    /// An operation is in progress.
    Operation = Waiting "It continues by itself; after five minutes it is an error.",
    /// The roll budget holds pools.
    RollsOnHold = Note "It continues with a reconcile once a slot is free. To start the rolls with the next reconcile, set the annotation gardener-extension-worker/let-roll of the Worker.",
    /// Old machines wait until a user selects them.
    MachinesToSelect = Note "Select nodes when it suits, with the label node.machine.sapcloud.io/selected-for-update=true. The nodes of the pool:",
    /// gardenlet has not requested a reconcile of the current specification.
    NotRequested = Note "gardenlet requests it with the next reconcile of the Shoot.",
}

/// A reason why a Worker is not ready.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The severity, by who has to act.
    pub severity: Severity,
    /// The kind of finding.
    pub kind: FindingKind,
    /// The subject: a pool or an object.
    pub subject: String,
    /// The problem.
    pub message: String,
    /// Since when it exists.
    pub since: Option<Timestamp>,
    /// Gardener's error codes.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub codes: BTreeSet<ErrorCode>,
    /// The affected machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<String>,
    /// The driver's code, such as `ResourceExhausted`.
    pub driver_code: Option<String>,
    /// The message of the driver or of machine-controller-manager about the first machine.
    pub driver_text: Option<String>,
    /// Pod disruption budgets that the message names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disruption_budgets: Vec<String>,
    /// The next step for the user.
    pub next_step: String,
    /// The command that helps with it.
    pub command: Option<PasteCommand>,
    /// Name of the machine deployment, for its command.
    #[serde(skip)]
    pub(super) deployment: Option<String>,
}

/// Who has to act on a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    /// The operator of the seed.
    Operator,
    /// The owner of the shoot.
    Owner,
    /// It resolves without action.
    Nobody,
}

impl Actor {
    /// The actor in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Owner => "shoot owner",
            Self::Nobody => "wait",
        }
    }

    fn of_code(code: ErrorCode) -> Self {
        match code {
            ErrorCode::InfraRateLimitsExceeded | ErrorCode::RetryableInfraDependencies => Self::Nobody,
            ErrorCode::CleanupClusterResources
            | ErrorCode::ConfigurationProblem
            | ErrorCode::InfraDependencies
            | ErrorCode::InfraQuotaExceeded
            | ErrorCode::InfraResourcesDepleted
            | ErrorCode::InfraUnauthenticated
            | ErrorCode::InfraUnauthorized
            | ErrorCode::RetryableConfigurationProblem => Self::Owner,
        }
    }
}

impl Finding {
    /// Who has to act.
    #[must_use]
    pub fn actor(&self) -> Actor {
        if self.severity == Severity::Waiting {
            return Actor::Nobody;
        }
        if let Some(code) = self.codes.first() {
            return Actor::of_code(*code);
        }
        match self.kind {
            FindingKind::Preserved | FindingKind::DrainBlocked | FindingKind::MachinesToSelect => Actor::Owner,
            _ => Actor::Operator,
        }
    }

    pub(super) fn of_deployment(self, deployment: &str) -> Self {
        Self { deployment: Some(deployment.to_owned()), ..self }
    }

    pub(super) fn since(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }

    pub(super) fn next(self, step: impl Into<String>) -> Self {
        Self { next_step: step.into(), ..self }
    }

    /// Adds error codes, and replaces the next step by that of the first code.
    pub(super) fn codes(self, codes: BTreeSet<ErrorCode>) -> Self {
        let next_step = codes.first().map_or(self.next_step, |code| next_step(*code).to_owned());
        Self { codes, next_step, ..self }
    }
}

/// The next step for an error with this code.
fn next_step(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::CleanupClusterResources => "Remove from the shoot what the text names.",
        ErrorCode::ConfigurationProblem => "Correct what the text names, in the Shoot or the CloudProfile.",
        ErrorCode::InfraDependencies => "Remove at the cloud what is in the way, such as a lock.",
        ErrorCode::InfraQuotaExceeded => {
            "Raise the quota at the cloud, or request fewer or smaller machines. Creation is retried."
        }
        ErrorCode::InfraRateLimitsExceeded => "Wait: the cloud limits requests, and the controller tries again.",
        ErrorCode::InfraResourcesDepleted => {
            "Choose another machine type or zone, or wait: the cloud has no such machines now."
        }
        ErrorCode::InfraUnauthenticated => "Correct the cloud credentials of the Shoot: the cloud rejects them.",
        ErrorCode::InfraUnauthorized => "Give the cloud credentials of the Shoot the permission that they lack.",
        ErrorCode::RetryableConfigurationProblem => {
            "It is tried again by itself. If it stays, correct what the text names."
        }
        ErrorCode::RetryableInfraDependencies => "Wait: it is a fault of the cloud, and it is tried again.",
    }
}
