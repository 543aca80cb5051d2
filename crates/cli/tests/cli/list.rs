//! `forerun list`: everything in the lists of core, sim and io is shown.

use std::process::{Command, Stdio};

use forerun_baselines::{METHODS, PRESETS};
use serde_json::Value;
use snapbox::cmd::cargo_bin;

use super::output_of;

#[test]
fn every_preset_and_method_has_a_line() {
    let text = output_of("list");
    let names = PRESETS.iter().map(|p| p.name);
    let names = names.chain(METHODS.detect.iter().map(|m| m.spec.name));
    let names = names.chain(METHODS.depth.iter().map(|m| m.spec.name));
    let names = names.chain(METHODS.dispatch.iter().map(|m| m.spec.name));
    let names = names.chain(METHODS.reclaim.iter().map(|m| m.spec.name));
    let names = names.chain(forerun_sim::device::LIST.iter().map(|m| m.spec.name));
    let names = names.chain(METHODS.hinted.iter().map(|m| m.spec.name));
    let names = names.chain(
        forerun_sim::device::scheduler::LIST
            .iter()
            .map(|m| m.spec.name),
    );
    let names = names.chain(forerun_sim::workload::LIST.iter().map(|m| m.spec.name));
    let names = names.chain(forerun_sim::trace::format::LIST.iter().map(|f| f.name));
    for name in names {
        let line = text
            .lines()
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .find(|line| line.split_whitespace().next() == Some(name));
        assert!(
            line.is_some_and(|line| line.len() > name.len() + 20),
            "{name}:\n{text}"
        );
    }
    for title in [
        "presets",
        "detect",
        "depth",
        "dispatch",
        "reclaim",
        "devices",
        "hinted",
        "schedulers",
        "workloads",
        "policies",
        "backends",
        "formats",
    ] {
        assert!(text.lines().any(|line| line == title), "{title}:\n{text}");
    }
}

#[test]
fn a_paper_has_one_name_and_its_title_stands_below() {
    let (text, json) = (output_of("list"), output_of("list --format json"));
    for (key, name, title) in [
        ("baek09", "Baek and Park 2009", "Striping-Aware"),
        (
            "kimbrel96",
            "Kimbrel et al. 1996",
            "A Trace-Driven Comparison",
        ),
        ("li04", "Li et al. 2004", "Competitive Prefetching"),
        ("li05", "Li and Shen 2005", "Managing Prefetch Memory"),
        ("wu10", "Wu 2010", "Sequential File Prefetching"),
    ] {
        for printed in [&text, &json] {
            assert!(!printed.contains(key), "{key}");
            assert!(printed.contains(name), "{name}");
        }
        let mut sources = text.split_once("\nsources\n").unwrap().1.lines();
        assert!(
            sources.any(|line| line.trim_start().starts_with(name) && line.contains(title)),
            "{name}:\n{text}"
        );
    }
}

#[test]
fn no_line_is_longer_than_100_columns() {
    let text = output_of("list");
    let longest = text
        .lines()
        .max_by_key(|line| line.chars().count())
        .unwrap();
    assert!(longest.chars().count() <= 100, "{longest}");
}

#[test]
fn a_part_is_shown_alone() {
    assert!(output_of("list presets").starts_with("presets\n  forerun"));
    let methods = output_of("list methods");
    assert!(
        methods.starts_with("detect\n") && !methods.contains("presets"),
        "{methods}"
    );
    assert!(output_of("list devices").contains("switching"));
    assert!(output_of("list devices").contains("not for: sectors remapped one by one"));
    assert!(output_of("list backends").contains("pread"));
}

#[test]
fn json_is_one_object_with_a_key_a_family() {
    let all: Value = serde_json::from_str(&output_of("list --format json")).unwrap();
    let keys: Vec<_> = all
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "backends",
            "depth",
            "detect",
            "devices",
            "dispatch",
            "formats",
            "hinted",
            "measure",
            "next_file",
            "policies",
            "presets",
            "reclaim",
            "schedulers",
            "shape",
            "simulated",
            "workloads"
        ]
    );
    assert_eq!(all["presets"].as_array().unwrap().len(), PRESETS.len());
    let fixed = all["depth"]
        .as_array()
        .unwrap()
        .iter()
        .find(|m| m["name"] == "fixed")
        .unwrap();
    assert_eq!(fixed["params"][0]["name"], "depth_bytes");
    assert_eq!(fixed["params"][0]["default"], 131_072);
}

#[test]
fn nobody_reading_it_is_no_error() {
    for arguments in ["list", "--help", "list --format json"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(cargo_bin!("forerun"))
            .args(arguments.split_whitespace())
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments}");
    }
}

#[test]
fn a_name_in_place_of_a_part_shows_its_entries_with_the_differences_from_the_paper() {
    let text = output_of("list forestall");
    assert!(text.starts_with("hinted\n  forestall"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("differs from Kimbrel et al. 1996, section 5: "),
        "{text}"
    );
    assert!(!text.contains("aggressive  "), "{text}");
    let json: Value = serde_json::from_str(&output_of("list forestall --format json")).unwrap();
    assert_eq!(json.as_object().map(serde_json::Map::len), Some(1));
    let differences = json["hinted"][0]["differences"].as_array().unwrap();
    assert!(differences.iter().all(|one| one["rule"].is_string()) && !differences.is_empty());
    // Two families have one of that name.
    let json: Value = serde_json::from_str(&output_of("list fifo --format json")).unwrap();
    assert!(json["dispatch"].is_array() && json["reclaim"].is_array());
}

#[test]
fn a_name_there_is_not_is_answered_with_the_parts_and_the_nearest_names() {
    let refused = super::forerun("list forestal").code(2);
    let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    let said = "parts are presets, methods, devices, backends, hinted, schedulers, workloads, policies, formats";
    assert!(
        stderr.contains(said) && stderr.contains("the nearest names forestall"),
        "{stderr}"
    );
}

#[test]
fn presets_of_the_simulator_alone_are_listed_and_a_near_name_is_named_once() {
    let json: Value = serde_json::from_str(&output_of("list presets --format json")).unwrap();
    let names = json["simulated"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["kernel", "watch"]);
    assert!(output_of("list kernel").contains("read_ahead_kib=128 (4 to 65536)"));
    let end = super::forerun("list non").code(2);
    let said = String::from_utf8_lossy(&end.get_output().stderr).into_owned();
    let nearest = said.split("nearest names ").nth(1).unwrap();
    let mut nearest: Vec<&str> = nearest.trim().split(", ").collect();
    let count = nearest.len();
    nearest.dedup();
    assert_eq!(nearest.len(), count, "{said}");
}

#[test]
fn the_name_of_a_family_shows_its_methods() {
    let text = output_of("list dispatch");
    assert!(
        text.starts_with("dispatch\n  continuing") && text.contains("\n  fifo"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&output_of("list reclaim --format json")).unwrap();
    assert_eq!(json.as_object().map(serde_json::Map::len), Some(1));
    assert!(json["reclaim"].as_array().is_some_and(|all| all.len() > 3));
}
