//! The commands of `images`: all commands of docs/images.md in order, and invalid files.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use gardener_extension_worker::api::gotext::yaml;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{command, outcome};
use crate::golden::assert_same;
use crate::json::assert_described;

/// A folder with the files of the documentation and with the program for `PATH`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("example/images"), &folder.path().join("example/images"));
    let program = test_support::program::binary();
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    std::os::unix::fs::symlink(program, folder.path().join("bin/gardener-extension-worker")).unwrap();
    folder
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Runs a script and returns its output on stdout and stderr.
pub(crate) fn shell(folder: &TempDir, script: &str) -> String {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{{ {script}\n}} 2>&1")]).current_dir(folder.path());
    let path = format!("{}/bin:{}", folder.path().display(), std::env::var("PATH").unwrap());
    shell.env("PATH", path).env_remove("COLUMNS").env_remove("SOURCE_DATE_EPOCH").env("NO_COLOR", "1");
    outcome(shell, "").stdout
}

#[test]
fn the_page_is_what_happens() {
    let folder = folder();
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images.md")).unwrap();
    let mut parts = text.split("```sh\n");
    let mut made = parts.next().unwrap().to_owned();
    for part in parts {
        let (script, rest) = part.split_once("```\n").unwrap();
        let printed = shell(&folder, script.trim_end());
        let rest = rest.strip_prefix("```text\n").expect("each command has its output");
        let (_, rest) = rest.split_once("```\n").unwrap();
        made.push_str(&format!("```sh\n{script}```\n```text\n{printed}```\n{rest}"));
    }
    assert_same("docs/images.md", &made);
    let filled = std::fs::read_to_string(folder.path().join("aws.yaml")).unwrap();
    assert!(filled.contains("version: \"2002.1.0\"") && filled.contains("version: \"2001.2.0\""), "{filled}");
}

const SOURCE: [&str; 4] = ["--source", "example/images/release-2002.1", "--at", "2026-11-22"];

/// Runs a command of `images` in a folder.
fn images(folder: &TempDir, arguments: &[&str], input: &str) -> crate::binary::Outcome {
    let mut command = command(&[&["images"], arguments].concat());
    command.current_dir(folder.path());
    outcome(command, input)
}

#[test]
fn bad_input_is_located_and_changes_no_lock() {
    let folder = folder();
    let lock = folder.path().join("example/images/images.lock");
    let before = std::fs::read(&lock).unwrap();
    let ec2 = |image: Value| json!({"Images": [{"ImageId": "ami-00000001", "Name": "a"}, image]}).to_string();
    let lookup = |from: &str, to: &str| {
        let text = std::fs::read_to_string(folder.path().join("example/images/lookups.yaml")).unwrap();
        assert!(text.contains(from));
        text.replace(from, to)
    };
    let metadata =
        std::fs::read_to_string(folder.path().join("example/images/release-2002.1/aws-gardener_prod-amd64.yaml"))
            .unwrap();
    let cases = [
        ("s.json", "{\"Images\": [{\"ImageId\": \"ami".to_owned(), "s.json: line 1, column "),
        ("s.json", "{\"a\": 1}".to_owned(), "s.json: no listing of images in a known form"),
        (
            "s.json",
            ec2(json!({"ImageId": "nonsense"})),
            "s.json: Images[1].ImageId: this is no ami: ami-… with 8 to 17 hexadecimal digits is expected",
        ),
        (
            "s.json",
            ec2(json!({"ImageId": "ami-00000002", "CreationDate": "2026-13-01"})),
            "s.json: Images[1].CreationDate: \"2026-13-01\" is no time",
        ),
        ("s.json", ec2(json!({"ImageId": 7})), "s.json: Images[1].ImageId: text is expected, not a number"),
        (
            "s.yaml",
            metadata.replace("ami_id: ami-", "ami_id: emi-"),
            "s.yaml: published_image_metadata: this is no ami",
        ),
        (
            "s.yaml",
            metadata.replace("2026-11-20T", "2026-11-40T"),
            "s.yaml: build_timestamp: \"2026-11-40T08:00:00.000000\" is no time",
        ),
        (
            "l.yaml",
            lookup("{{.OS}}", "{{.Os}}"),
            "l.yaml: spec.lookupFormat: unknown variable \"Os\" at character 10; there are K8sVersion, K8sMinor, OS, BaseOS, ARCH",
        ),
        (
            "l.yaml",
            lookup(">=1.33, <1.36", ">=1.36, <1.33"),
            "l.yaml: spec.versions: no version is in \">=1.36, <1.33\"",
        ),
        (
            "l.yaml",
            lookup(">=1.33, <1.36", "~1.33"),
            "l.yaml: spec.versions: \"~1.33\": write each condition with >=, <=, >, < or =",
        ),
        ("l.yaml", lookup("owners: [\"222222222222\"]", "owners: []"), "l.yaml: spec.owners: name at least one owner"),
        ("l.yaml", lookup("owners:", "owner:"), "l.yaml: spec.owner: unknown field"),
    ];
    for (file, text, reported) in cases {
        std::fs::write(folder.path().join(file), &text).unwrap();
        let source =
            if file == "l.yaml" { "--lookups=l.yaml".to_owned() } else { format!("--source=eu-central-1={file}") };
        let output =
            images(&folder, &["update", "--lock", "example/images/images.lock", &source, "--source", SOURCE[1]], "");
        assert_eq!((output.code, output.stdout.as_str()), (3, ""), "{reported}: {output:?}");
        assert!(output.stderr.contains(reported), "{reported}:\n{}", output.stderr);
        assert_eq!(std::fs::read(&lock).unwrap(), before, "{reported}");
    }
}

#[test]
fn a_file_of_a_gigabyte_is_refused_before_it_is_read() {
    let folder = folder();
    std::fs::File::create(folder.path().join("big.json")).unwrap().set_len(1 << 30).unwrap();
    let output = images(&folder, &["list", "--source", "big.json"], "");
    assert_eq!(output.stderr, "big.json: 1024 MiB are more than the 256 MiB that are read of a file\n");
    assert_eq!(output.code, 3);
}

#[test]
fn standard_input_without_an_end_is_not_read_to_its_end() {
    let folder = folder();
    // A gigabyte of spaces through a pipe, whose size is unknown in advance.
    let script =
        "head -c 1073741824 /dev/zero | tr '\\0' ' ' | gardener-extension-worker images list --source -; echo $?";
    let reported = "-: more than the 256 MiB that are read of a file\n3\n";
    assert!(shell(&folder, script).ends_with(reported));
}

#[test]
fn a_lock_is_written_as_a_whole_or_not_at_all() {
    let folder = folder();
    let update =
        |lock: &str, more: &[&str]| images(&folder, &[&["update", "--lock", lock], &SOURCE[..], more].concat(), "");
    let path = folder.path().join("example/images/images.lock");
    let before = std::fs::read_to_string(&path).unwrap();
    let missing = update("nosuch.lock", &["--dry-run"]);
    assert!(missing.code == 3 && missing.stderr.contains("nosuch.lock"), "{missing:?}");
    assert_eq!(update("example/images/images.lock", &["--dry-run"]).code, 1);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "a dry run writes nothing");
    // With a folder in place of the lock file, the temporary file next to it is deleted again.
    std::fs::create_dir_all(folder.path().join("locks/images.lock")).unwrap();
    let output = images(&folder, &[&["lock", "--lock", "locks/images.lock"], &SOURCE[..]].concat(), "");
    assert_eq!(output.code, 3, "{output:?}");
    assert_eq!(std::fs::read_dir(folder.path().join("locks")).unwrap().count(), 1);
    assert_eq!(update("example/images/images.lock", &[]).code, 1);
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(&before[..40]) && after.len() > before.len());
    assert_eq!(update("example/images/images.lock", &[]).code, 0, "nothing is left to move");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), after, "the same flavors are the same bytes");
    assert_eq!(
        std::fs::read_dir(path.parent().unwrap())
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with('.'))
            .count(),
        0
    );
}

#[test]
fn fill_prints_all_profiles_or_none() {
    let folder = folder();
    let fill = |arguments: &[&str]| images(&folder, &[&["fill", "example/images/profiles"], arguments].concat(), "");
    let whole = fill(&["--lock", "example/images/images.lock"]);
    assert_eq!((whole.code, whole.stdout.matches("kind: CloudProfile\n").count()), (0, 6), "{}", whole.stderr);
    let text = std::fs::read_to_string(folder.path().join("example/images/images.lock")).unwrap();
    std::fs::write(folder.path().join("other.lock"), text.replace("m-", "m-x").replace("m-xx", "m-x")).unwrap();
    let refused = fill(&["--lock", "other.lock"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (3, ""));
    assert!(refused.stderr.contains("Another image under the same version"), "{}", refused.stderr);
    let reported = fill(&["--lock", "other.lock", "--replace"]);
    assert_eq!((reported.code, reported.stdout.matches("kind: CloudProfile\n").count()), (4, 6));
}

#[test]
fn fill_writes_a_profile_in_the_format_that_it_has() {
    let folder = folder();
    let run = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.current_dir(folder.path());
        outcome(command, "")
    };
    for cloud in ["aws", "gcp", "openstack", "alicloud"] {
        let profile = format!("example/images/profiles/{cloud}.yaml");
        let old = run(&["cloudprofile", "convert", "--to", "old-format", &profile]).stdout;
        std::fs::write(folder.path().join("old.yaml"), &old).unwrap();
        let filled = run(&[&["images", "fill", "--where", "variant=gardener_prod", "old.yaml"], &SOURCE[..]].concat());
        assert_eq!(filled.code, 0, "{cloud}: {}", filled.stderr);
        assert!(
            filled.stdout.contains("2002.1.0") && !filled.stdout.contains("apabilit"),
            "{cloud}: {}",
            filled.stdout
        );
        assert!(filled.stderr.contains("gardenlinux 2002.1.0"), "{cloud}: {}", filled.stderr);
        std::fs::write(folder.path().join("new.yaml"), &filled.stdout).unwrap();
        let linted = run(&["cloudprofile", "lint", "--at", "2026-11-22", "new.yaml"]);
        assert_eq!(linted.code, 0, "{cloud}: {}", linted.stdout);
        // No machine type that had an image gets another one. The diff of both profiles confirms that.
        let diff = run(&["cloudprofile", "diff", "old.yaml", "new.yaml", "-o", "json"]).json();
        assert!(!diff.to_string().contains("2001.2.0"), "{cloud}: {diff}");
    }
}

#[test]
fn fill_writes_azure_profiles_of_the_old_format() {
    let folder = folder();
    let legacy = Path::new(env!("CARGO_MANIFEST_DIR")).join("example/cloudprofiles/azure-legacy.yaml");
    std::fs::copy(legacy, folder.path().join("old.yaml")).unwrap();
    let fill = |more: &[&str]| {
        images(&folder, &[&["fill", "old.yaml", "--where", "variant=gardener_prod"], &SOURCE[..], more].concat(), "")
    };
    // The old format can't distinguish generations, so the user must select one.
    let both = fill(&[]);
    assert_eq!((both.code, both.stdout.as_str()), (3, ""), "{}", both.stderr);
    assert!(both.stderr.contains("are the same to this profile"), "{}", both.stderr);
    let filled = fill(&["--where", "generation=gen2"]);
    assert_eq!(filled.code, 0, "{}", filled.stderr);
    let profile: Value = yaml::documents(&filled.stdout).unwrap().remove(0);
    let core = &profile["spec"]["machineImages"][0]["versions"][0];
    assert_eq!((&core["version"], &core["architectures"]), (&json!("2002.1.0"), &json!(["amd64", "arm64"])));
    let gallery =
        |image: &str| format!("/CommunityGalleries/gardenlinux-public-example/Images/{image}/Versions/2002.1.0");
    let version = |image: &str| json!({"version": "2002.1.0", "acceleratedNetworking": true, "communityGalleryImageID": gallery(image)});
    let mut arm64 = version("gardenlinux-arm64-gen2");
    arm64["architecture"] = "arm64".into();
    let versions = profile["spec"]["providerConfig"]["machineImages"][0]["versions"].as_array().unwrap();
    assert_eq!(versions[..2], [version("gardenlinux-gen2"), arm64]);
    std::fs::write(folder.path().join("new.yaml"), &filled.stdout).unwrap();
    let mut diff = command(&["cloudprofile", "diff", "old.yaml", "new.yaml", "-o", "json"]);
    diff.current_dir(folder.path());
    let diff = outcome(diff, "").json();
    let combinations = diff["combinations"].as_array().unwrap();
    assert!(!combinations.is_empty() && combinations.iter().all(|change| change["version"] == "2002.1.0"), "{diff}");
}

#[test]
fn question_only_images_of_versions_that_a_profile_lists_are_resolved_on_request() {
    let folder = folder();
    let profile = ["--profiles", "example/images/profiles/aws.yaml"];
    let sources = ["--source", "example/images/release-2001.2", "--where", "variant=gardener_prod"];
    let resolved = |more: &[&str]| {
        let output = images(&folder, &[&["resolve", "-o", "json"], &SOURCE[..], &sources, more].concat(), "").json();
        let versions = |flavor: &Value| format!("{} {}", flavor["provider"], flavor["version"]).replace('"', "");
        output["flavors"].as_array().unwrap().iter().map(versions).collect::<BTreeSet<_>>()
    };
    assert!(resolved(&[]).len() > 8, "two releases for five clouds");
    assert_eq!(resolved(&profile), BTreeSet::from(["aws 2001.2.0".to_owned()]));
}

#[test]
fn templates_for_machines_with_and_without_secure_boot_have_different_names() {
    let folder = folder();
    let image = |id: &str, secure_boot: &str| {
        json!({"provider": "aws", "region": "eu-1", "reference": {"ami": id}, "image": "os",
        "version": "1.0.0", "facts": {"architecture": ["amd64"], "secureBoot": [secure_boot]}})
    };
    let list = json!({"kind": "ImageList", "images": [image("ami-00000001", "true"), image("ami-00000002", "false")]});
    std::fs::write(folder.path().join("list.json"), list.to_string()).unwrap();
    let printed = images(&folder, &["resolve", "--source", "list.json", "-o", "capa"], "");
    let names: Vec<&str> = printed.stdout.lines().filter_map(|line| line.strip_prefix("  name: ")).collect();
    assert_eq!(
        names,
        ["os-amd64-1.0.0-eu-1-ami-00000002", "os-amd64-secure-boot-1.0.0-eu-1-ami-00000001"],
        "{printed:?}"
    );
}

#[test]
fn fix_of_the_same_minor_supersedes_its_predecessor() {
    let folder = folder();
    let lock = std::fs::read_to_string(folder.path().join("example/images/images.lock")).unwrap();
    std::fs::write(
        folder.path().join("fix.lock"),
        lock.replace("version: 2001.2.0", "version: 2001.2.1").replace("\"2001.2.0\"", "\"2001.2.1\""),
    )
    .unwrap();
    let fill = |more: &[&str]| {
        let arguments = [
            "fill",
            "--lock",
            "fix.lock",
            "--image-version",
            "2001.2.1",
            "--at",
            "2026-11-22",
            "example/images/profiles/aws.yaml",
        ];
        images(&folder, &[&arguments, more].concat(), "")
    };
    let supported = ["--classification", "supported"];
    assert_eq!(fill(&["--supersede"]).code, 2, "a preview replaces nothing");
    assert_eq!(fill(&[&supported[..], &["--supersede", "--expire", "2026-11-01"]].concat()).code, 2);
    let filled = fill(&[&supported[..], &["--supersede", "--expire", "+48h"]].concat());
    assert!(
        filled
            .stderr
            .contains("gardenlinux 2001.2.0 is deprecated because of 2001.2.1, and expires at 2026-11-24T00:00:00Z"),
        "{filled:?}"
    );
    let profile: Value = yaml::documents(&filled.stdout).unwrap().remove(0);
    let versions = &profile["spec"]["machineImages"][0]["versions"];
    assert_eq!((&versions[0]["version"], &versions[0]["classification"]), (&json!("2001.2.1"), &json!("supported")));
    assert_eq!(
        (&versions[1]["classification"], &versions[1]["expirationDate"]),
        (&json!("deprecated"), &json!("2026-11-24T00:00:00Z"))
    );
    std::fs::write(folder.path().join("new.yaml"), &filled.stdout).unwrap();
    let mut forecast =
        command(&["forecast", "example/images/landscape.yaml", "--profiles", "new.yaml", "--at", "2026-11-22"]);
    forecast.current_dir(folder.path());
    assert!(outcome(forecast, "").stdout.contains("2001.2.1"));
}

#[test]
fn fill_keeps_the_order_and_comments_of_files() {
    let folder = folder();
    for cloud in ["aws", "azure", "gcp", "openstack", "alicloud"] {
        let path = folder.path().join(format!("example/images/profiles/{cloud}.yaml"));
        let text = std::fs::read_to_string(&path).unwrap();
        // Formatting and comments that no serializer would write.
        let text = text.replace("  machineTypes:\n", "  # Types of machines.\n  machineTypes:\n");
        let text = text.replace("      version: \"2001.2.0\"\n", "      version: 2001.2.0 # in use\n");
        std::fs::write(&path, &text).unwrap();
        let profile = format!("example/images/profiles/{cloud}.yaml");
        let filled =
            images(&folder, &[&["fill", "--where", "variant=gardener_prod", &profile], &SOURCE[..]].concat(), "");
        assert_eq!(filled.code, 0, "{cloud}: {}", filled.stderr);
        let mut rest = filled.stdout.lines();
        for line in text.lines() {
            assert!(rest.any(|written| written == line), "{cloud}: {line:?} is gone or moved:\n{}", filled.stdout);
        }
        assert!(filled.stdout.contains("2002.1.0"), "{cloud}");
    }
}

#[test]
fn lookups_that_mean_no_image_are_refused() {
    let folder = folder();
    let resolve = |lookups: &str, more: &[&str]| {
        let source = ["resolve", "--source", "eu-central-1=example/images/describe-images.json", "--lookups", lookups];
        let outcome = images(&folder, &[&source, more].concat(), "");
        assert_eq!(outcome.code, 3, "{outcome:?}");
        outcome.stderr
    };
    let proposal = "apiVersion: infrastructure.cluster.x-k8s.io/v1alpha3\nkind: AMILookupConfig\nmetadata: {name: l}\n";
    std::fs::create_dir(folder.path().join("lookups")).unwrap();
    std::fs::write(folder.path().join("lookups/a.yaml"), proposal).unwrap();
    std::fs::copy(folder.path().join("example/images/lookups.yaml"), folder.path().join("lookups/b.yaml")).unwrap();
    let reported = resolve("lookups", &[]);
    assert!(reported.contains("a.yaml: no ImageLookup in it, but AMILookupConfig"), "{reported}");
    let reported = resolve("example/images/lookups.yaml", &["--where", "bootmode=uefi"]);
    assert!(reported.contains("--where[0].name: no image has the fact \"bootmode\""), "{reported}");
}

#[test]
fn swapped_images_lack_the_capabilities_of_their_flavors() {
    let folder = folder();
    let [metal, other] = ["01c3ab26-5b93-4655-a743-1fef60f64b53", "ed3b4c3d-941f-456a-a551-bd52b8397443"];
    for (platform, id) in [("openstackbaremetal", metal), ("openstack", other)] {
        let document = json!({"architecture": "amd64", "gardenlinux_epoch": 1877, "platform": platform, "version": "1877.3",
            "published_image_metadata": {"published_openstack_images": [{"image_id": id, "region_name": "eu-de-1"}]}});
        std::fs::create_dir_all(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join(format!("src/{platform}.json")), document.to_string()).unwrap();
    }
    let profile = |metal: &str, other: &str| {
        let flavor = |kind: &str| json!({"architecture": ["amd64"], "hypervisor": [kind]});
        let of_provider =
            |kind: &str, id: &str| json!({"capabilities": flavor(kind), "regions": [{"name": "eu-de-1", "id": id}]});
        json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "os"}, "spec": {
            "type": "openstack", "kubernetes": {"versions": [{"version": "1.34.2"}]}, "regions": [{"name": "eu-de-1"}],
            "machineCapabilities": [{"name": "architecture", "values": ["amd64"]},
                {"name": "hypervisor", "values": ["baremetal", "virtualized"]}],
            "machineImages": [{"name": "gardenlinux", "versions": [{"version": "1877.3.0", "cri": [{"name": "containerd"}],
                "capabilityFlavors": [flavor("virtualized"), flavor("baremetal")]}]}], "machineTypes": [],
            "providerConfig": {"apiVersion": "openstack.provider.extensions.gardener.cloud/v1alpha1",
                "kind": "CloudProfileConfig", "machineImages": [{"name": "gardenlinux", "versions": [{"version": "1877.3.0",
                "capabilityFlavors": [of_provider("virtualized", other), of_provider("baremetal", metal)]}]}]}}})
    };
    let rules = |metal: &str, other: &str| {
        std::fs::write(folder.path().join("os.json"), profile(metal, other).to_string()).unwrap();
        let checked =
            images(&folder, &["check", "os.json", "--source", "src", "--at", "2025-10-01", "-o", "json"], "").json();
        let findings = checked["profiles"][0]["findings"].as_array().unwrap().clone();
        findings.iter().map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(rules(metal, other), Vec::<String>::new());
    assert_eq!(rules(other, metal), ["capability", "capability"]);
}

#[test]
fn newer_image_gets_its_own_template() {
    let folder = folder();
    let image = |id: &str, created: &str| {
        json!({"provider": "aws", "region": "eu-1", "reference": {"ami": id}, "image": "os", "version": "1.33.6",
            "created": created, "facts": {"architecture": ["amd64"]}})
    };
    let write = |images: Value| {
        std::fs::write(folder.path().join("list.json"), json!({"kind": "ImageList", "images": images}).to_string())
            .unwrap();
    };
    let consumer = |kind: &str, name: &str, template: &str, spec: fn(Value) -> Value| {
        let reference = json!({"kind": "AWSMachineTemplate", "name": template});
        json!({"kind": kind, "metadata": {"namespace": "prod", "name": name}, "spec": spec(reference)})
    };
    let template = |name: &str, id: &str| {
        json!({"kind": "AWSMachineTemplate", "metadata": {"namespace": "prod", "name": name},
            "spec": {"template": {"spec": {"ami": {"id": id}}}}})
    };
    let deployment: fn(Value) -> Value = |reference| json!({"template": {"spec": {"infrastructureRef": reference}}});
    let control_plane: fn(Value) -> Value = |reference| json!({"machineTemplate": {"infrastructureRef": reference}});
    let consumers = json!({"kind": "List", "items": [
        template("by-hand", "ami-00000001"), template("os-amd64-1.33.6-eu-1-ami-00000002", "ami-00000002"),
        template("os-amd64-1.33.6-eu-1-ami-00000003", "ami-00000003"), template("foreign", "ami-00000009"), template("open", ""),
        consumer("MachineDeployment", "old", "by-hand", deployment),
        consumer("KubeadmControlPlane", "control-plane", "os-amd64-1.33.6-eu-1-ami-00000003", control_plane),
        consumer("MachineDeployment", "new", "os-amd64-1.33.6-eu-1-ami-00000002", deployment),
        consumer("MachineDeployment", "foreign", "foreign", deployment),
        consumer("MachineDeployment", "lookup", "open", deployment),
        consumer("MachineDeployment", "nowhere\nkind: Secret", "nowhere", deployment),
    ]});
    std::fs::write(folder.path().join("consumers.json"), consumers.to_string()).unwrap();
    let printed =
        |more: &[&str]| images(&folder, &[&["resolve", "--source", "list.json", "-o", "capa"], more].concat(), "");
    let name = |printed: &str| printed.lines().find_map(|line| line.strip_prefix("  name: ")).unwrap().to_owned();
    write(json!([image("ami-00000001", "2026-01-01T00:00:00Z")]));
    let before = printed(&[]);
    assert!(before.stdout.contains("--consumers"), "{before:?}");
    write(json!([image("ami-00000001", "2026-01-01T00:00:00Z"), image("ami-00000002", "2026-02-01T00:00:00Z")]));
    let after = printed(&["--consumers", "consumers.json"]);
    assert_ne!(name(&before.stdout), name(&after.stdout));
    let comments: Vec<&str> = after.stdout.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        comments,
        [
            "# MachineDeployment prod/foreign: ami-00000009 of its template foreign is an image of none of these flavors.",
            "# MachineDeployment prod/lookup: its template open has no ami.id.",
            "# MachineDeployment prod/nowhere kind: Secret: its template nowhere was not read.",
            "# KubeadmControlPlane prod/control-plane still uses ami-00000003 with template os-amd64-1.33.6-eu-1-ami-00000003:",
            "#   write the name of this template into spec.machineTemplate.infrastructureRef.name.",
            "# MachineDeployment prod/new uses ami-00000002 with template os-amd64-1.33.6-eu-1-ami-00000002.",
            "# MachineDeployment prod/old still uses ami-00000001 with template by-hand:",
            "#   write the name of this template into spec.template.spec.infrastructureRef.name.",
        ],
        "{after:?}"
    );
    assert_eq!(printed(&["--consumers", "consumers.json", "-o", "json"]).code, 2);
}

#[test]
fn check_names_the_lines_of_errors_for_code_scanning() {
    let folder = folder();
    let check = |more: &[&str]| {
        images(&folder, &[&["check", "example/images/profiles/aws.yaml"], &SOURCE[..], more].concat(), "")
    };
    let output = check(&["-o", "sarif"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    let run = output.json()["runs"][0].clone();
    let ids: Vec<&str> =
        run["tool"]["driver"]["rules"].as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images.md")).unwrap();
    assert!(
        ids.iter().all(|id| page.contains(&format!("| `{id}`")) || page.contains(&format!("`, `{id}` |"))),
        "{ids:?}"
    );
    let text = std::fs::read_to_string(folder.path().join("example/images/profiles/aws.yaml")).unwrap();
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 4, "{run}");
    for result in results {
        assert_eq!(
            (&result["level"], &ids[result["ruleIndex"].as_u64().unwrap() as usize]),
            (&json!("error"), &"missing")
        );
        let location = &result["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], "example/images/profiles/aws.yaml");
        let line = location["region"]["startLine"].as_u64().unwrap() as usize;
        let flavor = text.lines().nth(line - 1).unwrap();
        assert!(flavor.contains("capabilities:") || flavor.trim_start().starts_with('-'), "{line}: {flavor}");
    }
}

#[test]
fn flavors_for_the_same_machines_are_a_warning() {
    let folder = folder();
    let check = |cloud: &str, change: &dyn Fn(&mut Value)| {
        let path = folder.path().join(format!("example/images/profiles/{cloud}.yaml"));
        let mut profile: Value = yaml::documents(&std::fs::read_to_string(path).unwrap()).unwrap().remove(0);
        for half in ["/spec/machineImages", "/spec/providerConfig/machineImages"] {
            change(profile.pointer_mut(&format!("{half}/0/versions/0/capabilityFlavors")).unwrap());
        }
        std::fs::write(folder.path().join("profile.yaml"), profile.to_string()).unwrap();
        let source = ["--source", "example/images/release-2001.2", "--at", "2026-11-22"];
        images(&folder, &[&["check", "profile.yaml"], &source[..]].concat(), "")
    };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(["aws", "azure"].iter().all(|cloud| !check(cloud, &|_| {}).stdout.contains("overlap")));
    // A second flavor with the same images, for some machines of the first one.
    let output = check("aws", &|flavors| {
        let mut part = flavors[0].clone();
        let capabilities = if part["capabilities"].is_object() { &mut part["capabilities"] } else { &mut part };
        capabilities["bootMode"] = json!(["uefi"]);
        flavors.as_array_mut().unwrap().push(part);
    });
    assert_eq!(output.code, 0, "a warning is no error: {}", output.stdout);
    assert!(output.stdout.contains("1 finding"), "{}", output.stdout);
    let reported = words(&output.stdout);
    assert!(reported.contains("overlap gardenlinux 2001.2.0"), "{reported}");
    // In both halves, the flavor of gen1 has no generation, so it also matches gen2, which its image does not support.
    let output = check("azure", &|flavors| {
        let flavor = &mut flavors[0];
        let capabilities = if flavor["capabilities"].is_object() { &mut flavor["capabilities"] } else { &mut *flavor };
        assert_eq!(capabilities.as_object_mut().unwrap().remove("hypervisorType"), Some(json!(["gen1"])));
    });
    let reported = words(&output.stdout);
    assert!(output.code == 1 && reported.contains("2 findings"), "{reported}");
    assert!(
        reported.contains("overlap gardenlinux 2001.2.0") && reported.contains("capability gardenlinux 2001.2.0"),
        "{reported}"
    );
}

#[test]
fn promote_takes_what_was_there_for_some_days() {
    let folder = folder();
    let locked = "example/images/images.lock"; // on 2026-10-06
    let promote = |at: &str, more: &[&str]| {
        images(&folder, &[&["promote", locked, "prod.lock", "--days", "7", "--at", at], more].concat(), "")
    };
    let target = folder.path().join("prod.lock");
    let early = promote("2026-10-12", &[]);
    assert_eq!(early.code, 1, "{}", early.stderr);
    assert!(early.stderr.contains("is there since 2026-10-06, less than 7 days"), "{}", early.stderr);
    assert!(!target.exists(), "nothing was old enough");
    let output = promote("2026-10-13", &["--dry-run"]);
    assert!(output.code == 1 && !target.exists(), "{}", output.stdout);
    let promoted = promote("2026-10-13", &["-o", "json"]);
    let changes = promoted.json()["changes"].as_array().unwrap().len();
    assert_eq!((promoted.code, changes), (1, 16), "{}", promoted.stderr);
    let ids = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().filter(|line| line.trim_start().starts_with("id:")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(ids(&target), ids(&folder.path().join(locked)));
    let again = promote("2026-10-14", &[]);
    assert_eq!((again.code, again.stdout.trim_end()), (0, "prod.lock: nothing changes."));
}

#[test]
fn images_prints_what_is_described() {
    let folder = folder();
    let json = |arguments: &[&str], input: &str| images(&folder, &[arguments, &["-o", "json"]].concat(), input).json();
    let ami = |id: &str, more: Value| {
        let mut ami = json!({"ImageId": id, "Name": "capa-ami-ubuntu-24.04-v1.34.2-1", "OwnerId": "222222222222", "State": "available",
            "Architecture": "x86_64", "CreationDate": "2026-09-22T09:00:00Z"});
        ami.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ami
    };
    let amis = json!({"Images": [ami("ami-00000001", json!({})), ami("ami-00000002", json!({"DeprecationTime": "2026-10-01T00:00:00Z"}))]});
    std::fs::write(folder.path().join("amis.json"), amis.to_string()).unwrap();
    let lookups =
        ["--source", "eu-central-1=amis.json", "--lookups", "example/images/lookups.yaml", "--at", "2026-11-22"];
    let lock = std::fs::read_to_string(folder.path().join("example/images/images.lock")).unwrap();
    std::fs::write(
        folder.path().join("images.lock"),
        lock.replace("version: 2001.2.0", "version: 2002.1.0").replace("\"2001.2.0\"", "\"2002.1.0\""),
    )
    .unwrap();
    let listed = json(&[&["list", "--lock", "images.lock"], &lookups[..]].concat(), "");
    assert_eq!(listed["schema"], "images-list/v1");
    assert_described(&[listed], "images list -o json");
    let resolved = [
        json(&[&["resolve", "--lock", "images.lock"], &SOURCE[..]].concat(), ""),
        json(&[&["resolve"], &lookups[..]].concat(), ""),
    ];
    assert_described(&resolved, "images resolve -o json");
    let updated = json(&[&["update", "--dry-run"], &SOURCE[..]].concat(), "");
    assert_eq!((&updated["schema"], &updated["written"]), (&json!("images-lock/v1"), &json!(false)));
    assert_described(&[updated], "images update -o json");
    let fill = |more: &[&str]| json(&[&["fill", "example/images/profiles/aws.yaml"], more].concat(), "");
    std::fs::write(folder.path().join("other.lock"), lock.replace("ami: ami-0", "ami: ami-1")).unwrap();
    // One image for only one region, and one for an architecture that the profile does not have.
    let image = |id: &str, region: &str, architecture: &str| {
        json!({"provider": "aws", "region": region, "reference": {"ami": id}, "image": "os", "version": "1.0.0",
            "facts": {"architecture": [architecture]}})
    };
    let images_of_os = [
        image("ami-00000001", "eu-central-1", "amd64"),
        image("ami-00000002", "eu-west-1", "amd64"),
        image("ami-00000003", "eu-central-1", "arm64"),
        image("ami-00000004", "eu-central-1", "riscv64"),
    ];
    let list = json!({"kind": "ImageList", "images": images_of_os});
    std::fs::write(folder.path().join("incomplete.yaml"), list.to_string()).unwrap();
    let mut filled = [
        fill(&["--lock", "other.lock", "--replace", "--classification", "supported"]),
        fill(&["--lock", "images.lock", "--classification", "supported", "--supersede", "--expire", "+48h"]),
        fill(&["--source", "incomplete.yaml", "--at", "2026-11-22"]),
    ];
    assert_eq!(filled[0]["profiles"][0]["cloudProfile"]["kind"], "CloudProfile");
    for document in &mut filled {
        document["profiles"][0]["cloudProfile"] = json!("a whole CloudProfile");
    }
    assert_described(&filled, "images fill -o json");
    let checked = json(&[&["check", "example/images/profiles/aws.yaml"], &SOURCE[..]].concat(), "");
    assert_eq!(checked["profiles"][0]["findings"][0]["rule"], "missing");
    assert_described(&[checked], "images check -o json");
    let filled = images(
        &folder,
        &[
            &[
                "fill",
                "example/images/profiles/aws.yaml",
                "--where",
                "variant=gardener_prod",
                "--classification",
                "supported",
            ],
            &SOURCE[..],
        ]
        .concat(),
        "",
    );
    std::fs::write(folder.path().join("aws.yaml"), filled.stdout).unwrap();
    let unused = |user: &str| json(&[&["unused", "aws.yaml", "--users", "-"], &SOURCE[..]].concat(), user);
    let shoot = r#"{"kind": "Shoot", "metadata": {"name": "a"}, "spec": {"cloudProfileName": "aws", "provider": {"workers": [{"machine": {"type": "t", "image": {"name": "gardenlinux", "version": "VERSION"}}}]}}}"#;
    let samples = [unused(&shoot.replace("VERSION", "2001.2.0")), unused(&shoot.replace("VERSION", "1.0.0"))];
    assert_eq!(samples[1]["versions"][1]["images"].as_array().map(Vec::len), Some(4), "{}", samples[1]);
    assert_described(&samples, "images unused -o json");
}
