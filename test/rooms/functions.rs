//! Functions and their lengths, as formatted by rustfmt.

use regex::Regex;

/// A function: its name, and its number of lines, from the one with its name to its closing brace.
pub(crate) fn functions(code: &str) -> Vec<(String, usize)> {
    let head = Regex::new(r"^(\s*)(?:pub(?:\([^)]*\))? )?(?:const )?(?:async )?fn (\w+)").unwrap();
    let lines: Vec<&str> = code.lines().collect();
    let heads = lines.iter().enumerate().filter_map(|(first, line)| Some((first, head.captures(line)?)));
    heads.map(|(first, head)| (head[2].to_owned(), length(&lines[first..], &head[1]))).collect()
}

fn length(lines: &[&str], indent: &str) -> usize {
    let is_last = |line: &str| match line.strip_prefix(indent) {
        // A function without a body, or one that fits on a line.
        Some(rest) => rest == "}" || (!rest.starts_with(' ') && (rest.ends_with(';') || rest.ends_with(" }"))),
        None => false,
    };
    lines.iter().position(|line| is_last(line)).map_or(lines.len(), |last| last + 1)
}
