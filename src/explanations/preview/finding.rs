//! Problems, hazards and notices that the user should read before a change is applied, in addition to the verdicts.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::difference::{Change, ChangedObject, Step};
use super::durations::{duration_text, estimate_between, estimate_text};
use super::placement::{Placement, is_paused};
use super::placement_change::PlacementChange;
use super::rule::Verdict;
use super::surge::{Pace, USUAL_ROUND};
use decisions::pool::roll_bounds::BOTH_ZERO;
use decisions::worker::plan::gate::WAIT_LIMIT;
use wire::api::gardener::ErrorCode;

/// The kind of a finding; its names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// The new inputs can't be planned although the old ones could; existing objects stay as they are.
    CannotBePlanned,
    /// The garden would reject the new Shoot, so the change has no effect.
    Refused,
    /// Neither the old nor the new inputs can be planned; existing objects stay as they are.
    StillCannotBePlanned,
    /// An object in a seed can't be read, so the Worker can't be compared.
    #[serde(rename = "cannot-be-judged")]
    CannotBeEvaluated,
    /// The old inputs could not be planned, so the old objects are unknown if only files are given.
    CouldNotBePlanned,
    /// The content of a class changes, but not its name: old nodes stay, new ones differ.
    NewNodesDiffer,
    /// The image changes, but the class keeps its original image because the controller pins images.
    ImagePinned,
    /// Surge and unavailability are both 0: a node is deleted before its replacement is created.
    SurgeAndUnavailableZero,
    /// The new maximum is below the existing number of machines.
    MaximumBelowReplicas,
    /// Machines are deleted without replacement.
    MachinesDeleted,
    /// Several zones of a pool roll at the same time.
    ZonesAtOnce,
    /// The zones of a pool roll one after the other.
    ZoneByZone,
    /// The zones of a pool take longer than a zone waits for its turn.
    ZonesExceedWait,
    /// The duration of a pool's roll according to its settings.
    RollPace,
    /// The additional machines exceed the remaining capacity of the cloud.
    CapacityExceeded,
    /// No limit is known for the additional machines.
    CapacityUnknown,
    /// A user must select the machines to update.
    ManualUpdate,
    /// A controller with a roll budget keeps the class of a pool while no slot is free.
    RollHeld,
    /// The deployment is paused: nothing rolls until it is resumed.
    Paused,
    /// A new machine that fails is preserved, and nothing replaces it until it is released.
    PreservesFailedMachines,
    /// A field changed for which gardenlet would choose another node agent Secret, so the real change rolls nodes.
    NodeAgentSecretUnchanged,
    /// The effect on nodes depends on an assumption about a value that the Shoot omits.
    Presumed,
    /// Changes by the next maintenance window.
    Maintenance,
    /// Updates that maintenance can't perform, although a version has expired or is missing.
    MaintenanceStuck,
}

impl FindingKind {
    /// How serious it is.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Self::CannotBePlanned | Self::StillCannotBePlanned | Self::CannotBeEvaluated => Severity::Error,
            Self::ManualUpdate
            | Self::ZonesAtOnce
            | Self::ZoneByZone
            | Self::RollPace
            | Self::CapacityUnknown
            | Self::RollHeld
            | Self::Paused
            | Self::ImagePinned
            | Self::CouldNotBePlanned
            | Self::Presumed
            | Self::Maintenance => Severity::Notice,
            _ => Severity::Hazard,
        }
    }
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something can't be done.
    Error,
    /// Something happens that a user does not expect.
    Hazard,
    /// Useful to know.
    Notice,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How serious it is.
    pub severity: Severity,
    /// The kind of finding.
    pub kind: FindingKind,
    /// The pool; absent if the finding is about the whole Worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The zone; absent if the finding is about the whole pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Gardener's code of an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// The text of the finding.
    pub message: String,
    /// Where the figures of an estimate come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Finding {
    /// A finding about a pool, or about the whole Worker if `pool` is empty.
    #[must_use]
    pub fn of_pool(kind: FindingKind, pool: &str, message: String) -> Self {
        let pool = Some(pool.to_owned()).filter(|pool| !pool.is_empty());
        Self { severity: kind.severity(), kind, pool, zone: None, code: None, message, source: None }
    }

    fn of_placement(kind: FindingKind, change: &PlacementChange, message: String) -> Self {
        Self { zone: change.zone.clone(), ..Self::of_pool(kind, &change.pool, message) }
    }
}

/// The findings about one placement.
pub(super) fn findings_of_placement(
    change: &PlacementChange,
    old: Option<&Placement>,
    new: Option<&Placement>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |kind, message: String| findings.push(Finding::of_placement(kind, change, message));
    if change.new_nodes_differ {
        find(
            FindingKind::NewNodesDiffer,
            format!(
                "the content of the class changes, its name does not: existing nodes stay, new nodes differ ({})",
                change.class_differences.join(", ")
            ),
        );
    }
    if change.deletes_machines() {
        find(FindingKind::MachinesDeleted, "all machines are deleted without replacement".to_owned());
    }
    if let (Some(old), Some(new)) = (old, new) {
        if let Some(message) = nodes_above_maximum(change, old, new) {
            find(FindingKind::MaximumBelowReplicas, message);
        }
        if change.verdict.is_roll() && is_paused(&new.deployment) {
            find(FindingKind::Paused, "the MachineDeployment is paused; nothing rolls until it isn't".to_owned());
        }
    }
    let preserved = new.map_or(0, |new| preserved_machines(&new.deployment));
    if preserved > 0 && change.nodes.affected > 0 && [Verdict::Roll, Verdict::InPlace].contains(&change.verdict) {
        find(FindingKind::PreservesFailedMachines, preserves(preserved));
    }
    if let Some(surge) = &change.surge
        && change.nodes.affected > 0
    {
        if surge.manual {
            find(FindingKind::ManualUpdate, "a person selects the machines that are updated".to_owned());
        } else if surge.both_zero {
            find(
                FindingKind::SurgeAndUnavailableZero,
                format!(
                    "the share of a zone is maxSurge {} and maxUnavailable {}, {BOTH_ZERO}",
                    surge.max_surge, surge.max_unavailable
                ),
            );
        }
    }
    findings
}

/// How many failed machines a MachineDeployment may preserve.
fn preserved_machines(deployment: &Value) -> i64 {
    deployment.pointer("/spec/autoPreserveFailedMachineMax").and_then(Value::as_i64).unwrap_or_default()
}

fn preserves(maximum: i64) -> String {
    format!(
        "autoPreserveFailedMachineMax is {maximum}: machine-controller-manager preserves a new machine that fails and does not \
         replace it, so the update stops until the annotation node.machine.sapcloud.io/preserve=false releases the machine"
    )
}

/// Nodes that machine-controller-manager removes because the maximum falls. Without live objects, the zone may have as many as its
/// old maximum allows.
fn nodes_above_maximum(change: &PlacementChange, old: &Placement, new: &Placement) -> Option<String> {
    let after = new.bounds?;
    let maximum = i64::from(after.maximum);
    let there_are = old.replicas();
    if maximum < there_are {
        return Some(format!("the maximum becomes {maximum}, below the {there_are} machines there are"));
    }
    let before = old.bounds?;
    if change.nodes.seen || old.is_hibernated || new.is_hibernated || before.maximum <= after.maximum {
        return None;
    }
    Some(format!(
        "minimum and maximum of the zone change from {} and {} to {} and {}: the nodes above {} are removed, up to {}",
        before.minimum,
        before.maximum,
        after.minimum,
        after.maximum,
        after.maximum,
        i64::from(before.maximum) - i64::from(after.maximum)
    ))
}

/// What there is to say about the zones of a pool together. The zones of the pools in `zone_by_zone` roll one after the other.
pub(super) fn findings_of_pools(placements: &[PlacementChange], zone_by_zone: &BTreeSet<String>) -> Vec<Finding> {
    let pools: BTreeSet<&str> = placements.iter().map(|change| change.pool.as_str()).collect();
    let of_pool = |pool: &str| {
        let [rolling, in_place] = [Verdict::Roll, Verdict::InPlace].map(|verdict| {
            let is_meant = |change: &&PlacementChange| {
                change.pool == pool && change.verdict == verdict && change.nodes.affected > 0
            };
            placements.iter().filter(is_meant).collect::<Vec<_>>()
        });
        let updated = pace(pool, &in_place, Pace::or_slower);
        match zone_by_zone.contains(pool) && rolling.len() > 1 {
            true => [
                one_zone_at_a_time(pool, &rolling),
                pace(pool, &rolling, Pace::then),
                too_long(pool, &rolling),
                updated,
            ],
            false => [zones_at_once(pool, &rolling), pace(pool, &rolling, Pace::or_slower), None, updated],
        }
    };
    pools.into_iter().flat_map(of_pool).flatten().collect()
}

fn zones_at_once(pool: &str, rolling: &[&PlacementChange]) -> Option<Finding> {
    let numbers = rolling.iter().filter_map(|change| change.surge.as_ref());
    let numbers = numbers.map(|surge| (surge.above, surge.missing));
    let (zones, above, missing) = numbers.fold((0_u32, 0_i64, 0_i64), |(zones, above, missing), numbers| {
        (zones + 1, above.saturating_add(numbers.0), missing.saturating_add(numbers.1))
    });
    (zones > 1).then(|| {
        Finding::of_pool(
            FindingKind::ZonesAtOnce,
            pool,
            format!("{zones} zones roll at the same time: up to {above} more and up to {missing} fewer nodes at once"),
        )
    })
}

/// The numbers of the zone with the most, because usually only one rolls.
fn one_zone_at_a_time(pool: &str, rolling: &[&PlacementChange]) -> Option<Finding> {
    let surges = || rolling.iter().filter_map(|change| change.surge.as_ref());
    let above = surges().map(|surge| surge.above).max()?;
    let missing = surges().map(|surge| surge.missing).max()?;
    let message = format!("zone by zone: +{above} -{missing} over the pool, as long as one zone rolls at a time");
    Some(Finding::of_pool(FindingKind::ZoneByZone, pool, message))
}

/// The last zone waits for all others. After the limit, it rolls at the same time.
fn too_long(pool: &str, rolling: &[&PlacementChange]) -> Option<Finding> {
    let (_, others) = rolling.split_last()?;
    let pace = others.iter().filter_map(|change| change.surge.as_ref()?.pace).reduce(Pace::then)?;
    let usual = SignedDuration::from_secs(pace.usual_seconds);
    (usual > WAIT_LIMIT).then(|| {
        let message = format!(
            "all zones but the last take {}; a zone waits for {} at most, and then rolls at the same time as others. A higher \
             maxSurge shortens the roll",
            estimate_text(usual),
            duration_text(WAIT_LIMIT),
        );
        Finding::of_pool(FindingKind::ZonesExceedWait, pool, message)
    })
}

/// The duration of the roll, with the durations of the zones combined.
fn pace(pool: &str, changes: &[&PlacementChange], combine: fn(Pace, Pace) -> Pace) -> Option<Finding> {
    let pace = changes.iter().filter_map(|change| change.surge.as_ref()?.pace).reduce(combine)?;
    let nodes = changes.iter().map(|change| change.nodes.affected).fold(0, i64::saturating_add);
    let least = if changes.iter().all(|change| change.nodes.seen) { "" } else { "at least " };
    let [nodes, rounds] = [(nodes, "node"), (pace.rounds, "round")]
        .map(|(number, noun)| format!("{number} {noun}{}", if number == 1 { "" } else { "s" }));
    let [usual, longest] = [pace.usual_seconds, pace.longest_seconds].map(SignedDuration::from_secs);
    let message = format!("{least}{nodes} in {rounds}, {}", estimate_between(usual, longest));
    Some(Finding { source: Some(source_of(pace)), ..Finding::of_pool(FindingKind::RollPace, pool, message) })
}

/// Where the estimate comes from: an assumption, and the settings of the pool.
fn source_of(pace: Pace) -> String {
    let text = |seconds: i64| duration_text(SignedDuration::from_secs(seconds));
    let [usual, creation, drain] = [USUAL_ROUND, pace.creation_timeout_seconds, pace.drain_timeout_seconds].map(text);
    let longest = match pace.in_place_update_timeout_seconds.map(text) {
        None => format!("new nodes take up to {creation} to join and old ones up to {drain} to drain"),
        Some(update) => format!("nodes take up to {drain} to drain and up to {update} to be updated in place"),
    };
    format!("the shortest time assumes {usual} for each round; by the pool's settings, in each round {longest}")
}

/// gardenlet derives the name of the node agent Secret from these fields of a pool. A file that changes them without
/// changing the name shows less than will happen.
pub(super) fn unchanged_node_agent_secret(pool: &str, changes: &[Change]) -> Option<Finding> {
    let of_pool = changes.iter().filter(|change| change.object == ChangedObject::Worker).filter_map(|change| {
        let [Step::Member(spec), Step::Member(pools), Step::Entry(name), field @ ..] = change.path.0.as_slice() else {
            return None;
        };
        let is_pool = spec == "spec" && pools == "pools" && name.iter().any(|(_, name)| name == pool);
        is_pool.then_some((change, field))
    });
    let mut fields = Vec::new();
    for (change, field) in of_pool {
        let name = super::difference::Path(field.to_vec()).to_string();
        let counts = match name.as_str() {
            "nodeAgentSecretName" => return None,
            "kubernetesVersion" => minor(change.old.as_ref()) != minor(change.new.as_ref()),
            "machineType" | "volume" | "volume.size" | "volume.type" | "kubeletConfig" => true,
            other => [
                "machineImage",
                "kubeletConfig.kubeReserved",
                "kubeletConfig.evictionHard",
                "kubeletConfig.cpuManagerPolicy",
            ]
            .iter()
            .any(|prefix| other.starts_with(prefix)),
        };
        if counts {
            fields.push(name);
        }
    }
    (!fields.is_empty()).then(|| {
        Finding::of_pool(
            FindingKind::NodeAgentSecretUnchanged,
            pool,
            format!(
                "{} changed but nodeAgentSecretName did not; gardenlet changes it with them, and then the pool rolls",
                fields.join(", ")
            ),
        )
    })
}

fn minor(version: Option<&Value>) -> Option<String> {
    let mut parts = version?.as_str()?.trim_start_matches('v').split('.');
    Some(format!("{}.{}", parts.next()?, parts.next()?))
}
