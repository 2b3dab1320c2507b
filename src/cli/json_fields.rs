//! The members of the JSON that commands print. A test compares them with what is really printed.

/// A member of a document.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Where it is; `[]` is every entry of a list, `*` every key of a map.
    pub path: &'static str,
    /// Its type.
    pub kind: &'static str,
    /// Whether it can be absent.
    pub optional: bool,
    /// What it says.
    pub meaning: &'static str,
}

const fn always(path: &'static str, kind: &'static str, meaning: &'static str) -> Field {
    Field { path, kind, optional: false, meaning }
}

const fn sometimes(path: &'static str, kind: &'static str, meaning: &'static str) -> Field {
    Field { path, kind, optional: true, meaning }
}

/// Members of `explain -o json`.
pub const EXPLAIN: &[Field] = &[
    always("schema", "string", "`explain/v1`"),
    always("workers[].input", "string", "the file, and `#namespace/name` of the Worker where the file has several"),
    always("workers[].worker", "string", "`namespace/name`"),
    always("workers[].provider", "string", "`spec.type`"),
    sometimes(
        "workers[].imagesOnly",
        "boolean",
        "`true` for clouds whose Workers are not served: only images are explained",
    ),
    always("workers[].pools[].pool", "string", "name of the pool"),
    sometimes("workers[].pools[].error.code", "string", "Gardener's error code"),
    sometimes("workers[].pools[].error.message", "string", "why the pool is invalid"),
    always("workers[].pools[].inputs[].name", "string", "what the value is"),
    always("workers[].pools[].inputs[].value", "string", "the value that counts"),
    always(
        "workers[].pools[].inputs[].origin",
        "string",
        "`worker`, `shoot`, `cloudProfile`, `infrastructureStatus`, `providerStatus` or `default`",
    ),
    sometimes(
        "workers[].pools[].inputs[].path",
        "string",
        "path in that object, within the pool for fields of the pool; absent for defaults",
    ),
    always("workers[].pools[].image.name", "string", "wanted image"),
    always("workers[].pools[].image.version", "string", "wanted version"),
    always(
        "workers[].pools[].image.machine.*[]",
        "string",
        "values of each capability that the machine type has, defaults included; empty for an unknown machine type",
    ),
    always("workers[].pools[].image.candidates[].origin", "string", "`cloudProfile` or `providerStatus`"),
    sometimes(
        "workers[].pools[].image.candidates[].reference.member",
        "string",
        "how the image is named, such as `urn`",
    ),
    sometimes("workers[].pools[].image.candidates[].reference.value", "string", "its name at the cloud"),
    always(
        "workers[].pools[].image.candidates[].capabilities.*[]",
        "string",
        "values that the image lists; a capability that is not named means every value",
    ),
    always(
        "workers[].pools[].image.candidates[].verdict.is",
        "string",
        "`chosen`, `outranked`, `tied`, `rejected`, `notReached` or `notCompared`",
    ),
    sometimes(
        "workers[].pools[].image.candidates[].verdict.step",
        "number",
        "outranked: position of the step in `ranking` that removed it",
    ),
    sometimes(
        "workers[].pools[].image.candidates[].verdict.mismatches[].capability",
        "string",
        "rejected: a capability of which machine and image share no value",
    ),
    sometimes(
        "workers[].pools[].image.candidates[].verdict.mismatches[].wanted[]",
        "string",
        "values of the machine type",
    ),
    sometimes("workers[].pools[].image.candidates[].verdict.mismatches[].offered[]", "string", "values of the image"),
    always("workers[].pools[].image.ranking[].capability", "string", "capability of a value that decided"),
    always("workers[].pools[].image.ranking[].value", "string", "the value"),
    always("workers[].pools[].image.ranking[].kept[]", "number", "positions of the candidates that list it"),
    sometimes("workers[].pools[].image.chosen.candidate", "number", "position of the chosen candidate"),
    sometimes("workers[].pools[].image.chosen.origin", "string", "`cloudProfile` or `providerStatus`"),
    sometimes("workers[].pools[].image.chosen.reference.member", "string", "how the image is named"),
    sometimes("workers[].pools[].image.chosen.reference.value", "string", "its name at the cloud"),
    sometimes("workers[].pools[].image.problem", "string", "why there is no image"),
    sometimes(
        "workers[].pools[].image.nearestMiss",
        "number",
        "no image: position of the candidate that fails on the fewest capabilities",
    ),
    sometimes(
        "workers[].pools[].image.fitting.images[].name",
        "string",
        "no image: an image that fits the machine type, versions of the wanted image first",
    ),
    sometimes("workers[].pools[].image.fitting.images[].version", "string", "its version"),
    sometimes(
        "workers[].pools[].image.fitting.machineTypes[]",
        "string",
        "no image: machine types that the wanted image fits",
    ),
    sometimes(
        "workers[].pools[].placements[].zone",
        "string",
        "the zone; absent where machines are not placed in zones",
    ),
    always("workers[].pools[].placements[].deployment", "string", "name of the machine deployment"),
    sometimes(
        "workers[].pools[].placements[].class",
        "string",
        "name of the machine class; absent where the pool can't be hashed",
    ),
    always("workers[].pools[].placements[].minimum", "number", "fewest machines"),
    always("workers[].pools[].placements[].maximum", "number", "most machines"),
    sometimes(
        "workers[].pools[].placements[].maxSurge",
        "number or string",
        "machines above the wanted number during a roll",
    ),
    sometimes(
        "workers[].pools[].placements[].maxUnavailable",
        "number or string",
        "machines that may be missing during a roll",
    ),
    sometimes("workers[].pools[].placements[].liveReplicas", "number", "replicas of the live machine deployment"),
    sometimes(
        "workers[].pools[].placements[].liveClass",
        "string",
        "class of the live machine deployment where it is another one: the machines roll",
    ),
    sometimes(
        "workers[].pools[].placements[].hazards[].kind",
        "string",
        "`noRoomToRoll`, `maximumBelowLive`, `minimumAboveMaximum` or `zoneStaysEmpty`",
    ),
    sometimes("workers[].pools[].placements[].hazards[].maximum", "number", "maximumBelowLive: the maximum"),
    sometimes("workers[].pools[].placements[].hazards[].live", "number", "maximumBelowLive: the replicas"),
    always("workers[].pools[].hashes[].hash", "string", "the hash in the class names"),
    always("workers[].pools[].hashes[].deployments[]", "string", "machine deployments whose classes carry it"),
    always("workers[].pools[].hashes[].zones[]", "string", "zones of these"),
    always("workers[].pools[].hashes[].effect", "string", "what another hash does: `roll` or `updateInPlace`"),
    always(
        "workers[].pools[].hashes[].inputs[].input",
        "string",
        "path of a hashed text, in the order in which they are hashed",
    ),
    sometimes(
        "workers[].pools[].hashes[].inputs[].value",
        "string",
        "the text; absent where a person may have put a secret into it",
    ),
    always("workers[].pools[].hashes[].inputs[].sha256", "string", "the first 12 characters of its SHA-256"),
    always("workers[].pools[].hashes[].inputs[].bytes", "number", "its length"),
    sometimes(
        "workers[].pools[].hashes[].inputs[].standsFor[].input",
        "string",
        "what the text is itself a hash of; members as above",
    ),
    sometimes("workers[].pools[].hashes[].inputs[].standsFor[].value", "string", ""),
    sometimes("workers[].pools[].hashes[].inputs[].standsFor[].sha256", "string", ""),
    sometimes("workers[].pools[].hashes[].inputs[].standsFor[].bytes", "number", ""),
    always(
        "workers[].pools[].autoscalerAnnotations.*",
        "string or null",
        "annotations of the machine deployment; `null` means that the annotation is removed",
    ),
    sometimes("workers[].pools[].hazards[].kind", "string", "`noZones` or `zoneTwice`"),
    sometimes("workers[].pools[].hazards[].zone", "string", "zoneTwice: the zone"),
    sometimes("errors[].input", "string", "a Worker that can't be explained at all: where it comes from"),
    sometimes("errors[].code", "string", "Gardener's error code"),
    sometimes("errors[].message", "string", "why"),
];

/// Members of `why -o json`.
pub const WHY: &[Field] = &[
    always("schema", "string", "`why/v1`"),
    always("machineDeployments[].name", "string", "`namespace/name`"),
    always("machineDeployments[].recorded", "boolean", "whether there is a record"),
    sometimes(
        "machineDeployments[].class.class",
        "string",
        "the class that was recorded last; `class` is `null` without a record",
    ),
    sometimes("machineDeployments[].class.since", "time", "when it was recorded"),
    sometimes("machineDeployments[].class.found", "boolean", "whether another controller had made it before"),
    always("machineDeployments[].changes[].from.class", "string", "the class before, the last change first"),
    always("machineDeployments[].changes[].from.since", "time", "when it was recorded"),
    always("machineDeployments[].changes[].from.found", "boolean", "whether another controller had made it before"),
    always("machineDeployments[].changes[].to.class", "string", "the class after"),
    always("machineDeployments[].changes[].to.since", "time", "when it was recorded"),
    always("machineDeployments[].changes[].to.found", "boolean", "whether another controller had made it before"),
    always(
        "machineDeployments[].changes[].difference",
        "string",
        "`inputs`, `order` (the same inputs in another order) or `unknown` (not recorded)",
    ),
    sometimes("machineDeployments[].changes[].inputs[].input", "string", "an input of the hash that differs"),
    sometimes("machineDeployments[].changes[].inputs[].how", "string", "`changed`, `added` or `removed`"),
    sometimes(
        "machineDeployments[].changes[].inputs[].because[]",
        "string",
        "what stands behind an opaque input and differs as well",
    ),
];

/// Members of `cloudprofile matrix -o json`.
pub const MATRIX: &[Field] = &[
    always("schema", "string", "`cloudprofile-matrix/v1`"),
    always("profile", "string", "name of the CloudProfile"),
    always("provider", "string", "`spec.type`"),
    always("capabilities[].name", "string", "a capability, the most important one first"),
    always("capabilities[].values[]", "string", "its values, the preferred one first"),
    always(
        "declaresCapabilities",
        "boolean",
        "whether the profile itself declares them; else they are what the old format stands for",
    ),
    always("regions[]", "string", "regions that were checked; empty where images are the same in every region"),
    always("groups[].capabilities.*[]", "string", "what the machine types of the group can do, defaults included"),
    always("groups[].machineTypes[].name", "string", "a machine type that can do just that"),
    always("groups[].machineTypes[].usable", "boolean", "whether Shoots may use it"),
    always("images[].name", "string", "an image"),
    always("images[].version", "string", "one of its versions"),
    always(
        "images[].classification",
        "string",
        "`preview`, `supported`, `deprecated`, `expired`, `unavailable` or `unknown`, now or at the moment of `--at`",
    ),
    sometimes("images[].expires", "time", "when it expires"),
    always("images[].flavors[].capabilities.*[]", "string", "what machines must be able to do; not named: every value"),
    sometimes(
        "images[].flavors[].defect",
        "string",
        "why machines can't start from it although it can be chosen: `noImage` or `noArchitecture`",
    ),
    sometimes("images[].flavors[].reference.member", "string", "how the image is named, such as `urn`"),
    sometimes("images[].flavors[].reference.value", "string", "its name where no region has its own"),
    sometimes("images[].flavors[].regions.*.member", "string", "the image of each region, members as above"),
    sometimes("images[].flavors[].regions.*.value", "string", ""),
    always("images[].choices[].group", "number", "position in `groups`: what these machine types get"),
    sometimes("images[].choices[].regions[]", "string", "in these regions; absent when in all"),
    always("images[].choices[].outcome", "string", "`chosen`, `unusable`, `tied`, `noneFits` or `noFlavors`"),
    sometimes("images[].choices[].flavor", "number", "position in `flavors`: the chosen one"),
    always("images[].choices[].candidates[]", "number", "positions in `flavors`: those that could be chosen"),
    always("images[].choices[].decision", "number", "position in `decisions`: how it came about"),
    always("images[].choices[].admitted", "boolean", "whether Gardener lets a Shoot have this combination"),
    always(
        "decisions[].verdicts[].is",
        "string",
        "what became of each candidate: `chosen`, `outranked`, `tied` or `rejected`",
    ),
    sometimes("decisions[].verdicts[].step", "number", "outranked: the step of `ranking` that removed it"),
    sometimes(
        "decisions[].verdicts[].mismatches[].capability",
        "string",
        "rejected: every capability of which machine type and flavor share no value",
    ),
    sometimes("decisions[].verdicts[].mismatches[].wanted[]", "string", "values of the machine type"),
    sometimes("decisions[].verdicts[].mismatches[].offered[]", "string", "values of the flavor"),
    sometimes("decisions[].ranking[].capability", "string", "a value that decided between candidates that fit"),
    sometimes("decisions[].ranking[].value", "string", "the value"),
    sometimes("decisions[].ranking[].kept[]", "number", "positions in `candidates`: those that list it"),
];

/// Members of `cloudprofile lint -o json`.
pub const LINT: &[Field] = &[
    always("schema", "string", "`cloudprofile-lint/v1`"),
    always("profiles[].source", "string", "the file, or `garden`"),
    always("profiles[].profile", "string", "name of the CloudProfile"),
    always("profiles[].findings[].severity", "string", "`error`, `warning` or `note`; the worst come first"),
    always("profiles[].findings[].rule", "string", "which rule found it"),
    always("profiles[].findings[].path", "string", "the field"),
    always("profiles[].findings[].subject", "string", "what it belongs to: a machine type, an image and version"),
    always("profiles[].findings[].reason", "string", "what is the case, and what follows from it"),
    always("profiles[].findings[].advice", "string", "what would help"),
    always("profiles[].findings[].documentation", "string", "where the rule is explained"),
    sometimes(
        "profiles[].findings[].line",
        "number",
        "line of the field, or of the nearest one around it, in the file",
    ),
    always("profiles[].size.bytes", "number", "size of the object as JSON"),
    always("profiles[].size.limit", "number", "what can be stored"),
    always("profiles[].size.percent", "number", "share of it"),
    always("profiles[].size.images[].image", "string", "an image"),
    always("profiles[].size.images[].versions", "number", "its versions"),
    always("profiles[].size.images[].bytesPerVersion", "number", "what one of them takes in both halves"),
    sometimes("profiles[].size.roomForVersions", "number", "how many more versions there is room for"),
    always("profiles[].size.prunable[].what", "string", "what could go"),
    always("profiles[].size.prunable[].bytes", "number", "what it takes"),
];
