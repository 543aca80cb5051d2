//! `forerun try` of the objects of a store.
//!
//! Each installed peer reads once, and the fastest is the second candidate beside plain ranges.

use std::time::Duration;

use super::told::Told;
use super::{check_seconds, command, headline, readers, rows, share, side};
use crate::args::Try;
use crate::failure::Failure;
use crate::sources::Sources;
use crate::trial::files::Chosen;
use crate::trial::peers::{self, Bucket};
use crate::trial::side::Side;
use crate::trial::store::{Objects, Ranges};
use crate::trial::{TURNS, busy, verdict};

/// The candidate without reading ahead.
const RANGES: &str = "ranges";

/// The part of the time in which peers are chosen from, each with its mount.
const CHOICE_PERCENT: u32 = 10;

/// The longest run of a peer that is chosen from.
const CHOICE_MAX: Duration = Duration::from_secs(2);

pub(super) fn run(args: &Try, url: &str, told: &mut Told<'_>) -> Result<(), Failure> {
    let sources = Sources::within(args.memory).anonymous(args.anonymous);
    let (objects, chosen) = Objects::of(sources.tree(url)?)?;
    told.text(&busy::warning().unwrap_or_default())?;
    let what = format!(
        "Read in turns, for at most {} s; ranges are GETs of 8 MiB, one after the other",
        args.seconds
    );
    told.text(&headline(args, &chosen, "object", &what))?;
    let peer = best_peer(args, &sources, url, &chosen, told)?;
    let ranges = Ranges { objects };
    let forerun = side(args, &chosen, told)?;
    let mut names = vec![Some(RANGES)];
    let mut sides: Vec<&dyn Side> = vec![&ranges];
    if let Some((name, peer)) = &peer {
        names.push(Some(*name));
        sides.push(peer.as_ref());
    }
    sides.push(forerun.as_ref());
    check_seconds(args, &chosen, sides.len())?;
    // Caches of a store or a peer cannot be emptied from here: each run begins with other parts and a new mount.
    let rows = rows(args, &chosen, &names, &sides, &|_| Ok(()), told)?;
    told.text(&verdict::text_of_store(&rows, &command(args, &chosen)))
}

/// A side and its name.
type Named = (&'static str, Box<dyn Side>);

/// The installed peer that reads fastest with most readers, if any can read at all.
fn best_peer(
    args: &Try,
    sources: &Sources,
    url: &str,
    chosen: &Chosen,
    told: &mut Told<'_>,
) -> Result<Option<Named>, Failure> {
    let Some(bucket) = Bucket::of(url) else {
        return Ok(None);
    };
    let endpoint = sources.endpoint(url)?;
    let bucket = Bucket {
        endpoint: endpoint.url,
        region: endpoint.region,
        is_anonymous: !endpoint.is_signed,
        ..bucket
    };
    let installed = peers::installed(&bucket);
    if installed.is_empty() {
        told.text(
            "Neither rclone, s3fs-fuse nor Python's s3fs is installed: beside plain ranges alone.\n\n",
        )?;
        return Ok(None);
    }
    let readers = readers(args, chosen).last().copied().unwrap_or(1);
    let parts = chosen.divide(readers, TURNS - 1, TURNS);
    let each = share(args, readers) * CHOICE_PERCENT / 100;
    let each = each.min(CHOICE_MAX);
    let mut best: Option<(f64, &'static str, Box<dyn Side>)> = None;
    for (name, peer) in installed {
        match peer.begin().and_then(|run| run.rate(&parts, each)) {
            Ok(rate) if best.as_ref().is_none_or(|(most, ..)| *most < rate) => {
                best = Some((rate, name, peer));
            }
            Ok(_) => {}
            Err(why) => {
                told.text(&format!(
                    "Without {name}, which cannot read this: {why}\n\n"
                ))?;
            }
        }
    }
    Ok(best.map(|(_, name, peer)| (name, peer)))
}
