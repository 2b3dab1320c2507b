//! Progress of long work: a bar on a terminal, occasional lines in a log, nothing for short work.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use runtime::process::output::{is_watched, progress};

/// Work that takes less time prints nothing.
const SILENT: Duration = Duration::from_secs(1);
/// Intervals between updates of a terminal and of a log.
const BAR: Duration = Duration::from_millis(200);
const LINE: Duration = Duration::from_secs(30);
/// Width of the bar in characters.
const WIDTH: usize = 30;

pub(super) struct Progress {
    noun: &'static str,
    total: usize,
    state: Mutex<State>,
}

struct State {
    done: usize,
    begin: Instant,
    next: Instant,
    displayed: bool,
}

impl Progress {
    pub(super) fn new(noun: &'static str, total: usize) -> Self {
        let begin = Instant::now();
        let next = begin + if is_watched() { SILENT } else { LINE };
        Self { noun, total, state: Mutex::new(State { done: 0, begin, next, displayed: false }) }
    }

    /// Records that one more item is done.
    pub(super) fn step(&self) {
        // Progress is not worth a panic of its own after another thread panicked.
        let Ok(mut state) = self.state.lock() else { return };
        state.done += 1;
        let now = Instant::now();
        let watched = is_watched();
        if now >= state.next {
            progress(&text(state.done, self.total, self.noun, watched.then_some(WIDTH), now - state.begin));
            state.next = now + if watched { BAR } else { LINE };
            state.displayed = true;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.state.get_mut().is_ok_and(|state| state.displayed) {
            progress("");
        }
    }
}

/// `[####      ] 4000 of 10000 files, 12 s`.
fn text(done: usize, total: usize, noun: &str, bar: Option<usize>, elapsed: Duration) -> String {
    let bar = bar.map(|width| {
        let full = width * done.min(total) / total.max(1);
        format!("[{}{}] ", "#".repeat(full), " ".repeat(width - full))
    });
    format!("{}{done} of {total} {noun}, {} s", bar.unwrap_or_default(), elapsed.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_a_bar_and_a_log_a_line() {
        let elapsed = Duration::from_millis(12_700);
        assert_eq!(text(4, 10, "files", Some(10), elapsed), "[####      ] 4 of 10 files, 12 s");
        assert_eq!(text(4, 10, "files", None, elapsed), "4 of 10 files, 12 s");
        assert_eq!(text(0, 0, "files", Some(2), elapsed), "[  ] 0 of 0 files, 12 s");
    }
}
