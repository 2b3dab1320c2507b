//! Colours and widths.

use crate::binary::{command, outcome, run};

const ARGUMENTS: [&str; 2] = ["explain", "test/cli/azure.yaml"];

#[test]
fn a_pipe_gets_no_colours() {
    assert!(!run(&ARGUMENTS).stdout.contains('\u{1b}'));
}

#[test]
fn no_color_wins_over_everything() {
    let mut forced = command(&ARGUMENTS);
    forced.env("CLICOLOR_FORCE", "1");
    assert!(outcome(forced, "").stdout.contains("\u{1b}[32mchosen"));
    let mut plain = command(&ARGUMENTS);
    plain.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
    assert_eq!(outcome(plain, "").stdout, run(&ARGUMENTS).stdout);
}

#[test]
fn tables_fit_the_width() {
    for columns in [100, 120, 200] {
        let mut narrow = command(&ARGUMENTS);
        narrow.env("COLUMNS", columns.to_string());
        for line in outcome(narrow, "").stdout.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
    }
}

#[test]
fn no_text_is_a_command_of_a_pipeline() {
    let text = crate::binary::example(&[("name: logs", "name: \"##[set-output name=a]b ::stop-commands::c\"")]);
    for arguments in [&["explain", "-"][..], &["render", "-"], &["render", "-", "-ojson"], &["render", "-", "-oresult"]]
    {
        for variable in ["GITHUB_ACTIONS", "TF_BUILD", "GITLAB_CI"] {
            let mut command = command(arguments);
            command.env(variable, "true").env("COLUMNS", "60");
            let outcome = outcome(command, &text);
            for output in [&outcome.stdout, &outcome.stderr] {
                let is_command = |line: &str| line.contains("##[") || line.trim_start().starts_with("::");
                assert!(!output.lines().any(is_command), "{arguments:?}: {output}");
            }
            assert!(outcome.stdout.contains("set-output"), "{arguments:?}: {outcome:?}");
        }
    }
}

#[test]
fn text_of_others_does_not_move_the_cursor() {
    let text = crate::binary::example(&[("name: logs", "name: \"lo\\e[2J\\u202Egs\"")]);
    for arguments in [&["explain", "-"][..], &["render", "-"], &["render", "-", "-ojson"], &["render", "-", "-oresult"]]
    {
        let outcome = outcome(command(arguments), &text);
        for output in [&outcome.stdout, &outcome.stderr] {
            assert!(!output.contains(['\u{1b}', '\u{202e}']), "{arguments:?}: {output}");
        }
        assert!(outcome.stdout.contains("202e"), "{arguments:?}: {outcome:?}");
    }
}
