//! A forecast of many Shoots for a terminal: one line for each change of a day, with the Shoots that it has in common.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::Style;
use jiff::Timestamp;
use jiff::civil::Date;

use super::summary::range;
use super::{Report, ShootForecast};
use crate::cli::preview::words::counted;
use crate::cli::table::{Cell, Table, paragraph};
use crate::cli::terminal::{ASIDE, BAD, CAREFUL, HEADING};
use profiles::versions::forecast::{ForecastStep, Move, Stuck};
use wire::api::bounded_text::{Bound, named, shortened};

/// More Shoots than this are grouped.
pub(super) const MOST_SHOOTS: usize = 20;
/// Maximum number of Shoots named in a line.
const NAMED: Bound = Bound { items: 2, bytes: 300 };
/// Maximum bytes of a reason.
const LONGEST_REASON: usize = 300;

/// A change that Shoots have in common on a day. The order is that of printing.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ChangeKey<'a> {
    day: Date,
    subject: &'a str,
    from: &'a str,
    to: &'a str,
    cause: &'static str,
}

#[derive(Default)]
struct Change {
    /// Positions of the Shoots, because several may have one name.
    shoots: BTreeSet<usize>,
    nodes: [u64; 2],
    is_forced: bool,
}

/// Changes by date, then versions that are stuck.
pub(super) fn text(report: &Report, width: usize) -> String {
    let mut text = changes(report, width);
    let stuck = stuck(report, width);
    if !stuck.is_empty() {
        text.push_str(&format!("\n{HEADING}Stuck{HEADING:#}\n{stuck}"));
    }
    let hint =
        format!("{} are grouped by change: see --all for each of them.", counted(report.shoots.len() as u64, "Shoot"));
    text.push_str(&paragraph(&hint, ASIDE, 0, width));
    text
}

fn changes(report: &Report, width: usize) -> String {
    let mut changes: BTreeMap<ChangeKey<'_>, Change> = BTreeMap::new();
    for (position, shoot) in report.shoots.iter().enumerate() {
        for step in shoot.forecast.steps.iter().filter(|step| is_new_step(shoot, step)) {
            let day = step.time.to_zoned(shoot.forecast.window.time_zone()).date();
            for (location, moved) in step.moves.iter().enumerate() {
                let change = changes.entry(key(day, moved)).or_default();
                change.shoots.insert(position);
                change.is_forced |= moved.is_forced();
                for (pool, is_counted_before) in step.nodes_of(location) {
                    if !is_counted_before {
                        change.nodes.iter_mut().zip(pool.count).for_each(|(sum, count)| *sum += u64::from(count));
                    }
                }
            }
        }
    }
    if changes.is_empty() {
        return paragraph("No version changes.", Style::new(), 0, width);
    }
    let mut table = Table::new(["DAY", "WHAT", "FROM", "TO", "WHY", ">SHOOTS", ">NODES", "SUCH AS"]);
    for (key, change) in &changes {
        table.row([
            key.day.to_string().into(),
            key.subject.into(),
            key.from.into(),
            key.to.into(),
            Cell::styled(key.cause, if change.is_forced { CAREFUL } else { Style::new() }),
            change.shoots.len().to_string().into(),
            range(change.nodes).into(),
            names(report, &change.shoots).into(),
        ]);
    }
    table.render(0, width)
}

fn key(day: Date, moved: &Move) -> ChangeKey<'_> {
    let subject = moved.image.as_deref().unwrap_or("Kubernetes");
    ChangeKey { day, subject, from: &moved.from, to: &moved.to, cause: moved.cause.text() }
}

/// The first of these Shoots by name, and the number of the rest.
fn names(report: &Report, positions: &BTreeSet<usize>) -> String {
    let shoots = positions.iter().filter_map(|position| report.shoots.get(*position));
    let names: Vec<&str> = shoots.map(|shoot| shoot.shoot.as_str()).collect();
    named(&names, NAMED)
}

/// When profiles are compared, only what the change adds.
fn is_new_step(shoot: &ShootForecast, step: &ForecastStep) -> bool {
    shoot.before.as_ref().is_none_or(|before| !before.steps.contains(step))
}

/// Subject, version, reason and remedy of a Shoot that is stuck.
type StuckKey<'a> = (&'a str, &'a str, &'a str, &'a str);

fn stuck(report: &Report, width: usize) -> String {
    let mut reasons: BTreeMap<StuckKey<'_>, (Timestamp, BTreeSet<usize>)> = BTreeMap::new();
    for (position, shoot) in report.shoots.iter().enumerate() {
        let is_new = |stuck: &&Stuck| shoot.before.as_ref().is_none_or(|before| !before.stuck.contains(stuck));
        for stuck in shoot.forecast.stuck.iter().filter(is_new) {
            let subject = stuck.image.as_deref().unwrap_or("Kubernetes");
            let key = (subject, stuck.version.as_str(), stuck.why.as_str(), stuck.remedy.as_str());
            let (since, shoots) = reasons.entry(key).or_insert_with(|| (stuck.since, BTreeSet::new()));
            *since = stuck.since.min(*since);
            shoots.insert(position);
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, (since, _))| *since);
    let mut text = String::new();
    for ((subject, version, why, remedy), (since, shoots)) in reasons {
        let names = names(report, &shoots);
        let day = since.to_zoned(jiff::tz::TimeZone::UTC).date();
        let shoots = counted(shoots.len() as u64, "Shoot");
        let line = format!("{day}: {shoots} at {subject} {version} ({names}): {}", shortened(why, LONGEST_REASON));
        text.push_str(&paragraph(&line, BAD, 2, width));
        text.push_str(&paragraph(&shortened(remedy, LONGEST_REASON), Style::new(), 4, width));
    }
    text
}
