//! Granularity of recorded inputs, limited by the size of the annotation.

use crate::worker::plan::class_inputs::INDIRECT_PREFIX;
use crate::worker::plan::class_inputs::Inputs;
use crate::worker::plan::class_inputs::digest;

/// Name of all inputs combined.
const WHOLE: &str = "inputs";

/// Granularity of input names. A coarser record can be derived from a finer one, so both can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Every input by its path: `dataVolumes[a].size`.
    #[default]
    Fields,
    /// Entries of lists and maps combined: `dataVolumes`.
    Lists,
    /// Only the first segment of each path.
    Roots,
    /// All inputs combined. No provider has enough inputs to need this.
    Whole,
}

impl Detail {
    /// From fine to coarse.
    pub(crate) const ALL: [Self; 4] = [Self::Fields, Self::Lists, Self::Roots, Self::Whole];

    pub(super) fn number(self) -> u64 {
        match self {
            Self::Fields => 0,
            Self::Lists => 1,
            Self::Roots => 2,
            Self::Whole => 3,
        }
    }

    pub(super) fn of_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|detail| detail.number() == number)
    }

    /// Name of an input at this detail.
    pub(crate) fn name_of(self, input: &str) -> &str {
        match self {
            Self::Fields => input,
            Self::Lists => list_of(input),
            Self::Roots => root_of(list_of(input)),
            Self::Whole => WHOLE,
        }
    }

    /// Reduces inputs to this detail. Coarser levels are derived step by step, so the initial detail does not matter.
    pub(crate) fn of(self, inputs: &Inputs) -> Inputs {
        match self {
            Self::Fields => inputs.clone(),
            Self::Lists => grouped(inputs, list_of),
            Self::Roots => grouped(&grouped(inputs, list_of), root_of),
            Self::Whole => grouped(&Self::Roots.of(inputs), |_| WHOLE),
        }
    }
}

/// Inputs of the same group share one digest; an input that is its own group keeps its digest.
fn grouped(inputs: &Inputs, group_of: fn(&str) -> &str) -> Inputs {
    let mut groups: std::collections::BTreeMap<&str, Vec<&str>> = std::collections::BTreeMap::new();
    for (name, digest) in inputs {
        groups.entry(group_of(name)).or_default().extend([name.as_str(), digest.as_str()]);
    }
    let one = |(group, members): (&str, Vec<&str>)| {
        let text = match members[..] {
            [name, digest] if name == group => digest.to_owned(),
            _ => digest(group, &members),
        };
        (group.to_owned(), text)
    };
    groups.into_iter().map(one).collect()
}

/// The part before the first named entry. `[]` has no name and stays.
fn list_of(name: &str) -> &str {
    let entry = name.match_indices('[').find(|(start, _)| !name[*start..].starts_with("[]"));
    entry.map_or(name, |(start, _)| &name[..start])
}

fn root_of(name: &str) -> &str {
    let path = name.strip_prefix(INDIRECT_PREFIX).unwrap_or(name);
    let marker = name.len() - path.len();
    let end = path.find(['.', '[']).unwrap_or(path.len());
    &name[..marker + end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(names: &[&str]) -> Inputs {
        names.iter().map(|name| ((*name).to_owned(), digest(name, &["value"]))).collect()
    }

    #[test]
    fn groups_inputs_by_prefix() {
        assert_eq!(list_of("dataVolumes[a].size"), "dataVolumes");
        assert_eq!(list_of("networks.subnets[].name"), "networks.subnets[].name");
        assert_eq!(list_of("providerConfig.nodeTemplate.capacity[a[].b]"), "providerConfig.nodeTemplate.capacity");
        assert_eq!(root_of("~kubeletConfig.kubeReserved"), "~kubeletConfig");
        assert_eq!(root_of("machineType"), "machineType");
        let names = Detail::ALL.map(|detail| detail.name_of("dataVolumes[a].size"));
        assert_eq!(names, ["dataVolumes[a].size", "dataVolumes", "dataVolumes", "inputs"]);
    }

    #[test]
    fn coarser_record_is_independent_of_path() {
        let fine = inputs(&["a", "b[x].y", "b[z].y", "c.d.e", "c.f", "~b[x]"]);
        let lists = Detail::Lists.of(&fine);
        assert_eq!(lists.keys().collect::<Vec<_>>(), ["a", "b", "c.d.e", "c.f", "~b"]);
        assert_eq!(Detail::Lists.of(&lists), lists);
        assert_eq!(Detail::Roots.of(&lists), Detail::Roots.of(&fine));
        let roots = Detail::Roots.of(&fine);
        assert_eq!(Detail::Roots.of(&roots), roots);
        assert_eq!(roots["a"], fine["a"]);
        // Records are compared with those written by an earlier version.
        let one = inputs(&["b[x].y"]);
        assert_eq!(Detail::Lists.of(&one)["b"], digest("b", &["b[x].y", &one["b[x].y"]]));
        assert_eq!(Detail::Whole.of(&roots), Detail::Whole.of(&fine));
        assert_eq!(Detail::Whole.of(&Detail::Whole.of(&fine)), Detail::Whole.of(&fine));
    }
}
