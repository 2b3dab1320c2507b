//! A diagnosis on one page: the Worker's state, its pools, and what prevents it from being ready, with the next step.

use anstyle::Style;
use jiff::Timestamp;

use crate::cli::documentation::linked;
use crate::cli::table::{Cell, Table, paragraph, printable};
use crate::cli::terminal::{ASIDE, BAD, CAREFUL, GOOD, HEADING};
use explanations::diagnose::{Diagnosis, Finding, ObjectKind, PoolState, Severity};
use wire::api::bounded_text::{Bound, named, shortened};

const INDENT: usize = 2;
/// Maximum number of machines listed per finding; JSON lists all.
const NAMED: Bound = Bound { items: 3, bytes: 512 };
/// Maximum bytes of a driver's error or a status text; JSON prints more.
const LONGEST_TEXT: usize = 800;

pub(super) fn text(diagnosis: &Diagnosis, now: Timestamp, width: usize) -> String {
    let (verdict, style) = if diagnosis.ready { ("ready", GOOD) } else { ("not ready", BAD) };
    let worker = printable(&diagnosis.worker);
    let provider = printable(&diagnosis.provider);
    let mut text = format!("{HEADING}Worker {worker}{HEADING:#} ({provider}): {style}{verdict}{style:#}\n");
    text.push_str(&operation(diagnosis, now, width));
    if !diagnosis.pools.is_empty() {
        text.push('\n');
        text.push_str(&pools(diagnosis).render(INDENT, width));
    }
    for (number, finding) in diagnosis.findings.iter().enumerate() {
        text.push('\n');
        text.push_str(&finding_text(number + 1, finding, now, width));
    }
    if !diagnosis.unknown.is_empty() {
        let kinds: Vec<&str> = diagnosis.unknown.iter().copied().map(ObjectKind::as_str).collect();
        text.push('\n');
        text.push_str(&paragraph(&format!("Not known: {}.", kinds.join(", ")), ASIDE, 0, width));
    }
    text
}

fn operation(diagnosis: &Diagnosis, now: Timestamp, width: usize) -> String {
    let Some(last) = &diagnosis.last_operation else {
        return paragraph("No operation has begun.", ASIDE, INDENT, width);
    };
    let since = last.last_update_time.parse().ok().map(|since| since_text(since, now)).unwrap_or_default();
    let line = format!("{} {}, {} %{since}", last.operation_type, last.state, last.progress);
    let mut text = paragraph(&line, Style::new(), INDENT, width);
    let error = diagnosis.last_error.as_ref();
    let detail = error.map_or(&last.description, |error| &error.description);
    let codes = error.map(|error| codes_text(error.codes.iter().map(String::as_str))).unwrap_or_default();
    let reported = |finding: &Finding| finding.message == *detail;
    if !diagnosis.findings.iter().any(reported) {
        text.push_str(&paragraph(&format!("{}{codes}", shortened(detail, LONGEST_TEXT)), ASIDE, INDENT, width));
    }
    text
}

fn pools(diagnosis: &Diagnosis) -> Table {
    let mut table =
        Table::new(["POOL", "MACHINE DEPLOYMENT", ">DESIRED", ">PRESENT", ">UPDATED", ">AVAILABLE", "STATE"]);
    for row in &diagnosis.pools {
        let style = match row.state {
            PoolState::Ready => GOOD,
            PoolState::MachinesFailed | PoolState::Paused | PoolState::Frozen => BAD,
            _ => CAREFUL,
        };
        let [desired, present, updated, available] =
            [row.desired, row.present, row.updated, row.available].map(|count| Cell::from(count.to_string()));
        let deployment = row.deployment.as_deref().unwrap_or_default();
        let state = Cell::styled(row.state.words(), style);
        table.row([row.pool.as_str().into(), deployment.into(), desired, present, updated, available, state]);
    }
    table
}

fn finding_text(number: usize, finding: &Finding, now: Timestamp, width: usize) -> String {
    let style = match finding.severity {
        Severity::Error => BAD,
        Severity::Waiting => CAREFUL,
        Severity::Note => HEADING,
    };
    let since = finding.since.map(|since| since_text(since, now)).unwrap_or_default();
    let codes = codes_text(finding.codes.iter().map(|code| code.as_str()));
    let message = shortened(&finding.message, LONGEST_TEXT);
    let mut text = paragraph(&format!("{number}. {}: {message}{since}{codes}", finding.subject), style, 0, width);
    let mut more = |line: String, style| text.push_str(&paragraph(&line, style, INDENT + 1, width));
    if !finding.machines.is_empty() {
        more(named(&finding.machines, NAMED), ASIDE);
    }
    if let Some(words) = &finding.driver_text {
        let code = finding.driver_code.as_ref().map(|code| format!("{code}: ")).unwrap_or_default();
        more(format!("“{code}{}”", shortened(words.trim(), LONGEST_TEXT)), Style::new());
    }
    more(format!("→ {}", linked(&finding.next_step)), Style::new());
    text
}

fn codes_text<'a>(codes: impl Iterator<Item = &'a str>) -> String {
    let codes: Vec<&str> = codes.collect();
    if codes.is_empty() { String::new() } else { format!(" [{}]", codes.join(", ")) }
}

/// `, since 2026-11-21T10:00:00Z (2 h 5 min)`.
fn since_text(since: Timestamp, now: Timestamp) -> String {
    let minutes = now.duration_since(since).as_mins();
    let ago = match (minutes / (24 * 60), minutes / 60 % 24, minutes % 60) {
        _ if minutes < 0 => "in the future".to_owned(),
        (0, 0, 0) => "less than a minute".to_owned(),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    };
    format!(", since {since} ({ago})")
}
