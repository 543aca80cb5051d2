//! x
#![allow(
    missing_docs,
    clippy::print_stdout,
    reason = "a program that prints a table"
)]
use forerun_baselines::METHODS;
use forerun_core::journal::Entry;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Input, Nanos, Output, Profile};
use forerun_sim::device::switching::Switching;
use forerun_sim::workload::many_readers::ManyReaders;
use forerun_sim::workload::{Step, Steps, Workload};
use forerun_sim::{Record, Scene, device};

struct Beside {
    streams: ManyReaders,
    file_bytes: u64,
    other: u64,
    think: u64,
}
impl std::fmt::Debug for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("b")
    }
}
impl Workload for Beside {
    fn files(&self) -> Vec<Bytes> {
        let mut f = self.streams.files();
        f.extend(vec![Bytes(self.file_bytes); self.other as usize]);
        f
    }
    fn readers(&self) -> Vec<usize> {
        (0..self.streams.readers + self.other as usize).collect()
    }
    fn steps(&self, r: usize) -> Steps<'_> {
        if r < self.streams.readers {
            self.streams.steps(r)
        } else {
            let think = self.think;
            let r = r as u64;
            Box::new(
                (1..1_000_000u64)
                    .map(move |n| Step::read((n * 7_919 + r * 1237) % 20_000 * 4096, 4096, think)),
            )
        }
    }
}
/// waits of reads
struct Waits {
    streams: u32,
    asked: std::collections::BTreeMap<u32, (u32, u64)>,
    longest: u64,
    other: Vec<u64>,
    now: u64,
    last: (u64, u64, u64, u64),
    turns: Vec<(u64, u32, u64, u64)>,
    owner: std::collections::BTreeMap<u32, u32>,
    file_turns: bool,
    extra: Vec<(u64, u64)>,
}
impl Record for Waits {
    fn entry(&mut self, e: &Entry) {
        match e {
            Entry::Input(now, input) => {
                self.now = now.0;
                match input {
                    Input::Read { read, reader, .. } => {
                        self.asked.entry(read.0).or_insert((reader.0, now.0));
                    }
                    _ => {}
                }
            }
            Entry::Output(Output::Serve { read, .. }) => {
                if let Some((r, at)) = self.asked.remove(&read.0) {
                    let w = self.now - at;
                    if r < self.streams {
                        if w > self.longest {
                            self.longest = w;
                            self.extra.push((self.now, u64::from(r)));
                        }
                    } else {
                        self.other.push(w)
                    }
                }
            }
            Entry::Output(Output::Fetch(f)) if self.file_turns => {
                let (file, first, end) =
                    (f.extent.file.0, u64::from(f.extent.first.0), f.extent.end());
                match self.turns.last_mut() {
                    Some(t) if t.1 == file && t.3 == first => t.3 = end,
                    _ => self.turns.push((self.now, file, first, end)),
                }
            }
            _ => {}
        }
    }
}
fn main() {
    let env = |n: &str, d: f64| {
        std::env::var(n)
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(d)
    };
    let switching = (env("SW", 8.0) * 1e6) as u64;
    let rate = (env("RATE", 80.0) * 1e6) as u64;
    let readers = env("N", 64.0) as usize;
    let until = (env("T", 30.0) * 1e9) as u64;
    let memory = (env("MEM", 256.0) * 1048576.0) as u64;
    let other = env("OTHER", 0.0) as u64;
    let think = (env("THINK", 0.0) * 1e6) as u64;
    let think_s = (env("STHINK", 0.0) * 1e6) as u64;
    let workload = Beside {
        streams: ManyReaders {
            file_bytes: 8 << 30,
            read_bytes: env("READ", 65536.0) as u64,
            think_ns: think_s,
            readers,
            shared: false,
        },
        file_bytes: 100_000_000,
        other,
        think,
    };
    let preset = std::env::var("PRESET").unwrap_or("mount".into());
    let mut s = forerun_baselines::preset(&preset)
        .unwrap()
        .settings(Bytes(memory))
        .unwrap();
    if let Ok(d) = std::env::var("DISPATCH") {
        s.dispatch = Choice::parse("dispatch", METHODS.dispatch, &d).unwrap();
    }
    if let Ok(d) = std::env::var("DETECT") {
        s.detect = Choice::parse("detect", METHODS.detect, &d).unwrap();
    }
    let mut scene = match std::env::var("DEV") {
        Ok(d) => Scene::new(s, device::parse(&d).unwrap(), &workload),
        _ => Scene::new(
            s,
            Switching::new(Profile::constant(Nanos(switching), rate).unwrap()),
            &workload,
        ),
    };
    scene.until = Some(Nanos(until));
    if std::env::var("COPY").is_ok() {
        scene.copy_bytes_per_second = 2_000_000_000;
    }
    let mut w = Waits {
        streams: readers as u32,
        asked: Default::default(),
        longest: 0,
        other: vec![],
        now: 0,
        last: (0, 0, 0, 0),
        turns: vec![],
        owner: Default::default(),
        file_turns: std::env::var("TURNS").is_ok(),
        extra: vec![],
    };
    let _ = (&w.last, &w.owner);
    let r = scene.run(&mut w).unwrap();
    let b: Vec<f64> = r.readers[..readers]
        .iter()
        .map(|r| r.bytes.0 as f64)
        .collect();
    let mean = b.iter().sum::<f64>() / readers as f64;
    let low = b.iter().copied().fold(f64::MAX, f64::min);
    for (_, (rd, at)) in &w.asked {
        if (*rd as usize) < readers {
            w.longest = w.longest.max(until - at)
        } else {
            w.other.push(until - at)
        }
    }
    w.other.sort_unstable();
    let p = |q: f64| {
        w.other
            .get(((w.other.len() as f64 - 1.0) * q) as usize)
            .map_or(0.0, |x| *x as f64 / 1e6)
    };
    println!(
        "n {readers} t {:.0}: {:.1} MB/s  slowest/mean {:.2}  longest {:.2} s  at {:?} | other n {} p50 {:.1} p99 {:.1} max {:.1} ms | req {} mean {:.0} K wasted {} est {:?}",
        until as f64 / 1e9,
        mean * readers as f64 / (until as f64 / 1e9) / 1e6,
        low / mean,
        w.longest as f64 / 1e9,
        w.extra.last().map(|x| (x.0 / 1000000, x.1)),
        w.other.len(),
        p(0.5),
        p(0.99),
        p(1.0),
        r.device_requests(),
        r.device_bytes().0 as f64 / 1024. / r.device_requests() as f64,
        r.ledger.wasted(),
        r.devices[0]
            .estimate
            .competitive_depth(Bytes(1 << 30), Bytes(0))
            .0
            / 1000
    );
    let from = env("FROM", 10.0);
    let to = env("TO", 1e9);
    if let Ok(v) = std::env::var("TURNS") {
        let reader: i64 = v.parse().unwrap_or(-1);
        for t in &w.turns {
            let s = t.0 as f64 / 1e9;
            if s >= from && s < to && (reader < 0 || reader as u32 == t.1) {
                println!(
                    "{:9.3} s file {:3} first {:7} {:6} blocks {:.2} D",
                    s,
                    t.1,
                    t.2,
                    t.3 - t.2,
                    (t.3 - t.2) as f64 * 4096.0 / (switching as f64 * rate as f64 / 1e9)
                );
            }
        }
    }
}
