//! `forerun list`: everything that has a name on the command line, from the lists themselves.
//!
//! Nothing is written down here: the lists in `forerun-core`, `forerun-sim` and `forerun-io` say
//! what there is, so a new method appears by its one entry. The table is for people, in lines as
//! wide as the terminal or 100 columns; the JSON object is for programs that build menus,
//! completions or documentation. A name in place of a part shows its entries alone, with the
//! [differences] between its paper and ours; the name of a family its methods.

use std::collections::BTreeSet;
use std::io::Write;

use clap::ValueEnum;
use forerun_baselines::{METHODS, PRESETS};
use forerun_core::preset;
use forerun_core::preset::Preset;
use forerun_core::spec::{Knows, Method, Spec};
use forerun_sim::count::counting;
use forerun_sim::trace::format;
use serde_json::{Map, Value, json};

use crate::args::{List, ListFormat, Listed, Selected};
use crate::differences;
use crate::failure::Failure;
use crate::papers::{PAPERS, in_words};
use crate::terminal::{self, wrapped};

/// Presets of simulations alone.
const SIMULATED: &str = "presets of simulate and sweep alone";

/// A family of methods: its name and their specs.
type Family = (&'static str, Vec<&'static Spec>);

/// Runs the command.
///
/// # Errors
/// Output that cannot be written.
pub fn run(args: &List, out: &mut dyn Write) -> Result<(), Failure> {
    let (part, name) = match &args.what {
        None => (None, None),
        Some(Selected::Part(part)) => (Some(*part), None),
        Some(Selected::Name(name)) => (None, Some(name.as_str())),
    };
    let text = match args.format {
        ListFormat::Table => table(part, name),
        ListFormat::Json => format!("{}\n", json_of(part, name)),
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

/// The part or the entry of a name.
///
/// # Errors
/// There is neither; names the parts, and the nearest entries.
pub fn selected(name: &str) -> Result<Selected, String> {
    if let Ok(part) = Listed::from_str(name, false) {
        return Ok(Selected::Part(part));
    }
    let specs = families(None).into_iter().flat_map(|(_, specs)| specs);
    let mut known: BTreeSet<&'static str> = PRESETS.iter().map(|preset| preset.name).collect();
    known.extend(specs.map(|spec| spec.name));
    known.extend(
        families(Some(Listed::Methods))
            .iter()
            .map(|(family, _)| *family),
    );
    known.extend(format::LIST.iter().map(|format| format.name));
    known.extend(backends(None).into_iter().flatten().map(|[name, ..]| name));
    if known.contains(name) {
        return Ok(Selected::Name(name.to_owned()));
    }
    let parts = Listed::value_variants().iter();
    let parts = parts.filter_map(|part| Some(part.to_possible_value()?.get_name().to_owned()));
    let parts: Vec<String> = parts.collect();
    let nearest = forerun_baselines::nearest(name, known.into_iter()).join(", ");
    Err(format!(
        "there is no such part or name; parts are {}, the nearest names {nearest}",
        parts.join(", ")
    ))
}

/// The names of a part, or of a family of methods; also of those that are not shown here: `parts` and `codes`.
#[cfg(feature = "install")]
pub(super) fn names(part: &str) -> Vec<String> {
    let of = |entries: Vec<Entry>| entries.into_iter().map(|(name, _)| name).collect();
    match part {
        "parts" => Listed::value_variants()
            .iter()
            .filter_map(|part| Some(part.to_possible_value()?.get_name().to_owned()))
            .collect(),
        "codes" => crate::explain::LIST
            .iter()
            .map(|entry| entry.code.to_owned())
            .collect(),
        _ => {
            let found = parts(None).into_iter().find(|(title, _)| *title == part);
            found.map(|(_, entries)| of(entries)).unwrap_or_default()
        }
    }
}

fn shown(what: Option<Listed>, part: Listed) -> bool {
    what.is_none_or(|what| what == part)
}

fn families(what: Option<Listed>) -> Vec<Family> {
    let mut families = Vec::new();
    if shown(what, Listed::Presets) {
        families.push((SIMULATED, specs(forerun_sim::kernel::LIST)));
    }
    if shown(what, Listed::Methods) {
        families.push(("detect", specs(METHODS.detect)));
        families.push(("depth", specs(METHODS.depth)));
        families.push(("shape", specs(METHODS.shape)));
        families.push(("dispatch", specs(METHODS.dispatch)));
        families.push(("reclaim", specs(METHODS.reclaim)));
        families.push(("next_file", specs(METHODS.next_file)));
        families.push(("measure", specs(METHODS.measure)));
    }
    if shown(what, Listed::Devices) {
        families.push(("devices", specs(forerun_sim::device::LIST)));
    }
    if shown(what, Listed::Hinted) {
        families.push(("hinted", specs(METHODS.hinted)));
    }
    if shown(what, Listed::Schedulers) {
        families.push(("schedulers", specs(forerun_sim::device::scheduler::LIST)));
    }
    if shown(what, Listed::Workloads) {
        families.push(("workloads", specs(forerun_sim::workload::LIST)));
    }
    if shown(what, Listed::Policies) {
        let mut policies = specs(forerun_sim::count::policy::LIST);
        policies.push(&counting::OPTIMUM);
        families.push(("policies", policies));
    }
    families
}

/// Name, summary and source of each backend, if they are shown.
#[cfg(feature = "files")]
fn backends(what: Option<Listed>) -> Option<Vec<[&'static str; 3]>> {
    let backends = forerun_io::backend::LIST.iter();
    let all = backends.map(|b| [b.name, b.summary, b.source]);
    shown(what, Listed::Backends).then(|| all.collect())
}

/// This binary has none.
#[cfg(not(feature = "files"))]
fn backends(_: Option<Listed>) -> Option<Vec<[&'static str; 3]>> {
    None
}

fn specs<B>(list: &'static [Method<B>]) -> Vec<&'static Spec> {
    list.iter().map(|method| &method.spec).collect()
}

/// Columns of a line where standard output is no terminal.
const WIDTH: usize = 100;

/// Columns between a name and its summary, and before each line.
const GAP: usize = 2;

/// An entry: its name, and paragraphs. Words of a paragraph are not cut.
type Entry = (String, Vec<Vec<String>>);

fn table(what: Option<Listed>, name: Option<&str>) -> String {
    let width = terminal::columns().map_or(WIDTH, usize::from);
    let parts = parts(what).into_iter().filter_map(|(title, mut entries)| {
        let is_shown = |entry: &Entry| name.is_none_or(|name| [&*entry.0, title].contains(&name));
        entries.retain(is_shown);
        if name.is_some() {
            let of_entry = |entry: &mut Entry| entry.1.extend(differing(title, &entry.0));
            entries.iter_mut().for_each(of_entry);
        }
        let is_empty = name.is_some() && entries.is_empty();
        (!is_empty).then(|| section(title, entries, width))
    });
    let text = parts.collect::<Vec<String>>().join("\n");
    let papers = papers(width, &text);
    text + &papers
}

/// The parts that are shown: title and entries of each.
fn parts(what: Option<Listed>) -> Vec<(&'static str, Vec<Entry>)> {
    let mut parts = Vec::new();
    if shown(what, Listed::Presets) {
        let entries = PRESETS.iter().map(|p| {
            let methods = words(&composition(p));
            (
                p.name.to_owned(),
                vec![words(p.summary), source(p.source), methods],
            )
        });
        parts.push(("presets", entries.collect()));
    }
    for (family, specs) in families(what) {
        parts.push((family, specs.into_iter().map(entry_of).collect()));
    }
    if let Some(backends) = backends(what) {
        let entry = |[name, summary, from]: [&str; 3]| {
            (name.to_owned(), vec![words(summary), source(from)])
        };
        parts.push(("backends", backends.into_iter().map(entry).collect()));
    }
    if shown(what, Listed::Formats) {
        let entries = format::LIST.iter().map(|f| {
            let paragraphs = vec![words(f.summary), source(f.source), words(f.form)];
            (f.name.to_owned(), paragraphs)
        });
        parts.push(("formats", entries.collect()));
    }
    parts
}

fn entry_of(spec: &Spec) -> Entry {
    let unfit = match spec.unfit {
        "" => Vec::new(),
        unfit => words(&format!("not for: {}", in_words(unfit))),
    };
    let paragraphs = vec![
        words(spec.summary),
        source(spec.source),
        unfit,
        params(spec),
    ];
    (spec.name.to_owned(), paragraphs)
}

/// A paragraph a difference.
fn differing(family: &str, name: &str) -> Vec<Vec<String>> {
    let one = |one: &differences::Difference| {
        words(&format!(
            "differs from {}: {} Ours: {} Effect: {}: {}",
            one.source, one.rule, one.ours, one.effect, one.command
        ))
    };
    differences::of(family, name).map(one).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn source(text: &str) -> Vec<String> {
    words(&format!("source: {}", in_words(text)))
}

/// The title, then each entry: its name, its summary behind it, and the other paragraphs below.
fn section(title: &str, entries: Vec<Entry>, width: usize) -> String {
    let name = entries.iter().map(|(name, _)| name.chars().count()).max();
    let indent = GAP + name.unwrap_or(0) + GAP;
    let mut text = format!("{title}\n");
    for (name, paragraphs) in entries {
        let lines = paragraphs
            .iter()
            .flat_map(|words| wrapped(words, width.saturating_sub(indent)));
        for (at, line) in lines.enumerate() {
            let name = if at == 0 { name.as_str() } else { "" };
            let line = format!("{:GAP$}{name:wide$}{line}\n", "", wide = indent - GAP);
            text += &line;
        }
    }
    text
}

/// Papers that entries name, with their titles. One that no entry names is not shown.
fn papers(width: usize, text: &str) -> String {
    let text = words(text).join(" ");
    let cited = PAPERS.iter().filter(|(_, name, _)| text.contains(name));
    let entries: Vec<Entry> = cited
        .map(|(_, name, title)| ((*name).to_owned(), vec![words(title)]))
        .collect();
    match entries.is_empty() {
        true => String::new(),
        false => format!("\n{}", section("sources", entries, width)),
    }
}

fn composition(preset: &Preset) -> String {
    format!(
        "detect={} depth={} shape={} dispatch={} reclaim={} hinted={} unread_percent={} next_file={} measure={}",
        preset.detect,
        preset.depth,
        preset.shape,
        preset.dispatch,
        preset.reclaim,
        preset.hinted,
        preset.unread_percent,
        preset.next_file,
        preset.measure
    )
}

fn params(spec: &Spec) -> Vec<String> {
    let params = spec.params.iter();
    params
        .map(|p| format!("{}={} ({} to {})", p.name, p.default, p.min, p.max))
        .collect()
}

fn json_of(what: Option<Listed>, name: Option<&str>) -> Value {
    let mut all = everything(what);
    if let Some(name) = name {
        all.retain(|title, entries| {
            if let Value::Array(entries) = entries {
                entries.retain(|entry| entry["name"] == name || title == name);
            }
            entries
                .as_array()
                .is_some_and(|entries| !entries.is_empty())
        });
        for (family, entries) in &mut all {
            for entry in entries.as_array_mut().into_iter().flatten() {
                let of = differences::of(family, entry["name"].as_str().unwrap_or(name));
                entry["differences"] = of.map(json_of_difference).collect();
            }
        }
    }
    Value::Object(all)
}

fn json_of_difference(one: &differences::Difference) -> Value {
    json!({
        "source": one.source,
        "rule": one.rule,
        "ours": one.ours,
        "effect": one.effect,
        "command": one.command,
    })
}

/// All parts that are shown, by title.
fn everything(what: Option<Listed>) -> Map<String, Value> {
    let mut all = Map::new();
    if shown(what, Listed::Presets) {
        all.insert(
            "presets".into(),
            PRESETS.iter().map(json_of_preset).collect(),
        );
    }
    for (family, specs) in families(what) {
        let key = if family == SIMULATED {
            "simulated"
        } else {
            family
        };
        all.insert(key.into(), specs.into_iter().map(json_of_spec).collect());
    }
    if let Some(backends) = backends(what) {
        let backends = backends.into_iter().map(
            |[name, summary, source]| json!({"name": name, "summary": summary, "source": source}),
        );
        all.insert("backends".into(), backends.collect());
    }
    if shown(what, Listed::Formats) {
        let formats = format::LIST.iter().map(
            |f| json!({"name": f.name, "summary": f.summary, "source": f.source, "form": f.form}),
        );
        all.insert("formats".into(), formats.collect());
    }
    all
}

fn json_of_preset(preset: &Preset) -> Value {
    json!({
        "name": preset.name,
        "summary": preset.summary,
        "source": in_words(preset.source),
        "detect": preset.detect,
        "depth": preset.depth,
        "shape": preset.shape,
        "dispatch": preset.dispatch,
        "reclaim": preset.reclaim,
        "hinted": preset.hinted,
        "unread_percent": preset.unread_percent,
        "next_file": preset.next_file,
        "measure": preset.measure,
        "default": preset.name == preset::DEFAULT,
    })
}

fn json_of_spec(spec: &Spec) -> Value {
    let params = spec.params.iter().map(|p| {
        json!({
            "name": p.name,
            "summary": in_words(p.summary),
            "default": p.default,
            "min": p.min,
            "max": p.max,
        })
    });
    json!({
        "name": spec.name,
        "summary": spec.summary,
        "source": in_words(spec.source),
        "unfit": spec.unfit,
        "knows": match spec.knows {
            Knows::Online => "past",
            Knows::Hinted => "hints",
            Knows::Clairvoyant => "future",
        },
        "params": params.collect::<Value>(),
    })
}
