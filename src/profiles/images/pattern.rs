//! Image names with variables: `capa-ami-{{.OS}}-?{{.K8sVersion}}-*`. `*` matches any text and `?` at most one
//! character. Versions match with and without `v`. Values of variables are literal.

use std::collections::BTreeMap;

use regex::Regex;

/// Variables for the version and their expressions: three numbers with an optional prerelease, or two numbers as in
/// EKS.
const VERSIONS: [(&str, &str); 2] = [
    ("K8sVersion", r"v?([0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}(?:-(?:alpha|beta|rc)\.[0-9]{1,9})?)"),
    ("K8sMinor", r"v?([0-9]{1,9}\.[0-9]{1,9})"),
];

/// The template is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The variable is not defined.
    #[error("unknown variable {name:?} at character {position}; there are {known}")]
    UnknownVariable {
        /// The variable.
        name: String,
        /// Its position, counted from 1.
        position: usize,
        /// The defined variables.
        known: String,
    },
    /// `{{` without `}}`, or no valid variable between them.
    #[error("character {0}: a variable such as {{{{.OS}}}} is expected")]
    Syntax(usize),
    /// Without a version, the image can't be identified.
    #[error("the name needs {{{{.K8sVersion}}}} or {{{{.K8sMinor}}}} exactly once")]
    NoVersion,
    /// The template is too long.
    #[error("the name is too long")]
    TooLong,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Any,
    AtMostOne,
    Variable(String),
    /// Regular expression of the version.
    Version(&'static str),
}

/// A template for image names.
#[derive(Clone, Debug)]
pub struct Template(Vec<Piece>);

impl Template {
    /// Parses a template whose variables are the version and `variables`.
    ///
    /// # Errors
    /// If it has other variables, or no version.
    pub fn parse(text: &str, variables: &[&str]) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let position = text.chars().count() - rest.chars().count() + 1;
            let length = match next {
                '*' | '?' => {
                    pieces.push(if next == '*' { Piece::Any } else { Piece::AtMostOne });
                    1
                }
                '{' if rest.starts_with("{{") => {
                    let end = rest.find("}}").ok_or(TemplateError::Syntax(position))?;
                    let inside = rest.get(2..end).unwrap_or_default().trim();
                    let name = inside.strip_prefix('.').ok_or(TemplateError::Syntax(position))?;
                    pieces.push(variable(name, variables, position)?);
                    end + 2
                }
                _ => {
                    let end = rest.char_indices().skip(1).find(|(_, other)| matches!(other, '*' | '?' | '{'));
                    let end = end.map_or(rest.len(), |(end, _)| end);
                    pieces.push(Piece::Literal(rest.get(..end).unwrap_or_default().to_owned()));
                    end
                }
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        if pieces.iter().filter(|piece| matches!(piece, Piece::Version(_))).count() != 1 {
            return Err(TemplateError::NoVersion);
        }
        Ok(Self(pieces))
    }

    /// The pattern of names with these values of variables.
    ///
    /// # Errors
    /// If it is too long.
    pub fn pattern(&self, values: &BTreeMap<String, String>) -> Result<Pattern, TemplateError> {
        let (mut prefix, mut is_prefix, mut expression) = (String::new(), true, String::from(r"\A(?s:"));
        let mut before_version = String::new();
        let mut after_version = None;
        for piece in &self.0 {
            let literal = match piece {
                Piece::Literal(text) => Some(text),
                Piece::Variable(name) => values.get(name),
                Piece::Any | Piece::AtMostOne | Piece::Version(_) => None,
            };
            match (piece, literal) {
                (Piece::Version(version), _) => expression.push_str(version),
                (Piece::AtMostOne, _) => expression.push_str(".?"),
                (_, Some(literal)) => expression.push_str(&regex::escape(literal)),
                (_, None) => expression.push_str(".*"),
            }
            let filter = after_version.as_mut().unwrap_or(&mut before_version);
            match (piece, literal) {
                (Piece::Version(_), _) => after_version = Some(String::new()),
                (_, Some(literal)) => filter.push_str(&escaped(literal)),
                (_, None) => filter.push('*'),
            }
            is_prefix &= literal.is_some();
            prefix.push_str(literal.filter(|_| is_prefix).map_or("", String::as_str));
        }
        expression.push_str(r")\z");
        Ok(Pattern {
            prefix,
            around_version: (before_version, after_version.unwrap_or_default()),
            expression: Regex::new(&expression).map_err(|_| TemplateError::TooLong)?,
        })
    }
}

/// Escapes a text, so that `*` and `?` are literal.
fn escaped(literal: &str) -> String {
    literal.replace('\\', r"\\").replace('*', r"\*").replace('?', r"\?")
}

fn variable(name: &str, variables: &[&str], position: usize) -> Result<Piece, TemplateError> {
    if let Some((_, expression)) = VERSIONS.iter().find(|(version, _)| *version == name) {
        return Ok(Piece::Version(expression));
    }
    if variables.contains(&name) {
        return Ok(Piece::Variable(name.to_owned()));
    }
    let known: Vec<&str> = VERSIONS.iter().map(|(version, _)| *version).chain(variables.iter().copied()).collect();
    let name = name.chars().take(80).collect();
    Err(TemplateError::UnknownVariable { name, position, known: known.join(", ") })
}

/// Pattern for the names of one flavor.
#[derive(Clone, Debug)]
pub struct Pattern {
    prefix: String,
    /// Filters for requests to a cloud, before and after the version. `*` matches any text.
    around_version: (String, String),
    expression: Regex,
}

impl Pattern {
    /// Common prefix of all matching names.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Name filters for requests to a cloud. They match at least the names of this version, or of all versions that
    /// begin with it. Both spellings are included, and `?` becomes `*`, because clouds disagree on whether `?` may be
    /// empty.
    #[must_use]
    pub fn filters(&self, version: Option<&str>) -> Vec<String> {
        let (before, after) = &self.around_version;
        let of = |version: &str| format!("{before}{version}*{after}").replace("**", "*");
        match version {
            Some(version) => vec![of(&format!("v{}", escaped(version))), of(&escaped(version))],
            None => vec![of("")],
        }
    }

    /// The version in a name, without `v`; `None` if the name does not match.
    #[must_use]
    pub fn version<'a>(&self, name: &'a str) -> Option<&'a str> {
        Some(self.expression.captures(name)?.get(1)?.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version<'a>(template: &str, os: &str, name: &'a str) -> Option<&'a str> {
        let template = Template::parse(template, &["OS", "ARCH"]).unwrap();
        let values = [("OS", os), ("ARCH", "amd64")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        template.pattern(&BTreeMap::from(values)).unwrap().version(name)
    }

    #[test]
    fn versions_are_read_from_names_in_both_spellings() {
        let template = "capa-ami-{{.OS}}-?{{ .K8sVersion }}-*";
        for (os, name, found) in [
            ("ubuntu-24.04", "capa-ami-ubuntu-24.04-v1.35.1-1767225600", Some("1.35.1")),
            ("ubuntu-24.04", "capa-ami-ubuntu-24.04-1.35.1-1767225600", Some("1.35.1")),
            ("ubuntu-24.04", "capa-ami-ubuntu-24.04-v1.36.0-rc.1-1767225600", Some("1.36.0-rc.1")),
            ("ubuntu-24.04", "capa-ami-ubuntu-24.04-arm64-v1.35.1-1767225600", None),
            ("ubuntu-24.04-arm64", "capa-ami-ubuntu-24.04-arm64-v1.35.1-1767225600", Some("1.35.1")),
            ("ubuntu-24.0*", "capa-ami-ubuntu-24.04-v1.35.1-1767225600", None),
        ] {
            assert_eq!(version(template, os, name), found, "{name}");
        }
    }

    #[test]
    fn names_of_eks_have_versions_of_two_numbers() {
        for (template, name, found) in [
            ("amazon-eks-node-{{.K8sMinor}}-v*", "amazon-eks-node-1.30-v20241024", Some("1.30")),
            ("amazon-eks-node-{{.K8sMinor}}-v*", "amazon-eks-node-1.30.2-v20241024", None),
            (
                "amazon-eks-node-al2023-x86_64-standard-{{.K8sMinor}}-v*",
                "amazon-eks-node-al2023-x86_64-standard-1.31-v20241213",
                Some("1.31"),
            ),
            ("amazon-eks-arm64-node-{{.K8sMinor}}-v*", "amazon-eks-arm64-node-1.30-v20241024", Some("1.30")),
            ("amazon-eks-node-{{.K8sVersion}}-v*", "amazon-eks-node-1.30-v20241024", None),
        ] {
            assert_eq!(version(template, "", name), found, "{name}");
        }
    }

    #[test]
    fn a_cloud_is_asked_for_both_spellings_of_a_version() {
        let template = Template::parse("capa-ami-{{.OS}}-?{{.K8sVersion}}-*", &["OS"]).unwrap();
        let pattern = template.pattern(&BTreeMap::from([("OS".to_owned(), "a*b".to_owned())])).unwrap();
        assert_eq!(pattern.filters(Some("1.35")), [r"capa-ami-a\*b-*v1.35*-*", r"capa-ami-a\*b-*1.35*-*"]);
        assert_eq!(pattern.filters(None), [r"capa-ami-a\*b-*-*"]);
    }

    #[test]
    fn what_is_no_template_is_located() {
        let error = |text: &str| Template::parse(text, &["OS"]).unwrap_err().to_string();
        assert_eq!(
            error("ü-{{.Os}}-{{.K8sVersion}}"),
            "unknown variable \"Os\" at character 3; there are K8sVersion, K8sMinor, OS"
        );
        assert_eq!(error("a-{{.OS"), "character 3: a variable such as {{.OS}} is expected");
        assert_eq!(error("a-{{printf}}"), "character 3: a variable such as {{.OS}} is expected");
        assert_eq!(error("a-{{.OS}}"), "the name needs {{.K8sVersion}} or {{.K8sMinor}} exactly once");
    }
}
