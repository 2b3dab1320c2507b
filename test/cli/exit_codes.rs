//! One table of exit codes for all commands.

use crate::binary::{command, outcome, run};

/// What each command is called with to read a file.
const READERS: [&[&str]; 14] = [
    &["preview", "test/cli/azure.yaml"],
    &["takeover", "check"],
    &["render"],
    &["explain"],
    &["explain", "--shoot"],
    &["why"],
    &["diagnose", "shoot"],
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
        let shown = run(&[reader, &["--no-such-option"]].concat());
        assert_eq!((shown.code, shown.stdout.as_str()), (2, ""), "{reader:?}: {shown:?}");
    }
    for arguments in [
        &["completions", "cobol"][..],
        &["controller", "--no-such-option"],
        // Before a kubeconfig is read, which is not there.
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
        let shown = run(arguments);
        assert_eq!((shown.code, shown.stdout.as_str()), (2, ""), "{arguments:?}: {shown:?}");
    }
}

#[test]
fn what_can_not_be_read_is_3() {
    for reader in READERS {
        let shown = run(&[reader, &["no/such/file.yaml"]].concat());
        assert_eq!(shown.code, 3, "{reader:?}: {shown:?}");
        assert!(shown.stderr.contains("no/such/file.yaml"), "{reader:?}: {shown:?}");
        let garbage = outcome(command(&[reader, &["-"]].concat()), "a: [");
        assert_eq!(garbage.code, 3, "{reader:?}: {garbage:?}");
        assert!(garbage.stderr.contains("-: line 1"), "{reader:?} does not name the file: {garbage:?}");
    }
    let kubeconfig = run(&["controller", "--kubeconfig", "no-such-kubeconfig"]);
    assert_eq!(kubeconfig.code, 3, "{kubeconfig:?}");
}

#[test]
fn an_input_with_nothing_of_what_is_asked_for_is_3_and_named() {
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
        let shown = run(arguments);
        assert_eq!(shown.code, 3, "{arguments:?}: {shown:?}");
        assert!(shown.stderr.contains(&format!("{nothing}: no ")), "{arguments:?}: {shown:?}");
    }
}

#[test]
fn a_wrong_number_is_explained_in_plain_words() {
    let shown = run(&["controller", "--health-port", "x"]);
    assert_eq!(shown.code, 2, "{shown:?}");
    assert!(shown.stderr.contains("a whole number is expected"), "{shown:?}");
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
