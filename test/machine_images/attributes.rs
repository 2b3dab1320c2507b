//! Filters of lookups, selections and templates by attributes of EC2's DescribeImages.

use gardener_extension_worker::api::image_objects::{ImageFilter, MachineImage};
use gardener_extension_worker::images::objects::Objects;
use gardener_extension_worker::images::objects::discovery::Sources;
use gardener_extension_worker::images::objects::image::ImageObject;
use gardener_extension_worker::images::objects::write::Write;
use gardener_extension_worker::images::shared::Shared;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::amis::{OURS, ami, at, catalogue, explained, lookup, with};

const NAME: &str = "capa-ami-ubuntu-24.04-v1.34.2-1790000000";

/// An image as `aws ec2 describe-images` prints it.
fn full() -> Value {
    with(
        ami("1", NAME, "2026-11-01"),
        json!({
            "Description": "for nodes", "ImageLocation": "111111111111/x", "ImageOwnerAlias": "self", "Public": false,
            "Platform": "windows", "PlatformDetails": "Linux/UNIX", "UsageOperation": "RunInstances",
            "VirtualizationType": "hvm", "Hypervisor": "xen", "RootDeviceType": "ebs", "RootDeviceName": "/dev/sda1",
            "EnaSupport": true, "SriovNetSupport": "simple", "TpmSupport": "v2.0", "ImdsSupport": "v2.0",
            "KernelId": "aki-1", "RamdiskId": "ari-1", "SourceInstanceId": "i-1", "SourceImageId": "ami-9",
            "SourceImageRegion": "eu-west-1", "LastLaunchedTime": "2026-11-02T00:00:00Z",
            "DeregistrationProtection": "disabled", "ImageAllowed": true, "FreeTierEligible": false,
            "BootMode": "uefi-preferred", "ImageType": "machine", "Tags": [{"Key": "channel", "Value": "stable"}],
            "ProductCodes": [{"ProductCodeId": "abc", "ProductCodeType": "marketplace"}],
            "StateReason": {"Code": "Client.X", "Message": "m"},
            "BlockDeviceMappings": [
                {"DeviceName": "/dev/sda1", "Ebs": {"VolumeType": "gp3", "VolumeSize": 20, "DeleteOnTermination": true,
                    "SnapshotId": "snap-1", "Encrypted": false}},
                {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"},
            ],
        }),
    )
}

/// Each filter of DescribeImages, with its value in [`full`].
const FILTERS: [(&str, &str); 42] = [
    ("architecture", "x86_64"),
    ("architecture", "amd64"),
    ("block-device-mapping.delete-on-termination", "true"),
    ("block-device-mapping.device-name", "/dev/sdb"),
    ("block-device-mapping.encrypted", "false"),
    ("block-device-mapping.snapshot-id", "snap-1"),
    ("block-device-mapping.volume-size", "20"),
    ("block-device-mapping.volume-type", "gp3"),
    ("boot-mode", "uefi-preferred"),
    ("bootMode", "legacy-bios"),
    ("description", "for nodes"),
    ("ena-support", "true"),
    ("enaSupport", "true"),
    ("free-tier-eligible", "false"),
    ("hypervisor", "xen"),
    ("image-allowed", "true"),
    ("image-id", "ami-00000001"),
    ("image-type", "machine"),
    ("imds-support", "v2.0"),
    ("is-public", "false"),
    ("kernel-id", "aki-1"),
    ("manifest-location", "111111111111/x"),
    ("name", NAME),
    ("owner-alias", "self"),
    ("owner-id", OURS),
    ("platform", "windows"),
    ("platform-details", "Linux/UNIX"),
    ("product-code", "abc"),
    ("product-code.type", "marketplace"),
    ("ramdisk-id", "ari-1"),
    ("root-device-name", "/dev/sda1"),
    ("root-device-type", "ebs"),
    ("source-image-id", "ami-9"),
    ("source-image-region", "eu-west-1"),
    ("source-instance-id", "i-1"),
    ("sriov-net-support", "simple"),
    ("state", "available"),
    ("state-reason-code", "Client.X"),
    ("tag:channel", "stable"),
    ("tag-key", "channel"),
    ("tpm-support", "v2.0"),
    ("virtualization-type", "hvm"),
];

#[test]
fn every_attribute_can_be_a_filter() {
    let images = catalogue(&[full()]);
    let image = &images.images()[0];
    for (name, value) in FILTERS {
        let filter =
            |value: &str| ImageFilter { name: name.to_owned(), values: vec!["x".to_owned(), value.to_owned()] };
        assert!(image.matches(&filter(value)), "{name}={value}: {:?}", image.attributes);
        assert!(!image.matches(&filter("y")), "{name}");
        let known = lookup(json!({"filters": [{"name": name, "values": [value]}]}));
        assert_eq!(known.ensure_known_facts(images.images()), Ok(()), "{name}");
    }
    let unknown = lookup(json!({"filters": [{"name": "virtualisation-type", "values": ["hvm"]}]}));
    let error = unknown.ensure_known_facts(images.images()).unwrap_err().to_string();
    assert!(error.starts_with("spec.filters[0].name: no image has the fact \"virtualisation-type\""), "{error}");
}

#[test]
fn attributes_filter_and_distinguish_flavors_of_lookups() {
    let paravirtual = with(
        ami("2", "capa-ami-ubuntu-24.04-v1.34.2-1795000000", "2026-11-02"),
        json!({"VirtualizationType": "paravirtual"}),
    );
    let amis = [full(), paravirtual];
    let filtered = explained(&amis, json!({"filters": [{"name": "virtualization-type", "values": ["hvm"]}]}));
    assert_eq!(
        filtered,
        ["ubuntu-24.04 1.34.2 (amd64): 1 chosen: the newest; 2 its virtualization-type does not pass the filter"]
    );
    let by_fact = explained(&amis, json!({"facts": ["virtualizationType"]}));
    assert_eq!(
        by_fact,
        [
            "ubuntu-24.04 1.34.2 (amd64 hvm): 1 chosen: the newest",
            "ubuntu-24.04 1.34.2 (amd64 paravirtual): 2 chosen: the newest"
        ]
    );
    assert_eq!(explained(&amis, json!({})).len(), 1, "without it they are one flavor");
}

/// Decides once for a template with these annotations, after the images were created.
fn decided(annotations: Value) -> (Objects, Vec<Write>, Vec<String>) {
    let spec = json!({"provider": "aws", "imagePrefix": "capa-ami", "lookupFormat": "-{{.OS}}-?{{.K8sVersion}}-*",
        "os": ["ubuntu-24.04"], "arch": ["amd64"], "versions": ">=1.33, <1.36", "owners": [OURS],
        "filters": [{"name": "ena-support", "values": ["true"]}]});
    let template = json!({
        "metadata": {
            "name": "nodes", "namespace": "default", "uid": "u", "annotations": annotations,
            "labels": {"images.gardener-extension-worker/lookup": "capi", "topology.kubernetes.io/region": "eu-central-1"},
        },
        "spec": {},
    });
    let mut objects = Objects {
        lookups: vec![Arc::new(serde_json::from_value(json!({"metadata": {"name": "capi"}, "spec": spec})).unwrap())],
        templates: vec![Arc::new(serde_json::from_value(template).unwrap())],
        ..Objects::default()
    };
    let images = catalogue(&[full()]);
    let mut shared = Shared::default();
    for write in objects.images_to_write(Sources::Listed(&images), at("2026-11-22")) {
        if let Write::CreateImage(image) = write {
            let image: MachineImage = image.object().unwrap();
            assert_eq!(image.spec.attributes["enaSupport"], ["true"]);
            objects.images.push(Arc::new(ImageObject::new(&image, &mut shared)));
        }
    }
    assert_eq!(objects.images.len(), 1);
    let (writes, problems) = objects.selections_to_write(at("2026-11-22"));
    (objects, writes, problems)
}

#[test]
fn templates_add_filters() {
    let annotation = "images.gardener-extension-worker/additional-filters";
    for (filters, selected) in [
        (
            r#"[{"name": "virtualization-type", "values": ["hvm"]}, {"name": "tag:channel", "values": ["stable"]}]"#,
            true,
        ),
        (r#"[{"name": "virtualization-type", "values": ["paravirtual"]}]"#, false),
    ] {
        let (mut objects, writes, _) = decided(json!({annotation: filters}));
        let [Write::CreateSelection(selection)] = &writes[..] else { panic!("{}", writes.len()) };
        assert!(selection.spec.filters.len() > 1, "those of the lookup and of the template");
        objects.selections.push(Arc::new(selection.clone()));
        let (writes, _) = objects.selections_to_write(at("2026-11-22"));
        let is_selected = matches!(&writes[..], [Write::ReplaceSelection(new)] if new.spec.images.len() == 1);
        assert_eq!(is_selected, selected, "{filters}");
    }
    for wrong in ["ena", "[{\"name\": \"x\"}]", "[{\"nam\": \"x\", \"values\": []}]"] {
        let (_, writes, problems) = decided(json!({annotation: wrong}));
        assert!(writes.is_empty(), "{wrong}");
        let problem = format!("AWSMachineTemplate default/nodes: annotation {annotation}: ");
        assert!(problems[0].starts_with(&problem), "{problems:?}");
    }
}

#[test]
fn unknown_facts_of_selections_are_reported() {
    let annotation = "images.gardener-extension-worker/additional-filters";
    let (mut objects, writes, _) = decided(json!({annotation: r#"[{"name": "ena", "values": ["true"]}]"#}));
    let [Write::CreateSelection(selection)] = &writes[..] else { panic!("{}", writes.len()) };
    objects.selections.push(Arc::new(selection.clone()));
    let (writes, _) = objects.selections_to_write(at("2026-11-22"));
    let [Write::SelectionStatus(selection, _)] = &writes[..] else { panic!("{}", writes.len()) };
    let condition = &selection.status.conditions[0];
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", "InvalidSpec"));
    assert!(condition.message.starts_with("spec.filters[1].name: no image has the fact \"ena\""), "{condition:?}");
}
