//! Version ranges with explicit comparators: `>=1.33, <1.36`, which excludes prereleases of 1.36.0.

use wire::api::gotext::version::Version;

/// A range of versions. All conditions have to match.
#[derive(Clone, Debug, Default)]
pub struct VersionRange(Vec<(Comparator, Version)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparator {
    GreaterOrEqual,
    LessOrEqual,
    Greater,
    Less,
    Equal,
}

/// Longer comparators come before their prefixes.
const COMPARATORS: [(&str, Comparator); 5] = [
    (">=", Comparator::GreaterOrEqual),
    ("<=", Comparator::LessOrEqual),
    (">", Comparator::Greater),
    ("<", Comparator::Less),
    ("=", Comparator::Equal),
];

/// The range is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// A condition has no unambiguous comparator.
    #[error("{0:?}: write each condition with >=, <=, >, < or =; ~, ^ and * mean different things to different tools")]
    Condition(String),
    /// No version matches all conditions.
    #[error("no version is in {0:?}")]
    Empty(String),
}

impl VersionRange {
    /// Parses comma-separated conditions.
    ///
    /// # Errors
    /// If a condition is not a comparator with a version, or no version can match all of them.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let condition = |condition: &str| {
            let condition = condition.trim();
            let (sign, comparator) = COMPARATORS.iter().find(|(sign, _)| condition.starts_with(sign))?;
            let version = condition.strip_prefix(sign)?.trim();
            if !version.starts_with(|first: char| first == 'v' || first.is_ascii_digit()) {
                return None;
            }
            Some((*comparator, Version::parse(version).ok()?))
        };
        let conditions = text
            .split(',')
            .map(|part| condition(part).ok_or_else(|| RangeError::Condition(part.trim().chars().take(80).collect())));
        let range = Self(conditions.collect::<Result<_, _>>()?);
        if range.is_empty() { Err(RangeError::Empty(text.chars().take(80).collect())) } else { Ok(range) }
    }

    /// Whether a version is in the range. An excluded upper bound also excludes its suffixes, such as prereleases,
    /// unless a condition mentions one of them.
    #[must_use]
    pub fn contains(&self, version: &Version) -> bool {
        let numbers = |version: &Version| (version.major, version.minor, version.patch);
        let is_of = |bound: &Version| numbers(version) == numbers(bound);
        let names_suffix = self.0.iter().any(|(_, bound)| is_of(bound) && !bound.prerelease.is_empty());
        self.0.iter().all(|(comparator, bound)| match comparator {
            Comparator::GreaterOrEqual => version >= bound,
            Comparator::LessOrEqual => version <= bound,
            Comparator::Greater => version > bound,
            Comparator::Less => version < bound && (names_suffix || !is_of(bound)),
            Comparator::Equal => version == bound,
        })
    }

    /// Whether the lower bound is above the upper bound.
    fn is_empty(&self) -> bool {
        let has = |comparator: &Comparator, kinds: [Comparator; 2]| {
            *comparator == Comparator::Equal || kinds.contains(comparator)
        };
        self.0.iter().filter(|(kind, _)| has(kind, [Comparator::GreaterOrEqual, Comparator::Greater])).any(
            |(low_kind, low)| {
                self.0.iter().filter(|(kind, _)| has(kind, [Comparator::LessOrEqual, Comparator::Less])).any(
                    |(high_kind, high)| {
                        let strict = *low_kind == Comparator::Greater || *high_kind == Comparator::Less;
                        low > high || strict && low == high
                    },
                )
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparators_are_explicit() {
        let range = VersionRange::parse(">= 1.33, <1.36").unwrap();
        let contains = |version: &str| range.contains(&Version::parse(version).unwrap());
        assert!(contains("v1.33.0") && contains("1.35.9") && !contains("1.36.0") && !contains("1.32.9"));
        for text in ["~1.18", "^1", "1.*", "", ">=x", "1.33"] {
            assert!(matches!(VersionRange::parse(text), Err(RangeError::Condition(_))), "{text}");
        }
        for text in [">=1.36, <1.36", ">1.2, <1.1", "=1.2, =1.3"] {
            assert!(matches!(VersionRange::parse(text), Err(RangeError::Empty(_))), "{text}");
        }
    }

    #[test]
    fn an_excluded_version_is_excluded_with_all_that_has_a_suffix_to_it() {
        for (range, inside, outside) in [
            (
                ">=1.33, <1.36",
                vec!["1.35.9", "1.35.0-rc.1", "1.34.2-gke.1", "1.35.9+build"],
                vec!["1.36.0-alpha.0", "1.36.0-rc.1", "1.36.0-gke.1", "1.36.0", "1.36.1-rc.1", "1.33.0-rc.1"],
            ),
            (">=1.33, <v1.36.0+build", vec!["1.35.9"], vec!["1.36.0-rc.1"]),
            // A bound with a prerelease compares prereleases by their order.
            (">=1.33, <1.36.0-rc.1", vec!["1.36.0-beta.1", "1.35.9"], vec!["1.36.0-rc.1", "1.36.0"]),
            (">=1.36.0-beta.0, <1.36", vec!["1.36.0-beta.1", "1.36.0-rc.1"], vec!["1.36.0-alpha.1", "1.36.0"]),
            ("<=1.36", vec!["1.36.0-rc.1", "1.36.0"], vec!["1.36.1-rc.1"]),
            // Image versions: numbers, dates, and suffixes of variants.
            (">=1877.3, <1878", vec!["1877.3.0", "1877.9.1-gen2", "1877.3.1-arm64"], vec!["1878.0.0-gen2", "1877.2.0"]),
            (">=20241024, <20250101", vec!["20241024", "20241231.1.0"], vec!["20250101", "20241023"]),
        ] {
            let parsed = VersionRange::parse(range).unwrap();
            let contains = |version: &&str| parsed.contains(&Version::parse(version).unwrap());
            assert_eq!(inside.iter().copied().filter(contains).collect::<Vec<_>>(), inside, "{range}");
            assert_eq!(outside.iter().copied().filter(contains).collect::<Vec<_>>(), Vec::<&str>::new(), "{range}");
        }
    }
}
