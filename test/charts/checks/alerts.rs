//! Checks alert rules and the dashboard with promtool. Each incident of incidents.yaml fires exactly its alerts, and
//! every queried metric exists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use gardener_extension_worker::api::gotext::yaml::documents;
use serde_json::{Map, Value, json};

use crate::chart::{Chart, merge, render};
use crate::programs::{output, promtool};

const PREFIX: &str = "gardener_extension_worker_";
const METRICS: &str = include_str!("../../../docs/metrics.md");
const RUNBOOKS: &str = include_str!("../../../docs/runbooks.md");
const RUNBOOK_URL: &str = "https://docs.example.org/runbooks";

/// The alert rules as the charts render them.
async fn rules() -> Result<Value> {
    let mut groups = Vec::new();
    for chart in [Chart::Worker, Chart::AdmissionRuntime] {
        let rendered = render(chart, &chart.everything(), "extension").await?;
        for rule in rendered.objects.iter().filter(|object| object["kind"] == "PrometheusRule") {
            groups.extend(rule["spec"]["groups"].as_array().into_iter().flatten().cloned());
        }
    }
    Ok(json!({ "groups": groups }))
}

fn alerts(rules: &Value) -> Result<Vec<&Value>> {
    let groups = rules["groups"].as_array().context("there are groups")?;
    Ok(groups.iter().flat_map(|group| group["rules"].as_array().into_iter().flatten()).collect())
}

/// The length of the series in incidents.yaml.
const RECORDED_MINUTES: usize = 180;

#[tokio::test]
async fn each_incident_fires_its_alert_and_no_other() -> Result<()> {
    let rules = rules().await?;
    let file = documents(include_str!("../incidents.yaml"))?.pop().context("there are incidents")?;
    let healthy = file["healthy"].as_object().context("a healthy seed")?;
    let mut tests = Vec::new();
    for at in ["15m", "75m", "100m", "150m"] {
        for series in [healthy.clone(), scraped_twice(healthy)] {
            tests.push(test("a healthy seed", &series, at, None));
        }
    }
    // Both shards are active. That must not fire the alert about several leaders.
    let mut shards = healthy.clone();
    for metric in ["leader", "shard"] {
        shards.extend(["a", "b"].map(|pod| (format!("{PREFIX}{metric}{{pod={pod:?}}}"), json!("1x180"))));
    }
    tests.push(test("a seed that two shards share", &shards, "75m", None));
    let mut fired = BTreeSet::new();
    for incident in file["incidents"].as_array().context("there are incidents")? {
        let text = |member: &str| incident[member].as_str().with_context(|| format!("an incident says {member}"));
        let mut series = healthy.clone();
        for (name, values) in incident["series"].as_object().context("an incident has series")? {
            match values {
                Value::Null => drop(series.remove(name)),
                values => drop(series.insert(name.clone(), values.clone())),
            }
        }
        let after = text("after")?;
        let series = continued(&series, after)?;
        for series in [series.clone(), scraped_twice(&series)] {
            tests.push(test(text("what")?, &series, after, Some(text("fires")?)));
        }
        fired.extend(text("fires")?.split(", "));
        for name in series.keys() {
            known(name)?;
        }
    }
    let names = alerts(&rules)?.into_iter().filter_map(|alert| alert["alert"].as_str()).collect::<BTreeSet<_>>();
    ensure!(names == fired, "alerts {names:?}, incidents of {fired:?}");

    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("rules.yaml"), rules.to_string())?;
    let document = json!({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests});
    std::fs::write(folder.path().join("tests.yaml"), document.to_string())?;
    check(folder.path(), &["check", "rules", "--lint-fatal", "rules.yaml"]).await?;
    check(folder.path(), &["test", "rules", "tests.yaml"]).await
}

/// Extends each series with the trend of its last minutes, until at least this time.
fn continued(series: &Map<String, Value>, until: &str) -> Result<Map<String, Value>> {
    let minutes: usize = until.strip_suffix('m').context("a time in minutes")?.parse()?;
    let more = minutes.saturating_sub(RECORDED_MINUTES);
    let longer = |values: &str| -> Result<String> {
        let (steps, count) = values.rsplit_once('x').context("samples in promtool's notation")?;
        Ok(format!("{steps}x{}", count.parse::<usize>()? + more))
    };
    let series = series.iter().map(|(name, values)| {
        let values = values.as_str().context("a series has samples")?;
        Ok((name.clone(), json!(if more == 0 { values.to_owned() } else { longer(values)? })))
    });
    series.collect()
}

/// The series as recorded if both Gardener's PodMonitor and the chart's ServiceMonitor scrape the pods. Both replace
/// the program's own label `namespace` with that of the target.
fn scraped_twice(series: &Map<String, Value>) -> Map<String, Value> {
    let of_job = |job: &'static str| {
        series.iter().map(move |(name, values)| {
            let name = name.replace("namespace=", "exported_namespace=");
            (name.replacen('{', &format!("{{job=\"{job}\",namespace=\"extension-worker\","), 1), values.clone())
        })
    };
    of_job("extensions").chain(of_job("gardener-extension-worker")).collect()
}

/// A test that exactly these alerts fire.
fn test(what: &str, series: &Map<String, Value>, at: &str, fires: Option<&str>) -> Value {
    let series: Vec<Value> =
        series.iter().map(|(series, values)| json!({"series": series, "values": values})).collect();
    let alerts = fires.iter().flat_map(|fires| fires.split(", "));
    let samples: Vec<Value> =
        alerts.map(|alert| json!({"labels": format!("{{alertname={alert:?}}}"), "value": 1})).collect();
    json!({
        "name": what, "interval": "1m", "input_series": series,
        "promql_expr_test": [{
            "expr": "group by (alertname) (ALERTS{alertstate=\"firing\"})", "eval_time": at, "exp_samples": samples,
        }],
    })
}

async fn check(folder: &Path, arguments: &[&str]) -> Result<()> {
    let (succeeded, text) = output(Command::new(promtool().await?).args(arguments).current_dir(folder))?;
    ensure!(succeeded, "promtool {arguments:?}: {text}");
    Ok(())
}

/// Relative links don't work in alerts, so alerts have no link until the documentation is published.
#[tokio::test]
async fn alerts_have_no_dead_link() -> Result<()> {
    for chart in [Chart::Worker, Chart::AdmissionRuntime] {
        let mut values = chart.needed();
        merge(&mut values, &json!({"metrics": {"prometheusRule": {"enabled": true}}}));
        let rendered = render(chart, &values, "extension").await?;
        let rule = rendered.one("PrometheusRule", "")?;
        ensure!(rule["spec"]["groups"][0]["rules"][0]["annotations"]["summary"].is_string(), "{rule}");
        ensure!(!rendered.text.contains("runbook_url") && !rendered.text.contains("RUNBOOKS"), "{}", rendered.text);
    }
    Ok(())
}

#[tokio::test]
async fn every_alert_is_explained() -> Result<()> {
    let rules = rules().await?;
    for alert in alerts(&rules)? {
        let name = alert["alert"].as_str().context("an alert has a name")?;
        ensure!(METRICS.contains(&format!("| `{name}` |")), "docs/metrics.md does not list {name}");
        let section = RUNBOOKS.split("\n## ").find(|section| section.lines().next() == Some(name));
        let section = section.with_context(|| format!("docs/runbooks.md does not say what to do about {name}"))?;
        for part in ["**Means**", "**Do**"] {
            ensure!(section.contains(part), "docs/runbooks.md: {name} has no {part}");
        }
        let page = format!("{RUNBOOK_URL}#{}", name.to_lowercase());
        ensure!(alert["annotations"]["runbook_url"] == page.as_str(), "{name}: {}", alert["annotations"]);
        for label in ["severity", "type", "visibility"] {
            ensure!(alert["labels"][label].is_string(), "{name} has no label {label}");
        }
        queries(alert["expr"].as_str().unwrap_or_default())?;
    }
    Ok(())
}

#[tokio::test]
async fn the_dashboard_queries_metrics_that_exist() -> Result<()> {
    let rendered = render(Chart::Worker, &Chart::Worker.everything(), "extension").await?;
    let text = rendered.one("ConfigMap", "-dashboard")?["data"]["gardener-extension-worker.json"].clone();
    let dashboard: Value = serde_json::from_str(text.as_str().context("a text")?)?;
    let mut rules = Vec::new();
    for panel in dashboard["panels"].as_array().context("there are panels")? {
        ensure!(panel["title"].is_string() && panel["gridPos"].is_object(), "{panel}");
        for target in panel["targets"].as_array().with_context(|| format!("{} asks nothing", panel["title"]))? {
            let query = target["expr"].as_str().context("a query")?;
            queries(query).with_context(|| format!("{}", panel["title"]))?;
            rules.push(json!({"record": format!("panel:{}", rules.len()), "expr": query}));
        }
    }
    ensure!(rules.len() > 10, "{} queries", rules.len());
    // Users can select a single shoot.
    let variables = dashboard["templating"]["list"].as_array().context("there are variables")?;
    let variable =
        variables.iter().find(|variable| variable["name"] == "namespace").context("no variable namespace")?;
    let query = variable["query"].as_str().and_then(|query| query.strip_prefix("query_result(")?.strip_suffix(')'));
    rules.push(json!({"record": "variable:namespace", "expr": query.context("a query")?}));
    for metric in ["pools", "failing_since_timestamp"] {
        let selected = format!("{PREFIX}{metric}{{namespace=~\\\"$namespace\\\"}}");
        ensure!(rules.iter().any(|rule| rule.to_string().contains(&selected)), "no panel has {selected}");
    }
    // The panels also cover the metrics of dry runs.
    for name in documented().keys().filter(|name| name.starts_with("shadow_")) {
        ensure!(rules.iter().any(|rule| rule.to_string().contains(&format!("{PREFIX}{name})"))), "no panel has {name}");
    }
    // promtool can't check single queries, so they are written as rules.
    let folder = tempfile::tempdir()?;
    let document = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    std::fs::write(folder.path().join("rules.yaml"), document.to_string())?;
    check(folder.path(), &["check", "rules", "rules.yaml"]).await
}

/// Labels of the controller's documented metrics, by name.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    in_section(METRICS.split("\n## ").next().unwrap_or_default())
}

/// Labels of the documented metrics of all programs, by name.
fn documented_of_all() -> BTreeMap<String, BTreeSet<String>> {
    let of_webhooks = METRICS.split("\n## ").find(|section| section.starts_with("Webhooks\n")).unwrap_or_default();
    let of_webhooks = in_section(of_webhooks);
    let named = ["admission", "sidecar"].into_iter().flat_map(|command| {
        of_webhooks.iter().map(move |(name, labels)| (format!("{command}_{name}"), labels.clone()))
    });
    documented().into_iter().chain(named).collect()
}

fn in_section(section: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut metrics = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let ticked = |text: &str| -> Vec<String> { text.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
        if let [_, name, _, labels, ..] = cells.as_slice() {
            metrics.extend(ticked(name).pop().map(|name| (name, ticked(labels).into_iter().collect())));
        }
    }
    metrics
}

/// Fails unless the served metrics and their labels match docs/metrics.md: all metrics for which `is_meant` returns
/// true are served, and no others.
pub(super) fn ensure_documented(served: &str, is_meant: impl Fn(&str) -> bool) -> Result<()> {
    let documented = documented();
    let mut types = BTreeSet::new();
    for line in served.lines() {
        if let Some(family) = line.strip_prefix(&format!("# TYPE {PREFIX}")) {
            let (name, kind) = family.split_once(' ').context("a type")?;
            types.insert(match kind {
                "counter" => format!("{name}_total"),
                "info" => format!("{name}_info"),
                _ => name.to_owned(),
            });
        } else if let Some((name, rest)) = line.strip_prefix(PREFIX).and_then(|sample| sample.split_once(['{', ' '])) {
            let of_histogram = ["_bucket", "_sum", "_count"].into_iter().find_map(|end| name.strip_suffix(end));
            let labels = rest.split_once("} ").map_or("", |(labels, _)| labels);
            let labels: BTreeSet<String> = labels
                .split("\",")
                .filter_map(|label| Some(label.split_once('=')?.0.to_owned()))
                .filter(|label| label != "le")
                .collect();
            let known = of_histogram.and_then(|name| documented.get(name)).or_else(|| documented.get(name));
            ensure!(known == Some(&labels), "{name} has {labels:?}, documented are {known:?}");
        }
    }
    let missing: Vec<_> = documented.keys().filter(|name| is_meant(name) && !types.contains(*name)).collect();
    ensure!(missing.is_empty(), "{missing:?} are documented, but not served");
    let unknown: Vec<_> = types.iter().filter(|name| !documented.contains_key(*name)).collect();
    ensure!(unknown.is_empty(), "{unknown:?} are served, but not documented");
    Ok(())
}

/// Fails unless the metrics and labels of a query are documented.
fn queries(query: &str) -> Result<()> {
    for part in query.split(PREFIX).skip(1) {
        let end =
            part.find(|character: char| !character.is_ascii_lowercase() && character != '_').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let selector = rest.strip_prefix('{').and_then(|rest| rest.split('}').next()).unwrap_or_default();
        known(&format!("{PREFIX}{name}{{{selector}}}"))?;
    }
    // Labels in the grouping of a query.
    for part in query.split("by (").skip(1) {
        let labels = part.split(')').next().unwrap_or_default().split(',').map(str::trim);
        for label in labels {
            let is_of_prometheus = ["le", "pod", "exported_namespace"].contains(&label);
            let is_known = is_of_prometheus || documented_of_all().values().any(|labels| labels.contains(label));
            ensure!(is_known, "no metric has a label {label}");
        }
    }
    Ok(())
}

/// Fails unless a series or selector is one of the documented metrics.
fn known(series: &str) -> Result<()> {
    let (name, labels) = series.trim_end_matches('}').split_once('{').unwrap_or((series, ""));
    let name = name.trim_start_matches(PREFIX);
    let of_histogram = ["_bucket", "_sum", "_count"].into_iter().find_map(|end| name.strip_suffix(end));
    let documented = documented_of_all();
    let known = of_histogram.and_then(|name| documented.get(name)).or_else(|| documented.get(name));
    let known = known.with_context(|| format!("docs/metrics.md has no {name}"))?;
    for label in labels.split(',').filter_map(|label| label.split(['=', '!']).next()).map(str::trim) {
        // Prometheus adds the labels of targets and histograms.
        let is_of_prometheus = ["", "pod", "le", "exported_namespace"].contains(&label);
        let is_moved = label == "exported_namespace" && !known.contains("namespace");
        ensure!(is_of_prometheus && !is_moved || known.contains(label), "{name} has no {label}");
    }
    Ok(())
}
