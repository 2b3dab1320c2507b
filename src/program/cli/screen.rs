//! How a command shows its answer: once or again and again (`--watch`), with or without colours (`--color`).

use std::thread::sleep;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::evidence::Reply;
use super::exit::wrong_usage;
use super::terminal::{complain, print};
use runtime::process::failure_reason::reason;
use runtime::process::output::{self, Colours, redraw};

/// Delay between two answers with `--watch`.
const WATCH_PERIOD: Duration = Duration::from_secs(5);

/// How to show an answer.
#[derive(Clone, Debug, Args)]
pub(super) struct Screen {
    /// Read the cluster again every 5 seconds. A terminal shows the current answer; a pipe gets each changed answer.
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    color: Color,
}

/// Whether to use colours.
#[derive(Clone, Debug, Args)]
pub(super) struct Color {
    /// When to use colours. `auto` colours a terminal, unless NO_COLOR is set.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorWhen::Auto)]
    color: ColorWhen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ColorWhen {
    Auto,
    Always,
    Never,
}

impl Color {
    pub(super) fn apply(&self) {
        output::use_colours(match self.color {
            ColorWhen::Auto => Colours::Auto,
            ColorWhen::Always => Colours::Always,
            ColorWhen::Never => Colours::Never,
        });
    }
}

/// An answer as text.
pub(super) struct Page {
    pub(super) text: String,
    pub(super) result: Reply,
}

impl Screen {
    pub(super) fn is_watch(&self) -> bool {
        self.watch
    }

    /// Prints the answer. With `--watch` it never returns, unless the first answer fails or the output is closed.
    pub(super) fn show(&self, is_live: bool, page: impl FnMut() -> anyhow::Result<Page>) -> anyhow::Result<Reply> {
        self.color.apply();
        if self.watch && !is_live {
            return Err(wrong_usage("--watch is for a cluster: name no file"));
        }
        if self.watch { follow(page) } else { once(page) }
    }
}

fn once(mut page: impl FnMut() -> anyhow::Result<Page>) -> anyhow::Result<Reply> {
    let Page { text, result } = page()?;
    print(&text)?;
    Ok(result)
}

fn follow(mut page: impl FnMut() -> anyhow::Result<Page>) -> anyhow::Result<Reply> {
    let mut displayed = page()?;
    redraw(&displayed.text)?;
    loop {
        sleep(WATCH_PERIOD);
        match page() {
            Ok(next) => {
                if next.text != displayed.text {
                    redraw(&next.text)?;
                }
                displayed = next;
            }
            Err(error) => complain(&reason(error.as_ref())),
        }
    }
}
