//! Draws of a seed of the swarm: a workload and devices, from the lists of them.
//!
//! Nothing here names a workload or a device, so one that is added to its list is drawn. The range
//! of a workload's parameter follows from its name, because a run must stay small; an unknown name
//! fails the test, and then gets its line in [`parameter`].
//!
//! The stand-ins have no size to draw, and are thousands of reads each: one seed in
//! [`STAND_IN_EVERY`] gets one, in turn.

use forerun_core::spec::{Method, Param, Spec};
use forerun_sim::device::{self, scheduler};
use forerun_sim::random::Random;
use forerun_sim::workload;

/// 1000 seeds run each of the nine stand-ins twice.
const STAND_IN_EVERY: u64 = 50;

/// Sizes that the parameters of one workload share.
struct Sizes {
    file: u64,
    read: u64,
    think: u64,
}

/// Only their order depends on a parameter.
fn is_stand_in(spec: &Spec) -> bool {
    spec.params.iter().all(|param| param.name == "seed")
}

fn specs<B>(list: &'static [Method<B>], wanted: impl Fn(&Spec) -> bool) -> Vec<&'static Spec> {
    let specs = list.iter().map(|method| &method.spec);
    specs.filter(|spec| wanted(spec)).collect()
}

/// A workload with its parameters, as a user would write it.
pub(super) fn workload(seed: u64, random: &mut Random) -> String {
    let file = match random.chance(700) {
        true => random.between(1 << 14, 1 << 22),
        false => random.magnitude(22),
    };
    let sizes = Sizes {
        file,
        read: (1 + random.magnitude(17)).max(file >> 10),
        think: random.magnitude(21),
    };
    let spec = if seed.is_multiple_of(STAND_IN_EVERY) {
        let stand_ins = specs(workload::LIST, is_stand_in);
        stand_ins[(seed / STAND_IN_EVERY) as usize % stand_ins.len()]
    } else {
        let sized = specs(workload::LIST, |spec| !is_stand_in(spec));
        *random.pick(&sized).unwrap()
    };
    written(spec, |param| parameter(random, param, &sizes))
}

fn written(spec: &Spec, mut value: impl FnMut(&Param) -> u64) -> String {
    let params = spec.params.iter();
    let params: Vec<String> = params
        .map(|param| format!("{}={}", param.name, value(param)))
        .collect();
    match params.as_slice() {
        [] => spec.name.to_owned(),
        params => format!("{}({})", spec.name, params.join(",")),
    }
}

fn parameter(random: &mut Random, param: &Param, sizes: &Sizes) -> u64 {
    let Sizes { file, read, think } = *sizes;
    match param.name {
        "file_bytes" => file,
        "read_bytes" | "take_bytes" => read,
        "ask_bytes" => random.between(read, 1 << 23),
        "think_ns" => think,
        "seed" => random.number(),
        "stride_bytes" => random.between(read.min(file >> 10).max(1), 4 * read),
        "align_bytes" => random.between(1, 8192),
        "reads" => random.below(300),
        "streams" | "readers" | "band" => random.between(1, 40),
        "files" | "folders" => random.between(1, 5),
        "total_bytes" => file,
        "random_bytes" => file >> 4,
        "clients" => random.between(1, 20),
        "bytes_per_second" => random.between(10_000, 100_000_000),
        "every_ns" => random.below(1_000_000_000),
        "mapping_bytes" => 4096 + (file >> 4),
        "index_bytes" => (8 << 12) + file,
        "mean_bytes" => 1 + (file >> 4),
        "request_bytes" => read.clamp(512, 1 << 20),
        "requests" | "opens" => random.below(30),
        "threads" | "handlers" => random.between(1, 20),
        "read_ns" | "start_ns" | "pause_ns" => think,
        "pauses" => random.below(5),
        "metadata" => random.between(0, 2),
        "ahead_bytes" => random.magnitude(18),
        "append_ns" => think,
        "folder_files" => random.between(1, 60),
        "small_bytes" => 1 + (file >> 6),
        "order" => random.between(0, 3),
        "octaves" => random.between(param.min, param.max),
        "opening_reads" | "passes" => random.between(1, 3),
        _ if param.max - param.min == 1 => random.between(param.min, param.max),
        name => panic!("the swarm has no range for {name}: give it a line"),
    }
}

/// A device of the list; sometimes several of it side by side, sometimes behind a scheduler.
pub(super) fn device(random: &mut Random) -> String {
    let spec = &random.pick(device::LIST).unwrap().spec;
    let mut text = written(spec, |param| near(random, param));
    if random.chance(150) {
        let (disks, strip) = (random.between(1, 6), random.between(512, 1 << 17));
        text = format!("array(disks={disks},strip_bytes={strip}):{text}");
    }
    if random.chance(300) {
        let spec = &random.pick(scheduler::LIST).unwrap().spec;
        text = format!("{}:{text}", written(spec, |param| near(random, param)));
    }
    text
}

/// Mostly the usual value, else up to eight times more or less, or the least there is.
fn near(random: &mut Random, param: &Param) -> u64 {
    let eighth = param.default / 8;
    let drawn = match random.below(10) {
        0..5 => param.default,
        5 => param.min,
        _ => random.between(eighth, param.default.saturating_mul(8)),
    };
    drawn.clamp(param.min, param.max)
}
