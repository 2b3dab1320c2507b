//! `images fetch azure`: the galleries of Azure.

use serde_json::json;
use test_support::arm::{Arm, Gallery};

use crate::person::{Outcome, Person};

const LOOKUPS: &str = r#"
kind: ImageLookup
metadata: {name: os}
spec:
  provider: azure
  lookupFormat: "*/{{.K8sVersion}}"
  image: os
  arch: [amd64, arm64]
  versions: ">=1.0"
  facts: [generation]
  owners: [os-0123]
"#;

fn person(arm: &Arm) -> Person {
    let person = Person::new(&[
        ("AZURE_RESOURCE_MANAGER_URL", &arm.url()),
        ("AZURE_AUTHORITY_HOST", &arm.url()),
        ("AZURE_SUBSCRIPTION_ID", "00000000-0000-0000-0000-000000000001"),
        ("AZURE_TENANT_ID", "tenant"),
        ("AZURE_CLIENT_ID", "client"),
        ("AZURE_CLIENT_SECRET", "very-secret"),
    ]);
    person.write("lookups.yaml", LOOKUPS);
    person
}

fn fetch(person: &Person, more: &[&str]) -> Outcome {
    let fetched = person.images(&[&["fetch", "azure", "--to", "azure.yaml"], more].concat());
    assert!(!fetched.stderr.contains("very-secret"), "{}", fetched.stderr);
    fetched
}

fn gallery(location: &str, kind: &str) -> Gallery {
    let version = |day: &str, end: &str| json!({"publishedDate": format!("{day}T08:00:00.123+00:00"), "endOfLifeDate": format!("{end}T00:00:00+00:00")});
    Gallery::new(location, kind, "os-0123")
        .with_image(
            "os-gen2",
            json!({"architecture": "x64", "hyperVGeneration": "V2", "osState": "Generalized"}),
            &[("1.0.0", version("2026-09-01", "2026-11-01")), ("1.1.0", version("2026-10-01", "2027-10-01"))],
        )
        .with_image(
            "os-arm64",
            json!({"architecture": "Arm64", "hyperVGeneration": "V2"}),
            &[("1.1.0", version("2026-10-01", "2027-10-01"))],
        )
}

#[test]
fn the_images_of_community_galleries_become_a_file_that_other_commands_read() {
    let arm = Arm::start().unwrap();
    for location in ["westeurope", "northeurope"] {
        arm.has_gallery(gallery(location, "communityGalleries"));
    }
    let person = person(&arm);
    let fetched = fetch(&person, &["--location", "westeurope,northeurope", "--community-gallery", "os-0123"]);
    assert_eq!((fetched.code, fetched.stderr.as_str()), (0, "azure.yaml: 3 images written.\n"), "{fetched:?}");
    assert_eq!(["northeurope", "westeurope"].map(|region| person.read("azure.yaml").matches(region).count()), [3, 3]);
    let of = |image: &str, version: &str| format!("/CommunityGalleries/os-0123/Images/{image}/Versions/{version}");
    assert_eq!(
        person.resolved(&["--source", "azure.yaml", "--lookups", "lookups.yaml"]),
        [
            format!("os 1.0.0 everywhere: {} deprecated since 2026-11-01", of("os-gen2", "1.0.0")),
            format!("os 1.1.0 everywhere: {} chosen: the newest", of("os-gen2", "1.1.0")),
            format!("os 1.1.0 everywhere: {} chosen: the newest", of("os-arm64", "1.1.0")),
        ]
    );
    let tokens = arm.token_requests();
    assert!(tokens.iter().all(|request| request.reports("very-secret") && request.tenant == "tenant"), "{tokens:?}");
}

#[test]
fn queries_galleries_with_the_workload_token() {
    let arm = Arm::start().unwrap();
    arm.has_gallery(gallery("chinanorth3", "sharedGalleries"));
    let person = person(&arm).with("AZURE_FEDERATED_TOKEN_FILE", "token");
    person.write("token", "a-token\n");
    let fetched = fetch(&person, &["--location", "chinanorth3", "--shared-gallery", "os-0123"]);
    assert_eq!(fetched.code, 0, "{fetched:?}");
    let list = person.read("azure.yaml");
    assert_eq!(list.matches("realm: china\n").count(), 3, "{list}");
    assert_eq!(list.matches("sharedGalleryImageID: /SharedGalleries/os-0123/Images/").count(), 3, "{list}");
    assert!(arm.token_requests().iter().all(|request| request.scope.contains("chinacloudapi.cn")));
}

#[test]
fn azure_refusal_is_reported_and_changes_no_file() {
    let arm = Arm::start().unwrap();
    let person = person(&arm);
    person.write("azure.yaml", "as it was");
    let missing = fetch(&person, &["--location", "westeurope", "--community-gallery", "os-0123"]);
    let reported = "AzurePublic in westeurope: listing images of gallery os-0123: ResourceNotFound: ";
    assert!(missing.code == 3 && missing.stderr.starts_with(reported), "{missing:?}");
    arm.refuse_client("client", 7_000_215, "Invalid client secret provided.");
    let refused = fetch(&person, &["--location", "westeurope", "--community-gallery", "os-0123"]);
    assert!(refused.code == 3 && refused.stderr.contains("AADSTS7000215"), "{refused:?}");
    assert_eq!(person.read("azure.yaml"), "as it was");
    let nothing = fetch(&person, &["--location", "westeurope"]);
    assert_eq!(nothing.code, 2, "{nothing:?}");
    let nobody = person.with("AZURE_CLIENT_SECRET", "");
    let nobody = fetch(&nobody, &["--location", "westeurope", "--community-gallery", "os-0123"]);
    assert_eq!(
        (nobody.code, nobody.stderr.as_str()),
        (3, "AZURE_CLIENT_SECRET is not set, and neither is --token-file\n")
    );
}
