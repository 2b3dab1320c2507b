//! The events of a life, stored in raw form and rendered only on request.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::api_server::store::Change;

/// Maximum bytes of one line.
const WIDTH: usize = 240;

/// An event.
struct Line {
    at: Duration,
    who: &'static str,
    what: What,
}

enum What {
    Request { method: String, path: String, fate: String },
    Note(String),
    Wrote(u64),
}

/// The trace. Clones share it.
#[derive(Clone)]
pub(crate) struct Trace {
    lines: Arc<Mutex<Vec<Line>>>,
    began: Instant,
}

impl Trace {
    pub(crate) fn begin() -> Self {
        Self { lines: Arc::default(), began: Instant::now() }
    }

    fn add(&self, who: &'static str, what: What) {
        let line = Line { at: self.began.elapsed(), who, what };
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    pub(crate) fn request(&self, who: &'static str, method: &str, path: &str, fate: String) {
        self.add(who, What::Request { method: method.to_owned(), path: path.to_owned(), fate });
    }

    pub(crate) fn note(&self, who: &'static str, what: impl Into<String>) {
        self.add(who, What::Note(what.into()));
    }

    pub(crate) fn wrote(&self, who: &'static str, revision: u64) {
        self.add(who, What::Wrote(revision));
    }

    /// Number of requests.
    pub(crate) fn requests(&self) -> usize {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| matches!(line.what, What::Request { .. })).count()
    }

    /// Whether a client sent requests within this time after a write, received all responses, and its process was not
    /// disturbed.
    pub(crate) fn is_completed(&self, who: &str, revision: u64, within: Duration) -> bool {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let after = lines.iter().skip_while(|line| !matches!(line.what, What::Wrote(wrote) if wrote == revision));
        let end = after.clone().next().map(|line| line.at + within);
        let own = after.filter(|line| line.who == who).take_while(|line| end.is_some_and(|end| line.at <= end));
        let responses = own.filter_map(|line| match &line.what {
            What::Request { fate, .. } => Some(fate.parse::<u16>().is_ok() || fate.ends_with("(the first of two)")),
            What::Note(_) => Some(false),
            What::Wrote(_) => None,
        });
        let responses: Vec<bool> = responses.collect();
        !responses.is_empty() && responses.iter().all(|is_completed| *is_completed)
    }

    /// Renders the trace, with the changes of each write.
    pub(crate) fn text(&self, log: &[Change]) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for Line { at, who, what } in lines.iter() {
            let message = match what {
                What::Request { method, path, fate } => format!("{method} {path} → {fate}"),
                What::Note(note) => format!("— {note}"),
                What::Wrote(revision) => {
                    let change = log.iter().find(|change| change.revision == *revision);
                    change.map_or_else(String::new, described)
                }
            };
            let message = shortened(&message);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{:>9.3} {who:<12} {message}", at.as_secs_f64());
        }
        text
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The changes of a write.
pub(crate) fn described(change: &Change) -> String {
    let head = format!("  #{} {} {}", change.revision, change.kind.kind, change.name);
    match (&change.before, change.is_deleted) {
        (_, true) => format!("{head} is gone"),
        (None, _) => format!("{head} is made: {}", change.after.value["spec"]),
        (Some(before), _) => {
            let mut differences = Vec::new();
            compare("", &before.value, &change.after.value, &mut differences);
            format!("{head}: {}", differences.join(", "))
        }
    }
}

fn compare(path: &str, before: &Value, after: &Value, into: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names.into_iter().filter(|name| *name != "resourceVersion" && *name != "managedFields") {
                compare(&format!("{path}.{name}"), &before[name.as_str()], &after[name.as_str()], into);
            }
        }
        _ if before == after => {}
        _ => into.push(format!("{}={after}", path.trim_start_matches('.'))),
    }
}
