//! Parses Azure Resource Manager ids like its Go library.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResourceId<'a> {
    /// Subscription, if the id has one.
    pub(super) subscription: Option<&'a str>,
    /// Resource group, if the id has one.
    pub(super) resource_group: Option<&'a str>,
    /// Last segment of the resource type, such as `capacityReservationGroups`.
    pub(super) resource_type: &'a str,
}

/// Reason why a text is not a resource id. The messages are those of the Go library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ResourceIdError {
    /// The text is empty.
    #[error("invalid resource ID: id cannot be empty")]
    Empty,
    /// The text is not a path.
    #[error("invalid resource ID: resource id '{0}' must start with '/'")]
    NoPath(String),
    /// The segments are not pairs of type and name.
    #[error("invalid resource ID: {0}")]
    Form(String),
}

impl<'a> ResourceId<'a> {
    pub(super) fn parse(id: &'a str) -> Result<Self, ResourceIdError> {
        if id.is_empty() {
            return Err(ResourceIdError::Empty);
        }
        if !id.starts_with('/') {
            return Err(ResourceIdError::NoPath(id.to_owned()));
        }
        let parts: Vec<&str> = id.split('/').filter(|part| !part.is_empty()).collect();
        Self::of_parts(&parts).ok_or_else(|| ResourceIdError::Form(id.to_owned()))
    }

    fn of_parts(parts: &[&'a str]) -> Option<Self> {
        let is = |part: &str, word: &str| part.eq_ignore_ascii_case(word);
        let first = parts.first()?;
        if parts.len() < 2 || !(is(first, "subscriptions") || is(first, "providers")) {
            return None;
        }
        let mut found = Self::default();
        let mut rest = parts;
        loop {
            match rest {
                [] => return Some(found),
                [word, ..] if is(word, "providers") => match rest {
                    [_, _, kind, _, ..] if !is(kind, "providers") => {
                        found.resource_type = kind;
                        rest = rest.get(4..)?;
                    }
                    [_, _] => return Some(Self { resource_type: "", ..found }),
                    [_, _, next, ..] if is(next, "providers") => rest = rest.get(2..)?,
                    _ => return None,
                },
                [word, name, ..] => {
                    if is(word, "subscriptions") {
                        found.subscription = Some(name);
                    } else if is(word, "resourceGroups") {
                        found.resource_group = Some(name);
                    }
                    found.resource_type = word;
                    rest = rest.get(2..)?;
                }
                // A trailing type without a name is allowed only below a resource, not below a subscription or group.
                [word] => {
                    let is_child = !["subscriptions", "resourceGroups"].iter().any(|kind| is(word, kind))
                        && !is(found.resource_type, "resourceGroups");
                    return is_child.then_some(found);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_names_and_values_in_turn() {
        let id = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/capacityReservationGroups/g";
        let target = ResourceId {
            subscription: Some("s"),
            resource_group: Some("rg"),
            resource_type: "capacityReservationGroups",
        };
        assert_eq!(ResourceId::parse(id), Ok(target));
        let gallery = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/galleries/g/images/i/versions/1";
        assert_eq!(ResourceId::parse(gallery).unwrap().resource_type, "versions");
        for text in [
            "",
            "foo",
            "/",
            "/subscriptions",
            "/a/b",
            "/subscriptions/s/resourceGroups",
            "/subscriptions/s/resourceGroups/rg/x",
        ] {
            assert!(ResourceId::parse(text).is_err(), "{text}");
        }
    }
}
