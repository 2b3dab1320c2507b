//! A forecast as a calendar page for a browser. This module decides the content and the page only draws it. Texts are
//! stored once and referenced by number, because ten thousand Shoots share few texts.

use std::collections::{BTreeMap, HashMap};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::summary::Summary;
use super::table::window;
use super::{Report, ShootForecast, VersionLife};
use crate::cli::page::Page;
use profiles::versions::forecast::{Forecast, ForecastStep, PoolNodes, Stuck};
use profiles::versions::run::Cause;
use wire::api::bounded_text::beginning;

const PAGE: Page = Page {
    command: "forecast",
    class: "calendar",
    filters: include_str!("filters.html"),
    legend: include_str!("legend.html"),
    content: include_str!("content.html"),
    script: include_str!("calendar.js"),
};

/// Limits of the page: characters per text, Shoots, versions and errors.
const LONGEST: usize = 500;
const MOST_SHOOTS: usize = 20_000;
const MOST_VERSIONS: usize = 5_000;
const MOST_ERRORS: usize = 100;

pub(super) fn page(report: &Report) -> anyhow::Result<String> {
    PAGE.render("Maintenance forecast", &document(report))
}

/// Source of Shoots from standard input.
const STANDARD_INPUT: &str = "-";

/// Deduplicated texts of a page.
#[derive(Default)]
struct Texts {
    numbers: HashMap<String, usize>,
    texts: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.texts.push(beginning(text, LONGEST));
        self.numbers.insert(text.to_owned(), self.texts.len() - 1);
        self.texts.len() - 1
    }
}

/// Day numbers relative to the first day of the page, in the Shoot's time zone.
struct Calendar {
    first: i64,
}

const DAY: i64 = SignedDuration::from_hours(24).as_secs();

impl Calendar {
    fn day(&self, time: Timestamp, zone: &TimeZone) -> i64 {
        let local = time.as_second() + i64::from(zone.to_offset(time).seconds());
        local.div_euclid(DAY) - self.first
    }
}

/// What shoots that are stuck have in common: what can't be updated, the reason and the remedy.
type StuckKey<'a> = (String, &'a str, &'a str);

/// Shoots that are stuck, grouped by what they have in common.
struct StuckGroups<'a> {
    numbers: HashMap<StuckKey<'a>, usize>,
    /// Sorted by the first day.
    sorted: Vec<(StuckKey<'a>, i64)>,
}

impl<'a> StuckGroups<'a> {
    fn of(shoots: &[&'a ShootForecast], calendar: &Calendar) -> Self {
        let mut days: BTreeMap<StuckKey<'a>, i64> = BTreeMap::new();
        for shoot in shoots {
            for forecast in [&shoot.forecast].into_iter().chain(&shoot.before) {
                let zone = forecast.window.time_zone();
                for stuck in &forecast.stuck {
                    let day = calendar.day(stuck.since, &zone);
                    let first = days.entry(stuck_key(stuck)).or_insert(day);
                    *first = day.min(*first);
                }
            }
        }
        let mut sorted: Vec<_> = days.into_iter().collect();
        sorted.sort_by_key(|(_, day)| *day);
        let numbers = sorted.iter().enumerate().map(|(number, (key, _))| (key.clone(), number)).collect();
        Self { numbers, sorted }
    }

    fn number(&self, stuck: &'a Stuck) -> Option<usize> {
        self.numbers.get(&stuck_key(stuck)).copied()
    }

    fn values(&self, texts: &mut Texts) -> Vec<Value> {
        let groups = self.sorted.iter().map(|((subject, why, remedy), day)| {
            json!([day, texts.number(subject), texts.number(why), texts.number(remedy)])
        });
        groups.collect()
    }
}

fn stuck_key(stuck: &Stuck) -> StuckKey<'_> {
    let subject = match &stuck.image {
        _ if stuck.version.is_empty() => "all versions".to_owned(),
        None => format!("Kubernetes {}", stuck.version),
        Some(image) => format!("{image} {}", stuck.version),
    };
    (subject, &stuck.why, &stuck.remedy)
}

/// The Shoots of the page: the one with the earliest move first, then those that are only stuck, then the others.
fn sorted(report: &Report) -> Vec<&ShootForecast> {
    let mut shoots: Vec<&ShootForecast> = report.shoots.iter().collect();
    let order = |of: &&ShootForecast| {
        let first = of.forecast.steps.iter().filter(|step| is_new(of, step)).map(|step| step.time).min();
        let stuck = of.forecast.stuck.iter().map(|stuck| stuck.since).min();
        let of_list = |time: Option<Timestamp>| (time.is_none(), time);
        (of_list(first), of_list(stuck), of.shoot.clone())
    };
    shoots.sort_by_cached_key(order);
    shoots.truncate(MOST_SHOOTS);
    shoots
}

/// Whether the change of the profile adds the step. Without a change, every step counts.
fn is_new(of: &ShootForecast, step: &ForecastStep) -> bool {
    of.before.as_ref().is_none_or(|before| !before.steps.contains(step))
}

/// Names of Shoots. Equal ones get the file that they were read from or a number, because the page selects Shoots by
/// name.
fn names(shoots: &[&ShootForecast]) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for of in shoots {
        *counts.entry(&of.shoot).or_default() += 1;
    }
    let mut used: HashMap<(&str, &str), usize> = HashMap::new();
    let mut names = Vec::with_capacity(shoots.len());
    for of in shoots {
        let is_only = counts.get(of.shoot.as_str()) == Some(&1);
        let number = used.entry((&of.shoot, &of.source)).or_default();
        *number += 1;
        names.push(match (is_only, of.source.as_str(), *number) {
            (true, ..) => of.shoot.clone(),
            (false, STANDARD_INPUT, number) => format!("{} ({number})", of.shoot),
            (false, source, 1) => format!("{} ({source})", of.shoot),
            (false, source, number) => format!("{} ({source}, {number})", of.shoot),
        });
    }
    names
}

fn document(report: &Report) -> Value {
    let mut texts = Texts::default();
    let calendar = Calendar { first: report.from.as_second().div_euclid(DAY) };
    let listed = sorted(report);
    let names = names(&listed);
    let groups = StuckGroups::of(&listed, &calendar);
    let mut shoots = Vec::with_capacity(listed.len());
    for (of, name) in listed.iter().zip(&names) {
        shoots.push(shoot(of, name, report.is_strict, &calendar, &groups, &mut texts));
    }
    let stuck = groups.values(&mut texts);
    let versions = report.versions.iter().take(MOST_VERSIONS).map(|life| version(life, &calendar, &mut texts));
    let versions: Vec<Value> = versions.collect();
    let problems: Vec<&String> = report.evidence.problems().collect();
    let left_out: Vec<String> = [
        (report.shoots.len().saturating_sub(MOST_SHOOTS), "shoots"),
        (report.versions.len().saturating_sub(MOST_VERSIONS), "versions"),
        (problems.len().saturating_sub(MOST_ERRORS), "problems"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} more {what} are left out; -o json has all of them."))
    .collect();
    let errors: Vec<String> = problems.iter().take(MOST_ERRORS).map(|error| beginning(error, LONGEST)).collect();
    let summary = Summary::of(report);
    let headline = report.evidence.headline(&summary.line(report.is_comparison));
    let headline = [vec![headline], summary.newer_than_measured()].concat().join(". ");
    let days = (report.until.as_second() - report.from.as_second()).div_euclid(DAY).max(1);
    json!({
        "from": report.from.to_zoned(TimeZone::UTC).date(), "days": days,
        "summary": headline, "leftOut": left_out.join(" "),
        "shoots": shoots, "stuck": stuck, "versions": versions, "errors": errors, "texts": texts.texts,
    })
}

fn shoot<'a>(
    of: &'a ShootForecast,
    name: &str,
    is_strict: bool,
    calendar: &Calendar,
    groups: &StuckGroups<'a>,
    texts: &mut Texts,
) -> Value {
    let [steps, stuck] = halves(&of.forecast, &|step| is_new(of, step), calendar, groups, texts);
    let before = of.before.as_ref().map(|before| halves(before, &|_| false, calendar, groups, texts));
    let findings = if is_strict { of.forecast.findings.as_slice() } else { &[] };
    let findings: Vec<usize> = findings.iter().map(|finding| texts.number(finding)).collect();
    let [name, profile, window] = [name, &of.profile, &window(&of.forecast)].map(|text| texts.number(text));
    json!([name, profile, window, steps, stuck, before, findings])
}

/// The moves and the stuck versions.
fn halves<'a>(
    forecast: &'a Forecast,
    is_new: &dyn Fn(&ForecastStep) -> bool,
    calendar: &Calendar,
    groups: &StuckGroups<'a>,
    texts: &mut Texts,
) -> [Vec<Value>; 2] {
    let zone = forecast.window.time_zone();
    let steps = forecast.steps.iter().map(|one| {
        let days = [one.time, one.latest].map(|time| calendar.day(time, &zone));
        step(one, days, is_new(one), texts)
    });
    let steps = steps.collect();
    let stuck = forecast.stuck.iter().filter_map(|stuck| {
        let group = groups.number(stuck)?;
        Some(json!([calendar.day(stuck.since, &zone), group, texts.number(&stuck_subject(stuck))]))
    });
    [steps, stuck.collect()]
}

fn step(step: &ForecastStep, [day, latest]: [i64; 2], is_new: bool, texts: &mut Texts) -> Value {
    let mut moves = Vec::with_capacity(step.moves.len());
    for (index, moved) in step.moves.iter().enumerate() {
        // Nodes that an earlier move of the same day changes are listed and counted there.
        let (reported, of_move): (Vec<_>, Vec<_>) = step.nodes_of(index).partition(|(_, is_reported)| *is_reported);
        let nodes: Vec<Value> = of_move.into_iter().map(|(pool, _)| nodes(pool, texts)).collect();
        let [pool, image] = [&moved.pool, &moved.image].map(|name| name.as_ref().map(|name| texts.number(name)));
        let cause = match moved.cause {
            Cause::Automatic => 0,
            Cause::Expired => 1,
            Cause::Missing => 2,
        };
        moves.push(json!([
            pool,
            image,
            texts.number(&moved.from),
            texts.number(&moved.to),
            cause,
            nodes,
            !reported.is_empty()
        ]));
    }
    let operations: Vec<usize> = step.operations.iter().map(|operation| texts.number(operation)).collect();
    json!([day, latest, is_new, moves, operations])
}

fn nodes(pool: &PoolNodes, texts: &mut Texts) -> Value {
    let [fewest, most] = pool.count;
    let [name, surge, unavailable] = [&pool.pool, &pool.surge, &pool.unavailable].map(|text| texts.number(text));
    json!([name, fewest, most, pool.in_place, surge, unavailable])
}

/// What can't be updated, with its pool.
fn stuck_subject(stuck: &Stuck) -> String {
    match (&stuck.pool, &stuck.image) {
        _ if stuck.version.is_empty() => String::new(),
        (None, _) => format!("control plane at Kubernetes {}", stuck.version),
        (Some(pool), None) => format!("pool {pool} at Kubernetes {}", stuck.version),
        (Some(pool), Some(image)) => format!("pool {pool} at {image} {}", stuck.version),
    }
}

fn version(life: &VersionLife, calendar: &Calendar, texts: &mut Texts) -> Value {
    let stages = life.stages.iter().map(|(begin, stage)| {
        let word = if stage.word().is_empty() { "unknown" } else { stage.word() };
        json!([begin.map(|begin| calendar.day(begin, &TimeZone::UTC)), texts.number(word)])
    });
    let stages: Vec<Value> = stages.collect();
    let [profile, what, version] = [&life.profile, &life.what, &life.version].map(|text| texts.number(text));
    json!([profile, what, version, stages])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_once_and_bounded() {
        let mut texts = Texts::default();
        let long = "x".repeat(10 * LONGEST);
        assert_eq!([texts.number("a\u{202e}"), texts.number(&long), texts.number("a\u{202e}")], [0, 1, 0]);
        assert_eq!((texts.texts[0].as_str(), texts.texts[1].chars().count()), ("a\\u{202e}", LONGEST + 1));
    }
}
