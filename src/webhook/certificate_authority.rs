//! A self-managed certificate authority in a Secret shared by all replicas. Any replica performs the due step. Writes
//! use the resource version that it read, so a step is never performed twice.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, PostParams};
use tracing::{debug, info, warn};

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

/// PEM certificates of all trusted authorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CaBundle(pub(crate) String);

/// The authority stored in a Secret.
pub(crate) struct CertificateAuthority {
    api: Api<Secret>,
    secret: String,
    names: Vec<String>,
    lifetimes: Lifetimes,
    published: Option<(CaBundle, Instant)>,
}

#[derive(Clone, Debug)]
struct CaSecret {
    authority: Issued,
    next: Option<Issued>,
    former: Option<String>,
    server: Issued,
    times: Times,
}

impl CertificateAuthority {
    /// An authority that issues certificates for these DNS names or IP addresses.
    pub(crate) fn new(api: Api<Secret>, secret: &str, names: Vec<String>, lifetimes: Lifetimes) -> Self {
        Self { api, secret: secret.to_owned(), names, lifetimes, published: None }
    }

    /// How often to call [`CertificateAuthority::rotate`].
    pub(crate) fn period(&self) -> Duration {
        (self.lifetimes.announcement / 4).clamp(Duration::from_millis(200), Duration::from_secs(60))
    }

    /// Records that the webhook configurations contain this bundle.
    pub(crate) fn mark_published(&mut self, bundle: &CaBundle) {
        if self.published.as_ref().is_none_or(|(published, _)| published != bundle) {
            self.published = Some((bundle.clone(), Instant::now()));
        }
    }

    /// Performs the due step and serves the certificate. Returns the bundle to publish and the expiry of the signing
    /// authority in seconds since 1970.
    ///
    /// # Errors
    /// If the Secret cannot be read or written. The server keeps its certificate.
    pub(crate) async fn rotate(&self, live: &LiveCertificate) -> anyhow::Result<(CaBundle, i64)> {
        for _ in 0..ATTEMPTS {
            let secret = self.api.get_opt(&self.secret).await.context("the Secret can't be read")?;
            let kept = secret.as_ref().and_then(CaSecret::read);
            if let (Some(secret), None) = (&secret, &kept)
                && secret.data.as_ref().is_some_and(|data| !data.is_empty())
            {
                warn!(secret = self.secret, "the Secret is invalid; it is written again");
            }
            let now = Timestamp::now();
            let due = due(
                kept.as_ref().map(|kept| &kept.times),
                &self.names,
                self.lifetimes,
                self.published_for(kept.as_ref()),
                now,
            );
            let kept = match (due, kept) {
                (Due::Nothing, Some(kept)) => {
                    return kept.used(live);
                }
                (_, kept) => self.done(due, kept, now)?,
            };
            match self.write(secret, &kept).await {
                Ok(()) => {
                    info!(secret = self.secret, ?due, "certificates written");
                    return kept.used(live);
                }
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    debug!(secret = self.secret, "another replica was faster");
                }
                Err(error) => return Err(error).context("the Secret can't be written"),
            }
        }
        anyhow::bail!("the Secret {} is changed concurrently all the time", self.secret)
    }

    /// How long the current bundle has been published.
    fn published_for(&self, kept: Option<&CaSecret>) -> Duration {
        match (&self.published, kept) {
            (Some((published, since)), Some(kept)) if *published == kept.bundle() => since.elapsed(),
            _ => Duration::ZERO,
        }
    }

    /// Content of the Secret after performing the due step.
    fn done(&self, due: Due, kept: Option<CaSecret>, now: Timestamp) -> anyhow::Result<CaSecret> {
        let span = Span { issued: now, expires: now + SignedDuration::try_from(self.lifetimes.validity)? };
        let signed = |authority: &Issued, span: Span| issue::server(&self.names, authority, span);
        let Some(mut kept) = kept.filter(|_| due != Due::Everything) else {
            let authority = issue::authority(&self.secret, span)?;
            let server = signed(&authority, span)?;
            let times = Times { authority: span, next: None, former: None, names: self.names.clone() };
            return Ok(CaSecret { authority, next: None, former: None, server, times });
        };
        match due {
            Due::Announce => {
                kept.next = Some(issue::authority(&self.secret, span)?);
                kept.times.next = Some(span);
            }
            Due::Switch => {
                if let (Some(next), Some(times)) = (kept.next.take(), kept.times.next.take()) {
                    kept.former = Some(std::mem::replace(&mut kept.authority, next).certificate);
                    kept.times.former = Some(std::mem::replace(&mut kept.times.authority, times));
                }
                kept.server = signed(&kept.authority, kept.times.authority)?;
                kept.times.names.clone_from(&self.names);
            }
            Due::Reissue => {
                kept.server = signed(&kept.authority, kept.times.authority)?;
                kept.times.names.clone_from(&self.names);
            }
            Due::RemoveFormer => (kept.former, kept.times.former) = (None, None),
            Due::Nothing | Due::Everything => {}
        }
        Ok(kept)
    }

    async fn write(&self, secret: Option<Secret>, kept: &CaSecret) -> Result<(), kube::Error> {
        let data = Some(kept.data().map_err(kube::Error::SerdeError)?);
        match secret {
            // Contains the resource version that was read.
            Some(secret) => {
                let wanted = Secret { data, ..secret };
                self.api.replace(&self.secret, &PostParams::default(), &wanted).await?;
            }
            None => {
                let metadata = ObjectMeta { name: Some(self.secret.clone()), ..ObjectMeta::default() };
                let wanted = Secret { metadata, data, type_: Some("Opaque".to_owned()), ..Secret::default() };
                self.api.create(&PostParams::default(), &wanted).await?;
            }
        }
        Ok(())
    }
}

impl CaSecret {
    /// Returns `None` if a key is missing.
    fn read(secret: &Secret) -> Option<Self> {
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

    fn data(&self) -> Result<BTreeMap<String, ByteString>, serde_json::Error> {
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

    fn bundle(&self) -> CaBundle {
        let next = self.next.as_ref().map(|next| next.certificate.as_str());
        let trusted = [Some(self.authority.certificate.as_str()), next, self.former.as_deref()];
        CaBundle(trusted.into_iter().flatten().collect())
    }

    fn used(&self, live: &LiveCertificate) -> anyhow::Result<(CaBundle, i64)> {
        live.replace(self.server.certificate.as_bytes(), self.server.key.as_bytes())?;
        Ok((self.bundle(), self.times.authority.expires.as_second()))
    }
}
