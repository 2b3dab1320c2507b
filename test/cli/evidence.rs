//! No command gives an answer without evidence: the output lists inputs that are missing, not given or unreadable.

use std::fs;

use serde_json::{Value, json};

use crate::binary::{Outcome, command, outcome, run};

const PROFILE: &str = "example/versions/cloudprofile.yaml";
const SHOOTS: &str = "example/versions/shoots.yaml";
const WORKERS: &str = "test/cli/azure.yaml";
const AT: &str = "--at=2026-02-01";

/// Two images of EKS, and a lookup that matches them.
fn eks(folder: &std::path::Path) -> [String; 2] {
    let image = |id: &str, version: &str| {
        json!({"ImageId": id, "Name": format!("eks-node-{version}-v20251106"), "State": "available",
            "Architecture": "x86_64", "OwnerId": "602401143452", "CreationDate": "2025-11-06T00:00:00Z"})
    };
    let listing = json!({"Images": [image("ami-00000001", "1.31"), image("ami-00000002", "1.32")]});
    let lookup = "apiVersion: gardener-extension-worker/v1alpha1\nkind: ImageLookup\nmetadata: {name: eks}\nspec:\n  \
                  provider: aws\n  image: eks\n  imagePrefix: eks-node\n  lookupFormat: '-{{.K8sMinor}}-v*'\n  arch: [amd64]\n  \
                  versions: '>=1.30'\n  owners: ['602401143452']\n";
    let [images, lookups] = ["images.json", "lookups.yaml"].map(|name| folder.join(name));
    fs::write(&images, listing.to_string()).unwrap();
    fs::write(&lookups, lookup).unwrap();
    [format!("--source=us-east-1={}", images.display()), lookups.display().to_string()]
}

#[track_caller]
fn fails_with(printed: &Outcome, reason: &str) {
    assert_eq!(printed.code, 3, "{printed:?}");
    assert!(printed.stderr.contains(reason), "{printed:?}");
}

#[test]
fn empty_selections_name_the_nearest_match() {
    let folder = tempfile::tempdir().unwrap();
    let [source, lookups] = &eks(folder.path());
    let images = |more: &[&str]| run(&[&["images"], &more[..1], &[source, "--lookups", lookups], &more[1..]].concat());
    fails_with(&images(&["resolve", "--image-version", "1.33"]), "no image has version \"1.33\"; the newest is 1.32");
    fails_with(&images(&["resolve", "-o", "capa", "--image", "esk"]), "no image \"esk\"; there is \"eks\"");
    fails_with(&images(&["list", "--region", "us-east-2"]), "no region \"us-east-2\"; there is \"us-east-1\"");
    let lock = folder.path().join("images.lock").display().to_string();
    assert_eq!(images(&["lock", "--lock", &lock]).code, 1);
    fails_with(&images(&["update", "--lock", &lock, "--image", "esk"]), "no image \"esk\"; there is \"eks\"");
    fails_with(&run(&["images", "lock", source, "--lookups", SHOOTS]), "shoots.yaml: no ImageLookup in it");
    fails_with(&run(&["images", "lock", source, "--lock", &lock]), "no image has the name of a flavor: 2 images");

    let namespace = "no Worker in namespace \"shoot--typo\"; there is \"shoot--garden--prod\"";
    fails_with(&run(&["takeover", "check", WORKERS, "-n", "shoot--typo"]), namespace);
    fails_with(&run(&["diagnose", "shoot--typo", WORKERS]), namespace);
    fails_with(&run(&["takeover", "check", WORKERS, "--worker-type", "gcp"]), "there is \"azure\"");
    fails_with(&run(&["explain", WORKERS, "--pool", "servces"]), "no pool \"servces\"; there is ");
}

#[test]
fn versions_are_unknown_without_shoots() {
    let printed = run(&["cloudprofile", "versions", PROFILE, AT]).succeeded();
    assert!(
        printed.stdout.contains("unknown: no Shoots given") && !printed.stdout.contains("  yes"),
        "{}",
        printed.stdout
    );
    let document = run(&["cloudprofile", "versions", PROFILE, AT, "-o", "json"]).succeeded().json();
    assert_eq!(document["evidence"]["notGiven"][0]["flag"], "--shoots");
    let versions = document["profiles"][0]["versions"].as_array().unwrap();
    assert!(versions.iter().all(|version| version["removable"] != "yes"), "{versions:?}");
}

/// The exit code, and the versions of the example that can be removed according to these objects.
fn removable(objects: &str, arguments: &[&str]) -> (i32, Vec<String>) {
    let arguments = [&["cloudprofile", "versions", PROFILE, AT, "-o", "json"], arguments].concat();
    let printed = outcome(command(&arguments), objects);
    let document = printed.json();
    let versions = document["profiles"][0]["versions"].as_array().unwrap();
    let removable = versions.iter().filter(|version| version["removable"] == "yes");
    let name = |version: &Value| {
        format!("{} {}", version["image"].as_str().unwrap_or("Kubernetes"), version["version"].as_str().unwrap())
    };
    (printed.code, removable.map(name).collect())
}

#[test]
fn planned_moves_keep_versions() {
    let forecast = run(&["forecast", SHOOTS, "--profiles", PROFILE, AT, "-o", "json"]).json();
    let moves = forecast["summary"]["moves"].as_array().unwrap();
    assert!(!moves.is_empty());
    let (code, removable) = removable("", &["--shoots", SHOOTS]);
    assert_eq!(code, 0);
    for moved in moves {
        let target = format!("{} {}", moved["subject"].as_str().unwrap(), moved["to"].as_str().unwrap());
        assert!(!removable.contains(&target), "forecast moves a Shoot to {target}: {removable:?}");
    }
}

#[test]
fn unread_inputs_make_versions_unknown() {
    let (code, removable) = removable("kind: Shoot\nspec: [", &["--shoots", SHOOTS, "--shoots", "-"]);
    assert_eq!((code, removable), (3, Vec::new()));
}

#[test]
fn both_commands_agree_about_images() {
    let landscape = "example/images/landscape.yaml";
    let profile = "example/images/profiles/aws.yaml";
    let unused = run(&["images", "unused", profile, "--users", landscape, AT, "-o", "json"]).json();
    let versions = run(&["cloudprofile", "versions", profile, "--shoots", landscape, AT, "-o", "json"]).json();
    let unused: Vec<String> = unused["versions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|version| version["users"] == 0 && version["kept"].is_null())
        .map(|version| version["version"].as_str().unwrap().to_owned())
        .collect();
    let removable: Vec<String> = versions["profiles"][0]["versions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|version| version["removable"] == "yes" && !version["image"].is_null())
        .map(|version| version["version"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(unused, removable);
}

/// A folder with the Shoots of the example, an unreadable one, and one without its profile.
fn partial() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let shoots = fs::read_to_string(test_support::repository().join(SHOOTS)).unwrap();
    let orphan = shoots.split("---").nth(1).unwrap_or(&shoots).replace("name: ", "name: other-");
    fs::write(folder.path().join("shoots.yaml"), &shoots).unwrap();
    fs::write(folder.path().join("orphan.yaml"), orphan).unwrap();
    fs::write(folder.path().join("unreadable.yaml"), "kind: Shoot\nspec: [").unwrap();
    folder
}

#[test]
fn headlines_name_what_is_missing() {
    let folder = partial();
    let shoots = folder.path().to_str().unwrap();
    for output in ["table", "markdown", "html", "json"] {
        let printed = run(&["forecast", shoots, "--profiles", PROFILE, AT, "-o", output]);
        assert_eq!(printed.code, 3, "{output}: {}", printed.stderr);
        let is_named = match output {
            "json" => printed.json()["evidence"]["complete"] == false,
            _ => printed.stdout.contains("INCOMPLETE: 3 of 4 shoots evaluated, 1 input not read"),
        };
        assert!(is_named, "{output}: {}", printed.stdout);
    }
}

#[test]
fn nothing_is_claimed_of_unread_shoots() {
    let printed = outcome(command(&["forecast", "-", "--profiles", PROFILE, AT]), "kind: Shoot\nspec: [");
    assert_eq!(printed.code, 3);
    assert!(printed.stdout.contains("there is no answer") && !printed.stdout.contains("no node"), "{printed:?}");
    let folder = partial();
    fs::write(folder.path().join("worker.yaml"), fs::read_to_string(test_support::repository().join(WORKERS)).unwrap())
        .unwrap();
    fs::remove_file(folder.path().join("orphan.yaml")).unwrap();
    fs::remove_file(folder.path().join("shoots.yaml")).unwrap();
    let path = folder.path().to_str().unwrap();
    for output in ["table", "markdown", "json"] {
        let printed = run(&["preview", path, path, "-o", output]);
        assert_eq!(printed.code, 3, "{printed:?}");
        assert!(
            printed.stdout.contains("INCOMPLETE") || printed.json()["evidence"]["complete"] == false,
            "{printed:?}"
        );
    }
}

#[test]
fn malformed_images_are_named_and_left_out() {
    let images = json!({"Images": [
        {"ImageId": "ami-00000001", "Name": "a", "State": "available"}, {"ImageId": "nonsense", "Name": "b", "State": "available"},
    ]});
    let printed = outcome(command(&["images", "list", "--source=eu-central-1=-"]), &images.to_string());
    fails_with(&printed, "-: Images[1].ImageId");
    assert!(printed.stdout.contains("1 image"), "{}", printed.stdout);
}

#[test]
fn devices_are_not_read() {
    for arguments in [&["render", "/dev/zero"][..], &["cloudprofile", "lint", "/dev/zero"], &["forecast", "/dev/zero"]]
    {
        fails_with(&run(arguments), "/dev/zero: a device is not a file that can be read");
    }
}

#[test]
fn renamed_flags_work_and_warn() {
    let old = run(&["forecast", SHOOTS, "--cloudprofile", PROFILE, AT]);
    let new = run(&["forecast", SHOOTS, "--profiles", PROFILE, AT]);
    assert_eq!((old.code, &old.stdout), (new.code, &new.stdout));
    assert_eq!(
        old.stderr,
        "warning: --cloudprofile is called --profiles now; the old name works until the next release\n"
    );
    let landscape = "example/images/landscape.yaml";
    let profile = "example/images/profiles/aws.yaml";
    let old = run(&["preview", "--cloudprofile", profile, landscape]);
    let new = run(&["preview", "--cloudprofile-new", profile, landscape]);
    assert_eq!((old.code, &old.stdout), (new.code, &new.stdout));
    assert!(old.stderr.contains("--cloudprofile is called --cloudprofile-new now"), "{}", old.stderr);
}

#[test]
fn unreadable_credentials_have_a_reason() {
    let worker = fs::read_to_string(test_support::repository().join(WORKERS)).unwrap();
    assert!(worker.contains("tenantID: example"), "the example has credentials");
    for (value, reason) in [
        (r#""example\n""#, "it ends with a line break"),
        (r#"" example""#, "it begins or ends with white space"),
        (r#""exa/mple""#, "it has characters that an id can't have"),
    ] {
        let changed = worker.replace("tenantID: example", &format!("tenantID: {value}"));
        let printed = outcome(command(&["explain", "-"]), &changed);
        assert!(printed.stderr.contains(reason), "{printed:?}");
    }
}

/// The example without the objects of this kind whose name has this prefix.
fn example_without(kind: &str, prefix: &str) -> String {
    let text = fs::read_to_string("example/azure.yaml").unwrap();
    let documents: Vec<&str> = text.split("\n---\n").collect();
    let is_left_out = |document: &&&str| {
        document.contains(&format!("kind: {kind}\n")) && document.contains(&format!("\n  name: {prefix}"))
    };
    let (left_out, kept): (Vec<&str>, Vec<&str>) = documents.iter().partition(|document| is_left_out(document));
    assert_eq!(left_out.len(), 1, "{kind} {prefix}");
    kept.join("\n---\n")
}

#[test]
fn nothing_is_compared_without_its_objects() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, prefix) in
        [("Secret", "cloudprovider"), ("Cluster", "shoot--"), ("Secret", "gardener-node-agent-services-")]
    {
        let file = folder.path().join("objects.yaml");
        fs::write(&file, example_without(kind, prefix)).unwrap();
        let file = file.display().to_string();
        for new in [&*file, "example/azure.yaml"] {
            let printed = run(&["preview", &file, new]);
            assert_eq!(printed.code, 3, "{kind} {prefix} {new}: {printed:?}");
            assert!(
                printed.stdout.contains("can't be compared without an object that is not in the files"),
                "{printed:?}"
            );
        }
    }
}
