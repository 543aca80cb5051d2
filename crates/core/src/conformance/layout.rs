//! The suite of the layouts: bytes of a file to members and back.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use super::{Broken, Random, Rule, Rules};
use crate::layout::Layout;

/// Bytes that a seed asks for.
const QUESTIONS: u64 = 300;

/// Checks a layout. Several members are tried, as many as it uses, and places from the beginning of
/// the file to where offsets end.
///
/// # Errors
/// The first rule that it breaks.
pub fn layout(make: &dyn Fn() -> Box<dyn Layout>, seed: u64, but: &[Rule]) -> Result<(), Broken> {
    let rules = Rules { seed, but };
    let mut random = Random(seed);
    let (method, again) = (make(), make());
    let unit = method.unit();
    rules.check(Rule::UnitDivides, unit > 0, || "a unit of zero".into())?;
    let accepted: Vec<usize> = (1..=32).filter(|n| method.accepts(*n)).collect();
    let drawn = random.below(accepted.len().max(1) as u64) as usize;
    let members = accepted.get(drawn).copied().unwrap_or(1);
    let copies = method.copies();
    let data = method.data_members(members);
    let counts = copies > 0 && data > 0 && copies * data <= members;
    rules.check(Rule::MembersSuffice, counts, || {
        format!("{data} strips of {copies} copies on {members} members")
    })?;
    // The beginning of each run seen, by place: the byte of the file that lies there.
    let mut seen: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    for question in 0..QUESTIONS {
        let near = question % 2 == 0;
        let offset = random.magnitude(if near { 24 } else { 62 });
        let piece = method.piece(offset, members);
        let asked = || format!("byte {offset} of {members} members: {piece:?}");
        let exists = piece.member + copies <= members && piece.bytes > 0;
        rules.check(Rule::PieceExists, exists, asked)?;
        let same = again.piece(offset, members) == piece && method.piece(offset, members) == piece;
        rules.check(Rule::Deterministic, same, asked)?;
        let end = offset.saturating_add(piece.bytes);
        let whole = end == u64::MAX || end % unit.max(1) == 0;
        rules.check(Rule::UnitDivides, whole, asked)?;
        // A byte somewhere in the run, and its last one.
        for further in [random.below(piece.bytes), piece.bytes - 1] {
            let there = method.piece(offset.saturating_add(further), members);
            let follows = there.member == piece.member
                && there.offset == piece.offset.saturating_add(further)
                && there.bytes == piece.bytes - further;
            rules.check(Rule::RunIsWhole, follows, || {
                format!("byte {offset}: {piece:?}, and {further} bytes on: {there:?}")
            })?;
        }
        let place = (piece.member, piece.offset);
        let other = *seen.entry(place).or_insert(offset);
        rules.check(Rule::PiecesApart, other == offset, || {
            format!("bytes {other} and {offset} of {members} members: {piece:?}")
        })?;
    }
    // Bytes that follow each other are the likeliest to lie at one place.
    let mut offset = random.magnitude(30);
    let mut last: BTreeMap<usize, u64> = BTreeMap::new();
    for _ in 0..QUESTIONS {
        let piece = method.piece(offset, members);
        let apart = last
            .get(&piece.member)
            .is_none_or(|end| *end <= piece.offset);
        rules.check(Rule::PiecesApart, apart, || {
            format!("byte {offset} of {members} members: {piece:?}, inside the run before")
        })?;
        let end = piece.offset.saturating_add(piece.bytes);
        last.insert(piece.member, end);
        offset = offset.saturating_add(piece.bytes);
        if offset > u64::MAX / 2 {
            break;
        }
    }
    stripes(
        &rules,
        &*method,
        members,
        random.below(1 << 20) * data as u64,
    )?;
    // No number of members is too small or too large to be asked.
    for members in [0, 1, usize::MAX] {
        let _ = method.piece(u64::MAX, members);
    }
    Ok(())
}

/// Over as many stripes as there are members each member is read equally often, and no two strips
/// of one stripe lie on one member.
fn stripes(
    rules: &Rules<'_>,
    method: &dyn Layout,
    members: usize,
    first: u64,
) -> Result<(), Broken> {
    if method.unit() == 1 {
        return Ok(());
    }
    let (data, copies) = (method.data_members(members) as u64, method.copies());
    let mut strips = alloc::vec![0u64; members];
    for row in 0..members as u64 {
        let mut used = alloc::vec![false; members];
        for turn in 0..data {
            let strip = first + row * data + turn;
            let piece = method.piece(strip * method.unit(), members);
            for member in piece.member..piece.member + copies {
                let is_new = !core::mem::replace(&mut used[member], true);
                rules.check(Rule::StripesSpread, is_new, || {
                    format!("strip {strip} of {members} members: {piece:?}, as one before")
                })?;
                strips[member] += 1;
            }
        }
    }
    let is_even = strips.iter().all(|count| *count == strips[0]);
    rules.check(Rule::StripesSpread, is_even, || {
        format!("strips of each of {members} members, over as many rows: {strips:?}")
    })
}
