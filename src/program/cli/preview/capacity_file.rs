//! `--capacity`: reads cloud limits from a file in the project's own format, or as printed by `az` and `aws`.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use explanations::preview::{Limit, LimitUnit, LimitedTypes};
use runtime::reader::files::text_of_file;
use wire::api::gotext::yaml;

/// Maximum size of a file and number of limits in it; clouds list some hundreds.
const MOST_BYTES: usize = 16 * 1024 * 1024;
const MOST_LIMITS: usize = 10_000;

/// A limit in the project's own format.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OwnLimit {
    name: String,
    region: Option<String>,
    machine_types: Option<Vec<String>>,
    unit: OwnUnit,
    limit: i64,
    used: Option<i64>,
}

#[derive(Clone, Copy, Deserialize)]
enum OwnUnit {
    #[serde(rename = "vCPUs")]
    Cpus,
    #[serde(rename = "machines")]
    Machines,
}

/// An entry of `az vm list-usage -o json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AzureUsage {
    current_value: Value,
    limit: Value,
    name: AzureName,
}

#[derive(Deserialize)]
struct AzureName {
    value: String,
}

/// An entry of `aws service-quotas list-service-quotas --service-code ec2`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AwsQuota {
    quota_name: String,
    value: f64,
}

/// Decodes an entry; `None` if it does not limit machines.
type ReadLimit = fn(&Value) -> anyhow::Result<Option<Limit>>;

pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Limit>> {
    let text = text_of_file(path)?;
    limits(&text).with_context(|| path.display().to_string())
}

fn limits(text: &str) -> anyhow::Result<Vec<Limit>> {
    ensure!(text.len() <= MOST_BYTES, "larger than {MOST_BYTES} bytes");
    let documents = yaml::documents(text)?;
    let [document] = documents.as_slice() else { bail!("one document is expected, not {}", documents.len()) };
    let (limits, of_format): (&Value, ReadLimit) = match (document, document.get("Quotas"), document.get("limits")) {
        (Value::Array(_), ..) => (document, of_azure),
        (_, Some(quotas), _) => (quotas, of_aws),
        (.., Some(limits)) => (limits, of_own),
        _ => bail!(
            "neither limits, nor what `az vm list-usage -o json` or `aws service-quotas list-service-quotas` print"
        ),
    };
    let limits = limits.as_array().context("limits are no list")?;
    ensure!(limits.len() <= MOST_LIMITS, "more than {MOST_LIMITS} limits");
    let read =
        limits.iter().enumerate().map(|(index, limit)| of_format(limit).with_context(|| format!("limit {index}")));
    let limits: Vec<Limit> = read.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect();
    ensure!(!limits.is_empty(), "no limit for machines in it");
    Ok(limits)
}

fn of_own(limit: &Value) -> anyhow::Result<Option<Limit>> {
    let OwnLimit { name, region, machine_types, unit, limit, used } = OwnLimit::deserialize(limit)?;
    let types = machine_types.map_or(LimitedTypes::All, LimitedTypes::Patterns);
    let unit = match unit {
        OwnUnit::Cpus => LimitUnit::Cpus,
        OwnUnit::Machines => LimitUnit::Machines,
    };
    Ok(Some(Limit { name, region, types, unit, total: limit, used }))
}

fn of_azure(usage: &Value) -> anyhow::Result<Option<Limit>> {
    let AzureUsage { current_value, limit, name: AzureName { value: name } } = AzureUsage::deserialize(usage)?;
    let (types, unit) = match name.as_str() {
        "cores" => (LimitedTypes::All, LimitUnit::Cpus),
        "virtualMachines" => (LimitedTypes::All, LimitUnit::Machines),
        // Families also cover machines that are not standard, such as low priority.
        family if family.to_lowercase().starts_with("standard") && family.ends_with("Family") => {
            (LimitedTypes::AzureFamily(family.to_owned()), LimitUnit::Cpus)
        }
        _ => return Ok(None),
    };
    let [total, used] = [(limit, "limit"), (current_value, "currentValue")].map(|(value, member)| {
        let text = value.as_str().and_then(|text| text.parse().ok());
        value.as_i64().or(text).with_context(|| format!("{member} is no number"))
    });
    Ok(Some(Limit { name, region: None, types, unit, total: total?, used: Some(used?) }))
}

/// Selects EC2 quotas for on-demand instances, such as `Running On-Demand Standard (A, C, M) instances`.
fn of_aws(quota: &Value) -> anyhow::Result<Option<Limit>> {
    let AwsQuota { quota_name, value } = AwsQuota::deserialize(quota)?;
    let about = quota_name.strip_prefix("Running On-Demand ").and_then(|rest| rest.strip_suffix(" instances"));
    let Some(about) = about else { return Ok(None) };
    let listed = about.split_once('(').map_or(about, |(_, listed)| listed.trim_end_matches(')'));
    let words = listed.split([',', ' ']).filter(|word| !word.is_empty() && *word != "and");
    let types = LimitedTypes::AwsClasses(words.map(str::to_lowercase).collect());
    ensure!(value.is_finite(), "Value is no number");
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is too large for a number of machines becomes the largest"
    )]
    let total = value as i64;
    Ok(Some(Limit { name: quota_name, region: None, types, unit: LimitUnit::Cpus, total, used: None }))
}
