//! Writes all of the program's output to stdout and stderr, including logs. This is the only place where output is
//! escaped, so that text from outside can neither move the cursor nor hide or reverse other text.
//!
//! If a CI runner reads the output, text from outside is never one of its commands (`workflow_commands`).
//!
//! Colours are always written. The stream removes them if it is not a terminal or if `NO_COLOR` is set.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use tracing_subscriber::fmt::MakeWriter;

use crate::process::workflow_commands::{self, is_in_pipeline};
use wire::api::bounded_text::first_deceptive;

/// ANSI codes used in tables, in clap's help and in the log: reset, bold, dimmed, italic, underlined, and colours.
const STYLES: [&str; 11] = ["0", "1", "2", "3", "4", "31", "32", "33", "34", "35", "36"];

/// Writes data to stdout.
pub fn print(text: &str) -> io::Result<()> {
    write_to_stdout(&printed(text, is_in_pipeline()))
}

/// Writes a text to stdout in place of the previous one. A pipe gets both texts.
pub fn redraw(text: &str) -> io::Result<()> {
    /// Moves to the beginning of the screen and clears what follows.
    const CLEARED: &str = "\u{1b}[H\u{1b}[J";
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        out.write_all(CLEARED.as_bytes())?;
    }
    drop(out);
    print(text)
}

/// When output has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// On a terminal, unless the environment forbids it.
    Auto,
    /// Also in a file or pipe.
    Always,
    /// Never.
    Never,
}

/// Sets when stdout and stderr have colours.
pub fn use_colours(colours: Colours) {
    let choice = match colours {
        Colours::Auto => return,
        Colours::Always => anstream::ColorChoice::AlwaysAnsi,
        Colours::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

/// Writes commands for a CI runner to stdout. Text from outside must already be escaped in them.
pub fn print_commands(text: &str) -> io::Result<()> {
    write_to_stdout(&escaped(text))
}

fn write_to_stdout(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The text as it is written, where perhaps the runner of a pipeline reads it.
fn printed(text: &str, is_in_pipeline: bool) -> String {
    let text = escaped(text);
    if is_in_pipeline { workflow_commands::broken(&text).into_owned() } else { text.into_owned() }
}

/// Prints an error as one line on stderr. Line breaks from outside are escaped, because a pipeline runner could treat
/// a new line as a command.
pub fn complain(text: &str) {
    complain_in_lines(&in_one_line(text));
}

/// Prints lines on stderr. Text from outside must not contain line breaks.
pub fn complain_in_lines(text: &str) {
    // If stderr is closed, there is nothing left to do.
    let _ = write_to_stderr(&format!("{text}\n"));
}

fn write_to_stderr(text: &str) -> io::Result<()> {
    anstream::stderr().lock().write_all(printed(text, is_in_pipeline()).as_bytes())
}

fn in_one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

/// Shows the progress of long work on stderr: on a terminal in one line that is overwritten and finally cleared,
/// elsewhere line by line.
pub fn progress(text: &str) {
    let stderr = io::stderr();
    let text = printed(text, is_in_pipeline());
    let line = if stderr.is_terminal() { format!("\r\u{1b}[K{text}") } else { format!("{text}\n") };
    if stderr.is_terminal() || !text.is_empty() {
        // If stderr is closed, there is nothing left to do.
        let _ = stderr.lock().write_all(line.as_bytes());
    }
}

pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Width of the terminal; `None` if stdout is not a terminal.
pub fn columns() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| terminal_size::terminal_size_of(&stdout)).flatten();
    size.map(|(width, _)| usize::from(width.0))
}

/// Writes complete log lines to stderr.
#[derive(Clone, Copy)]
pub(crate) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write_to_stderr(&line_of_log(&String::from_utf8_lossy(bytes)))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LogWriter {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

/// Each log write becomes one line.
fn line_of_log(text: &str) -> String {
    match text.strip_suffix('\n') {
        Some(line) => in_one_line(line) + "\n",
        None => in_one_line(text),
    }
}

/// Replaces deceptive characters with JSON escapes, so that JSON output stays valid.
fn escaped(text: &str) -> Cow<'_, str> {
    let mut escaped = String::new();
    let mut rest = text;
    while let Some(start) = first_deceptive(rest) {
        let (before, after) = rest.split_at(start);
        escaped.push_str(before);
        let first = after.chars().next().map_or(0, char::len_utf8);
        let (character, behind) = after.split_at(first);
        if let Some(length) = harmless(after) {
            let (harmless, behind) = after.split_at(length);
            escaped.push_str(harmless);
            rest = behind;
        } else {
            escaped.extend(character.encode_utf16().map(|unit| format!("\\u{unit:04x}")));
            rest = behind;
        }
    }
    if escaped.is_empty() {
        return Cow::Borrowed(text);
    }
    escaped.push_str(rest);
    Cow::Owned(escaped)
}

/// Length of a style code or of a CSV line end at the start of the text.
fn harmless(text: &str) -> Option<usize> {
    if text.starts_with("\r\n") {
        return Some(2);
    }
    let (codes, _) = text.strip_prefix("\u{1b}[")?.split_once('m')?;
    codes.split(';').all(|code| STYLES.contains(&code)).then_some(codes.len() + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_and_what_is_logged_is_one_line() {
        assert_eq!(in_one_line("w\n::warning::x\r\n: no"), "w\\n::warning::x\r\\n: no");
        assert_eq!(line_of_log("WARN failed error=a\nINFO all is well\n"), "WARN failed error=a\\nINFO all is well\n");
        assert_eq!(line_of_log("a part"), "a part");
    }

    #[test]
    fn a_pipeline_reads_no_command() {
        let text = "a ##[set-output name=b]c\n::stop-commands::d\n";
        assert_eq!(printed(text, true), "a # #[set-output name=b]c\n: :stop-commands::d\n");
        assert_eq!(printed(text, false), text);
    }

    #[test]
    fn only_styles_and_line_ends_are_written_as_they_are() {
        for (text, written) in [
            ("a\tb\n\u{1b}[1m\u{1b}[31mroll\u{1b}[0m", "a\tb\n\u{1b}[1m\u{1b}[31mroll\u{1b}[0m"),
            ("a,b\r\n", "a,b\r\n"),
            ("\u{1b}[2Jgone\r\u{1b}[8mhidden", "\\u001b[2Jgone\\u000d\\u001b[8mhidden"),
            ("{\"a\": \"\u{202e}\u{e0041}\"}", "{\"a\": \"\\u202e\\udb40\\udc41\"}"),
        ] {
            assert_eq!(escaped(text), written);
        }
    }
}
