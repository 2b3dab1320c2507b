//! Every command reads its objects in every form that tools write, and rejects incomplete lists. A new command must be
//! added to this table.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use clap::Command;
use gardener_extension_worker::cli::Program;
use gardener_extension_worker::provider::Providers;
use serde_json::{Value, json};

use crate::binary::{command, outcome};

/// A command and its input. `OBJECTS` in the arguments is replaced with the file or folder that contains the objects.
struct Reader {
    arguments: &'static [&'static str],
    /// The files of the repository that contain the objects.
    objects: &'static [&'static str],
}

const AZURE: &str = "example/cloudprofiles/azure.yaml";
const VERSIONS: &str = "example/versions/cloudprofile.yaml";
const AT: &str = "--at=2026-02-01";

/// Each command with the objects that it reads.
const READERS: [Reader; 25] = [
    Reader { arguments: &["render", "OBJECTS"], objects: &["test/cli/azure.yaml"] },
    Reader { arguments: &["explain", "OBJECTS"], objects: &["test/cli/azure.yaml"] },
    Reader { arguments: &["explain", "--shoot", "OBJECTS"], objects: &["example/versions/shoots.yaml", VERSIONS] },
    Reader { arguments: &["preview", "OBJECTS", "OBJECTS", "--all"], objects: &["test/cli/azure.yaml"] },
    Reader { arguments: &["diagnose", "shoot--garden--prod", "OBJECTS", AT], objects: &["test/cli/azure.yaml"] },
    Reader { arguments: &["rollouts", "shoot--garden--prod", "OBJECTS", AT], objects: &["test/cli/azure.yaml"] },
    Reader { arguments: &["why", "OBJECTS"], objects: &["test/cli/azure.yaml"] },
    Reader { arguments: &["takeover", "check", "OBJECTS"], objects: &["test/cli/azure.yaml"] },
    Reader {
        arguments: &["takeover", "plan", "example/azure.yaml", "--registrations", "OBJECTS", "--chart=x", PLAN],
        objects: &["example/how-to/extensions.yaml"],
    },
    Reader { arguments: &["forecast", "OBJECTS", AT], objects: &["example/versions/shoots.yaml", VERSIONS] },
    Reader { arguments: &["cloudprofile", "lint", "OBJECTS", AT], objects: &[AZURE] },
    Reader { arguments: &["cloudprofile", "matrix", "OBJECTS", AT], objects: &[AZURE] },
    Reader { arguments: &["cloudprofile", "diff", "OBJECTS", AZURE, AT], objects: &[AZURE] },
    Reader { arguments: &["cloudprofile", "convert", "OBJECTS"], objects: &[AZURE] },
    Reader { arguments: &["cloudprofile", "minimize", "OBJECTS"], objects: &[AZURE] },
    Reader { arguments: &["cloudprofile", "capability", "hypervisorType=gen1", "OBJECTS", AT], objects: &[AZURE] },
    Reader {
        arguments: &["cloudprofile", "versions", VERSIONS, "--shoots", "OBJECTS", AT],
        objects: &["example/versions/shoots.yaml"],
    },
    Reader { arguments: &["images", "list", SOURCE, "--lookups", "OBJECTS", AT], objects: &[LOOKUPS] },
    Reader { arguments: &["images", "resolve", SOURCE, "--lookups", "OBJECTS", AT], objects: &[LOOKUPS] },
    Reader { arguments: &["images", "lock", SOURCE, "--lookups", "OBJECTS", "--dry-run", AT], objects: &[LOOKUPS] },
    Reader {
        arguments: &["images", "update", SOURCE, "--lookups", "OBJECTS", "--dry-run", LOCK, AT],
        objects: &[LOOKUPS],
    },
    Reader { arguments: &["images", "check", "OBJECTS", SOURCE, AT], objects: &["example/images/profiles/aws.yaml"] },
    Reader { arguments: &["images", "fill", "OBJECTS", LOCK, AT], objects: &["example/images/profiles/aws.yaml"] },
    Reader {
        arguments: &["images", "unused", "example/images/profiles/aws.yaml", "--users", "OBJECTS", AT],
        objects: &["example/images/landscape.yaml"],
    },
    Reader {
        arguments: &["preview", "OBJECTS", "OBJECTS", "--all"],
        objects: &["example/versions/shoots.yaml", VERSIONS],
    },
];

const SOURCE: &str = "--source=example/images/release-2002.1";
const LOOKUPS: &str = "example/images/lookups.yaml";
/// A folder that git ignores.
const PLAN: &str = "--to=target/tmp/takeover-plan";
const LOCK: &str = "--lock=example/images/images.lock";

/// Commands that read no objects, or only those of a cluster.
const OTHERS: [&str; 13] = [
    "controller",
    "admission",
    "sidecar",
    "complete",
    "completions",
    "man",
    "schema",
    "version",
    "images fetch azure",
    "images fetch ec2",
    "images fetch glance",
    // Reads two lock files.
    "images promote",
    "help",
];

/// A name, and a function that writes objects in this form.
type Form = (&'static str, fn(&[Value], &Path));

const FORMS: [Form; 9] = [
    ("documents of YAML", |objects, file| write(file, documents(objects).as_bytes())),
    ("kubectl get -o json", |objects, file| {
        write(file, json!({"kind": "List", "items": objects}).to_string().as_bytes())
    }),
    ("jq -c", |objects, file| {
        write(file, objects.iter().map(|object| format!("{object}\n")).collect::<String>().as_bytes())
    }),
    ("a JSON array", |objects, file| write(file, json!(objects).to_string().as_bytes())),
    ("typed lists", |objects, file| write(file, typed_lists(objects).as_bytes())),
    ("UTF-16", |objects, file| write(file, &utf16(&documents(objects)))),
    ("gzip", |objects, file| write(file, &gzip(documents(objects).as_bytes()))),
    ("a mounted ConfigMap", mounted),
    ("a Git checkout", |objects, file| {
        fs::create_dir_all(file.join(".github")).unwrap();
        write(&file.join(".github/workflow.yaml"), b"on: [");
        write(&file.join("objects.yaml"), documents(objects).as_bytes());
    }),
];

fn write(file: &Path, bytes: &[u8]) {
    fs::File::create(file).unwrap().write_all(bytes).unwrap();
}

fn documents(objects: &[Value]) -> String {
    objects.iter().map(|object| format!("---\n{object}\n")).collect()
}

/// `kubectl get --raw`: the items have no kind.
fn typed_lists(objects: &[Value]) -> String {
    let list = |object: &Value| {
        let mut item = object.clone();
        let members = item.as_object_mut().unwrap();
        let kind = members.remove("kind").unwrap();
        let version = members.remove("apiVersion");
        json!({"kind": format!("{}List", kind.as_str().unwrap()), "apiVersion": version, "items": [item]}).to_string()
    };
    objects.iter().map(|object| format!("---\n{}\n", list(object))).collect()
}

fn utf16(text: &str) -> Vec<u8> {
    [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn mounted(objects: &[Value], folder: &Path) {
    fs::create_dir_all(folder.join("..2026")).unwrap();
    write(&folder.join("..2026/objects.yaml"), documents(objects).as_bytes());
    symlink("..2026", folder.join("..data")).unwrap();
    symlink("..data/objects.yaml", folder.join("objects.yaml")).unwrap();
}

/// The objects of files, without the line numbers that comments and order would change.
fn read(files: &[&str]) -> Vec<Value> {
    let documents = files.iter().flat_map(|file| {
        let text = fs::read_to_string(test_support::repository().join(file)).unwrap();
        gardener_extension_worker::api::gotext::yaml::documents(&text).unwrap()
    });
    gardener_extension_worker::reader::objects::flattened(documents.collect())
}

/// Runs a command. The outputs contain no file names and line numbers.
fn result(reader: &Reader, path: &Path) -> (i32, String, String) {
    let path = path.display().to_string();
    let arguments: Vec<String> = reader.arguments.iter().map(|argument| argument.replace("OBJECTS", &path)).collect();
    let mut call = command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let output = {
        call.env("SOURCE_DATE_EPOCH", "0");
        outcome(call, "")
    };
    let lines = regex::Regex::new(r"OBJECTS(/objects\.yaml)?(:\d+)?").unwrap();
    // Line breaks depend on the length of the path.
    let plain = |text: &str| {
        let text = text.replace(&path, "OBJECTS");
        lines.replace_all(&text, "OBJECTS").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    (output.code, plain(&output.stdout), plain(&output.stderr))
}

#[test]
fn every_command_reads_every_form() {
    for reader in &READERS {
        let objects = read(reader.objects);
        let folder = tempfile::tempdir().unwrap();
        let mut expected = None;
        for (position, (form, write)) in FORMS.iter().enumerate() {
            // All names have the same length, so that tables are wrapped in the same way.
            let path = folder.path().join(format!("objects-{position}"));
            if *form == "a mounted ConfigMap" || *form == "a Git checkout" {
                fs::create_dir(&path).unwrap();
            }
            write(&objects, &path);
            let found = result(reader, &path);
            assert_ne!(found.0, 3, "{:?} in the form {form}: {found:?}", reader.arguments);
            let expected = expected.get_or_insert_with(|| found.clone());
            assert_eq!(&found, expected, "{:?} in the form {form}", reader.arguments);
        }
    }
}

#[test]
fn every_command_refuses_a_part_of_a_list() {
    for reader in &READERS {
        let objects = read(reader.objects);
        let folder = tempfile::tempdir().unwrap();
        for (metadata, reason) in [
            (json!({"continue": "x"}), "metadata.continue is set"),
            (json!({"remainingItemCount": 731}), "metadata.remainingItemCount is not 0"),
        ] {
            let path = folder.path().join("list.json");
            write(&path, json!({"kind": "List", "metadata": metadata, "items": objects}).to_string().as_bytes());
            let (code, _, stderr) = result(reader, &path);
            assert_eq!(code, 3, "{:?}: {stderr}", reader.arguments);
            assert!(stderr.contains(reason), "{:?}: {stderr}", reader.arguments);
        }
    }
}

#[test]
fn every_command_is_in_the_table() {
    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        if command.get_subcommands().next().is_none() {
            found.push(path.trim().to_owned());
        }
        for subcommand in command.get_subcommands() {
            leaves(subcommand, &format!("{path} {}", subcommand.get_name()), found);
        }
    }
    let mut found = Vec::new();
    leaves(&Program { providers: Providers::SHIPPED, clouds: &[] }.command(), "", &mut found);
    for command in found {
        let has_reader = READERS.iter().any(|reader| reader.arguments.join(" ").starts_with(&command));
        assert!(has_reader || OTHERS.contains(&command.as_str()), "{command:?} is in no table of test/cli/forms.rs");
    }
}
