//! Finds given image names anywhere in a text. Prefers false positives to false negatives.

/// Names to find.
#[derive(Debug)]
pub(super) struct RequestedNames {
    /// In lower case, sorted and unique.
    names: Vec<String>,
    /// Whether any name begins with this byte.
    begins: Vec<bool>,
}

impl RequestedNames {
    pub(super) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let names = names.into_iter().filter(|name| !name.is_empty()).map(|name| name.to_lowercase());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names.dedup();
        let mut begins = vec![false; usize::from(u8::MAX) + 1];
        for first in names.iter().filter_map(|name| name.as_bytes().first()) {
            begins.iter_mut().skip(usize::from(*first)).take(1).for_each(|begins| *begins = true);
        }
        Self { names, begins }
    }

    /// Calls `found` for every name in a text, ignoring case. The characters next to a name must not be letters or
    /// digits, because any other character may separate words. Names within names are found too.
    ///
    /// All names are matched together, and only at positions where one can begin, so the time does not depend on
    /// their number.
    pub(super) fn find_in(&self, text: &str, mut found: impl FnMut(&str)) {
        if self.names.is_empty() {
            return;
        }
        let text = text.to_lowercase();
        let bytes = text.as_bytes();
        let mut before = None;
        for (position, first) in bytes.iter().enumerate() {
            if self.begins.get(usize::from(*first)) == Some(&true) && is_border(before, Some(first)) {
                self.at_beginning(bytes.get(position..).unwrap_or_default(), &mut found);
            }
            before = Some(first);
        }
    }

    /// Calls `found` for the names at the beginning of a text.
    fn at_beginning(&self, text: &[u8], found: &mut impl FnMut(&str)) {
        let mut known = self.names.as_slice();
        for (position, letter) in text.iter().enumerate() {
            // The remaining names have the same beginning as the text. They are sorted by their next byte, with ended
            // names first.
            let next = |name: &String| name.as_bytes().get(position).copied();
            let letter = Some(*letter);
            let (Some(low), Some(high)) = (known.first().map(next), known.last().map(next)) else { return };
            if letter < low || letter > high {
                return;
            }
            if low != high {
                let start = known.partition_point(|name| next(name) < letter);
                let end = known.partition_point(|name| next(name) <= letter);
                known = known.get(start..end).unwrap_or_default();
            }
            let Some(first) = known.first() else { return };
            if first.len() == position + 1 && is_border(text.get(position), text.get(position + 1)) {
                found(first);
            }
        }
    }
}

/// Whether a word can end between two bytes.
fn is_border(before: Option<&u8>, after: Option<&u8>) -> bool {
    let is_inside = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    !(is_inside(before) && is_inside(after))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn found(names: &[&str], text: &str) -> Vec<String> {
        let mut all = Vec::new();
        RequestedNames::new(names.iter().map(|name| (*name).to_owned()))
            .find_in(text, |name| all.push(name.to_owned()));
        all
    }

    #[test]
    fn a_name_is_found_between_any_signs_and_not_within_a_word() {
        let names = ["ami-0123abcd", "flatcar+nvidia-1.0", "flatcar", "/subscriptions/s/rg(images)/1.0.0", "ü 1", ""];
        for (text, expected) in [
            ("arn:aws:ec2:eu-central-1::image/AMI-0123abcd", vec!["ami-0123abcd"]),
            ("eu-west-1:ami-0123abcd,eu-west-2:ami-0123abcd", vec!["ami-0123abcd", "ami-0123abcd"]),
            ("image: 'flatcar+nvidia-1.0'", vec!["flatcar", "flatcar+nvidia-1.0"]),
            ("id=/Subscriptions/s/rg(images)/1.0.0?api=1", vec!["/subscriptions/s/rg(images)/1.0.0"]),
            ("x/subscriptions/s/rg(images)/1.0.0", vec!["/subscriptions/s/rg(images)/1.0.0"]),
            ("\u{fc} 1", vec!["ü 1"]),
            ("Ü 1;", vec!["ü 1"]),
            ("ami-0123abcdef xami-0123abcd ami-0123abc flatcars", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(found(&names, text), expected, "{text}");
        }
        assert_eq!(found(&[], "ami-0123abcd"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_stands_there(
            names in prop::collection::vec("[ab/+-]{1,4}", 0..6), text in "[abAB/+ (-]{0,30}"
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let lower = text.to_lowercase();
            let stands = |name: &&str| {
                lower.match_indices(*name).next().is_some() && (0..lower.len()).any(|start| {
                    let (before, rest) = lower.split_at(start);
                    let borders = |before: &str, after: &str| {
                        let is_inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
                        !(is_inside(before.chars().last()) && is_inside(after.chars().next()))
                    };
                    rest.strip_prefix(*name).is_some_and(|after| borders(before, name) && borders(name, after))
                })
            };
            let expected: BTreeSet<String> = names.iter().filter(|name| stands(name)).map(|name| (*name).to_owned()).collect();
            prop_assert_eq!(found(&names, &text).into_iter().collect::<BTreeSet<_>>(), expected);
        }
    }
}
