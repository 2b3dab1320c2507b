//! Output of the clouds' tools, as users save it, and the images that result from it.

use gardener_extension_worker::images::catalogue::Catalogue;
use gardener_extension_worker::images::record::{ImageRecord, ImageState};
use gardener_extension_worker::images::sources::{Listing, read};
use serde_json::{Value, json};

/// An image as one line: reference, location, owner, creation date, facts, problems.
fn line(image: &ImageRecord) -> String {
    let facts: Vec<String> =
        image.facts.0.iter().map(|(name, values)| format!("{name}={}", values.join(","))).collect();
    let made = image.created.map(|created| created.strftime("%F").to_string()).unwrap_or_default();
    let mut wrong = Vec::new();
    wrong.extend(image.deprecated.map(|deprecated| format!("deprecated {}", deprecated.strftime("%F"))));
    if let ImageState::Unavailable(state) = &image.state {
        wrong.push(state.clone());
    }
    let parts =
        [image.reference.value.as_str(), image.location(), &image.owner, &made, &facts.join(" "), &wrong.join(" ")];
    parts.join(" | ")
}

fn lines(listings: Vec<Listing>) -> Vec<String> {
    let catalogue = Catalogue::new(listings).unwrap();
    let mut lines: Vec<String> = catalogue.images().iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn gcloud_compute_images_list() {
    let image = |name: &str, members: Value| {
        let link = format!("https://www.googleapis.com/compute/v1/projects/images-public/global/images/{name}");
        let mut image = json!({
            "kind": "compute#image", "id": "1234567890123456789", "name": name, "selfLink": link, "status": "READY",
            "architecture": "X86_64", "creationTimestamp": "2026-11-18T01:02:03.004-08:00", "diskSizeGb": "10",
            "guestOsFeatures": [{"type": "UEFI_COMPATIBLE"}, {"type": "GVNIC"}], "labelFingerprint": "42WmSpB8rSM=",
        });
        image.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        image
    };
    let document = json!([
        image("os-1", json!({})),
        image("os-1-arm64", json!({"architecture": "ARM64", "guestOsFeatures": [{"type": "UEFI_COMPATIBLE"}]})),
        image("os-0", json!({"deprecated": {"state": "DEPRECATED", "deprecated": "2026-10-01T00:00:00Z"}})),
        image("os-00", json!({"deprecated": {"state": "OBSOLETE"}, "guestOsFeatures": []})),
        image("os-2", json!({"status": "PENDING"})),
    ]);
    let position = "projects/images-public/global/images";
    let both = "architecture=amd64 bootMode=uefi,legacy-bios network=gvnic,virtio";
    assert_eq!(
        lines(vec![read(&document, None).unwrap()]),
        [
            format!("{position}/os-0 | every region | images-public | 2026-11-18 | {both} | deprecated 2026-10-01"),
            format!(
                "{position}/os-00 | every region | images-public | 2026-11-18 | architecture=amd64 bootMode=legacy-bios network=virtio | deprecated 1970-01-01 obsolete"
            ),
            format!("{position}/os-1 | every region | images-public | 2026-11-18 | {both} | "),
            format!(
                "{position}/os-1-arm64 | every region | images-public | 2026-11-18 | architecture=arm64 bootMode=uefi network=virtio | "
            ),
            format!("{position}/os-2 | every region | images-public | 2026-11-18 | {both} | PENDING"),
        ]
    );
}

#[test]
fn az_sig_image_version_list_with_its_definitions() {
    let community = "/CommunityGalleries/os-0123/Images/os-gen2";
    let versions = json!([
        {"name": "1.0.0", "location": "westeurope", "uniqueId": format!("{community}/Versions/1.0.0"),
         "publishedDate": "2026-09-01T08:00:00.123456+00:00", "endOfLifeDate": "2027-01-01T00:00:00+00:00",
         "excludeFromLatest": false, "storageProfile": {"osDiskImage": {"diskSizeGb": 3, "hostCaching": "None"}}},
        {"name": "2.0.0", "location": "westeurope", "uniqueId": format!("{community}/Versions/2.0.0"),
         "publishedDate": "2026-11-01T08:00:00.123456+00:00", "endOfLifeDate": null},
    ]);
    let definitions = json!([
        {"name": "os-gen2", "location": "westeurope", "uniqueId": community, "architecture": "x64", "hyperVGeneration": "V2",
         "identifier": {"publisher": "p", "offer": "o", "sku": "s"}, "osState": "Generalized", "osType": "Linux"},
    ]);
    let own = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/images/providers/Microsoft.Compute/galleries/ours/images/os-arm";
    let in_account = json!([
        {"id": format!("{own}/versions/1.0.0"), "name": "1.0.0", "location": "westeurope", "provisioningState": "Failed",
         "publishingProfile": {"publishedDate": "2026-10-01T08:00:00+00:00", "targetRegions": [{"name": "West Europe"}]}},
    ]);
    let in_account_definitions = json!([{"id": own, "name": "os-arm", "architecture": "Arm64", "hyperVGeneration": "V2", "provisioningState": "Succeeded"}]);
    let documents = [&versions, &definitions, &in_account, &in_account_definitions];
    assert_eq!(
        lines(documents.map(|document| read(document, None).unwrap()).into()),
        [
            format!(
                "{community}/Versions/1.0.0 | every region | os-0123 | 2026-09-01 | architecture=amd64 generation=gen2 | deprecated 2027-01-01"
            ),
            format!(
                "{community}/Versions/2.0.0 | every region | os-0123 | 2026-11-01 | architecture=amd64 generation=gen2 | "
            ),
            format!(
                "{own}/versions/1.0.0 | every region | ours | 2026-10-01 | architecture=arm64 generation=gen2 | Failed"
            ),
        ]
    );
}

/// The regions of the only image in these listings.
fn regions(listings: &[&Value]) -> Vec<String> {
    let listings = listings.iter().map(|listing| read(listing, None).unwrap());
    let catalogue = Catalogue::new(listings.collect()).unwrap();
    let [image] = catalogue.images() else { panic!("{:?}", catalogue.images()) };
    image.replicated_to.iter().flat_map(|regions| regions.iter().cloned()).collect()
}

#[test]
fn azure_images_are_where_they_are_replicated_to() {
    let own = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/images/providers/Microsoft.Compute/galleries/ours/images/os/versions/1.0.0";
    let version =
        |profile: Value| json!([{"id": own, "name": "1.0.0", "location": "northeurope", "publishingProfile": profile}]);
    let target = |name: &str| json!({"name": name, "regionalReplicaCount": 1, "storageAccountType": "Standard_LRS", "encryption": null});
    let replicated = version(json!({"targetRegions": [target("West US 3"), target("westeurope")]}));
    assert_eq!(regions(&[&replicated]), ["westeurope", "westus3"]);
    // The location of the gallery does not determine the regions of its images.
    assert!(regions(&[&version(json!({"targetRegions": null}))]).is_empty());
    let requested = |region: Value| json!([{"name": "1.0.0", "location": region, "uniqueId": "/CommunityGalleries/os-0123/Images/os/Versions/1.0.0"}]);
    assert_eq!(
        regions(&[&requested(json!("westeurope")), &requested(json!("northeurope"))]),
        ["northeurope", "westeurope"]
    );
    assert!(regions(&[&requested(Value::Null)]).is_empty());
}

#[test]
fn azure_images_are_of_the_cloud_that_their_region_is_in() {
    let community = "/CommunityGalleries/os-0123/Images/os/Versions/1.0.0";
    let own = "/subscriptions/0/resourceGroups/r/providers/Microsoft.Compute/galleries/g/images/os/versions/1.0.0";
    let target = |name: &str| json!({"targetRegions": [{"name": name}]});
    for (path, location, profile, realm) in [
        (community, json!("chinanorth3"), Value::Null, "china"),
        (community, json!("China North 3"), Value::Null, "china"),
        (community, json!("usgovvirginia"), Value::Null, "government"),
        (community, json!("westeurope"), Value::Null, "public"),
        (community, Value::Null, Value::Null, "public"),
        (own, json!("chinaeast2"), target("China North 3"), "china"),
        (own, Value::Null, target("USGov Virginia"), "government"),
        (own, json!(""), target("China North 3"), "china"),
        (own, Value::Null, target("West Europe"), "public"),
    ] {
        let member = if path == own { "id" } else { "uniqueId" };
        let version = json!([{member: path, "name": "1.0.0", "location": location, "publishingProfile": profile}]);
        let listing = read(&version, None).unwrap();
        assert_eq!(listing.images[0].realm, realm, "{version}");
    }
}

#[test]
fn members_that_a_tool_prints_as_null_are_unknown() {
    let region = Some("eu-1");
    let gallery = json!([{"id": null, "uniqueId": "/SharedGalleries/g/Images/i/Versions/1.0.0", "provisioningState": null,
        "publishedDate": null, "endOfLifeDate": null, "publishingProfile": null, "architecture": null, "tags": null}]);
    let google = json!([{"name": "os-1", "selfLink": "https://www.googleapis.com/compute/v1/projects/p/global/images/os-1", "status": "READY",
        "architecture": null, "deprecated": null, "guestOsFeatures": null, "labels": null, "creationTimestamp": null}]);
    let openstack = json!([{"ID": "3b1a5b52-6f0f-4d0c-8e1c-0a1b2c3d4e5f", "Name": null, "Disk Format": null, "Container Format": null,
        "Size": null, "Checksum": null, "Status": "active", "Visibility": "private", "Protected": false, "Project": null,
        "Hash Algorithm": null, "Hash Value": null, "Tags": []}]);
    let alibaba = json!({"RegionId": "cn-hangzhou", "Images": {"Image": [{"ImageId": "m-1", "ImageName": null, "ImageOwnerId": null,
        "ImageOwnerAlias": "self", "Status": "Available", "BootMode": null, "CreationTime": null, "Tags": null}]}});
    let amazon = json!({"Images": [{"ImageId": "ami-00000001", "Name": null, "OwnerId": null, "State": "available", "BootMode": null,
        "DeprecationTime": null, "Tags": null, "BlockDeviceMappings": [{"Ebs": null}, {"Ebs": {"Encrypted": null}}]}]});
    for (listing, line) in [
        (gallery, "/SharedGalleries/g/Images/i/Versions/1.0.0 | every region | g |  |  | "),
        (google, "projects/p/global/images/os-1 | every region | p |  | bootMode=legacy-bios network=virtio | "),
        (openstack, "3b1a5b52-6f0f-4d0c-8e1c-0a1b2c3d4e5f | eu-1 |  |  |  | "),
        (alibaba, "m-1 | eu-1 | self |  |  | "),
        (amazon, "ami-00000001 | eu-1 |  |  |  | "),
    ] {
        assert_eq!(lines(vec![read(&listing, region).unwrap()]), [line]);
    }
    let error = read(&json!([{"ID": null, "Status": "active"}]), region).unwrap_err().to_string();
    assert!(error.starts_with("[0]") && error.contains("id"), "{error}");
}

#[test]
fn public_images_of_alibaba_cloud_have_names_as_ids() {
    let image = |id: &str| {
        json!({"ImageId": id, "ImageName": id, "ImageOwnerAlias": "system", "Status": "Available", "Architecture": "x86_64",
        "IsSelfShared": "", "Usage": "instance", "ImageVersion": "", "CreationTime": "2026-09-07T07:22:40Z", "Tags": {"Tag": []}})
    };
    let listing = json!({"TotalCount": 1, "PageSize": 10, "RegionId": "cn-beijing", "Images": {"Image": [image("os_3_x64_20G_alibase_20260907.vhd")]}});
    assert_eq!(
        lines(vec![read(&listing, None).unwrap()]),
        ["os_3_x64_20G_alibase_20260907.vhd | cn-beijing | system | 2026-09-07 | architecture=amd64 | "]
    );
}

#[test]
fn google_images_without_an_architecture_and_with_an_announced_end() {
    let image = |name: &str, architecture: &str, deprecated: Value| {
        json!({"name": name, "selfLink": format!("https://www.googleapis.com/compute/v1/projects/p/global/images/{name}"), "status": "READY",
            "architecture": architecture, "deprecated": deprecated, "creationTimestamp": "2026-07-11T16:20:27.045-07:00"})
    };
    let listing = json!([
        image("a", "ARCHITECTURE_UNSPECIFIED", json!({"state": "ACTIVE"})),
        image("b", "X86_64", json!({"state": "ACTIVE", "deprecated": "2027-01-01T00:00:00Z"})),
    ]);
    let position = "projects/p/global/images";
    assert_eq!(
        lines(vec![read(&listing, None).unwrap()]),
        [
            format!("{position}/a | every region | p | 2026-07-11 | bootMode=legacy-bios network=virtio | "),
            format!(
                "{position}/b | every region | p | 2026-07-11 | architecture=amd64 bootMode=legacy-bios network=virtio | deprecated 2027-01-01"
            ),
        ]
    );
}

#[test]
fn openstack_image_list() {
    let listed = json!([
        {"ID": "3b1a5b52-6f0f-4d0c-8e1c-0a1b2c3d4e5f", "Name": "os-1", "Disk Format": "qcow2", "Container Format": "bare", "Size": 1_000,
         "Checksum": "0", "Status": "active", "Visibility": "public", "Protected": false, "Project": "abc", "Tags": []},
        {"ID": "4b1a5b52-6f0f-4d0c-8e1c-0a1b2c3d4e5f", "Name": "os-2", "Status": "queued", "Project": "abc"},
    ]);
    // With the output of `openstack image show`.
    let output = json!([
        {"id": "3b1a5b52-6f0f-4d0c-8e1c-0a1b2c3d4e5f", "name": "os-1", "status": "active", "owner": "abc",
         "created_at": "2026-11-18T09:00:00Z", "properties": {"architecture": "x86_64", "hw_firmware_type": "uefi", "os_hash_algo": "sha512"}},
    ]);
    assert_eq!(
        lines(vec![read(&listed, Some("eu-1")).unwrap(), read(&output, Some("eu-1")).unwrap()]),
        [
            "3b1a5b52-6f0f-4d0c-8e1c-0a1b2c3d4e5f | eu-1 | abc | 2026-11-18 | architecture=amd64 bootMode=uefi | ",
            "4b1a5b52-6f0f-4d0c-8e1c-0a1b2c3d4e5f | eu-1 | abc |  |  | queued",
        ]
    );
    let error = read(&listed, None).unwrap_err().to_string();
    assert!(error.contains("--source REGION=FILE"), "{error}");
}

#[test]
fn aliyun_ecs_describe_images() {
    let image = |id: &str, members: Value| {
        let mut image = json!({
            "ImageId": id, "ImageName": "os-1", "ImageOwnerAlias": "self", "ImageOwnerId": 1_234_567_890_123_456_u64,
            "Status": "Available", "Architecture": "x86_64", "BootMode": "BIOS", "CreationTime": "2026-11-18T09:00:00Z",
            "Tags": {"Tag": [{"TagKey": "channel", "TagValue": "stable"}]}, "IsPublic": false, "Size": 20,
        });
        image.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        image
    };
    let document = json!({
        "PageNumber": 1, "PageSize": 10, "TotalCount": 3, "RequestId": "0", "RegionId": "cn-hangzhou",
        "Images": {"Image": [
            image("m-1", json!({})),
            image("m-2", json!({"Architecture": "arm64", "BootMode": "UEFI", "ImageOwnerId": "77"})),
            image("m-3", json!({"Status": "UnAvailable", "BootMode": "UEFI-Preferred"})),
        ]},
    });
    assert_eq!(
        lines(vec![read(&document, None).unwrap()]),
        [
            "m-1 | cn-hangzhou | 1234567890123456 | 2026-11-18 | architecture=amd64 bootMode=legacy-bios | ",
            "m-2 | cn-hangzhou | 77 | 2026-11-18 | architecture=arm64 bootMode=uefi | ",
            "m-3 | cn-hangzhou | 1234567890123456 | 2026-11-18 | architecture=amd64 bootMode=uefi,legacy-bios | UnAvailable",
        ]
    );
}

#[test]
fn bare_metal_images_are_distinguished() {
    let document = |platform: &str, id: &str| {
        json!({"architecture": "amd64", "gardenlinux_epoch": 1877, "platform": platform, "version": "1877.3", "require_uefi": true,
            "s3_key": format!("meta/singles/{platform}-gardener_prod-amd64-1877.3-75df9f40"), "published_image_metadata":
            {"published_openstack_images": [{"image_id": id, "image_name": "n", "region_name": "eu-de-1"}]}})
    };
    let [metal, other] = ["01c3ab26-5b93-4655-a743-1fef60f64b53", "ed3b4c3d-941f-456a-a551-bd52b8397443"];
    let listing = |platform: &str, id: &str| read(&document(platform, id), None).unwrap();
    let facts = |hypervisor: &str| format!("architecture=amd64 bootMode=uefi{hypervisor} variant=gardener_prod");
    assert_eq!(
        lines(vec![listing("openstackbaremetal", metal), listing("openstack", other)]),
        [
            format!("{metal} | eu-de-1 |  |  | {} | ", facts(" hypervisor=baremetal")),
            format!("{other} | eu-de-1 |  |  | {} | ", facts(" hypervisor=virtualized")),
        ]
    );
    let alone = [format!("{other} | eu-de-1 |  |  | {} | ", facts(""))];
    assert_eq!(lines(vec![listing("openstack", other)]), alone, "its lock stays");
    let unknown = listing("openstackcloud\u{202e}", other);
    assert!(unknown.images.is_empty());
    assert_eq!(unknown.left_out, ["images of the platform \"openstackcloud\\\\u{202e}\" are left out"]);
}
