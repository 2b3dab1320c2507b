//! Tests of image objects: a control plane with the project's definitions, a folder with image lists, and the
//! controller. Also installs the definitions of Cluster API's provider AWS.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::cluster::{ADMIN, AuditLog, CONTROLLER, ControlPlane, Mark, Process, Program, Request, eventually};
use crate::{program, repository};
use anyhow::{Context as _, Result, ensure};
use gardener_extension_worker::api::capa::AwsMachineTemplate;
use gardener_extension_worker::api::image_objects::{ImageLookup, ImageSelection, MachineImage};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::{Client, Resource};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Time limit for any step, sufficient for a busy machine.
pub const SOON: Duration = Duration::from_secs(60);
/// The account that owns the images.
pub const OURS: &str = "111111111111";
/// Name of an image, and of a newer one with the same version.
pub const V1: &str = "capa-ami-ubuntu-24.04-v1.34.2-1790000000";
pub const V2: &str = "capa-ami-ubuntu-24.04-v1.34.2-1795000000";
/// Path of its definition in the Go module.
const TEMPLATES: &str = "config/crd/bases/infrastructure.cluster.x-k8s.io_awsmachinetemplates.yaml";
/// Log message after each check of the sources.
pub const READ: &str = "the sources are checked";

/// Environment of one test.
pub struct Stage {
    /// Client with administrator permissions.
    pub client: Client,
    pub audit: AuditLog,
    pub control_plane: ControlPlane,
    folder: TempDir,
}

impl Stage {
    /// Starts a control plane that serves the kinds of the chart.
    pub async fn new() -> Result<Self> {
        let control_plane = ControlPlane::start().await?;
        let client = control_plane.client(ADMIN).await?;
        let file = repository().join("charts/gardener-extension-worker/image-objects/definitions.yaml");
        let stage = Self { audit: control_plane.audit().await?, client, control_plane, folder: tempfile::tempdir()? };
        stage.define(&std::fs::read_to_string(file)?).await?;
        served::<MachineImage>(&stage.client).await?;
        served::<ImageLookup>(&stage.client).await?;
        served::<ImageSelection>(&stage.client).await?;
        Ok(stage)
    }

    /// Installs definitions.
    pub async fn define(&self, text: &str) -> Result<()> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for document in text.split("\n---\n") {
            let definition = serde_saphyr::from_str(document).context("reading a definition")?;
            api.create(&PostParams::default(), &definition).await?;
        }
        Ok(())
    }

    /// Installs the definition of AWSMachineTemplate.
    pub async fn define_templates(&self) -> Result<()> {
        self.define(&template_definition()?).await?;
        served::<AwsMachineTemplate>(&self.client).await
    }

    /// Atomically replaces the list of AMIs.
    pub fn list(&self, amis: &[Value]) -> Result<()> {
        self.list_text(&json!({"Images": amis}).to_string())
    }

    /// Same as [`Self::list`] with any text.
    pub fn list_text(&self, text: &str) -> Result<()> {
        let draft = tempfile::NamedTempFile::new_in(self.folder.path())?;
        std::fs::write(draft.path(), text)?;
        draft.persist(self.folder.path().join("amis.json"))?;
        Ok(())
    }

    /// Starts a controller that reads the lists every second.
    pub fn controller(&self, name: &str, user: &str, arguments: &[&str]) -> Result<Process> {
        let program = self.program(name, user)?;
        let program = arguments.iter().fold(program, |program, argument| program.arg(argument));
        Process::start(program, self.control_plane.folder())
    }

    /// The program of [`Self::controller`], not yet started.
    pub fn program(&self, name: &str, user: &str) -> Result<Program> {
        let program = program::controller(name, program::binary(), self.control_plane.kubeconfig_file(user)?)
            .env("RUST_LOG", program::DEBUG_LOG);
        Ok(self.arguments().iter().fold(program, |program, argument| program.arg(argument)))
    }

    /// The arguments of a controller that reads the lists every second.
    pub fn arguments(&self) -> [String; 3] {
        let source = format!("--image-source=eu-central-1={}", self.folder.path().display());
        ["--images".to_owned(), source, "--image-interval-seconds=1".to_owned()]
    }

    pub async fn make<K>(&self, object: Value) -> Result<K>
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        Ok(Api::<K>::all(self.client.clone()).create(&PostParams::default(), &serde_json::from_value(object)?).await?)
    }

    /// A lookup for images that image-builder creates.
    pub async fn lookup(&self) -> Result<ImageLookup> {
        let spec = json!({"provider": "aws", "imagePrefix": "capa-ami", "lookupFormat": "-{{.OS}}-?{{.K8sVersion}}-*",
            "os": ["ubuntu-24.04"], "arch": ["amd64"], "versions": ">=1.33, <1.36", "owners": [OURS]});
        self.make(json!({"metadata": {"name": "capi"}, "spec": spec})).await
    }

    /// A selection of these images in a namespace.
    pub async fn selection(&self, namespace: &str, name: &str, images: Value) -> Result<ImageSelection> {
        let spec = json!({"provider": "aws", "region": "eu-central-1", "image": "ubuntu-24.04", "architecture": "amd64",
            "versions": ">=1.33, <1.36", "owners": [OURS], "images": images});
        let object = json!({"metadata": {"name": name}, "spec": spec});
        Ok(self.namespaced(namespace).create(&PostParams::default(), &serde_json::from_value(object)?).await?)
    }

    pub fn namespaced<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Names of all images; the newest are marked with a star.
    pub async fn images(&self) -> Result<Vec<String>> {
        let images = Api::<MachineImage>::all(self.client.clone()).list(&ListParams::default()).await?;
        let text = |image: MachineImage| {
            let labels = image.metadata.labels.unwrap_or_default();
            let is_latest =
                labels.get("images.gardener-extension-worker/latest").is_some_and(|latest| latest == "true");
            format!("{}{}", image.metadata.name.unwrap_or_default(), if is_latest { "*" } else { "" })
        };
        Ok(images.items.into_iter().map(text).collect())
    }

    /// Number of images.
    pub async fn count_images(&self) -> Result<usize> {
        let parameters = ListParams::default().limit(1);
        let first = Api::<MachineImage>::all(self.client.clone()).list_metadata(&parameters).await?;
        let more = first.metadata.remaining_item_count.unwrap_or_default();
        Ok(first.items.len() + usize::try_from(more)?)
    }

    /// Waits until exactly these images exist.
    pub async fn images_become(&self, expected: &[&str]) -> Result<()> {
        eventually(SOON, &format!("the images are {expected:?}"), async || {
            let images = self.images().await?;
            ensure!(images == expected, "{images:?}");
            Ok(())
        })
        .await
    }

    /// Waits until the sources have been checked this many more times.
    pub async fn reads(&self, controller: &Process, times: usize) -> Result<()> {
        let count = || anyhow::Ok(std::fs::read_to_string(controller.log())?.matches(READ).count());
        let before = count()?;
        eventually(SOON, "the sources are checked again", async || {
            controller.ensure_running()?;
            let now = count()?;
            ensure!(now >= before + times, "{now} of {}", before + times);
            Ok(())
        })
        .await
    }

    /// The writes of a user since a mark.
    pub async fn writes(&self, user: &str, since: Mark) -> Result<Vec<Request>> {
        Ok(self.audit.requests(user, since).await?.into_iter().filter(Request::writes).collect())
    }

    /// Fails if the controller still writes anything when it has had time to handle what changed before.
    pub async fn is_quiet(&self, controller: &Process) -> Result<()> {
        // The first check may have begun before the last change, the second one sees it, and the third one begins after
        // its writes.
        self.reads(controller, 3).await?;
        let mark = self.audit.mark().await?;
        self.reads(controller, 3).await?;
        let writes = self.writes(CONTROLLER, mark).await?;
        ensure!(writes.is_empty(), "written although nothing differs: {writes:?}");
        Ok(())
    }
}

/// Waits until a kind is served.
pub async fn served<K>(client: &Client) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    eventually(SOON, &format!("{} is served", K::kind(&())), async || {
        Api::<K>::all(client.clone()).list(&ListParams::default().limit(1)).await?;
        Ok(())
    })
    .await
}

/// An AMI as `aws ec2 describe-images` prints it.
pub fn ami(id: u32, name: &str, day: &str) -> Value {
    json!({"ImageId": format!("ami-{id:08}"), "Name": name, "OwnerId": OURS, "State": "available", "Architecture": "x86_64",
        "CreationDate": format!("{day}T09:00:00.000Z")})
}

/// A machine template of Cluster API with labels.
pub fn template(name: &str, labels: Value) -> DynamicObject {
    let machine = json!({"instanceType": "m5.large", "imageLookupBaseOS": "ubuntu-24.04"});
    let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachineTemplate",
        "metadata": {"name": name, "labels": labels}, "spec": {"template": {"spec": machine}}});
    serde_json::from_value(object).unwrap()
}

/// The definition in the Go module that test/control-plane/cluster-api-provider-aws pins.
fn template_definition() -> Result<String> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", "sigs.k8s.io/cluster-api-provider-aws/v2"])
        .current_dir(repository().join("test/control-plane/cluster-api-provider-aws"))
        .env("GOWORK", "off")
        .output()
        .context("starting go")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let module: Value = serde_json::from_slice(&output.stdout)?;
    let folder = module["Dir"].as_str().context("go names no folder")?;
    let text = std::fs::read_to_string(Path::new(folder).join(TEMPLATES))?;
    Ok(text.trim_start_matches("---\n").to_owned())
}
