//! A page for a browser in one file: nothing is loaded from elsewhere, and nothing of its data can become markup or a script.

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::process::workflow_commands::{escaped_in_json, escaped_in_xml};

/// What all pages look like.
const STYLE: &str = include_str!("page.css");

/// What a page consists of besides its data.
pub(super) struct Page {
    /// HTML with the `{{parts}}` policy, title, style, data and script.
    pub(super) template: &'static str,
    /// Styles besides those of all pages.
    pub(super) style: &'static str,
    /// The script, which finds the data as JSON in the element of the id `data`.
    pub(super) script: &'static str,
}

impl Page {
    /// The page with a title and data.
    ///
    /// # Errors
    /// When the data can't be written as JSON.
    pub(super) fn render(&self, title: &str, data: &impl Serialize) -> anyhow::Result<String> {
        let data = serde_json::to_string(data).context("the data of the page can't be written as JSON")?;
        // Only texts can contain it there; the escape keeps a text from ending the element that it stands in.
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

/// A template with its `{{parts}}`. What is put in is not looked into again.
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

/// The hash by which a content security policy allows an inline text.
fn source_hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

fn escaped(text: &str) -> String {
    escaped_in_xml(&text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")).into_owned()
}
