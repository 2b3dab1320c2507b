//! The rolls of Workers as a page: one line for each state of a pool, with the command that changes it.

use jiff::Timestamp;

use crate::cli::diagnose::table::{command_line, progress_text};
use crate::cli::documentation::linked;
use crate::cli::durations::duration_text;
use crate::cli::evidence::Evidence;
use crate::cli::preview::words::counted;
use crate::cli::table::{paragraph, printable};
use crate::cli::terminal::{ASIDE, BAD, CAREFUL, GOOD, HEADING};
use explanations::diagnose::{PoolRollout, RolloutState, WorkerRollouts};
use wire::api::bounded_text::shortened;

const INDENT: usize = 2;
/// Maximum bytes of a status text.
const LONGEST_TEXT: usize = 800;
/// Maximum number of Workers; `-o wide` and JSON have all.
const MOST_WORKERS: usize = 100;

/// The page. `rolling` are the Workers with a pool to show.
pub(super) fn text(
    rolling: &[&WorkerRollouts],
    evidence: &Evidence,
    now: Timestamp,
    width: usize,
    is_wide: bool,
) -> String {
    let most = if is_wide { usize::MAX } else { MOST_WORKERS };
    let mut text = String::new();
    for worker in rolling.iter().take(most) {
        let name = printable(&worker.worker);
        text.push_str(&format!("{HEADING}Worker {name}{HEADING:#}\n"));
        for pool in &worker.pools {
            text.push_str(&of_pool(pool, now, width));
        }
        text.push('\n');
    }
    if let Some(more) = rolling.len().checked_sub(most).filter(|more| *more > 0) {
        text.push_str(&paragraph(&format!("{more} more: see -o wide."), ASIDE, 0, width));
    }
    text.push_str(&summary(rolling, evidence, width));
    text
}

fn of_pool(pool: &PoolRollout, now: Timestamp, width: usize) -> String {
    let style = match pool.state {
        RolloutState::ZoneFails => BAD,
        RolloutState::Rolling | RolloutState::ZonesWait | RolloutState::Stopped => CAREFUL,
        RolloutState::OnHold => HEADING,
    };
    let line = match &pool.progress {
        Some(progress) => progress_text(progress, now),
        None => {
            let since = pool.since.map(|since| format!(" (for {})", duration_text(now.duration_since(since))));
            format!("{}{}", shortened(&pool.message, LONGEST_TEXT), since.unwrap_or_default())
        }
    };
    let mut text = paragraph(&line, style, INDENT, width);
    if let Some(command) = &pool.command {
        text.push_str(&paragraph(&format!("→ {}", linked(pool.next_step)), ASIDE, INDENT + 1, width));
        text.push_str(&command_line(command));
    }
    text
}

fn summary(rolling: &[&WorkerRollouts], evidence: &Evidence, width: usize) -> String {
    let workers = counted(evidence.count() as u64, "Worker");
    if rolling.is_empty() {
        let style = if evidence.is_complete() { GOOD } else { CAREFUL };
        let text = evidence.headline(&format!("{workers}: no pool rolls, waits, is stopped or on hold."));
        return paragraph(&text, style, 0, width);
    }
    let numbers = RolloutState::ALL.iter().filter_map(|state| {
        let pools = rolling.iter().flat_map(|worker| &worker.pools).filter(|pool| pool.state == *state).count();
        (pools > 0).then(|| format!("{}: {pools}", state.words()))
    });
    let numbers: Vec<String> = numbers.collect();
    let text = evidence.headline(&format!("{workers}. Pools {}.", numbers.join(", ")));
    paragraph(&text, CAREFUL, 0, width)
}
