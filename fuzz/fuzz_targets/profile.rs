//! The profile file and the parsers of single values.
//!
//! Must hold: no panic; a profile that was read is printed and read back the same, and gives a
//! depth everywhere.

#![no_main]

use forerun::emulation::Emulation;
use forerun::{profile_file, quantity};
use forerun_core::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = quantity::parse_size(text);
    let _ = quantity::parse_duration(text);
    let _ = quantity::parse_rate(text);
    if let Ok(emulation) = text.parse::<Emulation>() {
        assert_eq!(emulation.to_string().parse(), Ok(emulation));
    }
    let Ok(profile) = profile_file::parse(text) else { return };
    for at in [0, 1, 4096, 1 << 30, u64::MAX] {
        let _ = profile.competitive_depth(Bytes(at), Bytes(u64::MAX - at));
    }
    let printed = profile_file::print(&profile, text).expect("it was read from TOML");
    assert_eq!(profile_file::parse(&printed).expect("it was printed"), profile);
});
