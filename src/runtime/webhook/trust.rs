//! Determines whether an API server accepts the served certificate chain, from the registered CA bundle and the API
//! server's clock.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore};
use x509_parser::parse_x509_certificate;

use super::certificate_authority::CaBundle;

/// Why the API server rejects the chain, if it does. Returns `None` for an empty bundle, with which the API server trusts
/// the CAs of its own machine, and if this library can't verify a certificate that others may accept.
pub(super) fn refusal(chain: &[CertificateDer<'_>], bundle: &CaBundle, name: &str, at: Timestamp) -> Option<String> {
    let (leaf, intermediates) = chain.split_first()?;
    if bundle.0.trim().is_empty() {
        return None;
    }
    if let Some(why) = invalid_at(leaf, at) {
        return Some(format!("the certificate {why}"));
    }
    let authorities = authorities(bundle);
    // Go accepts a certificate that is itself in the bundle.
    if authorities.contains(leaf) {
        return None;
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities.into_iter().filter(|authority| invalid_at(authority, at).is_none()));
    if roots.is_empty() {
        return Some("the CA bundle has no CA that is valid now".to_owned());
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
    let name = ServerName::try_from(name).ok()?;
    let seconds = u64::try_from(at.as_second()).unwrap_or_default();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    match verifier.verify_server_cert(leaf, intermediates, &name, &[], now) {
        Err(Error::InvalidCertificate(error)) => reason(&error),
        Ok(_) | Err(_) => None,
    }
}

fn reason(error: &CertificateError) -> Option<String> {
    let why = match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "no CA of the CA bundle that is valid now has signed the certificate"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "a CA of the chain has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "a CA of the chain is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is for other names"
        }
        _ => return None,
    };
    Some(why.to_owned())
}

/// The certificates of a bundle, without unreadable ones, which Go skips as well.
fn authorities(bundle: &CaBundle) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(bundle.0.as_bytes()).filter_map(Result::ok).collect()
}

/// Why the certificate is not valid at this time. rustls does not check the validity period of a trusted CA, but Go does.
fn invalid_at(certificate: &CertificateDer<'_>, at: Timestamp) -> Option<String> {
    let (_, parsed) = parse_x509_certificate(certificate).ok()?;
    let time = |seconds: i64| Timestamp::from_second(seconds).ok();
    let from = parsed.validity().not_before.timestamp();
    let until = parsed.validity().not_after.timestamp();
    if at.as_second() < from {
        return Some(format!("is not valid before {}", time(from).unwrap_or(Timestamp::MAX)));
    }
    (at.as_second() > until).then(|| format!("has expired at {}", time(until).unwrap_or(Timestamp::MIN)))
}
