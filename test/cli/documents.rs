//! Checks the documents: links have a target, commands are valid, and flags and test targets exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::binary::{command, outcome};

/// Flags of other programs, and of specifications, that documents mention.
const FLAGS_OF_OTHERS: [&str; 10] = [
    "--amd64",
    "--downloads",
    "--hasten-deletion",
    "--picture",
    "--reuse-values",
    "--roll-budget",
    "--sanitizer",
    "--tail",
    "--target-kubeconfig",
    "--tour",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All documents with their text, by path from the root.
pub(crate) fn documents() -> BTreeMap<PathBuf, String> {
    let mut documents = BTreeMap::new();
    for folder in [".", "docs", "fuzz", "test", "charts", "example"] {
        collect(&root().join(folder), folder != ".", &mut documents);
    }
    documents
}

fn collect(folder: &Path, deeply: bool, documents: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && deeply && !path.ends_with("target") {
            collect(&path, true, documents);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = std::fs::read_to_string(&path).unwrap();
            let path = path.strip_prefix(root()).unwrap_or(&path).components().filter(|part| part.as_os_str() != ".");
            documents.insert(path.collect(), text);
        }
    }
}

/// Lines outside of code blocks, and those of blocks of a shell or of no language. Tests run the `sh` blocks of some
/// pages; `bash` blocks need a cluster.
fn lines_of(text: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut prose, mut shell, mut block) = (Vec::new(), Vec::new(), None);
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), block) {
            (Some(language), None) => block = Some(language.trim()),
            (Some(_), Some(_)) => block = None,
            (None, None) => prose.push(line),
            (None, Some("sh" | "bash" | "")) => shell.push(line),
            (None, Some(_)) => {}
        }
    }
    (prose, shell)
}

/// Anchors that GitHub generates for headings, and explicit anchors.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in lines_of(text).0 {
        if let Some(heading) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim()) {
            let kept = heading.to_lowercase().replace(' ', "-");
            let anchor: String =
                kept.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_')).collect();
            let number = (1..).find(|number| !anchors.contains(&numbered(&anchor, *number))).unwrap_or(1);
            anchors.insert(numbered(&anchor, number));
        }
        anchors.extend(line.split("<a id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    anchors
}

fn numbered(anchor: &str, number: u32) -> String {
    if number == 1 { anchor.to_owned() } else { format!("{anchor}-{}", number - 1) }
}

/// Targets of links of the form `[…](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0))
}

#[test]
fn links_lead_somewhere() {
    let documents = documents();
    assert!(documents.len() > 10, "documents are missing: {:?}", documents.keys());
    let mut dead = Vec::new();
    for (path, text) in &documents {
        for target in lines_of(text).0.into_iter().flat_map(links) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { root().join(path) } else { root().join(path).parent().unwrap().join(file) };
            let Ok(file) = file.canonicalize() else {
                dead.push(format!("{}: {target}: no such file", path.display()));
                continue;
            };
            let is_known = || anchors(&std::fs::read_to_string(&file).unwrap_or_default()).contains(anchor);
            if !anchor.is_empty() && !is_known() {
                dead.push(format!("{}: {target}: no such heading", path.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// The words of each command in a shell block, without comments, pipes and redirections.
fn commands(lines: &[&str]) -> Vec<Vec<String>> {
    let joined = lines.join("\n").replace("\\\n", " ");
    let commands = joined.lines().flat_map(|line| {
        let line = line.split(" #").next().unwrap_or_default();
        line.split(['|', ';', '>']).map(str::to_owned).collect::<Vec<_>>()
    });
    let words = commands.map(|command| {
        let words = command.split_whitespace().map(|word| word.trim_matches(['\'', '"']).to_owned());
        // Skips environment variables before the command.
        words.skip_while(|word| word.contains('=') && !word.starts_with('-')).collect::<Vec<_>>()
    });
    words.filter(|words| !words.is_empty()).collect()
}

#[test]
fn commands_can_be_typed() {
    let manifests = ["", "example/local/", "example/tiny/", "release/", "src/decisions/", "src/wire/", "test/support/"];
    let manifests = manifests.map(|of| std::fs::read_to_string(root().join(of).join("Cargo.toml")).unwrap()).concat();
    let mut wrong = Vec::new();
    let mut own = 0;
    for (path, text) in documents() {
        for command in commands(&lines_of(&text).1) {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            let arguments = match words.as_slice() {
                ["gardener-extension-worker", arguments @ ..] | ["cargo", "run", "--", arguments @ ..] => arguments,
                ["cargo", rest @ ..] => {
                    for pair in rest.windows(2).filter(|pair| ["--test", "--bench", "-p"].contains(&pair[0])) {
                        if !manifests.contains(&format!("name = \"{}\"", pair[1])) {
                            wrong.push(format!("{}: {}: no such target", path.display(), words.join(" ")));
                        }
                    }
                    continue;
                }
                _ => continue,
            };
            own += 1;
            let arguments = ["gardener-extension-worker"].iter().chain(arguments).map(Into::into);
            if gardener_extension_worker::cli::Program::SHIPPED.parse(arguments).is_err() {
                wrong.push(format!("{}: {}", path.display(), words.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "these can't be typed:\n{}", wrong.join("\n"));
    assert!(own > 3, "only {own} commands were found");
}

#[test]
fn flags_exist() {
    let reference = std::fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let mut unknown = BTreeSet::new();
    for (path, text) in documents() {
        for code in lines_of(&text).0.into_iter().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            let flag = code.split(|end: char| !end.is_alphanumeric() && end != '-').next().unwrap_or_default();
            let is_flag = flag.len() > 3 && flag.starts_with("--");
            if is_flag && !reference.contains(flag) && !FLAGS_OF_OTHERS.contains(&flag) {
                unknown.insert(format!("{}: {code}", path.display()));
            }
        }
    }
    let unknown: Vec<_> = unknown.into_iter().collect();
    assert!(unknown.is_empty(), "these flags are not in docs/cli.md:\n{}", unknown.join("\n"));
}

#[test]
fn files_of_the_examples_exist() {
    let mut texts = documents();
    texts.insert(
        "docs/cli.md of groups".into(),
        ["takeover", "cloudprofile", "images"].map(|group| outcome(command(&[group, "--help"]), "").stdout).concat(),
    );
    let (mut missing, mut seen) = (BTreeSet::new(), 0);
    for (path, text) in texts {
        // Only `example/` at the beginning of a word is a path from the root.
        for (start, _) in text.match_indices("example/") {
            let before = text[..start].chars().next_back().unwrap_or(' ');
            let end = |letter: char| !(letter.is_ascii_alphanumeric() || "/._-".contains(letter));
            let named = text[start..].split(end).next().unwrap_or_default().trim_end_matches('.');
            let is_path = before.is_whitespace() || "`'\"(".contains(before);
            let is_example = named.get(8..9).is_some_and(|letter| letter != "I") && !named.contains("NAME");
            if is_path && is_example {
                seen += 1;
                if !root().join(named).exists() {
                    missing.insert(format!("{}: {named}", path.display()));
                }
            }
        }
    }
    assert!(seen > 50, "only {seen} were found");
    assert!(missing.is_empty(), "no such files: {missing:#?}");
}

#[test]
fn the_readme_matches_the_output() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let mut examples = 0;
    for part in readme.split("```sh\ngardener-extension-worker ").skip(1) {
        let (line, rest) = part.split_once("\n```\n```text\n").expect("a command has an output");
        let (output, _) = rest.split_once("```").expect("an output ends");
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let printed = outcome(command(&arguments), "").stdout;
        for line in output.lines().filter(|line| *line != "…") {
            assert!(printed.lines().any(|printed| printed == line), "{line:?} is not in:\n{printed}");
        }
        examples += 1;
    }
    assert_eq!(examples, 3);
}
