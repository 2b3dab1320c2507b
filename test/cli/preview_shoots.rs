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

/// Two manifests, as a repository has them: what they do not tell is presumed, and named where it decides.
#[test]
fn what_is_presumed_is_named_where_it_decides() {
    let bare = [
        ("    kubelet: {kubeReserved: {cpu: 80m, memory: 1Gi, pid: 20k}}\n", ""),
        ("status: {technicalID: shoot--meadow--canary}", ""),
    ];
    let of = |old: &[(&str, &str)], new: &[(&str, &str)], options: &[&str]| {
        let [old, new] = [old, new].map(|edits| Files::new(&[&bare, edits].concat()));
        let (profile, old, new) = (old.path("profile.yaml"), old.path("new.yaml"), new.path("new.yaml"));
        let shown = run(&[&["preview", "--profiles", &profile, &old, &new, "-o", "json"], options].concat()).json();
        let findings = shown["workers"][0]["findings"].as_array().unwrap().clone();
        let presumed = findings.into_iter().filter(|finding| finding["kind"] == "presumed");
        let told = presumed.map(|finding| format!("{}: {}", finding["pool"], finding["message"])).collect::<Vec<_>>();
        (shown["exitCode"].as_i64().unwrap(), told.join("\n"))
    };
    // Nothing presumed decides.
    assert_eq!(of(&[], &[("maxSurge: 3", "maxSurge: 4")], &[]), (1, String::new()));
    assert_eq!(of(&[], &[("version: 1592.4.0", "version: 1592.9.0")], &[]), (5, String::new()));
    // A policy for the cluster is lost where each pool has settings of its own.
    let policy = ("    version: 1.34.3\n", "    version: 1.34.3\n    kubelet: {cpuManagerPolicy: static}\n");
    let (code, told) = of(&[], &[policy], &[]);
    assert_eq!((code, told.matches("its nodes stay").count()), (5, 2), "{told}");
    assert!(told.contains("statically, not by machine type; where it reserves by machine type"), "{told}");
    assert_eq!(of(&[], &[policy], &["--presume", "reservation-by-machine-type"]), (0, String::new()));
    // kube-proxy's mode counts together with node-local DNS.
    let ipvs = ("    version: 1.34.3\n", "    version: 1.34.3\n    kubeProxy: {mode: IPVS}\n");
    let (code, told) = of(&[], &[ipvs], &[]);
    assert_eq!((code, told.matches("no node-local DNS; where it does").count()), (0, 2), "{told}");
    assert_eq!(of(&[], &[ipvs], &["--presume", "node-local-dns"]).0, 5);
    // The old manifest leaves the image open: it may be any.
    let open = (", image: {name: gardenlinux, version: 1592.4.0}}\n      minimum: 6", "}\n      minimum: 6");
    let newest = ("version: 1592.4.0", "version: 1592.9.0");
    for (edit, code, end) in
        [(newest, 0, "its nodes are replaced or updated"), (("minimum: 6", "minimum: 6"), 5, "its nodes stay")]
    {
        let (exit, told) = of(&[open], &[edit], &[]);
        assert_eq!((exit, told.lines().count()), (code, 1), "{told}");
        assert!(told.starts_with("\"web\"") && told.contains(end), "{told}");
    }
}

#[test]
fn what_the_infrastructure_becomes_is_presumed() {
    let shown = Files::new(&[("zoned: true", "zoned: true, networks: {zones: [{name: 1}]}")]).preview(&[]);
    assert!(shown.stdout.contains("note: presumed: the status of the Infrastructure is as"), "{shown:?}");
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
    let shown = explain(&[]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""), "{shown:?}");
    assert_same("test/cli/golden/explain-shoot.txt", &shown.stdout);
    let document = explain(&["-o", "json", "--pool", "web"]).json();
    let pools = document["shoots"][0]["pools"].as_array().unwrap();
    assert_eq!((pools.len(), &pools[0]["key"][0]["member"]), (1, &"kubernetes.version".into()), "{document:#}");
    assert_eq!(explain(&["--pool", "none"]).code, 3);
    assert_eq!(run(&["explain", "--shoot", "example/azure.yaml"]).code, 3);
}

/// Another policy needs another server group; a volume of OpenStack's pools does not count.
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
        let shown = run(&["preview", &path("old.yaml"), &path("new.yaml")]);
        assert_eq!(shown.code, code, "{shown:?}");
        assert_eq!(
            shown.stdout.contains("web zone eu-1  ROLL  providerConfig.serverGroup.policy"),
            code == 5,
            "{shown:?}"
        );
    }
    let explained = run(&["explain", "--shoot", &path("old.yaml")]).stdout;
    assert!(explained.contains("server group         presumed: from the cloud"), "{explained}");
}

/// Whatever stands in a Shoot, nothing panics.
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
            let shown = files.preview(options);
            assert!([3, 6, 7].contains(&shown.code) && !shown.stderr.contains("panicked"), "{new}: {shown:?}");
        }
    }
}
