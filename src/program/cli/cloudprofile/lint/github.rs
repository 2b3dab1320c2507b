//! Findings as GitHub Actions workflow commands, which annotate lines of a pull request.

use super::{Linted, documentation};
use profiles::resolved_profile::lint::{Finding, Severity};
use runtime::process::workflow_commands::broken_anywhere;

pub(super) fn text(linted: &[Linted]) -> String {
    linted.iter().flat_map(|linted| linted.report.findings.iter().map(|finding| line(linted, finding))).collect()
}

fn line(linted: &Linted, finding: &Finding) -> String {
    let command = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let at = linted.line(&finding.path).map(|line| format!(",line={line}")).unwrap_or_default();
    let subject = if finding.subject.is_empty() { &finding.path } else { &finding.subject };
    let message = format!("{subject}: {} {} ({})", finding.reason, finding.advice, documentation(finding.rule));
    let file = property(&linted.found.source);
    let title = property(finding.rule.title());
    format!("::{command} file={file}{at},title={title}::{}\n", data(&message))
}

/// A message: line ends would begin another command, and so would an older form of commands anywhere.
fn data(text: &str) -> String {
    broken_anywhere(&text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")).into_owned()
}

/// Escapes a property value.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_begins_a_command_of_its_own() {
        assert_eq!(super::property("a,b:c%\n::error::"), "a%2Cb%3Ac%25%0A%3A%3Aerror%3A%3A");
        assert_eq!(super::data("##[set-output name=a]b"), "# #[set-output name=a]b");
        assert_eq!(super::data("50 %\r\n::error::x"), "50 %25%0D%0A::error::x");
    }
}
