//! What a cloud is asked for: whose images, with which names. It may answer with more; lookups decide.

use std::collections::BTreeSet;

use super::lookup::Lookup;

/// Images of owners, with names like these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageQuery {
    /// Accounts, projects or galleries.
    pub owners: Vec<String>,
    /// Names, in which `*` is any text; empty means every name.
    pub names: Vec<String>,
}

impl ImageQuery {
    /// Every image of these owners.
    #[must_use]
    pub fn of_owners(owners: Vec<String>) -> Self {
        Self { owners, names: Vec::new() }
    }

    /// What a lookup needs. Only versions that begin like one of `versions`, such as `1.35`; without any, all.
    #[must_use]
    pub fn of_lookup(lookup: &Lookup, versions: &[String]) -> Self {
        let patterns = || lookup.combinations.iter().map(|combination| &combination.pattern);
        let names: BTreeSet<String> = match versions {
            [] => patterns().flat_map(|pattern| pattern.filters(None)).collect(),
            versions => {
                let of_version = |version: &String| {
                    patterns().flat_map(|pattern| pattern.filters(Some(version))).collect::<Vec<_>>()
                };
                versions.iter().flat_map(of_version).collect()
            }
        };
        Self { owners: lookup.owners.clone(), names: names.into_iter().collect() }
    }
}
