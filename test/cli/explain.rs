//! The text output of `explain`.

use crate::binary::{Outcome, command, example, outcome, run};
use crate::golden::assert_same;

fn explain(text: &str, arguments: &[&str]) -> Outcome {
    outcome(command(&[&["explain", "-"], arguments].concat()), text)
}

#[test]
fn a_healthy_worker() {
    let printed = run(&["explain", "test/cli/azure.yaml"]).succeeded();
    assert_eq!(printed.stderr, "");
    assert_same("test/cli/golden/explain-azure.txt", &printed.stdout);
}

#[test]
fn a_healthy_worker_of_aws() {
    let printed = run(&["explain", "example/aws.yaml"]).succeeded();
    assert_eq!(printed.stderr, "");
    assert_same("test/cli/golden/explain-aws.txt", &printed.stdout);
}

#[test]
fn a_healthy_worker_of_openstack() {
    let printed = run(&["explain", "example/openstack.yaml"]).succeeded();
    assert_eq!(printed.stderr, "");
    assert_same("test/cli/golden/explain-openstack.txt", &printed.stdout);
}

#[test]
fn a_worker_of_an_unknown_type() {
    let text = example(&[("type: azure", "type: mars")]);
    let rendered = outcome(command(&["render", "-"]), &text);
    assert_eq!(rendered.code, 7);
    assert!(rendered.stderr.contains("no provider for type \"mars\""), "{}", rendered.stderr);
}

#[test]
fn an_image_that_fits_no_machine() {
    // An image for gen1 only, on a machine type with arm64 and gen2.
    let text = example(&[
        ("machineType: Standard_D4s_v5", "machineType: Standard_D4ps_v5"),
        ("1877.3.0}\n      architecture: amd64", "1592.9.0}"),
    ]);
    let printed = explain(&text, &["--pool", "workers"]);
    assert_eq!(printed.code, 7, "{printed:?}");
    assert!(printed.stdout.contains("fails on 2 of 3 capabilities"), "{}", printed.stdout);
    assert!(printed.stdout.contains("Images for this machine type: gardenlinux 1877.3.0"), "{}", printed.stdout);
    assert!(printed.stdout.contains("Machine types for this image: Standard_D4s_v5"), "{}", printed.stdout);
    assert_same("test/cli/golden/explain-no-image.txt", &printed.stdout);
}

#[test]
fn images_that_would_fit_are_those_that_can_be_selected() {
    for (life, advice) in [
        ("classification: supported", "gardenlinux 1877.3.0 (supported)"),
        ("classification: preview", "gardenlinux 1877.3.0 (preview)"),
        ("expirationDate: \"2020-01-01T00:00:00Z\"", "none in the CloudProfile"),
    ] {
        let config = "      providerConfig:\n        apiVersion: azure.provider.extensions.gardener.cloud/v1alpha1\n        kind: CloudProfileConfig";
        let images = format!(
            "      machineImages: [{{name: gardenlinux, versions: [{{version: 1877.3.0, {life}}}]}}]\n{config}"
        );
        let text = example(&[
            ("machineType: Standard_D4s_v5", "machineType: Standard_D4ps_v5"),
            ("1877.3.0}\n      architecture: amd64", "1592.9.0}"),
            (config, &images),
        ]);
        let printed = explain(&text, &["--pool", "workers"]).stdout;
        assert!(printed.contains(&format!("Images for this machine type: {advice}\n")), "{printed}");
    }
}

#[test]
fn a_tie_names_the_candidates() {
    let text = example(&[(
        "hypervisor: [gen1]}\n                    urn: sap:gardenlinux:greatest:1877",
        "hypervisor: [gen2]}\n                    urn: sap:gardenlinux:greatest:1877",
    )]);
    let printed = explain(&text, &["--pool", "workers", "-o", "json"]);
    assert_eq!(printed.code, 7);
    let verdicts: Vec<_> = printed.json()["workers"][0]["pools"][0]["image"]["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|candidate| candidate["verdict"]["is"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(verdicts, ["tied", "tied", "rejected"]);
}

#[test]
fn an_image_that_only_the_provider_status_keeps() {
    let status = "status:\n  providerStatus:\n    apiVersion: azure.provider.extensions.gardener.cloud/v1alpha1\n    \
                  kind: WorkerStatus\n    machineImages:\n    - {name: gardenlinux, version: 1.0.0, architecture: arm64, id: /other}\n    \
                  - {name: gardenlinux, version: 1.0.0, architecture: amd64, id: /kept}\nspec:\n  type: azure";
    let text = example(&[("version: 1877.3.0}", "version: 1.0.0}"), ("spec:\n  type: azure", status)]);
    let printed = explain(&text, &["--pool", "workers"]).succeeded();
    assert!(printed.stdout.contains("Image gardenlinux 1.0.0: from the provider status"), "{}", printed.stdout);
    assert!(printed.stdout.contains("id /kept (kept"), "{}", printed.stdout);
    assert!(printed.stdout.contains("chosen"), "{}", printed.stdout);
}

#[test]
fn a_pool_that_fails_elsewhere_is_explained_all_the_same() {
    let text =
        example(&[("userDataSecretRef: {name: gardener-node-agent-workers,", "userDataSecretRef: {name: gone,")]);
    let printed = explain(&text, &["--pool", "workers"]);
    assert_eq!(printed.code, 7);
    assert!(printed.stdout.contains("Secret \"gone\" does not exist"), "{}", printed.stdout);
    let healthy = run(&["explain", "test/cli/azure.yaml", "--pool", "workers"]).stdout;
    for line in healthy.lines().filter(|line| line.contains("chosen") || line.contains("shoot--garden--prod-workers-z"))
    {
        assert!(printed.stdout.contains(line), "{line:?} is missing in {}", printed.stdout);
    }
}

#[test]
fn prints_no_secrets() {
    for output in ["table", "json"] {
        let printed = run(&["explain", "test/cli/azure.yaml", "-o", output]).stdout;
        assert!(!printed.contains("sig=") && !printed.contains("#!/bin/bash"), "{printed}");
    }
    // Before Kubernetes 1.35, the hash contains the whole provider config as text.
    let printed =
        explain(&example(&[("1.35.1\n      minimum", "1.34.1\n      minimum")]), &["--pool", "workers"]).succeeded();
    assert!(!printed.stdout.contains("sig="), "{}", printed.stdout);
    assert!(printed.stdout.contains("bytes, not shown"), "{}", printed.stdout);
}

#[test]
fn wrong_arguments_and_unreadable_input_have_their_exit_codes() {
    for (arguments, message, code) in [
        (&["explain", "no/such/file"][..], "no/such/file", 3),
        (&["explain", "Cargo.toml"], "Cargo.toml", 3),
        (
            &["explain", "test/cli/azure.yaml", "--pool", "none"],
            "no pool \"none\"; there is \"database\", \"workers\"",
            3,
        ),
        (&["explain"], "a node or a file", 2),
    ] {
        let printed = run(arguments);
        assert_eq!((printed.code, printed.stdout.as_str()), (code, ""), "{arguments:?}: {printed:?}");
        assert!(printed.stderr.contains(message), "{arguments:?}: {printed:?}");
    }
}

#[test]
fn a_worker_that_can_not_be_explained_is_an_error_of_its_own() {
    let text = example(&[("name: shoot--garden--prod\nspec:\n  cloudProfile", "name: other\nspec:\n  cloudProfile")]);
    let printed = explain(&text, &[]);
    assert_eq!((printed.code, printed.stdout.as_str()), (7, ""), "{printed:?}");
    assert!(printed.stderr.contains("Cluster \"shoot--garden--prod\" does not exist"), "{printed:?}");
    assert_eq!(explain(&text, &["-o", "json"]).json()["errors"][0]["input"], "-");
}
