//! The windows of Table 2 in Wu 2010, exactly (claim W1).

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
