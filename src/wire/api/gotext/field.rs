//! Field errors in the format of Kubernetes: path, type, value, detail.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Serialize, Serializer};

/// Path of a field. The chain borrows from its parents, so a path needs no allocation until it is printed.
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
    /// The path of a member of the root object, which may have several segments: `spec.machineImages`.
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

/// Type of a field error, with the names of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldErrorType {
    /// The field must be set.
    Required,
    /// The value is invalid.
    Invalid,
    /// The value is not one of the supported values.
    NotSupported,
    /// The field must not be set, or not to this value.
    Forbidden,
    /// The value is already used elsewhere.
    Duplicate,
    /// The list is too long.
    TooMany,
    /// The text is too long.
    TooLong,
}

impl Serialize for FieldErrorType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.reason())
    }
}

impl FieldErrorType {
    /// The reason of a cause in the `details` of a Status.
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

    /// The type in messages.
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

/// An invalid field. It is formatted as in Kubernetes: `spec.a[0]: Invalid value: "x": must be y`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct FieldError {
    /// Path of the field.
    pub field: String,
    /// Type of the error.
    #[serde(rename = "type")]
    pub error_type: FieldErrorType,
    /// The value in JSON; absent if messages don't contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Details, such as supported values or the expected format.
    pub detail: String,
}

impl FieldError {
    /// The message without the field, as in a cause in the `details` of a Status.
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

/// The field errors of an object, in the order in which they were found: all of them, or the first ones and the number
/// of the others.
#[derive(Clone, Debug, Default)]
pub struct FieldErrors(pub Vec<FieldError>, Bounds);

/// Limits on the errors that are kept.
#[derive(Clone, Debug, Default)]
struct Bounds {
    /// Maximum number of errors to keep; `None` keeps all.
    most: Option<usize>,
    /// Number of errors that were not kept.
    further: usize,
    /// Set when the result is no longer needed.
    stop: Option<Arc<AtomicBool>>,
}

/// Maximum characters of a value or detail if not all errors are kept. Longer than the printed part of an error.
const MOST_OF_TEXT: usize = 4000;

/// Compares the errors, not the limits.
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

impl FieldErrors {
    /// Keeps the first `most` errors, with long texts cut, and counts the others. Checks end early when `stop` is set.
    #[must_use]
    pub fn at_most(most: usize, stop: Option<Arc<AtomicBool>>) -> Self {
        Self(Vec::new(), Bounds { most: Some(most), further: 0, stop })
    }

    /// Whether there are no errors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of errors, including those that were not kept.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len() + self.1.further
    }

    /// Whether the result is no longer needed, so that the check can end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.1.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Reports that the field must be set.
    pub fn required(&mut self, path: FieldPath<'_>, detail: impl Into<String>) {
        self.push(path, FieldErrorType::Required, None, detail.into());
    }

    /// Same as `required`, but computes the detail only if the error is kept.
    pub fn required_with(&mut self, path: FieldPath<'_>, detail: impl FnOnce() -> String) {
        if self.is_full() {
            self.1.further += 1;
        } else {
            self.push(path, FieldErrorType::Required, None, detail());
        }
    }

    /// Reports an invalid value.
    pub fn invalid(&mut self, path: FieldPath<'_>, value: impl Serialize, detail: impl Into<String>) {
        self.push(path, FieldErrorType::Invalid, Some(json(&value)), detail.into());
    }

    /// Reports a value that is not one of the supported values.
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

    /// Reports that the field must not be set.
    pub fn forbidden(&mut self, path: FieldPath<'_>, detail: impl Into<String>) {
        self.push(path, FieldErrorType::Forbidden, None, detail.into());
    }

    /// Reports a value that is already used elsewhere.
    pub fn duplicate(&mut self, path: FieldPath<'_>, value: impl Serialize) {
        self.push(path, FieldErrorType::Duplicate, Some(json(&value)), String::new());
    }

    /// Reports a list with more than `most` items.
    pub fn too_many(&mut self, path: FieldPath<'_>, actual: usize, most: usize) {
        self.push(path, FieldErrorType::TooMany, Some(actual.to_string()), format!("must have at most {most} items"));
    }

    /// Reports a text with more than `most` bytes.
    pub fn too_long(&mut self, path: FieldPath<'_>, most: usize) {
        self.push(path, FieldErrorType::TooLong, None, format!("may not be more than {most} bytes"));
    }

    /// Appends other errors.
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

/// Cuts the part of a text that is never printed.
fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MOST_OF_TEXT) {
        text.truncate(end);
        text.shrink_to_fit();
    }
}

/// Values that can't be serialised are omitted from messages.
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
