//! Generates `docs/cli.md` from the command definitions, so that it always matches `--help`.

use clap::{Arg, Command};

use super::exit::Exit;
use super::json_fields::{Field, documents};
use super::program::Program;

/// Kinds of evidence, the resulting answer, and the exit code.
const EVIDENCE: [[&str; 3]; 6] = [
    ["all inputs were read and evaluated", "the complete answer", "of the answer"],
    [
        "an input can't be read or evaluated",
        "begins with `INCOMPLETE` and the number of evaluated inputs; each problem is printed to stderr",
        "3",
    ],
    [
        "nothing matches the selection (a namespace, a name, a version, a type)",
        "none; the error names the searched inputs and the nearest match",
        "3",
    ],
    [
        "a truncated list (`metadata.continue`, `remainingItemCount`, `NextToken`)",
        "rejected like an unreadable input",
        "3",
    ],
    [
        "an input that part of the answer needs was not given",
        "that part is `unknown`, and the answer names the missing flag",
        "of the answer",
    ],
    ["a malformed entry in an image listing", "omits the entry and names it; locks and profiles are not written", "3"],
];

/// The reference page of a program.
#[must_use]
pub fn reference(program: Program) -> String {
    let mut command = program.command();
    command.build();
    let mut page = String::from(
        "# Commands\n\n<!-- Generated from the definitions. To regenerate it: UPDATE_GOLDEN=1 cargo test --test cli -->\n",
    );
    page.push_str(&format!("\n{}\n", about(&command)));
    page.push_str(
        "\nCommands print data to stdout, and everything else to stderr. Tables use the width of the terminal or of `COLUMNS`, \
         and 120 columns in a log. Output is only coloured on a terminal, and never if `NO_COLOR` is set. `explain` and \
         `why` never print values of Secrets or boot scripts.\n\n",
    );
    page.push_str("These are the exit codes of all commands. If several apply, 3 takes precedence, then the highest code.\n\n| code | meaning |\n|---|---|\n");
    page.extend(Exit::ALL.map(|exit| format!("| {} | {} |\n", exit.code(), exit.meaning())));
    page.push_str("\nEvery answer states its evidence in the headline, in the member `evidence` of JSON documents, and in the exit code.\n\n| evidence | answer | exit code |\n|---|---|---|\n");
    page.extend(EVIDENCE.map(|[evidence, result, code]| format!("| {evidence} | {result} | {code} |\n")));
    page.push('\n');
    let mut commands = Vec::new();
    collect(&command, "", &mut commands);
    for (name, command) in &commands {
        page.push_str(&format!("* [`{name}`](#{}): {}\n", name.replace(' ', "-"), about(command)));
    }
    for (name, command) in commands {
        page.push_str(&section(&name, command));
    }
    page.push_str("\n# JSON\n\nLater versions may add members, but only a new `schema` renames or removes one. `[]` means every entry of a list, and `*` every key of a map. Members marked with `?` can be absent.\n");
    page.extend(documents().iter().map(|(command, members)| fields(command, members)));
    page
}

/// Collects the executable commands with their full names.
fn collect<'a>(command: &'a Command, before: &str, commands: &mut Vec<(String, &'a Command)>) {
    for command in command.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set()) {
        let name = format!("{before}{}", command.get_name());
        if command.has_subcommands() {
            collect(command, &format!("{name} "), commands);
        } else {
            commands.push((name, command));
        }
    }
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn section(name: &str, command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let mut text = format!("\n## {name}\n\n{}\n\n```text\n{usage}\n```\n\n", about(command));
    text.push_str("| argument | meaning |\n|---|---|\n");
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        text.push_str(&format!("| `{}` | {} |\n", spelling(argument), meaning(argument)));
    }
    if let Some(after) = command.get_after_help() {
        text.push_str(&format!("\n```text\n{after}\n```\n"));
    }
    text
}

fn spelling(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let values = values.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ");
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let flags = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    let takes_value = argument.get_action().takes_values() && !values.is_empty();
    let text = if takes_value { format!("{flags} {values}") } else { flags };
    text.trim().replace('|', "\\|")
}

fn meaning(argument: &Arg) -> String {
    let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    if !text.ends_with('.') {
        text.push('.');
    }
    let values = argument.get_possible_values();
    if !values.is_empty() && argument.get_action().takes_values() {
        let names = values.iter().map(|value| format!("`{}`", value.get_name())).collect::<Vec<_>>();
        text.push_str(&format!(" One of {}.", names.join(", ")));
    }
    let defaults = argument.get_default_values();
    if !defaults.is_empty() && argument.get_action().takes_values() {
        let names = defaults.iter().map(|value| format!("`{}`", value.to_string_lossy())).collect::<Vec<_>>();
        text.push_str(&format!(" Default {}.", names.join(", ")));
    }
    if let Some(variable) = argument.get_env() {
        text.push_str(&format!(" Also as `{}` in the environment.", variable.to_string_lossy()));
    }
    text.replace('\n', " ").replace('|', "\\|")
}

fn fields(title: &str, fields: &[Field]) -> String {
    let rows = fields.iter().map(|field| {
        let optional = if field.optional { "?" } else { "" };
        format!("| `{}`{optional} | {} | {} |\n", field.path, field.kind, field.meaning)
    });
    format!("\n## {title}\n\n| member | type | meaning |\n|---|---|---|\n{}", rows.collect::<String>())
}
