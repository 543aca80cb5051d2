//! Traces of every format: written and read again, damaged, mistaken for each other, streamed.
//!
//! Everything here is generated, over all entries of the list of formats, so a new format is
//! tested by being in it. Random choices come from proptest or from a printed seed.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};

use forerun_core::Nanos;
use forerun_sim::random::Random;
use forerun_sim::trace::convert::convert;
use forerun_sim::trace::format::{LIST, Places};
use forerun_sim::trace::{
    Cause, Format, Label, Op, Options, Place, Position, Record, Records, TraceError, read,
};
use proptest::prelude::*;

/// Requests that this format can say completely.
fn requests(format: &Format, seed: u64, count: usize) -> Vec<Record> {
    let (mut random, holds) = (Random::new(seed), &format.holds);
    let mut time = random.magnitude(30);
    let mut devices = BTreeMap::new();
    let mut one = |at: usize| {
        let bytes = random.between(1, 1 << 20) as u32;
        let mut record = match holds.places {
            Places::Blocks => Record::block(random.magnitude(60)),
            Places::Objects => Record {
                bytes,
                ..Record::block(random.magnitude(60))
            },
            Places::All if random.chance(500) => Record::block(random.magnitude(60)),
            Places::All | Places::Bytes => Record::range(random.magnitude(60), bytes).unwrap(),
            Places::Within(span) => {
                let within = random.below(span - u64::from(bytes) + 1);
                Record::range(random.magnitude(30) * span + within, bytes).unwrap()
            }
            Places::Sectors => {
                Record::range(random.magnitude(50) * 512, bytes.div_ceil(512) * 512).unwrap()
            }
        };
        if holds.device {
            // Where names are numbered, the first is 0 and a new one is next.
            let next = devices.len() as u32;
            record.device = *devices.entry(random.below(4)).or_insert(next);
        }
        if holds.op && random.chance(500) {
            record.op = Op::Write;
        }
        if let Some(unit) = holds.arrival_unit_ns {
            time += random.magnitude(35);
            record.arrival = Some(Nanos(time / unit * unit));
        }
        // The gap before the first request is nowhere in a format that puts it after each.
        record.compute = (holds.compute && at > 0).then(|| Nanos(random.magnitude(40)));
        let unit = holds.arrival_unit_ns.unwrap_or(1);
        record.response = holds
            .response
            .then(|| Nanos(random.magnitude(30) / unit * unit));
        record.label = holds
            .label
            .then_some(Label::NAMES[random.below(4) as usize].0);
        record.process = holds.process.then(|| random.below(1 << 32) as u32);
        record
    };
    (0..count).map(&mut one).collect()
}

fn written(format: &Format, records: &[Record]) -> Vec<u8> {
    let mut out = Vec::new();
    let done = convert(records.iter().copied().map(Ok), format, 4096, &mut out).unwrap();
    assert_eq!(done.written, records.len() as u64);
    out
}

fn reading(format: Option<&'static Format>, bytes: Vec<u8>) -> Result<Records, TraceError> {
    read("t", Cursor::new(bytes), format, &Options::default())
}

/// Whether a trace whose format is not named is an error, at once or after some lines.
fn is_refused(bytes: Vec<u8>) -> bool {
    !reading(None, bytes).is_ok_and(|mut records| records.all(|record| record.is_ok()))
}

/// Everything up to the first error, and the error.
fn all(format: &'static Format, bytes: Vec<u8>) -> (Vec<Record>, Option<TraceError>) {
    let mut records = match reading(Some(format), bytes) {
        Ok(records) => records,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let (mut good, mut error) = (Vec::new(), None);
    for record in &mut records {
        match record {
            Ok(record) => good.push(record),
            Err(found) => error = Some(found),
        }
    }
    assert!(records.next().is_none());
    (good, error)
}

/// Damage to files: bits flip, bytes and lines go, come twice or from elsewhere, and numbers
/// grow beyond their range.
fn damaged(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    for _ in 0..random.between(1, 4) {
        let length = bytes.len() as u64;
        let at = random.below(length + 1) as usize;
        let end = (at + random.magnitude(7) as usize).min(bytes.len());
        let lines: Vec<usize> = (0..bytes.len()).filter(|i| bytes[*i] == b'\n').collect();
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let copy = bytes[at..end].to_vec();
                let to = random.below(length + 1) as usize;
                bytes.splice(to..to, copy);
            }
            3 => drop(bytes.splice(at..at, *b"99999999999999999999")),
            4 => drop(bytes.splice(at..at, *b"\n-1,\xff\0 \t1e9\r\n")),
            5 if lines.len() > 2 => {
                let first = *random.pick(&lines).unwrap();
                let second = *random.pick(&lines).unwrap();
                bytes.drain(first.min(second)..first.max(second));
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// An arrival that the format does not hold but follows from the rest of it.
fn without_derived(format: &Format, mut records: Vec<Record>) -> Vec<Record> {
    if format.holds.arrival_unit_ns.is_none() {
        records.iter_mut().for_each(|record| record.arrival = None);
    }
    records
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

type Compress = fn(&[u8]) -> Vec<u8>;
const COMPRESSIONS: [(&str, Compress); 3] = [("gzip", gzip), ("zstd", zstd), ("xz", xz)];

proptest! {
    #[test]
    fn what_is_written_is_read_again(seed: u64, count in 1usize..80) {
        for format in LIST {
            let wanted = requests(format, seed, count);
            let (found, error) = all(format, written(format, &wanted));
            prop_assert_eq!(error, None, "{}", format.name);
            prop_assert_eq!(without_derived(format, found), wanted, "{}", format.name);
        }
    }

    #[test]
    fn damage_is_an_error_with_its_position_or_another_trace(seed: u64) {
        let mut random = Random::new(seed);
        for format in LIST {
            let mut bytes = written(format, &requests(format, seed, 40));
            for _ in 0..random.between(1, 3) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.number() as u8;
            }
            bytes.truncate(random.between(1, bytes.len() as u64) as usize);
            let (_, error) = all(format, bytes);
            if let Some(error) = error {
                prop_assert!(error.position().is_some(), "{}", error);
                prop_assert!(!error.to_string().contains('\n'), "{}", error);
            }
        }
    }

    #[test]
    fn any_damage_names_a_line_there_is(seed: u64) {
        let mut random = Random::new(seed);
        for format in LIST {
            let bytes = damaged(written(format, &requests(format, seed, 60)), &mut random);
            let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
            let mut file = match random.pick(&COMPRESSIONS).filter(|_| random.chance(500)) {
                Some((_, compress)) => compress(&bytes),
                None => bytes,
            };
            if random.chance(300) {
                file.truncate(random.below(file.len() as u64) as usize);
            }
            for named in [Some(format), None] {
                let error = match reading(named, file.clone()) {
                    Ok(records) => records.filter_map(Result::err).last(),
                    Err(error) => Some(error),
                };
                let Some(error) = error else {
                    continue;
                };
                let message = error.to_string();
                prop_assert!(message.starts_with("t:") && !message.contains('\n'), "{}", message);
                match error.position() {
                    Some(Position::Line(line)) => {
                        prop_assert!((1..=lines + 1).contains(&line), "{} of {lines}", message);
                    }
                    Some(Position::Byte(_)) => {}
                    None => prop_assert!(false, "{}", message),
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>, magic in 0usize..5) {
        const MAGIC: [&[u8]; 5] = [
            &[0x1f, 0x8b, 8], &[0x28, 0xb5, 0x2f, 0xfd], &[0xfd, b'7', b'z', b'X', b'Z', 0],
            b"fio version 3 iolog\n", b"",
        ];
        for format in LIST {
            let bytes = [MAGIC[magic], &bytes].concat();
            let (good, error) = all(format, bytes);
            prop_assert!(error.is_some() || !good.is_empty());
        }
    }

    #[test]
    fn damaged_compression_is_an_error(seed: u64) {
        let mut random = Random::new(seed);
        let format = Format::named("plain").unwrap();
        let wanted = requests(format, seed, 2000);
        let text = written(format, &wanted);
        for (name, compress) in COMPRESSIONS {
            let mut bytes = compress(&text);
            let cut = random.between(6, bytes.len() as u64 - 1) as usize;
            let (good, error) = all(format, bytes[..cut].to_vec());
            prop_assert!(error.is_some(), "{name} cut at {cut} of {}", bytes.len());
            prop_assert!(error.unwrap().position().is_some());
            // The requests before the damage are right; the line it cut may have lost its end.
            prop_assert!(good.len() <= wanted.len());
            let sure = good.len().saturating_sub(1);
            prop_assert_eq!(&good[..sure], &wanted[..sure]);
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
            let (good, error) = all(format, bytes);
            prop_assert!(error.is_some() || good == wanted, "{name} changed at {at}");
        }
    }
}

#[test]
fn compressed_parts_are_read_one_after_the_other() {
    let format = Format::named("lirs").unwrap();
    let wanted = requests(format, 5, 50_000);
    let text = written(format, &wanted);
    for (name, compress) in COMPRESSIONS {
        let (first, second) = text.split_at(text.len() / 3);
        let skippable = [0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        let extra = if name == "zstd" { &skippable[..] } else { &[] };
        let bytes = [extra, &compress(first), extra, &compress(second)].concat();
        let (found, error) = all(format, bytes);
        assert_eq!(error, None, "{name}");
        assert!(found == wanted, "{name}");
    }
}

#[test]
fn many_empty_frames_take_no_stack() {
    let format = Format::named("lirs").unwrap();
    let mut bytes = zstd(b"").repeat(100_000);
    bytes.extend(zstd(b"7\n"));
    assert_eq!(all(format, bytes).0, [Record::block(7)]);
}

#[test]
fn every_format_read_as_another_is_an_error_that_names_the_right_one() {
    // A list of numbers is of both formats, and without a `*` it looks like plain.
    let same = |a: &str, b: &str| matches!((a, b), ("lirs", "plain"));
    for format in LIST {
        let bytes = written(format, &requests(format, 9, 300));
        if !(format.is_sure)(&bytes) {
            // It could be another, and must be named.
            assert!(is_refused(bytes), "{}", format.name);
            continue;
        }
        let guess = reading(None, bytes.clone()).unwrap().format().name;
        assert_eq!(guess, format.name);
        for other in LIST.iter().filter(|other| other.name != format.name) {
            if same(format.name, other.name) {
                continue;
            }
            let (good, error) = all(other, bytes.clone());
            let error = error.unwrap_or_else(|| panic!("{} as {}", format.name, other.name));
            assert_eq!(error.looks_like(), Some(format.name), "{error}");
            // A first line of plain may be a number alone, as those of lirs are.
            assert!(good.len() <= 1, "{} as {}", format.name, other.name);
        }
    }
}

/// Traces of other tools, whose first requests an accident of form would have made others.
#[test]
fn a_trace_of_another_tool_is_read_right_or_refused_by_name() {
    let refused = |bytes: &[u8]| match reading(None, bytes.to_vec()) {
        Ok(mut records) => records.next().unwrap().unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    // AdaptSize, LRB, webcachesim: time, object, size; with or without more columns of features.
    for text in [
        "0 1 100\n1 2 200\n",
        "5 77 4096\n5 78 1\n6 77 4096\n",
        "1 2\n3 4\n",
        "a b\nc d\n",
    ] {
        assert!(
            refused(text.as_bytes()).contains("--trace-format"),
            "{text}"
        );
    }
    let text = b"op_time,key,op,size\n1,1,GET,100\n";
    assert!(refused(text).contains("column \"op_time\""));
    // SYSTOR '17.
    let text =
        b"Timestamp,Response,IOType,LUN,Offset,Size\n1.5,0.25,W,4,8192,512\n2.0,0.5,R,0,0,1024\n";
    let found: Vec<Record> = reading(None, text.to_vec())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let first = Record {
        device: 4,
        op: Op::Write,
        arrival: Some(Nanos(1_500_000_000)),
        response: Some(Nanos(250_000_000)),
        ..Record::range(8192, 512).unwrap()
    };
    assert_eq!((found[0], found[1].op, found.len()), (first, Op::Read, 2));
    let strange = b"Timestamp,Response,IOType,LUN,Offset,Size\n1.5,0.25,X,4,8192,512\n";
    assert!(
        refused(strange).contains("op \"X\""),
        "{}",
        refused(strange)
    );
    // Binary blktrace, of either order of bytes.
    for magic in [0x6561_7407_u32.to_le_bytes(), 0x6561_7407_u32.to_be_bytes()] {
        let bytes = [&magic[..], &[0; 44]].concat().repeat(4);
        assert!(refused(&bytes).contains("blkparse"), "{}", refused(&bytes));
    }
    let srt = b"$$TR_IOREC-1.3 (IOAdaptor Upgrade Version)\0\n";
    assert!(refused(srt).contains("HP's SRT"), "{}", refused(srt));
    // Numbers of 32 bits, in either order of bytes, and small ones.
    for seed in 0..50 {
        let mut random = Random::new(seed);
        let bits = random.between(4, 31) as u32;
        let numbers: Vec<u32> = (0..6000).map(|_| random.below(1 << bits) as u32).collect();
        let little: Vec<u8> = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        let big: Vec<u8> = numbers
            .iter()
            .flat_map(|number| number.to_be_bytes())
            .collect();
        for bytes in [little, big] {
            assert!(is_refused(bytes), "seed {seed}, {bits} bits");
        }
    }
}

#[test]
fn a_record_cut_off_at_any_byte_is_an_error_with_its_place() {
    for (name, record) in [("vscsi", 32), ("oracle-general", 24)] {
        let format = Format::named(name).unwrap();
        let bytes = written(format, &requests(format, 2, 3));
        for end in (1..bytes.len()).filter(|end| end % record != 0) {
            let (good, error) = all(format, bytes[..end].to_vec());
            let error = error.unwrap();
            assert_eq!(good.len(), end / record);
            let start = end / record * record;
            assert_eq!(error.position(), Some(Position::Byte(start as u64)));
            assert!(matches!(error.cause(), Cause::Cut { .. }), "{error}");
        }
    }
}

#[test]
fn steps_back_in_time_are_sorted_within_the_window_and_refused_beyond() {
    let format = Format::named("spc");
    let line = |time: u64| format!("0,8,512,r,{time}\n");
    let text: String = [3, 1, 2, 5, 4].map(line).concat();
    let mut records = read("t", Cursor::new(text.clone()), format, &Options::default()).unwrap();
    let times: Vec<u64> = (&mut records)
        .map(|r| r.unwrap().arrival.unwrap().0)
        .collect();
    assert_eq!(times, [1, 2, 3, 4, 5].map(|s| s * 1_000_000_000));
    assert_eq!(records.moved(), 2);
    let strict = Options {
        sort_window: 0,
        ..Options::default()
    };
    let error = read("t", Cursor::new(text), format, &strict).unwrap();
    let error = error.filter_map(Result::err).next().unwrap();
    assert_eq!(error.position(), Some(Position::Line(2)));
    assert!(matches!(error.cause(), Cause::Order { .. }));
}

/// So many lines, made as they are read.
struct Lines {
    next: u64,
    count: u64,
    line: Cursor<Vec<u8>>,
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.line.read(buffer)?;
        if read > 0 || self.next == self.count {
            return Ok(read);
        }
        let lines = (self.next..self.count).take(1000);
        let text: String = lines.map(|n| format!("{n}.5 0 {n} 8 1\n")).collect();
        self.next = (self.next + 1000).min(self.count);
        self.line = Cursor::new(text.into_bytes());
        self.line.read(buffer)
    }
}

#[test]
fn a_long_trace_is_a_stream() {
    let lines = Lines {
        next: 0,
        count: 1_000_000,
        line: Cursor::new(Vec::new()),
    };
    let format = Format::named("disksim");
    let mut records = read("t", lines, format, &Options::default()).unwrap();
    let first = records.next().unwrap().unwrap();
    assert_eq!(first.arrival, Some(Nanos(500_000)));
    let last = records.last().unwrap().unwrap();
    assert_eq!(last.place, Place::Byte(999_999 * 512));
}
