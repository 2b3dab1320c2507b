//! `preview` of Shoots: a manifest against the stored one, without a Worker or a cluster.

use serde_json::json;
use tempfile::TempDir;

use crate::binary::{Outcome, run};
use crate::golden::assert_same;
use crate::json::assert_described;

const SHOOTS: &str = include_str!("shoots.yaml");

/// The Shoot before and after, with the CloudProfile in a separate file or in both files.
struct Files {
    folder: TempDir,
}

impl Files {
    /// Writes the stored Shoot and a manifest with these replacements.
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
    let output = files.preview(&[]);
    assert_eq!((output.code, output.stderr.as_str()), (5, ""), "{output:?}");
    assert_same("test/cli/golden/preview-shoots.txt", &output.stdout);
}

#[test]
fn what_follows_of_an_edit_and_what_does_not() {
    let cases: [(&[(&str, &str)], i32); 7] = [
        // The API server's notation, and a default that it sets.
        (&[("memory: 1Gi", "memory: 1024Mi"), ("minimum: 2", "minimum: 2\n      cri: {name: containerd}")], 0),
        // Manifests have no status.
        (&[("\nstatus: {technicalID: shoot--meadow--canary}", "")], 0),
        (&[("maxSurge: 3", "maxSurge: 4")], 1),
        (&[("    kubelet: {kubeReserved: {cpu: 80m", "    kubelet: {kubeReserved: {cpu: 90m")], 5),
        (&[("name: batch", "name: batch-2")], 6),
        // The CloudProfile does not have this version, and the API server rejects a number instead of a string.
        (&[("version: 1592.4.0", "version: '9999'")], 7),
        (&[("version: 1592.4.0", "version: 9999")], 7),
    ];
    for (replacements, code) in cases {
        let output = Files::new(replacements).preview(&[]);
        assert_eq!(output.code, code, "{replacements:?}: {output:?}");
    }
}

#[test]
fn a_changed_cloudprofile_over_all_shoots() {
    let files = Files::new(&[]);
    let profile = std::fs::read_to_string(files.path("profile.yaml")).unwrap();
    std::fs::write(files.path("changed.yaml"), profile.replace("greatest:1592.4.0", "newest:1592.4.0")).unwrap();
    let [before, changed, old] = ["profile.yaml", "changed.yaml", "old.yaml"].map(|name| files.path(name));
    let output = run(&["preview", "--profiles", &before, "--cloudprofile-new", &changed, &old]);
    assert_eq!(output.code, 4, "{output:?}");
    assert!(output.stdout.contains("existing nodes stay, new nodes differ"), "{output:?}");
}

/// A project's extension of a CloudProfile as stored in a repository, without a status.
const OWN_PROFILE: &str = "
kind: NamespacedCloudProfile
metadata: {name: own, namespace: garden-meadow}
spec:
  parent: {kind: CloudProfile, name: az}
  machineImages:
  - name: gardenlinux
    versions: [{version: 1592.5.0, architectures: [amd64]}]
  providerConfig:
    apiVersion: azure.provider.extensions.gardener.cloud/v1alpha1
    kind: CloudProfileConfig
    machineImages: [{name: gardenlinux, versions: [{version: 1592.5.0, urn: \"sap:gardenlinux:own:1592.5.0\"}]}]
";

/// A changed profile affects only the Shoots that name it, or whose project's profile extends it.
#[test]
fn a_changed_profile_reaches_those_that_name_or_extend_it() {
    let files = Files::new(&[]);
    let write = |name: &str, text: &str| {
        let path = files.path(name);
        std::fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let read = |name: &str| std::fs::read_to_string(files.path(name)).unwrap();
    let (profile, shoot) = (read("profile.yaml"), read("old.yaml"));
    write("profiles/az.yaml", &profile);
    write("profiles/other.yaml", &profile.replace("{name: az}", "{name: other}"));
    let own = write("profiles/own.yaml", OWN_PROFILE);
    write("shoots/a.yaml", &shoot);
    let of_project = shoot
        .replace("{kind: CloudProfile, name: az}", "{kind: NamespacedCloudProfile, name: own}")
        .replace("canary", "own");
    // One pool has an image of the project, the other one an image of the parent.
    let of_project = of_project.replacen("1592.4.0", "1592.5.0", 1);
    write("shoots/b.yaml", &of_project);
    write("shoots/c.yaml", &shoot.replace("name: az}", "name: other}").replace("canary", "other"));
    let changed = write("changed.yaml", &profile.replace("greatest:1592.4.0", "newest:1592.4.0"));
    let own_changed = write("own-changed.yaml", &OWN_PROFILE.replace("own:1592.5.0", "mine:1592.5.0"));
    let [profiles, shoots] = ["profiles", "shoots"].map(|name| files.path(name));
    // The pools of each Worker whose new nodes differ.
    let differing = |output: &Outcome| -> Vec<String> {
        let document = output.json();
        assert_eq!(document["errors"], serde_json::json!([]), "{document:#}");
        let workers = document["workers"].as_array().unwrap().clone();
        let of_worker = |worker: &serde_json::Value| {
            let placements = worker["placements"].as_array().unwrap().clone();
            let mut pools: Vec<_> = placements
                .iter()
                .filter(|placement| placement["newNodesDiffer"] == true)
                .map(|placement| placement["pool"].as_str().unwrap().to_owned())
                .collect();
            pools.dedup();
            format!("{} {}", worker["name"].as_str().unwrap(), pools.join(","))
        };
        workers.iter().map(of_worker).collect()
    };
    let with = |profile: &str| {
        run(&["preview", "--profiles", &profiles, "--cloudprofile-new", profile, &shoots, "-o", "json"])
    };
    let output = with(&changed);
    assert_eq!(differing(&output), ["canary web,batch", "own batch", "other "], "{output:?}");
    assert!(output.stderr.contains("1 Shoot names another CloudProfile and keeps it"), "{output:?}");
    let output = with(&own_changed);
    assert_eq!(differing(&output), ["canary ", "own web", "other "], "{output:?}");
    // Without --cloudprofile-new, the folders contain the profiles.
    std::fs::rename(&profiles, write("shoots/x", "").replace("/x", "/profiles")).unwrap();
    let [new, old] = ["new", "shoots"].map(|name| files.path(name));
    let copied = std::process::Command::new("cp").args(["-r", &old, &new]).status().unwrap();
    assert!(copied.success());
    std::fs::copy(&changed, format!("{new}/profiles/az.yaml")).unwrap();
    let output = run(&["preview", &old, &new, "-o", "json"]);
    assert_eq!(differing(&output), ["canary web,batch", "own batch", "other "], "{output:?}");
    // The parent is missing.
    std::fs::remove_file(format!("{old}/profiles/az.yaml")).unwrap();
    let b = format!("{old}/b.yaml");
    let lacks = run(&["preview", "--profiles", &own.replace("/profiles", "/shoots/profiles"), &b, &b]);
    assert_eq!(lacks.code, 3, "{lacks:?}");
    assert!(lacks.stderr.contains(r#"no file has CloudProfile "az"; name one with --profiles"#), "{lacks:?}");
}

#[test]
fn a_shoot_without_its_cloudprofile_is_an_error() {
    let files = Files::new(&[]);
    let output = run(&["preview", &files.path("old.yaml"), &files.path("new.yaml")]);
    assert_eq!(output.code, 3, "{output:?}");
    let expected = r#"Shoot garden-meadow/canary: no file has CloudProfile "az"; name one with --profiles"#;
    assert!(output.stderr.contains(expected), "{output:?}");
}

/// Two manifests from a repository. Missing settings are assumed, and an assumption that affects the result is
/// reported.
#[test]
fn what_is_presumed_is_named_where_it_decides() {
    let bare = [
        ("    kubelet: {kubeReserved: {cpu: 80m, memory: 1Gi, pid: 20k}}\n", ""),
        ("status: {technicalID: shoot--meadow--canary}", ""),
    ];
    let of = |old: &[(&str, &str)], new: &[(&str, &str)], options: &[&str]| {
        let [old, new] = [old, new].map(|edits| Files::new(&[&bare, edits].concat()));
        let (profile, old, new) = (old.path("profile.yaml"), old.path("new.yaml"), new.path("new.yaml"));
        let output = run(&[&["preview", "--profiles", &profile, &old, &new, "-o", "json"], options].concat()).json();
        let findings = output["workers"][0]["findings"].as_array().unwrap().clone();
        let presumed = findings.into_iter().filter(|finding| finding["kind"] == "presumed");
        let reported =
            presumed.map(|finding| format!("{}: {}", finding["pool"], finding["message"])).collect::<Vec<_>>();
        (output["exitCode"].as_i64().unwrap(), reported.join("\n"))
    };
    // No assumption affects the result.
    assert_eq!(of(&[], &[("maxSurge: 3", "maxSurge: 4")], &[]), (1, String::new()));
    assert_eq!(of(&[], &[("version: 1592.4.0", "version: 1592.9.0")], &[]), (5, String::new()));
    // A cluster-wide policy has no effect on pools with their own settings.
    let policy = ("    version: 1.34.3\n", "    version: 1.34.3\n    kubelet: {cpuManagerPolicy: static}\n");
    let (code, reported) = of(&[], &[policy], &[]);
    assert_eq!((code, reported.matches("its nodes stay").count()), (5, 2), "{reported}");
    assert!(reported.contains("statically, not by machine type; where it reserves by machine type"), "{reported}");
    assert_eq!(of(&[], &[policy], &["--presume", "reservation-by-machine-type"]), (0, String::new()));
    // The mode of kube-proxy matters together with node-local DNS.
    let ipvs = ("    version: 1.34.3\n", "    version: 1.34.3\n    kubeProxy: {mode: IPVS}\n");
    let (code, reported) = of(&[], &[ipvs], &[]);
    assert_eq!((code, reported.matches("no node-local DNS; where it does").count()), (0, 2), "{reported}");
    assert_eq!(of(&[], &[ipvs], &["--presume", "node-local-dns"]).0, 5);
    // The old manifest leaves the image open, so it can be any.
    let open = (", image: {name: gardenlinux, version: 1592.4.0}}\n      minimum: 6", "}\n      minimum: 6");
    let newest = ("version: 1592.4.0", "version: 1592.9.0");
    for (edit, code, end) in
        [(newest, 0, "its nodes are replaced or updated"), (("minimum: 6", "minimum: 6"), 5, "its nodes stay")]
    {
        let (exit, reported) = of(&[open], &[edit], &[]);
        assert_eq!((exit, reported.lines().count()), (code, 1), "{reported}");
        assert!(reported.starts_with("\"web\"") && reported.contains(end), "{reported}");
    }
}

#[test]
fn what_the_infrastructure_becomes_is_presumed() {
    let output = Files::new(&[("zoned: true", "zoned: true, networks: {zones: [{name: 1}]}")]).preview(&[]);
    assert!(output.stdout.contains("note: presumed: the status of the Infrastructure is as"), "{output:?}");
}

#[test]
fn explain_names_the_members_of_a_shoot_that_replace_nodes() {
    let volumes = (
        "size: 50Gi}\n    - name: batch",
        "size: 50Gi}\n      dataVolumes: [{name: d, type: Premium_LRS, size: 10Gi}]\n      kubernetes: {version: 1.33.9}\n    - name: batch",
    );
    let files = Files::new(&[volumes, ("name: batch", "name: batch\n      updateStrategy: AutoInPlaceUpdate")]);
    let explain = |options: &[&str]| {
        let [profile, shoot] = ["profile.yaml", "new.yaml"].map(|name| files.path(name));
        run(&[&["explain", "--shoot", &shoot, "--profiles", &profile], options].concat())
    };
    let output = explain(&[]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    assert_same("test/cli/golden/explain-shoot.txt", &output.stdout);
    let document = explain(&["-o", "json", "--pool", "web"]).json();
    let pools = document["shoots"][0]["pools"].as_array().unwrap();
    assert_eq!((pools.len(), &pools[0]["key"][0]["member"]), (1, &"kubernetes.version".into()), "{document:#}");
    assert_eq!(explain(&["--pool", "none"]).code, 3);
    assert_eq!(run(&["explain", "--shoot", "example/azure.yaml"]).code, 3);
}

/// If a pool has no classes, no member of the Shoot is an input of one.
#[test]
fn explain_names_no_members_of_a_pool_without_classes() {
    let pool = |edits: &[(&str, &str)]| {
        let files = Files::new(edits);
        let [profile, shoot] = ["profile.yaml", "new.yaml"].map(|name| files.path(name));
        run(&["explain", "--shoot", &shoot, "--profiles", &profile, "--pool", "web"]).stdout
    };
    assert!(pool(&[]).contains("MEMBER OF THE SHOOT"));
    let without_zones = pool(&[("zones: [\"1\", \"2\"]", "zones: []")]);
    let (_, of_pool) = without_zones.split_once("Pool web\n").unwrap();
    assert_eq!(of_pool.trim(), "no classes: the pool has no zones");
}

#[test]
fn explain_of_shoots_prints_what_is_described() {
    let explain = |replacements: &[(&str, &str)]| {
        let files = Files::new(replacements);
        let [profile, shoot] = ["profile.yaml", "new.yaml"].map(|name| files.path(name));
        run(&["explain", "--shoot", &shoot, "--profiles", &profile, "-o", "json"]).json()
    };
    let samples = [
        explain(&[("zoned: true", "zoned: true, networks: {zones: [{name: 1}]}")]),
        explain(&[("size: 50Gi}", "size: 50Gi}\n      dataVolumes: [{name: d, type: Premium_LRS, size: 10Gi}]")]),
        explain(&[("size: 50Gi", "size: many")]),
        explain(&[("type: azure", "type: unknown")]),
    ];
    assert_eq!(samples[0]["schema"], "explain-shoot/v1");
    assert_described(&samples, "explain --shoot -o json");
    let schema = run(&["schema", "explain", "--shoot"]).json();
    assert_eq!(schema["properties"]["shoots"]["items"]["properties"]["shoot"]["type"], json!(["string"]), "{schema}");
}

/// Another policy needs another server group. OpenStack ignores the volume of pools.
#[test]
fn a_pool_of_openstack_rolls_with_the_policy_of_its_server_group() {
    const OPENSTACK: &str = "
kind: CloudProfile
metadata: {name: os}
spec:
  type: openstack
  kubernetes: {versions: [{version: 1.34.3}]}
  machineImages: [{name: gardenlinux, versions: [{version: 1592.4.0, architectures: [amd64]}]}]
  machineTypes: [{name: g4, cpu: '4', gpu: '0', memory: 16Gi, architecture: amd64}]
  providerConfig:
    apiVersion: openstack.provider.extensions.gardener.cloud/v1alpha1
    kind: CloudProfileConfig
    keystoneURL: https://identity.example.org
    machineImages: [{name: gardenlinux, versions: [{version: 1592.4.0, image: gl}]}]
---
kind: Shoot
metadata: {name: s, namespace: garden-p}
spec:
  cloudProfile: {name: os}
  region: eu
  kubernetes: {version: 1.34.3}
  provider:
    type: openstack
    workers:
    - name: web
      machine: {type: g4, image: {name: gardenlinux, version: 1592.4.0}}
      minimum: 1
      maximum: 2
      zones: [eu-1]
      dataVolumes: [{name: d, type: ssd, size: 10Gi}]
      providerConfig:
        apiVersion: openstack.provider.extensions.gardener.cloud/v1alpha1
        kind: WorkerConfig
        serverGroup: {policy: affinity}
";
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("old.yaml"), OPENSTACK).unwrap();
    for (old, new, code) in [("policy: affinity", "policy: anti-affinity", 5), ("size: 10Gi", "size: 20Gi", 0)] {
        std::fs::write(path("new.yaml"), OPENSTACK.replace(old, new)).unwrap();
        let output = run(&["preview", &path("old.yaml"), &path("new.yaml")]);
        assert_eq!(output.code, code, "{output:?}");
        assert_eq!(
            output.stdout.contains("web zone eu-1  ROLL  providerConfig.serverGroup.policy"),
            code == 5,
            "{output:?}"
        );
    }
    let explained = run(&["explain", "--shoot", &path("old.yaml")]).stdout;
    assert!(explained.contains("server group         presumed: from the cloud"), "{explained}");
}

/// Shoots of AliCloud, which no case of the corpus covers: verdicts, causes, and the inputs of the class.
#[test]
fn a_shoot_of_alicloud_rolls_with_what_enters_its_class() {
    const ALICLOUD: &str = "
kind: CloudProfile
metadata: {name: ali}
spec:
  type: alicloud
  kubernetes: {versions: [{version: 1.34.3}, {version: 1.33.9}]}
  machineImages: [{name: gardenlinux, versions: [{version: 1592.9.0, architectures: [amd64]}, {version: 1592.4.0, architectures: [amd64]}]}]
  machineTypes: [{name: ecs.g7.xlarge, cpu: '4', gpu: '0', memory: 16Gi, architecture: amd64}]
  providerConfig:
    apiVersion: alicloud.provider.extensions.gardener.cloud/v1alpha1
    kind: CloudProfileConfig
    machineImages:
    - name: gardenlinux
      versions:
      - {version: 1592.9.0, regions: [{name: eu-central-1, id: m-9}]}
      - {version: 1592.4.0, regions: [{name: eu-central-1, id: m-4}]}
---
kind: Shoot
metadata: {name: s, namespace: garden-p}
spec:
  cloudProfile: {kind: CloudProfile, name: ali}
  region: eu-central-1
  kubernetes: {version: 1.33.9}
  provider:
    type: alicloud
    workers:
    - name: web
      machine: {type: ecs.g7.xlarge, image: {name: gardenlinux, version: 1592.4.0}}
      minimum: 2
      maximum: 3
      maxSurge: 1
      zones: [eu-central-1a]
      volume: {type: cloud_essd, size: 50Gi}
      dataVolumes: [{name: d, type: cloud_essd, size: 40Gi}]
";
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("old.yaml"), ALICLOUD).unwrap();
    for (old, new, code, cause) in [
        (
            "image: {name: gardenlinux, version: 1592.4.0}",
            "image: {name: gardenlinux, version: 1592.9.0}",
            5,
            "machine.image.version",
        ),
        ("kubernetes: {version: 1.33.9}", "kubernetes: {version: 1.34.3}", 5, "spec.kubernetes.version"),
        ("size: 50Gi", "size: 60Gi", 5, "volume.size"),
        ("maximum: 3", "maximum: 5", 1, "maximum"),
        ("maxSurge: 1", "maxSurge: 2", 1, "maxSurge"),
        ("id: m-4", "id: m-5", 4, "spec.providerConfig.machineImages"),
        ("name: web", "name: web-2", 6, "spec.provider.workers"),
    ] {
        assert!(ALICLOUD.contains(old), "{old}");
        std::fs::write(path("new.yaml"), ALICLOUD.replacen(old, new, 1)).unwrap();
        let output = run(&["preview", &path("old.yaml"), &path("new.yaml"), "-o", "json"]);
        assert_eq!(output.code, code, "{new}: {output:?}");
        let causes = output.json()["workers"][0]["placements"][0]["causes"].to_string();
        assert!(causes.contains(cause), "{new}: {causes}");
    }
    let explained = run(&["explain", "--shoot", &path("old.yaml"), "-o", "json"]).json();
    let pool = &explained["shoots"][0]["pools"][0];
    let members = |list: &str| pool[list].as_array().map_or(0, Vec::len);
    assert_eq!((members("key") > 5, members("classes")), (true, 1), "{pool:#}");
    assert!(pool["error"].is_null() && !pool["classes"][0]["hash"].is_null(), "{pool:#}");
}

/// No content of a Shoot causes a panic.
#[test]
fn members_of_another_form_are_refused() {
    for (old, new) in [
        ("status: {technicalID: shoot--meadow--canary}", "status: text"),
        ("metadata: {name: canary, namespace: garden-meadow}", "metadata: text"),
        ("machine: {type: Standard_D4s_v5, image: {name: gardenlinux, version: 1592.4.0}}", "machine: text"),
        ("region: westeurope", "region: westeurope\n  systemComponents: text"),
    ] {
        let files = Files::new(&[(old, new)]);
        for options in [&[][..], &["--presume", "node-local-dns"]] {
            let output = files.preview(options);
            assert!([3, 6, 7].contains(&output.code) && !output.stderr.contains("panicked"), "{new}: {output:?}");
        }
    }
}

#[test]
fn what_rolls_is_saved_for_the_controller() {
    let files = Files::new(&[("version: 1592.4.0", "version: 1592.9.0"), ("maximum: 4", "maximum: 5")]);
    let rolls = files.path("rolls.json");
    let output = files.preview(&["--save", &rolls]);
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.stderr.ends_with("rolls.json: rolls of 1 Worker saved\n"), "{output:?}");
    let saved: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&rolls).unwrap()).unwrap();
    let worker = &saved["workers"][0];
    let planned: serde_json::Value = serde_json::from_str(worker["plannedRolls"].as_str().unwrap()).unwrap();
    let pools = planned["pools"].as_object().unwrap();
    assert_eq!(pools.keys().collect::<Vec<_>>(), worker["nodes"].as_object().unwrap().keys().collect::<Vec<_>>());
    assert_eq!((&planned["v"], &planned["saved"]), (&1.into(), &saved["saved"]));
    // Contains the edited members of a pool that rolls, but no inputs that only the landscape has.
    let inputs: Vec<&String> = pools.values().flat_map(|inputs| inputs.as_object().unwrap().keys()).collect();
    assert!(!inputs.is_empty() && inputs.iter().all(|input| input.contains("machineImage")), "{planned}");

    let invalid = Files::new(&[("version: 1592.4.0", "version: '9999'")]);
    let output = invalid.preview(&["--save", &invalid.path("rolls.json")]);
    assert!(output.stderr.contains("its rolls are not saved: it can't be compared, or becomes invalid"), "{output:?}");
    let nowhere = files.preview(&["--save", &files.path("no/such/folder.json")]);
    assert_eq!((nowhere.code, nowhere.stdout.as_str()), (3, ""), "{nowhere:?}");
}

/// `gardenadm connect` registers a self-hosted shoot (Gardener #15502). Admission then adds members, which change the
/// name of the node agent Secret.
#[test]
fn names_what_connecting_adds_to_self_hosted_shoots() {
    let files = Files::new(&[("    - name: web\n", "    - name: web\n      controlPlane: {}\n")]);
    let manifest = std::fs::read_to_string(files.path("new.yaml")).unwrap();
    let manifest = manifest.replace("    kubelet: {kubeReserved: {cpu: 80m, memory: 1Gi, pid: 20k}}\n", "");
    let reserved = "      controlPlane: {}\n      kubernetes: {kubelet: {kubeReserved: {cpu: 100m, memory: 2Gi}}}\n";
    std::fs::write(files.path("old.yaml"), &manifest).unwrap();
    std::fs::write(files.path("new.yaml"), manifest.replace("      controlPlane: {}\n", reserved)).unwrap();
    let document = files.preview(&["-o", "json"]).json();
    let placement = &document["workers"][0]["placements"][0];
    assert_eq!((&placement["pool"], &placement["verdict"]), (&json!("web"), &json!("ROLL")));
    assert_eq!(placement["hashInputs"], json!(["nodeAgentSecretName"]));
    assert_eq!(placement["causes"][0]["field"], "spec.provider.workers[web].kubernetes");
}
