//! What the commands print: formats, styles and width.

use std::io;

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use serde_json::Value;

use crate::api::bounded_text::is_deceptive;
use crate::process::output;
pub(super) use crate::process::output::{complain, complain_in_lines, print, print_commands};
use crate::process::workflow_commands;

/// Width of what is not written to a terminal: a log stays readable.
const WIDTH_OF_A_LOG: usize = 120;
/// Narrower terminals get lines that they have to break.
const NARROWEST_TERMINAL: usize = 60;

pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();
pub(super) const CAREFUL: Style = AnsiColor::Yellow.on_default();
pub(super) const HEADING: Style = Style::new().bold();
pub(super) const ASIDE: Style = Style::new().dimmed();

/// How a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    Table,
    Yaml,
    Json,
    Result,
    Csv,
    Markdown,
    Sarif,
    Github,
    Junit,
    Html,
    Capa,
}

/// Reads one of the formats that a command supports.
pub(super) fn one_of(supported: &'static [&'static str]) -> impl TypedValueParser<Value = OutputFormat> {
    PossibleValuesParser::new(supported).try_map(|name| OutputFormat::from_str(&name, false))
}

/// Columns that a line may have: `COLUMNS` if it is set, else those of the terminal.
pub(super) fn width() -> usize {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    set.or_else(output::columns).unwrap_or(WIDTH_OF_A_LOG).max(NARROWEST_TERMINAL)
}

/// A document as JSON, for `print`.
pub(super) fn json(document: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(document).context("the result can't be written as JSON")?;
    Ok(format!("{}\n", workflow_commands::escaped_in_json(&text)))
}

/// A document as YAML, for `print`. JSON is YAML as well, and has escapes for what would deceive a reader.
pub(super) fn yaml(document: &Value) -> anyhow::Result<String> {
    let text = serde_saphyr::to_string(document).context("the result can't be written as YAML")?;
    let is_read_otherwise = text.contains(is_deceptive) || workflow_commands::has_any(&text);
    if is_read_otherwise { json(document) } else { Ok(text) }
}

/// Whether the reader of stdout has gone.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.any(|kind| kind == io::ErrorKind::BrokenPipe)
}
