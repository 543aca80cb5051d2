//! wrk: its command, its script, and its output.
//!
//! wrk gives no numbers of single connections, so each client is a thread with one connection, and
//! the script counts and times the answers of each. At its end the script prints one line for this
//! module, after wrk's own text:
//!
//! ```text
//! answers requests=812 duration_us=10002133 p50_us=71044 p99_us=412003 slowest_per_mean=0.8123 errors=0
//! ```
//!
//! wrk's own percentiles are corrected for requests that a stalled connection did not send
//! (coordinated omission). These clients omit none: each asks again once it was answered.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::failure::Failure;
use crate::servers::{Answers, media};

/// The script.
pub const SCRIPT: &str = include_str!("requests.lua");

/// A request that waits longer counts as failed: 256 clients on a disk of 8 ms wait seconds.
const TIMEOUT: &str = "120s";

/// Runs it against a port, with the list that is in the state directory.
///
/// # Errors
/// It failed, or printed something else.
pub fn run(state: &Path, port: u16, clients: usize, time: Duration) -> Result<Answers, Failure> {
    let clients = clients.to_string();
    let mut command = Command::new("wrk");
    command
        .args(["--threads", &clients, "--connections", &clients])
        .args(["--duration", &format!("{}s", time.as_secs())])
        .args(["--timeout", TIMEOUT, "--script"])
        .arg(state.join(media::SCRIPT))
        .arg(format!("http://127.0.0.1:{port}/"))
        .arg("--")
        .arg(state.join(media::REQUESTS))
        .arg(media::REQUEST_BYTES.to_string())
        .arg(media::REQUESTS_COUNT.to_string())
        .arg(&clients)
        .stdin(Stdio::null());
    let output = command
        .output()
        .map_err(|e| Failure::Run(format!("wrk: {e}")))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let text = format!("wrk: {}: {}", output.status, complaint.trim_end());
        return Err(Failure::Run(text));
    }
    parse(&said).map_err(|why| Failure::Run(format!("wrk: {why}")))
}

/// Reads the script's line.
fn parse(text: &str) -> Result<Answers, String> {
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("answers "));
    let line = match (lines.next(), lines.next()) {
        (Some(line), None) => line,
        (None, _) => return Err("no line of answers".into()),
        _ => return Err("two lines of answers".into()),
    };
    let value = |name: &str| -> Result<f64, String> {
        let fields = line
            .split_whitespace()
            .filter_map(|field| field.split_once('='));
        let mut found = fields
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value);
        let (Some(text), None) = (found.next(), found.next()) else {
            return Err(format!("`{name}` is not there once: `{line}`"));
        };
        let number = text.parse::<f64>().ok();
        number
            .filter(|number| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| format!("{name}: `{text}` is no number"))
    };
    let seconds = value("duration_us")? / 1e6;
    if seconds == 0.0 {
        return Err("a run of no time".into());
    }
    Ok(Answers {
        completed: value("requests")?,
        seconds,
        p50_ms: value("p50_us")? / 1e3,
        p99_ms: value("p99_us")? / 1e3,
        slowest_per_mean: value("slowest_per_mean")?,
        errors: value("errors")? as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "answers requests=812 duration_us=10000000 p50_us=71044 p99_us=412003 \
                        slowest_per_mean=0.8123 errors=0\n";

    #[test]
    fn the_line_of_the_script_is_found_in_what_wrk_prints() {
        let text = format!("Running 10s test @ http://127.0.0.1:1/\n  4 threads\n\n{LINE}");
        let answers = parse(&text).unwrap();
        assert_eq!((answers.completed, answers.seconds), (812.0, 10.0));
        assert_eq!((answers.p50_ms, answers.p99_ms), (71.044, 412.003));
        assert_eq!((answers.slowest_per_mean, answers.errors), (0.8123, 0));
    }

    #[test]
    fn output_that_is_no_line_of_answers_is_an_error_that_names_it() {
        for (good, bad, named) in [
            ("answers", "", "no line of answers"),
            ("requests=812", "requests=many", "`many` is no number"),
            ("requests=812", "requests=-1", "`-1` is no number"),
            ("requests=812", "requests=nan", "`nan` is no number"),
            ("requests=812", "requests=inf", "`inf` is no number"),
            ("requests=812", "requests", "`requests` is not there"),
            ("p99_us", "p50_us", "`p50_us` is not there once"),
            ("duration_us=10000000", "duration_us=0", "no time"),
            (" errors=0", "", "`errors`"),
        ] {
            assert!(LINE.contains(good), "{good}");
            let said = parse(&LINE.replacen(good, bad, 1)).unwrap_err();
            assert!(said.contains(named), "{bad}: {said}");
        }
        assert!(
            parse(&format!("{LINE}{LINE}"))
                .unwrap_err()
                .contains("two lines")
        );
        assert!(parse("").is_err());
    }
}
