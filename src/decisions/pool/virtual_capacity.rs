//! Removes `nodeTemplate.virtualCapacity` from the text of a provider config, so that it does not roll nodes. The
//! result is hashed, so the removal matches the Go extensions exactly. For example, a `virtualCapacity` before
//! `capacity` stays.

use std::sync::LazyLock;

use regex::Regex;

/// Patterns with their replacements, applied in order. White space is listed explicitly because `\s` matches only ASCII
/// in Go.
static CUTS: LazyLock<[(Regex, &str); 3]> = LazyLock::new(|| {
    const SPACE: &str = r"[\t\n\f\r ]*";
    let cut = |pattern: &str| {
        let pattern = pattern.replace('~', SPACE);
        #[expect(clippy::expect_used, reason = "the three patterns are constants, and a test runs all of them")]
        Regex::new(&pattern).expect("constant pattern")
    };
    [
        (cut(r#""nodeTemplate"~:~\{~"virtualCapacity"~:~\{[^{}]*\}~\}~,?"#), ""),
        (cut(r#",~"virtualCapacity"~:~\{[^{}]*\}~"#), ""),
        (cut(r",~\}"), "}"),
    ]
});

/// Returns the text without the virtual capacity, trimmed.
#[must_use]
pub fn without_virtual_capacity(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, replacement) in CUTS.iter() {
        text = pattern.replace_all(&text, *replacement).into_owned();
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_trailing_or_single_virtual_capacity() {
        let cases = [
            (r#"{"a":1,"nodeTemplate":{"virtualCapacity":{"x":"1"}},"z":1}"#, r#"{"a":1,"z":1}"#),
            (r#"{"a":1,"nodeTemplate":{"virtualCapacity":{}}}"#, r#"{"a":1}"#),
            (
                r#"{"nodeTemplate":{"capacity":{"cpu":1},"virtualCapacity":{"x":1}}}"#,
                r#"{"nodeTemplate":{"capacity":{"cpu":1}}}"#,
            ),
            (
                r#"{"nodeTemplate":{"virtualCapacity":{"x":1},"capacity":{"cpu":1}}}"#,
                r#"{"nodeTemplate":{"virtualCapacity":{"x":1},"capacity":{"cpu":1}}}"#,
            ),
        ];
        for (text, target) in cases {
            assert_eq!(without_virtual_capacity(text), target);
        }
    }
}
