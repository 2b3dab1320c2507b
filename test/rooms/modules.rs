//! Dependencies between modules: through `use`, and through paths that begin with `crate`, `self`, `super` or a child's
//! name.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use regex::Regex;

use crate::sources::Source;

/// The modules that each module uses, by their paths from `crate`.
pub(crate) struct Modules(BTreeMap<String, BTreeSet<String>>);

impl Modules {
    pub(crate) fn of(sources: &[Source]) -> Self {
        let named: BTreeMap<String, &Source> = sources.iter().map(|source| (module(&source.file), source)).collect();
        let uses = Regex::new(r"\buse ([^;]+);").unwrap();
        let paths = Regex::new(r"\b(?:crate|super|self)(?:::\w+)+").unwrap();
        let mut modules = BTreeMap::new();
        for (name, source) in &named {
            let mut mentioned = Vec::new();
            for tree in uses.captures_iter(&source.code) {
                expand("", &tree[1].split_whitespace().collect::<Vec<_>>().join(" "), &mut mentioned);
            }
            mentioned.extend(paths.find_iter(&source.code).map(|path| path.as_str().to_owned()));
            let used = mentioned.iter().filter_map(|path| resolve(name, path, &named)).filter(|used| used != name);
            modules.insert(name.clone(), used.collect());
        }
        Self(modules)
    }

    /// The shortest cycle through each module that is in one, within a room. A module and its submodules may use each
    /// other, because together they are one subject. A path that leaves them and returns is still a cycle.
    pub(crate) fn cycles(&self) -> BTreeSet<Vec<String>> {
        self.0.keys().filter_map(|module| self.cycle(module)).collect()
    }

    fn cycle(&self, start: &str) -> Option<Vec<String>> {
        let mut ways = VecDeque::from([vec![start.to_owned()]]);
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop_front() {
            for next in &self.0[way.last()?] {
                if !is_counted(way.last()?, next) {
                    continue;
                }
                if next == start {
                    return Some(from_the_first(way));
                }
                if seen.insert(next) {
                    ways.push_back([way.as_slice(), std::slice::from_ref(next)].concat());
                }
            }
        }
        None
    }
}

/// Rotates a cycle, so that it is the same whichever module it was found from.
fn from_the_first(mut cycle: Vec<String>) -> Vec<String> {
    let first = (0..cycle.len()).min_by_key(|index| &cycle[*index]).unwrap_or_default();
    cycle.rotate_left(first);
    cycle
}

fn is_counted(from: &str, to: &str) -> bool {
    let room = |module: &str| module.split("::").nth(1).map(str::to_owned);
    let is_within = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with("::"));
    room(from) == room(to) && !is_within(from, to)
}

/// `crate::a::b` of `a/b.rs` and of `a/b/mod.rs`.
fn module(file: &str) -> String {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    format!("crate::{}", path.replace('/', "::"))
}

/// The paths of a `use` tree.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((before, rest)) = tree.split_once('{') else {
        paths.push(format!("{prefix}{}", tree.split(" as ").next().unwrap_or_default()));
        return;
    };
    let (mut depth, mut start, inner) = (0, 0, rest.trim_end().strip_suffix('}').unwrap_or(rest));
    let prefix = format!("{prefix}{before}");
    for (position, next) in inner.char_indices() {
        match next {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&prefix, &inner[start..position], paths);
                start = position + 1;
            }
            _ => {}
        }
    }
    if !inner[start..].trim().is_empty() {
        expand(&prefix, &inner[start..], paths);
    }
}

/// The module to which a path refers: the longest part of the path that is a module.
fn resolve(module: &str, path: &str, modules: &BTreeMap<String, &Source>) -> Option<String> {
    let steps: Vec<&str> = path.trim().split("::").collect();
    let mut base: Vec<&str> = module.split("::").collect();
    let rest = match steps[0] {
        "crate" => {
            base = vec!["crate"];
            &steps[1..]
        }
        "self" => &steps[1..],
        "super" => {
            let up = steps.iter().take_while(|step| **step == "super").count();
            base.truncate(base.len().saturating_sub(up));
            &steps[up..]
        }
        child if modules.contains_key(&format!("{module}::{child}")) => &steps,
        _ => return None,
    };
    let full = [base.as_slice(), rest].concat();
    (2..=full.len()).rev().map(|length| full[..length].join("::")).find(|found| modules.contains_key(found))
}
