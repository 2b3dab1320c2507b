//! Aligned tables, fitted to the terminal width. The output stream removes colours if it is not a terminal.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use wire::api::bounded_text::escaped;

const GAP: usize = 2;
/// Characters after which a line may end. Names have none of them.
const BREAKABLE: &[char] = &[' ', ',', '/', ':', '='];
/// The same for paths of fields, such as `spec.workers[0].name`.
const BREAKABLE_IN_PATH: &[char] = &[' ', ',', '/', ':', '=', '.'];
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

    /// Natural column widths, reduced from the widest column until the table fits. Names are shortened only if columns with
    /// several words are not enough.
    fn widths(&self, available: usize) -> Vec<usize> {
        let natural = |(index, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            cells.map(|cell| cell.text.width()).max().unwrap_or_default().max(column.heading.width())
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(natural).collect();
        let gaps = GAP * widths.len().saturating_sub(1);
        let words: Vec<usize> = (0..widths.len()).map(|index| self.widest_word(index)).collect();
        for narrowest in [words, vec![NARROWEST; widths.len()]] {
            while widths.iter().sum::<usize>() + gaps > available {
                let wide = widths.iter_mut().zip(&narrowest).filter(|(width, narrowest)| **width > **narrowest);
                let Some((widest, _)) = wide.max_by_key(|(width, _)| **width) else { break };
                *widest -= 1;
            }
        }
        widths
    }

    /// Width of the widest text in a column that is not wrapped.
    fn widest_word(&self, index: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(index));
        let words =
            cells.flat_map(|cell| cell.text.split_inclusive(breakable(&cell.text))).map(|word| word.trim_end().width());
        words.max().unwrap_or_default().max(NARROWEST)
    }

    fn render_row(&self, row: &[Cell], widths: &[usize], indent: usize) -> String {
        let cells: Vec<Vec<String>> =
            row.iter().zip(widths).map(|(cell, width)| cell_lines(&cell.text, *width)).collect();
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

/// The characters after which a line of this text may end.
fn breakable(text: &str) -> &'static [char] {
    if text.contains('[') { BREAKABLE_IN_PATH } else { BREAKABLE }
}

/// The lines of a cell. A name that is too long is shortened in the middle, because a wrapped name can't be copied.
fn cell_lines(text: &str, width: usize) -> Vec<String> {
    let is_too_long = |word: &str| word.trim_end().width() > width;
    if !text.split_inclusive(breakable(text)).any(is_too_long) {
        return wrap(text, width);
    }
    let words = text.split_inclusive(breakable(text)).map(|word| match is_too_long(word) {
        true => middle_shortened(word, width),
        false => word.to_owned(),
    });
    wrap(&words.collect::<String>(), width)
}

/// `shoot--gar…workers-z1`: the beginning and the end of a name.
fn middle_shortened(name: &str, width: usize) -> String {
    let characters: Vec<char> = name.trim_end().chars().collect();
    let left = width.saturating_sub(1);
    let head: String = characters.iter().take(left.div_ceil(2)).collect();
    let tail: String = characters.iter().skip(characters.len().saturating_sub(left / 2)).collect();
    let blank = if name.ends_with(' ') { " " } else { "" };
    format!("{head}…{tail}{blank}")
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
    let may_end = breakable(text);
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
                character if may_end.contains(&character) => breakable = fits,
                _ => {}
            }
        }
        let first = rest.chars().next().map_or(rest.len(), char::len_utf8);
        // Break between words, unless that leaves most of the line empty.
        let end = match (behind_blank, breakable) {
            (blank, _) if blank * 2 > fits => blank,
            (0, 0) => name_at_beginning(rest).unwrap_or(fits.max(first)),
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

/// The end of a name with hyphens at the beginning of a text, with the character after which a line may end. Names stay
/// whole, so that they can be copied.
fn name_at_beginning(text: &str) -> Option<usize> {
    /// Names of Kubernetes are not longer.
    const LONGEST_NAME: usize = 253;
    let is_of_name = |character: char| character.is_ascii_alphanumeric() || "-._".contains(character);
    // A long text is not searched in full for each of its lines.
    let name: String = text.chars().take(LONGEST_NAME + 1).take_while(|character| is_of_name(*character)).collect();
    let next = text.get(name.len()..).and_then(|rest| rest.chars().next());
    let ends = next.is_none_or(|next| BREAKABLE.contains(&next));
    let is_name = name.contains('-') && name.len() <= LONGEST_NAME && ends;
    is_name.then_some(name.len() + next.map_or(0, char::len_utf8))
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
    fn names_are_shortened_in_the_middle() {
        let mut table = Table::new(["NAME", "TEXT"]);
        table.row(["shoot--garden--prod-workers-z1".into(), "several words that can be wrapped".into()]);
        let text = table.render(0, 50);
        assert!(text.contains("shoot--garden--prod-workers-z1"), "words are wrapped first: {text}");
        let text = table.render(0, 36);
        assert!(text.contains("shoot--gar…orkers-z1"), "{text}");
        assert!(text.lines().skip(1).all(|line| line.chars().count() <= 36), "{text}");
    }

    #[test]
    fn text_is_broken_where_it_may_be() {
        assert_eq!(wrap("aaa/bbb,ccc", 5), ["aaa/", "bbb,", "ccc"]);
        assert_eq!(wrap("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(wrap("über weite", 5), ["über", "weite"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("to shoot--a--web-z1 or", 10), ["to", "shoot--a--web-z1", "or"]);
        assert_eq!(wrap("see a/shoot--a--web-z1, or", 10), ["see a/", "shoot--a--web-z1,", "or"]);
        let long = wrap(&"x".repeat(1000), 10);
        assert!(long.len() == 100 && long.iter().all(|line| line.len() == 10));
    }
}
