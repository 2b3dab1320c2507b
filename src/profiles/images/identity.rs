//! The identity with which a lookup sends requests to its cloud.

use super::record::text;
use wire::api::image_objects::IdentityRef;

/// Maximum length of an ARN.
const LONGEST_ARN: usize = 2048;

/// An identity at AWS. It contains no secret, only the name of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// That of the program: environment, profile, pod or machine.
    #[default]
    OfProgram,
    /// The access keys in a Secret.
    Secret(String),
    /// A role, assumed with the program's identity.
    Role(AssumedRole),
    /// A role, assumed with the access keys in a Secret.
    RoleOfSecret(String, AssumedRole),
    /// A role, assumed with the token of the program's pod.
    WorkloadIdentity(AssumedRole),
}

/// A role to assume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AssumedRole {
    /// Its ARN.
    pub arn: String,
    /// The external ID that it requires.
    pub external_id: Option<String>,
}

impl Identity {
    /// Reads a reference.
    ///
    /// # Errors
    /// The error has the invalid member, and the problem.
    pub fn read(reference: Option<&IdentityRef>) -> Result<Self, (&'static str, String)> {
        let Some(IdentityRef { kind, name, role_arn, external_id }) = reference else { return Ok(Self::OfProgram) };
        let role = role_arn.as_ref().map(|arn| role(arn, external_id.clone())).transpose()?;
        if external_id.is_some() && role.is_none() {
            return Err(("externalID", "only a role has one".to_owned()));
        }
        let required = || ("roleARN", "name the role to assume".to_owned());
        let unnamed = name.is_none() || kind == "Secret";
        match kind.as_str() {
            _ if !unnamed => Err(("name", "only a Secret has one".to_owned())),
            "Secret" => {
                // The name becomes part of a path.
                let name = name.clone().filter(|name| is_object_name(name));
                let name = name.ok_or(("name", "the name of a Secret is expected".to_owned()))?;
                Ok(role.map_or_else(|| Self::Secret(name.clone()), |role| Self::RoleOfSecret(name.clone(), role)))
            }
            "Role" => role.map(Self::Role).ok_or_else(required),
            "WorkloadIdentity" if external_id.is_some() => {
                Err(("externalID", "STS takes none with the token of a workload".to_owned()))
            }
            "WorkloadIdentity" => role.map(Self::WorkloadIdentity).ok_or_else(required),
            other => Err(("kind", format!("{:?} is neither Secret, Role nor WorkloadIdentity", text(other)))),
        }
    }

    /// The Secret with the access keys.
    #[must_use]
    pub fn secret(&self) -> Option<&str> {
        match self {
            Self::Secret(name) | Self::RoleOfSecret(name, _) => Some(name),
            Self::OfProgram | Self::Role(_) | Self::WorkloadIdentity(_) => None,
        }
    }
}

fn role(arn: &str, external_id: Option<String>) -> Result<AssumedRole, (&'static str, String)> {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let is_role = match parts[..] {
        ["arn", partition, "iam", "", account, role] => {
            partition.starts_with("aws")
                && account.len() == 12
                && account.bytes().all(|byte| byte.is_ascii_digit())
                && role.strip_prefix("role/").is_some_and(|name| !name.is_empty() && name.chars().all(is_of_name))
        }
        _ => false,
    };
    if !is_role || arn.len() > LONGEST_ARN {
        return Err(("roleARN", "a role such as arn:aws:iam::111111111111:role/images is expected".to_owned()));
    }
    Ok(AssumedRole { arn: arn.to_owned(), external_id })
}

fn is_object_name(name: &str) -> bool {
    let is_inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter);
    let is_outer = |letter: char| is_inner(letter) && !"-.".contains(letter);
    name.len() <= 253 && name.chars().all(is_inner) && name.starts_with(is_outer) && name.ends_with(is_outer)
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "+=,.@_/-".contains(letter)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ARN: &str = "arn:aws:iam::111111111111:role/path/images";

    fn read(reference: Value) -> Result<Identity, String> {
        let reference: IdentityRef = serde_json::from_value(reference).unwrap();
        Identity::read(Some(&reference)).map_err(|(member, problem)| format!("{member}: {problem}"))
    }

    #[test]
    fn references_become_identities() {
        let role = AssumedRole { arn: ARN.to_owned(), external_id: None };
        assert_eq!(Identity::read(None), Ok(Identity::OfProgram));
        assert_eq!(read(json!({"kind": "Secret", "name": "a"})), Ok(Identity::Secret("a".to_owned())));
        assert_eq!(read(json!({"kind": "Role", "roleARN": ARN})), Ok(Identity::Role(role.clone())));
        assert_eq!(
            read(json!({"kind": "Secret", "name": "a", "roleARN": ARN})),
            Ok(Identity::RoleOfSecret("a".to_owned(), role.clone()))
        );
        assert_eq!(
            read(json!({"kind": "WorkloadIdentity", "roleARN": ARN})),
            Ok(Identity::WorkloadIdentity(role.clone()))
        );
        let external = AssumedRole { external_id: Some("x".to_owned()), ..role };
        assert_eq!(read(json!({"kind": "Role", "roleARN": ARN, "externalID": "x"})), Ok(Identity::Role(external)));
    }

    #[test]
    fn wrong_references_name_the_member() {
        for (reference, member) in [
            (json!({"kind": "blah"}), "kind: \"blah\" is neither"),
            (json!({"kind": "Secret"}), "name: "),
            (json!({"kind": "Secret", "name": "../x"}), "name: "),
            (json!({"kind": "Secret", "name": ".."}), "name: "),
            (json!({"kind": "Role"}), "roleARN: name the role"),
            (json!({"kind": "WorkloadIdentity"}), "roleARN: name the role"),
            (json!({"kind": "Role", "roleARN": "arn:aws:iam::1:role/x"}), "roleARN: a role such as"),
            (json!({"kind": "Role", "roleARN": "arn:aws:iam::111111111111:user/x"}), "roleARN: a role such as"),
            (json!({"kind": "Role", "roleARN": ARN, "name": "x"}), "name: only a Secret"),
            (json!({"kind": "Secret", "name": "a", "externalID": "x"}), "externalID: only a role"),
            (json!({"kind": "WorkloadIdentity", "roleARN": ARN, "externalID": "x"}), "externalID: STS"),
        ] {
            let error = read(reference.clone()).unwrap_err();
            assert!(error.starts_with(member), "{reference}: {error}");
        }
    }
}
