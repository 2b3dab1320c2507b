//! A self-managed certificate authority in a Secret shared by all replicas. Any replica performs the due step. Writes
//! use the resource version that it read, so a step is never performed twice.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::SignedDuration;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, PostParams};
use tracing::{debug, info, warn};

use super::clocks::Clocks;
use super::issue::{self, Issued};
use super::live_certificate::LiveCertificate;
use super::rotation::{Due, Lifetimes, Span, Times, due};

/// Keys of the Secret. The first three are those of TLS Secrets.
const BUNDLE: &str = "ca.crt";
const SERVER: &str = "tls.crt";
const SERVER_KEY: &str = "tls.key";
const AUTHORITY: &str = "authority.crt";
const AUTHORITY_KEY: &str = "authority.key";
const NEXT: &str = "next-authority.crt";
const NEXT_KEY: &str = "next-authority.key";
const FORMER: &str = "former-authority.crt";
const TIMES: &str = "times.json";

/// Number of attempts after write conflicts with another replica.
const ATTEMPTS: u32 = 5;
/// Maximum number of former authorities to trust; the newest are kept.
const MAX_FORMER: usize = 4;
/// Last line of a PEM certificate.
const PEM_END: &str = "-----END CERTIFICATE-----\n";

/// PEM certificates of all trusted authorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaBundle(pub(crate) String);

/// The authority stored in a Secret.
pub(crate) struct CertificateAuthority {
    api: Api<Secret>,
    rotation: Rotation,
    published: Option<(CaBundle, Instant)>,
}

/// Settings of the rotation.
pub(super) struct Rotation {
    /// Name of the Secret, and of the authorities.
    pub(super) secret: String,
    /// DNS names or IP addresses in the certificates.
    pub(super) names: Vec<String>,
    pub(super) lifetimes: Lifetimes,
}

/// The content of the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CaSecret {
    authority: Issued,
    next: Option<Issued>,
    /// Former authorities as concatenated PEM.
    former: Option<String>,
    server: Issued,
    times: Times,
}

/// The action of a process on the Secret.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Leave it unchanged.
    Keep(CaSecret),
    Write(Due, CaSecret),
}

/// The result of a rotation.
#[derive(Clone, Debug)]
pub(crate) struct Rotated {
    /// The trusted authorities.
    pub(crate) bundle: CaBundle,
    /// When the signing authority expires, in seconds since 1970.
    pub(crate) expires: i64,
}

impl CertificateAuthority {
    /// An authority that issues certificates for these DNS names or IP addresses.
    pub(crate) fn new(api: Api<Secret>, secret: &str, names: Vec<String>, lifetimes: Lifetimes) -> Self {
        Self { api, rotation: Rotation { secret: secret.to_owned(), names, lifetimes }, published: None }
    }

    /// How often to call [`CertificateAuthority::rotate`].
    pub(crate) fn period(&self) -> Duration {
        (self.rotation.lifetimes.announcement / 4).clamp(Duration::from_millis(200), Duration::from_secs(60))
    }

    /// Records that the webhook configurations contain this bundle.
    pub(crate) fn mark_published(&mut self, bundle: &CaBundle) {
        if self.published.as_ref().is_none_or(|(published, _)| published != bundle) {
            self.published = Some((bundle.clone(), Instant::now()));
        }
    }

    /// Performs the due step and serves the certificate.
    ///
    /// # Errors
    /// If the Secret can't be read or written. The served certificate is kept.
    pub(crate) async fn rotate(&self, live: &LiveCertificate, clocks: Clocks) -> anyhow::Result<Rotated> {
        let secret_name = &self.rotation.secret;
        for _ in 0..ATTEMPTS {
            let secret = self.api.get_opt(secret_name).await.context("the Secret can't be read")?;
            let kept = secret.as_ref().and_then(CaSecret::read);
            if let (Some(secret), None) = (&secret, &kept)
                && secret.data.as_ref().is_some_and(|data| !data.is_empty())
            {
                warn!(secret = secret_name, "the Secret is invalid; it is written again");
            }
            let published = self.published_for(kept.as_ref());
            let (due, kept) = match self.rotation.step(kept, published, clocks)? {
                Step::Keep(kept) => return kept.used(live),
                Step::Write(due, kept) => (due, kept),
            };
            match self.write(secret, &kept).await {
                Ok(()) => {
                    info!(secret = secret_name, ?due, "certificates written");
                    return kept.used(live);
                }
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    debug!(secret = secret_name, "another replica was faster");
                }
                Err(error) => return Err(error).context("the Secret can't be written"),
            }
        }
        anyhow::bail!("the Secret {secret_name} is changed concurrently all the time")
    }

    /// How long the current bundle has been published.
    fn published_for(&self, kept: Option<&CaSecret>) -> Duration {
        match (&self.published, kept) {
            (Some((published, since)), Some(kept)) if *published == kept.bundle() => since.elapsed(),
            _ => Duration::ZERO,
        }
    }

    async fn write(&self, secret: Option<Secret>, kept: &CaSecret) -> Result<(), kube::Error> {
        let data = Some(kept.data().map_err(kube::Error::SerdeError)?);
        match secret {
            // Contains the resource version that was read.
            Some(secret) => {
                let target = Secret { data, ..secret };
                self.api.replace(&self.rotation.secret, &PostParams::default(), &target).await?;
            }
            None => {
                let metadata = ObjectMeta { name: Some(self.rotation.secret.clone()), ..ObjectMeta::default() };
                let target = Secret { metadata, data, type_: Some("Opaque".to_owned()), ..Secret::default() };
                self.api.create(&PostParams::default(), &target).await?;
            }
        }
        Ok(())
    }
}

impl Rotation {
    /// The next step for this content of the Secret. `published` is how long the webhook configurations have contained
    /// its bundle.
    ///
    /// # Errors
    /// If there is no certificate to serve, and none may be written.
    pub(super) fn step(&self, kept: Option<CaSecret>, published: Duration, clocks: Clocks) -> anyhow::Result<Step> {
        let due = due(kept.as_ref().map(|kept| &kept.times), &self.names, self.lifetimes, published, clocks);
        match (due, kept) {
            (Due::Nothing, Some(kept)) => Ok(Step::Keep(kept)),
            (Due::Nothing, None) => {
                let why = clocks.far_apart().unwrap_or_default();
                anyhow::bail!("there is no certificate, and this process writes none: {why}")
            }
            (due, kept) => Ok(Step::Write(due, self.done(due, kept, clocks)?)),
        }
    }

    /// The content of the Secret after the due step.
    fn done(&self, due: Due, kept: Option<CaSecret>, clocks: Clocks) -> anyhow::Result<CaSecret> {
        let validity = SignedDuration::try_from(self.lifetimes.validity)?;
        let expires = clocks.own.checked_add(validity).context("--certificate-validity is too long")?;
        let span = Span { issued: clocks.own, expires };
        let Some(mut kept) = kept else { return self.everything(span, None) };
        match due {
            Due::Everything => {
                let authority = Some((kept.authority.certificate, kept.times.authority));
                let next = kept.next.map(|next| next.certificate).zip(kept.times.next);
                let former = kept.former.zip(kept.times.former);
                return self.everything(span, former_of([authority, next, former], clocks));
            }
            Due::Announce => {
                kept.next = Some(issue::authority(&self.secret, span)?);
                kept.times.next = Some(span);
            }
            Due::Switch => {
                if let (Some(next), Some(times)) = (kept.next.take(), kept.times.next.take()) {
                    let signed = std::mem::replace(&mut kept.authority, next).certificate;
                    let signed_during = std::mem::replace(&mut kept.times.authority, times);
                    let before = kept.former.take().zip(kept.times.former.take());
                    kept.set_former(former_of([Some((signed, signed_during)), before], clocks));
                }
                self.sign_server(&mut kept)?;
            }
            Due::Reissue => self.sign_server(&mut kept)?,
            Due::RemoveFormer => kept.set_former(None),
            Due::Nothing => {}
        }
        Ok(kept)
    }

    /// A new authority with a server certificate. The former authorities stay trusted.
    fn everything(&self, span: Span, former: Option<(String, Span)>) -> anyhow::Result<CaSecret> {
        let authority = issue::authority(&self.secret, span)?;
        let server = issue::server(&self.names, &authority, span)?;
        let times = Times { authority: span, next: None, former: None, names: self.names.clone() };
        let mut new = CaSecret { authority, next: None, former: None, server, times };
        new.set_former(former);
        Ok(new)
    }

    fn sign_server(&self, kept: &mut CaSecret) -> anyhow::Result<()> {
        kept.server = issue::server(&self.names, &kept.authority, kept.times.authority)?;
        kept.times.names.clone_from(&self.names);
        Ok(())
    }
}

/// The former authorities that are still trusted, from authorities in order, newest first.
fn former_of<const N: usize>(authorities: [Option<(String, Span)>; N], clocks: Clocks) -> Option<(String, Span)> {
    let trusted = authorities.into_iter().flatten().filter(|(_, span)| !span.is_over(clocks));
    let (certificates, span) =
        trusted.reduce(|(one, during), (other, and_during)| (format!("{one}{other}"), during.joined(and_during)))?;
    Some((certificates.split_inclusive(PEM_END).take(MAX_FORMER).collect(), span))
}

impl CaSecret {
    fn set_former(&mut self, former: Option<(String, Span)>) {
        (self.former, self.times.former) = former.unzip();
    }

    /// `None` if a key is missing.
    pub(super) fn read(secret: &Secret) -> Option<Self> {
        let data = secret.data.as_ref()?;
        let text = |member: &str| String::from_utf8(data.get(member)?.0.clone()).ok();
        let issued = |certificate: &str, key: &str| Some(Issued { certificate: text(certificate)?, key: text(key)? });
        let times: Times = serde_json::from_slice(&data.get(TIMES)?.0).ok()?;
        let kept = Self {
            authority: issued(AUTHORITY, AUTHORITY_KEY)?,
            next: issued(NEXT, NEXT_KEY),
            former: text(FORMER),
            server: issued(SERVER, SERVER_KEY)?,
            times,
        };
        let fits =
            kept.next.is_some() == kept.times.next.is_some() && kept.former.is_some() == kept.times.former.is_some();
        fits.then_some(kept)
    }

    pub(super) fn data(&self) -> Result<BTreeMap<String, ByteString>, serde_json::Error> {
        let times = serde_json::to_string(&self.times)?;
        let bundle = self.bundle();
        let members = [
            (BUNDLE, Some(&bundle.0)),
            (SERVER, Some(&self.server.certificate)),
            (SERVER_KEY, Some(&self.server.key)),
            (AUTHORITY, Some(&self.authority.certificate)),
            (AUTHORITY_KEY, Some(&self.authority.key)),
            (NEXT, self.next.as_ref().map(|next| &next.certificate)),
            (NEXT_KEY, self.next.as_ref().map(|next| &next.key)),
            (FORMER, self.former.as_ref()),
            (TIMES, Some(&times)),
        ];
        let set = members.into_iter().filter_map(|(name, text)| Some((name, text?)));
        Ok(set.map(|(name, text)| (name.to_owned(), ByteString(text.clone().into_bytes()))).collect())
    }

    pub(super) fn bundle(&self) -> CaBundle {
        let next = self.next.as_ref().map(|next| next.certificate.as_str());
        let trusted = [Some(self.authority.certificate.as_str()), next, self.former.as_deref()];
        CaBundle(trusted.into_iter().flatten().collect())
    }

    /// Serves its certificate.
    pub(super) fn used(&self, live: &LiveCertificate) -> anyhow::Result<Rotated> {
        live.replace(self.server.certificate.as_bytes(), self.server.key.as_bytes())?;
        Ok(Rotated { bundle: self.bundle(), expires: self.times.authority.expires.as_second() })
    }
}
