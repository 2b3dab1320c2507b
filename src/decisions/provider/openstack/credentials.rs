//! Cloud credentials of a Worker. They are validated before anything is written, because an error is easier to diagnose
//! than machines that can't be created.

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::provider::WorkerError;
use wire::api::gardener::Worker;
use wire::api::secret::{SecretContent, Secrets, Sensitive};

/// Credentials for OpenStack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// User or application credential.
    pub identity: Identity,
    /// Keystone URL, if it is not configured in the CloudProfile.
    pub identity_url: Option<String>,
    /// Trusted CA certificates in PEM format, replacing those of the system.
    pub ca_certificates: Option<String>,
    /// Whether to skip the verification of certificates.
    pub insecure: bool,
}

/// A user or application credential with its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A user with a password, in a project of the same domain.
    Password {
        /// Name of the user.
        user: String,
        /// Password of the user.
        password: Sensitive,
        /// Name of the domain.
        domain: String,
        /// Name of the project.
        project: String,
    },
    /// An application credential by id, which implies the project.
    ApplicationCredential {
        /// Id of the credential.
        id: String,
        /// Secret of the credential.
        secret: Sensitive,
    },
    /// An application credential by name.
    NamedApplicationCredential {
        /// Name of the credential.
        name: String,
        /// Secret of the credential.
        secret: Sensitive,
        /// Name of its user.
        user: String,
        /// Name of the user's domain.
        domain: String,
    },
}

/// Decodes the credentials of a Worker.
///
/// # Errors
/// If the credentials are missing, incomplete or contradictory.
pub(super) fn credentials(worker: &Worker, secrets: &Secrets) -> Result<Credentials, WorkerError> {
    let reference = &worker.spec.secret_ref;
    let namespace = reference.namespace.as_deref().unwrap_or_default();
    let name = reference.name.as_deref().unwrap_or_default();
    let secret = format!("{namespace}/{name}");
    let content = secrets.get(namespace, name).ok_or_else(|| WorkerError::CredentialsMissing(secret.clone()))?;
    Keys { secret, content }.credentials()
}

struct Keys<'a> {
    secret: String,
    content: &'a SecretContent,
}

impl Keys<'_> {
    fn credentials(&self) -> Result<Credentials, WorkerError> {
        let ca_certificates = self.text("caCert")?;
        let is_certificate = |pem: &String| CertificateDer::pem_slice_iter(pem.as_bytes()).any(|found| found.is_ok());
        if ca_certificates.as_ref().is_some_and(|pem| !self.content.is_unread() && !is_certificate(pem)) {
            return Err(WorkerError::CredentialsUnreadable {
                secret: self.secret.clone(),
                key: "caCert",
                reason: "it has no certificate in PEM",
            });
        }
        Ok(Credentials {
            identity: self.identity()?,
            identity_url: self.text("authURL")?.filter(|url| !url.trim().is_empty()),
            ca_certificates,
            insecure: self.text("insecure")?.is_some_and(|text| text.trim().eq_ignore_ascii_case("true")),
        })
    }

    /// Checks the keys in the same order as the Go extension.
    fn identity(&self) -> Result<Identity, WorkerError> {
        let domain = self.required("domainName")?;
        let project = self.required("tenantName")?;
        let secret = self.text("applicationCredentialSecret")?.map(|secret| Sensitive::from(secret.as_str()));
        let id = self.text("applicationCredentialID")?;
        if let Some(password) = self.text("password")? {
            if secret.is_some() && !self.content.is_unread() {
                return Err(self.contradiction("has both \"password\" and \"applicationCredentialSecret\""));
            }
            let user = self.required("username")?;
            let password = Sensitive::from(password.as_str());
            if id.is_some() && !self.content.is_unread() {
                return Err(self.contradiction("has \"applicationCredentialID\" beside \"password\""));
            }
            return Ok(Identity::Password { user, password, domain, project });
        }
        let neither = "has neither \"password\" nor \"applicationCredentialSecret\"";
        let secret = secret.ok_or_else(|| self.contradiction(neither))?;
        Ok(match id {
            Some(id) => Identity::ApplicationCredential { id, secret },
            None => Identity::NamedApplicationCredential {
                name: self.required("applicationCredentialName")?,
                secret,
                user: self.required("username")?,
                domain,
            },
        })
    }

    fn contradiction(&self, detail: &'static str) -> WorkerError {
        WorkerError::CredentialsContradictory { secret: self.secret.clone(), detail }
    }

    fn required(&self, key: &'static str) -> Result<String, WorkerError> {
        let missing = || WorkerError::CredentialsIncomplete { secret: self.secret.clone(), key };
        self.text(key)?.ok_or_else(missing)
    }

    fn text(&self, key: &'static str) -> Result<Option<String>, WorkerError> {
        let read = |value: &[u8]| String::from_utf8(value.to_vec());
        let unreadable =
            |_| WorkerError::CredentialsUnreadable { secret: self.secret.clone(), key, reason: "it is not text" };
        self.content.non_empty(key).map(read).transpose().map_err(unreadable)
    }
}
