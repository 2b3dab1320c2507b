//! Errors of fields as Kubernetes reports them: path, type, value, detail.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Serialize, Serializer};

/// Where a field stands: a chain that borrows from its parents, so that a path costs nothing until it is printed.
#[derive(Clone, Copy, Debug)]
pub struct FieldPath<'a> {
    parent: Option<&'a FieldPath<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Member(&'a str),
    Index(usize),
}

impl<'a> FieldPath<'a> {
    /// The path of a member of the whole object, which may have several steps: `spec.machineImages`.
    #[must_use]
    pub const fn new(member: &'a str) -> Self {
        Self { parent: None, step: Step::Member(member) }
    }

    /// The path of a member.
    #[must_use]
    pub const fn child<'child>(&'child self, member: &'child str) -> FieldPath<'child> {
        FieldPath { parent: Some(self), step: Step::Member(member) }
    }

    /// The path of an item of a list.
    #[must_use]
    pub const fn index(&self, index: usize) -> FieldPath<'_> {
        FieldPath { parent: Some(self), step: Step::Index(index) }
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(formatter)?;
        }
        match self.step {
            Step::Member(member) if self.parent.is_some() => write!(formatter, ".{member}"),
            Step::Member(member) => formatter.write_str(member),
            Step::Index(index) => write!(formatter, "[{index}]"),
        }
    }
}

/// What is wrong with a field. The names are those of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldErrorType {
    /// It must be set.
    Required,
    /// Its value is wrong.
    Invalid,
    /// Its value is none of the possible ones.
    NotSupported,
    /// It must not be set, or not like this.
    Forbidden,
    /// Its value stands somewhere else already.
    Duplicate,
    /// A list is too long.
    TooMany,
    /// A text is too long.
    TooLong,
}

impl Serialize for FieldErrorType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.reason())
    }
}

impl FieldErrorType {
    /// The reason of a cause in the `details` of a status.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooMany => "FieldValueTooMany",
            Self::TooLong => "FieldValueTooLong",
        }
    }

    /// How messages name the type.
    fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::TooMany => "Too many",
            Self::TooLong => "Too long",
        }
    }
}

/// One wrong field. It prints as Kubernetes does: `spec.a[0]: Invalid value: "x": must be y`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FieldError {
    /// The path.
    pub field: String,
    /// What is wrong.
    #[serde(rename = "type")]
    pub error_type: FieldErrorType,
    /// The value, as JSON prints it; absent where messages don't show one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// More about it: which values there are, what would be right.
    pub detail: String,
}

impl FieldError {
    /// What is wrong, without the field: the message of a cause in the `details` of a status.
    #[must_use]
    pub fn body(&self) -> String {
        let parts = [Some(self.error_type.words()), self.value.as_deref(), Some(&*self.detail)];
        let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        parts.join(": ")
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.body())
    }
}

/// The wrong fields of an object, in the order in which they were found. All of them, or the first: then the others are counted.
#[derive(Clone, Debug, Default)]
pub struct FieldErrors(pub Vec<FieldError>, Bounds);

/// What is kept of errors.
#[derive(Clone, Debug, Default)]
struct Bounds {
    /// How many are kept; all of them without it.
    most: Option<usize>,
    /// How many were not kept.
    further: usize,
    /// Says when nobody waits for them any more.
    stop: Option<Arc<AtomicBool>>,
}

/// Most characters of a value or detail where not all errors are kept: more than is printed of one.
const MOST_OF_TEXT: usize = 4000;

/// By what was found.
impl PartialEq for FieldErrors {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 && self.1.further == other.1.further
    }
}

impl Eq for FieldErrors {}

impl From<Vec<FieldError>> for FieldErrors {
    fn from(errors: Vec<FieldError>) -> Self {
        Self(errors, Bounds::default())
    }
}

#[cfg(test)]
impl FieldErrors {
    /// Holds the errors against a row of a table: one text for each, in order, with a part of what it says.
    pub(crate) fn differ_from(&self, wanted: &[String]) -> Option<String> {
        let found: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        let same = found.len() == wanted.len()
            && found.iter().zip(wanted).all(|(found, wanted)| found.contains(wanted.as_str()));
        (!same).then(|| format!("{found:#?} instead of {wanted:#?}"))
    }
}

impl FieldErrors {
    /// Keeps the first `most` errors, as far as they are printed, and counts the others. Whoever looks for more ends when `stop` is set.
    #[must_use]
    pub fn at_most(most: usize, stop: Option<Arc<AtomicBool>>) -> Self {
        Self(Vec::new(), Bounds { most: Some(most), further: 0, stop })
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many fields are wrong.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len() + self.1.further
    }

    /// Whether nobody waits for more errors.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.1.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// The field must be set.
    pub fn required(&mut self, path: FieldPath<'_>, detail: impl Into<String>) {
        self.push(path, FieldErrorType::Required, None, detail.into());
    }

    /// The field must be set. The detail is made only if it is kept.
    pub fn required_with(&mut self, path: FieldPath<'_>, detail: impl FnOnce() -> String) {
        if self.is_full() {
            self.1.further += 1;
        } else {
            self.push(path, FieldErrorType::Required, None, detail());
        }
    }

    /// The value is wrong.
    pub fn invalid(&mut self, path: FieldPath<'_>, value: impl Serialize, detail: impl Into<String>) {
        self.push(path, FieldErrorType::Invalid, Some(json(&value)), detail.into());
    }

    /// The value is none of the supported ones.
    pub fn not_supported<'v>(
        &mut self,
        path: FieldPath<'_>,
        value: impl Serialize,
        supported: impl IntoIterator<Item = &'v str>,
    ) {
        let supported: Vec<String> = supported.into_iter().map(|value| json(&value)).collect();
        let detail = match supported[..] {
            [] => String::new(),
            _ => format!("supported values: {}", supported.join(", ")),
        };
        self.push(path, FieldErrorType::NotSupported, Some(json(&value)), detail);
    }

    /// The field must not be set.
    pub fn forbidden(&mut self, path: FieldPath<'_>, detail: impl Into<String>) {
        self.push(path, FieldErrorType::Forbidden, None, detail.into());
    }

    /// The value stands somewhere else already.
    pub fn duplicate(&mut self, path: FieldPath<'_>, value: impl Serialize) {
        self.push(path, FieldErrorType::Duplicate, Some(json(&value)), String::new());
    }

    /// The list is longer than `most`.
    pub fn too_many(&mut self, path: FieldPath<'_>, actual: usize, most: usize) {
        self.push(path, FieldErrorType::TooMany, Some(actual.to_string()), format!("must have at most {most} items"));
    }

    /// The text is longer than `most` bytes.
    pub fn too_long(&mut self, path: FieldPath<'_>, most: usize) {
        self.push(path, FieldErrorType::TooLong, None, format!("may not be more than {most} bytes"));
    }

    /// Takes over other errors.
    pub fn extend(&mut self, others: Self) {
        self.1.further += others.1.further;
        for other in others.0 {
            if self.is_full() {
                self.1.further += 1;
            } else {
                self.0.push(other);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.1.most.is_some_and(|most| self.0.len() >= most)
    }

    fn push(&mut self, path: FieldPath<'_>, error_type: FieldErrorType, mut value: Option<String>, mut detail: String) {
        if self.is_full() {
            self.1.further += 1;
            return;
        }
        if self.1.most.is_some() {
            value.iter_mut().for_each(shorten);
            shorten(&mut detail);
        }
        self.0.push(FieldError { field: path.to_string(), error_type, value, detail });
    }
}

/// Frees what is not printed of a text.
fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MOST_OF_TEXT) {
        text.truncate(end);
        text.shrink_to_fit();
    }
}

/// What can't be written as JSON is left out of a message.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_first_errors_and_counts_the_others() {
        let path = FieldPath::new("spec");
        let mut errors = FieldErrors::at_most(2, None);
        errors.required(path, "x".repeat(1 << 20));
        errors.duplicate(path, "b");
        errors.required_with(path, || panic!("it is not kept"));
        errors.forbidden(path, "c");
        let mut others = FieldErrors::default();
        others.duplicate(path, "d");
        errors.extend(others);
        assert_eq!((errors.0.len(), errors.count()), (2, 5));
        assert_eq!(errors.0[0].detail.len(), MOST_OF_TEXT);
    }

    #[test]
    fn errors_read_as_those_of_kubernetes() {
        let mut errors = FieldErrors::default();
        let spec = FieldPath::new("spec");
        let images = spec.child("machineImages");
        errors.required(images.index(2).child("name"), "must be there");
        errors.not_supported(spec.child("type"), "x", ["a", "b"]);
        errors.not_supported(spec.child("encrypted"), true, []);
        errors.duplicate(images.index(1), "os");
        let texts: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.machineImages[2].name: Required value: must be there",
                r#"spec.type: Unsupported value: "x": supported values: "a", "b""#,
                "spec.encrypted: Unsupported value: true",
                r#"spec.machineImages[1]: Duplicate value: "os""#,
            ]
        );
    }
}
