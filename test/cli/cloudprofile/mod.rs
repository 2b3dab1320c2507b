//! The commands of `cloudprofile`.

mod broken;
mod capability;
mod convert;
mod diff;
mod documentation;
mod lint;
mod lint_versions;
mod matrix;
mod workflow_commands;

/// The time at which the commands evaluate the profiles.
const AT: [&str; 2] = ["--at", "2026-11-21T00:00:00Z"];

fn example(name: &str) -> String {
    let path = format!("{}/example/cloudprofiles/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// Returns the text with replacements, each of which must match.
#[track_caller]
fn replaced(text: &str, replacements: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (from, to) in replacements {
        assert!(text.contains(from), "{from:?} is not in the example");
        text = text.replace(from, to);
    }
    text
}
