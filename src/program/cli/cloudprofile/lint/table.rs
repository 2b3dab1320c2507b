//! Findings for a terminal: the most severe first, with location, reason and remedy.

use anstyle::Style;

use super::{Linted, documentation};
use crate::cli::evidence::Evidence;
use crate::cli::table::paragraph;
use crate::cli::terminal::{ASIDE, BAD, CAREFUL, GOOD, HEADING};
use profiles::resolved_profile::lint::{Finding, Severity, Size};

const INDENT: usize = 2;
/// Maximum number of fields listed for one repeated finding.
const NAMED: usize = 3;
/// Maximum number of findings printed without `--all`.
const DISPLAYED: usize = 10;

pub(super) fn text(linted: &[Linted], evidence: &Evidence, all: bool, width: usize) -> String {
    let mut sections: Vec<String> = linted.iter().map(|linted| section(linted, all, width)).collect();
    if let Some(shortfall) = evidence.shortfall() {
        sections.push(paragraph(&shortfall, BAD, 0, width));
    }
    sections.join("\n")
}

fn section(linted: &Linted, all: bool, width: usize) -> String {
    let report = &linted.report;
    let title = format!("{}: {} {}", linted.found.source, linted.found.kind, report.profile);
    let mut text = paragraph(&title, HEADING, 0, width);
    let findings = folded(&report.findings, all);
    let displayed = if all { findings.len() } else { DISPLAYED };
    for finding in findings.iter().take(displayed) {
        text.push('\n');
        text.push_str(&finding_text(linted, finding, width));
    }
    let rest: usize = findings.iter().skip(displayed).map(Vec::len).sum();
    if rest > 0 {
        text.push('\n');
        text.push_str(&paragraph(&format!("and {rest} more, none of them worse (--all lists them)"), ASIDE, 0, width));
    }
    text.push('\n');
    text.push_str(&summary(&report.findings, width));
    text.push_str(&size_text(&report.size, width));
    text
}

/// Groups findings that share rule and reason.
fn folded(findings: &[Finding], all: bool) -> Vec<Vec<&Finding>> {
    let mut folded: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings {
        let same = |known: &&mut Vec<&Finding>| {
            known.first().is_some_and(|first| first.rule == finding.rule && first.reason == finding.reason)
        };
        match folded.iter_mut().find(|known| !all && same(known)) {
            Some(known) => known.push(finding),
            None => folded.push(vec![finding]),
        }
    }
    folded
}

fn finding_text(linted: &Linted, same: &[&Finding], width: usize) -> String {
    let Some(first) = same.first() else { return String::new() };
    let style = style(first.severity);
    // Nameless subjects are identified by their path. A single finding prints its path on the next line anyway.
    let subject = |finding: &&Finding| match finding.subject.as_str() {
        "" if same.len() > 1 => finding.path.clone(),
        subject => subject.to_owned(),
    };
    let subjects: Vec<String> = same.iter().take(NAMED).map(subject).collect();
    let more = same.len() - subjects.len();
    let more = if more > 0 { format!(" and {more} more (--all lists them)") } else { String::new() };
    let subject = subjects.join(", ");
    let separator = if subject.is_empty() { "" } else { ": " };
    let title = format!("{} {}{separator}{subject}{more}", first.severity.word(), first.rule.id());
    let mut text = paragraph(&title, style, 0, width);
    let line = linted.line(&first.path).map(|line| format!(" (line {line})")).unwrap_or_default();
    text.push_str(&paragraph(&format!("{}{line}", first.path), ASIDE, INDENT, width));
    text.push_str(&paragraph(&first.reason, Style::new(), INDENT, width));
    text.push_str(&paragraph(&format!("→ {}", first.advice), Style::new(), INDENT, width));
    text.push_str(&paragraph(&documentation(first.rule), ASIDE, INDENT, width));
    text
}

fn style(severity: Severity) -> Style {
    match severity {
        Severity::Error => BAD,
        Severity::Warning => CAREFUL,
        Severity::Note => HEADING,
    }
}

fn summary(findings: &[Finding], width: usize) -> String {
    if findings.is_empty() {
        return paragraph("Nothing found.", GOOD, 0, width);
    }
    let counts = [Severity::Error, Severity::Warning, Severity::Note].into_iter().filter_map(|severity| {
        let number = findings.iter().filter(|finding| finding.severity == severity).count();
        let plural = if number == 1 { "" } else { "s" };
        (number > 0).then(|| format!("{number} {}{plural}", severity.word()))
    });
    paragraph(&format!("{}.", counts.collect::<Vec<_>>().join(", ")), HEADING, 0, width)
}

fn size_text(size: &Size, width: usize) -> String {
    let kib = |bytes: usize| format!("{} KiB", bytes.div_ceil(1024));
    let mut text = format!("{} of {} ({} %)", kib(size.bytes), kib(size.limit), size.percent);
    let images = size.images.iter().map(|image| format!("{} bytes for {}", image.bytes_per_version, image.image));
    let images: Vec<String> = images.collect();
    if let Some(room) = size.room_for_versions {
        text.push_str(&format!("; a version takes {}: room for about {room} more", images.join(", ")));
    }
    let prunable: Vec<String> =
        size.prunable.iter().map(|part| format!("{} ({} bytes)", part.what, part.bytes)).collect();
    if !prunable.is_empty() {
        text.push_str(&format!("; could go: {}", prunable.join(", ")));
    }
    paragraph(&format!("Size: {text}."), ASIDE, 0, width)
}
