//! Each name that a lookup can produce belongs to its own flavor.

use proptest::prelude::*;
use serde_json::json;

use crate::amis::{ami, catalogue, lookup, resolved, with};

const SYSTEMS: [&str; 8] = [
    "ubuntu-24.04",
    "ubuntu-24.04-arm64",
    "ubuntu-22.04",
    "flatcar-stable",
    "flatcar-stable-arm64",
    "amazon-2",
    "amazon-2023",
    "amazon-2023-arm64",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 2, ..ProptestConfig::default() })]

    #[test]
    fn each_name_of_image_builder_is_its_own_flavor(system in prop::sample::select(&SYSTEMS[..]), patch in 0_u8..20, stamp in 1_u32.., v in prop::sample::select(vec!["", "v"]), rc in prop::sample::select(vec!["", "-rc.1"])) {
        let architecture = if system.ends_with("-arm64") { "arm64" } else { "x86_64" };
        let name = format!("capa-ami-{system}-{v}1.34.{patch}{rc}-{stamp}");
        let catalogue = catalogue(&[with(ami("a", &name, "2026-09-22"), json!({"Architecture": architecture}))]);
        let resolved = resolved(&catalogue, &lookup(json!({"os": SYSTEMS, "arch": ["amd64", "arm64"]})));
        prop_assert_eq!(resolved.len(), 1);
        prop_assert!(resolved[0].chosen().is_some());
        prop_assert_eq!(resolved[0].key.image.as_str(), system);
        prop_assert_eq!(resolved[0].key.version.clone(), format!("1.34.{patch}{rc}"));
    }

    /// Names that overlap on purpose. A name that could belong to several flavors belongs to none.
    #[test]
    fn a_name_is_never_of_another_flavor(
        systems in prop::collection::btree_set("[ab](-[ab]){0,2}", 1..5), which in any::<prop::sample::Index>(),
        format in prop::sample::select(vec!["-{{.OS}}-{{.K8sVersion}}-*", "-{{.OS}}*{{.K8sVersion}}", "-*{{.OS}}-?{{.K8sVersion}}*", "-{{.OS}}-{{.ARCH}}-{{.K8sVersion}}"]),
        filler in "[ab-]{0,3}",
    ) {
        let systems: Vec<String> = systems.into_iter().collect();
        let own = which.get(&systems);
        let name = format!("capa-ami{format}").replace("{{.OS}}", own).replace("{{.ARCH}}", "amd64").replace("{{.K8sVersion}}", "v1.34.2").replace('*', &filler).replace('?', "");
        let catalogue = catalogue(&[ami("a", &name, "2026-09-22")]);
        let resolved = resolved(&catalogue, &lookup(json!({"os": systems, "lookupFormat": format})));
        prop_assert!(resolved.iter().any(|resolved| resolved.key.image == *own), "{name}");
        for resolved in resolved.iter().filter(|resolved| resolved.chosen().is_some()) {
            prop_assert_eq!(&resolved.key.image, own, "{}", name);
        }
    }
}
