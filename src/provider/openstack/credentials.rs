//! The credentials of a Worker. They are looked at before anything is written, because a machine that can't be made costs a
//! person more time than an error does.

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use crate::api::gardener::Worker;
use crate::api::secret::{SecretContent, Secrets, Sensitive};
use crate::provider::WorkerError;

/// Who asks OpenStack for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Who it is, and what proves that.
    pub identity: Identity,
    /// Where tokens come from, unless the CloudProfile says it.
    pub identity_url: Option<String>,
    /// The certificates to trust instead of those of the system, as PEM.
    pub ca_certificates: Option<String>,
    /// Whether no certificate is checked.
    pub insecure: bool,
}

/// Who somebody is, and what proves that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A user with a password, in a project of the same domain.
    Password {
        /// Name of the user.
        user: String,
        /// The password.
        password: Sensitive,
        /// Name of the domain.
        domain: String,
        /// Name of the project.
        project: String,
    },
    /// An application credential, which has its project.
    ApplicationCredential {
        /// Its id.
        id: String,
        /// Its secret.
        secret: Sensitive,
    },
    /// An application credential by its name.
    NamedApplicationCredential {
        /// Its name.
        name: String,
        /// Its secret.
        secret: Sensitive,
        /// Name of the user that it belongs to.
        user: String,
        /// Name of the user's domain.
        domain: String,
    },
}

/// Reads the credentials of a Worker.
///
/// # Errors
/// When they are missing, incomplete or contradict each other.
pub(super) fn credentials(worker: &Worker, secrets: &Secrets) -> Result<Credentials, WorkerError> {
    let reference = &worker.spec.secret_ref;
    let (namespace, name) =
        (reference.namespace.as_deref().unwrap_or_default(), reference.name.as_deref().unwrap_or_default());
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
            return Err(WorkerError::CredentialsUnreadable { secret: self.secret.clone(), key: "caCert" });
        }
        Ok(Credentials {
            identity: self.identity()?,
            identity_url: self.text("authURL")?.filter(|url| !url.trim().is_empty()),
            ca_certificates,
            insecure: self.text("insecure")?.is_some_and(|text| text.trim().eq_ignore_ascii_case("true")),
        })
    }

    /// In the order in which the Go extension looks at them.
    fn identity(&self) -> Result<Identity, WorkerError> {
        let (domain, project) = (self.required("domainName")?, self.required("tenantName")?);
        let secret = self.text("applicationCredentialSecret")?.map(|secret| Sensitive::from(secret.as_str()));
        let id = self.text("applicationCredentialID")?;
        if let Some(password) = self.text("password")? {
            if secret.is_some() && !self.content.is_unread() {
                return Err(self.contradiction("has both \"password\" and \"applicationCredentialSecret\""));
            }
            let (user, password) = (self.required("username")?, Sensitive::from(password.as_str()));
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
        let unreadable = |_| WorkerError::CredentialsUnreadable { secret: self.secret.clone(), key };
        self.content.non_empty(key).map(read).transpose().map_err(unreadable)
    }
}
