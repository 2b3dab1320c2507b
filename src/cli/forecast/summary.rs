//! The answer in one line: who moves, who is stuck, how many nodes, on which day the most.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde::Serialize;

use super::Report;
use crate::versions::forecast::Stuck;

/// Sums over all shoots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// Shoots that were looked at.
    pub(super) shoots: usize,
    /// Shoots with a version that changes.
    pub(super) moving: usize,
    /// Shoots with a version that can't go on.
    pub(super) stuck: usize,
    /// How often the nodes of a pool are replaced or updated.
    pub(super) pools: usize,
    /// How many nodes these are, as the autoscaler leaves it.
    pub(super) nodes: [u64; 2],
    /// The day on which most of them are touched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) busiest: Option<Busiest>,
}

/// The day with the most nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Busiest {
    /// In the time zones of the shoots.
    pub(super) day: Date,
    /// How many nodes.
    pub(super) nodes: [u64; 2],
}

impl Summary {
    pub(super) fn of(report: &Report) -> Self {
        let mut days: BTreeMap<Date, [u64; 2]> = BTreeMap::new();
        let mut summary = Self { shoots: report.all, ..Self::default() };
        for shoot in &report.shoots {
            let (forecast, before) = (&shoot.forecast, shoot.before.as_ref());
            // With a change of the profile only what is new counts.
            let steps = forecast.steps.iter().filter(|step| before.is_none_or(|before| !before.steps.contains(step)));
            let steps: Vec<_> = steps.collect();
            let is_new = |stuck: &Stuck| before.is_none_or(|before| !before.stuck.contains(stuck));
            summary.moving += usize::from(!steps.is_empty());
            summary.stuck += usize::from(forecast.stuck.iter().any(is_new));
            for step in steps {
                let day = step.time.to_zoned(forecast.window.time_zone()).date();
                for pool in &step.nodes {
                    summary.pools += 1;
                    for sum in [days.entry(day).or_default(), &mut summary.nodes] {
                        sum.iter_mut().zip(pool.count).for_each(|(sum, count)| *sum += u64::from(count));
                    }
                }
            }
        }
        // Of equal days the first.
        let busiest = days.into_iter().rev().max_by_key(|(_, nodes)| nodes[1]);
        summary.busiest = busiest.map(|(day, nodes)| Busiest { day, nodes });
        summary
    }

    /// One line.
    pub(super) fn line(&self, is_comparison: bool) -> String {
        let of = |count: usize| if count == 1 { format!("{count} shoot") } else { format!("{count} shoots") };
        let verb = |count: usize, one: &'static str, several: &'static str| if count == 1 { one } else { several };
        let (moves, is) = (verb(self.moving, "moves", "move"), verb(self.stuck, "is", "are"));
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

/// `3 to 9`, or one number.
pub(super) fn range([fewest, most]: [u64; 2]) -> String {
    if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") }
}
