//! Suffixes by which old profiles tell variants of one image version apart: `1877.3.0-gen2`.

/// Suffixes that always stand for a variant.
const KNOWN: [&str; 4] = ["gen1", "gen2", "amd64", "arm64"];

/// The version without its suffix, and the suffix: a known one, or one whose version also exists without it.
pub(super) fn suffix_of<'a>(version: &'a str, versions_of_image: &[&str]) -> Option<(&'a str, &'a str)> {
    let (base, suffix) = version.split_once('-')?;
    let is_suffix = KNOWN.contains(&suffix) || versions_of_image.contains(&base);
    (is_suffix && !base.is_empty() && !suffix.is_empty()).then_some((base, suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_is_known_or_has_a_version_without_it() {
        assert_eq!(suffix_of("1.0.0-gen2", &[]), Some(("1.0.0", "gen2")));
        assert_eq!(suffix_of("1.0.0-fips", &["1.0.0"]), Some(("1.0.0", "fips")));
        assert_eq!(suffix_of("1.0.0-rc.1", &["1.0.1"]), None);
        assert_eq!(suffix_of("1.0.0", &["1.0.0"]), None);
    }
}
