//! Names nearest to one that is in no list: for messages on a preset, a method or a flag that is misspelt.

use alloc::vec::Vec;

/// The three known names nearest to `name`: names that contain it or that it contains come first, then
/// those with fewer letters to change.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut nearest: Vec<&'a str> = known.collect();
    let is_part = |known: &str| !name.is_empty() && (known.contains(name) || name.contains(known));
    nearest.sort_by_key(|known| (!is_part(known), edit_distance(name, known)));
    nearest.truncate(3);
    nearest
}

/// Fewest insertions, deletions and replacements that turn one name into the other.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn names_that_have_a_part_in_common_come_first() {
        let known = ["cp", "ap", "demand-lru", "lru-cp"].into_iter();
        assert_eq!(
            nearest("lru", known.clone()),
            ["lru-cp", "demand-lru", "cp"]
        );
        assert_eq!(nearest("", known)[0], "cp");
    }
}
