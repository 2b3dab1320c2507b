//! Users of kube-apiserver: a static token per component, so that the audit log distinguishes them.

use anyhow::{Context as _, Result};
use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use k8s_openapi::ByteString;
use kube::config::Kubeconfig;
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// The tests themselves.
pub const ADMIN: &str = "admin";
/// The program under test.
pub const CONTROLLER: &str = "controller";
/// machine-controller-manager and its fake cloud.
pub const MACHINE_CONTROLLER_MANAGER: &str = "machine-controller-manager";
/// The fake machine-controller-manager.
pub const FAKER: &str = "faker";
/// Gardener's servers.
pub const GARDENER: &str = "gardener";
/// Processes of the program that share a seed.
pub const SHARDS: [&str; 5] = ["shard-0", "shard-1", "shard-2", "shard-3", "shard-4"];
/// The sharder, with only the permissions of its role.
pub const SHARDER: &str = "sharder";
/// A user with only the permissions that a test grants, see `ControlPlane::grant`.
pub const RESTRICTED: &str = "restricted";
/// A person who reads the garden, with only the permissions that a test grants.
pub const READER: &str = "reader";

/// All users with their group. `system:masters` has all permissions.
const USERS: [(&str, &str); 13] = [
    (ADMIN, "system:masters"),
    (CONTROLLER, "system:masters"),
    (MACHINE_CONTROLLER_MANAGER, "system:masters"),
    (FAKER, "system:masters"),
    (GARDENER, "system:masters"),
    (SHARDS[0], "system:masters"),
    (SHARDS[1], "system:masters"),
    (SHARDS[2], "system:masters"),
    (SHARDS[3], "system:masters"),
    (SHARDS[4], "system:masters"),
    (SHARDER, ""),
    (RESTRICTED, ""),
    (READER, ""),
];

/// Credentials of one control plane: the service account signing key, and the users' tokens derived from it.
pub struct Credentials {
    signing_key: Vec<u8>,
    verifying_key: Vec<u8>,
}

impl Credentials {
    pub fn generate() -> Result<Self> {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).context("generating a key")?;
        let verifying_key: PublicKeyX509Der<'_> = key.public_key().as_der().context("encoding the public key")?;
        let signing_key = key.to_pkcs8v1().context("encoding the key")?;
        Ok(Self { signing_key: signing_key.as_ref().to_vec(), verifying_key: verifying_key.as_ref().to_vec() })
    }

    /// The private key for `--service-account-signing-key-file`.
    pub fn signing_key_pem(&self) -> Result<String> {
        pem("PRIVATE KEY", &self.signing_key)
    }

    /// The public key for `--service-account-key-file`.
    pub fn verifying_key_pem(&self) -> Result<String> {
        pem("PUBLIC KEY", &self.verifying_key)
    }

    /// The content for `--token-auth-file`.
    pub fn tokens_csv(&self) -> String {
        USERS.iter().map(|(user, group)| format!("{},{user},uid-{user},\"{group}\"\n", self.token(user))).collect()
    }

    /// A kubeconfig for a user and the API server at `server`.
    pub fn kubeconfig(&self, user: &str, server: &str, certificates: &[u8]) -> Result<Kubeconfig> {
        let known = USERS.iter().any(|(name, _)| *name == user);
        anyhow::ensure!(known, "no user {user:?}; there are {:?}", USERS.map(|(name, _)| name));
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority-data": base64(certificates)?}}],
            "users": [{"name": user, "user": {"token": self.token(user)}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        }))
        .context("building a kubeconfig")
    }

    fn token(&self, user: &str) -> String {
        hex::encode(Sha256::new().chain_update(&self.signing_key).chain_update(user).finalize())
    }
}

fn pem(label: &str, der: &[u8]) -> Result<String> {
    let base64 = base64(der)?;
    let lines: Vec<_> = base64.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    Ok(format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n")))
}

/// Base64, by way of Kubernetes' JSON encoding of bytes, which avoids a dependency.
fn base64(bytes: &[u8]) -> Result<String> {
    match serde_json::to_value(ByteString(bytes.to_vec()))? {
        serde_json::Value::String(text) => Ok(text),
        other => anyhow::bail!("bytes became {other}"),
    }
}
