//! Certificates from files, such as a mounted Secret of cert-manager, reloaded when they change.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use tokio::time::sleep;
use tracing::{info, warn};

use super::live_certificate::LiveCertificate;

/// Polling interval. The files are small, and a mounted Secret is updated by renaming a symbolic link, which a file
/// watch would miss.
const RELOAD_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub(crate) struct CertificateFiles {
    /// Certificate chain, PEM.
    pub(crate) certificate: PathBuf,
    /// Private key, PEM.
    pub(crate) key: PathBuf,
}

impl CertificateFiles {
    /// Loads the files and serves the certificate.
    pub(crate) fn load(&self, live: &LiveCertificate) -> anyhow::Result<()> {
        self.present(live, &self.read()?)
    }

    /// Reloads the files when they change. Logs and ignores unusable content.
    pub(crate) async fn follow(&self, live: &LiveCertificate) {
        let mut seen = self.read().ok();
        loop {
            sleep(RELOAD_INTERVAL).await;
            let read = match self.read() {
                Ok(read) if seen.as_ref() == Some(&read) => continue,
                Ok(read) => read,
                Err(error) => {
                    warn!(error = format!("{error:#}"), "the former certificate stays");
                    continue;
                }
            };
            // Log once per content, because certificate and key may be replaced one after the other.
            match self.present(live, &read) {
                Ok(()) => info!(file = %self.certificate.display(), "presenting a new certificate"),
                Err(error) => warn!(error = format!("{error:#}"), "the former certificate stays"),
            }
            seen = Some(read);
        }
    }

    fn read(&self) -> anyhow::Result<(Vec<u8>, Vec<u8>)> {
        let read = |file: &PathBuf| std::fs::read(file).with_context(|| format!("{} can't be read", file.display()));
        Ok((read(&self.certificate)?, read(&self.key)?))
    }

    fn present(&self, live: &LiveCertificate, (certificate, key): &(Vec<u8>, Vec<u8>)) -> anyhow::Result<()> {
        live.replace(certificate, key)
            .with_context(|| format!("{} with {}", self.certificate.display(), self.key.display()))
    }
}
