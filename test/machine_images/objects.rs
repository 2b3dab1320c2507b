//! Objects for images: the objects that lookups create from sources, and the images that their consumers use. Also the
//! proposal's rows for objects.

use std::sync::Arc;

use gardener_extension_worker::api::capa::AwsMachineTemplate;
use gardener_extension_worker::api::image_objects::{ImageLookup, ImageSelection, MachineImage};
use gardener_extension_worker::images::catalogue::Catalogue;
use gardener_extension_worker::images::objects::Objects;
use gardener_extension_worker::images::objects::discovery::{SourceResults, Sources};
use gardener_extension_worker::images::objects::image::ImageObject;
use gardener_extension_worker::images::objects::write::{ImageEvent, Write};
use gardener_extension_worker::images::shared::Shared;
use gardener_extension_worker::images::sources::{ImageList, read};
use serde_json::{Value, json};

use crate::amis::{OURS, ami, at, catalogue, with};

const V1: &str = "capa-ami-ubuntu-24.04-v1.34.2-1790000000";
const V2: &str = "capa-ami-ubuntu-24.04-v1.34.2-1795000000";

/// A cluster without an API server: the written objects, and the published events.
#[derive(Default)]
struct Cluster(Written, Vec<ImageEvent>);

/// The objects in the API server.
#[derive(Default)]
struct Written {
    images: Vec<MachineImage>,
    lookups: Vec<ImageLookup>,
    selections: Vec<ImageSelection>,
    templates: Vec<AwsMachineTemplate>,
}

impl Written {
    /// The objects in the controllers' caches.
    fn objects(&self) -> Objects {
        let mut shared = Shared::default();
        Objects {
            images: self.images.iter().map(|image| Arc::new(ImageObject::new(image, &mut shared))).collect(),
            lookups: self.lookups.iter().cloned().map(Arc::new).collect(),
            selections: self.selections.iter().cloned().map(Arc::new).collect(),
            templates: self.templates.iter().cloned().map(Arc::new).collect(),
        }
    }
}

impl Cluster {
    fn with_lookup() -> Self {
        let spec = json!({"provider": "aws", "imagePrefix": "capa-ami", "lookupFormat": "-{{.OS}}-?{{.K8sVersion}}-*",
            "os": ["ubuntu-24.04"], "arch": ["amd64"], "versions": ">=1.33, <1.36", "owners": [OURS]});
        let lookup = serde_json::from_value(json!({"metadata": {"name": "capi"}, "spec": spec})).unwrap();
        Self(Written { lookups: vec![lookup], ..Written::default() }, Vec::new())
    }

    /// Decides and writes until nothing differs. Returns the number of rounds with writes.
    fn settle(&mut self, sources: Sources<'_>) -> usize {
        for rounds in 0..10 {
            let mut writes = self.0.objects().images_to_write(sources, at("2026-11-22"));
            if writes.is_empty() {
                writes = self.0.objects().selections_to_write(at("2026-11-22")).0;
            }
            if writes.is_empty() {
                return rounds;
            }
            writes.into_iter().for_each(|write| self.write(write));
        }
        panic!("it never settles");
    }

    fn listed(&mut self, amis: &[Value]) -> usize {
        self.settle(Sources::Listed(&catalogue(amis)))
    }

    fn write(&mut self, write: Write) {
        let Written { images, lookups, selections, templates } = &mut self.0;
        match write {
            Write::CreateImage(image) => images.push(image.object().unwrap()),
            Write::ReplaceImage(new) => {
                self.1.extend(new.event());
                put(images, new.object().unwrap(), |image| &image.metadata);
            }
            Write::DeleteImage(gone) => images.retain(|image| image.metadata.name.as_deref() != Some(&gone.name)),
            Write::LookupStatus(new, event) => {
                self.1.extend(event);
                put(lookups, new, |lookup| &lookup.metadata);
            }
            Write::CreateSelection(selection) => selections.push(selection),
            Write::ReplaceSelection(new) => put(selections, new, |selection| &selection.metadata),
            Write::SelectionStatus(new, event) => {
                self.1.extend(event);
                put(selections, new, |selection| &selection.metadata);
            }
            Write::TemplateLabels(new, labels) => {
                let mut new = *new;
                new.metadata.labels.get_or_insert_default().extend(labels);
                put(templates, new, |template| &template.metadata);
            }
        }
    }

    fn make(&mut self, name: &str, members: Value) {
        let spec = with(
            json!({"provider": "aws", "region": "eu-central-1", "reference": {"ami": name}, "image": "ubuntu-24.04", "version": "1.34.2"}),
            members,
        );
        self.0.images.push(serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap());
    }

    fn select(&mut self, members: Value) {
        let spec = json!({"provider": "aws", "region": "eu-central-1", "image": "ubuntu-24.04", "architecture": "amd64",
            "versions": ">=1.33, <1.36", "owners": [OURS]});
        let selection = json!({"metadata": {"name": "nodes", "namespace": "default"}, "spec": with(spec, members)});
        self.0.selections.push(serde_json::from_value(selection).unwrap());
    }

    fn template(&mut self, labels: Value) {
        let template =
            json!({"metadata": {"name": "nodes", "namespace": "default", "uid": "u", "labels": labels}, "spec": {}});
        self.0.templates.push(serde_json::from_value(template).unwrap());
    }

    /// Names of images. The newest ones are marked with a star.
    fn images(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .0
            .images
            .iter()
            .map(|image| {
                let star = if label(image, "latest") == Some("true") { "*" } else { "" };
                format!("{}{star}", image.metadata.name.as_deref().unwrap().trim_start_matches("ami-0000000"))
            })
            .collect();
        names.sort();
        names
    }

    fn selection(&self) -> &ImageSelection {
        &self.0.selections[0]
    }

    /// Versions with the images in use.
    fn used(&self) -> Vec<String> {
        self.selection().spec.images.iter().map(|(version, image)| format!("{version} {image}")).collect()
    }

    fn condition(&self, expected: &str) -> String {
        let condition =
            self.selection().status.conditions.iter().find(|condition| condition.condition_type == expected).unwrap();
        format!("{} {}: {}", condition.status, condition.reason, condition.message)
    }

    fn lookup(&self) -> &ImageLookup {
        &self.0.lookups[0]
    }
}

fn put<T>(all: &mut [T], new: T, metadata: impl Fn(&T) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) {
    let name = metadata(&new).name.clone();
    *all.iter_mut().find(|known| metadata(known).name == name).unwrap() = new;
}

fn label<'a>(image: &'a MachineImage, name: &str) -> Option<&'a str> {
    image.metadata.labels.as_ref()?.get(&format!("images.gardener-extension-worker/{name}")).map(String::as_str)
}

#[test]
fn a_lookup_creates_an_object_for_each_image_and_labels_the_newest_latest() {
    let mut cluster = Cluster::with_lookup();
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    assert_eq!(cluster.images(), ["1*"]);
    let image = &cluster.0.images[0];
    let labels = ["os-name", "kubernetes-version", "architecture", "region", "owner", "lookup"]
        .map(|name| label(image, name).unwrap());
    assert_eq!(labels, ["ubuntu-24.04", "1.34.2", "amd64", "eu-central-1", OURS, "capi"]);
    cluster.listed(&[ami("1", V1, "2026-09-22"), ami("2", V2, "2026-11-18")]);
    assert_eq!(cluster.images(), ["1", "2*"]);
    assert_eq!((cluster.lookup().status.found, cluster.lookup().status.errors.len()), (2, 0));
    // An image that becomes unusable stays, but is no longer the newest.
    cluster.listed(&[ami("1", V1, "2026-09-22"), with(ami("2", V2, "2026-11-18"), json!({"State": "pending"}))]);
    assert_eq!(cluster.images(), ["1*", "2"]);
}

#[test]
fn a_lookup_finds_images_by_fields_filters_facts_owners_and_versions() {
    let mut cluster = Cluster::with_lookup();
    let spec = json!({"provider": "aws", "image": "ubuntu", "imagePrefix": "capa-ami",
        "lookupFormat": "-{{.OS}}-{{.bootType}}-?{{.K8sVersion}}-*", "os": ["ubuntu-24.04", "ubuntu-22.04"], "arch": ["amd64", "arm64"],
        "customFields": [{"name": "bootType", "validValues": ["UEFI", "BIOS"]}], "versions": ">=1.34, <1.35", "owners": [OURS],
        "filters": [{"name": "tag:channel", "values": ["stable"]}], "facts": ["bootMode"]});
    cluster.0.lookups[0].spec = serde_json::from_value(spec).unwrap();
    let stable = json!({"BootMode": "uefi", "Tags": [{"Key": "channel", "Value": "stable"}]});
    let image = |id: &str, name: &str, members: Value| {
        with(with(ami(id, &format!("capa-ami-{name}-1"), "2026-09-22"), stable.clone()), members)
    };
    cluster.listed(&[
        image("1", "ubuntu-24.04-UEFI-v1.34.2", json!({})),
        image("2", "ubuntu-24.04-UEFI-1.34.2", json!({"Architecture": "arm64"})),
        image("3", "ubuntu-22.04-BIOS-v1.34.2", json!({"BootMode": "legacy-bios"})),
        image("4", "ubuntu-24.04-UEFI-v1.34.2", json!({"Tags": []})),
        image("5", "ubuntu-24.04-UEFI-v1.35.0", json!({})),
        image("6", "ubuntu-24.04-UEFI-v1.34.2", json!({"OwnerId": "999999999999"})),
        image("7", "ubuntu-24.04-PXE-v1.34.2", json!({})),
    ]);
    assert_eq!(cluster.images(), ["1*", "2*", "3*"]);
    let facts =
        json!({"architecture": ["amd64"], "bootMode": ["legacy-bios"], "bootType": ["BIOS"], "os": ["ubuntu-22.04"]});
    assert_eq!(json!(cluster.0.images[2].spec.facts), facts);
    assert_eq!(label(&cluster.0.images[2], "boot-mode"), Some("legacy-bios"));
}

#[test]
fn mixed_variants_create_no_object_and_delete_none() {
    let mut cluster = Cluster::with_lookup();
    let mut other = cluster.0.lookups[0].clone();
    other.metadata.name = Some("fips".to_owned());
    other.spec.lookup_format = "-{{.OS}}-fips-?{{.K8sVersion}}-*".to_owned();
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    cluster.0.lookups.push(other);
    let fips = ami("2", "capa-ami-ubuntu-24.04-fips-v1.34.2-1790000000", "2026-10-22");
    cluster.listed(&[ami("1", V1, "2026-09-22"), fips]);
    assert_eq!(cluster.images(), ["1*"]);
    for lookup in &cluster.0.lookups {
        assert!(lookup.status.errors[0].contains("has images of 2 variants"), "{:?}", lookup.status);
    }
}

#[test]
fn each_error_of_a_lookup_and_each_upgrade_is_published_once() {
    let mut cluster = Cluster::with_lookup();
    cluster.select(json!({}));
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    assert_eq!(cluster.1, []);
    cluster.listed(&[ami("1", V1, "2026-09-22"), ami("2", V2, "2026-11-18")]);
    cluster.settle(Sources::Unknown("amis.json: line 3: it ends too early"));
    assert!(cluster.lookup().status.failing_since.is_some());
    let since = cluster.lookup().status.failing_since.clone();
    cluster.settle(Sources::Unknown("amis.json: line 4: it ends too early"));
    assert_eq!(cluster.lookup().status.failing_since, since);
    cluster.listed(&[ami("1", V1, "2026-09-22"), ami("2", V2, "2026-11-18")]);
    assert_eq!(cluster.lookup().status.failing_since, None);
    let published: Vec<String> = cluster.1.iter().map(|event| format!("{event:?}")).collect();
    assert!(published[0].contains("UpgradeAvailable") && published[0].contains("ami-00000002"), "{published:?}");
    assert!(published[1].contains("line 3") && published[2].contains("line 4"), "{published:?}");
    assert_eq!(published.len(), 3);
}

#[test]
fn images_are_counted_by_state() {
    let mut cluster = Cluster::with_lookup();
    cluster.select(json!({}));
    cluster.make("bad", json!({}));
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    let old = json!({"DeprecationTime": "2026-11-01T00:00:00.000Z"});
    let pending = json!({"State": "pending"});
    cluster.listed(&[ami("2", V2, "2026-11-18"), ami("3", V1, "2026-09-22"), ami("4", V1, "2026-09-22")]);
    cluster.listed(&[
        ami("2", V2, "2026-11-18"),
        with(ami("3", V1, "2026-09-22"), old),
        with(ami("4", V1, "2026-09-22"), pending),
    ]);
    let numbers = cluster.0.objects().numbers(at("2026-11-22"));
    let counts = numbers.images.map(|(state, count)| format!("{} {count}", state.as_str()));
    assert_eq!(counts, ["available 1", "deprecated 1", "unavailable 1", "gone 1", "invalid 1"]);
    assert_eq!((numbers.upgrades, numbers.lookups), (1, vec![("capi".to_owned(), None)]));
}

#[test]
fn live_lookup_status_has_the_response_time() {
    let mut cluster = Cluster::with_lookup();
    cluster.0.lookups[0].spec.ec2 = Some(serde_json::from_value(json!({"regions": ["eu-central-1"]})).unwrap());
    let files = || (Sources::Unknown("no source is named"), at("2026-11-22"));
    let decided = |cluster: &Cluster, results: &SourceResults| {
        cluster.0.objects().images_to_write_with(files(), results, at("2026-11-22"))
    };
    // After a start, nothing is decided until the cloud responds, whatever the files contain.
    assert!(decided(&cluster, &SourceResults::default()).is_empty());
    let result = Ok(catalogue(&[ami("1", V1, "2026-09-22")]));
    let results = SourceResults::from([("capi".to_owned(), (Arc::new(result), at("2026-11-20")))]);
    decided(&cluster, &results).into_iter().for_each(|write| cluster.write(write));
    assert_eq!(cluster.lookup().status.last_run.as_deref(), Some("2026-11-20T00:00:00Z"));
    assert!(decided(&cluster, &results).is_empty(), "a round is no answer");
    assert_eq!(cluster.0.objects().numbers(at("2026-11-22")).live["capi"], at("2026-11-20"));
    cluster.0.lookups[0].spec.ec2 = None;
    assert!(cluster.0.objects().numbers(at("2026-11-22")).live.is_empty());
}

#[test]
fn a_selection_uses_only_images_that_are_replicated_to_its_region() {
    let mut cluster = Cluster::default();
    cluster.select(
        json!({"provider": "azure", "region": "northeurope", "image": "os", "versions": ">=1.0", "owners": ["g"]}),
    );
    let image = |name: &str, regions: Value| {
        let reference = format!("/CommunityGalleries/g/Images/{name}/Versions/1.0.0");
        json!({"provider": "azure", "region": null, "regions": regions, "image": "os", "version": "1.0.0", "owner": "g",
            "reference": {"communityGalleryImageID": reference}, "facts": {"architecture": ["amd64"]}})
    };
    cluster.make("there", image("there", json!(["westeurope"])));
    cluster.listed(&[]);
    assert!(cluster.condition("Resolved").starts_with("False NoImage"), "{}", cluster.condition("Resolved"));
    cluster.make("here", image("here", json!(["westeurope", "northeurope"])));
    cluster.listed(&[]);
    assert_eq!(cluster.used(), ["1.0.0 here"]);
}

#[test]
fn nothing_is_written_when_nothing_differs() {
    let mut cluster = Cluster::with_lookup();
    cluster.select(json!({}));
    let amis = [ami("1", V1, "2026-09-22"), ami("2", V2, "2026-11-18")];
    assert!(cluster.listed(&amis) > 0);
    assert_eq!(cluster.listed(&amis), 0);
    let reversed = [amis[1].clone(), amis[0].clone()];
    assert_eq!(cluster.listed(&reversed), 0, "the order of a listing does not matter");
}

#[test]
fn deletes_images_that_are_gone_and_unused() {
    let mut cluster = Cluster::with_lookup();
    cluster.listed(&[ami("1", V1, "2026-09-22"), ami("2", V2, "2026-11-18")]);
    cluster.listed(&[ami("2", V2, "2026-11-18")]);
    assert_eq!(cluster.images(), ["2*"]);
}

#[test]
fn clean_up_spares_what_is_used() {
    let mut cluster = Cluster::with_lookup();
    cluster.select(json!({}));
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    cluster.listed(&[ami("2", V2, "2026-11-18")]);
    assert_eq!(cluster.images(), ["1", "2*"]);
    assert_eq!(cluster.used(), ["1.34.2 ami-00000001"]);
    assert_eq!(cluster.condition("Resolved"), "False ImageGone: Gone: ami-00000001 of 1.34.2");
    assert_eq!(cluster.condition("UpgradeAvailable"), "True NewerImage: 1.34.2: ami-00000002 after ami-00000001");
    // Moving the version to the newer image releases the old one.
    cluster.0.selections[0].spec.images.insert("1.34.2".to_owned(), "ami-00000002".to_owned());
    cluster.listed(&[ami("2", V2, "2026-11-18")]);
    assert_eq!(cluster.images(), ["2*"]);
}

#[test]
fn a_source_with_a_mistake_deletes_nothing() {
    let mut cluster = Cluster::with_lookup();
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    let last_run = cluster.lookup().status.last_run.clone();
    cluster.settle(Sources::Unknown("amis.json: line 3: it ends too early"));
    assert_eq!(cluster.images(), ["1*"]);
    assert_eq!(cluster.lookup().status.errors, ["amis.json: line 3: it ends too early"]);
    assert_eq!(cluster.lookup().status.last_run, last_run);
    cluster.listed(&[]);
    assert_eq!(cluster.images(), ["1*"]);
    assert_eq!(
        cluster.lookup().status.errors,
        ["the sources have no image that it means; images that it has made stay"]
    );
}

#[test]
fn images_of_a_deleted_lookup_are_deleted() {
    let mut cluster = Cluster::with_lookup();
    let amis = [ami("1", V1, "2026-09-22")];
    cluster.listed(&amis);
    cluster.0.lookups.clear();
    cluster.listed(&amis);
    assert!(cluster.images().is_empty());
}

#[test]
fn a_hand_made_image_is_only_enriched() {
    let mut cluster = Cluster::with_lookup();
    cluster.make("ami-00000001", json!({"owner": "999999999999"}));
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    let image = &cluster.0.images[0];
    assert_eq!(
        (image.spec.owner.as_deref(), image.spec.created.as_deref()),
        (Some("999999999999"), Some("2026-09-22T09:00:00Z"))
    );
    assert_eq!((label(image, "architecture"), label(image, "lookup")), (Some("amd64"), None));
    cluster.listed(&[ami("2", V2, "2026-11-18")]);
    assert_eq!(cluster.images(), ["1", "2*"], "it is never deleted");
}

#[test]
fn hand_made_image_is_gone_when_unlisted() {
    let mut cluster = Cluster::default();
    cluster.make("ami-00000001", json!({"owner": OURS, "facts": {"architecture": ["amd64"]}}));
    cluster.make("ami-00000002", json!({"owner": OURS, "facts": {"architecture": ["amd64"]}}));
    let (first, other) = (ami("1", V1, "2026-09-22"), ami("9", V1, "2026-09-22"));
    let state = |cluster: &Cluster| cluster.0.images[0].spec.state.clone();
    cluster.listed(&[first.clone(), other.clone()]);
    // A source that is unreadable, or has no images of the region, changes no state.
    cluster.settle(Sources::Unknown("amis.json: line 3: it ends too early"));
    cluster.listed(&[]);
    assert_eq!((state(&cluster), cluster.1.len()), (None, 0));
    cluster.listed(std::slice::from_ref(&other));
    assert_eq!(state(&cluster).as_deref(), Some("gone"));
    assert_eq!(cluster.0.images[1].spec.state, None, "no source has ever listed it");
    assert_eq!(cluster.1, [ImageEvent::Gone("ami-00000001".to_owned())]);
    cluster.0.images.truncate(1);
    cluster.select(json!({}));
    cluster.listed(std::slice::from_ref(&other));
    assert!(cluster.condition("Resolved").starts_with("False NoImage"), "{}", cluster.condition("Resolved"));
    assert_eq!(cluster.listed(std::slice::from_ref(&other)), 0);
    cluster.listed(&[first, other]);
    assert_eq!(state(&cluster), None);
    assert_eq!(cluster.used(), ["1.34.2 ami-00000001"]);
}

#[test]
fn hand_made_image_is_gone_when_a_complete_listing_lacks_it() {
    let mut cluster = Cluster::default();
    for (id, members) in [
        ("ami-00000001", json!({"owner": OURS, "name": V1})),
        ("ami-00000002", json!({"owner": "222222222222", "name": V1})),
        ("ami-00000003", json!({"owner": OURS, "name": "another"})),
        ("ami-00000004", json!({"name": V1})),
        ("ami-00000005", json!({"owner": OURS, "name": V1, "region": "eu-west-1"})),
    ] {
        cluster.make(id, members);
    }
    let listing = |amis: &[Value]| {
        let covers = json!([{"provider": "aws", "region": "eu-central-1", "owners": [OURS], "names": ["capa-ami-ubuntu-24.04-*"]}]);
        let listed = read(&json!({"Images": amis}), Some("eu-central-1")).unwrap();
        let list = ImageList::new(&listed.images);
        let mut list = serde_json::to_value(list).unwrap();
        list["covers"] = covers;
        Catalogue::new(vec![read(&list, None).unwrap()]).unwrap()
    };
    cluster.settle(Sources::Listed(&listing(&[])));
    let states: Vec<Option<&str>> = cluster.0.images.iter().map(|image| image.spec.state.as_deref()).collect();
    assert_eq!(states, [Some("gone"), None, None, None, None], "the others are not covered");
    assert_eq!(cluster.1, [ImageEvent::Gone("ami-00000001".to_owned())]);
    cluster.settle(Sources::Listed(&listing(&[ami("1", V1, "2026-09-22")])));
    assert_eq!(cluster.0.images[0].spec.state, None);
}

#[test]
fn selection_reports_images_of_other_flavors() {
    let mut cluster = Cluster::with_lookup();
    let arm = json!({"facts": {"architecture": ["arm64"]}});
    cluster.make("arm", with(json!({"reference": {"ami": "ami-00000003"}}), arm));
    let away =
        json!({"reference": {"ami": "ami-00000004"}, "region": "eu-west-1", "facts": {"architecture": ["amd64"]}});
    cluster.make("away", away);
    cluster.select(json!({"images": {"1.34.2": "ami-00000002"}}));
    cluster.listed(&[ami("1", V1, "2026-09-22"), ami("2", "capa-ami-ubuntu-24.04-v1.33.6-1", "2025-01-01")]);
    let wrong = |cluster: &mut Cluster, name: &str| {
        cluster.0.selections[0].spec.images.insert("1.34.2".to_owned(), name.to_owned());
        cluster.listed(&[ami("1", V1, "2026-09-22"), ami("2", "capa-ami-ubuntu-24.04-v1.33.6-1", "2025-01-01")]);
        cluster.condition("Resolved")
    };
    for (name, reported) in
        [("ami-00000002", "is ubuntu-24.04 1.33.6"), ("arm", "is for arm64"), ("away", "is in eu-west-1")]
    {
        assert_eq!(wrong(&mut cluster, name), format!("False WrongImage: Wrong: {name} of 1.34.2 {reported}"));
    }
    assert_eq!(wrong(&mut cluster, "ami-00000001"), "True ImagesSelected: Versions with an image: 2");
}

#[test]
fn status_has_the_reason_against_images() {
    let mut cluster = Cluster::with_lookup();
    cluster.listed(&[with(ami("1", V1, "2026-09-22"), json!({"OwnerId": "999999999999"}))]);
    let error = cluster.lookup().status.errors[0].clone();
    assert!(error.ends_with("its owner \"999999999999\" is not allowed (1)"), "{error}");
    cluster.0.lookups[0].spec.filters =
        serde_json::from_value(json!([{"name": "bootmode", "values": ["uefi"]}])).unwrap();
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    let error = cluster.lookup().status.errors[0].clone();
    assert!(error.starts_with("spec.filters[0].name: no image has the fact \"bootmode\""), "{error}");
}

#[test]
fn goal_all_machines_of_a_version_get_the_same_ami_by_one_record() {
    let mut cluster = Cluster::with_lookup();
    cluster.select(json!({}));
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    cluster.listed(&[ami("1", V1, "2026-09-22"), ami("2", V2, "2026-11-18")]);
    assert_eq!(cluster.used(), ["1.34.2 ami-00000001"], "a newer one is only announced");
}

#[test]
fn goal_an_upgrade_is_deterministic() {
    let mut cluster = Cluster::with_lookup();
    cluster.select(json!({}));
    let amis = [ami("1", V1, "2026-09-22"), ami("3", V2, "2026-11-18"), ami("2", V2, "2026-11-18")];
    cluster.listed(&amis[..1]);
    cluster.listed(&amis);
    let upgrade = &cluster.selection().status.upgrades[0];
    assert_eq!(
        (upgrade.image.as_str(), upgrade.newer.as_str()),
        ("ami-00000001", "ami-00000002"),
        "of two as old, the smaller id"
    );
    cluster.0.selections[0].spec.images.insert("1.34.2".to_owned(), "ami-00000002".to_owned());
    cluster.listed(&amis);
    assert_eq!(cluster.condition("UpgradeAvailable"), "False UpToDate: No newer image is known");
}

#[test]
fn goal_air_gapped_images_made_by_hand_are_enough() {
    let mut cluster = Cluster::default();
    let facts = json!({"architecture": ["amd64"]});
    cluster.make("ami-00000001", json!({"owner": OURS, "facts": facts, "created": "2026-09-22T00:00:00Z"}));
    cluster.make("ami-00000002", json!({"owner": OURS, "facts": facts, "created": "2026-11-18T00:00:00Z"}));
    cluster.select(json!({}));
    cluster.settle(Sources::Unknown("no source is named"));
    assert_eq!(cluster.used(), ["1.34.2 ami-00000002"]);
    assert_eq!(cluster.images(), ["1", "2*"]);
}

#[test]
fn question_owner_distinguishes_equal_flavors() {
    let mut cluster = Cluster::with_lookup();
    cluster.0.lookups[0].spec.owners.push("222222222222".to_owned());
    cluster.select(json!({}));
    let amis = [ami("1", V1, "2026-09-22"), with(ami("2", V2, "2026-11-18"), json!({"OwnerId": "222222222222"}))];
    cluster.listed(&amis);
    assert_eq!(cluster.images().len(), 2);
    assert_eq!(cluster.used(), ["1.34.2 ami-00000001"]);
    assert_eq!(cluster.condition("UpgradeAvailable"), "False UpToDate: No newer image is known");
}

#[test]
fn question_objects_are_created_when_an_image_is_found_not_when_it_is_used() {
    let mut cluster = Cluster::with_lookup();
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    assert_eq!((cluster.images(), cluster.0.selections.len()), (vec!["1*".to_owned()], 0));
}

#[test]
fn question_an_image_that_was_copied_later_with_an_older_date_is_found() {
    let mut cluster = Cluster::with_lookup();
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    cluster.listed(&[ami("1", V1, "2026-09-22"), ami("2", "capa-ami-ubuntu-24.04-v1.33.6-1", "2025-01-01")]);
    assert_eq!(cluster.images(), ["1*", "2*"]);
}

#[test]
fn a_selection_without_image_is_not_resolved() {
    let mut cluster = Cluster::with_lookup();
    cluster.select(json!({"architecture": "arm64"}));
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    assert_eq!(
        cluster.condition("Resolved"),
        "False NoImage: No MachineImage of ubuntu-24.04 for arm64 in eu-central-1 can be used"
    );
    cluster.0.selections[0].spec.versions = "~1.34".to_owned();
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    assert!(cluster.condition("Resolved").starts_with("False InvalidSpec: spec.versions: "));
}

#[test]
fn a_template_gets_labels_of_its_first_resolutions() {
    let mut cluster = Cluster::with_lookup();
    let opted_in =
        json!({"images.gardener-extension-worker/lookup": "capi", "topology.kubernetes.io/region": "eu-central-1"});
    cluster.template(opted_in);
    let amis = [ami("1", V1, "2026-09-22"), ami("4", "capa-ami-ubuntu-24.04-v1.33.6-1", "2026-09-22")];
    cluster.listed(&amis);
    assert_eq!(versions(&cluster.0.templates[0]), ["1.33.6 ami-00000004", "1.34.2 ami-00000001"]);
    let owner = &cluster.selection().metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.uid.as_str()), ("AWSMachineTemplate", "u"));
    // A newer image is announced. A label that a user writes moves the version.
    let amis = [amis[0].clone(), amis[1].clone(), ami("2", V2, "2026-11-18")];
    cluster.listed(&amis);
    assert!(cluster.condition("UpgradeAvailable").starts_with("True"));
    cluster.0.templates[0]
        .metadata
        .labels
        .as_mut()
        .unwrap()
        .insert("cluster.x-k8s.io/version-ami-1.34.2".to_owned(), "ami-00000002".to_owned());
    cluster.listed(&amis);
    assert_eq!(cluster.used(), ["1.33.6 ami-00000004", "1.34.2 ami-00000002"]);
    assert!(cluster.condition("UpgradeAvailable").starts_with("False"));
}

#[test]
fn a_label_that_is_there_before_the_selection_counts() {
    let mut cluster = Cluster::with_lookup();
    cluster.template(
        json!({"images.gardener-extension-worker/lookup": "capi", "topology.kubernetes.io/region": "eu-central-1",
        "cluster.x-k8s.io/version-ami-1.34.2": "ami-00000001"}),
    );
    cluster.listed(&[ami("1", V1, "2026-09-22"), ami("2", V2, "2026-11-18")]);
    assert_eq!(cluster.used(), ["1.34.2 ami-00000001"]);
}

#[test]
fn templates_that_did_not_opt_in_or_have_an_image_are_left_alone() {
    let mut cluster = Cluster::with_lookup();
    cluster.template(json!({"topology.kubernetes.io/region": "eu-central-1"}));
    cluster.template(json!({"images.gardener-extension-worker/lookup": "capi"}));
    cluster.0.templates[1].spec.template.spec.ami.id = "ami-00000001".to_owned();
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    assert!(cluster.0.selections.is_empty());
}

#[test]
fn an_invalid_image_is_reported_and_not_changed() {
    let mut cluster = Cluster::with_lookup();
    cluster.make("bad", json!({"created": "yesterday"}));
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    assert_eq!(cluster.images(), ["1*", "bad"]);
    let problems = cluster.0.objects().selections_to_write(at("2026-11-22")).1;
    assert_eq!(
        problems,
        ["MachineImage bad: spec.reference: this is no ami: ami-… with 8 to 17 hexadecimal digits is expected"]
    );
}

#[test]
fn a_template_reports_its_missing_label() {
    let mut cluster = Cluster::with_lookup();
    cluster.template(json!({"images.gardener-extension-worker/lookup": "capi"}));
    let problem = |cluster: &Cluster| cluster.0.objects().selections_to_write(at("2026-11-22")).1.concat();
    assert_eq!(problem(&cluster), "AWSMachineTemplate default/nodes: it needs the label topology.kubernetes.io/region");
    cluster.0.templates[0]
        .metadata
        .labels
        .as_mut()
        .unwrap()
        .insert("topology.kubernetes.io/region".to_owned(), "eu-central-1".to_owned());
    cluster.0.lookups[0].spec.arch.push("arm64".to_owned());
    assert_eq!(
        problem(&cluster),
        "AWSMachineTemplate default/nodes: it needs the label kubernetes.io/arch: the lookup has several"
    );
    cluster.0.templates[0].spec.template.spec.image_lookup_org = "9".to_owned();
    cluster.0.lookups[0].spec.arch.pop();
    assert_eq!(problem(&cluster), "AWSMachineTemplate default/nodes: its imageLookupOrg 9 is no owner of the lookup");
    cluster.0.lookups.clear();
    assert_eq!(problem(&cluster), "AWSMachineTemplate default/nodes: there is no such ImageLookup");
}

#[test]
fn lookups_with_long_names_keep_their_own_images() {
    let mut cluster = Cluster::with_lookup();
    let long = |end: &str| format!("{}{end}", "capi.".repeat(40));
    let mut other = cluster.0.lookups[0].clone();
    other.spec.os = vec!["flatcar-stable".to_owned()];
    (cluster.0.lookups[0].metadata.name, other.metadata.name) = (Some(long("ubuntu")), Some(long("flatcar")));
    cluster.0.lookups.push(other);
    cluster.listed(&[ami("1", V1, "2026-09-22"), ami("2", "capa-ami-flatcar-stable-v1.34.2-1", "2026-09-22")]);
    let labels: Vec<&str> = cluster.0.images.iter().map(|image| label(image, "lookup").unwrap()).collect();
    assert!(labels[0] != labels[1] && labels.iter().all(|label| label.len() <= 63), "{labels:?}");
    // The API server accepts these label values, and they cannot be the name of another lookup.
    let letters = |label: &&str| label.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    assert!(labels.iter().all(letters) && labels.iter().all(|label| label.contains('_')), "{labels:?}");
    // An unreadable source deletes no image, and a deleted lookup deletes only its own.
    assert_eq!(
        cluster.settle(Sources::Unknown("amis.json: line 3: it ends too early")),
        1,
        "only the status is written"
    );
    assert_eq!(cluster.images(), ["1*", "2*"]);
    cluster.0.lookups.pop();
    cluster.settle(Sources::Unknown("amis.json: line 3: it ends too early"));
    assert_eq!(cluster.images(), ["1*"]);
    // A template refers to the lookup by the same value as the images.
    let name = label(&cluster.0.images[0], "lookup").unwrap().to_owned();
    cluster.template(
        json!({"images.gardener-extension-worker/lookup": name, "topology.kubernetes.io/region": "eu-central-1"}),
    );
    cluster.listed(&[ami("1", V1, "2026-09-22")]);
    assert_eq!(versions(&cluster.0.templates[0]), ["1.34.2 ami-00000001"]);
}

#[test]
fn a_template_reports_what_can_be_no_label_and_keeps_the_rest() {
    let long = format!("{}image", "hand-made.".repeat(7));
    let mut cluster = Cluster::with_lookup();
    cluster.template(
        json!({"images.gardener-extension-worker/lookup": "capi", "topology.kubernetes.io/region": "eu-central-1"}),
    );
    let known = json!({"owner": OURS, "facts": {"architecture": ["amd64"]}});
    cluster.make("ami-00000001", known.clone());
    for (name, version) in [(long.as_str(), "1.34.3"), ("ami-00000003", "1.34.4+one"), ("ami-00000004", "1.35.0")] {
        let reference = format!("ami-0000000{}", cluster.0.images.len() + 1);
        cluster.make(name, with(known.clone(), json!({"version": version, "reference": {"ami": reference}})));
    }
    cluster.listed(&[]);
    assert_eq!(versions(&cluster.0.templates[0]), ["1.34.2 ami-00000001", "1.35.0 ami-00000004"]);
    assert_eq!(cluster.used().len(), 4, "the selection has all of them");
    assert_eq!(
        cluster.0.objects().selections_to_write(at("2026-11-22")).1,
        [format!(
            "AWSMachineTemplate default/nodes: no label can say this: version-ami-1.34.3={long}, version-ami-1.34.4+one=ami-00000003"
        )]
    );
}

/// Versions with the images in a template's labels.
fn versions(template: &AwsMachineTemplate) -> Vec<String> {
    let labels = template.metadata.labels.iter().flatten();
    let of_version =
        labels.filter_map(|(label, image)| Some((label.strip_prefix("cluster.x-k8s.io/version-ami-")?, image)));
    of_version.map(|(version, image)| format!("{version} {image}")).collect()
}
