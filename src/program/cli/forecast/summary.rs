//! The one-line answer: moving and stuck Shoots, affected nodes, and the busiest day.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use serde::Serialize;

use super::Report;
use crate::cli::preview::words::counted;
use profiles::versions::forecast::{Move, Stuck};
use profiles::versions::measured_kubernetes::why_too_new;

/// Totals over all Shoots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// Shoots that could be evaluated.
    pub(super) shoots: usize,
    /// Shoots with a version that changes.
    pub(super) moving: usize,
    /// Shoots with a version that cannot be updated.
    pub(super) stuck: usize,
    /// Number of times that the nodes of a pool are replaced or updated.
    pub(super) pools: usize,
    /// Minimum and maximum number of those nodes, because the autoscaler can change it.
    pub(super) nodes: [u64; 2],
    /// The day with the most affected nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) busiest: Option<Busiest>,
    /// Moves between versions, most Shoots first.
    pub(super) moves: Vec<SharedMove>,
    /// Newer Kubernetes versions that Shoots have or get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) newer_than_measured: Vec<NewerVersion>,
}

/// A Kubernetes version that is newer than the measured Gardener supports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct NewerVersion {
    version: String,
    /// Number of Shoots.
    shoots: usize,
}

/// An update from one version to another, shared by several Shoots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct SharedMove {
    /// The image name, or Kubernetes.
    subject: String,
    from: String,
    to: String,
    /// Number of Shoots.
    shoots: usize,
    /// The day of the earliest move.
    first: Date,
    /// The Shoot with the earliest move.
    example: String,
}

/// Maximum number of moves and versions printed.
const MOST_MOVES: usize = 5;

/// The day with the most affected nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Busiest {
    /// In the Shoots' time zones.
    pub(super) day: Date,
    pub(super) nodes: [u64; 2],
}

impl Summary {
    pub(super) fn of(report: &Report) -> Self {
        let mut days: BTreeMap<Date, [u64; 2]> = BTreeMap::new();
        let mut moves: BTreeMap<[&str; 3], SharedMove> = BTreeMap::new();
        let mut newer: BTreeMap<&String, usize> = BTreeMap::new();
        let mut summary = Self { shoots: report.evidence.count(), ..Self::default() };
        for shoot in &report.shoots {
            let forecast = &shoot.forecast;
            for version in &forecast.too_new {
                *newer.entry(version).or_default() += 1;
            }
            let before = shoot.before.as_ref();
            // When comparing profiles, count only what the change adds.
            let steps = forecast.steps.iter().filter(|step| before.is_none_or(|before| !before.steps.contains(step)));
            let steps: Vec<_> = steps.collect();
            let is_new = |stuck: &Stuck| before.is_none_or(|before| !before.stuck.contains(stuck));
            summary.moving += usize::from(!steps.is_empty());
            summary.stuck += usize::from(forecast.stuck.iter().any(is_new));
            let mut made: BTreeSet<[&str; 3]> = BTreeSet::new();
            for step in steps {
                let day = step.time.to_zoned(forecast.window.time_zone()).date();
                for Move { image, from, to, .. } in &step.moves {
                    let subject = image.as_deref().unwrap_or("Kubernetes");
                    let key = [subject, from, to];
                    let shared = moves.entry(key).or_insert_with(|| SharedMove::first(key, day, &shoot.shoot));
                    shared.add(day, &shoot.shoot, made.insert(key));
                }
                for pool in &step.nodes {
                    summary.pools += 1;
                    for sum in [days.entry(day).or_default(), &mut summary.nodes] {
                        sum.iter_mut().zip(pool.count).for_each(|(sum, count)| *sum += u64::from(count));
                    }
                }
            }
        }
        // Of equally busy days, the earliest.
        let busiest = days.into_iter().rev().max_by_key(|(_, nodes)| nodes[1]);
        summary.busiest = busiest.map(|(day, nodes)| Busiest { day, nodes });
        let newer = newer.into_iter().map(|(version, shoots)| NewerVersion { version: version.clone(), shoots });
        summary.newer_than_measured = newer.collect();
        summary.moves = moves.into_values().collect();
        summary.moves.sort_by_key(|shared| Reverse(shared.shoots));
        summary
    }

    /// One line for each of the first moves.
    pub(super) fn moves(&self) -> Vec<String> {
        let line = |SharedMove { subject, from, to, shoots, first, example }: &SharedMove| {
            let others = if *shoots == 1 { String::new() } else { format!(" and {} more", shoots - 1) };
            format!("{subject} {from} to {to}: from {first} on, {example}{others}")
        };
        let more = self.moves.len().checked_sub(MOST_MOVES).filter(|more| *more > 0);
        let more = more.map(|more| format!("and {more} other moves"));
        self.moves.iter().take(MOST_MOVES).map(line).chain(more).collect()
    }

    /// One line for each of the first Kubernetes versions that are newer than the measured Gardener supports.
    pub(super) fn newer_than_measured(&self) -> Vec<String> {
        let line = |NewerVersion { version, shoots }: &NewerVersion| {
            format!("Kubernetes {version} in {}: {}", counted(*shoots as u64, "shoot"), why_too_new())
        };
        self.newer_than_measured.iter().take(MOST_MOVES).map(line).collect()
    }

    /// The one-line answer.
    pub(super) fn line(&self, is_comparison: bool) -> String {
        let of = |count: usize| if count == 1 { format!("{count} shoot") } else { format!("{count} shoots") };
        let verb = |count: usize, one: &'static str, several: &'static str| if count == 1 { one } else { several };
        let moves = verb(self.moving, "moves", "move");
        let is = verb(self.stuck, "is", "are");
        let [otherwise, newly] = if is_comparison { [" otherwise than before", " newly"] } else { [""; 2] };
        let mut line =
            format!("{} of {} {moves}{otherwise}, {} {is}{newly} stuck", self.moving, of(self.shoots), self.stuck);
        match &self.busiest {
            None => line.push_str("; no node is touched"),
            Some(busiest) => line.push_str(&format!(
                "; {} nodes are replaced or updated, most on {} ({})",
                range(self.nodes),
                busiest.day,
                range(busiest.nodes)
            )),
        }
        line
    }
}

impl SharedMove {
    fn first([subject, from, to]: [&str; 3], first: Date, example: &str) -> Self {
        let [subject, from, to, example] = [subject, from, to, example].map(str::to_owned);
        Self { subject, from, to, shoots: 0, first, example }
    }

    fn add(&mut self, day: Date, shoot: &str, is_new: bool) {
        self.shoots += usize::from(is_new);
        if day < self.first {
            self.first = day;
            self.example = shoot.to_owned();
        }
    }
}

/// `3 to 9`, or one number.
pub(super) fn range([fewest, most]: [u64; 2]) -> String {
    if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") }
}
