//! The recorded classes of a machine deployment, with the inputs that differ.

use serde_json::{Value, json};

use crate::cli::table::{Cell, Table, printable};
use crate::cli::terminal::{ASIDE, CAREFUL, HEADING};
use decisions::worker::machines::machine_objects::LiveDeployment;
use decisions::worker::plan::class_inputs::{ClassChange, Difference, Generation, History, InputChange};

pub(super) fn named(live: &LiveDeployment) -> String {
    let metadata = &live.object.metadata;
    let part = |part: &Option<String>| printable(part.as_deref().unwrap_or_default());
    format!("{}/{}", part(&metadata.namespace), part(&metadata.name))
}

pub(super) fn history_text(name: &str, history: &History, width: usize) -> String {
    let mut text = format!("{HEADING}{name}{HEADING:#}\n");
    let mut changes = history.changes().peekable();
    if changes.peek().is_none() {
        let class = history.generations.first().map(since_text).unwrap_or_default();
        text.push_str(&format!("  {ASIDE}no roll is recorded; {class}{ASIDE:#}\n"));
    }
    let mut table = Table::new(["", "", ""]);
    changes.for_each(|change| change_row(&change, &mut table));
    text.push_str(&table.render(2, width));
    text
}

fn since_text(generation: &Generation) -> String {
    let how = if generation.found { "was found at" } else { "was made at" };
    format!("class {} {how} {}", printable(&generation.class), generation.since)
}

fn class_text(generation: &Generation) -> String {
    let by = if generation.found { " (made by another controller)" } else { "" };
    format!("{}{by}", generation.class)
}

/// Formats a change with its time, both classes and the inputs that differ.
fn change_row(change: &ClassChange<'_>, table: &mut Table) {
    let from = change.from;
    let to = change.to;
    let recorded = if from.found { "found" } else { "recorded" };
    let before = format!("{}, {recorded} {}", class_text(from), from.since);
    table.row([to.since.to_string().into(), "to".into(), class_text(to).into()]);
    table.row(["".into(), "from".into(), before.into()]);
    match &change.difference {
        Difference::Inputs(inputs) => {
            for input in inputs {
                table.row(["".into(), Cell::styled(input.how, CAREFUL), cause_text(input).into()]);
            }
        }
        Difference::Order => table.row(["".into(), Cell::styled("changed", CAREFUL), "the order of the inputs".into()]),
        Difference::Unknown => {
            let text = "the inputs of one of the classes were not recorded";
            table.row(["".into(), Cell::styled("unknown", CAREFUL), text.into()]);
        }
    }
}

fn cause_text(input: &InputChange) -> String {
    let name = &input.input;
    match (input.is_opaque(), &input.because[..]) {
        (false, _) => name.clone(),
        (true, []) => format!("{name}, because of an input that is not known here"),
        (true, because) => format!("{name}, because of {}", because.join(", ")),
    }
}

pub(super) fn history_json(name: &str, history: Option<&History>) -> Value {
    let changes = history.into_iter().flat_map(History::changes).map(|change| {
        let inputs = match &change.difference {
            Difference::Inputs(inputs) => inputs
                .iter()
                .map(|input| json!({"input": input.input, "how": input.how, "because": input.because}))
                .collect(),
            Difference::Order | Difference::Unknown => Vec::new(),
        };
        let difference = match change.difference {
            Difference::Inputs(_) => "inputs",
            Difference::Order => "order",
            Difference::Unknown => "unknown",
        };
        json!({
            "from": generation_json(change.from),
            "to": generation_json(change.to),
            "difference": difference,
            "inputs": inputs,
        })
    });
    let changes: Vec<Value> = changes.collect();
    let class = history.and_then(|history| history.generations.first()).map(generation_json);
    json!({"name": name, "recorded": history.is_some(), "class": class, "changes": changes})
}

fn generation_json(generation: &Generation) -> Value {
    json!({"class": generation.class, "since": generation.since.to_string(), "found": generation.found})
}
