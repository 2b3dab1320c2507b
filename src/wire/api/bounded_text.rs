//! Texts for people with strings from untrusted sources, such as a cloud, a driver, or the owner of a shoot. Every text
//! is escaped and bounded here. Truncated lists end with the number of omitted items.
//!
//! Sizes are the bytes that the API server writes to etcd, which accepts 1.5 MiB for a whole object.

use std::borrow::Cow;
use std::fmt::Display;

/// Replaces omitted text.
const LEFT_OUT: &str = " … ";
/// Minimum size of an item before items are omitted.
const LEAST_OF_ITEM: usize = 1024;

/// Limits for a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Maximum number of items.
    pub items: usize,
    /// Maximum size of the whole text.
    pub bytes: usize,
}

impl Bound {
    /// A limit on the size only.
    #[must_use]
    pub const fn bytes(bytes: usize) -> Self {
        Self { items: usize::MAX, bytes }
    }
}

/// Escapes control characters and invisible characters, such as those that change the writing direction, as `\u{202e}`.
/// Line breaks and tabs stay, because clouds respond with whole documents.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_deceptive(character) {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Joins the lines of a text by blanks.
#[must_use]
pub fn in_one_line(text: &str) -> Cow<'_, str> {
    if !text.contains('\n') {
        return Cow::Borrowed(text);
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Cow::Owned(lines.join(" "))
}

/// Whether a character can make a terminal or page display something other than the text.
pub fn is_deceptive(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\t')
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                // XML can't have them.
                | '\u{fffe}'
                | '\u{ffff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// The position of the first deceptive character.
#[must_use]
pub fn first_deceptive(text: &str) -> Option<usize> {
    // Most output is plain ASCII, which is faster to search by bytes.
    let is_plain = |byte: &u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
    let start = text.bytes().position(|byte| !is_plain(&byte))?;
    let (_, rest) = text.split_at_checked(start)?;
    Some(start + rest.find(is_deceptive)?)
}

/// The size of a text in JSON as the API server writes it, with HTML escapes.
#[must_use]
pub fn size(text: &str) -> usize {
    text.chars().map(size_of).sum()
}

fn size_of(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\t' => 2,
        '<' | '>' | '&' => 6,
        other => other.len_utf8(),
    }
}

/// The first characters of a text, escaped.
#[must_use]
pub fn beginning(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => escaped(text).into_owned(),
        Some((end, _)) => format!("{}…", escaped(text.get(..end).unwrap_or_default())),
    }
}

/// Escapes a text and shortens it to `bytes`. The middle is omitted, because counts are at the beginning and the end.
#[must_use]
pub fn shortened(text: &str, bytes: usize) -> String {
    let text = escaped(text);
    if size(&text) <= bytes {
        return text.into_owned();
    }
    let left = bytes.saturating_sub(size(LEFT_OUT));
    let at_the_end = left / 4;
    let head = text.len() - behind(text.chars(), left - at_the_end, text.len());
    let tail = behind(text.chars().rev(), at_the_end, text.len());
    let head = text.get(..head);
    let tail = text.get(tail..);
    let short = format!("{}{LEFT_OUT}{}", head.unwrap_or_default(), tail.unwrap_or_default());
    // If not even the ellipsis fits, the result is empty.
    if size(&short) <= bytes { short } else { String::new() }
}

/// The number of bytes of a text of `length` bytes that remain after the fitting characters.
fn behind(characters: impl Iterator<Item = char>, bytes: usize, length: usize) -> usize {
    let mut size = 0;
    let fitting = characters.take_while(|character| {
        size += size_of(*character);
        size <= bytes
    });
    length - fitting.map(char::len_utf8).sum::<usize>()
}

/// Joins the items, each formatted by `text_of` within a limit. If not all fit, each gets an equal share, and `rest`
/// formats the number of omitted items with its separator.
#[must_use]
pub fn joined<T>(
    items: &[T],
    separator: &str,
    bound: Bound,
    text_of: impl Fn(&T, usize) -> String,
    rest: impl Fn(&[T]) -> String,
) -> String {
    let listed = items.len().min(bound.items);
    let reserved = if items.len() > listed { size(&rest(items)) } else { 0 };
    let whole = bound.bytes.saturating_sub(reserved);
    let (text, count) = joined_within(&items[..listed], separator, whole, whole, &text_of);
    if count == items.len() {
        return text;
    }
    if count == listed {
        return text + &rest(&items[count..]);
    }
    let whole = bound.bytes.saturating_sub(size(&rest(items)));
    let share = (whole / listed).saturating_sub(size(separator)).max(LEAST_OF_ITEM.min(whole / 2));
    let (text, count) = joined_within(&items[..listed], separator, whole, share, &text_of);
    if count == items.len() { text } else { text + &rest(&items[count..]) }
}

/// Joins the first items that fit, and returns their number.
fn joined_within<T>(
    items: &[T],
    separator: &str,
    bytes: usize,
    share: usize,
    text_of: impl Fn(&T, usize) -> String,
) -> (String, usize) {
    let mut text = String::new();
    let mut taken = 0;
    for (index, item) in items.iter().enumerate() {
        let separator = if index == 0 { "" } else { separator };
        let next = shortened(&text_of(item, share), share);
        taken += size(separator) + size(&next);
        if taken > bytes {
            return (text, index);
        }
        text.push_str(separator);
        text.push_str(&next);
    }
    (text, items.len())
}

/// Joins texts: `a; b; and 3 more`.
#[must_use]
pub fn listed(texts: &[String], bytes: usize) -> String {
    let rest = |rest: &[String]| format!("; and {} more", rest.len());
    joined(texts, "; ", Bound::bytes(bytes), |text, bytes| shortened(text, bytes), rest)
}

/// Joins names: `a, b and 3 more`.
#[must_use]
pub fn named<T: AsRef<str>>(names: &[T], bound: Bound) -> String {
    let rest = |rest: &[T]| format!(" and {} more", rest.len());
    joined(names, ", ", bound, |name, bytes| shortened(name.as_ref(), bytes), rest)
}

/// Joins a few items that need no escaping and no limit: `a, b and c`.
#[must_use]
pub fn enumerated<T: Display>(items: &[T]) -> String {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    match &texts[..] {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => texts.concat(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts that are long, or have many bytes, escapes or deceptive characters.
    fn any_text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "[a-z ]{1,20}",
            "[<>&\"\\\\\n\t]{1,20}",
            "[\u{0}-\u{1f}\u{7f}-\u{9f}\u{202a}-\u{202e}\u{2066}-\u{2069}\u{feff}]{1,20}",
            "\\PC{1,20}",
            any::<String>(),
        ];
        (proptest::collection::vec(piece, 0..8), 1_usize..200).prop_map(|(pieces, times)| pieces.concat().repeat(times))
    }

    #[test]
    fn texts_that_fit_are_as_they_were() {
        let parts = ["a".to_owned(), "b: \"c\"\n\td".to_owned()];
        assert_eq!(listed(&parts, 100), "a; b: \"c\"\n\td");
        assert_eq!(named(&["a", "b"], Bound { items: 2, bytes: 100 }), "a, b");
        assert_eq!(named(&["a", "b", "c"], Bound { items: 2, bytes: 100 }), "a, b and 1 more");
        assert_eq!(beginning("übel", 4), "übel");
        assert_eq!(beginning("übel", 2), "üb…");
        assert_eq!(escaped("a\u{202e}b\u{1b}[31m\r\u{200b}é界"), "a\\u{202e}b\\u{1b}[31m\\r\\u{200b}é界");
    }

    #[test]
    fn counts_omitted_items() {
        let parts: Vec<String> = (0..1000).map(|number| format!("{number}: {}", "x".repeat(4000))).collect();
        let text = listed(&parts, 16 * 1024);
        assert!(text.starts_with("0: xxx") && text.ends_with("; and 985 more"), "{}", &text[text.len() - 40..]);
        assert_eq!(text.matches("; ").count(), 15);
        assert!(listed(&parts[..1], 100).len() <= 100);
    }

    proptest! {
        #[test]
        fn finds_first_deceptive_character(text in any_text()) {
            prop_assert_eq!(first_deceptive(&text), text.find(is_deceptive));
        }

        #[test]
        fn texts_stay_within_bound(texts in proptest::collection::vec(any_text(), 0..40), bytes in 40_usize..20_000) {
            let all = listed(&texts, bytes);
            prop_assert!(size(&all) <= bytes, "{} of {bytes} bytes", size(&all));
            prop_assert!(!all.contains(is_deceptive));
            prop_assert_eq!(shortened(&all, bytes), all.clone(), "once is enough");
            // The size in Go's encoding/json.
            let json = serde_json::to_string(&all).unwrap_or_default();
            let of_go: usize = json.chars().map(|one| if "<>&".contains(one) { 6 } else { one.len_utf8() }).sum();
            prop_assert!(of_go <= bytes + 2, "{of_go} bytes in JSON");
            let names = named(&texts, Bound { items: 5, bytes });
            prop_assert!(size(&names) <= bytes, "{} of {bytes} bytes", size(&names));
            if texts.len() > 5 {
                prop_assert!(names.ends_with(" more"), "{names}");
            }
        }
    }
}
