//! Rolls out a fix in 48 hours, from its publication until no machine runs the vulnerable image: for five clouds of
//! Gardener, and for Cluster API on AWS.
//!
//! The test simulates the maintenance of the 48 hours without `forecast`, and reads the images from the rendered
//! machine classes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gardener_extension_worker::api::gardener::ProfileSpec;
use gardener_extension_worker::api::gotext::yaml;
use gardener_extension_worker::versions::catalog::VersionCatalog;
use gardener_extension_worker::versions::garden::{Garden, Validation};
use gardener_extension_worker::versions::history::History;
use gardener_extension_worker::versions::maintenance::MaintainedShoot;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{Outcome, command, outcome};
use crate::images::copy;

/// The day on which the CVE is published, and the deadline.
const PUBLISHED: &str = "2026-11-22T00:00:00Z";
const DEADLINE: &str = "2026-11-24T00:00:00Z";
const OLD: &str = "2001.2.0";
const NEW: &str = "2002.1.0";

/// Each cloud with a machine type and a region of its profile in `example/images/profiles`.
const CLOUDS: [(&str, &str, &str); 5] = [
    ("aws", "m7i.xlarge", "eu-central-1"),
    ("azure", "Standard_D4s_v5", "westeurope"),
    ("gcp", "n2-standard-4", "europe-west1"),
    ("openstack", "g4", "north"),
    ("alicloud", "ecs.g7.xlarge", "eu-central-1"),
];

/// The Shoots of each cloud, and whether `forecast --still-on` must list them.
const SHOOTS: [(&str, bool); 5] =
    [("auto", false), ("sleeping", false), ("opted-out", true), ("opted-out-sleeping", true), ("frozen", true)];

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("example/images"), &folder.path().join("example/images"));
    folder
}

fn run(folder: &TempDir, arguments: &[&str]) -> Outcome {
    let mut command = command(arguments);
    command.current_dir(folder.path());
    outcome(command, "")
}

fn write(folder: &TempDir, file: &str, documents: &[Value]) {
    let text: String = documents.iter().map(|document| format!("---\n{document}\n")).collect();
    std::fs::write(folder.path().join(file), text).unwrap();
}

fn profile(folder: &TempDir, file: &str) -> Value {
    yaml::documents(&std::fs::read_to_string(folder.path().join(file)).unwrap()).unwrap().remove(0)
}

/// A Shoot of a cloud whose pool has the old image.
fn shoot(name: &str, cloud: (&str, &str, &str), pool: &Value) -> Value {
    let (cloud, machine_type, region) = cloud;
    let machine =
        json!({"type": machine_type, "architecture": "amd64", "image": {"name": "gardenlinux", "version": OLD}});
    let worker =
        json!({"name": pool["name"], "minimum": pool["minimum"], "maximum": pool["maximum"], "machine": machine});
    let automatic = !name.starts_with("opted-out");
    let mut shoot = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": name, "namespace": "garden-farm"},
        "spec": {
            "cloudProfile": {"kind": "CloudProfile", "name": cloud}, "region": region,
            "kubernetes": {"version": "1.34.2"},
            "maintenance": {
                "timeWindow": {"begin": "220000+0000", "end": "230000+0000"},
                "autoUpdate": {"kubernetesVersion": automatic, "machineImageVersion": automatic},
            },
            "provider": {"type": cloud, "workers": [worker]},
        },
        "status": {"lastOperation": {"state": "Succeeded", "type": "Reconcile", "progress": 100}},
    });
    if name.ends_with("sleeping") {
        shoot["spec"]["hibernation"] = json!({"enabled": true});
    }
    if name == "frozen" {
        shoot["metadata"]["annotations"] = json!({"shoot.gardener.cloud/ignore": "true"});
    }
    shoot
}

/// The seed objects of each Shoot, generated from the example of the cloud.
type Landscape = BTreeMap<&'static str, SeedObjects>;

#[derive(Clone)]
struct SeedObjects {
    worker: Value,
    cluster: Value,
    secrets: Vec<Value>,
}

impl SeedObjects {
    fn all(&self) -> Vec<Value> {
        [self.worker.clone(), self.cluster.clone()].into_iter().chain(self.secrets.clone()).collect()
    }
}

fn landscape(folder: &TempDir, cloud: (&str, &str, &str)) -> Landscape {
    let (name, machine_type, region) = cloud;
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("example/{name}.yaml"));
    let text = std::fs::read_to_string(example).unwrap();
    let documents = yaml::documents(&text).unwrap();
    let namespace = documents.iter().find(|document| document["kind"] == "Worker").unwrap()["metadata"]["namespace"]
        .as_str()
        .unwrap();
    let shoots = SHOOTS.map(|(shoot_name, _)| {
        let documents = yaml::documents(&text.replace(namespace, &format!("shoot--farm--{shoot_name}"))).unwrap();
        let (secrets, others): (Vec<Value>, Vec<Value>) =
            documents.into_iter().partition(|document| document["kind"] == "Secret");
        let of_kind = |kind: &str| others.iter().find(|document| document["kind"] == kind).unwrap().clone();
        let (mut worker, mut cluster) = (of_kind("Worker"), of_kind("Cluster"));
        let mut pool = worker["spec"]["pools"][0].take();
        pool["machineType"] = machine_type.into();
        pool["machineImage"] = json!({"name": "gardenlinux", "version": OLD});
        pool["architecture"] = "amd64".into();
        pool["kubernetesVersion"] = "1.34.2".into();
        let mut listed = profile(folder, &format!("example/images/profiles/{name}.yaml"));
        for listed in listed["spec"]["regions"].as_array_mut().unwrap() {
            let zones = pool["zones"].as_array().unwrap().iter();
            listed["zones"] = zones.map(|zone| json!({"name": zone})).collect();
        }
        cluster["spec"]["shoot"] = shoot(shoot_name, cloud, &pool);
        cluster["spec"]["cloudProfile"] = listed;
        worker["spec"]["pools"] = json!([pool]);
        worker["spec"]["region"] = region.into();
        (shoot_name, SeedObjects { worker, cluster, secrets })
    });
    BTreeMap::from(shoots)
}

/// Adds the fixed image to the profile of a cloud.
fn fill(folder: &TempDir, cloud: &str, expire: &str) {
    let profile = format!("example/images/profiles/{cloud}.yaml");
    let filled = run(
        folder,
        &[
            "images",
            "fill",
            "--lock",
            "images.lock",
            "--image-version",
            NEW,
            "--classification",
            "supported",
            "--supersede",
            "--expire",
            expire,
            "--at",
            PUBLISHED,
            &profile,
        ],
    );
    assert_eq!(filled.code, 0, "{cloud}: {}", filled.stderr);
    assert!(filled.stderr.contains("gardenlinux 2001.2.0 is deprecated because of 2002.1.0"), "{}", filled.stderr);
    std::fs::write(folder.path().join("filled.yaml"), filled.stdout).unwrap();
}

/// The Shoots in the output of `forecast --still-on`, and the earliest expiration that moves some of them.
fn still_on(folder: &TempDir) -> (BTreeSet<String>, Option<String>) {
    let output = run(
        folder,
        &[
            "forecast",
            "landscape.yaml",
            "--profiles",
            "filled.yaml",
            "--still-on",
            "gardenlinux@2001.2.0",
            "--from",
            PUBLISHED,
            "--at",
            DEADLINE,
            "-o",
            "json",
        ],
    );
    let document = output.json();
    assert_eq!((output.code, &document["evidence"]["complete"]), (1, &json!(true)), "{output:?}");
    let pools = document["pools"].as_array().unwrap();
    let named = pools.iter().map(|pool| pool["shoot"].as_str().unwrap().trim_start_matches("garden-farm/").to_owned());
    let expirations = pools.iter().filter_map(|pool| pool["expiration"]["time"].as_str());
    (named.collect(), expirations.min().map(str::to_owned))
}

/// The Shoots whose machine classes still have the old image after all windows until the deadline.
fn running_old_image(folder: &TempDir, landscape: &Landscape) -> BTreeSet<String> {
    let filled = profile(folder, "filled.yaml");
    let spec: ProfileSpec = serde_json::from_value(filled["spec"].clone()).unwrap();
    let catalog = VersionCatalog::new("", &spec);
    let [published, deadline] = [PUBLISHED, DEADLINE].map(|time| time.parse::<Timestamp>().unwrap());
    let is_old = |name: &str, objects: &SeedObjects| {
        let before = classes(folder, objects);
        let mut objects = objects.clone();
        let (worker, cluster) = (&mut objects.worker, &mut objects.cluster);
        let state = MaintainedShoot::read(&cluster["spec"]["shoot"], true).unwrap();
        let garden = Garden { validation: Validation::WithProfile, ..Garden::default() };
        let ten_minutes = SignedDuration::from_mins(10);
        let mut history = History::start(state, &catalog, garden, ten_minutes, published);
        history.advance(deadline);
        // Gardener does not reconcile frozen Shoots.
        if name != "frozen" {
            let image = history.state.shoot.spec.provider.workers[0].machine.image.clone().unwrap();
            worker["spec"]["pools"][0]["machineImage"]["version"] = image.version.into();
            cluster["spec"]["cloudProfile"]["spec"]["machineImages"] = filled["spec"]["machineImages"].clone();
            cluster["spec"]["cloudProfile"]["spec"]["providerConfig"] = filled["spec"]["providerConfig"].clone();
        }
        classes(folder, &objects) == before
    };
    landscape.iter().filter(|(name, objects)| is_old(name, objects)).map(|(name, _)| (*name).to_owned()).collect()
}

/// The provider specs of the machine classes, which contain the images.
fn classes(folder: &TempDir, objects: &SeedObjects) -> Vec<Value> {
    write(folder, "worker.yaml", &objects.all());
    let rendered = run(folder, &["render", "worker.yaml"]);
    assert_eq!(rendered.code, 0, "{rendered:?}");
    let documents = yaml::documents(&rendered.stdout).unwrap();
    let classes = documents.into_iter().filter(|document| document["kind"] == "MachineClass");
    let specs: Vec<Value> = classes.map(|class| class["providerSpec"].clone()).collect();
    assert!(!specs.is_empty(), "{rendered:?}");
    specs
}

#[test]
fn nothing_runs_the_old_image_except_what_was_named() {
    let folder = folder();
    let source = ["--source", "example/images/release-2002.1", "--where", "variant=gardener_prod", "--at", PUBLISHED];
    let resolved = run(&folder, &[&["images", "resolve", "-o", "json"], &source[..]].concat()).json();
    std::fs::copy(folder.path().join("example/images/images.lock"), folder.path().join("images.lock")).unwrap();
    let updated = run(&folder, &[&["images", "update", "--lock", "images.lock"], &source[..]].concat());
    assert_eq!(updated.code, 1, "{updated:?}");
    for cloud in CLOUDS {
        let is_of_cloud = |flavor: &&Value| flavor["provider"] == cloud.0 && flavor["version"] == NEW;
        assert!(resolved["flavors"].as_array().unwrap().iter().any(|flavor| is_of_cloud(&flavor)), "{cloud:?}");
        let landscape = landscape(&folder, cloud);
        write(&folder, "landscape.yaml", &landscape.values().flat_map(SeedObjects::all).collect::<Vec<_>>());

        fill(&folder, cloud.0, "+48h");
        let (named, earlier) = still_on(&folder);
        let expected = SHOOTS.iter().filter(|(_, is_named)| *is_named).map(|(name, _)| (*name).to_owned());
        assert_eq!(named, expected.collect::<BTreeSet<_>>(), "{cloud:?}");
        previews_the_same(&folder, &named);
        assert_eq!(running_old_image(&folder, &landscape), named, "{cloud:?}");

        // The expiration from the forecast moves all Shoots except the frozen one.
        fill(&folder, cloud.0, &earlier.unwrap());
        let (named, _) = still_on(&folder);
        assert_eq!(named, BTreeSet::from(["frozen".to_owned()]), "{cloud:?}");
        assert_eq!(running_old_image(&folder, &landscape), named, "{cloud:?}");
    }
}

/// The preview of the first window rolls the Shoots that the forecast does not list. Hibernated Shoots have no nodes.
fn previews_the_same(folder: &TempDir, named: &BTreeSet<String>) {
    let arguments =
        ["preview", "--maintenance", "--cloudprofile-new", "filled.yaml", "landscape.yaml", "--at", PUBLISHED];
    let output = run(folder, &[&arguments[..], &["-o", "json", "--all"]].concat());
    let document = output.json();
    let workers = document["workers"].as_array().unwrap();
    assert_eq!(workers.len(), SHOOTS.len(), "{output:?}");
    for worker in workers {
        let name = worker["namespace"].as_str().unwrap().trim_start_matches("shoot--farm--");
        // Maintenance also changes a frozen Shoot, but the Worker changes only when Gardener reconciles it again.
        let rolls = worker.to_string().contains("\"ROLL\"");
        assert_eq!(rolls, name == "frozen" || !named.contains(name), "{name}: {worker}");
    }
}

/// The objects of a management cluster, with the validation of the webhook of Cluster API's provider.
#[derive(Default)]
struct ManagementCluster {
    templates: BTreeMap<String, Value>,
    /// The template of each MachineDeployment.
    deployments: BTreeMap<String, String>,
}

impl ManagementCluster {
    /// Applies templates, of which `AWSMachineTemplate.spec` is immutable.
    fn apply(&mut self, templates: &str) {
        for template in yaml::documents(templates).unwrap() {
            let name = template["metadata"]["name"].as_str().unwrap().to_owned();
            let spec = template["spec"].clone();
            let known = self.templates.entry(name.clone()).or_insert_with(|| spec.clone());
            assert_eq!(*known, spec, "AWSMachineTemplate.spec of {name} is immutable");
        }
    }

    fn consumers(&self) -> Vec<Value> {
        let templates = self.templates.iter().map(|(name, spec)| {
            json!({"kind": "AWSMachineTemplate", "metadata": {"namespace": "prod", "name": name}, "spec": spec})
        });
        let deployments = self.deployments.iter().map(|(name, template)| {
            let reference = json!({"kind": "AWSMachineTemplate", "name": template});
            json!({"kind": "MachineDeployment", "metadata": {"namespace": "prod", "name": name},
                "spec": {"template": {"spec": {"infrastructureRef": reference}}}})
        });
        templates.chain(deployments).collect()
    }

    fn images(&self) -> BTreeSet<&str> {
        let id = |template: &String| self.templates[template].pointer("/template/spec/ami/id");
        self.deployments.values().filter_map(|template| id(template)?.as_str()).collect()
    }
}

#[test]
fn machine_deployments_move_to_a_new_template() {
    let folder = folder();
    let ami = |id: &str, build: u32, day: &str| {
        json!({"ImageId": id, "Name": format!("capa-ami-ubuntu-24.04-v1.34.2-{build}"), "OwnerId": "222222222222",
            "State": "available", "Architecture": "x86_64", "CreationDate": format!("{day}T09:00:00.000Z")})
    };
    let [vulnerable, fixed] = ["ami-00000001", "ami-00000002"];
    let publish = |amis: &[Value]| {
        std::fs::write(folder.path().join("amis.json"), json!({"Images": amis}).to_string()).unwrap();
    };
    let lookups = ["--source", "eu-central-1=amis.json", "--lookups", "example/images/lookups.yaml", "--at", DEADLINE];
    let images = |arguments: &[&str]| run(&folder, &[&["images"], arguments, &lookups[..]].concat());
    let templates = |more: &[&str]| images(&[&["resolve", "-o", "capa", "--lock", "capa.lock"], more].concat());
    publish(&[ami(vulnerable, 1, "2026-09-22")]);
    assert_eq!(images(&["lock", "--lock", "capa.lock"]).code, 1);
    let mut cluster = ManagementCluster::default();
    cluster.apply(&templates(&[]).stdout);
    let (first, _) = cluster.templates.first_key_value().unwrap();
    cluster.deployments = ["a", "b"].map(|name| (name.to_owned(), first.clone())).into();
    assert_eq!(cluster.images(), BTreeSet::from([vulnerable]));

    // The CVE is published, and an image for the same version of Kubernetes is rebuilt.
    publish(&[ami(vulnerable, 1, "2026-09-22"), ami(fixed, 2, "2026-11-22")]);
    assert_eq!(images(&["update", "--lock", "capa.lock"]).code, 1);
    write(&folder, "consumers.yaml", &cluster.consumers());
    let printed = templates(&["--consumers", "consumers.yaml"]).stdout;
    cluster.apply(&printed);
    assert_eq!(cluster.templates.len(), 2, "the old template stays: {printed}");
    let template = printed.lines().find_map(|line| line.strip_prefix("  name: ")).unwrap();
    let named: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.strip_prefix("# MachineDeployment prod/")?.split_once(" still uses ami-00000001"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(named, ["a", "b"], "{printed}");
    cluster.deployments.insert("a".to_owned(), template.to_owned());
    write(&folder, "consumers.yaml", &cluster.consumers());
    let printed = templates(&["--consumers", "consumers.yaml"]).stdout;
    assert!(printed.contains("prod/a uses ami-00000002") && printed.contains("prod/b still uses"), "{printed}");
    cluster.deployments.insert("b".to_owned(), template.to_owned());
    write(&folder, "consumers.yaml", &cluster.consumers());
    assert!(!templates(&["--consumers", "consumers.yaml"]).stdout.contains("still uses"));
    assert_eq!(cluster.images(), BTreeSet::from([fixed]));
}
