//! Writes a changed document into its YAML text: unchanged parts keep their lines, order and comments.
//!
//! Only block notation is edited. New values, and changed ones in flow notation, are formatted by the caller. A text with
//! anchors, aliases, tags or several documents is not edited. The result is read again, so it is the changed document or
//! nothing.

use std::borrow::Cow;

use granit_parser::{Event, Parser, StructureStyle};
use serde_json::{Map, Value, json};

use super::yaml::documents;

/// Maximum number of comparisons of list entries.
const MOST_COMPARISONS: usize = 16 << 20;

/// A value in the text. Lines and columns start at 0.
struct Node {
    line: usize,
    column: usize,
    shape: Shape,
}

enum Shape {
    /// A scalar, or a collection in flow notation.
    Whole,
    Mapping(Vec<Entry>),
    Sequence(Vec<Item>),
}

struct Entry {
    key: String,
    line: usize,
    column: usize,
    value: Node,
}

struct Item {
    /// Line and column of the dash.
    line: usize,
    column: usize,
    value: Node,
}

/// The text of the only document in `text`, changed to `new`. `write` writes a value as YAML in block notation. `None` if the text
/// can't be edited.
#[must_use]
pub fn edited(text: &str, new: &Value, write: &dyn Fn(&Value) -> Option<String>) -> Option<String> {
    let old = documents(text).ok().filter(|documents| documents.len() == 1)?.pop()?;
    let mut editor = Editor { lines: text.lines().map(Cow::Borrowed).collect(), write };
    let root = read(text, &editor.lines)?;
    let Shape::Mapping(entries) = &root.shape else { return None };
    if old == *new {
        return Some(text.to_owned());
    }
    let start = entries.first()?.line;
    let end = editor.lines.len();
    let mut result: Vec<String> = editor.lines.get(..start)?.iter().map(|line| line.to_string()).collect();
    result.extend(editor.mapping(entries, [start, end], old.as_object()?, new.as_object()?)?);
    let mut result = result.join("\n");
    result.push('\n');
    let is_same = documents(&result).is_ok_and(|read| read.len() == 1 && read.first() == Some(new));
    is_same.then_some(result)
}

struct Editor<'a> {
    lines: Vec<Cow<'a, str>>,
    write: &'a dyn Fn(&Value) -> Option<String>,
}

impl Editor<'_> {
    /// The lines of a mapping. `range` has its first line, and the first one after it.
    fn mapping(
        &mut self,
        entries: &[Entry],
        [start, end]: [usize; 2],
        old: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Option<Vec<String>> {
        let mut floor = start;
        let mut starts = Vec::new();
        for entry in entries {
            starts.push(self.with_comments(entry.line, floor));
            floor = entry.line + 1;
        }
        starts.push(end);
        let mut lines = Vec::new();
        for (entry, range) in entries.iter().zip(starts.windows(2)) {
            let (&[start, end], Some(after)) = (range, new.get(&entry.key)) else { continue };
            let before = old.get(&entry.key)?;
            if before == after {
                self.copy([start, end], &mut lines)?;
                continue;
            }
            self.copy([start, entry.line], &mut lines)?;
            lines.extend(self.entry(entry, end, before, after)?);
        }
        let column = entries.first()?.column;
        for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
            lines.extend(self.written(&json!({key: value}), column, "")?);
        }
        Some(lines)
    }

    /// The lines of a changed entry.
    fn entry(&mut self, entry: &Entry, end: usize, before: &Value, after: &Value) -> Option<Vec<String>> {
        let first = match &entry.value.shape {
            Shape::Mapping(entries) => entries.first().map(|first| first.line),
            Shape::Sequence(items) => items.first().map(|first| first.line),
            Shape::Whole => None,
        };
        let is_filled = after.as_object().is_some_and(|members| !members.is_empty())
            || after.as_array().is_some_and(|items| !items.is_empty());
        let Some(first) = first.filter(|first| *first > entry.line && is_filled) else {
            return self.written(&json!({entry.key.as_str(): after}), entry.column, "");
        };
        let start = self.with_comments(first, entry.line + 1);
        let inner = match (&entry.value.shape, before, after) {
            (Shape::Mapping(entries), Value::Object(before), Value::Object(after)) => {
                self.mapping(entries, [start, end], before, after)?
            }
            (Shape::Sequence(items), Value::Array(before), Value::Array(after)) => {
                self.sequence(items, [start, end], before, after)?
            }
            _ => return self.written(&json!({entry.key.as_str(): after}), entry.column, ""),
        };
        let mut lines = Vec::new();
        self.copy([entry.line, start], &mut lines)?;
        lines.extend(inner);
        Some(lines)
    }

    /// The lines of a list.
    fn sequence(
        &mut self,
        items: &[Item],
        [start, end]: [usize; 2],
        old: &[Value],
        new: &[Value],
    ) -> Option<Vec<String>> {
        let mut floor = start;
        let mut starts = Vec::new();
        for item in items {
            starts.push(self.with_comments(item.line, floor));
            floor = item.line + 1;
        }
        starts.push(end);
        let column = items.first()?.column;
        let mut lines = Vec::new();
        for (after, known) in new.iter().zip(counterparts(old, new)?) {
            let known =
                known.and_then(|known| Some((items.get(known)?, old.get(known)?, starts.get(known..known + 2)?)));
            let Some((item, before, &[start, end])) = known else {
                lines.extend(self.written(after, column + 2, &format!("{}- ", " ".repeat(column)))?);
                continue;
            };
            if before == after {
                self.copy([start, end], &mut lines)?;
                continue;
            }
            self.copy([start, item.line], &mut lines)?;
            lines.extend(self.item(item, end, before, after)?);
        }
        Some(lines)
    }

    /// The lines of a changed list entry.
    fn item(&mut self, item: &Item, end: usize, before: &Value, after: &Value) -> Option<Vec<String>> {
        let (Shape::Mapping(entries), Value::Object(before), Value::Object(members)) =
            (&item.value.shape, before, after)
        else {
            return self.written(after, item.column + 2, &format!("{}- ", " ".repeat(item.column)));
        };
        if members.is_empty() {
            return self.written(after, item.column + 2, &format!("{}- ", " ".repeat(item.column)));
        }
        // Without its dash the first line is like the others, and its entry may be removed.
        let line = self.lines.get_mut(item.line)?;
        *line = Cow::Owned(with_letter(line, item.column, ' ')?);
        let mut lines = self.mapping(entries, [item.line, end], before, members)?;
        let first = lines.iter_mut().find(|line| !is_aside(line))?;
        *first = with_letter(first, item.column, '-')?;
        Some(lines)
    }

    /// The lines of a formatted value, with `first` before the first one.
    fn written(&self, value: &Value, column: usize, first: &str) -> Option<Vec<String>> {
        let text = (self.write)(value)?;
        let indent = " ".repeat(column);
        let line = |(number, line): (usize, &str)| match (number, first.is_empty()) {
            (0, false) => format!("{first}{line}"),
            _ if line.is_empty() => String::new(),
            _ => format!("{indent}{line}"),
        };
        Some(text.lines().enumerate().map(line).collect())
    }

    fn copy(&self, [start, end]: [usize; 2], lines: &mut Vec<String>) -> Option<()> {
        lines.extend(self.lines.get(start..end)?.iter().map(|line| line.to_string()));
        Some(())
    }

    /// The first of the comments directly above a line, but not above `floor`.
    fn with_comments(&self, line: usize, floor: usize) -> usize {
        let mut first = line;
        while first > floor && self.lines.get(first - 1).is_some_and(|line| is_aside(line)) {
            first -= 1;
        }
        first
    }
}

/// Whether a line is a comment or empty.
fn is_aside(line: &str) -> bool {
    let text = line.trim_start();
    text.is_empty() || text.starts_with('#')
}

/// The line with another letter in a column.
fn with_letter(line: &str, column: usize, letter: char) -> Option<String> {
    let before = line.get(..column)?;
    let after = line.get(column + 1..)?;
    Some(format!("{before}{letter}{after}"))
}

/// For each new entry, the position of the old one that it continues. Old ones keep their order.
fn counterparts(old: &[Value], new: &[Value]) -> Option<Vec<Option<usize>>> {
    if old.len().saturating_mul(new.len()) > MOST_COMPARISONS {
        return None;
    }
    let width = new.len() + 1;
    // The longest common part of the rest, by position in both lists.
    let mut longest = vec![0_usize; (old.len() + 1) * width];
    for (row, before) in old.iter().enumerate().rev() {
        for (position, after) in new.iter().enumerate().rev() {
            let at = |row: usize, position: usize| longest.get(row * width + position).copied().unwrap_or_default();
            let length = match is_same(before, after) {
                true => at(row + 1, position + 1) + 1,
                false => at(row + 1, position).max(at(row, position + 1)),
            };
            *longest.get_mut(row * width + position)? = length;
        }
    }
    let at = |row: usize, position: usize| longest.get(row * width + position).copied().unwrap_or_default();
    let mut found = Vec::new();
    let mut row = 0;
    for (position, after) in new.iter().enumerate() {
        while row < old.len()
            && !old.get(row).is_some_and(|before| is_same(before, after))
            && at(row + 1, position) == at(row, position)
        {
            row += 1;
        }
        let is_counterpart = old.get(row).is_some_and(|before| is_same(before, after));
        found.push(is_counterpart.then_some(row));
        row += usize::from(is_counterpart);
    }
    Some(found)
}

/// Whether an entry is the other one, possibly changed: entries of these lists have a name or a version.
fn is_same(before: &Value, after: &Value) -> bool {
    let is_equal = |member: &str| before[member] == after[member];
    let is_named = ["name", "version"].into_iter().any(|member| before[member].is_string());
    before == after || is_named && is_equal("name") && is_equal("version")
}

/// An incomplete collection.
struct Open {
    line: usize,
    column: usize,
    shape: Shape,
    /// The key whose value follows.
    key: Option<(String, usize, usize)>,
}

/// Reads the positions of the only document.
fn read(text: &str, lines: &[Cow<'_, str>]) -> Option<Node> {
    let mut open: Vec<Open> = Vec::new();
    let mut flow = 0_usize;
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.ok()?;
        let (line, column) = (span.start.line().saturating_sub(1), span.start.col());
        let done = match event {
            Event::Alias(..) => return None,
            Event::Scalar(_, _, anchor, ref tag) if anchor != 0 || tag.is_some() => return None,
            Event::MappingStart(_, anchor, ref tag) | Event::SequenceStart(_, anchor, ref tag)
                if anchor != 0 || tag.is_some() =>
            {
                return None;
            }
            Event::MappingStart(style, ..) | Event::SequenceStart(style, ..)
                if flow > 0 || style == StructureStyle::Flow =>
            {
                flow += 1;
                if flow > 1 {
                    continue;
                }
                open.push(Open { line, column, shape: Shape::Whole, key: None });
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd if flow > 1 => {
                flow -= 1;
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open { line, column, shape: Shape::Mapping(Vec::new()), key: None });
                continue;
            }
            Event::SequenceStart(..) => {
                open.push(Open { line, column, shape: Shape::Sequence(Vec::new()), key: None });
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => {
                flow = 0;
                let Open { line, column, shape, .. } = open.pop()?;
                Node { line, column, shape }
            }
            Event::Scalar(key, ..) if flow == 0 && is_key(&open) => {
                open.last_mut()?.key = Some((key.into_owned(), line, column));
                continue;
            }
            Event::Scalar(..) if flow == 0 => Node { line, column, shape: Shape::Whole },
            _ => continue,
        };
        match open.last_mut() {
            None => root = Some(done),
            Some(around) => add(around, done, lines)?,
        }
    }
    root
}

fn is_key(open: &[Open]) -> bool {
    open.last().is_some_and(|around| matches!(around.shape, Shape::Mapping(_)) && around.key.is_none())
}

fn add(around: &mut Open, value: Node, lines: &[Cow<'_, str>]) -> Option<()> {
    match &mut around.shape {
        Shape::Mapping(entries) => {
            let (key, line, column) = around.key.take()?;
            entries.push(Entry { key, line, column, value });
        }
        Shape::Sequence(items) => {
            let (line, column) = (value.line, dash(lines.get(value.line)?, value.column)?);
            items.push(Item { line, column, value });
        }
        Shape::Whole => return None,
    }
    Some(())
}

/// The column of the dash before a list entry on the same line.
fn dash(line: &str, column: usize) -> Option<usize> {
    let before = line.get(..column)?.trim_end();
    before.strip_suffix('-').map(str::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compact YAML: flow notation is also YAML.
    fn write(value: &Value) -> Option<String> {
        match value.as_object() {
            Some(members) => Some(members.iter().map(|(key, value)| format!("{key}: {value}\n")).collect()),
            None => Some(value.to_string()),
        }
    }

    const TEXT: &str = "\
# The profile.
kind: CloudProfile # here
spec:
  # Images come first.
  images:
  # The newest is above.
  - name: os
    versions:
    # In use.
    - version: 1.0.0
      cri: [{name: containerd}] # one
    - {version: 0.9.0}

  # Types.
  types:
    - name: m
      cpu: \"4\"
";

    fn change(edit: impl Fn(&mut Value)) -> String {
        let mut new = documents(TEXT).unwrap().remove(0);
        edit(&mut new);
        edited(TEXT, &new, &write).unwrap()
    }

    #[test]
    fn unchanged_parts_keep_their_lines() {
        assert_eq!(change(|_| ()), TEXT);
        let added = change(|profile| {
            let versions = profile["spec"]["images"][0]["versions"].as_array_mut().unwrap();
            versions.insert(0, json!({"version": "1.1.0"}));
        });
        assert_eq!(added, TEXT.replace("    # In use.\n", "    - version: \"1.1.0\"\n    # In use.\n"));
        let changed =
            change(|profile| profile["spec"]["images"][0]["versions"][0]["classification"] = "deprecated".into());
        assert_eq!(changed, TEXT.replace(" # one\n", " # one\n      classification: \"deprecated\"\n"));
        let removed = change(|profile| {
            profile["spec"]["images"][0]["versions"].as_array_mut().unwrap().remove(0);
            profile["spec"]["types"][0].as_object_mut().unwrap().remove("name");
        });
        assert_eq!(
            removed,
            TEXT.replace("    # In use.\n    - version: 1.0.0\n      cri: [{name: containerd}] # one\n", "")
                .replace("    - name: m\n      cpu", "    - cpu")
        );
        let scalar = change(|profile| profile["spec"]["types"][0]["cpu"] = "8".into());
        assert_eq!(scalar, TEXT.replace("\"4\"", "\"8\""));
        let deleted = change(|profile| drop(profile["spec"].as_object_mut().unwrap().remove("types")));
        assert_eq!(deleted, TEXT.split("\n  # Types.").next().unwrap());
    }

    #[test]
    fn texts_that_cannot_be_edited_are_left() {
        for text in
            ["a: &x 1\nb: 2\n", "a: !!str 1\nb: 2\n", "{a: 1, b: 2}", "a: 1\nb: 2\n---\nc: 3\n", "- a\n", "a: ["]
        {
            let new = json!({"a": 1, "b": 3});
            assert_eq!(edited(text, &new, &write), None, "{text}");
        }
    }
}
