//! Creates certificate authorities and server certificates.

use anyhow::Context;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use super::rotation::{SKEW, Span};

/// A certificate with its private key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Issued {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Hides the private key.
impl std::fmt::Debug for Issued {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Issued")
    }
}

/// Creates a self-signed authority with that name.
pub(super) fn authority(name: &str, span: Span) -> anyhow::Result<Issued> {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = distinguished(name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    valid_during(&mut parameters, span);
    let key = KeyPair::generate().context("no key for the CA")?;
    let certificate = parameters.self_signed(&key).context("the CA can't be created")?;
    Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Creates a server certificate for these DNS names or IP addresses.
pub(super) fn server(names: &[String], authority: &Issued, span: Span) -> anyhow::Result<Issued> {
    let signing = KeyPair::from_pem(&authority.key).context("the key of the CA can't be read")?;
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, signing).context("the CA can't be read")?;
    let mut parameters = CertificateParams::new(names).context("names of the server")?;
    parameters.distinguished_name = distinguished(names.first().map_or("server", String::as_str));
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.use_authority_key_identifier_extension = true;
    valid_during(&mut parameters, span);
    let key = KeyPair::generate().context("no key for the server")?;
    let certificate = parameters.signed_by(&key, &issuer).context("the certificate can't be made")?;
    Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn distinguished(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn valid_during(parameters: &mut CertificateParams, span: Span) {
    let time = |timestamp: Timestamp| {
        let seconds = u64::try_from(timestamp.as_second()).unwrap_or_default();
        date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(seconds)
    };
    parameters.not_before = time(span.issued) - SKEW;
    parameters.not_after = time(span.expires);
}
