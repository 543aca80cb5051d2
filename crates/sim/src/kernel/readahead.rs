//! On-demand readahead of Linux 6.18: which pages a kernel reads when a page is missing, or has the mark of a window.
//!
//! The state of an open file is its last window. A miss opens the first one, and the mark in it, met, the next one, twice
//! to four times as long, up to the open file's limit:
//!
//! ```text
//! miss 0    |0..16#16..32|                 pages, # the mark; reads of 4 pages, limit 32
//! mark 16                |#32..64|         the mark at the begin from here on
//! mark 32                        |#64..96|
//! ```
//!
//! A window of a stream that runs is never shorter than the one before but by what aligns its end, so a lower limit
//! changes nothing before a miss. The test compares with events that a running kernel gave.

/// Whether a mapping has a page.
pub(super) type IsCached<'a> = &'a dyn Fn(u64) -> bool;

/// Largest request that the device takes, in pages: reads as long as that are read in one go.
pub(super) const REQUEST_PAGES: u64 = 320;
/// The largest folio, as a power of two pages.
const ORDER_MAX: u32 = 9;

/// Pages that are to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The first.
    pub start: u64,
    /// How many.
    pub size: u64,
    /// Those behind the mark; none has it if this is 0.
    pub async_size: u64,
}

/// The readahead of an open file.
#[derive(Clone, Debug)]
pub struct ReadAhead {
    window: Window,
    order: u32,
    /// Its limit of a window.
    pub limit: u64,
    /// The page behind the last read.
    next: Option<u64>,
}

impl ReadAhead {
    /// That of a file that was just opened.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            window: Window {
                start: 0,
                size: 0,
                async_size: 0,
            },
            order: 0,
            limit,
            next: None,
        }
    }

    /// Its last window.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }

    /// A read came so far.
    pub fn reached(&mut self, next: u64) {
        self.next = Some(next);
    }

    /// A page is missing, and the read asks for so many from there on.
    pub fn miss(&mut self, index: u64, asked: u64, is_cached: IsCached<'_>) -> Window {
        if self.limit == 0 {
            return alone(index, 1);
        }
        let most = self.most(asked);
        let follows = self
            .next
            .is_some_and(|next| index.checked_sub(next).is_some_and(|gap| gap <= 1));
        if index == 0 || asked > most || follows {
            let size = first_size(asked, most);
            let rest = size.saturating_sub(asked);
            return self.open(Window {
                start: index,
                size,
                async_size: if rest > 0 { rest } else { size >> 1 },
            });
        }
        let before = (0..index).rev().take(most as usize);
        let mut count = before.take_while(|page| is_cached(*page)).count() as u64;
        if count <= asked {
            return alone(index, asked);
        }
        if count == index {
            count *= 2;
        }
        self.open(Window {
            start: index,
            size: (count + asked).min(most),
            async_size: 1,
        })
    }

    /// A page has a mark, and the read asks for so many from there on; none where nothing is read.
    pub fn mark(&mut self, index: u64, asked: u64, is_cached: IsCached<'_>) -> Option<Window> {
        if self.limit == 0 {
            return None;
        }
        let most = self.most(asked);
        let Window {
            start,
            size,
            async_size,
        } = self.window;
        let (start, size) = if index == start + size - async_size {
            (start + size, size.max(next_size(size, most)))
        } else {
            let start = (index + 1..=index + most).find(|page| !is_cached(*page))?;
            (start, next_size(start - index + asked, most))
        };
        self.order += 2;
        let align = 1 << self.order.min(most.trailing_zeros());
        let end = (start + size) / align * align;
        let size = if end > start { end - start } else { size };
        let order = self.order;
        let window = self.open(Window {
            start,
            size,
            async_size: size,
        });
        self.order = order.min(ORDER_MAX).min(size.ilog2());
        Some(window)
    }

    /// A first window has the smallest order.
    fn open(&mut self, window: Window) -> Window {
        self.order = 0;
        self.window = window;
        window
    }

    fn most(&self, asked: u64) -> u64 {
        match asked > self.limit {
            true => self.limit.max(asked.min(REQUEST_PAGES)),
            false => self.limit,
        }
    }
}

/// Pages without a window.
fn alone(start: u64, size: u64) -> Window {
    Window {
        start,
        size,
        async_size: 0,
    }
}

fn first_size(asked: u64, most: u64) -> u64 {
    let size = asked.next_power_of_two();
    if size <= most / 32 {
        size * 4
    } else if size <= most / 4 {
        size * 2
    } else {
        most
    }
}

fn next_size(size: u64, most: u64) -> u64 {
    if size < most / 16 {
        size * 4
    } else if size <= most / 2 {
        size * 2
    } else {
        most
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Events of Linux 6.18.44 on ext4, by the tracepoints `readahead:page_cache_sync_ra` and `page_cache_async_ra`: kind,
    /// page, pages asked for, and of the window before order, size, pages behind its mark, limit. A case begins with
    /// `#`, the first byte, bytes and number of its reads, and the limits that were set before some. Pages of the kernel
    /// were in large folios, and two more marks, which changed nothing, are left out.
    const EVENTS: &str = include_str!("../../tests/data/readahead.txt");

    /// An open file with pages of so long a file.
    struct Mapping {
        ahead: ReadAhead,
        pages: BTreeSet<u64>,
        marks: BTreeSet<u64>,
        end: u64,
        events: Vec<String>,
    }

    impl Mapping {
        fn event(&mut self, kind: &str, index: u64, asked: u64) {
            let Window {
                size, async_size, ..
            } = self.ahead.window;
            let (order, limit) = (self.ahead.order, self.ahead.limit);
            self.events.push(format!(
                "{kind} {index} {asked} {order} {size} {async_size} {limit}"
            ));
        }

        fn fill(&mut self, window: Window) {
            let end = window.start + window.size;
            self.pages.extend(window.start..end.min(self.end));
            if window.async_size > 0 {
                self.marks.insert(end - window.async_size);
            }
        }

        fn read(&mut self, begin: u64, bytes: u64) {
            let end = ((begin + bytes).div_ceil(4096)).min(self.end);
            for page in begin / 4096..end {
                let asked = end - page;
                if !self.pages.contains(&page) {
                    self.event("miss", page, asked);
                    let pages = &self.pages;
                    let window = self.ahead.miss(page, asked, &|page| pages.contains(&page));
                    self.fill(window);
                }
                if self.marks.remove(&page) {
                    self.event("mark", page, asked);
                    let pages = &self.pages;
                    let window = self.ahead.mark(page, asked, &|page| pages.contains(&page));
                    window.into_iter().for_each(|window| self.fill(window));
                }
            }
            self.ahead.reached((begin + bytes) / 4096);
        }
    }

    #[test]
    fn windows_are_those_of_a_running_kernel() {
        let mut cases = 0;
        for case in EVENTS.split("# ").skip(1) {
            let (head, expected) = case.split_once('\n').unwrap();
            let numbers = |text: &str| {
                let of = |n: &str| n.parse::<u64>().unwrap();
                text.split_whitespace().map(of).collect::<Vec<_>>()
            };
            let (reads, limits) = head.split_once(':').unwrap();
            let [begin, bytes, count] = numbers(reads)[..] else {
                panic!("{head}");
            };
            let limits = numbers(limits);
            let mut mapping = Mapping {
                ahead: ReadAhead::new(32),
                pages: BTreeSet::new(),
                marks: BTreeSet::new(),
                end: 42 << 8,
                events: Vec::new(),
            };
            for read in 0..count {
                let set = limits.chunks(2).find(|set| set[0] == read);
                mapping.ahead.limit = set.map_or(mapping.ahead.limit, |set| set[1]);
                mapping.read(begin + read * bytes, bytes);
            }
            let expected: Vec<&str> = expected.lines().collect();
            assert_eq!(mapping.events, expected, "{head}");
            cases += 1;
        }
        assert_eq!(cases, 8);
    }

    #[test]
    fn random_reads_open_no_window_and_a_stream_that_is_cached_before_does() {
        let mut ahead = ReadAhead::new(32);
        let none = |_| false;
        assert_eq!(ahead.miss(4608, 16, &none), alone(4608, 16));
        ahead.reached(4624);
        assert_eq!(ahead.miss(100, 16, &none), alone(100, 16));
        let before = |page| (60..100).contains(&page);
        let window = ahead.miss(100, 4, &before);
        assert_eq!((window.size, window.async_size), (32, 1));
        assert_eq!(ahead.mark(7, 1, &|_| true), None, "no page is missing");
    }
}
