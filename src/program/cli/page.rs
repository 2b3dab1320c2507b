//! A self-contained HTML page: it loads nothing, and its data cannot become markup or script.

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use runtime::process::workflow_commands::{escaped_in_json, escaped_in_xml};

/// What all pages look like.
const STYLE: &str = include_str!("page.css");

/// The static parts of a page.
pub(super) struct Page {
    /// HTML with the placeholders `{{policy}}`, title, style, data and script.
    pub(super) template: &'static str,
    /// Styles in addition to the shared ones.
    pub(super) style: &'static str,
    /// Script that reads its JSON data from the element with the id `data`.
    pub(super) script: &'static str,
}

impl Page {
    /// Renders the page with a title and data.
    ///
    /// # Errors
    /// If the data cannot be serialized as JSON.
    pub(super) fn render(&self, title: &str, data: &impl Serialize) -> anyhow::Result<String> {
        let data = serde_json::to_string(data).context("the data of the page can't be written as JSON")?;
        // In JSON, `<` occurs only inside strings. The escape prevents a string from closing the script element.
        let data = data.replace('<', "\\u003c");
        let data = escaped_in_json(&data);
        let style = [STYLE, self.style].concat();
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
            source_hash(self.script),
            source_hash(&style)
        );
        let parts = [
            ("policy", policy.as_str()),
            ("title", &escaped(title)),
            ("style", &style),
            ("data", &data),
            ("script", self.script),
        ];
        Ok(filled(self.template, &parts))
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
    escaped_in_xml(&text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")).into_owned()
}
