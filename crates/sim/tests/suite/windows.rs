//! The windows of Table 2 in Wu 2010, exactly (claim W1), and those of the readahead before it.

use forerun_core::Block;

use crate::stage::{DISK, issued, journal};

/// 4 KiB reads with a limit of 32 pages: (start, size, async_size) = (0, 4, 3), (4, 8, 8),
/// (12, 16, 16), and from then on 32. The async size is read off the block at which the next
/// window is issued: the mark stands that far before the window's end.
#[test]
fn windows_of_one_page_reads_are_those_of_table_2() {
    let (_, journal) = journal(
        "linux-2.6.24",
        DISK,
        "sequential(file_bytes=1048576,read_bytes=4096)",
    );
    let issued = issued(&journal);
    let windows: Vec<(u32, u32, u32)> = issued
        .windows(2)
        .map(|pair| {
            let (this, next) = (pair[0].extent, pair[1].at.unwrap());
            (
                this.first.0,
                this.count,
                (this.end() - u64::from(next.0)) as u32,
            )
        })
        .collect();
    for (window, one) in windows.iter().zip(&issued) {
        println!("window {window:?}, issued at block {}", one.at.unwrap());
    }
    assert_eq!(
        windows[..5],
        [
            (0, 4, 3),
            (4, 8, 8),
            (12, 16, 16),
            (28, 32, 32),
            (60, 32, 32)
        ]
    );
    let at: Vec<Block> = issued[..5].iter().filter_map(|one| one.at).collect();
    assert_eq!(at, [Block(0), Block(1), Block(4), Block(12), Block(28)]);
}

/// A file of 128 pages by the rules of Linux 2.6.3 and 2.6.10, in reads of one page and of sixteen: the headers of both
/// methods have the tables.
#[test]
fn windows_of_older_kernels_are_those_of_their_headers_whatever_the_size_of_reads() {
    for (preset, expected) in [
        (
            "linux-2.6.3",
            [(0, 16), (16, 34), (34, 66), (66, 98), (98, 128)].as_slice(),
        ),
        (
            "linux-2.6.10",
            &[(0, 16), (16, 33), (33, 58), (58, 90), (90, 122), (122, 128)],
        ),
    ] {
        for read_bytes in [4096, 65_536, 1000] {
            let load = format!("sequential(file_bytes=524288,read_bytes={read_bytes})");
            let (report, journal) = journal(preset, DISK, &load);
            let issued = issued(&journal);
            let windows = issued
                .iter()
                .map(|one| (one.extent.first.0, one.extent.end() as u32));
            assert_eq!(
                windows.collect::<Vec<_>>(),
                expected,
                "{preset} {read_bytes}"
            );
            assert_eq!(report.bytes.0, 524_288);
        }
    }
}
