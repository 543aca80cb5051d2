//! Descriptors that this process was started with, kept from the processes it starts.
//!
//! Problem: a descriptor goes on to every process that is started, and a daemon has it for life. A lock that a script
//! has on it stays locked, and the reader of a pipe waits for its end. Descriptors that this program opens end with it;
//! those it was given do not.
//!
//! Mechanism: `close_range(2)` marks them all to be closed in the next program (Linux 5.11; before that they go on).
//! Example: of the descriptors 0 to 12, `inherit_only(&[9])` leaves 0, 1, 2 and 9.

use std::ops::RangeInclusive;

/// The first that is no standard stream.
const FIRST: u32 = 3;

/// Programs started from now on have the standard streams, and of the other descriptors those named.
pub fn inherit_only(named: &[u32]) {
    for others in beside(named) {
        let (first, last) = others.into_inner();
        // SAFETY: the call takes numbers and touches no memory, and closes nothing: it sets a flag that counts when
        // this process becomes another program.
        unsafe {
            libc::syscall(
                libc::SYS_close_range,
                first,
                last,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
    }
}

/// All numbers but these.
fn beside(named: &[u32]) -> Vec<RangeInclusive<u32>> {
    let mut named = named.to_vec();
    named.sort_unstable();
    let mut others = Vec::new();
    let mut from = FIRST;
    for number in named {
        if number > from {
            others.push(from..=number - 1);
        }
        from = from.max(number.saturating_add(1));
    }
    others.push(from..=u32::MAX);
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_standard_streams_and_those_named_are_marked() {
        assert_eq!(beside(&[]), [3..=u32::MAX]);
        assert_eq!(beside(&[9, 0, 2, 3, 9, 4]), [5..=8, 10..=u32::MAX]);
        assert_eq!(beside(&[63, 5]), [3..=4, 6..=62, 64..=u32::MAX]);
    }
}
