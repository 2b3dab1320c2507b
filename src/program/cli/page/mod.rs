//! A self-contained HTML page: it loads nothing, and its data cannot become markup or script.

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use runtime::process::workflow_commands::{escaped_in_json, escaped_in_xml};
use wire::api::bounded_text::beginning;

/// The frame of all pages, with `{{placeholders}}`.
const FRAME: &str = include_str!("page.html");
/// The stylesheet of all pages.
const STYLE: &str = include_str!("page.css");
/// The script that all pages share. It comes before that of the page.
const SCRIPT: &str = include_str!("page.js");

/// Maximum characters of a title.
const LONGEST_TITLE: usize = 200;

/// The static parts of a page.
pub(super) struct Page {
    /// The command that writes it.
    pub(super) command: &'static str,
    /// The class of its body in the stylesheet.
    pub(super) class: &'static str,
    /// HTML of the fields that filter it.
    pub(super) filters: &'static str,
    /// HTML of the explanation how to read it.
    pub(super) legend: &'static str,
    /// HTML next to the details.
    pub(super) content: &'static str,
    /// Script that draws the content.
    pub(super) script: &'static str,
}

/// Maximum characters of a text in the data.
const LONGEST_TEXT: usize = 500;

impl Page {
    /// Renders the page with a title and data.
    ///
    /// # Errors
    /// If the data cannot be serialized as JSON.
    pub(super) fn render(&self, title: &str, data: &impl Serialize) -> anyhow::Result<String> {
        let mut data = serde_json::to_value(data).context("the data of the page can't be written as JSON")?;
        bound(&mut data);
        let data = data.to_string();
        // In JSON, `<` occurs only inside strings. The escape prevents a string from closing the script element.
        let data = data.replace('<', "\\u003c");
        let data = escaped_in_json(&data);
        let script = [SCRIPT, self.script].concat();
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
            source_hash(&script),
            source_hash(STYLE)
        );
        let parts = [
            ("policy", policy.as_str()),
            ("command", self.command),
            ("class", self.class),
            ("title", &escaped(title)),
            ("style", STYLE),
            ("filters", self.filters),
            ("legend", self.legend),
            ("content", self.content),
            ("data", &data),
            ("script", &script),
        ];
        Ok(filled(FRAME, &parts))
    }
}

/// Escapes and shortens all texts and names of members.
fn bound(data: &mut Value) {
    match data {
        Value::String(text) => *text = beginning(text, LONGEST_TEXT),
        Value::Array(values) => values.iter_mut().for_each(bound),
        Value::Object(members) => {
            let old = std::mem::take(members);
            members.extend(old.into_iter().map(|(name, mut value)| {
                bound(&mut value);
                (beginning(&name, LONGEST_TEXT), value)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Fills the `{{placeholders}}`. Inserted text is not expanded again.
fn filled(template: &str, parts: &[(&str, &str)]) -> String {
    let mut page = String::with_capacity(parts.iter().map(|(_, text)| text.len()).sum::<usize>() + template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        page.push_str(before);
        let text = parts.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        page.push_str(text.unwrap_or_default());
        rest = after;
    }
    page.push_str(rest);
    page
}

/// The hash that lets a content security policy allow an inline script or style.
fn source_hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

fn escaped(text: &str) -> String {
    let text = beginning(text, LONGEST_TITLE);
    escaped_in_xml(&text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")).into_owned()
}
