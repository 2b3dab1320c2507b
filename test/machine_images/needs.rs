//! Over random landscapes, no user needs a version that is reported as unused.

use std::collections::BTreeSet;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use gardener_extension_worker::images::catalogue::Catalogue;
use gardener_extension_worker::images::sources::read;
use gardener_extension_worker::images::unused::{Unused, UsersError, unused};
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::reader::objects::flattened;
use gardener_extension_worker::resolved_profile::profile::Profile;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::amis::at;

const VERSIONS: usize = 12;

fn version(number: usize) -> String {
    format!("{}.{}.0", 1 + number / 4, number % 4)
}

fn ami_of(number: usize) -> String {
    format!("ami-{number:08x}")
}

fn profile() -> Profile {
    let numbers = || (0..VERSIONS).rev();
    let core: Vec<Value> = numbers()
        .map(|number| json!({"version": version(number), "architectures": ["amd64"], "classification": "supported", "cri": [{"name": "containerd"}]}))
        .collect();
    let provider: Vec<Value> = numbers()
        .map(|number| json!({"version": version(number), "regions": [{"name": "r", "ami": ami_of(number)}]}))
        .collect();
    let document = json!({
        "kind": "CloudProfile", "metadata": {"name": "p"},
        "spec": {
            "type": "aws", "regions": [{"name": "r"}], "machineTypes": [{"name": "t", "architecture": "amd64"}],
            "bastion": {"machineImage": {"name": "os", "version": version(0)}},
            "machineImages": [{"name": "os", "versions": core}],
            "providerConfig": {"apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
                "machineImages": [{"name": "os", "versions": provider}]},
        },
    });
    Profile::read(document, Providers::SHIPPED).unwrap()
}

fn packed(document: &Value) -> String {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(document.to_string().as_bytes()).unwrap();
    STANDARD.encode(gzip.finish().unwrap())
}

fn shoot(profile: Value, image: Value) -> Value {
    json!({"kind": "Shoot", "metadata": {"name": "s", "namespace": "garden-a"}, "spec": {"cloudProfile": profile,
        "provider": {"type": "aws", "workers": [{"name": "a", "machine": {"type": "t", "image": image}}]}}})
}

/// A document that needs a version, in one of the forms found in landscapes, and the versions that it needs.
fn user(form: usize, number: usize) -> (Value, BTreeSet<usize>) {
    let image = json!({"name": "os", "version": version(number)});
    let of_p = json!({"kind": "CloudProfile", "name": "p"});
    let minor = |number: usize| (0..VERSIONS).filter(|other| other / 4 == number / 4).collect();
    let one = BTreeSet::from([number]);
    match form {
        0 => (shoot(of_p, image), one),
        1 => (shoot(json!({"kind": "NamespacedCloudProfile", "name": "child"}), image), one),
        // An unknown profile may extend ours.
        2 => (shoot(json!({"kind": "NamespacedCloudProfile", "name": "unknown"}), image), one),
        3 => (json!({"kind": "Worker", "spec": {"type": "aws", "pools": [{"machineImage": image}]}}), one),
        4 => (
            json!({"kind": "Worker", "spec": {"type": "aws", "pools": []}, "status": {"providerStatus": {"machineImages": [{"name": "os", "version": version(number), "ami": "ami-00000000"}]}}}),
            BTreeSet::from([number, 0]),
        ),
        5 => (
            json!({"kind": "ShootState", "spec": {"gardener": [{"data": {"state": packed(&json!({"pool": {"machines": [{"spec": {"ami": ami_of(number)}}]}}))}}]}}),
            one,
        ),
        6 => (
            json!({"kind": "ShootState", "spec": {"extensions": [{"kind": "Worker", "state": {"machineImages": [image]}}]}}),
            one,
        ),
        7 => (
            json!({"kind": "NamespacedCloudProfile", "metadata": {"name": "child", "namespace": "garden-a"}, "spec": {"parent": {"kind": "CloudProfile", "name": "p"}, "machineImages": [{"name": "os", "versions": [{"version": version(number), "expirationDate": "2027-01-01T00:00:00Z"}]}]}}),
            one,
        ),
        8 => (json!({"kind": "MachineClass", "providerSpec": {"ami": ami_of(number).to_uppercase()}}), one),
        9 => (
            json!({"kind": "Machine", "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": format!("{{\"spec\":{{\"ami\":\"{}\"}}}}", ami_of(number))}}}),
            one,
        ),
        10 => (shoot(of_p, json!({"name": "os", "version": (1 + number / 4).to_string()})), minor(number)),
        11 => (
            json!({"kind": "ShootList", "items": [{"spec": {"cloudProfileName": "p", "provider": {"workers": [{"machine": {"type": "t", "image": image}}]}}}]}),
            one,
        ),
        12 => (json!({"worker": {"kind": "Worker", "spec": {"pools": [{"machineImage": image}]}}, "secrets": []}), one),
        13 => {
            (json!({"kind": "Cluster", "spec": {"shoot": shoot(of_p, image), "cloudProfile": profile().document}}), one)
        }
        14 => (shoot(of_p, Value::Null), (0..VERSIONS).collect()),
        // These need nothing from the profile.
        15 => (shoot(json!({"kind": "CloudProfile", "name": "other"}), image), BTreeSet::new()),
        _ => (json!({"kind": "Worker", "spec": {"type": "gcp", "pools": [{"machineImage": image}]}}), BTreeSet::new()),
    }
}

fn requested(users: Vec<Value>) -> Result<Unused, UsersError> {
    unused(&profile(), &flattened(users), &[], &Catalogue::default(), None, at("2026-11-22"))
}

proptest! {
    #[test]
    fn what_somebody_needs_is_never_unused(choices in prop::collection::vec((0..17_usize, 0..VERSIONS), 0..6)) {
        // The bastion's version and the version of new pools are needed by any landscape.
        let mut needed = BTreeSet::from([0, VERSIONS - 1]);
        let mut documents = vec![json!({"kind": "Shoot", "spec": {"cloudProfileName": "other"}})];
        for (form, number) in choices {
            let (document, needs) = user(form, number);
            documents.push(document);
            needed.extend(needs);
        }
        let found = requested(documents).unwrap();
        let unused: BTreeSet<String> = found.versions.iter().filter(|version| version.is_unused()).map(|version| version.version.clone()).collect();
        let expected: BTreeSet<String> = (0..VERSIONS).filter(|number| !needed.contains(number)).map(version).collect();
        prop_assert_eq!(unused, expected);
        let ids: BTreeSet<&String> = found.versions.iter().flat_map(|version| &version.images).collect();
        prop_assert!(needed.iter().all(|number| !ids.contains(&ami_of(*number))), "{ids:?}");
    }
}

/// Images of the cloud to which nothing refers, with these users.
fn images_of_nobody(profile: &Profile, users: Vec<Value>) -> Vec<String> {
    let amis: Vec<Value> =
        [1, 77, 78].map(|number| json!({"ImageId": ami_of(number), "Name": "a", "State": "available"})).to_vec();
    let catalogue = crate::amis::catalogue(&amis);
    let found = unused(profile, &users, &[], &catalogue, None, at("2026-11-22")).unwrap();
    found.images.into_iter().map(|image| image.id).collect()
}

#[test]
fn an_image_that_any_profile_names_is_not_of_nobody() {
    let shoot = || json!({"kind": "Shoot"});
    let own = profile();
    assert_eq!(images_of_nobody(&own, vec![shoot()]), [ami_of(77), ami_of(78)]);
    // The profile names the image in a region that it does not have (any more).
    let mut elsewhere = own.document.clone();
    let regions = &mut elsewhere["spec"]["providerConfig"]["machineImages"][0]["versions"][0]["regions"];
    regions.as_array_mut().unwrap().push(json!({"name": "left", "ami": ami_of(77)}));
    let elsewhere = Profile::read(elsewhere, Providers::SHIPPED).unwrap();
    assert_eq!(images_of_nobody(&elsewhere, vec![shoot()]), [ami_of(78)]);
    // Another profile, or a seed's copy of it, names the image.
    let other =
        json!({"kind": "CloudProfile", "metadata": {"name": "other"}, "spec": {"providerConfig": {"ami": ami_of(78)}}});
    let copy = json!({"kind": "Cluster", "spec": {"shoot": shoot(), "cloudProfile": other}});
    assert_eq!(images_of_nobody(&elsewhere, vec![shoot(), other]), Vec::<String>::new());
    assert_eq!(images_of_nobody(&elsewhere, vec![shoot(), copy]), Vec::<String>::new());
}

#[test]
fn an_image_is_needed_wherever_a_text_names_it() {
    let azure =
        "/subscriptions/0/resourceGroups/rg(images)/providers/Microsoft.Compute/galleries/g/images/i/versions/1.0.0";
    for (provider, reference, id, texts) in [
        ("azure", "id", azure, vec!["{}", "https://management.azure.com{}?api-version=1", "'{}'", "a{}"]),
        ("openstack", "image", "flatcar+nvidia-1.0.0", vec!["{}", "image: {}", "{\"image\":\"{}\"", "{}\n"]),
        (
            "aws",
            "ami",
            "ami-0c16f4992aecd5a05",
            vec!["arn:aws:ec2:eu-west-1::image/{}", "eu-west-1:{}", "{}=1", "a_{}_b"],
        ),
        ("gcp", "image", "projects/p/global/images/i", vec!["https://www.googleapis.com/compute/v1/{}", "x;{};y"]),
    ] {
        let profile =
            Profile::read(crate::profiles::document(&format!("profiles/{provider}.yaml")), Providers::SHIPPED);
        let list = json!({"kind": "ImageList", "images": [{"provider": provider, "reference": {reference: id}}]});
        let catalogue = Catalogue::new(vec![read(&list, None).unwrap()]).unwrap();
        let profile = profile.unwrap();
        let of_nobody = |text: &str| {
            let class = json!({"kind": "MachineClass", "providerSpec": {"image": text}});
            let users = vec![json!({"kind": "Shoot"}), class];
            unused(&profile, &users, &[], &catalogue, None, at("2026-11-22")).unwrap().images.len()
        };
        for text in texts {
            let text = text.replace("{}", id);
            assert_eq!((of_nobody(&text), of_nobody(&text.to_uppercase())), (0, 0), "{text}");
        }
        for another in [format!("{id}0"), id.replace("i", "j"), String::new()] {
            assert_eq!(of_nobody(&another), 1, "{another}");
        }
    }
}

#[test]
fn unreadable_input_ends_without_a_result() {
    let shoot = json!({"kind": "Shoot"});
    let state = |state: &str| json!({"kind": "ShootState", "metadata": {"name": "s"}, "spec": {"gardener": [{"data": {"state": state}}]}});
    let whole = packed(&json!({"pool": {}}));
    for (documents, explained) in [
        (vec![], "no Shoot and no Worker in the files: every version and image would be listed as unused"),
        (vec![state(&whole)], "no Shoot and no Worker in the files: every version and image would be listed as unused"),
        (
            vec![shoot.clone(), state(&whole[..whole.len() / 2])],
            "ShootState s: a packed state can't be read, so it is not known which images it needs",
        ),
    ] {
        assert_eq!(requested(documents).unwrap_err().to_string(), explained);
    }
    assert!(requested(vec![shoot, state(&whole)]).is_ok());
}
