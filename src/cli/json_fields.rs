//! The members of the JSON that commands print, from the outline `json_fields.txt`: an indented line is a member of the one above it,
//! and `like COMMAND: MEMBER` stands for the members below that one of a document, described above. A test compares them with what is really printed.

const OUTLINE: &str = include_str!("json_fields.txt");

/// A member of a document.
#[derive(Clone, Debug)]
pub struct Field {
    /// Where it is; `[]` is every entry of a list, `*` every key of a map.
    pub path: String,
    /// Its type.
    pub kind: &'static str,
    /// Whether it can be absent.
    pub optional: bool,
    /// What it says.
    pub meaning: &'static str,
}

/// The commands with JSON output, such as `explain -o json`, each with the members of its document.
#[must_use]
pub fn documents() -> Vec<(&'static str, Vec<Field>)> {
    let sections = OUTLINE.split("# ").filter_map(|section| section.split_once('\n'));
    let mut documents: Vec<(&str, Vec<Field>)> = Vec::new();
    for (command, outline) in sections {
        documents.push((command, Vec::new()));
        describe(outline, &mut documents);
    }
    documents
}

/// Adds the members of the last document.
fn describe(outline: &'static str, documents: &mut [(&'static str, Vec<Field>)]) {
    let mut parents: Vec<&str> = Vec::new();
    for line in outline.lines().filter(|line| !line.is_empty()) {
        let text = line.trim_start();
        parents.truncate((line.len() - text.len()) / 2);
        let fields = match text.strip_prefix("like ").and_then(|like| like.split_once(": ")) {
            Some((command, member)) => {
                let described = documents.iter().filter(|(known, _)| *known == command);
                let below = described.flat_map(|(_, fields)| fields).filter_map(|field| {
                    let path = field.path.strip_prefix(member)?.strip_prefix('.')?;
                    Some(Field { path: format!("{}.{path}", parents.join(".")), ..field.clone() })
                });
                below.collect()
            }
            None => {
                let (member, description) = text.split_once(": ").unwrap_or((text, ""));
                parents.push(member.trim_end_matches('?'));
                let (kind, meaning) = description.split_once(": ").unwrap_or((description, ""));
                vec![Field { path: parents.join("."), kind, optional: member.ends_with('?'), meaning }]
            }
        };
        let of_document = documents.last_mut().map(|(_, fields)| fields);
        of_document
            .into_iter()
            .for_each(|known| known.extend(fields.iter().filter(|field| !field.kind.is_empty()).cloned()));
    }
}
