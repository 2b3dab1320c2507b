//! The matrix as one page for a browser: nothing is loaded from elsewhere, and nothing of the profile can become markup
//! or a script.

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::offer::matrix::Matrix;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub(super) fn page(matrix: &Matrix<'_>) -> anyhow::Result<String> {
    let data = serde_json::to_string(matrix).context("the matrix can't be written as JSON")?;
    // Only texts can contain it there; the escape keeps a text from ending the element that it stands in.
    let data = data.replace('<', "\\u003c");
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        source_hash(SCRIPT),
        source_hash(STYLE)
    );
    let title = format!("Images of CloudProfile {}", matrix.profile);
    let parts = [
        ("policy", policy.as_str()),
        ("title", &escaped(&title)),
        ("style", STYLE),
        ("data", &data),
        ("script", SCRIPT),
    ];
    Ok(filled(PAGE, &parts))
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
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offer::selection::Selection;
    use crate::offer::{Offer, Resolution, matrix::matrix};

    #[test]
    fn a_name_can_not_become_markup() {
        let offer = Offer { name: "</script><script>alert(1)</script>{{script}}".to_owned(), ..Offer::default() };
        let resolution = Resolution::of(&offer);
        let page = page(&matrix(&resolution, &Selection::default())).unwrap();
        assert_eq!(page.matches("<script").count(), 2, "the data and the script of the page");
        assert_eq!(page.matches("alert(1)").count(), 3, "two titles and the data");
        assert_eq!(page.matches(SCRIPT).count(), 1);
    }
}
