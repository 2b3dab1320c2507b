//! Where output goes: how wide it may be, which styles it has, and what is said on stderr.
//!
//! Colours are written always and dropped by the stream, unless it is a terminal; `NO_COLOR` drops them there too.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

/// Width of what is not written to a terminal: a log stays readable.
const WIDTH_OF_A_LOG: usize = 120;
/// Narrower terminals get lines that they have to break.
const NARROWEST_TERMINAL: usize = 60;

pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();
pub(super) const CAREFUL: Style = AnsiColor::Yellow.on_default();
pub(super) const HEADING: Style = Style::new().bold();
pub(super) const ASIDE: Style = Style::new().dimmed();

/// Columns that a line may have: `COLUMNS` if it is set, else those of the terminal.
pub(super) fn width() -> usize {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let measured = || {
        let stdout = io::stdout();
        let size = stdout.is_terminal().then(|| terminal_size::terminal_size_of(&stdout)).flatten();
        size.map(|(width, _)| usize::from(width.0))
    };
    set.or_else(measured).unwrap_or(WIDTH_OF_A_LOG).max(NARROWEST_TERMINAL)
}

/// Writes data to stdout, without colours where nobody sees them.
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Says what is wrong, on stderr.
#[expect(clippy::print_stderr, reason = "a command line speaks on stderr")]
pub(super) fn complain(text: &str) {
    eprintln!("{text}");
}

/// The exit code of a command: its own, or 2 where it could not do its work.
pub(super) fn exit_code(result: anyhow::Result<u8>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        // A reader that has seen enough closes the pipe; that is no failure of ours.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(io::ErrorKind::BrokenPipe)
    })
}
