//! `docs/cloudprofiles.md` explains every rule, and every example on the page has the documented result.

use gardener_extension_worker::resolved_profile::lint::Rule;
use serde_json::Value;

use super::{AT, example};
use crate::binary::{command, outcome};

/// Rules whose example does not fit into a few lines.
const WITHOUT_FRAGMENTS: [Rule; 1] = [Rule::Size];

/// The section of the page about a rule.
struct Section {
    rule: Rule,
    /// Fragments with a finding, each with its correction.
    fragments: Vec<(String, String)>,
}

fn sections() -> Vec<Section> {
    let page = std::fs::read_to_string(format!("{}/docs/cloudprofiles.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (_, findings) = page.split_once("\n## Findings\n").expect("a chapter about findings");
    let chapter = findings.split("\n## ").next().unwrap();
    let sections = chapter.split("\n### ").skip(1).map(|section| {
        let (id, text) = section.split_once('\n').unwrap();
        let rule = Rule::ALL.iter().copied().find(|rule| rule.id() == id).unwrap_or_else(|| panic!("no rule {id:?}"));
        let blocks = |kind: &str| -> Vec<String> {
            let fence = format!("```yaml {kind}\n");
            let starts = text.split(&fence).skip(1);
            starts.map(|block| block.split("\n```").next().unwrap().to_owned()).collect()
        };
        let (before, after) = (blocks("before"), blocks("after"));
        assert_eq!(before.len(), after.len(), "{id}");
        Section { rule, fragments: before.into_iter().zip(after).collect() }
    });
    sections.collect()
}

/// Replaces a fragment in the text and keeps the indent at that place.
fn with_fragment(text: &str, from: &str, to: &str) -> Option<String> {
    let (lines, expected): (Vec<&str>, Vec<&str>) = (text.lines().collect(), from.lines().collect());
    for start in 0..lines.len() {
        let found = lines.get(start..start + expected.len())?;
        // A fragment may begin in the middle of a line.
        let head = found[0].strip_suffix(expected[0]);
        let Some(head) = head else { continue };
        let indent: String = found[0].chars().take_while(|character| *character == ' ').collect();
        let rest = found.iter().zip(&expected).skip(1).all(|(found, expected)| *found == format!("{indent}{expected}"));
        if rest {
            let put = to
                .lines()
                .enumerate()
                .map(|(number, line)| if number == 0 { format!("{head}{line}") } else { format!("{indent}{line}") });
            let mut changed: Vec<String> = lines[..start].iter().map(|line| (*line).to_owned()).collect();
            changed.extend(put);
            changed.extend(lines[start + expected.len()..].iter().map(|line| (*line).to_owned()));
            return Some(changed.join("\n"));
        }
    }
    None
}

fn rules_found(text: &str) -> Vec<String> {
    let output = outcome(command(&[&["cloudprofile", "lint", "-", "-o", "json"][..], &AT].concat()), text);
    let document = output.json();
    let findings = document["profiles"][0]["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_rule_is_explained_in_order() {
    let explained: Vec<Rule> = sections().into_iter().map(|section| section.rule).collect();
    assert_eq!(explained, Rule::ALL);
}

#[test]
fn every_example_is_found_before_and_not_after() {
    let bases = ["azure", "aws"].map(example);
    for Section { rule, fragments } in sections() {
        if WITHOUT_FRAGMENTS.contains(&rule) {
            continue;
        }
        assert!(!fragments.is_empty(), "{rule} has no example");
        let applied = bases.iter().find_map(|base| {
            let applied =
                fragments.iter().try_fold(base.clone(), |text, (before, after)| with_fragment(&text, after, before));
            Some((base, applied?))
        });
        let (base, before) = applied.unwrap_or_else(|| panic!("{rule}: the fragments after are in no example profile"));
        let found = rules_found(&before);
        assert!(found.contains(&rule.id().to_owned()), "{rule} is not found before, but {found:?}:\n{before}");
        assert_eq!(rules_found(base), Vec::<String>::new(), "{rule}: the example profile is clean");
    }
}

#[test]
fn findings_link_to_their_section() {
    let text = example("azure").replace("classification: supported", "classification: stable");
    let output = outcome(command(&[&["cloudprofile", "lint", "-", "-o", "json"][..], &AT].concat()), &text).json();
    let finding = &output["profiles"][0]["findings"][0];
    assert_eq!(finding["documentation"], Value::from("docs/cloudprofiles.md#image-refused"));
}
