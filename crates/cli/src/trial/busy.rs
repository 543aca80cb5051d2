//! Whether other programs use this machine, which a trial would measure, too.
//!
//! The processors' times of `/proc/stat` over a moment, before anything of the trial runs.

use std::thread::sleep;
use std::time::Duration;

/// The moment: thirty ticks of a processor, in which a program that waits for its disk shows, too.
const MOMENT: Duration = Duration::from_millis(300);

/// From here on rates of one candidate differ by more than the difference that counts.
const BUSY_PERCENT: u64 = 30;

/// The warning that stands before a trial on a busy machine.
#[must_use]
pub fn warning() -> Option<String> {
    let stat = || std::fs::read_to_string("/proc/stat").ok();
    let before = stat()?;
    sleep(MOMENT);
    let percent = percent(&before, &stat()?)?;
    (percent >= BUSY_PERCENT).then(|| {
        format!(
            "This machine is busy: other programs use or wait for {percent} % of its processors. The rates below are \
             lower than\nthose of a quiet one, and differ more from run to run.\n\n"
        )
    })
}

/// The part of the processors' time between two moments that was not idle, in percent.
fn percent(before: &str, after: &str) -> Option<u64> {
    let (before, after) = (times(before)?, times(after)?);
    let passed = |at: usize| after[at].saturating_sub(before[at]);
    let all: u64 = (0..before.len()).map(passed).sum();
    let busy = all.saturating_sub(passed(IDLE));
    (busy * 100).checked_div(all)
}

/// The place of the idle time in the line; the waits for storage behind it count as load.
const IDLE: usize = 3;

/// User, nice, system, idle, waiting, interrupts, soft interrupts, stolen: of all processors, in ticks.
fn times(stat: &str) -> Option<[u64; 8]> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let mut fields = line
        .split_whitespace()
        .skip(1)
        .map(|field| field.parse().ok());
    let mut times = [0; 8];
    for time in &mut times {
        *time = fields.next()??;
    }
    Some(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_is_not_idle_is_that_of_other_programs() {
        let stat = |times: &str| format!("cpu  {times} 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n");
        let before = stat("100 0 50 1000 10 0 0 0");
        assert_eq!(percent(&before, &stat("100 0 50 1060 10 0 0 0")), Some(0));
        assert_eq!(percent(&before, &stat("115 0 60 1020 20 1 2 2")), Some(66));
        assert_eq!(percent(&before, &stat("160 0 50 1000 10 0 0 0")), Some(100));
        assert_eq!(percent(&before, &before), None);
        for broken in ["", "cpu  1 2 3\n", "cpu  a b c d e f g h\n"] {
            assert_eq!(percent(broken, &before), None, "{broken}");
        }
    }
}
