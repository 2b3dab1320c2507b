//! The rolls of a Worker: which pools roll, wait, are stopped or on hold, what ends that, and the command that changes it.
//!
//! Nothing is planned: rolls follow from records and machines, everything else from the condition `RollsHeld` and from
//! records.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::Surroundings;
use super::facts::{Facts, read};
use super::paste_command::{CommandCluster, PROGRAM, PasteCommand, word};
use super::pools::rows;
use super::progress::{PoolProgress, rolling};
use super::status::{Condition, condition_of_type};
use decisions::worker::plan::class_inputs::History;
use decisions::worker::plan::gate::WAIT_LIMIT;
use decisions::worker::plan::named_pools::NamedPools;
use decisions::worker::plan::roll_budget::LET_ROLL_ANNOTATION;
use decisions::worker::plan::stops::STOP_ANNOTATION;
use decisions::worker::plan::zone_by_zone::ANNOTATION;
use decisions::worker::status::conditions::ConditionType;
use decisions::worker::status::rolls_held::{HeldText, texts_of_pool};
use wire::api::gardener::Worker;
use wire::api::gotext::json::DecodeError;

/// The next step where the value of the annotation is unknown: a new value on the Worker would replace that of the Shoot.
const UNKNOWN_SETTING: &str = "For the command that changes it, run in the seed:";

/// The rolls of a Worker.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerRollouts {
    /// Namespace and name of the Worker, as `namespace/name`.
    pub worker: String,
    /// What there is to say about its pools, in their order.
    pub pools: Vec<PoolRollout>,
    /// What is missing in `pools`, each with the reason.
    #[serde(skip)]
    pub unread: Vec<String>,
}

/// One state of a pool. A pool that rolls zone by zone has two: zones that roll, and zones that wait.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolRollout {
    /// Name of the pool.
    pub pool: String,
    /// The state.
    pub state: RolloutState,
    /// Why zones do not roll yet; empty for a roll.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How far a roll is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<PoolProgress>,
    /// Since when the state exists, if that is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When it ends at the latest, if there is a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// What a user can do.
    pub next_step: &'static str,
    /// The command that changes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<PasteCommand>,
}

/// The state of a roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RolloutState {
    /// Machines are replaced or updated in place.
    Rolling,
    /// Zones wait for another zone.
    ZonesWait,
    /// Zones wait without a limit, because another zone fails because of its new class.
    ZoneFails,
    /// The annotation `stop-rolls` stops the roll.
    Stopped,
    /// The roll budget has no slot for the roll.
    OnHold,
}

impl RolloutState {
    /// All states, in the order of printing.
    pub const ALL: [Self; 5] = [Self::Rolling, Self::ZonesWait, Self::ZoneFails, Self::Stopped, Self::OnHold];

    /// The state in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Rolling => "rolling",
            Self::ZonesWait => "waiting",
            Self::ZoneFails => "failing",
            Self::Stopped => "stopped",
            Self::OnHold => "on hold",
        }
    }

    fn next_step(self) -> &'static str {
        match self {
            Self::Rolling => "To stop the roll, run in the seed:",
            Self::ZonesWait => "To roll all zones of the pool now, run in the seed:",
            Self::ZoneFails => {
                "Correct or revert the edit of the pool: its other zones keep their old nodes meanwhile. To see the machines, \
                 run in the seed:"
            }
            Self::Stopped => "To end the stop, run in the seed:",
            Self::OnHold => "To start the roll with the next reconcile, without a slot, run in the seed:",
        }
    }
}

/// The rolls of the Worker in this document.
///
/// # Errors
/// When the Worker can't be decoded.
pub fn rollouts(worker: &Value, surroundings: Surroundings<'_>) -> Result<WorkerRollouts, DecodeError> {
    let (facts, malformed) = Facts::of(read::<Worker>(worker)?, surroundings);
    let metadata = &facts.worker.metadata;
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let mut found = WorkerRollouts {
        worker: format!("{}/{}", part(&metadata.namespace), part(&metadata.name)),
        pools: Vec::new(),
        unread: malformed.into_iter().map(|finding| format!("{}: {}", finding.subject, finding.message)).collect(),
    };
    found.unread.extend(omitted(&facts).map(|more| {
        format!(
            "{}: the condition RollsHeld has no room for {more} more pools; see the events of the Worker",
            found.worker
        )
    }));
    let (rows, _) = rows(&facts);
    let mut progress = rolling(&facts, &rows);
    let pools: BTreeSet<&str> = rows.iter().map(|row| row.pool.as_str()).collect();
    let mut pools: Vec<&str> = pools.into_iter().collect();
    pools.sort_by_key(|pool| rows.iter().position(|row| row.pool == *pool));
    for pool in pools {
        let rolling = progress.iter().position(|progress| progress.pool == pool).map(|index| progress.remove(index));
        let held = held(&facts, pool);
        let is_stopped = held.iter().any(|held| held.state == RolloutState::Stopped);
        found.pools.extend(rolling.map(|progress| of_roll(&facts, progress, is_stopped)));
        found.pools.extend(held);
    }
    Ok(found)
}

/// A roll. If the pool is stopped, the entry about the stop has the command.
fn of_roll(facts: &Facts<'_>, progress: PoolProgress, is_stopped: bool) -> PoolRollout {
    let state = RolloutState::Rolling;
    PoolRollout {
        pool: progress.pool.clone(),
        state,
        message: String::new(),
        since: progress.since,
        until: None,
        next_step: if is_stopped { "It continues when the stop ends." } else { next_step(facts, state) },
        command: if is_stopped { None } else { Some(command(facts, &progress.pool, state)) },
        progress: Some(progress),
    }
}

/// Number of pools that the message of the condition `RollsHeld` leaves out, because there are many.
fn omitted(facts: &Facts<'_>) -> Option<u32> {
    let condition = held_condition(facts)?;
    condition.message.rsplit_once("; and ")?.1.strip_suffix(" more")?.parse().ok()
}

fn held_condition(facts: &Facts<'_>) -> Option<Condition> {
    condition_of_type(facts, ConditionType::RollsHeld).filter(|condition| condition.status == "True")
}

/// What the condition `RollsHeld` has about a pool.
fn held(facts: &Facts<'_>, pool: &str) -> Vec<PoolRollout> {
    let Some(condition) = held_condition(facts) else { return Vec::new() };
    let texts = texts_of_pool(&condition.message, pool);
    let states = texts.into_iter().map(|(kind, text)| {
        let state = match kind {
            HeldText::ZonesWait => RolloutState::ZonesWait,
            HeldText::ZoneFails => RolloutState::ZoneFails,
            HeldText::Stopped => RolloutState::Stopped,
            HeldText::OnHold => RolloutState::OnHold,
        };
        let wait = waits_since(facts, pool);
        let (since, until) = match state {
            RolloutState::ZonesWait => (wait, wait.and_then(|since| since.checked_add(WAIT_LIMIT).ok())),
            RolloutState::ZoneFails => (wait, None),
            RolloutState::Rolling | RolloutState::Stopped | RolloutState::OnHold => {
                (condition.last_transition_time, None)
            }
        };
        PoolRollout {
            pool: pool.to_owned(),
            state,
            message: text.to_owned(),
            progress: None,
            since,
            until,
            next_step: next_step(facts, state),
            command: Some(command(facts, pool, state)),
        }
    });
    states.collect()
}

/// Since when the last zone of a pool waits, according to the records.
fn waits_since(facts: &Facts<'_>, pool: &str) -> Option<Timestamp> {
    let own = facts.deployments.values().filter(|live| live.pool() == Some(pool));
    let waits = own.filter_map(|live| live.class_inputs().and_then(History::read)?.wait);
    waits.map(|wait| wait.since).max()
}

fn next_step(facts: &Facts<'_>, state: RolloutState) -> &'static str {
    match AnnotationChange::of(state) {
        Some(change) if !is_known(facts, change.annotation()) => UNKNOWN_SETTING,
        _ => state.next_step(),
    }
}

/// What changes a state: a pool is added to the pools that an annotation names, or removed from them.
enum AnnotationChange {
    Add(&'static str),
    Remove(&'static str),
}

impl AnnotationChange {
    /// The change for a state. `None` if only another edit of the pool can change it.
    fn of(state: RolloutState) -> Option<Self> {
        match state {
            RolloutState::Rolling => Some(Self::Add(STOP_ANNOTATION)),
            RolloutState::Stopped => Some(Self::Remove(STOP_ANNOTATION)),
            RolloutState::ZonesWait => Some(Self::Remove(ANNOTATION)),
            RolloutState::OnHold => Some(Self::Add(LET_ROLL_ANNOTATION)),
            RolloutState::ZoneFails => None,
        }
    }

    fn annotation(&self) -> &'static str {
        match self {
            Self::Add(annotation) | Self::Remove(annotation) => annotation,
        }
    }

    /// The value of the annotation after the change.
    fn value(&self, facts: &Facts<'_>, pool: &str) -> String {
        let mut named = named(facts, self.annotation());
        named.retain(|known| known != pool);
        if let Self::Add(_) = self {
            named.push(pool.to_owned());
        }
        named.join(",")
    }
}

/// Whether the value of the annotation is known: that of the Worker takes precedence over that of the Shoot.
fn is_known(facts: &Facts<'_>, annotation: &str) -> bool {
    let annotations = facts.worker.metadata.annotations.as_ref();
    facts.cluster.is_some() || annotations.is_some_and(|annotations| annotations.contains_key(annotation))
}

fn command(facts: &Facts<'_>, pool: &str, state: RolloutState) -> PasteCommand {
    let Some(change) = AnnotationChange::of(state) else { return seed(facts, "get machines") };
    let worker = facts.worker.metadata.name.as_deref().unwrap_or_default();
    if !is_known(facts, change.annotation()) {
        let text = format!("{PROGRAM} rollouts {}", word(&format!("{}/{worker}", facts.namespace())));
        return PasteCommand { cluster: CommandCluster::Seed, text };
    }
    let setting = word(&format!("{}={}", change.annotation(), change.value(facts, pool)));
    seed(facts, &format!("annotate worker {} --overwrite {setting}", word(worker)))
}

fn seed(facts: &Facts<'_>, arguments: &str) -> PasteCommand {
    let text = format!("kubectl -n {} {arguments}", word(facts.namespace()));
    PasteCommand { cluster: CommandCluster::Seed, text }
}

/// The pools that an annotation of the Worker or the Shoot names.
fn named(facts: &Facts<'_>, annotation: &str) -> Vec<String> {
    let of_worker = facts.worker.metadata.annotations.as_ref().and_then(|annotations| annotations.get(annotation));
    let of_shoot = || facts.cluster.as_ref()?.spec.shoot.as_ref()?.annotations().get(annotation);
    let setting = NamedPools::of_value(of_worker.or_else(of_shoot).map_or("", String::as_str));
    let pools = facts.worker.spec.pools.iter().map(|pool| &pool.name).filter(|pool| setting.has_pool(pool));
    pools.cloned().collect()
}
