//! Content that is a function of a seed, a file's index and the position: nothing is stored.
//!
//! Read by the backends for files opened with [`crate::Driver::open_generated`], and used by
//! readers of such files to check the bytes. Each aligned group of eight bytes is two rounds
//! of multiply and fold over its position and the file's key, so a byte from a wrong file or a
//! wrong place is found with near certainty, at memory speed.
//!
//! It is not random enough for anything but recognition.

/// Odd constants with well spread bits: 2^64 / golden ratio, and one of splitmix64.
const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND: u64 = 0x94d0_49bb_1331_11eb;

/// The key of one file's content.
fn key(seed: u64, index: u64) -> u64 {
    mix(seed.wrapping_mul(SECOND) ^ mix(index.wrapping_add(FIRST)))
}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_mul(FIRST);
    let x = (x ^ (x >> 29)).wrapping_mul(SECOND);
    x ^ (x >> 32)
}

fn group(key: u64, position: u64) -> [u8; 8] {
    mix(key ^ position).to_le_bytes()
}

/// Writes the content of file `index` under `seed` that begins at byte `offset`.
pub fn fill(seed: u64, index: u64, offset: u64, buf: &mut [u8]) {
    let key = key(seed, index);
    let skew = (offset % 8) as usize;
    let mut position = offset / 8;
    let mut rest = buf;
    if skew != 0 {
        let (head, tail) = rest.split_at_mut(rest.len().min(8 - skew));
        head.copy_from_slice(&group(key, position)[skew..skew + head.len()]);
        (position, rest) = (position.wrapping_add(1), tail);
    }
    let mut groups = rest.chunks_exact_mut(8);
    for chunk in &mut groups {
        chunk.copy_from_slice(&group(key, position));
        position = position.wrapping_add(1);
    }
    let tail = groups.into_remainder();
    tail.copy_from_slice(&group(key, position)[..tail.len()]);
}

/// Compares bytes that should be the content of file `index` under `seed` at byte `offset`.
///
/// # Errors
/// The first offset in the file whose byte is another.
pub fn check(seed: u64, index: u64, offset: u64, buf: &[u8]) -> Result<(), u64> {
    let mut wanted = [0; 4096];
    for (i, part) in buf.chunks(wanted.len()).enumerate() {
        let at = offset + (i * wanted.len()) as u64;
        let wanted = &mut wanted[..part.len()];
        fill(seed, index, at, wanted);
        if part != wanted {
            let first = part
                .iter()
                .zip(wanted.iter())
                .position(|(a, b)| a != b)
                .unwrap_or(0);
            return Err(at + first as u64);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_piece_equals_the_same_piece_of_the_whole() {
        let mut whole = [0; 200];
        fill(1, 2, 0, &mut whole);
        for offset in 0..32 {
            for length in 0..64 {
                let mut piece = vec![0; length];
                fill(1, 2, offset as u64, &mut piece);
                assert_eq!(piece, whole[offset..offset + length]);
            }
        }
    }

    #[test]
    fn files_and_seeds_differ_and_the_first_wrong_byte_is_named() {
        let mut a = vec![0; 10_000];
        fill(1, 2, 3, &mut a);
        assert_eq!(check(1, 2, 3, &a), Ok(()));
        assert!(check(1, 3, 3, &a).is_err());
        assert!(check(2, 2, 3, &a).is_err());
        a[7_777] ^= 1;
        assert_eq!(check(1, 2, 3, &a), Err(3 + 7_777));
    }
}
