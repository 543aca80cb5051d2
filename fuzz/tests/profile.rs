//! The profile file and the parsers of single values.
//!
//! Must hold: no panic; a profile that was read is printed and read back the same, and gives a
//! depth everywhere.

use forerun::emulation::EmulatedStorage;
use forerun::{profile_file, quantity};
use forerun_core::Bytes;
use forerun_fuzz::fuzz;

fn main() {
    fuzz("profile", |bytes| parse(&String::from_utf8_lossy(bytes)));
}

fn parse(text: &str) -> String {
    let _ = quantity::parse_size(text);
    let _ = quantity::parse_duration(text);
    let _ = quantity::parse_rate(text);
    if let Ok(emulation) = text.parse::<EmulatedStorage>() {
        assert_eq!(emulation.to_string().parse(), Ok(emulation));
    }
    let profile = match profile_file::parse(text) {
        Ok(profile) => profile,
        Err(error) => return error.to_string(),
    };
    for at in [0, 1, 4096, 1 << 30, u64::MAX] {
        let _ = profile.competitive_depth(Bytes(at), Bytes(u64::MAX - at));
    }
    let printed = profile_file::print(&profile, text).expect("it was read from TOML");
    assert_eq!(
        profile_file::parse(&printed).expect("it was printed"),
        profile
    );
    String::new()
}
