//! Defuses texts that CI runners interpret as commands. A runner reads the output of a program, so an annotation of a
//! Shoot could set a variable of the pipeline or disable its commands.
//!
//! | runner | commands |
//! |---|---|
//! | GitHub Actions | `::name …::value` at the beginning of a line, `##[name …]value` anywhere |
//! | Azure Pipelines | `##vso[name …]value` anywhere, `##[name]` |
//! | TeamCity | `##teamcity[…]` |
//!
//! Sections of GitLab begin with an escape sequence, which is never printed unescaped.

use std::borrow::Cow;
use std::sync::OnceLock;

/// Variables that runners set.
const VARIABLES: [&str; 3] = ["GITHUB_ACTIONS", "TF_BUILD", "GITLAB_CI"];
/// Prefix of a command at the beginning of a line.
const AT_THE_BEGINNING: &str = "::";
/// Prefix of a command anywhere in a line, before an optional word and a bracket.
const ANYWHERE: &str = "##";

/// Whether a CI runner reads the output.
pub(crate) fn is_in_pipeline() -> bool {
    static IS_IN_PIPELINE: OnceLock<bool> = OnceLock::new();
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    *IS_IN_PIPELINE.get_or_init(|| VARIABLES.iter().any(is_set))
}

/// Inserts a space into each command, so that runners ignore it: for tables, lists and logs.
pub fn broken(text: &str) -> Cow<'_, str> {
    let text = broken_anywhere(text);
    if !text.contains(AT_THE_BEGINNING) {
        return text;
    }
    let lines = text.split_inclusive('\n').map(|line| {
        let start = line.len() - behind_blanks(line).len();
        let (blanks, rest) = line.split_at(start);
        match rest.strip_prefix(AT_THE_BEGINNING) {
            Some(rest) => format!("{blanks}: :{rest}"),
            None => line.to_owned(),
        }
    });
    Cow::Owned(lines.collect())
}

/// Same, but only for commands that can begin anywhere: for text that never begins a line.
pub fn broken_anywhere(text: &str) -> Cow<'_, str> {
    replaced(text, "# #")
}

/// An equivalent JSON document without commands: `#` occurs only in strings, and no line begins with a colon.
pub fn escaped_in_json(document: &str) -> Cow<'_, str> {
    replaced(document, "#\\u0023")
}

/// Equivalent XML text without commands.
pub fn escaped_in_xml(text: &str) -> Cow<'_, str> {
    replaced(text, "#&#35;")
}

/// Whether a runner finds a command in the text.
pub fn has_any(text: &str) -> bool {
    matches!(broken(text), Cow::Owned(broken) if broken != text)
}

/// The text with each command's prefix replaced.
fn replaced<'a>(text: &'a str, mark: &str) -> Cow<'a, str> {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(ANYWHERE) {
        let (before, from) = rest.split_at(at);
        let behind = from.strip_prefix(ANYWHERE).unwrap_or_default();
        replaced.push_str(before);
        if begins_command(behind) {
            replaced.push_str(mark);
            rest = behind;
        } else {
            // The second character may begin a command with the next one.
            replaced.push('#');
            rest = from.strip_prefix('#').unwrap_or_default();
        }
    }
    if replaced.is_empty() {
        return Cow::Borrowed(text);
    }
    replaced.push_str(rest);
    Cow::Owned(replaced)
}

/// Whether an optional word and a bracket follow.
fn begins_command(behind: &str) -> bool {
    behind
        .trim_start_matches(|character: char| character.is_alphanumeric() || "-_.".contains(character))
        .starts_with('[')
}

/// The line without leading blanks and style codes, which are removed if the output is not a terminal.
fn behind_blanks(line: &str) -> &str {
    let mut rest = line.trim_start();
    while let Some(codes) = rest.strip_prefix("\u{1b}[") {
        let Some((_, behind)) = codes.split_once('m') else { break };
        rest = behind.trim_start();
    }
    rest
}

/// Finds workflow commands, for tests.
#[cfg(any(test, feature = "testing"))]
pub mod test_support {
    /// The commands that runners find in a text, by their own rules.
    #[must_use]
    pub fn commands(text: &str) -> Vec<String> {
        let plain = anstream::adapter::strip_str(text).to_string();
        let is_command = |line: &&str| {
            let mut marks = line.match_indices("##").map(|(at, _)| &line[at + 2..]);
            let has_mark = marks.any(|behind| {
                behind.split_once('[').is_some_and(|(word, _)| word.chars().all(|one| one.is_ascii_alphanumeric()))
            });
            has_mark || line.trim_start().starts_with("::")
        };
        plain.split(['\n', '\r']).filter(is_command).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::test_support::commands;
    use super::*;

    #[test]
    fn commands_are_broken_and_nothing_else() {
        for (text, printed) in [
            ("##[set-output name=a]b", "# #[set-output name=a]b"),
            ("a ##vso[task.complete]", "a # #vso[task.complete]"),
            ("###[x] ##a[", "## #[x] # #a["),
            ("a\n  ::stop-commands::x", "a\n  : :stop-commands::x"),
            ("\u{1b}[31m::error::x\u{1b}[0m", "\u{1b}[31m: :error::x\u{1b}[0m"),
            ("a::b ## heading [x] #[y]", "a::b ## heading [x] #[y]"),
        ] {
            assert_eq!(broken(text), printed);
            assert_eq!(has_any(text), text != printed, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_a_command(parts in prop::collection::vec("##|#|\\[|::|:|vso|\n| |\\PC|\"", 0..30)) {
            let text = parts.concat();
            prop_assert_eq!(commands(&broken(&text)), [""; 0]);
            prop_assert_eq!(commands(&broken(&format!("\u{1b}[31m{text}"))), [""; 0]);
            let json = serde_json::to_string(&text).unwrap();
            let escaped = escaped_in_json(&json);
            prop_assert_eq!(commands(&escaped), [""; 0]);
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        }
    }
}
