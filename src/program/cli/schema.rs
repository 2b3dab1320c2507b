//! `schema`: JSON schemas of command outputs, and of the CloudProfiles that `lint` accepts.

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

use super::evidence::Reply;
use super::exit;
use super::json_fields::{Field, documents};
use super::terminal::{json, print};
use profiles::cloud_profile::members::profile_schema;

/// Name of the CloudProfile schema.
const PROFILE: &str = "CloudProfile";

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker schema                                  # the names
  gardener-extension-worker schema cloudprofile lint                # for the output of `cloudprofile lint -o json`
  gardener-extension-worker schema CloudProfile > cloudprofile.schema.json   # for an editor", &[]))]
pub(super) struct SchemaArguments {
    /// Command whose output the schema describes, or CloudProfile. Without it, the names of all schemas are printed.
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    name: Vec<String>,
}

pub(super) fn run(arguments: &SchemaArguments) -> anyhow::Result<Reply> {
    let documents = documents().into_iter();
    let documents: Vec<_> = documents.map(|(title, fields)| (title.trim_end_matches(" -o json"), fields)).collect();
    let names: Vec<&str> = documents.iter().map(|(name, _)| *name).chain([PROFILE]).collect();
    let requested = arguments.name.join(" ");
    let schema = match documents.iter().find(|(name, _)| *name == requested) {
        _ if requested.is_empty() => {
            print(&names.iter().map(|name| format!("{name}\n")).collect::<String>())?;
            return Ok(Reply::of_program());
        }
        _ if requested == PROFILE => profile_schema(),
        Some((name, fields)) => schema(name, fields),
        None => bail!("no schema {requested:?}; there are {}", names.join(", ")),
    };
    print(&json(&schema)?)?;
    Ok(Reply::of_program())
}

/// Builds the schema of a document. Additional members are allowed, because later versions may add some.
fn schema(name: &str, fields: &[Field]) -> Value {
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("gardener-extension-worker {name} -o json"),
    });
    for field in fields {
        let mut steps: Vec<&str> = field.path.split('.').collect();
        let member = steps.pop().unwrap_or_default();
        let parent = steps.into_iter().fold(&mut schema, member_of);
        let name = member.trim_end_matches("[]");
        if !field.optional && name != "*" {
            match &mut parent["required"] {
                Value::Array(required) => required.push(name.into()),
                none => *none = json!([name]),
            }
        }
        describe(member_of(parent, member), field);
    }
    schema
}

/// Finds the schema of a member. `pools[]` is an entry of the list `pools`, and `*` any other member.
fn member_of<'a>(node: &'a mut Value, step: &str) -> &'a mut Value {
    let name = step.trim_end_matches("[]");
    node["type"] = nullable("object");
    let mut member = match name {
        "*" => &mut node["additionalProperties"],
        name => &mut node["properties"][name],
    };
    for _ in step.matches("[]") {
        member["type"] = nullable("array");
        member = &mut member["items"];
    }
    member
}

fn describe(leaf: &mut Value, field: &Field) {
    let kinds = field.kind.split(" or ").map(|kind| if kind == "time" { "string" } else { kind });
    let kinds: Vec<&str> = kinds.chain(field.optional.then_some("null")).collect();
    leaf["type"] = json!(kinds);
    if field.kind == "time" {
        leaf["format"] = "date-time".into();
    }
    if !field.meaning.is_empty() {
        leaf["description"] = field.meaning.into();
    }
}

/// Empty objects and lists may be absent.
fn nullable(kind: &str) -> Value {
    json!([kind, "null"])
}
