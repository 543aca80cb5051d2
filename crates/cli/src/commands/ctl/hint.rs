//! `forerun ctl MOUNT hint`: a list of announced reads, from a file or standard input.
//!
//! The whole list is read and checked before the first range is announced, so a slip in line 900
//! leaves nothing half done. It goes to the mount in parts of a bounded size, in order, until the
//! mount accepts no more; the answers are added up to one.
//!
//! ```text
//! big.db 1048576 65536        64 KiB from 1 MiB on
//! train/shard-7               the whole file
//! /fast/my file<TAB>0<TAB>4KiB    tabs, because of the blank; a path with the mount point before it
//! ```

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write, stdin};
use std::path::{Component, Path};

use crate::commands::ctl::print;
use crate::failure::Failure;
use crate::files::{open_stream, plain};
use crate::mount::announced::{FULL, PART_PATHS_MAX, PATIENCE, Range, Taken};
use crate::mount::control::{Answer, Question, REQUEST_BYTES_MAX, ask, ask_within};
use crate::mount::sockets::Sockets;
use crate::quantity::parse_size;

/// Most lines of a list: as many reads as a mount of 128 MiB keeps in order.
const LINES_MAX: usize = 65_536;

/// Longest line: a path (`PATH_MAX`) and two numbers.
const LINE_BYTES_MAX: u64 = 4096 + 64;

/// Bytes of ranges in one request, which has a limit. Characters of a path may take six times their
/// bytes in JSON.
const PART_BYTES_MAX: u64 = REQUEST_BYTES_MAX / 2;

const FORM: &str = "PATH, or PATH OFFSET LENGTH (with tabs between them if PATH has blanks)";

/// Announces the ranges of a list.
///
/// # Errors
/// A list that is not as it should be, by its line; no mount, or none of the ranges was taken.
pub(super) fn run(
    mount: &Path,
    list: &Path,
    sockets: &Sockets,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let lines: Box<dyn Read> = match list == Path::new("-") {
        true => Box::new(stdin()),
        false => Box::new(open_stream(list)?),
    };
    let lines = parse(&mut BufReader::new(lines), list)?;
    let socket = sockets.find(mount)?;
    let mountpoint = match ask(&socket, &Question::Stats)? {
        Answer::Stats(report) => report.mountpoint,
        other => {
            return Err(Failure::broken(
                &socket,
                format!("not an answer: {other:?}"),
            ));
        }
    };
    let mut ranges = Vec::new();
    for (number, range) in lines {
        ranges.push(below(range, Path::new(&mountpoint)).map_err(|why| at(list, number, &why))?);
    }
    let taken = announce(&socket, &ranges)?;
    print(&taken, out)?;
    match (taken.taken, taken.refused.first()) {
        (0, Some(refused)) => Err(Failure::Run(format!(
            "{}: nothing was announced: {}: {}",
            list.display(),
            refused.first,
            refused.why
        ))),
        _ => Ok(()),
    }
}

fn at(list: &Path, line: usize, why: &str) -> Failure {
    Failure::unusable(list, format!("line {line}: {why}"))
}

/// The ranges of a list, each with its line.
fn parse(lines: &mut dyn BufRead, list: &Path) -> Result<Vec<(usize, Range)>, Failure> {
    let mut ranges = Vec::new();
    for number in 1.. {
        let mut line = Vec::new();
        let read = lines.take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line);
        let bytes = read.map_err(|e| Failure::unusable(list, plain(&e)))?;
        if bytes == 0 {
            break;
        }
        if bytes as u64 > LINE_BYTES_MAX {
            let why = format!("longer than {LINE_BYTES_MAX} bytes: expected {FORM}");
            return Err(at(list, number, &why));
        }
        let Ok(line) = str::from_utf8(&line) else {
            return Err(at(list, number, "is not text (UTF-8)"));
        };
        let line = line.trim_end_matches(['\n', '\r']);
        if line.trim().is_empty() {
            continue;
        }
        if ranges.len() == LINES_MAX {
            let why = format!(
                "a list has at most {LINES_MAX} ranges: announce the rest once these were read"
            );
            return Err(at(list, number, &why));
        }
        let range = range_of(line).map_err(|why| at(list, number, &why))?;
        ranges.push((number, range));
    }
    match ranges.is_empty() {
        true => Err(Failure::unusable(
            list,
            format!("names no file: expected {FORM}"),
        )),
        false => Ok(ranges),
    }
}

/// The range that a line names.
fn range_of(line: &str) -> Result<Range, String> {
    let words: Vec<&str> = match line.contains('\t') {
        true => line
            .split('\t')
            .map(str::trim)
            .filter(|w| !w.is_empty())
            .collect(),
        false => line.split_whitespace().collect(),
    };
    let number = |word: &str| parse_size(word).map(|size| size.0);
    let (path, offset, bytes) = match words[..] {
        [path] => (path, 0, None),
        [path, offset, length] => {
            let refused = |why| format!("{line:?}: {why}: expected {FORM}");
            let offset = number(offset).map_err(|e| refused(format!("OFFSET {e}")))?;
            let length = number(length).map_err(|e| refused(format!("LENGTH {e}")))?;
            if length == 0 {
                return Err(refused("LENGTH must be at least 1".into()));
            }
            (path, offset, Some(length))
        }
        _ => return Err(format!("{line:?}: expected {FORM}")),
    };
    Ok(Range {
        path: path.to_owned(),
        offset,
        bytes,
    })
}

/// The range with its path as it is below the mount point.
fn below(range: Range, mountpoint: &Path) -> Result<Range, String> {
    let path = Path::new(&range.path);
    let below = match path.is_absolute() {
        false => path,
        true => path.strip_prefix(mountpoint).map_err(|_| {
            let point = mountpoint.display();
            format!("{:?} is not below {point}, where the mount is", range.path)
        })?,
    };
    if below.components().any(|part| part == Component::ParentDir) {
        return Err(format!(
            "{:?} has .. in it: name the file itself",
            range.path
        ));
    }
    let path = below.to_str().unwrap_or_default().to_owned();
    Ok(Range { path, ..range })
}

/// The length of the first part of a list: as many ranges as fit a request, of as many files as are opened in time.
fn part<'a>(ranges: &'a [Range]) -> usize {
    let (mut bytes, mut paths) = (0, BTreeSet::new());
    let exceeds = |range: &'a Range| {
        bytes += serde_json::to_string(range).map_or(0, |text| text.len() as u64 + 1);
        paths.insert(&range.path);
        bytes > PART_BYTES_MAX || paths.len() > PART_PATHS_MAX
    };
    ranges
        .iter()
        .position(exceeds)
        .unwrap_or(ranges.len())
        .max(1)
}

/// Announces ranges in parts; returns their fate. A part that is not answered in time is not announced, and those before
/// it are.
fn announce(socket: &Path, ranges: &[Range]) -> Result<Taken, Failure> {
    let mut taken = Taken::default();
    let mut left = ranges;
    while !left.is_empty() && !taken.is_full {
        let (part, rest) = left.split_at(part(left));
        let ranges = part.to_vec();
        match ask_within(socket, &Question::Hint { ranges }, PATIENCE) {
            Ok(Answer::Hints(more)) => taken.add(&more),
            Ok(Answer::Refused(why)) => return Err(Failure::unusable(socket, why)),
            Ok(other) => return Err(Failure::broken(socket, format!("not an answer: {other:?}"))),
            Err(failure) if taken.taken == 0 => return Err(failure),
            Err(failure) => {
                let (before, path) = (taken.taken, &part[0].path);
                let rest =
                    format!("{before} ranges before {path} are announced: announce the rest");
                return Err(Failure::Run(format!("{failure}; {rest}")));
            }
        }
        left = rest;
    }
    if let Some(first) = left.first() {
        taken.refuse(FULL, left.len() as u64, &first.path);
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(path: &str, offset: u64, bytes: Option<u64>) -> Range {
        let path = path.to_owned();
        Range {
            path,
            offset,
            bytes,
        }
    }

    #[test]
    fn a_line_is_a_path_or_a_path_with_offset_and_length() {
        let line = |line| range_of(line).unwrap();
        assert_eq!(line("a/b"), range("a/b", 0, None));
        assert_eq!(line("  a 64KiB  5 "), range("a", 65_536, Some(5)));
        assert_eq!(line("my file\t0\t4KiB"), range("my file", 0, Some(4096)));
        assert_eq!(line("my file\t"), range("my file", 0, None));
    }

    #[test]
    fn a_line_of_another_form_is_refused_with_its_number_and_the_form() {
        for (line, part) in [
            ("a 5", "expected PATH, or PATH OFFSET LENGTH"),
            ("a 1 2 3", "expected PATH, or PATH OFFSET LENGTH"),
            ("a x 2", "OFFSET \"x\" is not a size"),
            ("a 1 -2", "LENGTH \"-2\" is less than 0"),
            ("a 1 0", "LENGTH must be at least 1"),
        ] {
            let text = format!("good\n\nb 1 2\r\n{line}\n");
            let refused = parse(&mut text.as_bytes(), Path::new("list")).unwrap_err();
            let said = refused.to_string();
            assert!(
                said.starts_with("list: line 4: ") && said.contains(part),
                "{said}"
            );
        }
    }

    #[test]
    fn a_part_has_a_bounded_number_of_files_and_of_bytes_and_no_range_is_left_out() {
        let few_bytes = (0..3 * PART_PATHS_MAX).flat_map(|file| {
            let name = file.to_string();
            [range(&name, 0, Some(1)), range(&name, 1, Some(1))]
        });
        let long = "n".repeat(3000);
        let many_bytes = (0..64).map(|file| range(&format!("{long}{file}"), 0, None));
        let lists: [Vec<Range>; 2] = [few_bytes.collect(), many_bytes.collect()];
        for (list, parts) in lists.iter().zip([3, 7]) {
            let (mut left, mut lengths) = (&list[..], Vec::new());
            while !left.is_empty() {
                let length = part(left);
                let paths: BTreeSet<_> = left[..length].iter().map(|range| &range.path).collect();
                assert!(length > 0 && paths.len() <= PART_PATHS_MAX);
                lengths.push(length);
                left = &left[length..];
            }
            assert_eq!(lengths.len(), parts, "{lengths:?}");
        }
    }

    #[test]
    fn a_list_is_bounded_in_lines_and_their_length() {
        let long = "a".repeat(LINE_BYTES_MAX as usize + 1);
        let many = "a\n".repeat(LINES_MAX + 1);
        for (text, part) in [
            (long, "line 1: longer than"),
            (many, "line 65537: a list has"),
            ("\n \n".to_owned(), "list: names no file"),
        ] {
            let refused = parse(&mut text.as_bytes(), Path::new("list")).unwrap_err();
            assert!(refused.to_string().contains(part), "{refused}");
        }
        let all = "a\n".repeat(LINES_MAX);
        assert_eq!(
            parse(&mut all.as_bytes(), Path::new("-")).unwrap().len(),
            LINES_MAX
        );
    }

    #[test]
    fn a_path_begins_at_the_mount_point_or_has_it_before_it() {
        let below = |path| below(range(path, 1, None), Path::new("/fast")).map(|r| r.path);
        assert_eq!(below("a/b"), Ok("a/b".into()));
        assert_eq!(below("/fast/a/b"), Ok("a/b".into()));
        assert!(below("/faster/a").unwrap_err().contains("not below /fast"));
        assert!(below("a/../../etc").unwrap_err().contains(".."));
    }
}
