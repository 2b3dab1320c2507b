//! A forecast as a pull request comment: the total first, then the Shoots.

use super::summary::Summary;
use super::table::{day, nodes_text, stuck_text, what, window};
use super::{Report, ShootForecast};
use crate::cli::preview::markdown::escaped;

/// Comments have a length limit, so a whole landscape does not fit.
const MOST_SHOOTS: usize = 50;

pub(super) fn text(report: &Report) -> String {
    let summary = Summary::of(report);
    let mut text = format!(
        "### Maintenance forecast\n\n**{}**\n\n",
        report.evidence.headline(&summary.line(report.is_comparison))
    );
    summary.moves().iter().for_each(|line| text.push_str(&format!("- {}\n", escaped(line))));
    let too_new = summary.newer_than_measured();
    too_new.iter().for_each(|line| text.push_str(&format!("- :warning: {}\n", escaped(line))));
    text.push('\n');
    for error in report.evidence.problems() {
        text.push_str(&format!("- :x: {}\n", escaped(error)));
    }
    let worth = |shoot: &&ShootForecast| {
        !shoot.forecast.steps.is_empty() || !shoot.forecast.stuck.is_empty() || shoot.before.is_some()
    };
    let displayed: Vec<_> = report.shoots.iter().filter(worth).collect();
    for shoot in displayed.iter().take(MOST_SHOOTS) {
        text.push_str(&shoot_text(shoot, report.is_strict));
    }
    if let Some(more) = displayed.len().checked_sub(MOST_SHOOTS).filter(|more| *more > 0) {
        text.push_str(&format!("… and {more} more; `-o json` lists all.\n"));
    }
    text
}

fn shoot_text(of: &ShootForecast, is_strict: bool) -> String {
    let forecast = &of.forecast;
    let mut text = format!("#### {}\n\n{}, {}\n\n", escaped(&of.shoot), escaped(&of.profile), window(forecast));
    if !forecast.steps.is_empty() {
        text.push_str("| Day | What | From | To | Why | Nodes |\n|---|---|---|---|---|---|\n");
    }
    for step in &forecast.steps {
        for (index, moved) in step.moves.iter().enumerate() {
            let nodes = nodes_text(step, index);
            let cells =
                [&day(step, forecast), &what(moved), &moved.from, &moved.to, moved.cause.text(), &nodes].map(escaped);
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    if !forecast.steps.is_empty() {
        text.push('\n');
    }
    for stuck in &forecast.stuck {
        text.push_str(&format!("- :x: {}. {}.\n", escaped(&stuck_text(stuck, forecast)), escaped(&stuck.remedy)));
    }
    let findings = if is_strict { forecast.findings.as_slice() } else { &[] };
    for finding in findings {
        text.push_str(&format!("- :warning: {}\n", escaped(finding)));
    }
    text.push('\n');
    text
}
