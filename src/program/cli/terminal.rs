//! Output of the commands. Formats, styles and width.

use std::io;

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use serde_json::Value;

use super::in_parallel::in_parallel;
use runtime::process::output;
pub(super) use runtime::process::output::{complain, complain_in_lines, print, print_commands};
use runtime::process::workflow_commands;
use wire::api::bounded_text::is_deceptive;
use wire::api::gotext::yaml_edit::edited;

/// Width of output that is not written to a terminal. Keeps logs readable.
const WIDTH_OF_A_LOG: usize = 120;
/// Minimum width. Narrower terminals wrap lines.
const NARROWEST_TERMINAL: usize = 60;

pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();
pub(super) const CAREFUL: Style = AnsiColor::Yellow.on_default();
pub(super) const HEADING: Style = Style::new().bold();
pub(super) const ASIDE: Style = Style::new().dimmed();

/// Output format of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    Table,
    Wide,
    Name,
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

/// Parses one of the formats that a command supports.
pub(super) fn one_of(supported: &'static [&'static str]) -> impl TypedValueParser<Value = OutputFormat> {
    PossibleValuesParser::new(supported).try_map(|name| OutputFormat::from_str(&name, false))
}

/// Formats of every command that reads objects of a cluster, as in kubectl.
pub(super) const OBJECT_FORMATS: &[&str] = &["table", "wide", "json", "yaml", "name"];

/// Formats a document in one of the formats for programs.
pub(super) fn document_text(document: &Value, format: OutputFormat) -> anyhow::Result<String> {
    if format == OutputFormat::Yaml { yaml(document) } else { json(document) }
}

/// Maximum line width of a format. Lines of `wide` are never wrapped.
pub(super) fn width_of(format: OutputFormat) -> usize {
    /// More columns than any table has.
    const UNLIMITED: usize = 1 << 20;
    if format == OutputFormat::Wide { UNLIMITED } else { width() }
}

/// Maximum line width. Uses `COLUMNS`, or the width of the terminal.
pub(super) fn width() -> usize {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    set.or_else(output::columns).unwrap_or(WIDTH_OF_A_LOG).max(NARROWEST_TERMINAL)
}

/// Formats a document as JSON for `print`.
pub(super) fn json(document: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(document).context("the result can't be written as JSON")?;
    Ok(format!("{}\n", workflow_commands::escaped_in_json(&text)))
}

/// Number of list items formatted at a time, in parallel.
const AT_ONCE: usize = 100;

/// Prints a JSON document whose member `list` is an empty list, with these items in it. They are formatted in parts, so
/// that a large list need not fit in memory as text.
pub(super) fn print_json_with_items<'a, I: Sync, T: Serialize>(
    document: &impl Serialize,
    list: &str,
    items: &'a [I],
    document_of: impl Fn(&'a I) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<()> {
    let text = json(document)?;
    let member = format!("\n  \"{list}\": [");
    let location = text.find(&format!("{member}]")).context("the document has no empty list")? + member.len();
    let (head, end) = text.split_at(location);
    let mut part = head.to_owned();
    let indented = |item: &'a I| anyhow::Ok(json(&document_of(item)?)?.trim_end().replace('\n', "\n    "));
    let mut separator = "";
    for batch in items.chunks(AT_ONCE) {
        for text in in_parallel(batch, indented) {
            part.push_str(&format!("{separator}\n    {}", text?));
            separator = ",";
        }
        print(&part)?;
        part.clear();
    }
    if !items.is_empty() {
        part.push_str("\n  ");
    }
    Ok(print(&format!("{part}{end}"))?)
}

/// Formats a changed document for `print` in place of the text that it was read from: unchanged parts keep their order and
/// comments. If the text is unknown or can't be edited, the whole document is formatted.
pub(super) fn yaml_in_place_of(original: Option<&str>, document: &Value) -> anyhow::Result<String> {
    let write = |value: &Value| serde_saphyr::to_string(value).ok();
    let text = original.and_then(|original| edited(original, document, &write));
    match text.filter(|text| !is_read_otherwise(text)) {
        Some(text) => Ok(text),
        None => yaml(document),
    }
}

/// Formats a document as YAML for `print`. Falls back to JSON, a subset of YAML, to escape deceptive characters.
pub(super) fn yaml(document: &Value) -> anyhow::Result<String> {
    let text = serde_saphyr::to_string(document).context("the result can't be written as YAML")?;
    if is_read_otherwise(&text) { json(document) } else { Ok(text) }
}

/// Whether a terminal or a workflow would show or read a text otherwise than it is.
fn is_read_otherwise(text: &str) -> bool {
    text.contains(is_deceptive) || workflow_commands::has_any(text)
}

/// Whether the reader of stdout closed the pipe.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.any(|kind| kind == io::ErrorKind::BrokenPipe)
}
