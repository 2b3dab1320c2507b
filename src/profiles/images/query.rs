//! Query for images of a cloud by owner and name. The result may have more images, which lookups filter.

use std::collections::BTreeSet;

use super::lookup::Lookup;

/// Query for images by owner and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageQuery {
    /// Accounts, projects or galleries.
    pub owners: Vec<String>,
    /// Name patterns in which `*` matches any text; empty matches every name.
    pub names: Vec<String>,
}

impl ImageQuery {
    /// All images of these owners.
    #[must_use]
    pub fn of_owners(owners: Vec<String>) -> Self {
        Self { owners, names: Vec::new() }
    }

    /// The query for a lookup, limited to versions that begin with one of `versions`, such as `1.35`. Without any,
    /// all versions.
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
