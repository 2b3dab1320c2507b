//! No output format lets text from a profile run as a command of a pipeline's runner.

use serde_json::Value;

use super::{AT, example};
use crate::binary::{Outcome, command, outcome};

/// Names of a machine type that a runner would parse as commands.
const HOSTILE: [&str; 5] = [
    "##[set-output name=a]b",
    "x ##vso[task.setvariable variable=a]b",
    r"x\n::stop-commands::a",
    "::error file=a::b",
    r"###[group]##[x] https://example.org <b> \uFFFE",
];

/// The commands that runners detect by their own rules, including those that the program intends.
fn commands(text: &str) -> Vec<String> {
    let is_command = |line: &&str| {
        let mut marks = line.match_indices("##").map(|(at, _)| &line[at + 2..]);
        let is_word = |word: &str| word.chars().all(|one| one.is_ascii_alphanumeric());
        let has_mark = marks.any(|behind| behind.split_once('[').is_some_and(|(word, _)| is_word(word)));
        has_mark || line.trim_start().starts_with("::")
    };
    text.split(['\n', '\r']).filter(is_command).map(str::to_owned).collect()
}

/// Checks that a text is valid in a format, and returns the number of intended commands in it.
type Evaluate = fn(&str) -> usize;

fn is_text(_: &str) -> usize {
    0
}

fn is_json(text: &str) -> usize {
    serde_json::from_str::<Value>(text).unwrap();
    0
}

fn is_xml(text: &str) -> usize {
    let mut reader = quick_xml::Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    while reader.read_event().unwrap() != quick_xml::events::Event::Eof {}
    // XML does not allow this character, not even escaped.
    assert!(!text.contains(['\u{fffe}', '\u{ffff}']));
    0
}

fn is_csv(text: &str) -> usize {
    let (mut columns, mut is_quoted) = (vec![1], false);
    for character in text.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => *columns.last_mut().unwrap() += 1,
            '\n' if !is_quoted => columns.push(1),
            _ => {}
        }
    }
    columns.pop();
    assert!(columns.iter().all(|one| *one == 11), "{columns:?}");
    0
}

fn is_commands(text: &str) -> usize {
    let is_finding = |line: &&str| ["::error ", "::warning ", "::notice "].iter().any(|one| line.starts_with(one));
    assert!(text.lines().all(|line| is_finding(&line)), "{text}");
    text.lines().count()
}

fn output(arguments: &[&str], profile: &str, variable: &str) -> Outcome {
    let mut command = command(&[&["cloudprofile"], arguments, &AT].concat());
    command.env(variable, "true").env("COLUMNS", "60");
    outcome(command, profile)
}

#[test]
fn no_format_prints_a_command_of_a_runner() {
    let formats: [(&[&str], Evaluate); 9] = [
        (&["lint", "-", "-otable"], is_text),
        (&["lint", "-", "-ojson"], is_json),
        (&["lint", "-", "-osarif"], is_json),
        (&["lint", "-", "-ojunit"], is_xml),
        (&["lint", "-", "-ogithub"], is_commands),
        (&["matrix", "-", "-otable"], is_text),
        (&["matrix", "-", "-ojson"], is_json),
        (&["matrix", "-", "-ocsv"], is_csv),
        (&["matrix", "-", "-ohtml"], is_text),
    ];
    for variable in ["GITHUB_ACTIONS", "TF_BUILD", "GITLAB_CI"] {
        for hostile in HOSTILE {
            let profile = example("azure").replace("name: Standard_D4s_v5,", &format!("name: \"{hostile}\","));
            for (arguments, evaluate) in formats {
                let Outcome { stdout, stderr, .. } = output(arguments, &profile, variable);
                assert!(!stdout.is_empty(), "{arguments:?}: {stderr}");
                let meant = evaluate(&stdout);
                let found = commands(&stdout);
                assert_eq!(found.len(), meant, "{arguments:?} {hostile}: {found:?}");
                assert_eq!(commands(&stderr), [""; 0], "{arguments:?} {hostile}");
            }
        }
    }
}
