//! The reference page matches the help of the commands.

use gardener_extension_worker::cli::{Program, reference};

use crate::binary::run;
use crate::golden::assert_same;

#[test]
fn the_page_is_current() {
    assert_same("docs/cli.md", &reference(Program::SHIPPED));
}

#[test]
fn every_command_has_an_example() {
    let command = Program::SHIPPED.command();
    for command in command.get_subcommands() {
        assert_has_example(&[command.get_name()]);
        command.get_subcommands().for_each(|below| assert_has_example(&[command.get_name(), below.get_name()]));
    }
}

#[track_caller]
fn assert_has_example(command: &[&str]) {
    let help = run(&[command, &["--help"]].concat()).succeeded().stdout;
    assert!(help.contains("Example"), "{command:?}:\n{help}");
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&["completions", shell]).succeeded().stdout;
        assert!(script.contains("explain"), "{shell}");
    }
    assert_eq!(run(&["completions", "cobol"]).code, 2);
}
