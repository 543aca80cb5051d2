//! `forerun list`: everything that has a name on the command line, from the lists themselves.
//!
//! Nothing is written down here: the names come from the lists in `forerun-core`, `forerun-sim` and
//! `forerun-io`, so a new method appears by its one entry. The table is for people, the JSON
//! object for programs that build menus, completions or documentation.

use std::io::Write;

use forerun_core::preset::Preset;
use forerun_core::spec::{Knows, Method, Spec};
use forerun_core::{
    depth, detect, dispatch, hinted, measure, next_file, preset, reclaim, shape, split,
};
use forerun_io::backend;
use forerun_sim::trace::format;
use serde_json::{Map, Value, json};

use crate::args::{List, ListFormat, Listed};
use crate::failure::Failure;
use crate::papers::{PAPERS, in_words};
use crate::terminal;

/// A family of methods: its name and their specs.
type Family = (&'static str, Vec<&'static Spec>);

/// Runs the command.
///
/// # Errors
/// Output that cannot be written.
pub fn run(args: &List, out: &mut dyn Write) -> Result<(), Failure> {
    let text = match args.format {
        ListFormat::Table => table(args.what),
        ListFormat::Json => format!("{}\n", json_of(args.what)),
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

fn shown(what: Option<Listed>, part: Listed) -> bool {
    what.is_none_or(|what| what == part)
}

fn families(what: Option<Listed>) -> Vec<Family> {
    let mut families = Vec::new();
    if shown(what, Listed::Methods) {
        families.push(("detect", specs(detect::LIST)));
        families.push(("depth", specs(depth::LIST)));
        families.push(("shape", specs(shape::LIST)));
        families.push(("dispatch", specs(dispatch::LIST)));
        families.push(("reclaim", specs(reclaim::LIST)));
        families.push(("split", specs(split::LIST)));
        families.push(("next_file", specs(next_file::LIST)));
        families.push(("measure", specs(measure::LIST)));
    }
    if shown(what, Listed::Devices) {
        families.push(("devices", specs(forerun_sim::device::LIST)));
    }
    if shown(what, Listed::Hinted) {
        families.push(("hinted", specs(hinted::policy::LIST)));
    }
    if shown(what, Listed::Schedulers) {
        families.push(("schedulers", specs(forerun_sim::scheduler::LIST)));
    }
    if shown(what, Listed::Workloads) {
        families.push(("workloads", specs(forerun_sim::workload::LIST)));
    }
    families
}

fn specs<B>(list: &'static [Method<B>]) -> Vec<&'static Spec> {
    list.iter().map(|method| &method.spec).collect()
}

fn table(what: Option<Listed>) -> String {
    let mut parts = Vec::new();
    if shown(what, Listed::Presets) {
        let rows = preset::LIST.iter().map(|p| {
            vec![
                p.name.into(),
                p.summary.into(),
                in_words(p.source),
                composition(p),
            ]
        });
        parts.push(section("presets", rows.collect()));
    }
    for (family, specs) in families(what) {
        let rows = specs.iter().map(|spec| {
            vec![
                spec.name.to_owned(),
                spec.summary.to_owned(),
                in_words(spec.source),
                params(spec),
            ]
        });
        parts.push(section(family, rows.collect()));
    }
    if shown(what, Listed::Backends) {
        let rows = backend::LIST
            .iter()
            .map(|b| [b.name, b.summary, b.source].map(str::to_owned));
        parts.push(section("backends", rows.map(Vec::from).collect()));
    }
    if shown(what, Listed::Formats) {
        let rows = format::LIST
            .iter()
            .map(|f| [f.name, f.summary, f.source, f.form].map(str::to_owned));
        parts.push(section("formats", rows.map(Vec::from).collect()));
    }
    let text = parts.join("\n");
    let papers = papers(&text);
    text + &papers
}

/// The title, then one line an entry, the columns aligned.
fn section(title: &str, rows: Vec<Vec<String>>) -> String {
    // A line an entry for programs and `grep`; for people lines that fit.
    let mut table = terminal::table(1, 60);
    table.add_rows(rows);
    let lines: String = table
        .lines()
        .map(|line| format!(" {}\n", line.trim_end()))
        .collect();
    format!("{title}\n{lines}")
}

/// Papers that entries name, with their titles. One that no entry names is not shown.
fn papers(text: &str) -> String {
    let cited = PAPERS.iter().filter(|(_, name, _)| text.contains(name));
    let lines: Vec<_> = cited
        .map(|(_, name, title)| vec![(*name).to_owned(), (*title).to_owned()])
        .collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("\n{}", section("sources", lines)),
    }
}

fn composition(preset: &Preset) -> String {
    format!(
        "detect={} depth={} shape={} dispatch={} reclaim={} split={} hinted={} unread_percent={} lean_async={} next_file={} measure={}",
        preset.detect,
        preset.depth,
        preset.shape,
        preset.dispatch,
        preset.reclaim,
        preset.split,
        preset.hinted,
        preset.unread_percent,
        preset.lean_async,
        preset.next_file,
        preset.measure
    )
}

fn params(spec: &Spec) -> String {
    let params = spec
        .params
        .iter()
        .map(|p| format!("{}={} ({}..={})", p.name, p.default, p.min, p.max));
    params.collect::<Vec<_>>().join(", ")
}

fn json_of(what: Option<Listed>) -> Value {
    let mut all = Map::new();
    if shown(what, Listed::Presets) {
        all.insert(
            "presets".into(),
            preset::LIST.iter().map(json_of_preset).collect(),
        );
    }
    for (family, specs) in families(what) {
        all.insert(family.into(), specs.into_iter().map(json_of_spec).collect());
    }
    if shown(what, Listed::Backends) {
        let backends = backend::LIST.iter();
        let backends =
            backends.map(|b| json!({"name": b.name, "summary": b.summary, "source": b.source}));
        all.insert("backends".into(), backends.collect());
    }
    if shown(what, Listed::Formats) {
        let formats = format::LIST.iter().map(
            |f| json!({"name": f.name, "summary": f.summary, "source": f.source, "form": f.form}),
        );
        all.insert("formats".into(), formats.collect());
    }
    Value::Object(all)
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
        "split": preset.split,
        "hinted": preset.hinted,
        "unread_percent": preset.unread_percent,
        "lean_async": preset.lean_async,
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
