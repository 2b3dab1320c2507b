//! The reference page says what the commands say.

use clap::CommandFactory;
use gardener_extension_worker::cli::{Arguments, reference};

use crate::binary::run;
use crate::golden::assert_same;

#[test]
fn the_page_is_current() {
    assert_same("docs/cli.md", &reference());
}

#[test]
fn every_command_has_an_example() {
    for command in Arguments::command().get_subcommands() {
        let help = run(&[command.get_name(), "--help"]).succeeded().stdout;
        assert!(help.contains("Example"), "{}:\n{help}", command.get_name());
    }
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&["completions", shell]).succeeded().stdout;
        assert!(script.contains("explain"), "{shell}");
    }
    assert_eq!(run(&["completions", "cobol"]).code, 2);
}
