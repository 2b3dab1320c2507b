//! The evidence for an answer: which inputs were evaluated, which were skipped, and which were not given. Every command
//! returns it with its result. Headline, JSON, page and exit code derive from it, so no command answers from missing
//! evidence.

use serde::Serialize;
use serde_json::{Value, json};

use super::exit::Exit;
use super::preview::words::counted;
use runtime::process::failure_reason::reason;
use runtime::reader::Skipped;
use runtime::reader::files::Files;

/// A command's result with its evidence. Incomplete evidence overrides the exit code.
#[derive(Debug)]
pub(super) struct Reply {
    evidence: Evidence,
    exit: Exit,
}

impl Reply {
    pub(super) fn new(evidence: Evidence, exit: Exit) -> Self {
        Self { evidence, exit }
    }

    /// For a command that prints built-in data and reads no input.
    pub(super) fn of_program() -> Self {
        Self { evidence: Evidence::of("document"), exit: Exit::Done }
    }

    pub(super) fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The exit code. Incomplete evidence outranks every finding.
    pub(super) fn exit(&self) -> Exit {
        self.exit.max(self.evidence.exit())
    }
}

/// The inputs of an answer: evaluated, not evaluated, not read, or not given.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// Singular noun for what is evaluated.
    subject: &'static str,
    evaluated: usize,
    /// Subjects that were read but could not be evaluated.
    unevaluated: Vec<String>,
    /// The same, of which the answer itself shows the reason.
    unevaluated_in_result: Vec<String>,
    /// Inputs that could not be read, so their content is unknown.
    unread: Vec<String>,
    not_given: Vec<MissingInput>,
}

/// An input that was not given, and what is unknown without it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MissingInput {
    /// Plural noun, such as "Shoots".
    pub(super) what: &'static str,
    /// The flag that provides it.
    pub(super) flag: &'static str,
    pub(super) unknown: &'static str,
}

impl Evidence {
    /// Empty evidence about this subject.
    pub(super) fn of(subject: &'static str) -> Self {
        Self {
            subject,
            evaluated: 0,
            unevaluated: Vec::new(),
            unevaluated_in_result: Vec::new(),
            unread: Vec::new(),
            not_given: Vec::new(),
        }
    }

    /// Changes what is evaluated, once the content of the inputs is known.
    pub(super) fn about(&mut self, subject: &'static str) {
        self.subject = subject;
    }

    /// Complete evidence: every input was read and evaluated.
    pub(super) fn whole(subject: &'static str, evaluated: usize) -> Self {
        Self { evaluated, ..Self::of(subject) }
    }

    /// Returns the readable files and records the skipped ones.
    pub(super) fn note_skipped(&mut self, Files { files, skipped }: Files) -> Vec<runtime::reader::files::NamedFile> {
        for Skipped { input, reason } in skipped {
            self.unread.push(format!("{input}: {reason}"));
        }
        files
    }

    pub(super) fn evaluated(&mut self, count: usize) {
        self.evaluated += count;
    }

    /// Records an input that cannot be read. The error contains its name.
    pub(super) fn unread(&mut self, error: &anyhow::Error) {
        self.unread_text(reason(error.as_ref()));
    }

    /// Same as [`Self::unread`] for an error that is already text.
    pub(super) fn unread_text(&mut self, error: String) {
        self.unread.push(error);
    }

    /// Records a subject that was read but cannot be evaluated. The error contains its name.
    pub(super) fn unevaluated(&mut self, error: String) {
        self.unevaluated.push(error);
    }

    /// Records a subject that could not be evaluated, where the answer itself shows the reason.
    pub(super) fn unevaluated_in_result(&mut self, error: String) {
        self.unevaluated_in_result.push(error);
    }

    pub(super) fn not_given(&mut self, not_given: MissingInput) {
        self.not_given.push(not_given);
    }

    /// Merges the evidence for another part of the same answer.
    pub(super) fn join(&mut self, other: Self) {
        let Self { subject: _, evaluated, unevaluated, unevaluated_in_result, unread, not_given } = other;
        self.evaluated += evaluated;
        self.unevaluated.extend(unevaluated);
        self.unevaluated_in_result.extend(unevaluated_in_result);
        self.unread.extend(unread);
        self.not_given.extend(not_given);
    }

    /// Whether the answer covers every given input.
    pub(super) fn is_complete(&self) -> bool {
        self.unevaluated.is_empty() && self.unevaluated_in_result.is_empty() && self.unread.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.evaluated
    }

    /// Inputs that could not be read or evaluated, one line each.
    pub(super) fn problems(&self) -> impl Iterator<Item = &String> {
        self.unread.iter().chain(&self.unevaluated)
    }

    /// Inputs that could not be read, one line each.
    pub(super) fn unread_inputs(&self) -> impl Iterator<Item = &String> {
        self.unread.iter()
    }

    /// The covered share of the input, unless the answer covers all of it.
    pub(super) fn shortfall(&self) -> Option<String> {
        if self.is_complete() {
            return None;
        }
        let all = self.evaluated + self.unevaluated.len() + self.unevaluated_in_result.len();
        let mut text = format!("INCOMPLETE: {} of {} evaluated", self.evaluated, counted(all as u64, self.subject));
        if !self.unread.is_empty() {
            text.push_str(&format!(", {} not read", counted(self.unread.len() as u64, "input")));
        }
        Some(text)
    }

    /// Puts the shortfall, if any, before the answer.
    pub(super) fn headline(&self, result: &str) -> String {
        match self.shortfall() {
            Some(shortfall) if self.evaluated == 0 => format!("{shortfall}: there is no answer"),
            Some(shortfall) => format!("{shortfall}. Of these: {result}"),
            None => result.to_owned(),
        }
    }

    fn exit(&self) -> Exit {
        if self.is_complete() { Exit::Done } else { Exit::Failed }
    }

    /// Adds the evidence to a JSON document.
    pub(super) fn attach(&self, mut document: Value) -> Value {
        document["evidence"] = self.document();
        document
    }

    /// The evidence as JSON.
    pub(super) fn document(&self) -> Value {
        let unevaluated: Vec<&String> = self.unevaluated.iter().chain(&self.unevaluated_in_result).collect();
        json!({
            "complete": self.is_complete(),
            "subject": self.subject,
            "evaluated": self.evaluated,
            "unevaluated": unevaluated,
            "unread": self.unread,
            "notGiven": self.not_given,
        })
    }
}

/// The error for a selection without a match: what was searched and the closest names.
pub(super) fn no_match<'a>(what: &str, selected: &str, known: impl IntoIterator<Item = &'a str>) -> anyhow::Error {
    const MAX_NAMES: usize = 5;
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_unstable();
    known.dedup();
    if known.is_empty() {
        return anyhow::anyhow!("no {what} {selected:?}; there are none");
    }
    let similarity = |name: &str| strsim::jaro_winkler(name, selected);
    let nearest = known.iter().copied().max_by(|left, right| similarity(left).total_cmp(&similarity(right)));
    match nearest {
        Some(nearest) if known.len() > MAX_NAMES => {
            anyhow::anyhow!("no {what} {selected:?} among {}; the nearest is {nearest:?}", known.len())
        }
        _ => {
            let quoted: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
            anyhow::anyhow!("no {what} {selected:?}; there is {}", quoted.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_evidence_outranks_every_result() {
        let mut evidence = Evidence::of("shoot");
        evidence.evaluated(2);
        assert_eq!(
            (evidence.headline("no node is touched").as_str(), evidence.exit()),
            ("no node is touched", Exit::Done)
        );
        evidence.unevaluated("Shoot a/b: no profile".to_owned());
        evidence.unread_text("x.yaml: a folder is not a file that can be read".to_owned());
        assert_eq!(
            evidence.headline("1 moves"),
            "INCOMPLETE: 2 of 3 shoots evaluated, 1 input not read. Of these: 1 moves"
        );
        assert_eq!(evidence.document()["complete"], false);
        assert_eq!(Reply::new(evidence, Exit::Delete).exit(), Exit::Failed);
    }

    #[test]
    fn names_the_nearest_match() {
        let text = |selected: &str, known: &[&str]| no_match("image", selected, known.iter().copied()).to_string();
        assert_eq!(text("a", &[]), "no image \"a\"; there are none");
        assert_eq!(
            text("gardenlinx", &["gardenlinux", "ubuntu"]),
            "no image \"gardenlinx\"; there is \"gardenlinux\", \"ubuntu\""
        );
        let many = ["gardenlinux", "ubuntu", "flatcar", "suse", "coreos", "windows"];
        assert_eq!(text("gardenlinx", &many), "no image \"gardenlinx\" among 6; the nearest is \"gardenlinux\"");
    }
}
