//! Selects the Workers that this process serves, by type and class. All others belong to other extensions.

use decisions::provider::{Provider, Providers};
use wire::api::gardener::Worker;

/// Served types and classes of Workers.
#[derive(Clone, Debug)]
pub struct Served {
    providers: Providers,
    types: Vec<String>,
    classes: Vec<String>,
}

impl Served {
    /// Class of a Worker without one.
    pub const DEFAULT_CLASS: &str = "shoot";

    /// `types` and `classes` as given as arguments. No types means every type that has a provider.
    ///
    /// # Errors
    /// If a type has no provider, or there is no class.
    pub fn new(providers: Providers, types: &[String], classes: &[String]) -> anyhow::Result<Self> {
        for given in types {
            anyhow::ensure!(providers.for_worker_type(given).is_ok(), "--worker-type {given}: no such provider");
        }
        anyhow::ensure!(classes.iter().any(|class| !class.is_empty()), "--extension-classes: at least one is needed");
        let types = match types {
            [] => providers.worker_types().map(str::to_owned).collect(),
            given => given.to_vec(),
        };
        Ok(Self { providers, types, classes: classes.to_vec() })
    }

    /// The types and classes that are served, for messages.
    pub fn selection(&self) -> String {
        format!("{} {}", self.types.join(","), self.classes.join(","))
    }

    /// The provider of a Worker that this process serves.
    pub(crate) fn provider_of(&self, worker: &Worker) -> Option<&'static dyn Provider> {
        let worker_type = &worker.spec.worker_type;
        let class = worker.spec.class.as_deref();
        self.includes(worker_type, class).then(|| self.providers.for_worker_type(worker_type).ok()).flatten()
    }

    pub fn includes(&self, worker_type: &str, class: Option<&str>) -> bool {
        let class = class.filter(|class| !class.is_empty()).unwrap_or(Self::DEFAULT_CLASS);
        self.types.iter().any(|served| served == worker_type) && self.classes.iter().any(|served| served == class)
    }

    pub fn type_list(&self) -> &[String] {
        &self.types
    }

    /// The types, for output.
    pub(crate) fn types(&self) -> String {
        self.types.join(",")
    }

    /// The classes, for output.
    pub(crate) fn classes(&self) -> String {
        self.classes.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_without_a_class_is_a_shoots() {
        let of = |classes: &[&str]| {
            let classes: Vec<String> = classes.iter().map(|class| (*class).to_owned()).collect();
            Served::new(Providers::SHIPPED, &["azure".to_owned()], &classes).unwrap()
        };
        for (classes, class, expected) in [
            (["shoot"].as_slice(), None, true),
            (&["shoot"], Some(""), true),
            (&["shoot"], Some("seed"), false),
            (&["seed", "garden"], Some("garden"), true),
            (&["seed", "garden"], None, false),
        ] {
            assert_eq!(of(classes).includes("azure", class), expected, "{classes:?} {class:?}");
        }
        assert!(!of(&["shoot"]).includes("aws", None), "a type that was not asked for");
    }

    #[test]
    fn types_without_a_provider_are_refused() {
        let classes = [Served::DEFAULT_CLASS.to_owned()];
        assert!(Served::new(Providers::SHIPPED, &["azur".to_owned()], &classes).is_err());
        let all = Served::new(Providers::SHIPPED, &[], &classes).unwrap();
        assert!(all.includes("azure", None) && all.includes("aws", None));
        assert!(Providers::SHIPPED.worker_types().eq(all.type_list()), "{:?}", all.type_list());
    }

    #[test]
    fn people_read_types_and_classes_as_they_were_given() {
        let given = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let served = Served::new(Providers::SHIPPED, &given(&["azure", "gcp"]), &given(&["shoot", "seed"])).unwrap();
        assert_eq!((served.types().as_str(), served.classes().as_str()), ("azure,gcp", "shoot,seed"));
    }
}
