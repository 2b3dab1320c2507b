//! A forecast for a terminal.

use anstyle::Style;

use super::summary::{Summary, range};
use super::{Report, ShootForecast, groups};
use crate::cli::table::{Cell, Table, paragraph, printable};
use crate::cli::terminal::{ASIDE, BAD, CAREFUL, GOOD, HEADING};
use profiles::versions::forecast::{Forecast, ForecastStep, Move, PoolNodes, Stuck};

/// Label of nodes that do not change.
const UNTOUCHED: &str = "untouched";

pub(super) fn text(report: &Report, all: bool, width: usize) -> String {
    let mut text = String::new();
    if report.shoots.len() > groups::MOST_SHOOTS && !all {
        text.push_str(&groups::text(report, width));
        text.push('\n');
    } else {
        for shoot in &report.shoots {
            text.push_str(&shoot_text(shoot, report.is_strict, width));
            text.push('\n');
        }
    }
    let summary = Summary::of(report);
    let headline = report.evidence.headline(&summary.line(report.is_comparison));
    text.push_str(&paragraph(&headline, HEADING, 0, width));
    summary.moves().iter().for_each(|line| text.push_str(&paragraph(line, Style::new(), 2, width)));
    summary.newer_than_measured().iter().for_each(|line| text.push_str(&paragraph(line, CAREFUL, 2, width)));
    text
}

fn shoot_text(of: &ShootForecast, is_strict: bool, width: usize) -> String {
    let forecast = &of.forecast;
    let title = format!("{HEADING}{}{HEADING:#}", printable(&of.shoot));
    let mut text = format!("{title}  {ASIDE}{}, {}{ASIDE:#}\n", printable(&of.profile), window(forecast));
    if let Some(before) = &of.before {
        text.push_str(&paragraph("before the change:", ASIDE, 2, width));
        text.push_str(&forecast_text(before, 4, width));
        text.push_str(&paragraph("with the change:", ASIDE, 2, width));
        text.push_str(&forecast_text(forecast, 4, width));
    } else {
        text.push_str(&forecast_text(forecast, 2, width));
    }
    let findings = if is_strict { forecast.findings.as_slice() } else { &[] };
    for finding in findings {
        text.push_str(&paragraph(finding, CAREFUL, 2, width));
    }
    text
}

/// The maintenance window in the Shoot's time zone.
pub(super) fn window(forecast: &Forecast) -> String {
    let [begin, _] = forecast.window.times();
    let first = begin
        .on(1970, 1, 1)
        .to_zoned(jiff::tz::TimeZone::UTC)
        .map(|utc| utc.with_time_zone(forecast.window.time_zone()));
    first.map_or_else(
        |_| String::new(),
        |begin| {
            let end = begin.timestamp() + forecast.window.length();
            let end = end.to_zoned(forecast.window.time_zone());
            let presumed = if forecast.is_window_presumed {
                " (presumed: the Shoot names no window, and Gardener chooses one at random)"
            } else {
                ""
            };
            format!("window {} to {}{presumed}", begin.strftime("%H:%M"), end.strftime("%H:%M %:z"))
        },
    )
}

fn forecast_text(forecast: &Forecast, indent: usize, width: usize) -> String {
    let mut text = String::new();
    if forecast.steps.is_empty() && forecast.stuck.is_empty() {
        return paragraph("nothing changes", GOOD, indent, width);
    }
    let mut table = Table::new(["DAY", "WHAT", "FROM", "TO", "WHY", "NODES"]);
    for step in &forecast.steps {
        rows(step, forecast, &mut table);
    }
    if !forecast.steps.is_empty() {
        text.push_str(&table.render(indent, width));
    }
    for stuck in &forecast.stuck {
        text.push_str(&paragraph(&stuck_text(stuck, forecast), BAD, indent, width));
        text.push_str(&paragraph(&stuck.remedy, Style::new(), indent + 2, width));
    }
    text
}

fn rows(step: &ForecastStep, forecast: &Forecast, table: &mut Table) {
    let day = day(step, forecast);
    for (index, moved) in step.moves.iter().enumerate() {
        let nodes = nodes_text(step, index);
        let nodes = if nodes == UNTOUCHED { Cell::styled(nodes, ASIDE) } else { nodes.into() };
        let why = Cell::styled(moved.cause.text(), if moved.is_forced() { CAREFUL } else { Style::new() });
        table.row([
            day.clone().into(),
            what(moved).into(),
            moved.from.as_str().into(),
            moved.to.as_str().into(),
            why,
            nodes,
        ]);
    }
    for operation in &step.operations {
        table.row([day.clone().into(), operation.as_str().into(), "".into(), "".into(), "".into(), "".into()]);
    }
}

/// The day of a maintenance window in the Shoot's time zone.
pub(super) fn day(step: &ForecastStep, forecast: &Forecast) -> String {
    let date = |time: jiff::Timestamp| time.to_zoned(forecast.window.time_zone()).date();
    let day = date(step.time);
    let latest = date(step.latest);
    if day == latest { day.to_string() } else { format!("{day} or {latest}") }
}

pub(super) fn what(moved: &Move) -> String {
    match (&moved.pool, &moved.image) {
        (None, _) => "control plane".to_owned(),
        (Some(pool), None) => format!("{pool}: Kubernetes"),
        (Some(pool), Some(image)) => format!("{pool}: {image}"),
    }
}

/// The effect of a move on nodes.
pub(super) fn nodes_text(step: &ForecastStep, moved: usize) -> String {
    let is_of_all = step.moves.get(moved).is_none_or(|moved| moved.pool.is_none());
    let texts: Vec<String> =
        step.nodes_of(moved).map(|(pool, is_reported)| pool_text(pool, is_of_all, is_reported)).collect();
    if texts.is_empty() { UNTOUCHED.to_owned() } else { texts.join("; ") }
}

fn pool_text(pool: &PoolNodes, with_name: bool, is_reported: bool) -> String {
    let name = if with_name { format!("{}: ", pool.pool) } else { String::new() };
    let count = range(pool.count.map(u64::from));
    match (is_reported, pool.in_place) {
        (true, _) => format!("{name}the same nodes"),
        (_, true) => format!("{name}{count} updated in place"),
        _ => format!("{name}{count} replaced, surge {}, unavailable {}", pool.surge, pool.unavailable),
    }
}

pub(super) fn stuck_text(stuck: &Stuck, forecast: &Forecast) -> String {
    let [since, from] = [stuck.since, forecast.from].map(|time| time.to_zoned(forecast.window.time_zone()).date());
    let stuck_since = if since > from { format!("stuck from {since} on") } else { format!("stuck since {since}") };
    let version = &stuck.version;
    match (&stuck.pool, &stuck.image) {
        (None, _) if version.is_empty() => format!("{stuck_since}: {}", stuck.why),
        (None, _) => format!("{stuck_since}: control plane at Kubernetes {version}: {}", stuck.why),
        (Some(pool), None) => format!("{stuck_since}: pool {pool} at Kubernetes {version}: {}", stuck.why),
        (Some(pool), Some(image)) => format!("{stuck_since}: pool {pool} at {image} {version}: {}", stuck.why),
    }
}
