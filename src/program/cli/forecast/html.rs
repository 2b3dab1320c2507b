//! A forecast as a calendar page for a browser. This module decides the content and the page only draws it. Texts are
//! stored once and referenced by number, because ten thousand Shoots share few texts.

use std::collections::HashMap;

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

const PAGE: Page =
    Page { template: include_str!("page.html"), style: include_str!("page.css"), script: include_str!("page.js") };

/// Limits of the page: characters per text, Shoots, versions and errors.
const LONGEST: usize = 500;
const MOST_SHOOTS: usize = 20_000;
const MOST_VERSIONS: usize = 5_000;
const MOST_ERRORS: usize = 100;

pub(super) fn page(report: &Report) -> anyhow::Result<String> {
    PAGE.render("Maintenance forecast", &document(report))
}

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

fn document(report: &Report) -> Value {
    let mut texts = Texts::default();
    let calendar = Calendar { first: report.from.as_second().div_euclid(DAY) };
    let shoots = report.shoots.iter().take(MOST_SHOOTS).map(|of| shoot(of, report.is_strict, &calendar, &mut texts));
    let shoots: Vec<Value> = shoots.collect();
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
        "shoots": shoots, "versions": versions, "errors": errors, "texts": texts.texts,
    })
}

fn shoot(of: &ShootForecast, is_strict: bool, calendar: &Calendar, texts: &mut Texts) -> Value {
    let is_new = |step: &ForecastStep| of.before.as_ref().is_none_or(|before| !before.steps.contains(step));
    let [steps, stuck] = halves(&of.forecast, &is_new, calendar, texts);
    let before = of.before.as_ref().map(|before| halves(before, &|_| false, calendar, texts));
    let findings = of.forecast.findings.iter().filter(|_| is_strict);
    let findings: Vec<usize> = findings.map(|finding| texts.number(finding)).collect();
    let [name, profile, window] = [&of.shoot, &of.profile, &window(&of.forecast)].map(|text| texts.number(text));
    json!([name, profile, window, steps, stuck, before, findings])
}

/// The moves and the stuck versions.
fn halves(
    forecast: &Forecast,
    is_new: &dyn Fn(&ForecastStep) -> bool,
    calendar: &Calendar,
    texts: &mut Texts,
) -> [Vec<Value>; 2] {
    let zone = forecast.window.time_zone();
    let steps = forecast.steps.iter().map(|one| {
        let days = [one.time, one.latest].map(|time| calendar.day(time, &zone));
        step(one, days, is_new(one), texts)
    });
    let steps = steps.collect();
    let stuck = forecast.stuck.iter().map(|stuck| standstill(stuck, calendar.day(stuck.since, &zone), texts));
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

fn standstill(stuck: &Stuck, day: i64, texts: &mut Texts) -> Value {
    let what = match (&stuck.pool, &stuck.image) {
        _ if stuck.version.is_empty() => String::new(),
        (None, _) => format!("control plane at Kubernetes {}", stuck.version),
        (Some(pool), None) => format!("pool {pool} at Kubernetes {}", stuck.version),
        (Some(pool), Some(image)) => format!("pool {pool} at {image} {}", stuck.version),
    };
    json!([day, texts.number(&what), texts.number(&stuck.why), texts.number(&stuck.remedy)])
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
