//! Certificates between kube-apiserver and aggregated API servers.

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// Common name of kube-apiserver's client certificate.
pub const CLIENT: &str = "front-proxy-client";

/// A CA for both sides.
pub struct FrontProxy {
    authority: CertificateParams,
    key: KeyPair,
    certificate: String,
}

/// A certificate and its key, as PEM.
pub struct Signed {
    pub certificate: String,
    pub key: String,
}

impl FrontProxy {
    pub fn generate() -> Result<Self> {
        let mut authority = named("front-proxy")?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = authority.self_signed(&key)?.pem();
        Ok(Self { authority, key, certificate })
    }

    /// The CA certificate, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// kube-apiserver's client certificate.
    pub fn client(&self) -> Result<Signed> {
        self.signed(named(CLIENT)?, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// The server certificate of an aggregated API server.
    pub fn server(&self, host: &str) -> Result<Signed> {
        self.signed(CertificateParams::new([host.to_owned()])?, ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn signed(&self, mut parameters: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Result<Signed> {
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        let issuer = Issuer::from_params(&self.authority, &self.key);
        let certificate = parameters.signed_by(&key, &issuer)?.pem();
        Ok(Signed { certificate, key: key.serialize_pem() })
    }
}

fn named(name: &str) -> Result<CertificateParams> {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    Ok(parameters)
}
