//! All commands use the same exit codes.

use crate::binary::{command, outcome, run};

/// Arguments with which each command reads a file.
const READERS: [&[&str]; 15] = [
    &["preview", "test/cli/azure.yaml"],
    &["takeover", "check"],
    &["render"],
    &["explain"],
    &["explain", "--shoot"],
    &["why"],
    &["diagnose", "shoot"],
    &["rollouts", "shoot"],
    &["forecast"],
    &["cloudprofile", "lint"],
    &["cloudprofile", "matrix"],
    &["cloudprofile", "diff", "example/cloudprofiles/azure.yaml"],
    &["cloudprofile", "convert"],
    &["cloudprofile", "minimize"],
    &["images", "check"],
];

#[test]
fn wrong_usage_is_2() {
    for reader in READERS {
        let output = run(&[reader, &["--no-such-option"]].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{reader:?}: {output:?}");
    }
    for arguments in [
        &["completions", "cobol"][..],
        &["controller", "--no-such-option"],
        // These fail before the missing kubeconfig is read.
        &["controller", "--kubeconfig", "a", "--shard-name", "a"],
        &["controller", "--kubeconfig", "a", "--shard-ring", "a"],
        &["controller", "--kubeconfig", "a", "--worker-type", "azur"],
        &["controller", "--kubeconfig", "a", "--extension-classes", ""],
        &["preview", "test/cli/azure.yaml"],
        &["preview", "--live", "a.yaml", "b.yaml"],
        &["preview", "a.yaml", "b.yaml", "--kubeconfig", "seed"],
        &["takeover", "check", "a.yaml", "--kubeconfig", "seed"],
        &["takeover", "check", "-f", "a", "--as", "jane"],
        &["cloudprofile", "lint"],
        &["forecast"],
        &["forecast", "a", "--kubeconfig", "garden"],
        &["forecast", "--live", "a"],
        &["forecast", "a", "--namespace", "garden-a"],
        &["images", "fill", "a"],
        &["images", "resolve"],
        &["images", "list"],
        &["images", "lock"],
        &["images", "update"],
        &["render", "-", "-"],
        &["images", "unused", "a"],
        &["images", "list", "--where", "nonsense"],
        &["cloudprofile", "matrix"],
        &["cloudprofile", "matrix", "a", "--kubeconfig", "garden"],
        &["cloudprofile", "matrix", "a", "--flavor", "nonsense"],
    ] {
        let output = run(arguments);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{arguments:?}: {output:?}");
    }
}

#[test]
fn what_can_not_be_read_is_3() {
    for reader in READERS {
        let output = run(&[reader, &["no/such/file.yaml"]].concat());
        assert_eq!(output.code, 3, "{reader:?}: {output:?}");
        assert!(output.stderr.contains("no/such/file.yaml"), "{reader:?}: {output:?}");
        let garbage = outcome(command(&[reader, &["-"]].concat()), "a: [");
        assert_eq!(garbage.code, 3, "{reader:?}: {garbage:?}");
        assert!(garbage.stderr.contains("-: line 1"), "{reader:?} does not name the file: {garbage:?}");
    }
    let kubeconfig = run(&["controller", "--kubeconfig", "no-such-kubeconfig"]);
    assert_eq!(kubeconfig.code, 3, "{kubeconfig:?}");
}

#[test]
fn input_without_matches_is_3_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = folder.path().to_str().unwrap();
    std::fs::write(folder.path().join("empty.yaml"), "# nothing\n").unwrap();
    let (shoots, profile) = ("example/versions/shoots.yaml", "example/versions/cloudprofile.yaml");
    let workers = "test/cli/azure.yaml";
    for arguments in [
        &["render", nothing][..],
        &["explain", nothing],
        &["explain", "--shoot", nothing],
        &["preview", workers, workers, "--profiles", nothing],
        &["forecast", shoots, "--profiles", profile, "--profiles", nothing],
        &["forecast", shoots, "--profiles", profile, "--cloudprofile-new", nothing],
        &["cloudprofile", "versions", profile, "--shoots", nothing],
        &["images", "resolve", "--source", nothing],
        &["images", "check", "example/images/profiles/aws.yaml", "--source", nothing],
    ] {
        let output = run(arguments);
        assert_eq!(output.code, 3, "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(&format!("{nothing}: no ")), "{arguments:?}: {output:?}");
    }
}

#[test]
fn a_wrong_number_is_explained_in_plain_words() {
    let output = run(&["controller", "--health-port", "x"]);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains("a whole number is expected"), "{output:?}");
}

#[test]
fn the_help_has_the_table() {
    let all = run(&["--help"]).succeeded().stdout;
    let page = std::fs::read_to_string(test_support::repository().join("docs/cli.md")).unwrap();
    for code in 0..8 {
        let row = all.lines().find(|line| line.starts_with(&format!("  {code}  "))).unwrap_or_else(|| panic!("{all}"));
        let meaning = row.trim_start().trim_start_matches(|digit: char| digit.is_ascii_digit()).trim();
        assert!(page.contains(&format!("| {code} | {meaning} |")), "{meaning}");
    }
    for reader in READERS {
        let words: Vec<&str> = reader.iter().copied().filter(|word| !word.contains('.')).chain(["--help"]).collect();
        let help = run(&words).succeeded().stdout;
        assert!(help.contains("Exit codes:\n  0  "), "{help}");
    }
}

#[test]
fn an_unusable_kubeconfig_is_reported_once_and_not_printed() {
    let missing = run(&["preview", "--live", "--kubeconfig", "no-such-kubeconfig"]).stderr;
    assert_eq!(missing, "kubeconfig no-such-kubeconfig can't be read: No such file or directory (os error 2)\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, "users: [{name: a, user: {token: hunter2}\n").unwrap();
    let broken = run(&["why", "a/b", "--kubeconfig", path.to_str().unwrap()]);
    assert_eq!((broken.code, broken.stderr.lines().count()), (3, 1), "{broken:?}");
    assert!(!broken.stderr.contains("hunter2"), "{broken:?}");
}

/// `IMAGES` and `HEALTH_PORT` are common names, so other programs set them too.
#[test]
fn ignores_variables_of_other_programs() {
    let mut program = command(&["controller", "--kubeconfig", "no-such-kubeconfig", "--worker-type", "azure"]);
    program.env("IMAGES", "foo").env("HEALTH_PORT", "bar");
    let output = outcome(program, "");
    for (variable, argument) in [("IMAGES", "--images"), ("HEALTH_PORT", "--health-port")] {
        let warning = format!("warning: ignoring environment variable {variable}: invalid value for {argument}; ");
        assert!(output.stderr.contains(&warning), "{output:?}");
    }
    assert!(output.stderr.contains("no-such-kubeconfig"), "it continues: {output:?}");
}

/// If the controller ignored these variables, it would write more than its operator intends.
#[test]
fn rejects_invalid_limits_from_old_variables() {
    for variable in ["SHADOW", "WORKER_TYPE", "SHARD_RING"] {
        let mut program = command(&["controller", "--kubeconfig", "no-such-kubeconfig", "--shard-name", "a"]);
        program.env(variable, "f o o");
        let output = outcome(program, "");
        assert_eq!(output.code, 2, "{output:?}");
        assert!(output.stderr.contains(variable), "{output:?}");
    }
}
