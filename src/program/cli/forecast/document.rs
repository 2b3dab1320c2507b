//! A forecast as JSON.

use serde_json::{Value, json};

use super::summary::Summary;
use super::{Report, ShootForecast};
use crate::cli::terminal::print_json_with_items;
use profiles::versions::forecast::{Forecast, ForecastStep, Stuck};

pub(super) fn print_document(report: &Report) -> anyhow::Result<()> {
    let document = json!({
        "schema": "forecast/v1",
        "from": report.from,
        "until": report.until,
        "summary": Summary::of(report),
        "shoots": [],
        "evidence": report.evidence.document(),
        "errors": report.evidence.problems().collect::<Vec<_>>(),
    });
    print_json_with_items(&document, "shoots", &report.shoots, |forecast| Ok(shoot(forecast)))
}

fn shoot(of: &ShootForecast) -> Value {
    let mut shoot = json!({"shoot": of.shoot, "input": of.source, "cloudProfile": of.profile});
    add(&mut shoot, &of.forecast);
    let [begin, end] = of.forecast.window.times();
    let presumed = of.forecast.is_window_presumed.then_some(true);
    shoot["window"] = without_nulls(json!({"begin": begin, "end": end, "presumed": presumed}));
    shoot["findings"] = json!(of.forecast.findings);
    if !of.forecast.too_new.is_empty() {
        shoot["newerThanMeasured"] = json!(of.forecast.too_new);
    }
    if let Some(before) = &of.before {
        shoot["before"] = json!({});
        add(&mut shoot["before"], before);
    }
    shoot
}

fn add(to: &mut Value, forecast: &Forecast) {
    to["steps"] = forecast.steps.iter().map(step).collect();
    to["stuck"] = forecast.stuck.iter().map(stuck).collect();
}

fn step(step: &ForecastStep) -> Value {
    let moves = step.moves.iter().map(|moved| {
        without_nulls(json!({"pool": moved.pool, "image": moved.image, "from": moved.from, "to": moved.to, "forced": moved.is_forced()}))
    });
    let nodes = step.nodes.iter().map(|pool| {
        let [minimum, maximum] = pool.count;
        json!({"pool": pool.pool, "inPlace": pool.in_place, "minimum": minimum, "maximum": maximum,
            "maxSurge": pool.surge, "maxUnavailable": pool.unavailable})
    });
    let latest = (step.latest != step.time).then_some(step.latest);
    without_nulls(json!({
        "time": step.time, "latest": latest, "moves": moves.collect::<Vec<_>>(), "operations": step.operations,
        "nodes": nodes.collect::<Vec<_>>(),
    }))
}

fn stuck(stuck: &Stuck) -> Value {
    let version = Some(&stuck.version).filter(|version| !version.is_empty());
    without_nulls(json!({
        "pool": stuck.pool, "image": stuck.image, "version": version, "since": stuck.since, "why": stuck.why,
        "remedy": stuck.remedy,
    }))
}

fn without_nulls(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, member| !member.is_null());
    }
    value
}
