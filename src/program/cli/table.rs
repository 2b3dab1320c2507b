//! Aligned tables, fitted to the terminal width. The output stream removes colours if it is not a terminal.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use wire::api::bounded_text::escaped;

const GAP: usize = 2;
/// Columns are not narrowed below this width.
const NARROWEST: usize = 14;

/// Rows below a heading.
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

struct Column {
    heading: &'static str,
    numeric: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(super) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: printable(&text.into()), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::new())
    }
}

impl Table {
    /// A table with these headings. A heading that starts with `>` aligns its column to the right; all empty means no
    /// heading.
    pub(super) fn new<const N: usize>(headings: [&'static str; N]) -> Self {
        let columns = headings
            .into_iter()
            .map(|heading| Column { heading: heading.trim_start_matches('>'), numeric: heading.starts_with('>') });
        Self { columns: columns.collect(), rows: Vec::new() }
    }

    pub(super) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.into());
    }

    /// Renders indented lines, at most `width` columns wide where the text can be wrapped.
    pub(super) fn render(&self, indent: usize, width: usize) -> String {
        let widths = self.widths(width.saturating_sub(indent));
        let heading: Vec<Cell> =
            self.columns.iter().map(|column| Cell::styled(column.heading, Style::new().dimmed())).collect();
        let has_heading = self.columns.iter().any(|column| !column.heading.is_empty());
        let heading = has_heading.then_some(&heading);
        heading.into_iter().chain(&self.rows).map(|row| self.render_row(row, &widths, indent)).collect()
    }

    /// Whether the table fits without wrapping.
    pub(super) fn fits(&self, indent: usize, width: usize) -> bool {
        self.widths(usize::MAX).iter().sum::<usize>() + GAP * self.columns.len().saturating_sub(1) + indent <= width
    }

    /// Natural column widths, reduced from the widest column until the table fits.
    fn widths(&self, available: usize) -> Vec<usize> {
        let natural = |(index, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            cells.map(|cell| cell.text.width()).max().unwrap_or_default().max(column.heading.width())
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(natural).collect();
        let gaps = GAP * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > available {
            let Some(widest) = widths.iter_mut().max().filter(|widest| **widest > NARROWEST) else { break };
            *widest -= 1;
        }
        widths
    }

    fn render_row(&self, row: &[Cell], widths: &[usize], indent: usize) -> String {
        let cells: Vec<Vec<String>> = row.iter().zip(widths).map(|(cell, width)| wrap(&cell.text, *width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        let mut text = String::new();
        for line in 0..height {
            let mut plain_end = text.len();
            text.push_str(&" ".repeat(indent));
            for (index, ((cell, width), column)) in row.iter().zip(widths).zip(&self.columns).enumerate() {
                let part = cells.get(index).and_then(|lines| lines.get(line)).map(String::as_str).unwrap_or_default();
                let padding = " ".repeat(width.saturating_sub(part.width()));
                let style = cell.style;
                if column.numeric {
                    text.push_str(&padding);
                }
                if !part.is_empty() {
                    text.push_str(&format!("{style}{part}{style:#}"));
                    plain_end = text.len();
                }
                if !column.numeric {
                    text.push_str(&padding);
                }
                text.push_str(&" ".repeat(GAP));
            }
            // Remove trailing blanks.
            text.truncate(plain_end);
            text.push('\n');
        }
        text
    }
}

/// Escapes untrusted text to a single line of predictable width.
pub(super) fn printable(text: &str) -> String {
    escaped(text).replace(['\n', '\t'], " ")
}

/// Wraps text with a hanging indent.
pub(super) fn paragraph(text: &str, style: Style, indent: usize, width: usize) -> String {
    let lines = wrap(&printable(text), width.saturating_sub(indent + 2));
    let line = |(index, line): (usize, &String)| {
        let blank = " ".repeat(if index == 0 { indent } else { indent + 2 });
        format!("{blank}{style}{line}{style:#}\n")
    };
    lines.iter().enumerate().map(line).collect()
}

/// The first names and the number of the rest.
pub(super) fn some<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let named = names.iter().take(most).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if names.len() > most { format!("{named} and {} more", names.len() - most) } else { named }
}

/// Wraps lines at `width` columns, preferably between words, then after punctuation, else anywhere.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while is_wider(rest, width.max(1)) {
        let mut used = 0;
        let mut fits = 0;
        let mut behind_blank = 0;
        let mut breakable = 0;
        for (start, character) in rest.char_indices() {
            used += character.width().unwrap_or_default();
            // A trailing blank needs no space.
            if used > width && character != ' ' {
                break;
            }
            fits = start + character.len_utf8();
            match character {
                ' ' => behind_blank = fits,
                ',' | '/' | ':' | '=' | '-' | '.' | '_' => breakable = fits,
                _ => {}
            }
        }
        let first = rest.chars().next().map_or(rest.len(), char::len_utf8);
        // Break between words, unless that leaves most of the line empty.
        let end = match (behind_blank, breakable) {
            (blank, _) if blank * 2 > fits => blank,
            (0, 0) => fits.max(first),
            (blank, breakable) => blank.max(breakable),
        };
        let (line, after) = rest.split_at(end);
        lines.push(line.trim_end().to_owned());
        rest = after.trim_start();
    }
    if !rest.is_empty() || lines.is_empty() {
        lines.push(rest.to_owned());
    }
    lines
}

/// Whether a text needs more columns. A long text is not measured in full for each of its lines.
fn is_wider(text: &str, width: usize) -> bool {
    /// More bytes than any printed text has for a column.
    const MOST_OF_COLUMN: usize = 64;
    text.len() > width.saturating_mul(MOST_OF_COLUMN) || text.width() > width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_where_it_may_be() {
        assert_eq!(wrap("aaa/bbb,ccc", 5), ["aaa/", "bbb,", "ccc"]);
        assert_eq!(wrap("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(wrap("über weite", 5), ["über", "weite"]);
        assert_eq!(wrap("", 5), [""]);
        let long = wrap(&"x".repeat(1000), 10);
        assert!(long.len() == 100 && long.iter().all(|line| line.len() == 10));
    }
}
