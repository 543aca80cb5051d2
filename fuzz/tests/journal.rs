//! Journals: lines, heads and whole replays.
//!
//! The first line chooses a preset, the rest is the body of a journal, so that most inputs get
//! past the head. Must hold: no panic, and a line that was read is written and read back the same.

use forerun_baselines::{METHODS, PRESETS};
use forerun_core::Bytes;
use forerun_core::journal::{Entry, head, parse_head};
use forerun_fuzz::fuzz;
use forerun_sim::replay::replay;

/// Little, so that eviction and refusal are reached by short inputs.
const MEMORY: Bytes = Bytes(300 << 10);

fn main() {
    fuzz("journal", |bytes| read(&String::from_utf8_lossy(bytes)));
}

fn read(text: &str) -> String {
    let (first, body) = text.split_once('\n').unwrap_or((text, ""));
    let _ = parse_head(first, body.lines().next().unwrap_or_default(), &METHODS);
    for line in body.lines() {
        if let Ok(entry) = line.parse::<Entry>() {
            assert_eq!(entry.to_string().parse(), Ok(entry));
        }
    }
    let preset = &PRESETS[first.len() % PRESETS.len()];
    let settings = preset.settings(MEMORY).expect("enough memory");
    format!(
        "{:?}",
        replay(format!("{}\n{body}", head(&settings)).as_bytes()).err()
    )
}
