//! `preview --git` compares the working tree with a revision of a temporary repository.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::binary::{Outcome, command, outcome};

const SHOOTS: &str = include_str!("shoots.yaml");

/// A repository with a CloudProfile, a Shoot, and other typical files.
pub(crate) struct Repository {
    folder: TempDir,
}

impl Repository {
    pub(crate) fn new() -> Self {
        let repository = Self { folder: tempfile::tempdir().unwrap() };
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        let (profile, shoot) = SHOOTS.split_once("---\n").unwrap();
        repository.write("profiles/az.yaml", profile);
        repository.write("shoots/it's a; shoot.yaml", shoot);
        repository.write("chart/templates/service.yaml", "{{ if .Values.on }}\nkind: Service\n{{ end }}\n");
        repository.write(".gitignore", "made/\n");
        repository.commit();
        repository
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.current_dir(&self.folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
        let output = git.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "m"]);
    }

    pub(crate) fn head(&self) -> String {
        let output = Command::new("git").current_dir(&self.folder).args(["rev-parse", "HEAD"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Replaces a text in a file, like a user.
    pub(crate) fn edit(&self, name: &str, old: &str, new: &str) {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(old), "{old:?} is not in {name}");
        self.write(name, &text.replacen(old, new, 1));
    }

    fn preview(&self, arguments: &[&str]) -> Outcome {
        self.preview_of(&[&["preview", "--git"], arguments].concat())
    }

    fn preview_of(&self, arguments: &[&str]) -> Outcome {
        let mut program = command(arguments);
        program.current_dir(&self.folder);
        outcome(program, "")
    }
}

pub(crate) const SHOOT: &str = "shoots/it's a; shoot.yaml";
const PROFILE: &str = "profiles/az.yaml";

#[test]
fn a_branch_is_compared_with_its_base() {
    let repository = Repository::new();
    let same = repository.preview(&["HEAD"]);
    assert_eq!((same.code, same.stderr.as_str()), (0, ""), "{same:?}");
    repository.edit(SHOOT, "version: 1592.4.0", "version: 1592.9.0");
    let printed = repository.preview(&["main"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (5, ""), "{printed:?}");
    assert!(printed.stdout.contains("web zones 1,2  ROLL  machine.image.version: 1592.4.0 -> 1592.9.0"), "{printed:?}");
    repository.commit();
    assert_eq!(repository.preview(&["HEAD"]).code, 0);
    assert_eq!(repository.preview(&["HEAD~1"]).code, 5);
    // Only the given paths are compared. A moved file is recognized.
    assert_eq!(repository.preview(&["HEAD~1", "--profiles", "profiles", "--", "chart"]).code, 3, "nothing is there");
    assert_eq!(repository.preview(&["HEAD~1", "--", SHOOT, "profiles"]).code, 5);
    repository.git(&["mv", SHOOT, "shoots/plain.yaml"]);
    assert_eq!(repository.preview(&["HEAD"]).code, 0);
    repository.git(&["rm", "--quiet", "--force", "shoots/plain.yaml"]);
    assert_eq!(repository.preview(&["HEAD"]).code, 6, "the machines of its pools go");
}

/// Each side uses its own CloudProfiles, so unedited Shoots change with them.
#[test]
fn a_changed_cloudprofile_reaches_shoots_that_nobody_has_edited() {
    let repository = Repository::new();
    repository.edit(PROFILE, "greatest:1592.4.0", "newest:1592.4.0");
    let printed = repository.preview(&["HEAD"]);
    assert_eq!(printed.code, 4, "{printed:?}");
    assert!(printed.stdout.contains("existing nodes stay, new nodes differ"), "{printed:?}");
    repository.git(&["checkout", "--quiet", "."]);
    std::fs::remove_file(repository.path(PROFILE)).unwrap();
    assert_eq!(repository.preview(&["HEAD"]).code, 3, "its CloudProfile is missing now");
}

#[test]
fn new_files_count_and_ignored_ones_do_not() {
    let repository = Repository::new();
    let another = std::fs::read_to_string(repository.path(SHOOT)).unwrap().replace("name: canary", "name: other");
    repository.write("made/other.yaml", &another);
    assert_eq!(repository.preview(&["HEAD"]).code, 0);
    repository.write("shoots/other.yaml", &another);
    let printed = repository.preview(&["HEAD"]);
    assert!(printed.code == 1 && printed.stdout.contains("CREATE"), "{printed:?}");
}

#[test]
fn what_cannot_be_compared_fails() {
    let repository = Repository::new();
    for base in ["no-such-branch", "--output=shoots/x.yaml", "HEAD; touch x"] {
        let printed = repository.preview_of(&["preview", &format!("--git={base}")]);
        assert_eq!(printed.code, 3, "{printed:?}");
        assert!(printed.stderr.contains(&format!("revision {base:?}")), "{printed:?}");
    }
    assert!(!repository.path("shoots/x.yaml").exists() && !repository.path("x").exists());
    for (base, reason) in [("no-such-branch", "no commit has this name"), ("^HEAD", "it does not name one commit")] {
        let printed = repository.preview_of(&["preview", &format!("--git={base}")]);
        assert_eq!((printed.code, printed.stderr), (3, format!("revision {base:?}: {reason}\n")));
    }
    repository.write("shoots/broken.yaml", "kind: Shoot\nspec: {{ .Values.spec }\n");
    let printed = repository.preview(&["HEAD"]);
    assert!(printed.code == 3 && printed.stderr.contains("shoots/broken.yaml"), "{printed:?}");
    let nowhere = Repository { folder: tempfile::tempdir().unwrap() };
    assert_eq!(nowhere.preview(&["HEAD"]).code, 3);
    let usage = repository.preview(&["HEAD", "--live"]);
    assert_eq!(usage.code, 2, "{usage:?}");
}
