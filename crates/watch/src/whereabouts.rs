//! Whereabouts: the file and the position of a thread that waits for a read, from /proc.
//!
//! For the [second way of seeing](crate::bios), whose events name a thread and sectors alone. A thread that waits for a
//! disk is in a system call, and the kernel shows which and with which arguments:
//!
//! ```text
//! /proc/PID/task/TID/syscall     0 0x3 0x7f.. 0x20000 ..     read(3, .., 131072)
//! /proc/PID/fdinfo/3             pos: 4194304, mnt_id: 29, ino: 77
//! ```
//!
//! A thread that has gone on meanwhile, or reads by io_uring or by faults of a mapping, shows no such call. Then the
//! descriptor is known only if its process has one regular file of these file systems open, and no other.

use std::fs;
use std::thread;
use std::time::Duration;

use forerun_steering::events::FileKey;

use crate::bios::Whereabouts;
use crate::descriptors::{self, Descriptors};
use crate::windows::PAGE_BYTES;

/// How often a thread that runs is looked at, and how long apart.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_micros(50);

/// A system call that reads from a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Call {
    number: i32,
    /// None for the position of the open file.
    offset: Option<u64>,
    /// Bytes; 0 if that is not among the arguments.
    bytes: u64,
}

/// Where a thread of a process reads: by its call, else by the descriptor that is known of it. `limit` gives the own limit
/// of a file system that is watched.
pub(crate) fn of(
    descriptors: &mut Descriptors,
    (process, thread): (u32, u32),
    known: Option<i32>,
    limit: impl Fn(u32) -> Option<u32>,
) -> Option<Whereabouts> {
    let call = call(process, thread);
    let is_in_call = call.is_some();
    let call = match call {
        Some(call) => call,
        None => Call {
            number: match known {
                Some(number) => number,
                None => descriptors.only_one(process, |device| limit(device).is_some())?,
            },
            offset: None,
            bytes: 0,
        },
    };
    let told = descriptors::told(process, call.number)?;
    let device = descriptors.device_of(process, told.mount, |device| limit(device).is_some())?;
    Some(Whereabouts {
        key: FileKey {
            device,
            inode: told.inode,
        },
        page: call.offset.unwrap_or(told.position) / PAGE_BYTES,
        asked: call.bytes.div_ceil(PAGE_BYTES),
        limit: limit(device)?,
        number: call.number,
        is_in_call,
        has_offset: call.offset.is_some(),
    })
}

/// The call of a thread. One that runs is looked at again: it sends its bios and waits, or has read on.
fn call(process: u32, thread: u32) -> Option<Call> {
    let path = format!("/proc/{process}/task/{thread}/syscall");
    for _ in 0..LOOKS {
        let text = fs::read_to_string(&path).ok()?;
        if !text.starts_with("running") {
            return parse(&text);
        }
        thread::sleep(PAUSE);
    }
    None
}

/// `NUMBER ARGUMENT ..` with arguments in hexadecimal; `running`, or `-1` outside of a call.
fn parse(text: &str) -> Option<Call> {
    let mut words = text.split_ascii_whitespace();
    let number: libc::c_long = words.next()?.parse().ok()?;
    let hexadecimal = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let arguments: Vec<u64> = words.map_while(hexadecimal).collect();
    let argument = |at: usize| arguments.get(at).copied();
    let (file, offset, bytes) = match number {
        libc::SYS_read => (0, None, argument(2)?),
        libc::SYS_pread64 => (0, Some(argument(3)?), argument(2)?),
        libc::SYS_readv => (0, None, 0),
        libc::SYS_preadv | libc::SYS_preadv2 => (0, Some(argument(3)?), 0),
        // Its offset stands in the memory of the process; without one it is the position.
        libc::SYS_sendfile if argument(2)? == 0 => (1, None, argument(3)?),
        libc::SYS_splice if argument(1)? == 0 => (0, None, argument(4)?),
        _ => return None,
    };
    // `preadv2` takes -1 for the position of the open file.
    let offset = offset.filter(|offset| *offset != u64::MAX);
    Some(Call {
        number: i32::try_from(argument(file)?).ok()?,
        offset,
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call(number: libc::c_long, arguments: &str) -> Option<Call> {
        parse(&format!("{number} {arguments} 0x7ffc 0x7f3c\n"))
    }

    #[test]
    fn calls_that_read_name_their_descriptor_and_place() {
        let expected = |number, offset, bytes| {
            Some(Call {
                number,
                offset,
                bytes,
            })
        };
        let six = "0x3 0x7f00 0x20000 0x400000 0x5 0x0";
        assert_eq!(call(libc::SYS_read, six), expected(3, None, 131_072));
        let at = Some(0x40_0000);
        assert_eq!(call(libc::SYS_pread64, six), expected(3, at, 131_072));
        assert_eq!(call(libc::SYS_preadv, six), expected(3, at, 0));
        let current = "0x3 0x7f00 0x1 0xffffffffffffffff 0xffffffffffffffff 0x0";
        assert_eq!(call(libc::SYS_preadv2, current), expected(3, None, 0));
        let send = "0x5 0x3 0x0 0x1000 0x0 0x0";
        assert_eq!(call(libc::SYS_sendfile, send), expected(3, None, 4096));
        assert_eq!(
            call(libc::SYS_sendfile, six),
            None,
            "an offset in its memory"
        );
        assert_eq!(call(libc::SYS_openat, six), None);
        for text in ["running\n", "-1 0x7ffc 0x7f3c\n", "", "0\n", "0 3 4 5"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_call_or_none(text in "([0-9]{1,3} )?(0x[0-9a-f]{1,17} |\\PC{0,5} ){0,9}") {
            let _ = parse(&text);
        }
    }
}
