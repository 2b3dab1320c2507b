//! Maps the members of a renamed profile to their paths in the user's file, for errors.

use super::ConvertError;
use crate::resolved_profile::profile::ProfileError;
use decisions::provider::document::DocumentError;
use wire::api::gotext::json::DecodeError;

/// Paths of members, each with its path in the file.
#[derive(Debug, Default)]
pub(super) struct Origins(Vec<(String, String)>);

impl Origins {
    /// Records a path and its path in the file. Members below it keep their names.
    pub(super) fn add(&mut self, path: impl Into<String>, origin: impl Into<String>) {
        self.0.push((path.into(), origin.into()));
    }

    /// The path in the file, by the longest recorded prefix.
    fn of(&self, path: &str) -> String {
        let rest =
            |known: &str| path.strip_prefix(known).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        let known = self.0.iter().filter_map(|(known, origin)| Some((known.len(), origin, rest(known)?)));
        let nearest = known.max_by_key(|(length, ..)| *length);
        nearest.map_or_else(|| path.to_owned(), |(_, origin, rest)| format!("{origin}{rest}"))
    }

    /// The error with paths in the file.
    pub(super) fn in_error(&self, error: ConvertError) -> ConvertError {
        match error {
            ConvertError::Profile(ProfileError::Spec(error)) => {
                ConvertError::Profile(ProfileError::Spec(self.in_decode_error(error, "spec")))
            }
            ConvertError::Profile(ProfileError::ProviderConfig(DocumentError::Decode(error))) => {
                let error = self.in_decode_error(error, "spec.providerConfig");
                ConvertError::Profile(ProfileError::ProviderConfig(DocumentError::Decode(error)))
            }
            ConvertError::Refused(mut findings) => {
                findings.iter_mut().for_each(|finding| finding.path = self.of(&finding.path));
                ConvertError::Refused(findings)
            }
            error => error,
        }
    }

    fn in_decode_error(&self, error: DecodeError, document: &str) -> DecodeError {
        let origin = self.of(&format!("{document}.{}", error.path));
        let path = origin.strip_prefix(document).map(|path| path.trim_start_matches('.').to_owned());
        DecodeError { path: path.unwrap_or(origin), ..error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_recorded_path_counts() {
        let mut origins = Origins::default();
        origins.add("a.b[1]", "a.c[2]");
        origins.add("a.b[1].d[0]", "a.c[3]");
        assert_eq!(origins.of("a.b[1].d[0].e"), "a.c[3].e");
        assert_eq!(origins.of("a.b[1].f"), "a.c[2].f");
        assert_eq!(origins.of("a.b[10]"), "a.b[10]");
    }
}
