//! `preview` of Shoots: a manifest against the stored one, without a Worker or a cluster.

use tempfile::TempDir;

use crate::binary::{Outcome, run};
use crate::golden::assert_same;

const SHOOTS: &str = include_str!("shoots.yaml");

/// The Shoot before and after, with the CloudProfile in one file beside them or as it comes with both.
struct Files {
    folder: TempDir,
}

impl Files {
    /// A person replaces texts in the stored Shoot.
    fn new(replacements: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (profile, shoot) = SHOOTS.split_once("---\n").unwrap();
        let mut manifest = shoot.to_owned();
        for (old, new) in replacements {
            assert!(manifest.contains(old), "{old:?} is not in the Shoot");
            manifest = manifest.replacen(old, new, 1);
        }
        for (name, text) in [("profile.yaml", profile), ("old.yaml", shoot), ("new.yaml", &manifest)] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn preview(&self, options: &[&str]) -> Outcome {
        let [profile, old, new] = ["profile.yaml", "old.yaml", "new.yaml"].map(|name| self.path(name));
        run(&[&["preview", "--profiles", &profile, &old, &new], options].concat())
    }
}

#[test]
fn a_roll_names_what_was_edited_in_the_shoot() {
    let files = Files::new(&[("version: 1592.4.0", "version: 1592.9.0"), ("maximum: 4", "maximum: 5")]);
    let shown = files.preview(&[]);
    assert_eq!((shown.code, shown.stderr.as_str()), (5, ""), "{shown:?}");
    assert_same("test/cli/golden/preview-shoots.txt", &shown.stdout);
}

#[test]
fn what_follows_of_an_edit_and_what_does_not() {
    let cases: [(&[(&str, &str)], i32); 7] = [
        // As the API server writes it, and what it would fill in anyway.
        (&[("memory: 1Gi", "memory: 1024Mi"), ("minimum: 2", "minimum: 2\n      cri: {name: containerd}")], 0),
        // Who writes a Shoot does not write its status.
        (&[("\nstatus: {technicalID: shoot--meadow--canary}", "")], 0),
        (&[("maxSurge: 3", "maxSurge: 4")], 1),
        (&[("    kubelet: {kubeReserved: {cpu: 80m", "    kubelet: {kubeReserved: {cpu: 90m")], 5),
        (&[("name: batch", "name: batch-2")], 6),
        // The CloudProfile does not have it; the API server takes no number for a text.
        (&[("version: 1592.4.0", "version: '9999'")], 7),
        (&[("version: 1592.4.0", "version: 9999")], 7),
    ];
    for (replacements, code) in cases {
        let shown = Files::new(replacements).preview(&[]);
        assert_eq!(shown.code, code, "{replacements:?}: {shown:?}");
    }
}

#[test]
fn a_changed_cloudprofile_over_all_shoots() {
    let files = Files::new(&[]);
    let profile = std::fs::read_to_string(files.path("profile.yaml")).unwrap();
    std::fs::write(files.path("changed.yaml"), profile.replace("greatest:1592.4.0", "newest:1592.4.0")).unwrap();
    let [before, changed, old] = ["profile.yaml", "changed.yaml", "old.yaml"].map(|name| files.path(name));
    let shown = run(&["preview", "--profiles", &before, "--cloudprofile", &changed, &old]);
    assert_eq!(shown.code, 4, "{shown:?}");
    assert!(shown.stdout.contains("existing nodes stay, new nodes differ"), "{shown:?}");
}

#[test]
fn a_shoot_without_its_cloudprofile_is_an_error() {
    let files = Files::new(&[]);
    let shown = run(&["preview", &files.path("old.yaml"), &files.path("new.yaml")]);
    assert_eq!(shown.code, 3, "{shown:?}");
    let wanted = r#"Shoot garden-meadow/canary: no file has CloudProfile "az"; name one with --profiles"#;
    assert!(shown.stderr.contains(wanted), "{shown:?}");
}
