//! The files that configure access to a cluster. Clients read them only once, so the process exits and restarts when
//! one changes. Otherwise it would no longer trust the API server after a CA rotation.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::Kubeconfig;
use sha2::{Digest, Sha256};
use tokio::time::sleep;

/// CA bundle of the pod's service account.
const CA_OF_SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
/// How often the files are checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// The files with digests of their content when the client was created. Token files are not included, because clients
/// reread them.
pub struct ConfigFiles(Vec<(PathBuf, Vec<u8>)>);

impl ConfigFiles {
    /// Files of the given kubeconfig; without one, those of `KUBECONFIG` or of the pod's service account.
    pub fn of(kubeconfig: Option<&Path>) -> Self {
        let named = std::env::var_os("KUBECONFIG").filter(|paths| kubeconfig.is_none() && !paths.is_empty());
        let named: Vec<PathBuf> = named.iter().flat_map(std::env::split_paths).collect();
        Self::of_kubeconfigs(kubeconfig.into_iter().chain(named.iter().map(PathBuf::as_path)))
    }

    fn of_kubeconfigs<'p>(kubeconfigs: impl Iterator<Item = &'p Path>) -> Self {
        let mut paths: Vec<PathBuf> = kubeconfigs.flat_map(mentioned).collect();
        if paths.is_empty() {
            paths.push(PathBuf::from(CA_OF_SERVICE_ACCOUNT));
        }
        Self::as_they_are(paths)
    }

    /// Adds the files of another cluster.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self([self.0, other.0].concat())
    }

    fn as_they_are(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(
            paths
                .into_iter()
                .filter_map(|path| Some((digest(&path)?, path)))
                .map(|(held, path)| (path, held))
                .collect(),
        )
    }

    /// Returns when the content of a file changes. A missing file is ignored, because it is probably being replaced.
    pub async fn until_changed(&self) -> anyhow::Error {
        loop {
            sleep(CHECK_INTERVAL).await;
            let is_changed = |(path, held): &&(PathBuf, Vec<u8>)| digest(path).is_some_and(|holds| holds != *held);
            if let Some((path, _)) = self.0.iter().find(is_changed) {
                return anyhow::anyhow!(
                    "{} has changed: a new process is needed that trusts what it says",
                    path.display()
                );
            }
        }
    }
}

/// The kubeconfig and the files that it refers to. An unreadable kubeconfig is skipped, because creating the client
/// reports it.
fn mentioned(kubeconfig: &Path) -> Vec<PathBuf> {
    let Kubeconfig { clusters, auth_infos, .. } = Kubeconfig::read_from(kubeconfig).unwrap_or_default();
    let authorities = clusters.into_iter().filter_map(|named| named.cluster?.certificate_authority);
    let users = auth_infos.into_iter().filter_map(|named| named.auth_info);
    let of_users = users.flat_map(|user| [user.client_certificate, user.client_key]).flatten();
    let folder = kubeconfig.parent().unwrap_or(Path::new("."));
    authorities.chain(of_users).map(|file| folder.join(file)).chain([kubeconfig.to_owned()]).collect()
}

fn digest(path: &Path) -> Option<Vec<u8>> {
    std::fs::read(path).ok().map(|content| Sha256::digest(content).to_vec())
}

#[cfg(test)]
mod tests {
    use std::fs::{remove_file, write};

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reports_changed_config_file() {
        let folder = tempfile::tempdir().unwrap();
        let [kubeconfig, authority] = ["kubeconfig", "ca.crt"].map(|name| folder.path().join(name));
        let text = "clusters: [{name: c, cluster: {server: \"https://192.0.2.1\", certificate-authority: ca.crt}}]\n\
                    users: [{name: u, user: {client-certificate: user.crt, client-key: user.key}}]\n";
        write(&kubeconfig, text).unwrap();
        write(&authority, "old").unwrap();
        let [certificate, key] = ["user.crt", "user.key"].map(|name| folder.path().join(name));
        [&certificate, &key].into_iter().for_each(|file| write(file, "old").unwrap());
        let files = ConfigFiles::of(Some(&kubeconfig));
        let ended = async || {
            let changed = timeout(Duration::from_secs(60), files.until_changed()).await;
            changed.ok().map(|error| error.to_string())
        };
        assert_eq!(ended().await, None);
        remove_file(&authority).unwrap();
        assert_eq!(ended().await, None, "it is being replaced");
        write(&authority, "old").unwrap();
        assert_eq!(ended().await, None, "it holds what it held before");
        write(&authority, "new").unwrap();
        let reason = ended().await.unwrap();
        assert!(reason.starts_with(&format!("{} has changed", authority.display())), "{reason}");
        write(&authority, "old").unwrap();
        for file in [certificate, key] {
            write(&file, "new").unwrap();
            assert!(ended().await.unwrap().starts_with(&file.display().to_string()));
            write(&file, "old").unwrap();
        }
        let of_both = ConfigFiles(Vec::new()).and(ConfigFiles::of(Some(&kubeconfig)));
        write(&kubeconfig, format!("{text}# another one\n")).unwrap();
        let reason = ended().await.unwrap();
        assert!(reason.starts_with(&format!("{} has changed", kubeconfig.display())), "{reason}");
        assert_eq!(of_both.until_changed().await.to_string(), reason);
    }
}
