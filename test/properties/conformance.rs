//! The shipped providers meet the requirements for every provider.

use gardener_extension_worker::provider::aws::Aws;
use gardener_extension_worker::provider::azure::Azure;
use test_support::conformance::{Example, check};

/// Changes of numbers and nodes that affect no machine.
const NOT_HASHED: [(&str, &str); 6] = [
    ("/minimum", "1"),
    ("/maximum", "9"),
    ("/maxSurge", "2"),
    ("/labels", "{a: b}"),
    ("/annotations", "{a: b}"),
    ("/taints", "[{key: a, effect: NoSchedule}]"),
];

#[test]
fn azure_conforms() {
    let image = "/providerConfig/dataVolumes/0/imageRef";
    check(&Example {
        provider: &Azure,
        documents: include_str!("../../example/azure.yaml"),
        pool: "services",
        members: &[
            ("/kubernetesVersion", "1.35.0"),
            ("/dataVolumes", "[{name: data, size: 10Gi, type: Premium_LRS}]"),
            (
                "/providerConfig",
                "{apiVersion: azure.provider.extensions.gardener.cloud/v1alpha1, kind: WorkerConfig,
                  nodeTemplate: {capacity: {cpu: 4}, virtualCapacity: {a: 1}}, volume: {caching: None},
                  diagnosticsProfile: {enabled: true, storageURI: 'https://a.blob.core.windows.net/'},
                  dataVolumes: [{name: data, imageRef: {urn: 'a:b:c:d', id: /i, communityGalleryImageID: /c,
                    sharedGalleryImageID: /s}}], capacityReservation: {capacityReservationGroupID: /g}}",
            ),
        ],
        hashed: &[
            ("/nodeAgentSecretName", "other"),
            ("/dataVolumes/0/size", "11Gi"),
            ("/dataVolumes/0/type", "Standard_LRS"),
            ("/providerConfig/nodeTemplate/capacity/cpu", "5"),
            ("/providerConfig/volume/caching", "ReadOnly"),
            ("/providerConfig/diagnosticsProfile/enabled", "false"),
            ("/providerConfig/diagnosticsProfile/storageURI", "https://b.blob.core.windows.net/"),
            ("/providerConfig/dataVolumes/0/name", "other"),
            (&format!("{image}/urn"), "a:b:c:e"),
            (&format!("{image}/id"), "/j"),
            (&format!("{image}/communityGalleryImageID"), "/d"),
            (&format!("{image}/sharedGalleryImageID"), "/t"),
            ("/providerConfig/capacityReservation/capacityReservationGroupID", "/h"),
            ("/spec/infrastructureProviderStatus/identity", "{id: /other}"),
        ],
        not_hashed: &[&NOT_HASHED[..], &[("/providerConfig/nodeTemplate/virtualCapacity", "{a: 2}")]].concat(),
    })
    .unwrap();
}

#[test]
fn aws_conforms() {
    let reservation = "/providerConfig/capacityReservation/capacityReservation";
    let interface = "/providerConfig/networkInterfaces/0";
    check(&Example {
        provider: &Aws,
        documents: include_str!("../../example/aws.yaml"),
        pool: "web",
        members: &[
            ("/volume", "{size: 50Gi, type: gp3, encrypted: true}"),
            ("/dataVolumes", "[{name: data, size: 10Gi, type: gp3, encrypted: true}]"),
            (
                "/providerConfig",
                "{apiVersion: aws.provider.extensions.gardener.cloud/v1alpha1, kind: WorkerConfig,
                  nodeTemplate: {capacity: {cpu: 4}, virtualCapacity: {a: 1}}, volume: {iops: 1, throughput: 2},
                  dataVolumes: [{name: data, iops: 1, throughput: 2, snapshotID: s}],
                  iamInstanceProfile: {name: p, arn: a},
                  instanceMetadataOptions: {httpTokens: required, httpPutResponseHopLimit: 1},
                  cpuOptions: {coreCount: 1, threadsPerCore: 1, amdSevSnp: enabled},
                  capacityReservation: {capacityReservationPreference: open, capacityReservationId: i,
                    capacityReservationResourceGroupArn: a}, instanceMarketOptions: {marketType: spot},
                  networkInterfaces: [{type: efa, deviceIndex: 1, networkCardIndex: 1, subnetID: s, description: d,
                    networkCardIndexRange: {from: 1, to: 2}}],
                  placement: {groupId: g, tenancy: host, hostId: h, partitionNumber: 1, affinity: host}}",
            ),
        ],
        hashed: &[
            ("/nodeAgentSecretName", "other"),
            ("/volume/encrypted", "false"),
            ("/dataVolumes/0/size", "11Gi"),
            ("/dataVolumes/0/type", "io2"),
            ("/dataVolumes/0/encrypted", "false"),
            ("/providerConfig/nodeTemplate/capacity/cpu", "5"),
            ("/providerConfig/volume", "{iops: 2, throughput: 3}"),
            ("/providerConfig/dataVolumes/0/name", "other"),
            ("/providerConfig/dataVolumes/0/iops", "2"),
            ("/providerConfig/dataVolumes/0/throughput", "3"),
            ("/providerConfig/dataVolumes/0/snapshotID", "t"),
            ("/providerConfig/iamInstanceProfile/name", "o"),
            ("/providerConfig/iamInstanceProfile/arn", "b"),
            ("/providerConfig/instanceMetadataOptions/httpTokens", "optional"),
            ("/providerConfig/instanceMetadataOptions/httpPutResponseHopLimit", "2"),
            ("/providerConfig/cpuOptions/coreCount", "2"),
            ("/providerConfig/cpuOptions/threadsPerCore", "2"),
            (&format!("{reservation}Preference"), "none"),
            (&format!("{reservation}Id"), "j"),
            (&format!("{reservation}ResourceGroupArn"), "b"),
            ("/providerConfig/instanceMarketOptions/marketType", "capacity-block"),
            (&format!("{interface}/type"), "interface"),
            (&format!("{interface}/deviceIndex"), "2"),
            (&format!("{interface}/networkCardIndex"), "2"),
            (&format!("{interface}/networkCardIndexRange"), "{from: 2, to: 3}"),
            (&format!("{interface}/subnetID"), "t"),
            (
                "/providerConfig/placement",
                "{groupId: h, tenancy: default, hostId: i, partitionNumber: 2, affinity: none}",
            ),
        ],
        not_hashed: &[
            &NOT_HASHED[..],
            &[
                ("/providerConfig/nodeTemplate/virtualCapacity", "{a: 2}"),
                ("/providerConfig/cpuOptions/amdSevSnp", "disabled"),
                (&format!("{interface}/description"), "other"),
            ],
        ]
        .concat(),
    })
    .unwrap();
}
