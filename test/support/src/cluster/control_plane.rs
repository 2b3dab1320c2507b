//! etcd and kube-apiserver on loopback, with the resources of Gardener and machine-controller-manager.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

use super::audit::AuditLog;
use super::binaries::{self, Binaries};
use super::front_proxy::{self, FrontProxy};
use super::process::{Process, Program};
use super::run_folder::RunFolder;
use super::users::{ADMIN, Credentials};
use super::{crds, eventually};

/// Number of attempts with other ports, because another process can take a free port before use.
const ATTEMPTS: u32 = 3;
/// Startup takes about 5 s on two idle cores, but longer on a busy machine.
const START: Duration = Duration::from_secs(120);

/// Address of the Service through which pods reach kube-apiserver.
pub const SERVICE: &str = "10.0.0.1";

/// Purpose of a kube-apiserver.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Only objects that tests and controllers write. There are no service accounts.
    Objects,
    /// Also runs pods, so it listens on all local addresses at the port of its Service.
    Pods,
}

/// A running control plane. Dropping it kills its processes and removes its folder. [`ControlPlane::stop`] is orderly.
pub struct ControlPlane {
    // In drop order: kube-apiserver before etcd, the folder last.
    apiserver: Process,
    etcd: Process,
    etcd_server: String,
    server: String,
    certificates: Vec<u8>,
    credentials: Credentials,
    front_proxy: FrontProxy,
    namespaces: AtomicU32,
    folder: RunFolder,
}

impl ControlPlane {
    /// Starts a control plane and waits until it is ready. Tests share one, see [`super::shared`].
    pub async fn start() -> Result<Self> {
        Self::start_for(Purpose::Objects).await
    }

    /// Same as [`Self::start`] for a kubelet's pods. Requires a network namespace in which [`SERVICE`] is a local
    /// address.
    pub async fn start_for_pods() -> Result<Self> {
        Self::start_for(Purpose::Pods).await
    }

    async fn start_for(purpose: Purpose) -> Result<Self> {
        let binaries = binaries::control_plane().await?;
        let mut attempt = 1;
        let control_plane = loop {
            match Self::start_processes(&binaries, purpose).await {
                Err(error) if attempt < ATTEMPTS && format!("{error:#}").contains("address already in use") => {
                    attempt += 1
                }
                outcome => break outcome?,
            }
        };
        crds::install(&control_plane.client(ADMIN).await?)
            .await
            .context("installing the custom resource definitions")?;
        Ok(control_plane)
    }

    async fn start_processes(binaries: &Binaries, purpose: Purpose) -> Result<Self> {
        let folder = RunFolder::new()?;
        let credentials = Credentials::generate()?;
        let [client_port, peer_port, free] = free_ports()?;
        let port = if purpose == Purpose::Pods { 443 } else { free };
        let etcd = start_etcd(&binaries.etcd, folder.path(), client_port, peer_port)?;
        let etcd_server = format!("http://127.0.0.1:{client_port}");
        let front_proxy = FrontProxy::generate()?;
        let program = apiserver(&binaries.kube_apiserver, folder.path(), &credentials, &etcd_server, port)?;
        let program = match purpose {
            // No controller creates service accounts here, and tests run no pods.
            Purpose::Objects => {
                program.flag("bind-address", "127.0.0.1").flag("disable-admission-plugins", "ServiceAccount")
            }
            Purpose::Pods => program.flag("bind-address", "0.0.0.0"),
        };
        let apiserver = Process::start(aggregating(program, folder.path(), &front_proxy)?, folder.path())?;
        let mut control_plane = Self {
            apiserver,
            etcd,
            etcd_server,
            server: format!("https://127.0.0.1:{port}"),
            certificates: Vec::new(),
            credentials,
            front_proxy,
            namespaces: AtomicU32::new(0),
            folder,
        };
        control_plane.certificates = control_plane.wait_until_ready().await?;
        Ok(control_plane)
    }

    /// Waits for `/readyz` and for the namespaces that kube-apiserver creates later. Returns its certificates.
    async fn wait_until_ready(&self) -> Result<Vec<u8>> {
        let file = self.authority();
        let ready = eventually(START, "kube-apiserver is ready", async || {
            // A process that has ended can't become ready, so stop waiting.
            if let Err(ended) = self.etcd.ensure_running().and_then(|()| self.apiserver.ensure_running()) {
                return Ok(Err(ended));
            }
            let certificates = std::fs::read(&file).context("kube-apiserver has made no certificate yet")?;
            let kubeconfig = self.credentials.kubeconfig(ADMIN, &self.server, &certificates)?;
            let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
            config.default_retry = false;
            let client = Client::try_from(config)?;
            let request = kube::core::Request::new("/readyz").list(&ListParams::default())?;
            client.request_text(request).await.context("asking /readyz")?;
            let namespaces: Api<Namespace> = Api::all(client);
            namespaces.get("default").await?;
            namespaces.get("kube-system").await?;
            Ok(Ok(certificates))
        });
        ready.await.with_context(|| format!("last lines of its log:\n{}", self.apiserver.last_lines(15)))?
    }

    /// Restarts a killed kube-apiserver with etcd's data. Returns when it is ready.
    pub async fn start_apiserver_again(&self) -> Result<()> {
        self.apiserver.start_again()?;
        self.wait_until_ready().await.map(|_| ())
    }

    /// Copies etcd's data to a folder.
    pub fn back_up(&self, to: &Path) -> Result<()> {
        // Stopping etcd is enough: it survives crashes, so its files are consistent at any time.
        self.etcd.signal("STOP")?;
        copied(&self.folder.path().join("etcd"), to)?;
        self.etcd.signal("CONT")
    }

    /// Kills both processes and restarts them with the data of a folder. Returns when the API server is ready.
    pub async fn restore(&self, from: &Path) -> Result<()> {
        for process in [&self.apiserver, &self.etcd] {
            process.signal("KILL")?;
            process.wait(Duration::from_secs(10)).await?;
        }
        let data = self.folder.path().join("etcd");
        ensure!(!data.exists(), "what etcd held is still there");
        copied(from, &data)?;
        self.etcd.start_again()?;
        self.start_apiserver_again().await
    }

    /// A client that acts as a user. It belongs to the runtime in which it was created.
    pub async fn client(&self, user: &str) -> Result<Client> {
        Client::try_from(self.config(user).await?).context("making a client")
    }

    /// The configuration for [`Self::client`], for callers that create their own clients.
    pub async fn config(&self, user: &str) -> Result<Config> {
        Config::from_custom_kubeconfig(self.kubeconfig(user)?, &KubeConfigOptions::default())
            .await
            .context("reading a kubeconfig")
    }

    /// A kubeconfig file for a user. It exists as long as the control plane.
    pub fn kubeconfig_file(&self, user: &str) -> Result<PathBuf> {
        // Rename it into place, because another test may write or read it concurrently. JSON is YAML.
        let file = self.folder.path().join(format!("{user}.kubeconfig"));
        let draft = tempfile::NamedTempFile::new_in(self.folder.path())?;
        serde_json::to_writer_pretty(&draft, &self.kubeconfig(user)?)?;
        draft.persist(&file).with_context(|| format!("writing {}", file.display()))?;
        Ok(file)
    }

    fn kubeconfig(&self, user: &str) -> Result<Kubeconfig> {
        self.credentials.kubeconfig(user, &self.server, &self.certificates)
    }

    /// Creates a namespace with a unique name that begins with `prefix`.
    ///
    /// It is never deleted, because that needs kube-controller-manager.
    pub async fn namespace(&self, prefix: &str) -> Result<String> {
        let name = format!("{prefix}-{}", self.namespaces.fetch_add(1, Ordering::Relaxed));
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        let api: Api<Namespace> = Api::all(self.client(ADMIN).await?);
        api.create(&PostParams::default(), &namespace).await.with_context(|| format!("creating namespace {name}"))?;
        Ok(name)
    }

    /// Grants a user (usually [`super::RESTRICTED`]) exactly these permissions in all namespaces, instead of earlier
    /// ones.
    pub async fn grant(&self, user: &str, rules: Vec<PolicyRule>) -> Result<()> {
        let client = self.client(ADMIN).await?;
        let name = format!("test:{user}");
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules,
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        });
        let parameters = PatchParams::apply("test").force();
        Api::<ClusterRole>::all(client.clone()).patch(&name, &parameters, &Patch::Apply(role)).await?;
        Api::<ClusterRoleBinding>::all(client).patch(&name, &parameters, &Patch::Apply(binding)).await?;
        Ok(())
    }

    /// The audit log of kube-apiserver.
    pub async fn audit(&self) -> Result<AuditLog> {
        Ok(AuditLog::new(self.folder.path().join("audit.log"), self.client(ADMIN).await?))
    }

    /// kube-apiserver's process, for example to pause it with `signal("STOP")`.
    pub fn apiserver(&self) -> &Process {
        &self.apiserver
    }

    /// kube-apiserver's URL: `https://127.0.0.1:<port>`.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// etcd's URL.
    pub(crate) fn etcd_server(&self) -> &str {
        &self.etcd_server
    }

    /// The authority for aggregated API servers.
    pub(crate) fn front_proxy(&self) -> &FrontProxy {
        &self.front_proxy
    }

    /// The file with kube-apiserver's CA certificates.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("certificates/apiserver.crt")
    }

    /// The folder with the logs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops both processes in order and removes the folder.
    pub async fn stop(self) -> Result<()> {
        // Open watches delay kube-apiserver's shutdown, so kill it after a short time.
        self.apiserver.stop(Duration::from_secs(3)).await?;
        self.etcd.stop(Duration::from_secs(3)).await
    }
}

/// Copies a folder.
fn copied(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().context("a file without a name")?);
        if path.is_dir() { copied(&path, &target)? } else { std::fs::copy(&path, &target).map(drop)? }
    }
    Ok(())
}

fn start_etcd(binary: &Path, folder: &Path, client_port: u16, peer_port: u16) -> Result<Process> {
    let [client, peer] = [client_port, peer_port].map(|port| format!("http://127.0.0.1:{port}"));
    let data = folder.join("etcd");
    let program = Program::new("etcd", binary)
        .flag("name", "test")
        .flag("data-dir", &data)
        .flag("unsafe-no-fsync", "true")
        // A landscape of thousands of shoots exceeds etcd's default quota.
        .flag("quota-backend-bytes", (8_u64 << 30).to_string())
        .flag("log-level", "warn")
        .flag("listen-client-urls", &client)
        .flag("advertise-client-urls", &client)
        .flag("listen-peer-urls", &peer)
        .flag("initial-advertise-peer-urls", &peer)
        .flag("initial-cluster", format!("test={peer}"))
        // etcd preallocates a log of 64 MB. The other files of a run are small and useful for debugging.
        .remove_afterwards(&data);
    Process::start(program, folder)
}

/// Writes a file to the run folder.
pub(super) fn written(folder: &Path, name: &str, content: &str) -> Result<PathBuf> {
    let file = folder.join(name);
    std::fs::write(&file, content).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

/// kube-apiserver flags for aggregated API servers.
fn aggregating(program: Program, folder: &Path, front_proxy: &FrontProxy) -> Result<Program> {
    let client = front_proxy.client()?;
    Ok(program
        .flag("requestheader-client-ca-file", written(folder, "front-proxy-ca.crt", front_proxy.certificate())?)
        .flag("requestheader-allowed-names", front_proxy::CLIENT)
        .flag("requestheader-extra-headers-prefix", "X-Remote-Extra-")
        .flag("requestheader-group-headers", "X-Remote-Group")
        .flag("requestheader-username-headers", "X-Remote-User")
        .flag("proxy-client-cert-file", written(folder, "front-proxy-client.crt", &client.certificate)?)
        .flag("proxy-client-key-file", written(folder, "front-proxy-client.key", &client.key)?))
}

fn apiserver(binary: &Path, folder: &Path, credentials: &Credentials, etcd: &str, port: u16) -> Result<Program> {
    let signing_key = written(folder, "service-account.key", &credentials.signing_key_pem()?)?;
    let verifying_key = written(folder, "service-account.pub", &credentials.verifying_key_pem()?)?;
    let tokens = written(folder, "tokens.csv", &credentials.tokens_csv())?;
    let policy = written(folder, "audit-policy.yaml", AuditLog::POLICY)?;
    Ok(Program::new("kube-apiserver", binary)
        .flag("etcd-servers", etcd)
        .flag("advertise-address", "127.0.0.1")
        .flag("secure-port", port.to_string())
        .flag("cert-dir", folder.join("certificates"))
        .flag("service-cluster-ip-range", "10.0.0.0/24")
        .flag("endpoint-reconciler-type", "none")
        .flag("service-account-issuer", "https://kubernetes.default.svc")
        .flag("service-account-key-file", verifying_key)
        .flag("service-account-signing-key-file", signing_key)
        .flag("token-auth-file", tokens)
        .flag("anonymous-auth", "false")
        .flag("authorization-mode", "RBAC")
        // Tests run concurrently and must not be throttled.
        .flag("enable-priority-and-fairness", "false")
        .flag("audit-policy-file", policy)
        .flag("audit-log-path", folder.join("audit.log"))
        // Write before the same client can send another request, and do not rotate.
        .flag("audit-log-mode", "blocking")
        .flag("audit-log-maxsize", "4000"))
}

/// Free ports. All listeners stay open until the last port is known, so that the ports differ.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let listeners = (0..N)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<std::io::Result<Vec<_>>>()
        .context("finding a free port")?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    ensure!(ports.iter().all(|port| *port != 0), "no free port");
    Ok(ports)
}
