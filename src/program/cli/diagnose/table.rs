//! A diagnosis on one page: the Worker's state, its pools, how far they roll, and what prevents it from being ready, with the
//! next step. Only problems are numbered.

use anstyle::Style;
use jiff::{SignedDuration, Timestamp};

use crate::cli::documentation::linked;
use crate::cli::durations::{ago, duration_text, estimate_text};
use crate::cli::program::typed_name;
use crate::cli::table::{Cell, Table, paragraph, printable};
use crate::cli::terminal::{ASIDE, BAD, CAREFUL, GOOD, HEADING};
use explanations::diagnose::{
    Activity, Diagnosis, Finding, ObjectKind, PROGRAM, PasteCommand, PoolProgress, PoolState, Severity,
};
use wire::api::bounded_text::{Bound, named, shortened};

const INDENT: usize = 2;
/// Maximum number of machines listed per finding; JSON lists all.
const NAMED: Bound = Bound { items: 3, bytes: 512 };
/// Maximum number of causes of a roll.
const CAUSES: Bound = Bound { items: 4, bytes: 512 };
/// Maximum bytes of a driver's error or a status text; JSON prints more.
const LONGEST_TEXT: usize = 800;

/// Which details a page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// A few machines per finding.
    Page,
    /// All machines, and everything that is waited for.
    Wide,
}

/// The state of a Worker in words.
pub(super) fn verdict(diagnosis: &Diagnosis) -> (&'static str, Style) {
    if diagnosis.ready {
        return ("ready", GOOD);
    }
    if diagnosis.has_problem() {
        return ("not ready", BAD);
    }
    let is_rolling = diagnosis.progress.iter().any(|progress| progress.activity == Activity::Rolling);
    (if is_rolling { "rolling" } else { "in progress" }, CAREFUL)
}

pub(super) fn text(diagnosis: &Diagnosis, now: Timestamp, width: usize, detail: Detail) -> String {
    let (verdict, style) = verdict(diagnosis);
    let worker = printable(&diagnosis.worker);
    let provider = printable(&diagnosis.provider);
    let mut text = format!("{HEADING}Worker {worker}{HEADING:#} ({provider}): {style}{verdict}{style:#}\n");
    text.push_str(&operation(diagnosis, now, width));
    if !diagnosis.pools.is_empty() {
        text.push('\n');
        text.push_str(&pools(diagnosis).render(INDENT, width));
    }
    text.push_str(&changes(diagnosis, now, width, detail));
    let problems = diagnosis.findings.iter().filter(|finding| finding.severity == Severity::Error);
    for (number, finding) in problems.enumerate() {
        text.push('\n');
        text.push_str(&finding_text(&format!("{}. ", number + 1), finding, now, width, detail));
    }
    for finding in diagnosis.findings.iter().filter(|finding| finding.severity == Severity::Note) {
        text.push('\n');
        text.push_str(&finding_text("", finding, now, width, detail));
    }
    if !diagnosis.unknown.is_empty() {
        let kinds: Vec<&str> = diagnosis.unknown.iter().copied().map(ObjectKind::as_str).collect();
        text.push('\n');
        text.push_str(&paragraph(
            &format!("Not read: {}. Findings that need them may be missing.", kinds.join(", ")),
            ASIDE,
            0,
            width,
        ));
    }
    text
}

/// One line for each pool that changes, and what else is waited for.
fn changes(diagnosis: &Diagnosis, now: Timestamp, width: usize, detail: Detail) -> String {
    let mut lines: Vec<String> = diagnosis.progress.iter().map(|progress| progress_text(progress, now)).collect();
    // The line of a pool replaces everything that is waited for in it.
    let is_covered = |finding: &Finding| {
        let pools = &diagnosis.progress;
        let is_of_operation = finding.subject == "the operation" && (!pools.is_empty() || diagnosis.has_problem());
        is_of_operation || pools.iter().any(|progress| finding.subject == format!("pool {}", progress.pool))
    };
    let waiting = diagnosis.findings.iter().filter(|finding| finding.severity == Severity::Waiting);
    for finding in waiting.filter(|finding| detail == Detail::Wide || !is_covered(finding)) {
        let since = finding.since.map(|since| format!(", for {}", duration_text(now.duration_since(since))));
        let since = since.unwrap_or_default();
        lines.push(format!("{}: {}{since}", finding.subject, shortened(&finding.message, LONGEST_TEXT)));
    }
    if lines.is_empty() {
        return String::new();
    }
    let lines: String = lines.iter().map(|line| paragraph(line, CAREFUL, INDENT, width)).collect();
    format!("\n{lines}")
}

/// `pool web: rolling because machineImage 1992.3.0 → 1992.6.0, 5 of 6 updated, began 12 min ago, about 3 min left`.
pub(in crate::cli) fn progress_text(progress: &PoolProgress, now: Timestamp) -> String {
    let pool = &progress.pool;
    let mut parts = match progress.activity {
        Activity::ScalingUp => vec![
            format!("pool {pool}: machines are created"),
            format!("{} of {} available", progress.available, progress.desired),
        ],
        Activity::ScalingDown => vec![format!("pool {pool}: machines are deleted, down to {}", progress.desired)],
        Activity::Rolling => vec![
            format!("pool {pool}: rolling because {}", causes_text(progress)),
            format!("{} of {} updated", progress.updated, progress.desired),
        ],
    };
    parts.extend(progress.last_machine.map(|last| format!("last new machine {}", ago(last, now))));
    if progress.activity == Activity::Rolling {
        parts.push(match progress.since {
            Some(since) => format!("began {}", ago(since, now)),
            None => "its beginning is not recorded".to_owned(),
        });
        parts.push(match progress.seconds_left {
            _ if progress.updated >= progress.desired => "the last old machines are being deleted".to_owned(),
            Some(seconds) => format!("{} left", estimate_text(SignedDuration::from_secs(seconds))),
            None => "the time left is not known yet".to_owned(),
        });
    }
    parts.join(", ")
}

fn causes_text(progress: &PoolProgress) -> String {
    if progress.causes.is_empty() {
        return "of a change that is not recorded".to_owned();
    }
    let causes: Vec<String> = progress.causes.iter().map(ToString::to_string).collect();
    format!("of {}", named(&causes, CAUSES))
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
    let is_repeated = |finding: &Finding| finding.message == *detail;
    if !diagnosis.findings.iter().any(is_repeated) {
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

fn finding_text(number: &str, finding: &Finding, now: Timestamp, width: usize, detail: Detail) -> String {
    let style = match finding.severity {
        Severity::Error => BAD,
        Severity::Waiting => CAREFUL,
        Severity::Note => HEADING,
    };
    let since = finding.since.map(|since| since_text(since, now)).unwrap_or_default();
    let codes = codes_text(finding.codes.iter().map(|code| code.as_str()));
    let message = shortened(&finding.message, LONGEST_TEXT);
    let mut text = paragraph(&format!("{number}{}: {message}{since}{codes}", finding.subject), style, 0, width);
    let mut more = |line: String, style| text.push_str(&paragraph(&line, style, INDENT + 1, width));
    if !finding.machines.is_empty() {
        let bound = if detail == Detail::Wide { Bound::bytes(usize::MAX) } else { NAMED };
        more(named(&finding.machines, bound), ASIDE);
    }
    if let Some(words) = &finding.driver_text {
        let code = finding.driver_code.as_ref().map(|code| format!("{code}: ")).unwrap_or_default();
        more(format!("“{code}{}”", shortened(words.trim(), LONGEST_TEXT)), Style::new());
    }
    more(format!("→ {}", linked(&finding.next_step)), Style::new());
    if let Some(command) = &finding.command {
        more(format!("Run {}:", command.cluster.words()), ASIDE);
        text.push_str(&command_line(command));
    }
    text
}

/// The command in a line of its own, which is never wrapped, so that it can be copied.
pub(in crate::cli) fn command_line(command: &PasteCommand) -> String {
    let text = printable(&command.text);
    let text = match text.strip_prefix(PROGRAM) {
        Some(arguments) => format!("{}{arguments}", typed_name()),
        None => text,
    };
    format!("{:1$}{text}\n", "", INDENT + 3)
}

fn codes_text<'a>(codes: impl Iterator<Item = &'a str>) -> String {
    let codes: Vec<&str> = codes.collect();
    if codes.is_empty() { String::new() } else { format!(" [{}]", codes.join(", ")) }
}

/// `, since 2026-11-21T10:00:00Z (2 h 5 min)`.
fn since_text(since: Timestamp, now: Timestamp) -> String {
    let age = now.duration_since(since);
    let age = if age.is_negative() { "in the future".to_owned() } else { duration_text(age) };
    format!(", since {since} ({age})")
}
