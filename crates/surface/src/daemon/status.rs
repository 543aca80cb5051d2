//! Fields of `/proc/PID/status`, of processes and threads.

use std::fs;

/// The text of a process or thread; empty if there is none, or no `/proc`.
#[must_use]
pub fn of(process: u32) -> String {
    fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default()
}

/// The text of this process. Its number is another's where `/proc` is of another name space of processes.
#[must_use]
pub fn of_self() -> String {
    fs::read_to_string("/proc/self/status").unwrap_or_default()
}

/// A field, by its name with the colon.
#[must_use]
pub fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim())
}

/// Whether a set in hexadecimal, of signals or capabilities, has this bit; false without the field.
#[must_use]
pub fn has(status: &str, name: &str, bit: u32) -> bool {
    let bits = field(status, name).and_then(|bits| u64::from_str_radix(bits, 16).ok());
    bits.is_some_and(|bits| bits.checked_shr(bit).unwrap_or(0) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_names_and_bits_by_their_numbers() {
        let status = "Name:\tcat\nSigPnd:\t0000000000000100\nTgid:\t7\n";
        assert_eq!(field(status, "Tgid:"), Some("7"));
        assert_eq!(field(status, "Pid:"), None);
        assert!(has(status, "SigPnd:", 8));
        for (name, bit) in [("SigPnd:", 7), ("SigPnd:", 64), ("Name:", 8), ("None:", 8)] {
            assert!(!has(status, name, bit), "{name} {bit}");
        }
        assert_eq!(
            field(&of(std::process::id()), "Pid:"),
            Some(&*std::process::id().to_string())
        );
        assert_eq!(of(u32::MAX), "");
    }
}
