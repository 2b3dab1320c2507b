//! etcd and kube-apiserver on loopback, with Gardener's and machine-controller-manager's resources.

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

/// How often to start anew with other ports: a port that was free a moment ago may have been taken by someone else.
const ATTEMPTS: u32 = 3;
/// etcd and kube-apiserver take about 5 s together on two idle cores; a busy machine gets more time.
const START: Duration = Duration::from_secs(120);

/// The address of the Service by which pods reach kube-apiserver.
pub const SERVICE: &str = "10.0.0.1";

/// What kube-apiserver is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Objects that tests and controllers write; nobody makes service accounts.
    Objects,
    /// Pods as well: it listens on every address of this machine, at the port of its Service.
    Pods,
}

/// A running control plane. Dropping it kills its processes and removes its folder; [`ControlPlane::stop`] is the orderly way.
pub struct ControlPlane {
    // In the order in which they are dropped: kube-apiserver goes before etcd, the folder last.
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
    /// Starts a control plane of its own and waits until it serves everything. Tests share one, see [`super::shared`].
    pub async fn start() -> Result<Self> {
        Self::start_for(Purpose::Objects).await
    }

    /// The same for pods of a kubelet. It needs a network of its own, in which [`SERVICE`] is an address of this machine.
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
            // Nobody makes service accounts here; pods are not what is tested.
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

    /// Waits for `/readyz`, and for the namespaces that kube-apiserver makes only after that. Returns its certificates.
    async fn wait_until_ready(&self) -> Result<Vec<u8>> {
        let file = self.authority();
        let ready = eventually(START, "kube-apiserver is ready", async || {
            // Waiting for what has ended is in vain: this is an error of its own, not something still missing.
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

    /// Starts kube-apiserver again after it was killed, with what etcd holds. Returns when it is ready.
    pub async fn start_apiserver_again(&self) -> Result<()> {
        self.apiserver.start_again()?;
        self.wait_until_ready().await.map(|_| ())
    }

    /// Copies what etcd holds into a folder.
    pub fn back_up(&self, to: &Path) -> Result<()> {
        // What it has written is whole at every moment, or no crash could be survived.
        self.etcd.signal("STOP")?;
        copied(&self.folder.path().join("etcd"), to)?;
        self.etcd.signal("CONT")
    }

    /// Kills both processes and starts them with what a folder holds. Returns when the API server is ready.
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

    /// A client that acts as a user. It belongs to the runtime it is made in.
    pub async fn client(&self, user: &str) -> Result<Client> {
        Client::try_from(self.config(user).await?).context("making a client")
    }

    /// The same as a configuration, for those who make their clients themselves.
    pub async fn config(&self, user: &str) -> Result<Config> {
        Config::from_custom_kubeconfig(self.kubeconfig(user)?, &KubeConfigOptions::default())
            .await
            .context("reading a kubeconfig")
    }

    /// A kubeconfig file for a user. It lives as long as the control plane does.
    pub fn kubeconfig_file(&self, user: &str) -> Result<PathBuf> {
        // Renamed into place, as another test may be writing or reading it; JSON is YAML.
        let file = self.folder.path().join(format!("{user}.kubeconfig"));
        let draft = tempfile::NamedTempFile::new_in(self.folder.path())?;
        serde_json::to_writer_pretty(&draft, &self.kubeconfig(user)?)?;
        draft.persist(&file).with_context(|| format!("writing {}", file.display()))?;
        Ok(file)
    }

    fn kubeconfig(&self, user: &str) -> Result<Kubeconfig> {
        self.credentials.kubeconfig(user, &self.server, &self.certificates)
    }

    /// Makes a namespace that no test had before, its name beginning with `prefix`.
    ///
    /// Nobody takes it down: without kube-controller-manager a namespace never finishes its deletion.
    pub async fn namespace(&self, prefix: &str) -> Result<String> {
        let name = format!("{prefix}-{}", self.namespaces.fetch_add(1, Ordering::Relaxed));
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        let api: Api<Namespace> = Api::all(self.client(ADMIN).await?);
        api.create(&PostParams::default(), &namespace).await.with_context(|| format!("creating namespace {name}"))?;
        Ok(name)
    }

    /// Allows a user (usually [`super::RESTRICTED`]) exactly these things, everywhere. What was granted before is taken back.
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

    /// What the apiserver was asked, by whom.
    pub async fn audit(&self) -> Result<AuditLog> {
        Ok(AuditLog::new(self.folder.path().join("audit.log"), self.client(ADMIN).await?))
    }

    /// kube-apiserver's process, e.g. to pause it with `signal("STOP")`.
    pub fn apiserver(&self) -> &Process {
        &self.apiserver
    }

    /// Where the apiserver listens: `https://127.0.0.1:<port>`.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Where etcd listens.
    pub(crate) fn etcd_server(&self) -> &str {
        &self.etcd_server
    }

    /// The authority for API servers behind this one.
    pub(crate) fn front_proxy(&self) -> &FrontProxy {
        &self.front_proxy
    }

    /// The file with the certificates of its authority.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("certificates/apiserver.crt")
    }

    /// The folder with the logs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops both processes in order and removes the folder.
    pub async fn stop(self) -> Result<()> {
        // Watches that are still open make kube-apiserver wait; nobody needs their end.
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
        // A landscape of thousands of shoots is larger than what etcd takes by default.
        .flag("quota-backend-bytes", (8_u64 << 30).to_string())
        .flag("log-level", "warn")
        .flag("listen-client-urls", &client)
        .flag("advertise-client-urls", &client)
        .flag("listen-peer-urls", &peer)
        .flag("initial-advertise-peer-urls", &peer)
        .flag("initial-cluster", format!("test={peer}"))
        // etcd preallocates 64 MB of log; the rest of a run is small and worth a look afterwards.
        .remove_afterwards(&data);
    Process::start(program, folder)
}

/// Writes a file of the run.
pub(super) fn written(folder: &Path, name: &str, content: &str) -> Result<PathBuf> {
    let file = folder.join(name);
    std::fs::write(&file, content).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

/// Flags by which kube-apiserver has other API servers behind it.
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
        // Many tests at once must not be slowed down by fairness among them.
        .flag("enable-priority-and-fairness", "false")
        .flag("audit-policy-file", policy)
        .flag("audit-log-path", folder.join("audit.log"))
        // Written before the next request of the same client can arrive; not cut into pieces.
        .flag("audit-log-mode", "blocking")
        .flag("audit-log-maxsize", "4000"))
}

/// Ports that are free now. Held together until all are known, so that they differ.
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
