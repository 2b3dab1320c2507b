//! One maintenance run and its effect on a shoot (docs/versions.md#one-run).

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::Value;

use wire::api::gardener::{AutoUpdate, VersionedPool, VersionedShoot};
use wire::api::gotext::version::Version;
use wire::api::gotext::version_constraint::VersionConstraint;
use wire::capabilities::Classification;

use super::candidates::{FittingVersions, UnknownPool, numbers};
use super::catalog::{ListedVersion, VersionCatalog};
use super::garden::Garden;
use super::kubernetes_settings::{Crossing, KubernetesSettings};
use super::run::{Cause, Run, Update, UpdatedImage};
use super::target::{Candidate, NoTarget, Subject, decides, target};
use super::texts;
use super::update_rules::{OPERATION, refused_pool, rejection};

/// The operation in that annotation that starts maintenance immediately.
pub const MAINTAIN: &str = "maintain";
const MAINTENANCE_OPERATION: &str = "maintenance.gardener.cloud/operation";
const NEEDS_RETRY: &str = "maintenance.shoot.gardener.cloud/needs-retry-operation";

/// Go's message for a nil pointer dereference.
const NIL_POINTER: &str = "runtime error: invalid memory address or nil pointer dereference";
/// Go's message for a write to a nil map.
const NIL_MAP: &str = "assignment to entry in nil map";

/// A shoot between two runs.
#[derive(Clone, Debug, Default)]
pub struct MaintainedShoot {
    /// Versions, window and pools of the Shoot.
    pub shoot: VersionedShoot,
    /// Settings that an update may remove.
    pub settings: Option<KubernetesSettings>,
}

/// The versions that fit each pool, in list order.
pub type Pools<'c> = Vec<Result<FittingVersions<'c>, UnknownPool>>;

/// The environment of a run.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'r, 'c> {
    /// The profile of the shoot.
    pub catalog: &'c VersionCatalog<'c>,
    /// The versions that fit the pools of the shoot.
    pub pools: &'r Pools<'c>,
    /// The time of the run.
    pub now: Timestamp,
}

/// The versions after the run.
struct Plan {
    control_plane: String,
    pools: Vec<Option<String>>,
    images: Vec<Option<String>>,
    settings: Option<KubernetesSettings>,
    credentials_binding: Option<String>,
}

/// Performs one run. If the version of the control plane is invalid, the run only writes a log line.
pub fn maintain(state: &mut MaintainedShoot, garden: &mut Garden, around: Surroundings<'_, '_>) -> Run {
    let spec = &state.shoot.spec;
    let auto = spec.maintenance.as_ref().and_then(|maintenance| maintenance.auto_update);
    let has_images = spec.provider.workers.iter().all(|pool| pool.machine.image.is_some());
    let (Some(auto), true) = (auto, has_images) else { return Run::crashed(NIL_POINTER) };
    if auto.machine_image_version.is_none() && !spec.provider.workers.is_empty() {
        return Run::crashed(NIL_POINTER);
    }
    let mut run = Run::default();
    let planned = plan(state, auto, garden, around, &mut run);
    let crash = run.updates().find_map(|(_, update)| match &update.to {
        Err(NoTarget::Crash(error)) => Some(error.to_string()),
        _ => None,
    });
    if let Some(text) = crash {
        return Run::crashed(text);
    }
    let Some(plan) = planned else {
        run.is_stable = true;
        return run;
    };
    finish(state, garden, plan, around, &mut run);
    run
}

/// The first time at or after the current one at which a run can have another result, because a relevant version enters
/// another stage.
#[must_use]
pub fn next_change(state: &MaintainedShoot, around: Surroundings<'_, '_>) -> Option<Timestamp> {
    let spec = &state.shoot.spec;
    let auto = spec.maintenance.as_ref()?.auto_update?;
    let control_plane = spec.kubernetes.version.as_deref().unwrap_or_default();
    let pools = &spec.provider.workers;
    let versions = pools.iter().filter_map(|pool| pool.kubernetes.version.as_deref());
    let kubernetes = std::iter::once(control_plane).chain(versions).filter_map(|version| {
        let evaluated = evaluated_kubernetes(version, auto, around).ok()?;
        evaluated.next_change(around.catalog.kubernetes.iter(), around.now)
    });
    let images = pools.iter().zip(around.pools).filter_map(|(pool, fitting)| {
        let kubelet = Version::parse(pool.kubernetes.version.as_deref().unwrap_or(control_plane)).ok()?;
        let (evaluated, list) = evaluated_image(pool, fitting.as_ref().ok()?, &kubelet, auto, around.now)?;
        evaluated.next_change(list, around.now)
    });
    kubernetes.chain(images).min()
}

fn plan(
    state: &MaintainedShoot,
    auto: AutoUpdate,
    garden: &mut Garden,
    around: Surroundings<'_, '_>,
    run: &mut Run,
) -> Option<Plan> {
    let spec = &state.shoot.spec;
    let before = spec.kubernetes.version.clone().unwrap_or_default();
    let images = update_images(&spec.provider.workers, &before, auto, around, run);
    let updated = update_kubernetes(&before, auto, around);
    if let Err(error) | Ok(Some(Update { to: Err(error), .. })) = &updated {
        run.logged.push(format!("Failed to maintain Shoot kubernetes version: {error}"));
    }
    run.control_plane = updated.ok().flatten();
    let after = run.control_plane.as_ref().and_then(|update| update.to.as_ref().ok()).unwrap_or(&before).clone();
    let (Ok(old), Ok(new)) = (Version::parse(&before), Version::parse(&after)) else { return None };
    let crossing = Crossing::new(&old, &new);
    let mut settings = state.settings.clone();
    let [mut operations, behind] = settings.as_mut().map(|settings| settings.cross(crossing)).unwrap_or_default();
    let mut credentials_binding = None;
    if let (Some(name), None, true) = (&spec.secret_binding_name, &spec.credentials_binding_name, crossing.reaches(34))
    {
        match garden.migrate(state.shoot.metadata.namespace.as_deref().unwrap_or_default(), name) {
            Ok(binding) => {
                credentials_binding = Some(binding);
                operations.push(texts::MIGRATED.to_owned());
            }
            Err(error) => {
                run.logged.push(format!("Failed to migrate SecretBinding to CredentialsBinding: {error}"));
                operations.push(format!("Failed to migrate from secretBindingName to credentialsBindingName: {error}"));
            }
        }
    }
    operations.extend(behind);
    let pools = update_pools(&spec.provider.workers, &new, auto, around, run);
    if let Some(settings) = &mut settings {
        let versions: Vec<&str> = pools.iter().map(|version| version.as_deref().unwrap_or(&after)).collect();
        operations.extend(settings.keep_existing(&after, &versions));
    }
    run.operation = operation(&state.shoot);
    if let Some(operation) = &run.operation
        && !is_failed(&state.shoot)
    {
        operations.push(format!("Added \"{operation}\" operation annotation"));
    }
    if garden.is_nginx_ingress_disabled {
        operations.extend(settings.as_mut().and_then(KubernetesSettings::disable_nginx_ingress));
    }
    run.operations = operations;
    Some(Plan { control_plane: after, pools, images, settings, credentials_binding })
}

/// Updates the images of pools in list order. A pool that can't be evaluated ends the loop, and image updates are not
/// reported.
fn update_images(
    pools: &[VersionedPool],
    control_plane: &str,
    auto: AutoUpdate,
    around: Surroundings<'_, '_>,
    run: &mut Run,
) -> Vec<Option<String>> {
    let mut targets = vec![None; pools.len()];
    for ((pool, fitting), target) in pools.iter().zip(around.pools).zip(&mut targets) {
        let kubelet = Version::parse(pool.kubernetes.version.as_deref().unwrap_or(control_plane));
        let known = match (fitting, kubelet) {
            (Ok(fitting), Ok(kubelet)) => Ok((fitting, kubelet)),
            (Err(unknown), _) => Err(unknown.clone()),
            (_, Err(error)) => Err(UnknownPool::Version(error)),
        };
        let (fitting, kubelet) = match known {
            Ok(known) => known,
            Err(unknown) => {
                run.logged.push(format!("Failed to maintain Shoot machine images: {unknown}"));
                run.is_silent = true;
                run.images.retain(|_, update| update.to.is_ok());
                break;
            }
        };
        let evaluated = evaluated_image(pool, fitting, &kubelet, auto, around.now);
        let Some(update) = evaluated.and_then(|(evaluated, list)| evaluated.update(list, around.now)) else { continue };
        match &update.to {
            Ok(to) => *target = Some(to.clone()),
            Err(error) => run.logged.push(texts::image_failed(&update, error, &pool.name)),
        }
        run.images.insert(pool.name.clone(), update);
    }
    targets
}

/// A version that a run evaluates: its entry in the list, and why it is updated.
struct Evaluated<'a, 's> {
    subject: Subject<'s>,
    /// The name of the image as the profile writes it.
    listed_name: Option<&'s str>,
    current: &'s str,
    listed: Option<&'a ListedVersion<'a>>,
    cause: Option<Cause>,
}

impl<'a> Evaluated<'a, '_> {
    fn update(&self, list: impl Iterator<Item = &'a ListedVersion<'a>>, now: Timestamp) -> Option<Update> {
        let cause = self.cause?;
        let candidates: Vec<Candidate<'_>> = list.map(|listed| Candidate { listed, stage: listed.at(now) }).collect();
        let found = target(self.subject, &candidates, self.current, cause != Cause::Automatic);
        let to = found.map(|found| found.map(str::to_owned)).transpose()?;
        let image = match self.subject {
            Subject::Kubernetes => None,
            Subject::Image { name, strategy } => Some(UpdatedImage {
                name: name.to_owned(),
                listed_name: self.listed_name.unwrap_or(name).to_owned(),
                strategy: strategy.to_owned(),
            }),
        };
        Some(Update { image, from: self.current.to_owned(), to, cause })
    }

    /// The first time at or after `now` at which a version enters another stage that affects the result.
    fn next_change(&self, list: impl Iterator<Item = &'a ListedVersion<'a>>, now: Timestamp) -> Option<Timestamp> {
        let of_listed = self.listed.and_then(|listed| listed.next_change(now));
        let (Some(cause), Ok(current)) = (self.cause, Version::parse(self.current)) else { return of_listed };
        let is_forced = cause != Cause::Automatic;
        let list = list.filter(|listed| decides(self.subject, listed, &current, is_forced));
        list.filter_map(|listed| listed.next_change(now)).chain(of_listed).min()
    }
}

/// The image of a pool, with the versions that fit the pool.
fn evaluated_image<'a, 's>(
    pool: &'s VersionedPool,
    fitting: &'s FittingVersions<'a>,
    kubelet: &'s Version,
    auto: AutoUpdate,
    now: Timestamp,
) -> Option<(Evaluated<'a, 's>, impl Iterator<Item = &'a ListedVersion<'a>> + use<'a, 's>)> {
    let current = pool.machine.image.as_ref()?;
    let in_place_from = pool.is_updated_in_place().then_some(current.version.as_str());
    let name = current.name.as_str();
    let strategy = fitting.image.strategy();
    let is_listed = fitting.image.image.name == name;
    let listed = is_listed.then(|| fitting.named_at(&current.version, kubelet, in_place_from)).flatten();
    let listed = listed.map(|version| &version.listed);
    let cause = cause(listed.map(|listed| listed.at(now)), auto.machine_image_version == Some(true));
    let evaluated = Evaluated {
        subject: Subject::Image { name, strategy },
        listed_name: Some(&fitting.image.image.name),
        current: &current.version,
        listed,
        cause,
    };
    Some((evaluated, fitting.at(kubelet, in_place_from).map(|version| &version.listed)))
}

/// The effect of maintenance on the image of a pool without automatic updates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForcedImage {
    /// Its version stays.
    Stays,
    /// Maintenance moves it to this version.
    Moves(String),
    /// Its version must be replaced, but there is no target version.
    Stuck,
    /// Maintenance chooses this version, and the API server rejects it.
    Refused(String),
    /// A version of the list can't be read.
    Unreadable,
}

/// The effect of maintenance at a moment on the image of a pool without automatic updates.
#[must_use]
pub fn forced_image(
    pool: &VersionedPool,
    fitting: &FittingVersions<'_>,
    kubelet: &Version,
    catalog: &VersionCatalog<'_>,
    now: Timestamp,
) -> ForcedImage {
    let auto = AutoUpdate { kubernetes_version: false, machine_image_version: Some(false) };
    let evaluated = evaluated_image(pool, fitting, kubelet, auto, now);
    let Some(update) = evaluated.and_then(|(evaluated, list)| evaluated.update(list, now)) else {
        return ForcedImage::Stays;
    };
    let to = match update.to {
        Ok(to) => to,
        Err(NoTarget::EndOfLife { .. } | NoTarget::Nothing { .. }) => return ForcedImage::Stuck,
        Err(_) => return ForcedImage::Unreadable,
    };
    let mut moved = pool.clone();
    if let Some(image) = &mut moved.machine.image {
        image.version.clone_from(&to);
    }
    let refused = refused_pool(0, [pool, &moved], Some(kubelet.clone()), catalog, now);
    if refused.is_empty() { ForcedImage::Moves(to) } else { ForcedImage::Refused(to) }
}

/// The effect of maintenance at a moment on a Kubernetes version without automatic updates; `None` if it stays.
///
/// # Errors
/// When a version can't be read.
pub fn forced_kubernetes(
    version: &str,
    catalog: &VersionCatalog<'_>,
    now: Timestamp,
) -> Result<Option<Update>, NoTarget> {
    let auto = AutoUpdate { kubernetes_version: false, machine_image_version: Some(false) };
    update_kubernetes(version, auto, Surroundings { catalog, pools: &Vec::new(), now })
}

/// Updates Kubernetes in pools with their own version, but never beyond the control plane.
fn update_pools(
    pools: &[VersionedPool],
    control_plane: &Version,
    auto: AutoUpdate,
    around: Surroundings<'_, '_>,
    run: &mut Run,
) -> Vec<Option<String>> {
    let mut versions = Vec::with_capacity(pools.len());
    for pool in pools {
        let mut version = pool.kubernetes.version.clone();
        let updated = version.as_deref().map_or(Ok(None), |version| update_kubernetes(version, auto, around));
        if let Err(error) | Ok(Some(Update { to: Err(error), .. })) = &updated {
            run.logged.push(format!("Could not maintain Kubernetes version for worker pool ({}): {error}", pool.name));
        }
        if let Ok(Some(mut update)) = updated {
            if let Ok(to) = &mut update.to {
                let requested = Version::parse(to).unwrap_or_else(|_| control_plane.clone());
                *to = requested.min(control_plane.clone()).to_string();
                version = Some(to.clone());
            }
            run.kubernetes.insert(pool.name.clone(), update);
        }
        versions.push(version);
    }
    versions
}

fn update_kubernetes(
    current: &str,
    auto: AutoUpdate,
    around: Surroundings<'_, '_>,
) -> Result<Option<Update>, NoTarget> {
    Ok(evaluated_kubernetes(current, auto, around)?.update(around.catalog.kubernetes.iter(), around.now))
}

/// Evaluates a Kubernetes version. The list contains it if an entry has the same three numbers.
fn evaluated_kubernetes<'c, 's>(
    current: &'s str,
    auto: AutoUpdate,
    around: Surroundings<'_, 'c>,
) -> Result<Evaluated<'c, 's>, NoTarget> {
    let constraint = VersionConstraint::parse(&format!("= {}", numbers(current)));
    let mut found = None;
    for listed in &around.catalog.kubernetes {
        let unreadable = |error| NoTarget::Unreadable { version: listed.text.to_owned(), error };
        let numbers = match &listed.version {
            Ok(known) if known.prerelease.is_empty() => Cow::Borrowed(known),
            _ => Cow::Owned(Version::parse(numbers(listed.text)).map_err(unreadable)?),
        };
        let constraint = constraint.as_ref().map_err(|_| {
            NoTarget::CurrentUnreadable(
                Version::parse(current).err().unwrap_or(wire::api::gotext::version::VersionError::Invalid),
            )
        })?;
        if constraint.allows(&numbers) {
            found = Some(listed);
            break;
        }
    }
    let cause = cause(found.map(|listed| listed.at(around.now)), auto.kubernetes_version);
    Ok(Evaluated { subject: Subject::Kubernetes, listed_name: None, current, listed: found, cause })
}

fn cause(listed: Option<Classification>, is_automatic: bool) -> Option<Cause> {
    match listed {
        None => Some(Cause::Missing),
        Some(Classification::Expired) => Some(Cause::Expired),
        Some(_) => is_automatic.then_some(Cause::Automatic),
    }
}

fn is_failed(shoot: &VersionedShoot) -> bool {
    shoot.status.last_operation.as_ref().is_some_and(|operation| operation.state == "Failed")
}

/// The operations that gardenlet is to perform; `None` if it is only `reconcile`.
fn operation(shoot: &VersionedShoot) -> Option<String> {
    let annotation = |name: &str| shoot.metadata.annotations.as_ref()?.get(name).map(String::as_str);
    if is_failed(shoot) {
        let is_needed = ["1", "t", "T", "TRUE", "true", "True"].contains(&annotation(NEEDS_RETRY).unwrap_or_default());
        return is_needed.then(|| "retry".to_owned());
    }
    shoot.status.last_operation.as_ref()?;
    let requested = annotation(MAINTENANCE_OPERATION).unwrap_or_default();
    let mut operations: Vec<&str> = operations(requested).collect();
    if !operations.contains(&"reconcile") {
        operations.push("reconcile");
    }
    (operations != ["reconcile"]).then(|| operations.join(";"))
}

/// The operations in an annotation.
pub fn operations(annotation: &str) -> impl Iterator<Item = &str> {
    annotation.split(';').map(str::trim).filter(|operation| !operation.is_empty())
}

/// Writes status and Shoot, unless the API server rejects the Shoot or the controller crashes in between.
fn finish(state: &mut MaintainedShoot, garden: &Garden, plan: Plan, around: Surroundings<'_, '_>, run: &mut Run) {
    let before = state.shoot.status.last_maintenance.as_ref().map(|last| last.state.clone());
    let shoot = &mut state.shoot;
    let has_work = !run.operations.is_empty() || run.control_plane.is_some() || !run.kubernetes.is_empty();
    let is_reported = has_work || !(run.images.is_empty() || run.is_silent);
    let changed = changed(shoot, &plan);
    let rejected =
        if is_reported { rejection(garden.validation, [shoot, &changed], around.catalog, around.now) } else { None };
    let last = is_reported.then(|| texts::last_maintenance(run));
    let is_maintain_requested = remove_maintain_annotation(shoot);
    if let Some(rejected) = rejected {
        // Everything is lost except the log.
        let logged = std::mem::take(&mut run.logged);
        let last_maintenance = Some(texts::failed_maintenance(&rejected));
        *run = Run { logged, rejected: Some(rejected), last_maintenance, ..Run::default() };
    } else {
        let is_map_there = shoot.metadata.annotations.is_some() || requests_gardenlet(shoot);
        if !is_map_there {
            *run = Run { crash: Some(NIL_MAP.to_owned()), last_maintenance: last, ..Run::default() };
            run.last_maintenance
                .iter_mut()
                .filter(|last| last.state == "Succeeded")
                .for_each(|last| last.state = "Processing");
            return;
        }
        run.last_maintenance = last.or_else(|| (before.as_deref() == Some("Failed")).then(texts::recovered));
        run.changes_settings = plan.settings != state.settings || plan.credentials_binding.is_some();
        state.settings = plan.settings;
        state.shoot = changed;
        let took_annotation = remove_operation_annotations(&mut state.shoot, is_maintain_requested);
        let moved = run.updates().any(|(_, update)| update.is_move());
        run.is_stable = !(moved || run.changes_settings || took_annotation);
    }
    if let Some(last) = &run.last_maintenance {
        state.shoot.status.last_maintenance.get_or_insert_default().state = last.state.to_owned();
    }
    let after = state.shoot.status.last_maintenance.as_ref().map(|last| last.state.clone());
    run.is_stable = (run.is_stable || run.rejected.is_some()) && before == after && !is_maintain_requested;
}

/// The Shoot with the planned versions.
fn changed(shoot: &VersionedShoot, plan: &Plan) -> VersionedShoot {
    let mut changed = shoot.clone();
    changed.spec.kubernetes.version = Some(plan.control_plane.clone());
    if let Some(binding) = &plan.credentials_binding {
        changed.spec.secret_binding_name = None;
        changed.spec.credentials_binding_name = Some(binding.clone());
    }
    for ((pool, version), image) in changed.spec.provider.workers.iter_mut().zip(&plan.pools).zip(&plan.images) {
        pool.kubernetes.version.clone_from(version);
        if let (Some(image), Some(version)) = (&mut pool.machine.image, image) {
            image.version.clone_from(version);
        }
    }
    changed
}

/// Whether gardenlet is triggered, which creates the annotations if there are none.
fn requests_gardenlet(shoot: &VersionedShoot) -> bool {
    shoot.status.last_operation.is_some() && (!is_failed(shoot) || operation(shoot).is_some())
}

/// Removes the annotation with which the owner requested the run. Returns whether it existed.
fn remove_maintain_annotation(shoot: &mut VersionedShoot) -> bool {
    let Some(annotations) = &mut shoot.metadata.annotations else { return false };
    let is_requested =
        annotations.get(OPERATION).is_some_and(|text| operations(text).any(|operation| operation == MAINTAIN));
    if is_requested {
        annotations.remove(OPERATION);
    }
    is_requested
}

/// Removes the annotations of the operations that the run started. Returns whether any existed.
fn remove_operation_annotations(shoot: &mut VersionedShoot, is_maintain_requested: bool) -> bool {
    let taken = match (&shoot.status.last_operation, is_failed(shoot)) {
        (None, _) => None,
        (_, true) => operation(shoot).map(|_| NEEDS_RETRY),
        (_, false) => Some(MAINTENANCE_OPERATION),
    };
    let Some(annotations) = &mut shoot.metadata.annotations else { return false };
    if is_maintain_requested {
        annotations.remove(OPERATION);
    }
    taken.is_some_and(|taken| annotations.remove(taken).is_some())
}

impl MaintainedShoot {
    /// Decodes a Shoot. With `defaults`, it sets the API server's defaults.
    ///
    /// # Errors
    /// If it is not a valid Shoot.
    pub fn read(shoot: &Value, defaults: bool) -> Result<Self, wire::api::gotext::json::DecodeError> {
        let settings = KubernetesSettings::of(&shoot["spec"]);
        let mut shoot: VersionedShoot = wire::api::gotext::json::decode_value(shoot)?;
        if defaults {
            shoot.apply_defaults();
        }
        Ok(Self { shoot, settings })
    }

    /// Writes the versions into the original Shoot, and removes the settings that updates removed since `before`.
    pub fn write(&self, before: Option<&KubernetesSettings>, shoot: &mut Value) {
        let spec = &self.shoot.spec;
        let mut set = |pointer: &str, value: &str| {
            shoot.pointer_mut(pointer).into_iter().for_each(|location| *location = value.into());
        };
        set("/spec/kubernetes/version", spec.kubernetes.version.as_deref().unwrap_or_default());
        for (index, pool) in spec.provider.workers.iter().enumerate() {
            if let Some(version) = &pool.kubernetes.version {
                set(&format!("/spec/provider/workers/{index}/kubernetes/version"), version);
            }
            if let Some(image) = &pool.machine.image {
                set(&format!("/spec/provider/workers/{index}/machine/image/version"), &image.version);
            }
        }
        if let (Some(binding), Some(members)) = (&spec.credentials_binding_name, shoot["spec"].as_object_mut()) {
            if spec.secret_binding_name.is_none() {
                members.remove("secretBindingName");
            }
            members.insert("credentialsBindingName".to_owned(), binding.clone().into());
        }
        if let (Some(settings), Some(before)) = (&self.settings, before) {
            settings.write(before, &mut shoot["spec"]);
        }
    }
}
