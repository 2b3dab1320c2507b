//! `preview --cache`: a cached output is byte-for-byte the same, and is used only for the same inputs.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::binary::{Outcome, run};

const SHOOTS: &str = include_str!("shoots.yaml");

struct Landscape(TempDir);

impl Landscape {
    fn new() -> Self {
        let landscape = Self(tempfile::tempdir().unwrap());
        let (profile, shoot) = SHOOTS.split_once("---\n").unwrap();
        fs::create_dir(landscape.path("shoots")).unwrap();
        landscape.write("old.yaml", profile);
        let changed = profile.replace("greatest:1592.4.0", "newest:1592.4.0");
        landscape.write("new.yaml", &changed.replace("Standard_D8s_v5", "Standard_D9s_v5"));
        for number in 0..4 {
            landscape.write(&format!("shoots/s{number}.yaml"), &shoot.replace("canary", &format!("s{number}")));
        }
        landscape
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn preview(&self, options: &[&str]) -> Outcome {
        let [old, new, shoots] = ["old.yaml", "new.yaml", "shoots"].map(|name| self.path(name));
        let [old, new, shoots] = [&old, &new, &shoots].map(|path| path.to_str().unwrap());
        let arguments = ["preview", "--profiles", old, "--cloudprofile-new", new, shoots, "-o", "json"];
        run(&[&arguments, options].concat())
    }

    fn cached(&self, options: &[&str]) -> Outcome {
        let cache = self.path("cache");
        self.preview(&[&["--cache", cache.to_str().unwrap()], options].concat())
    }
}

fn printed(outcome: Outcome) -> (i32, String, String) {
    (outcome.code, outcome.stdout, outcome.stderr)
}

#[test]
fn cached_result_is_equal_byte_for_byte() {
    let landscape = Landscape::new();
    let same = |options: &[&str], what: &str| {
        let fresh = printed(landscape.preview(options));
        assert_eq!(printed(landscape.cached(options)), fresh, "{what}, kept now");
        assert_eq!(printed(landscape.cached(options)), fresh, "{what}, kept before");
        fresh
    };
    let (code, output, _) = same(&[], "at first");
    assert_eq!((code, output.matches("new-nodes-differ").count() > 4), (4, true), "{output}");
    // The output comes from the cache.
    let kept = landscape.read("cache/preview.cache");
    landscape.write("cache/preview.cache", &kept.replace("\"name\":\"s3\"", "\"name\":\"kept\""));
    assert!(landscape.cached(&[]).stdout.contains("\"name\": \"kept\""));
    // A changed file is not read from the cache.
    landscape.write("shoots/s3.yaml", &landscape.read("shoots/s3.yaml").replace("maxSurge: 3", "maxSurge: 2"));
    let (_, output, _) = same(&[], "one file changed");
    assert!(!output.contains("kept"), "{output}");
    // Nor are results for other flags or another profile.
    same(&["--presume", "reservation-by-machine-type"], "another flag");
    let (code, output, _) = same(&["--pin-images"], "a controller that pins images");
    assert_eq!((code, output.matches("new-nodes-differ").count()), (0, 0), "{output}");
    assert!(output.matches("image-pinned").count() > 4, "{output}");
    landscape.write("old.yaml", &landscape.read("old.yaml").replace("greatest:1592.9.0", "latest:1592.9.0"));
    same(&[], "another profile");
    landscape.write("new.yaml", &landscape.read("new.yaml").replace("newest:", "last:"));
    let (_, output, _) = same(&[], "another profile to come");
    assert!(output.contains("last:"), "{output}");
    // Unreadable files are not cached, nor are Shoots in two files.
    landscape.write("shoots/s1.yaml", "kind: Shoot\nspec: [");
    assert_eq!(same(&[], "a broken file").0, 3);
    landscape.write("shoots/s1.yaml", &landscape.read("shoots/s2.yaml"));
    let (_, _, message) = same(&[], "the same Shoot twice");
    assert!(message.contains("several files of OLD have this Worker"), "{message}");
}

/// With cached Shoots, the output still contains the notes.
#[test]
fn notes_are_kept_as_well() {
    let landscape = Landscape::new();
    landscape.write("shoots/other.yaml", &landscape.read("shoots/s1.yaml").replace("name: az", "name: other"));
    let other = landscape.read("old.yaml").replace("name: az", "name: other");
    landscape.write("shoots/profile.yaml", &other);
    let fresh = printed(landscape.preview(&[]));
    assert!(fresh.2.contains("1 Shoot names another CloudProfile and keeps it"), "{fresh:?}");
    for _ in 0..2 {
        assert_eq!(printed(landscape.cached(&[])), fresh);
    }
}

#[test]
fn what_is_no_cache_is_ignored_with_a_warning() {
    let landscape = Landscape::new();
    let fresh = printed(landscape.preview(&[]));
    landscape.cached(&[]);
    let kept = landscape.read("cache/preview.cache");
    for (text, why, stays) in [
        ("something of another program\n", "not a cache of this program", true),
        ("", "not a cache of this program", true),
        (&kept[..kept.len() - 40], "broken", false),
    ] {
        landscape.write("cache/preview.cache", text);
        let output = landscape.cached(&[]);
        assert!(output.stderr.contains(why), "{output:?}");
        assert_eq!((output.code, &output.stdout), (fresh.0, &fresh.1), "{why}");
        assert_eq!(landscape.read("cache/preview.cache") == text, stays, "{why}");
    }
    assert_eq!(fs::read_dir(landscape.path("cache")).unwrap().count(), 1, "nothing unfinished is left");
    // If the cache folder can't be created, the output is still complete.
    landscape.write("file", "");
    let nowhere = landscape.path("file/cache");
    let output = landscape.preview(&["--cache", nowhere.to_str().unwrap()]);
    assert_eq!((output.code, &output.stdout), (fresh.0, &fresh.1), "{output:?}");
    assert!(output.stderr.contains("answers can't be kept"), "{output:?}");
}
