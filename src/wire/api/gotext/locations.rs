//! Line numbers of the members of a YAML or JSON text, for messages.

use std::collections::HashMap;

use granit_parser::{Event, Parser};

/// The line numbers of the members of one document.
#[derive(Clone, Debug, Default)]
pub struct Locations(HashMap<String, usize>);

impl Locations {
    /// The line number, starting at 1, of a member such as `spec.machineImages[0].name`, or of its nearest existing
    /// parent.
    #[must_use]
    pub fn line_of(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(line) = self.0.get(path) {
                return Some(*line);
            }
            let end = path.rfind(['.', '['])?;
            path = path.get(..end)?;
        }
    }
}

/// The line numbers of every document that is a mapping, in order. Stops at the first syntax error.
#[must_use]
pub fn locations(text: &str) -> Vec<Locations> {
    let mut documents = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { break };
        let line = span.start.line();
        match event {
            Event::Scalar(text, ..) => scalar(&mut open, &mut documents, &text, line),
            Event::Alias(_) => drop(enter(&mut open, &mut documents, line)),
            Event::SequenceStart(..) => {
                let path = enter(&mut open, &mut documents, line);
                open.push(Open { path, step: Step::Item(0) });
            }
            Event::MappingStart(..) => {
                if open.is_empty() {
                    documents.push(Locations::default());
                }
                let path = enter(&mut open, &mut documents, line);
                open.push(Open { path, step: Step::Key });
            }
            Event::SequenceEnd | Event::MappingEnd => drop(open.pop()),
            Event::DocumentStart(..) => open.clear(),
            _ => {}
        }
    }
    documents
}

/// An incomplete collection.
struct Open {
    path: String,
    step: Step,
}

/// The next step in a collection.
enum Step {
    Item(usize),
    Key,
    Value(String),
}

fn scalar(open: &mut [Open], documents: &mut [Locations], text: &str, line: usize) {
    match open.last_mut() {
        Some(Open { path, step: step @ Step::Key }) => {
            let path = if path.is_empty() { text.to_owned() } else { format!("{path}.{text}") };
            remember(documents, &path, line);
            *step = Step::Value(path);
        }
        _ => drop(enter(open, documents, line)),
    }
}

/// Returns the path of a value, and advances the surrounding collection.
fn enter(open: &mut [Open], documents: &mut [Locations], line: usize) -> String {
    let Some(around) = open.last_mut() else { return String::new() };
    match &mut around.step {
        Step::Item(index) => {
            let path = format!("{}[{index}]", around.path);
            *index += 1;
            remember(documents, &path, line);
            path
        }
        Step::Value(path) => {
            let path = std::mem::take(path);
            around.step = Step::Key;
            path
        }
        // A collection as a key has no path.
        Step::Key => {
            around.step = Step::Value(String::new());
            String::new()
        }
    }
}

fn remember(documents: &mut [Locations], path: &str, line: usize) {
    if let Some(document) = documents.last_mut() {
        document.0.entry(path.to_owned()).or_insert(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_lines() {
        let text =
            "# first\n---\na: 1\nspec:\n  list:\n  - {x: 1, y: [2]}\n  - x: 3\n    deep:\n      z: 4\n---\nb: {c: 1}\n";
        let documents = locations(text);
        assert_eq!(documents.len(), 2);
        let line = |path| documents[0].line_of(path);
        assert_eq!(line("a"), Some(3));
        assert_eq!(line("spec.list[0].y[0]"), Some(6));
        assert_eq!(line("spec.list[1]"), Some(7));
        assert_eq!(line("spec.list[1].deep.z"), Some(9));
        assert_eq!(line("spec.list[1].deep.missing[4].more"), Some(8), "the nearest one around it");
        assert_eq!(line("elsewhere"), None);
        assert_eq!(documents[1].line_of("b.c"), Some(11));
    }

    #[test]
    fn json_has_lines_too_and_broken_text_some() {
        assert_eq!(locations("{\n \"a\":\n  {\"b\": 1}}")[0].line_of("a.b"), Some(3));
        assert_eq!(locations("a: 1\nb: [").first().and_then(|document| document.line_of("a")), Some(1));
    }
}
