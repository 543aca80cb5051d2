//! Counting policies beside plain ones: lists in vectors, searched from end to end, written from the papers again.
//!
//! Random references to few objects and to many; every hit and miss must agree. Worked examples are in the table
//! of [`examples_by_hand`]. All policies of the list keep the rules of every cache.

use std::collections::BTreeMap;

use forerun_core::spec::Choice;
use forerun_sim::count::optimum::Uses;
use forerun_sim::count::policy::{LIST, Policy};
use forerun_sim::random::Random;

fn policy(name: &str, capacity: u64) -> Box<dyn Policy> {
    Choice::parse("policy", LIST, name).unwrap().build()(capacity, 0)
}

/// `h` for a hit and `.` for a miss of each reference.
fn hits(name: &str, capacity: u64, references: impl IntoIterator<Item = (u32, u32)>) -> String {
    let mut policy = policy(name, capacity);
    let hit = |(object, weight)| policy.reference(object, weight);
    let hits = references.into_iter().map(hit);
    hits.map(|hit| if hit { 'h' } else { '.' }).collect()
}

fn units(objects: &[u32]) -> Vec<(u32, u32)> {
    objects.iter().map(|object| (*object, 1)).collect()
}

#[rustfmt::skip]
#[test]
fn examples_by_hand() {
    let cases: &[(&str, u64, &[u32], &str)] = &[
        // 3 comes in for 1, though 1 was used again.
        ("fifo", 2, &[1, 2, 1, 3, 1, 2], "..h..."),
        ("lru", 2, &[1, 2, 1, 3, 1, 2], "..h.h."),
        // The hand clears the bit of 1, passes, and gives 2 up.
        ("clock", 2, &[1, 2, 1, 3, 1, 2], "..h.h."),
        // 4 comes in for 2, as the hand passes 1; 5 for 3, where the hand stands; 1 is still there.
        ("sieve", 3, &[1, 2, 3, 1, 4, 5, 1, 4, 2], "...h..hh."),
        // 1 climbs at its second use; 2, 3 and 4 pass through the lowest segment.
        ("slru(segments=2)", 2, &[1, 1, 2, 3, 4, 1], ".h...h"),
        // A1in holds 1 of 4; 1 is remembered, comes back and stays in Am while 3, 4, 5 pass.
        ("2q", 4, &[1, 2, 3, 4, 5, 1, 6, 7, 1, 8, 1], "........h.h"),
        // 1 is used twice, and a scan of 2 to 5 leaves it: T1 alone gives up.
        ("arc", 2, &[1, 1, 2, 3, 4, 5, 1], ".h....h"),
        // 1 and 2 are LIR, 3 and 4 pass through the queue of one.
        ("lirs", 3, &[1, 2, 3, 4, 5, 1, 2], ".....hh"),
        // 3 comes back while the stack knows it, and 1 at its bottom is given up next.
        ("lirs", 3, &[1, 2, 3, 4, 3, 5, 1, 2], ".......h"),
        // The small queue holds 1 of 4; 1 was used three times and goes to main.
        ("s3-fifo", 4, &[1, 1, 1, 2, 3, 4, 5, 6, 7, 1], ".hh......h"),
        // 1 and 2 were used twice, so nothing new comes in for them.
        ("w-tinylfu", 3, &[1, 1, 2, 2, 3, 3, 4, 5, 6, 1, 2], ".h.h.h...hh"),
        // 1 has two uses; 2 was used longer ago than 3; 4 begins at rank 1 + 1.
        ("lfu-da", 2, &[1, 1, 2, 3, 1, 2], ".h..h."),
    ];
    for (name, capacity, objects, wanted) in cases {
        assert_eq!(hits(name, *capacity, units(objects)), *wanted, "{name}: {objects:?}");
    }
    // A large object is given up before two small ones that were used as often.
    let sized = [(1, 10), (2, 1), (3, 1), (4, 2), (2, 1), (3, 1), (1, 10)];
    assert_eq!(hits("gdsf", 12, sized), "....hh.");
    assert_eq!(hits("lru", 12, sized), "....hh.");
    assert_eq!(hits("gdsf", 12, [(2, 1), (3, 1), (1, 10), (2, 1), (4, 2), (3, 1), (1, 10)]), "...h.h.");
}

/// A plain cache: takes a reference, gives back whether it hit.
type Plain = Box<dyn FnMut(u32) -> bool>;

fn take(list: &mut Vec<u32>, object: u32) -> bool {
    let at = list.iter().position(|own| *own == object);
    at.map(|at| list.remove(at)).is_some()
}

/// Lists have the last to come at their end.
fn plain_queue(size: usize, moves: bool) -> Plain {
    let mut list: Vec<u32> = Vec::new();
    Box::new(move |object| {
        let hit = list.contains(&object);
        if hit && moves {
            take(&mut list, object);
            list.push(object);
        }
        if !hit && size > 0 {
            if list.len() == size {
                list.remove(0);
            }
            list.push(object);
        }
        hit
    })
}

/// A ring with a hand, as the paper draws it: a new page takes the frame of the victim.
fn plain_clock(size: usize) -> Plain {
    let mut ring: Vec<(u32, bool)> = Vec::new();
    let mut hand = 0;
    Box::new(move |object| {
        if let Some(frame) = ring.iter_mut().find(|frame| frame.0 == object) {
            frame.1 = true;
            return true;
        }
        if ring.len() < size {
            ring.push((object, false));
        } else if size > 0 {
            while std::mem::take(&mut ring[hand].1) {
                hand = (hand + 1) % size;
            }
            ring[hand] = (object, false);
            hand = (hand + 1) % size;
        }
        false
    })
}

fn plain_sieve(size: usize) -> Plain {
    // The oldest first; the hand is a position.
    let mut list: Vec<(u32, bool)> = Vec::new();
    let mut hand = 0;
    Box::new(move |object| {
        if let Some(own) = list.iter_mut().find(|own| own.0 == object) {
            own.1 = true;
            return true;
        }
        if size == 0 {
            return false;
        }
        if list.len() == size {
            loop {
                if hand == list.len() {
                    hand = 0;
                }
                if !std::mem::take(&mut list[hand].1) {
                    break;
                }
                hand += 1;
            }
            list.remove(hand);
            // At the front the hand goes back to the end before anything new comes in.
            if hand == list.len() {
                hand = 0;
            }
        }
        list.push((object, false));
        false
    })
}

fn plain_slru(size: usize, segments: usize) -> Plain {
    let mut lists: Vec<Vec<u32>> = vec![Vec::new(); segments];
    Box::new(move |object| {
        let found = (0..segments).find(|at| take(&mut lists[*at], object));
        let Some(at) = found else {
            if size > 0 {
                if lists.iter().map(Vec::len).sum::<usize>() == size {
                    let lowest = lists.iter_mut().find(|list| !list.is_empty());
                    lowest.unwrap().remove(0);
                }
                let room = lists.iter().position(|list| list.len() < size / segments);
                lists[room.unwrap_or(0)].push(object);
            }
            return false;
        };
        let mut at = (at + 1).min(segments - 1);
        lists[at].push(object);
        while at > 0 && lists[at].len() > size / segments {
            let falls = lists[at].remove(0);
            at -= 1;
            lists[at].push(falls);
        }
        true
    })
}

fn plain_two_q(size: usize) -> Plain {
    let (mut inside, mut outside, mut main) = (Vec::new(), Vec::new(), Vec::new());
    let (k_in, k_out) = ((size / 4).max(1), size / 2);
    Box::new(move |object| {
        if take(&mut main, object) {
            main.push(object);
            return true;
        }
        if inside.contains(&object) {
            return true;
        }
        if size == 0 {
            return false;
        }
        let was_out = take(&mut outside, object);
        if inside.len() + main.len() == size {
            if inside.len() > k_in || main.is_empty() {
                outside.push(inside.remove(0));
                if outside.len() > k_out {
                    outside.remove(0);
                }
            } else {
                main.remove(0);
            }
        }
        if was_out {
            main.push(object)
        } else {
            inside.push(object)
        }
        false
    })
}

/// The cases of the paper, one by one.
fn plain_arc(size: usize) -> Plain {
    const ONE: usize = 1 << 16;
    let [mut t1, mut t2, mut b1, mut b2]: [Vec<u32>; 4] = Default::default();
    let mut p = 0;
    fn replace(
        t1: &mut Vec<u32>,
        t2: &mut Vec<u32>,
        b1: &mut Vec<u32>,
        b2: &mut Vec<u32>,
        p: usize,
        in_b2: bool,
    ) {
        let once = t1.len() * ONE;
        if !t1.is_empty() && (once > p || (in_b2 && once == p) || t2.is_empty()) {
            b1.push(t1.remove(0));
        } else {
            b2.push(t2.remove(0));
        }
    }
    Box::new(move |object| {
        if size == 0 {
            return false;
        }
        if take(&mut t1, object) || take(&mut t2, object) {
            t2.push(object);
            return true;
        }
        if b1.contains(&object) {
            p = (p + (b2.len() * ONE / b1.len()).max(ONE)).min(size * ONE);
            take(&mut b1, object);
            replace(&mut t1, &mut t2, &mut b1, &mut b2, p, false);
            t2.push(object);
        } else if b2.contains(&object) {
            p = p.saturating_sub((b1.len() * ONE / b2.len()).max(ONE));
            take(&mut b2, object);
            replace(&mut t1, &mut t2, &mut b1, &mut b2, p, true);
            t2.push(object);
        } else {
            let total = t1.len() + t2.len() + b1.len() + b2.len();
            if t1.len() + b1.len() == size {
                if t1.len() < size {
                    b1.remove(0);
                    replace(&mut t1, &mut t2, &mut b1, &mut b2, p, false);
                } else {
                    t1.remove(0);
                }
            } else if total >= size {
                if total == 2 * size {
                    b2.remove(0);
                }
                replace(&mut t1, &mut t2, &mut b1, &mut b2, p, false);
            }
            t1.push(object);
        }
        false
    })
}

fn plain_lirs(size: usize) -> Plain {
    let high = (size / 100).max(1).min(size);
    let (mut stack, mut queue): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut low: Vec<u32> = Vec::new();
    Box::new(move |object| {
        if size == 0 {
            return false;
        }
        let is_low = low.contains(&object);
        let is_high = take(&mut queue, object);
        if !is_low && !is_high && low.len() + queue.len() == size {
            if queue.is_empty() {
                // All are LIR only where the queue's share is the whole cache or was just emptied.
                let bottom = stack.iter().position(|own| low.contains(own)).unwrap();
                take(&mut low, stack[bottom]);
                stack.drain(..=bottom);
                queue.clear();
            } else {
                queue.remove(0);
            }
        }
        let was_known = take(&mut stack, object);
        stack.push(object);
        let rises = !is_low && (was_known || (!is_high && low.len() < size - high));
        if rises {
            low.push(object);
        } else if !is_low {
            queue.push(object);
        }
        while low.len() > size - high {
            let bottom = stack.iter().position(|own| low.contains(own)).unwrap();
            let falls = stack[bottom];
            stack.drain(..=bottom);
            take(&mut low, falls);
            queue.push(falls);
        }
        while stack.first().is_some_and(|bottom| !low.contains(bottom)) && (is_low || rises) {
            stack.remove(0);
        }
        is_low || is_high
    })
}

fn plain_s3_fifo(size: usize) -> Plain {
    let part = (size / 10).max(1).min(size);
    let (mut small, mut main, mut ghost): (Vec<u32>, Vec<u32>, Vec<u32>) = Default::default();
    let mut freq: BTreeMap<u32, u32> = BTreeMap::new();
    let mut was_full = false;
    fn evict_main(main: &mut Vec<u32>, freq: &mut BTreeMap<u32, u32>) {
        while !main.is_empty() {
            let tail = main.remove(0);
            let count = freq.get_mut(&tail).unwrap();
            if *count == 0 {
                return;
            }
            *count -= 1;
            main.push(tail);
        }
    }
    Box::new(move |object| {
        if size == 0 {
            return false;
        }
        if small.contains(&object) || main.contains(&object) {
            let count = freq.get_mut(&object).unwrap();
            *count = (*count + 1).min(3);
            return true;
        }
        let was_ghost = take(&mut ghost, object);
        if small.len() + main.len() == size {
            was_full = true;
            if main.len() > size - part || small.is_empty() {
                evict_main(&mut main, &mut freq);
            } else {
                while !small.is_empty() {
                    let tail = small.remove(0);
                    if freq[&tail] <= 1 {
                        ghost.push(tail);
                        break;
                    }
                    freq.insert(tail, 0);
                    main.push(tail);
                }
                // All of the small queue moved: main is full now.
                if small.len() + main.len() == size {
                    evict_main(&mut main, &mut freq);
                }
                if ghost.len() > size - part {
                    ghost.remove(0);
                }
            }
        }
        freq.insert(object, 0);
        if was_ghost || (!was_full && small.len() >= part) {
            main.push(object)
        } else {
            small.push(object)
        }
        false
    })
}

fn plain_w_tinylfu(size: usize) -> Plain {
    let wide = (size / 100).max(1).min(size);
    let (mut window, mut probation, mut protected): (Vec<u32>, Vec<u32>, Vec<u32>) =
        Default::default();
    let mut uses: BTreeMap<u32, u8> = BTreeMap::new();
    let mut counted = 0;
    Box::new(move |object| {
        let count = uses.entry(object).or_default();
        *count = (*count + 1).min(15);
        counted += 1;
        if counted >= 10 * (window.len() + probation.len() + protected.len()).max(1) {
            counted /= 2;
            uses.values_mut().for_each(|count| *count /= 2);
        }
        if take(&mut window, object) {
            window.push(object);
            return true;
        }
        if take(&mut probation, object) || take(&mut protected, object) {
            protected.push(object);
            if protected.len() > (size - wide) * 8 / 10 {
                probation.push(protected.remove(0));
            }
            return true;
        }
        if size == 0 {
            return false;
        }
        window.push(object);
        if window.len() > wide {
            let candidate = window.remove(0);
            if size == wide {
                return false;
            }
            if probation.len() + protected.len() == size - wide {
                let list = if probation.is_empty() {
                    &mut protected
                } else {
                    &mut probation
                };
                if uses[&candidate] <= uses[&list[0]] {
                    return false;
                }
                list.remove(0);
            }
            probation.push(candidate);
        }
        false
    })
}

/// Ranks as whole numbers, for sizes that divide 128; objects weigh what `weight` says.
fn plain_ranked(size: u64, weight: fn(u32) -> u64, by_size: bool) -> Plain {
    // Object, rank, last use, uses.
    let mut kept: Vec<(u32, u64, u64, u64)> = Vec::new();
    let (mut age, mut now) = (0, 0);
    let rank = move |object, uses: u64| {
        if by_size {
            uses * 128 / weight(object)
        } else {
            uses * 128
        }
    };
    Box::new(move |object| {
        now += 1;
        if let Some(own) = kept.iter_mut().find(|own| own.0 == object) {
            own.3 += 1;
            (own.1, own.2) = (age + rank(object, own.3), now);
            return true;
        }
        if weight(object) > size {
            return false;
        }
        while kept.iter().map(|own| weight(own.0)).sum::<u64>() + weight(object) > size {
            let least = kept.iter().map(|own| (own.1, own.2)).min().unwrap();
            age = least.0;
            kept.retain(|own| (own.1, own.2) != least);
        }
        kept.push((object, age + rank(object, 1), now, 1));
        false
    })
}

/// References of a kind: uniform, skewed, a loop with noise, or a scan among few.
fn drawn(random: &mut Random, count: usize) -> Vec<u32> {
    let objects = random.between(2, 60);
    let kind = random.below(4);
    let mut scan = 1000;
    (0..count as u64)
        .map(|at| {
            let object = match kind {
                0 => random.below(objects),
                1 => random
                    .below(objects)
                    .min(random.below(objects))
                    .min(random.below(objects)),
                2 if random.chance(900) => at % objects,
                3 if random.chance(300) => {
                    scan += 1;
                    scan
                }
                _ => random.below(objects),
            };
            object as u32
        })
        .collect()
}

#[test]
fn every_hit_is_that_of_the_plain_policy() {
    type Make = fn(usize) -> Plain;
    let plains: &[(&str, Make)] = &[
        ("fifo", |size| plain_queue(size, false)),
        ("lru", |size| plain_queue(size, true)),
        ("clock", plain_clock),
        ("sieve", plain_sieve),
        ("slru", |size| plain_slru(size, 4)),
        ("slru(segments=2)", |size| plain_slru(size, 2)),
        ("2q", plain_two_q),
        ("arc", plain_arc),
        ("lirs", plain_lirs),
        ("s3-fifo", plain_s3_fifo),
        ("w-tinylfu", plain_w_tinylfu),
        ("lfu-da", |size| plain_ranked(size as u64, |_| 1, false)),
        ("gdsf", |size| plain_ranked(size as u64, |_| 1, true)),
    ];
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let objects = drawn(&mut random, 600);
        let size = if seed % 10 == 0 {
            random.between(100, 250)
        } else {
            random.below(30)
        };
        for (name, plain) in plains {
            let mut plain = plain(size as usize);
            let wanted: String = objects
                .iter()
                .map(|object| if plain(*object) { 'h' } else { '.' })
                .collect();
            let found = hits(name, size, units(&objects));
            assert_eq!(found, wanted, "seed {seed}: {name} of {size}");
        }
    }
}

#[test]
fn ranks_go_by_size() {
    // Sizes that are powers of two, so that all ranks are exact.
    let weight = |object: u32| [1, 2, 4, 8, 16, 32, 64, 128][object as usize % 8];
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let objects = drawn(&mut random, 500);
        let size = random.between(1, 400);
        for by_size in [false, true] {
            let mut plain = plain_ranked(size, weight, by_size);
            let wanted: String = objects
                .iter()
                .map(|object| if plain(*object) { 'h' } else { '.' })
                .collect();
            let sized = objects
                .iter()
                .map(|object| (*object, weight(*object) as u32));
            let name = if by_size { "gdsf" } else { "lfu-da" };
            assert_eq!(
                hits(name, size, sized),
                wanted,
                "seed {seed}: {name} of {size}"
            );
        }
    }
}

#[test]
fn every_policy_keeps_the_rules_of_a_cache() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let objects = drawn(&mut random, 800);
        let distinct: std::collections::BTreeSet<u32> = objects.iter().copied().collect();
        let uses = Uses::of(objects.clone());
        for method in LIST {
            let name = method.spec.name;
            for size in [0, 1, 2, 3, 10, 50, distinct.len() as u64, 5000] {
                let mut policy = policy(name, size);
                let mut known = std::collections::BTreeSet::new();
                let mut misses = 0;
                for object in &objects {
                    let before = policy.resident();
                    let hit = policy.reference(*object, 1);
                    assert!(
                        !hit || known.contains(object),
                        "{name}: a hit of what never came"
                    );
                    assert!(
                        !hit || policy.resident() == before,
                        "{name}: a hit gives nothing up"
                    );
                    assert!(policy.resident() <= size, "{name}");
                    known.insert(*object);
                    misses += u64::from(!hit);
                }
                assert!(misses >= uses.misses(size), "{name} of {size}, seed {seed}");
                if size >= distinct.len() as u64 {
                    assert_eq!(
                        misses,
                        distinct.len() as u64,
                        "{name}: nothing need be given up"
                    );
                }
            }
            let size = random.between(1, 3000);
            let mut sized = policy(name, size);
            for object in &objects {
                let weight = [1, 7, 90, 800, 4000][*object as usize % 5];
                let hit = sized.reference(*object, weight);
                assert!(sized.resident() <= size, "{name} by sizes");
                assert!(
                    !hit || u64::from(weight) <= size,
                    "{name}: an object that does not fit"
                );
            }
        }
    }
}
