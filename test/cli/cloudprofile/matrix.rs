//! `cloudprofile matrix`.

use super::{AT, example, replaced};
use crate::binary::{Outcome, command, outcome, run};
use crate::golden::assert_same;

fn matrix(arguments: &[&str]) -> Outcome {
    run(&[&["cloudprofile", "matrix"], arguments, &AT].concat())
}

#[test]
fn the_matrix_of_a_profile() {
    let output = matrix(&["example/cloudprofiles/azure.yaml"]).succeeded();
    assert_eq!(output.stderr, "");
    assert_same("test/cli/golden/cloudprofile-matrix.txt", &output.stdout);
}

#[test]
fn the_matrix_of_a_profile_in_the_old_format() {
    let output = matrix(&["example/cloudprofiles/azure-legacy.yaml", "--arch", "arm64"]).succeeded();
    assert_same("test/cli/golden/cloudprofile-matrix-legacy.txt", &output.stdout);
}

#[test]
fn the_matrices_of_clouds_with_images_only() {
    for (cloud, region, lines) in [
        ("gcp", "europe-west1", vec!["c4a-standard-4", "gardenlinux-1877-3-0-arm64"]),
        ("openstack", "north", vec!["g4", "image gardenlinux-1877.3.0-uefi"]),
        ("openstack", "south", vec!["g4", "id 6f0c4e0e-9b1a-4c44-8a3c-000000000001"]),
        ("alicloud", "cn-beijing", vec!["ecs.g7.xlarge", "id m-2zeexample1"]),
    ] {
        let path = format!("example/cloudprofiles/{cloud}.yaml");
        let output = matrix(&[&path, "--type", lines[0], "--region", region]).succeeded();
        // Joins lines, because long references are wrapped.
        let text: String = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(lines.iter().all(|line| text.contains(line)), "{cloud} {region}: {}", output.stdout);
    }
}

#[test]
fn who_gets_an_image() {
    let output = matrix(&["example/cloudprofiles/aws.yaml", "--reference", "00000003"]).succeeded();
    assert_same("test/cli/golden/cloudprofile-matrix-reference.txt", &output.stdout);
    let output = matrix(&["example/cloudprofiles/aws.yaml", "--flavor", "bootMode=legacy-bios", "--image", "*@1877.*"]);
    assert_eq!(
        output.succeeded().stdout,
        "gardenlinux 1877.3.0 flavor #1: ami ami-0a11aaaa00000003 (eu-central-1; another in 1 more region)\n  \
         runs on architecture={amd64} bootMode={legacy-bios}\n  \
         TYPES  NAMES     THEY HAVE\n      1  m4.large  architecture={amd64} bootMode={legacy-bios}\n"
    );
    let nobody = matrix(&["example/cloudprofiles/aws.yaml", "--reference", "ami-unknown"]).succeeded();
    assert_eq!(nobody.stdout, "No machine type gets it.\n");
}

#[test]
fn the_matrix_for_a_spreadsheet() {
    let output = matrix(&["example/cloudprofiles/aws.yaml", "--type", "m4*", "--region", "eu-west-1", "-o", "csv"]);
    let lines: Vec<_> = output.succeeded().stdout.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        lines[1],
        "m4.large,true,gardenlinux,1877.3.0,supported,,chosen,1,architecture={amd64} bootMode={legacy-bios},\
         eu-west-1=ami-0a11aaaa00000004,true"
    );
}

#[test]
fn a_region_that_lacks_a_flavor_has_its_own_line() {
    let text = replaced(&example("aws"), &[("          - {name: eu-west-1, ami: ami-0a11aaaa00000004}\n", "")]);
    let arguments = ["cloudprofile", "matrix", "-", "--type", "m4.large", "--image", "gardenlinux@1877.3.0"];
    let output = outcome(command(&arguments), &text).succeeded().stdout;
    assert!(output.contains("#1              ami ami-0a11aaaa00000003 [eu-central-1]"), "{output}");
    let why = "bootMode (machine {legacy-bios}, image {uefi}) [eu-west-1]";
    assert!(output.contains(&format!("no flavor fits  {why}")), "{output}");
}

#[test]
fn missing_objects_are_named() {
    let typo = matrix(&["example/cloudprofiles/aws.yaml", "--type", "m7i.lage"]);
    assert_eq!(typo.code, 3);
    assert_eq!(
        typo.stderr,
        "--type m7i.lage: nothing in the profile is called that; there are for example m7i.large, m7i.xlarge, \
         m4.large, m7g.large\n"
    );
    assert_eq!(matrix(&["example/azure.yaml"]).stderr, "example/azure.yaml: no CloudProfile in it\n");
    assert_eq!(run(&["cloudprofile", "matrix"]).code, 2);
    let unknown = outcome(command(&["cloudprofile", "matrix", "-"]), "{kind: CloudProfile, spec: {type: moon}}");
    assert_eq!((unknown.code, unknown.stderr.contains("no provider of type \"moon\"")), (3, true), "{unknown:?}");
}

#[test]
fn machine_types_are_filtered_by_architecture_also_where_the_provider_compares_none() {
    let path = "example/cloudprofiles/alicloud.yaml";
    let output = matrix(&[path, "--arch", "amd64"]).succeeded().stdout;
    assert!(output.contains("ecs.g7.xlarge"), "{output}");
    let other = matrix(&[path, "--arch", "arm64"]);
    assert_eq!(other.code, 3);
    assert!(other.stderr.contains("there are for example amd64"), "{}", other.stderr);
}

#[test]
fn groups_problems_by_reason_largest_first() {
    let healthy = matrix(&["example/cloudprofiles/azure.yaml", "--only", "problems"]).succeeded();
    assert_eq!(healthy.stdout, "Every combination that Gardener admits has an image.\n");
    // Core's half admits a combination without a flavor in the provider's half.
    let reference = "/CommunityGalleries/gardenlinux-example/Images/gardenlinux-arm64/Versions/1877.3.0";
    let flavor =
        "        - capabilities: {architecture: [arm64], hypervisorType: [gen2]}\n          communityGalleryImageID: ";
    let text = replaced(&example("azure"), &[(&format!("{flavor}{reference}\n"), "")]);
    let output = |arguments: &[&str]| {
        let arguments = [&["cloudprofile", "matrix", "-", "--only", "problems"], arguments, &AT].concat();
        outcome(command(&arguments), &text)
    };
    assert_same("test/cli/golden/cloudprofile-matrix-problems.txt", &output(&[]).stdout);
    let document = output(&["-o", "json"]).json();
    let choices: Vec<_> =
        document["images"].as_array().unwrap().iter().flat_map(|image| image["choices"].as_array().unwrap()).collect();
    assert!(choices.len() == 1 && choices[0]["outcome"] == "noneFits", "{choices:?}");
}
