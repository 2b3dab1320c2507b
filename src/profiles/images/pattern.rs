//! Image names with variables: `capa-ami-{{.OS}}-?{{.K8sVersion}}-*`. `*` matches any text and `?` at most one
//! character. Versions match with and without `v`. Values of variables are literal.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;

/// Variable of the architecture.
pub const ARCHITECTURE: &str = "ARCH";
/// Minimum number of digits in the date or number of a build.
const BUILD_DIGITS: usize = 8;

/// Variables for the version and their expressions: three numbers with an optional prerelease, or two numbers as in
/// EKS.
const VERSIONS: [(&str, &str); 2] = [
    ("K8sVersion", r"v?(?P<version>[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}(?:-(?:alpha|beta|rc)\.[0-9]{1,9})?)"),
    ("K8sMinor", r"v?(?P<version>[0-9]{1,9}\.[0-9]{1,9})"),
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
    /// Variable of the version, and its regular expression.
    Version(&'static str, &'static str),
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
        if pieces.iter().filter(|piece| matches!(piece, Piece::Version(..))).count() != 1 {
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
        for (index, piece) in self.0.iter().enumerate() {
            let literal = match piece {
                Piece::Literal(text) => Some(text),
                Piece::Variable(name) => values.get(name),
                Piece::Any | Piece::AtMostOne | Piece::Version(..) => None,
            };
            let is_inner = self.is_inner(index);
            match (piece, literal) {
                (Piece::Version(_, version), _) => expression.push_str(version),
                (Piece::AtMostOne, _) => expression.push_str(if is_inner { "(.?)" } else { ".?" }),
                (_, Some(literal)) => expression.push_str(&regex::escape(literal)),
                (_, None) => expression.push_str(if is_inner { "(.*)" } else { ".*" }),
            }
            let filter = after_version.as_mut().unwrap_or(&mut before_version);
            match (piece, literal) {
                (Piece::Version(..), _) => after_version = Some(String::new()),
                (_, Some(literal)) => filter.push_str(&escaped(literal)),
                (_, None) => filter.push('*'),
            }
            match literal {
                Some(literal) if is_prefix => prefix.push_str(literal),
                _ => is_prefix = false,
            }
        }
        expression.push_str(r")\z");
        Ok(Pattern {
            prefix,
            around_version: (before_version, after_version.unwrap_or_default()),
            expression: Regex::new(&expression).map_err(|_| TemplateError::TooLong)?,
            variant: Variant::new(self, values),
        })
    }

    /// Whether the template has a variable.
    #[must_use]
    pub fn uses(&self, variable: &str) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Variable(name) if name == variable))
    }

    /// Whether the text that a wildcard matches can distinguish products. The last wildcard matches the build, and `?`
    /// before the version its `v`.
    fn is_inner(&self, index: usize) -> bool {
        match (self.0.get(index), self.0.get(index + 1)) {
            (Some(Piece::Any), next) => next.is_some(),
            (Some(Piece::AtMostOne), next) => !matches!(next, Some(Piece::Version(..))),
            _ => false,
        }
    }
}

/// The template that matches only the names of one product.
#[derive(Clone, Debug)]
enum Variant {
    /// All names are of one product.
    Fixed(Arc<str>),
    /// Inner wildcards distinguish products.
    Open(Vec<VariantPart>),
}

#[derive(Clone, Debug)]
enum VariantPart {
    Text(String),
    /// The text of the next wildcard.
    Wildcard,
}

impl Variant {
    fn new(template: &Template, values: &BTreeMap<String, String>) -> Self {
        let part = |(index, piece): (usize, &Piece)| match piece {
            _ if template.is_inner(index) => VariantPart::Wildcard,
            Piece::Literal(text) => VariantPart::Text(text.clone()),
            Piece::Version(name, _) => VariantPart::Text(format!("{{{{.{name}}}}}")),
            // The architecture of an image is compared with its own data.
            Piece::Variable(name) if name == ARCHITECTURE => VariantPart::Text(format!("{{{{.{name}}}}}")),
            Piece::Variable(name) => VariantPart::Text(values.get(name).cloned().unwrap_or_default()),
            Piece::Any => VariantPart::Text("*".to_owned()),
            // Versions match with and without `v`.
            Piece::AtMostOne => VariantPart::Text(String::new()),
        };
        let parts: Vec<VariantPart> = template.0.iter().enumerate().map(part).collect();
        if parts.iter().any(|part| matches!(part, VariantPart::Wildcard)) {
            return Self::Open(parts);
        }
        Self::Fixed(parts.iter().map(VariantPart::text).collect::<String>().into())
    }
}

impl VariantPart {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Wildcard => "*",
        }
    }
}

/// Whether a text is a date or a number of a build, such as `20260401` or `2026-04-01.1`. It distinguishes no products.
fn is_build(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    digits >= BUILD_DIGITS && text.chars().all(|letter| letter.is_ascii_digit() || "-._".contains(letter))
}

/// Escapes a text, so that `*` and `?` are literal.
fn escaped(literal: &str) -> String {
    literal.replace('\\', r"\\").replace('*', r"\*").replace('?', r"\?")
}

fn variable(name: &str, variables: &[&str], position: usize) -> Result<Piece, TemplateError> {
    if let Some((version, expression)) = VERSIONS.iter().find(|(version, _)| *version == name) {
        return Ok(Piece::Version(version, expression));
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
    variant: Variant,
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
        Some(self.expression.captures(name)?.name("version")?.as_str())
    }

    /// The template that matches this name, but not those that differ in the text of an inner wildcard; `None` if the
    /// name does not match.
    #[must_use]
    pub fn variant(&self, name: &str) -> Option<Arc<str>> {
        let parts = match &self.variant {
            Variant::Fixed(template) => return Some(Arc::clone(template)),
            Variant::Open(parts) => parts,
        };
        let captures = self.expression.captures(name)?;
        let version = captures.name("version")?.start();
        let mut wildcards =
            captures.iter().skip(1).flatten().filter(|found| found.start() != version || found.is_empty());
        let mut template = String::new();
        for part in parts {
            match part {
                VariantPart::Text(text) => template.push_str(text),
                VariantPart::Wildcard => {
                    let text = wildcards.next()?.as_str();
                    template.push_str(if is_build(text) { "*" } else { text });
                }
            }
        }
        Some(template.into())
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
    fn inner_wildcards_distinguish_variants() {
        let variant = |template: &str, name: &str| {
            let template = Template::parse(template, &["OS", "ARCH"]).unwrap();
            let values = BTreeMap::from([("OS", "os"), ("ARCH", "x86_64")].map(|(a, b)| (a.to_owned(), b.to_owned())));
            template.pattern(&values).unwrap().variant(name).map(|variant| variant.to_string())
        };
        for (template, name, expected) in [
            ("{{.OS}}-?{{.K8sVersion}}-*", "os-v1.35.1-178", "os-{{.K8sVersion}}-*"),
            ("{{.OS}}-?{{.K8sVersion}}-*", "os-1.35.1-fips-178", "os-{{.K8sVersion}}-*"),
            ("b-{{.K8sMinor}}-*{{.ARCH}}-v*", "b-1.32-x86_64-v1.39", "b-{{.K8sMinor}}-{{.ARCH}}-v*"),
            ("b-{{.K8sMinor}}-*{{.ARCH}}-v*", "b-1.32-fips-x86_64-v1.39", "b-{{.K8sMinor}}-fips-{{.ARCH}}-v*"),
            ("*-{{.K8sVersion}}", "fips-1.35.1", "fips-{{.K8sVersion}}"),
            ("*{{.K8sVersion}}-*-{{.ARCH}}", "1.35.1-20260401.1-x86_64", "{{.K8sVersion}}-*-{{.ARCH}}"),
            ("a?b-{{.K8sMinor}}-*", "a1b-1.32-x", "a1b-{{.K8sMinor}}-*"),
            ("{{.K8sMinor}}-*-{{.ARCH}}", "1.32-22.04-x86_64", "{{.K8sMinor}}-22.04-{{.ARCH}}"),
        ] {
            assert_eq!(variant(template, name).as_deref(), Some(expected), "{template} {name}");
        }
    }

    #[test]
    fn queries_both_spellings_of_a_version() {
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
