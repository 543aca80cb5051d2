//! `forerun layout`: a file's devices, its striping, and its fragmentation.
//!
//! Asks [`geometry`](forerun_io::geometry) once and prints the answer, for people or as JSON. A
//! file whose geometry is not known can be read like any other, so that is no failure: the reason
//! is printed in the place of the layout. Neither the file's data nor anything on the device is
//! read or written.
//!
//! The figures: an *extent* is a run of the file that is one run of an array; a strip is *cut* if
//! an extent begins or ends inside of it, so that reading the strip takes two requests; the *share*
//! of a device is the part of the mapped bytes that can be read from it, and copies count for each.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use comfy_table::CellAlignment;
use forerun_core::layout::LayoutMap;
use forerun_core::{Bytes, DeviceId};
use forerun_io::geometry::{
    CopyChoice, Discovery, DiskArray, DiskMember, FileExtent, Geometry, Level, Omissions, Omitted,
    Rotation, UNIT_BYTES,
};
use serde_json::{Value, json};

use crate::args;
use crate::failure::Failure;
use crate::files::{self, plain};
use crate::quantity::{rough_size, size};
use crate::terminal;

/// Arrays and extents that are shown to people: a screen.
const SHOWN: usize = 8;

/// Runs the command.
///
/// # Errors
/// Not a file that could be read, or output that cannot be written.
pub fn run(args: &args::Layout, out: &mut dyn Write) -> Result<(), Failure> {
    let path = &args.file;
    files::check(path)?;
    let unusable = |e| Failure::unusable(path, plain(&e));
    let file = File::open(path).map_err(unusable)?;
    let found = Discovery::default().of(file.as_fd());
    let found = found.map_err(|refused| refused.to_string());
    let text = match args.json {
        true => format!("{:#}\n", as_json(path, &found)),
        false => as_text(path, &found),
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

type Found = Result<Geometry, String>;

fn as_text(path: &Path, found: &Found) -> String {
    let geometry = match found {
        Ok(geometry) => geometry,
        Err(refused) => {
            let path = path.display();
            return format!(
                "{path}\n\nlayout      not known: {refused}\n            reads take the file \
                 for one run on one device\n"
            );
        }
    };
    let bytes = rough_size(geometry.bytes.0 as f64);
    let mut text = format!("{}, {bytes}\n\n", path.display());
    let mut line = |title: &str, words: String| {
        // Writing to memory cannot fail.
        let _ = writeln!(text, "{title:10}  {words}");
    };
    line("layout", layout(geometry));
    line("found by", found_by(path, geometry));
    line("extents", extents(geometry));
    if let Some(words) = copies_read(geometry) {
        line("copies", words.to_owned());
    }
    if geometry.is_striped() {
        line("strips cut", strips_cut(geometry));
    }
    for words in omitted(&geometry.omitted) {
        line("left out", words);
    }
    if let Some(from) = geometry.unknown_from {
        let from = rough_size(from.0 as f64);
        line(
            "unknown",
            format!("from {from} on: too many extents; counted as one run"),
        );
    }
    if !geometry.extents.is_empty() {
        text.push('\n');
        text += &devices(geometry);
        text.push('\n');
        text += &arrays(geometry);
        text.push('\n');
        text += &places(geometry);
    }
    text
}

/// A block device has no extents.
fn found_by(path: &Path, geometry: &Geometry) -> String {
    let is_device = path
        .metadata()
        .is_ok_and(|m| m.file_type().is_block_device());
    match is_device {
        true => geometry.source.to_string(),
        false => format!("FIEMAP and {}", geometry.source),
    }
}

/// `raid10 of 4, strips of 64KiB`, of each kind once.
fn layout(geometry: &Geometry) -> String {
    let mut kinds: Vec<String> = Vec::new();
    for kind in geometry.arrays.iter().map(kind) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    match kinds.is_empty() {
        true => "none: no part of it has a place on a device".to_owned(),
        false => kinds.join("; "),
    }
}

fn kind(array: &DiskArray) -> String {
    let (name, count) = (array.level.name(), array.members.len());
    let members = match array.level {
        Level::Linear => return format!("linear on {}", array.members[0].device.path.display()),
        Level::Dup => "twice on one device".to_owned(),
        Level::Raid1 => format!("{count} copies"),
        Level::Raid10 { copies } => format!("{count} devices, {copies} copies"),
        _ => format!("{count} devices"),
    };
    match array.strip {
        Bytes(0) => format!("{name}, {members}"),
        strip => format!("{name}, {members}, strips of {}", size(strip)),
    }
}

fn extents(geometry: &Geometry) -> String {
    let count = geometry.extents.len();
    match count {
        0 => "none".to_owned(),
        1 => "1: it is in one run".to_owned(),
        _ => format!(
            "{count}, {} each on average",
            rough_size(mean_run(geometry))
        ),
    }
}

fn mapped(geometry: &Geometry) -> u64 {
    geometry.extents.iter().map(|extent| extent.bytes.0).sum()
}

fn mean_run(geometry: &Geometry) -> f64 {
    mapped(geometry) as f64 / geometry.extents.len().max(1) as f64
}

/// Which copy a read takes, where that can be chosen.
fn copies_read(geometry: &Geometry) -> Option<&'static str> {
    let has_copies = geometry.arrays.iter().any(|array| {
        let is_mirror = matches!(array.level, Level::Raid1 | Level::Raid10 { .. });
        is_mirror && copies(array) > 1
    });
    has_copies.then_some(match geometry.copy_choice {
        CopyChoice::ThreadNumber => "the number of the reading thread says which one is read",
        _ => "the kernel chooses the one that is read",
    })
}

fn strips_cut(geometry: &Geometry) -> String {
    let strip = geometry.arrays.iter().map(|array| array.strip.0).max();
    let all = mapped(geometry).div_ceil(strip.unwrap_or(0).max(UNIT_BYTES));
    format!(
        "{} by the border of an extent; the file fills {all}",
        geometry.strips_cut()
    )
}

/// Each kind of extents without a place that there is, in words.
fn omitted(omitted: &Omissions) -> Vec<String> {
    let kinds = kinds_omitted(omitted).into_iter();
    let kinds = kinds.filter(|(_, _, omitted)| omitted.extents > 0);
    kinds
        .map(|(_, words, omitted)| {
            let Omitted { extents, bytes } = omitted;
            let plural = if extents == 1 { "" } else { "s" };
            let bytes = rough_size(bytes as f64);
            format!("{extents} extent{plural}, {bytes}: {words}")
        })
        .collect()
}

/// Name, words and figures of each kind.
fn kinds_omitted(omitted: &Omissions) -> [(&'static str, &'static str, Omitted); 6] {
    [
        ("holes", "holes, which read as zeros", omitted.holes),
        (
            "unwritten",
            "allocated and not written, which read as zeros",
            omitted.unwritten,
        ),
        (
            "encoded",
            "compressed or encrypted, without a place for each byte",
            omitted.encoded,
        ),
        ("inline", "inside of metadata", omitted.inline),
        (
            "delayed",
            "not on the device yet (sync writes it)",
            omitted.delayed,
        ),
        (
            "unknown",
            "a place that the file system does not tell",
            omitted.unknown,
        ),
    ]
}

fn devices(geometry: &Geometry) -> String {
    let mapped = mapped(geometry).max(1) as f64;
    let rows = geometry.members().into_iter().map(|found| {
        let share = found.bytes as f64 / mapped * 100.0;
        let bytes = rough_size(found.bytes as f64);
        vec![
            name(&found.member),
            number(&found.member),
            bytes,
            format!("{share:.1} %"),
        ]
    });
    table(["device", "number", "bytes", "share"], rows, &[2, 3])
}

/// `/dev/sda`, or the third disk behind it.
fn name(member: &DiskMember) -> String {
    let path = member.device.path.display();
    match member.part {
        0 => path.to_string(),
        part => format!("{path}, disk {part}"),
    }
}

fn number(member: &DiskMember) -> String {
    let (major, minor) = member.device.number;
    format!("{major}:{minor}")
}

fn arrays(geometry: &Geometry) -> String {
    let row = |(number, array): (usize, &DiskArray)| {
        let members = array.members.iter().map(|member| {
            let begin = size(member.begin);
            format!("{} {begin}", name(member))
        });
        let members: Vec<_> = members.collect();
        vec![number.to_string(), kind(array), members.join(", ")]
    };
    let rows = geometry.arrays.iter().enumerate().take(SHOWN).map(row);
    let title = ["array", "kind", "members, and where it begins there"];
    table(title, rows, &[]) + &more(geometry.arrays.len())
}

fn places(geometry: &Geometry) -> String {
    let mut members: Vec<DiskMember> = Vec::new();
    let placement = geometry.placement(UNIT_BYTES as u32, |member| {
        let is_known =
            |known: &DiskMember| known.device == member.device && known.part == member.part;
        let known = members.iter().position(is_known);
        DeviceId(known.unwrap_or_else(|| {
            members.push(member.clone());
            members.len() - 1
        }) as u16)
    });
    let placement = placement.ok();
    let map = placement.and_then(|placement| LayoutMap::new(&placement, UNIT_BYTES as u32));
    let row = |extent: &FileExtent| {
        let place = map.as_ref().map(|map| map.copy(extent.offset.0, 0));
        let place = place.and_then(|place| {
            let member = members.get(usize::from(place.device.0))?;
            Some(format!("{} {}", name(member), size(place.position)))
        });
        vec![
            size(extent.offset).to_string(),
            size(extent.bytes).to_string(),
            extent.array.to_string(),
            size(extent.at).to_string(),
            place.unwrap_or_default(),
        ]
    };
    let rows = geometry.extents.iter().take(SHOWN).map(row);
    let title = ["extent at", "length", "array", "address", "first byte on"];
    table(title, rows, &[0, 1, 2, 3]) + &more(geometry.extents.len())
}

fn more(count: usize) -> String {
    match count.checked_sub(SHOWN) {
        None | Some(0) => String::new(),
        Some(more) => format!("and {more} more: --json has them\n"),
    }
}

/// Columns as wide as their cells; those with these numbers are numbers.
fn table<const N: usize>(
    title: [&str; N],
    rows: impl Iterator<Item = Vec<String>>,
    numbers: &[usize],
) -> String {
    let mut table = terminal::table(0, 60);
    table.set_header(title).add_rows(rows);
    for column in numbers {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // The cells have a space on each side.
    let lines = table.lines();
    let lines = lines.map(|line| format!("{}\n", line.trim_end().strip_prefix(' ').unwrap_or("")));
    lines.collect()
}

fn as_json(path: &Path, found: &Found) -> Value {
    let file = path.display().to_string();
    let geometry = match found {
        Ok(geometry) => geometry,
        Err(refused) => return json!({"file": file, "found_by": null, "refused": refused}),
    };
    let kinds = kinds_omitted(&geometry.omitted).into_iter();
    let left_out: serde_json::Map<_, _> = kinds
        .map(|(name, _, omitted)| {
            let Omitted { extents, bytes } = omitted;
            (name.to_owned(), json!({"extents": extents, "bytes": bytes}))
        })
        .collect();
    let member = |member: &DiskMember| {
        let (major, minor) = member.device.number;
        json!({
            "path": member.device.path.display().to_string(),
            "major": major,
            "minor": minor,
            "part": member.part,
        })
    };
    let devices = geometry.members().into_iter().map(|found| {
        let mut device = member(&found.member);
        device["bytes"] = found.bytes.into();
        device
    });
    let array = |array: &DiskArray| {
        let members = array.members.iter().map(|one| {
            let mut one_as_json = member(one);
            one_as_json["begin_bytes"] = one.begin.0.into();
            one_as_json
        });
        json!({
            "level": array.level.name(),
            "strip_bytes": array.strip.0,
            "copies": copies(array),
            "rotation": rotation(array.level),
            "members": members.collect::<Value>(),
        })
    };
    let extent = |extent: &FileExtent| {
        json!({
            "offset_bytes": extent.offset.0,
            "length_bytes": extent.bytes.0,
            "array": extent.array,
            "address_bytes": extent.at.0,
            "flags": extent.flags,
        })
    };
    json!({
        "file": file,
        "bytes": geometry.bytes.0,
        "found_by": found_by(path, geometry),
        "refused": null,
        "mapped_bytes": mapped(geometry),
        "mean_run_bytes": mean_run(geometry),
        "copies": copies_read(geometry),
        "strips_cut": geometry.strips_cut(),
        "left_out": left_out,
        "unknown_from_bytes": geometry.unknown_from.map(|from| from.0),
        "devices": devices.collect::<Value>(),
        "arrays": geometry.arrays.iter().map(array).collect::<Value>(),
        "extents": geometry.extents.iter().map(extent).collect::<Value>(),
    })
}

fn copies(array: &DiskArray) -> usize {
    match array.level {
        Level::Raid1 | Level::Dup => array.members.len(),
        Level::Raid10 { copies } => usize::from(copies),
        _ => 1,
    }
}

fn rotation(level: Level) -> Option<&'static str> {
    match level {
        Level::Raid5(rotation) | Level::Raid6(rotation) => Some(match rotation {
            Rotation::Left => "left",
            Rotation::Right => "right",
        }),
        _ => None,
    }
}
