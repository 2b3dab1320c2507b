//! `images fetch glance`: the images of OpenStack.

use serde_json::{Value, json};
use test_support::openstack::{Fault, OpenStack, Project};

use crate::person::{Outcome, Person};

fn image(number: usize, owner: &str) -> Value {
    json!({"id": format!("00000000-0000-4000-8000-{number:012}"), "name": format!("gardenlinux-{number}"),
        "status": "active", "owner": owner, "created_at": "2026-09-01T08:00:00Z", "architecture": "x86_64",
        "hw_firmware_type": "uefi", "visibility": "public", "min_disk": 3, "tags": []})
}

fn person(project: &Project) -> Person {
    Person::new(&[
        ("OS_AUTH_URL", &project.auth_url()),
        ("OS_APPLICATION_CREDENTIAL_ID", "id-of-credential"),
        ("OS_APPLICATION_CREDENTIAL_SECRET", "very-secret"),
    ])
}

fn fetch(person: &Person, more: &[&str]) -> Outcome {
    let fetched = person.images(&[&["fetch", "glance", "--to", "openstack.yaml"], more].concat());
    assert!(!fetched.stderr.contains("very-secret"), "{}", fetched.stderr);
    fetched
}

#[test]
fn fetches_all_pages_of_all_regions() {
    let openstack = OpenStack::start().unwrap();
    let project = openstack.project("images");
    project.set(|state| {
        state.images = (0..5).map(|number| image(number, if number == 4 { "other" } else { "ours" })).collect();
        state.regions = vec!["eu-de-1".to_owned(), "eu-de-2".to_owned()];
        state.page = 3;
    });
    let person = person(&project);
    let fetched = fetch(&person, &["--region", "eu-de-1,eu-de-2", "--owner", "ours"]);
    assert_eq!((fetched.code, fetched.stderr.as_str()), (0, "openstack.yaml: 8 images written.\n"), "{fetched:?}");
    let identity = project.set(|state| state.identity.clone());
    assert_eq!(identity["auth"]["identity"]["application_credential"]["id"], "id-of-credential");
    let listed = person.read("openstack.yaml");
    assert_eq!(["eu-de-1", "eu-de-2", "gardenlinux-4"].map(|text| listed.matches(text).count()), [4, 4, 0]);
    assert!(listed.contains("2026-09-01") && listed.contains("amd64") && listed.contains("uefi"), "{listed}");
    let fetched = fetch(&person, &["--region", "eu-de-1"]);
    assert_eq!(fetched.stderr, "openstack.yaml: 5 images written.\n");
}

#[test]
fn writes_nothing_if_a_page_is_missing() {
    let openstack = OpenStack::start().unwrap();
    let project = openstack.project("images");
    project.set(|state| {
        state.images = vec![image(1, "ours")];
        state.fails = vec![Fault::of("images", 503, "Service Unavailable")];
    });
    let person = person(&project);
    let fetched = fetch(&person, &["--region", "region-1"]);
    assert!(fetched.code == 3 && fetched.stderr.contains("Glance in region-1: listing images"), "{fetched:?}");
    project.set(|state| state.fails.clear());
    let fetched = fetch(&person, &["--region", "nowhere"]);
    assert!(fetched.stderr.contains("has no image endpoint for region \"nowhere\""), "{fetched:?}");
}
