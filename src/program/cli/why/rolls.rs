//! Rolls of a shoot in one line each, and the roll of a node.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::cli::durations::{ago, duration_text};
use crate::cli::preview::words::counted;
use crate::cli::table::{paragraph, printable};
use crate::cli::terminal::{ASIDE, CAREFUL, HEADING};
use anstyle::Style;
use decisions::worker::machines::machine_objects::LiveDeployment;
use decisions::worker::plan::class_inputs::History;
use explanations::diagnose::{Roll, unrecorded};
use wire::api::bounded_text::{Bound, named};

/// Maximum number of causes and pools in a line.
const NAMED: Bound = Bound { items: 6, bytes: 500 };

/// One line for each roll, the latest first, and what is not recorded.
pub(super) fn text(rolls: &[Roll], deployments: &[LiveDeployment], since: Option<Timestamp>, width: usize) -> String {
    let mut text = String::new();
    let mut namespace = "";
    for roll in rolls {
        if roll.namespace != namespace {
            namespace = &roll.namespace;
            text.push_str(&format!("{HEADING}{}{HEADING:#}\n", printable(namespace)));
        }
        text.push_str(&paragraph(&line(roll), Style::new(), 2, width));
    }
    if rolls.is_empty() {
        let within = since.map(|since| since.strftime(" since %Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default();
        text.push_str(&paragraph(&format!("No roll is recorded{within}."), ASIDE, 0, width));
    }
    for (namespace, names) in unrecorded(deployments) {
        let names = named(&names, NAMED);
        text.push_str(&paragraph(&format!("{namespace}: nothing is recorded for {names}"), CAREFUL, 0, width));
    }
    text
}

/// `2026-11-20 22:14 UTC  maintenance (automatic): gardenlinux 1992.3.0 → 1992.6.0, pools db, web, 6 nodes, 41 min`.
fn line(roll: &Roll) -> String {
    let began = roll.began.strftime("%Y-%m-%d %H:%M UTC");
    let causes: Vec<String> = roll
        .causes
        .iter()
        .map(|cause| match &cause.image {
            // The name of the image says more than the name of the input.
            Some(image) => cause.to_string().replacen(&cause.input, image, 1),
            None => cause.to_string(),
        })
        .collect();
    let causes = match roll.unknown {
        Some(unknown) => unknown.to_owned(),
        None => named(&causes, NAMED),
    };
    let pools: Vec<&String> = roll.pools.iter().collect();
    let noun = if pools.len() == 1 { "pool" } else { "pools" };
    let mut parts =
        vec![format!("{began}  {}: {causes}", roll.trigger.words()), format!("{noun} {}", named(&pools, NAMED))];
    parts.push(match roll.nodes {
        Some(nodes) => counted(u64::from(nodes.unsigned_abs()), "node"),
        None => "number of nodes not recorded".to_owned(),
    });
    parts.push(match (roll.updated, roll.seconds) {
        (Some(updated), _) => format!("not finished: {updated} updated"),
        (None, Some(seconds)) => duration_text(SignedDuration::from_secs(seconds)),
        (None, None) => "duration not recorded".to_owned(),
    });
    parts.join(", ")
}

/// When a node was created, and with which class.
pub(super) fn node_text(machine: &Value, deployments: &[LiveDeployment], now: Timestamp, width: usize) -> String {
    let text = |value: &Value| printable(value.as_str().unwrap_or_default());
    let metadata = &machine["metadata"];
    let created = metadata["creationTimestamp"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let created =
        created.map_or("creation time not recorded".to_owned(), |time| format!("created {time}, {}", ago(time, now)));
    let class = text(&machine["spec"]["class"]["name"]);
    let node = metadata["labels"]["node"]
        .as_str()
        .map_or("no node yet".to_owned(), |node| format!("node {}", printable(node)));
    let deployment = metadata["labels"]["name"].as_str();
    let live = deployments.iter().find(|live| live.object.metadata.name.as_deref() == deployment);
    let history = live.and_then(|live| live.class_inputs().and_then(History::read));
    let generation =
        history.iter().flat_map(|history| &history.generations).find(|generation| generation.class == class);
    let since =
        generation.map_or("which is not recorded".to_owned(), |generation| format!("recorded {}", generation.since));
    paragraph(
        &format!("machine {} ({node}): {created}, with class {class}, {since}", text(&metadata["name"])),
        HEADING,
        0,
        width,
    )
}

/// Parses a duration such as `24h`, `90m` or `7d`.
pub(super) fn age(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("{text:?} is no duration; write one such as 24h, 90m or 7d");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let number: i64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let total = number.checked_mul(seconds).filter(|total| (0..=i64::from(u32::MAX)).contains(total));
    total.map(SignedDuration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_ages() {
        for (text, hours) in [
            ("24h", Some(24)),
            ("7d", Some(168)),
            ("120m", Some(2)),
            ("h", None),
            ("-1h", None),
            ("1w", None),
            ("99999999999d", None),
            ("", None),
        ] {
            assert_eq!(age(text).ok().map(|age| age.as_hours()), hours, "{text}");
        }
    }
}
