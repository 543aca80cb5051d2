//! Rings: perf events of every processor, and the memory in which the kernel leaves their records.
//!
//! One ring a processor: the first event opens it, the others of that processor write into it too. The kernel filters
//! by device, so that files and disks that are not watched cost a comparison. A mark or a miss wakes the watcher at
//! once; requests of disks wait in the ring until it is a quarter full or the watcher comes anyway.
//!
//! ```text
//! page of the kernel   data_head: written by the kernel     16 pages of records, which wrap around
//!                      data_tail: written by us
//! ```
//!
//! A ring that is full drops events; the kernel then leaves a record that says how many.

#![expect(unsafe_code, reason = "perf_event_open has no safe interface")]

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use forerun_surface::failure::Failure;

use crate::limit::kernel_page;
use crate::sample::{Layouts, Record, SAMPLE_TYPE, Seeing};
use crate::tracepoint::Tracepoint;

/// Pages of records in a ring, a power of two. 64 KiB are 700 events: seven seconds of a disk's requests, and a
/// millisecond of a flash drive's.
const DATA_PAGES: usize = 16;
/// Bytes of the interface of Linux 4.1 (`PERF_ATTR_SIZE_VER5`), which every later kernel takes.
const ATTRIBUTE_BYTES: u32 = 112;
/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// The bits `watermark` and `use_clockid`.
const WATERMARK: u64 = 1 << 14;
const OWN_CLOCK: u64 = 1 << 25;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
/// `PERF_EVENT_IOC_ENABLE`, `_DISABLE`, `_SET_OUTPUT` and `_SET_FILTER`.
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
const SET_OUTPUT: libc::c_ulong = 0x2405;
const SET_FILTER: libc::c_ulong = 0x4008_2406;

/// `struct perf_event_attr` up to [`ATTRIBUTE_BYTES`].
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attribute {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// A ring of one processor.
struct Ring {
    memory: NonNull<u8>,
    bytes: usize,
    data: usize,
    /// The event that opened it, and the others.
    events: Vec<OwnedFd>,
}

/// The rings of all processors.
pub struct Rings {
    rings: Vec<Ring>,
    layouts: Layouts,
    /// Events that stay where disks are not watched.
    kept: usize,
    record: Vec<u8>,
}

impl Rings {
    /// Opens them, for these file systems, the devices that they send bios to, and disks, by their numbers in the kernel.
    ///
    /// # Errors
    /// The kernel refuses, and which right is missing.
    pub fn open(
        (seeing, points): (Seeing, &[Tracepoint]),
        [file_systems, queues, disks]: [&[u32]; 3],
    ) -> Result<Self, Failure> {
        let layouts = Layouts::new(seeing, points, kernel_page())?;
        let any = |field: &str, numbers: &[u32]| {
            let each = numbers.iter().map(|number| format!("{field} == {number}"));
            format!("({})", each.collect::<Vec<_>>().join(" || "))
        };
        let pages = match seeing {
            Seeing::Readahead => any("s_dev", file_systems),
            // Read, ahead, with and without a wait of the sender; of metadata none.
            Seeing::Block => format!(
                "{} && (rwbs == \"RA\" || rwbs == \"RAS\")",
                any("dev", queues)
            ),
        };
        let reads = format!("{} && rwbs ~ \"R*\"", any("dev", disks));
        let mut rings = Vec::new();
        for processor in processors()? {
            rings.push(Ring::open(seeing, points, [&pages, &reads], processor)?);
        }
        Ok(Self {
            rings,
            layouts,
            kept: match seeing {
                Seeing::Readahead => seeing.urgent().len(),
                // As many as requests of a disk.
                Seeing::Block => 0,
            },
            record: Vec::new(),
        })
    }

    /// What to wait for: each is readable once its ring has records that are urgent.
    pub fn readable(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(|ring| ring.events[0].as_fd())
    }

    /// Takes all records there are, in the order of their times.
    pub fn take(&mut self, records: &mut Vec<Record>) {
        records.clear();
        for ring in &mut self.rings {
            ring.take(&mut self.record, |bytes| {
                records.extend(self.layouts.record(bytes));
            });
        }
        records.sort_by_key(Record::time);
    }

    /// Lets disks tell of their requests, or not.
    pub fn watch_disks(&self, on: bool) {
        for ring in &self.rings {
            for event in &ring.events[self.kept..] {
                let request = if on { ENABLE } else { DISABLE };
                // SAFETY: the call takes no pointer, and the descriptor is open.
                let _ = unsafe { libc::ioctl(event.as_raw_fd(), request, 0) };
            }
        }
    }
}

impl Ring {
    fn open(
        seeing: Seeing,
        points: &[Tracepoint],
        [pages, reads]: [&str; 2],
        processor: i32,
    ) -> Result<Self, Failure> {
        let names = seeing.events();
        let open = |(at, point): (usize, &Tracepoint)| {
            let is_lazy = at >= seeing.urgent().len();
            let filter = match names[at].1 {
                _ if is_lazy => reads.to_owned(),
                // Neither a window before nor the begin of a file: a random read.
                "page_cache_sync_ra" => format!("{pages} && (size != 0 || index == 0)"),
                _ => pages.to_owned(),
            };
            let event = event(point.id, is_lazy, processor);
            event
                .and_then(|event| set_filter(&event, &filter).map(|()| event))
                .map_err(|error| refused(names[at], &error))
        };
        let events = points.iter().enumerate().map(open);
        let events = events.collect::<Result<Vec<_>, _>>()?;
        let first = events[0].as_raw_fd();
        let page = rustix::param::page_size();
        let bytes = page * (1 + DATA_PAGES);
        // SAFETY: a new mapping at an address of the kernel's choice; it is unmapped in `drop` and nowhere else.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                first,
                0,
            )
        };
        let memory = NonNull::new(memory.cast::<u8>()).filter(|_| memory != libc::MAP_FAILED);
        let Some(memory) = memory else {
            return Err(refused(names[0], &io::Error::last_os_error()));
        };
        let ring = Self {
            memory,
            bytes,
            data: page,
            events,
        };
        for event in &ring.events[1..] {
            // SAFETY: the call takes a descriptor by value, and both are open.
            if unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, first) } != 0 {
                return Err(refused(names[0], &io::Error::last_os_error()));
            }
        }
        Ok(ring)
    }

    /// A word of the kernel's page: `data_head` at 1024, `data_tail` behind it.
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the page is mapped for as long as `self` lives and aligned; both words lie within it, and the kernel
        // and this process access them as whole words.
        unsafe { self.memory.add(1024 + 8 * at).cast::<AtomicU64>().as_ref() }
    }

    fn take(&mut self, record: &mut Vec<u8>, mut found: impl FnMut(&[u8])) {
        let head = self.word(0).load(Ordering::Acquire);
        let mut tail = self.word(1).load(Ordering::Relaxed);
        while tail < head {
            self.copy(tail, 8, record);
            let size = record.get(6..8).map_or(0, |size| {
                usize::from(u16::from_ne_bytes([size[0], size[1]]))
            });
            if size < 8 || head - tail < size as u64 {
                // The kernel writes whole records; without one there is no way on but to drop the rest.
                tail = head;
                break;
            }
            self.copy(tail, size, record);
            found(record);
            tail += size as u64;
        }
        self.word(1).store(tail, Ordering::Release);
    }

    /// Copies bytes from this position on, which may wrap around.
    fn copy(&self, from: u64, count: usize, into: &mut Vec<u8>) {
        let room = self.bytes - self.data;
        into.clear();
        into.extend((0..count).map(|at| {
            let at = (from as usize).wrapping_add(at) % room;
            // SAFETY: `at` is below the size of the data pages, which are mapped behind the first one. The kernel
            // writes no byte between tail and head, and only such bytes are asked for.
            unsafe { self.memory.add(self.data + at).read() }
        }));
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped in `open` with this size, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

fn event(id: u64, is_lazy: bool, processor: i32) -> io::Result<OwnedFd> {
    let bytes = (DATA_PAGES * rustix::param::page_size() / 4) as u32;
    let (lazy, wakeup) = if is_lazy { (WATERMARK, bytes) } else { (0, 1) };
    let attribute = Attribute {
        kind: TRACEPOINT,
        size: ATTRIBUTE_BYTES,
        config: id,
        sample_period: 1,
        sample_type: SAMPLE_TYPE,
        flags: OWN_CLOCK | lazy,
        wakeup,
        clock: libc::CLOCK_MONOTONIC,
        ..Attribute::default()
    };
    // SAFETY: the kernel reads `size` bytes of the attribute, which has as many and lives through the call.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attribute,
            -1,
            processor,
            -1,
            CLOSE_ON_EXEC,
        )
    };
    match i32::try_from(opened) {
        // SAFETY: the kernel just made this descriptor, and no other owner has it.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set_filter(event: &OwnedFd, filter: &str) -> io::Result<()> {
    let filter = CString::new(filter)?;
    // SAFETY: the kernel reads the text up to its zero, and it lives through the call.
    match unsafe { libc::ioctl(event.as_raw_fd(), SET_FILTER, filter.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Why the kernel gives no events, in words.
fn refused((group, name): (&str, &str), error: &io::Error) -> Failure {
    let why = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => match lockdown() {
            Some(mode) => format!("kernel lockdown is in the mode {mode}, which allows no events"),
            None => {
                "permission denied: needs root, or CAP_PERFMON (a container may lack it)".into()
            }
        },
        Some(libc::ENOSYS) => "this kernel was built without perf events".into(),
        Some(libc::EMFILE) => "too many open files: raise the limit (ulimit -n)".into(),
        _ => error.to_string(),
    };
    Failure::Usage(format!("perf events of {group}:{name}: {why}"))
}

/// The mode of lockdown, if it is on.
fn lockdown() -> Option<String> {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").ok()?;
    let mode = text.split_once('[')?.1.split_once(']')?.0;
    (mode != "none").then(|| mode.to_owned())
}

/// The processors that are at work.
fn processors() -> Result<Vec<i32>, Failure> {
    let path = std::path::Path::new("/sys/devices/system/cpu/online");
    let text = fs::read_to_string(path).map_err(|error| Failure::unusable(path, error))?;
    listed(&text).ok_or_else(|| Failure::unusable(path, format!("no list: {text:?}")))
}

/// `0-3,8` are five.
fn listed(text: &str) -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (i32, i32) = (first.parse().ok()?, last.parse().ok()?);
        all.extend((first..=last).take(1 << 16));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        assert_eq!(listed("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(listed("0\n"), Some(vec![0]));
        assert_eq!(listed(""), None);
        assert_eq!(listed("a-b"), None);
    }

    #[test]
    fn the_attribute_is_as_long_as_it_says() {
        assert_eq!(size_of::<Attribute>(), ATTRIBUTE_BYTES as usize);
    }
}
