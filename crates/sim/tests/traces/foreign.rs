//! Traces as other tools and archives have them: each is read right, or refused with the line and the reason.
//!
//! Lines are from the READMEs and samples of the archives. A trace that is read is counted; the counts are by hand.

use std::io::Cursor;

use forerun_core::{Bytes, Nanos};
use forerun_sim::trace::{Format, Op, Options, Place, Record, Records, Summary, TraceError, read};

/// Counts of a trace in blocks of 512 bytes.
#[derive(PartialEq, Eq, Debug)]
struct Counts {
    format: &'static str,
    reads: u64,
    writes: u64,
    left_out: u64,
    bytes: u64,
    devices: u64,
    distinct: u64,
}

fn open(how: &str, bytes: &[u8]) -> Result<Records, TraceError> {
    let (mut options, mut format) = (Options::default(), None);
    match how {
        "" => {}
        columns if columns.contains('=') => options.columns = Some(columns.parse().unwrap()),
        name => format = Some(Format::named(name).unwrap()),
    }
    read("t", Cursor::new(bytes.to_vec()), format, &options)
}

fn counts(how: &str, bytes: &[u8]) -> Result<Counts, TraceError> {
    let mut records = open(how, bytes)?;
    let all: Vec<Record> = (&mut records).collect::<Result<_, _>>()?;
    let all = all.into_iter().map(Ok::<_, TraceError>);
    let summary = Summary::of(all, 512, Bytes(1 << 20)).unwrap();
    Ok(Counts {
        format: records.format().name,
        reads: summary.reads,
        writes: summary.writes,
        left_out: records.left_out(),
        bytes: summary.bytes,
        devices: summary.devices,
        distinct: summary.distinct_blocks,
    })
}

#[rustfmt::skip]
#[test]
fn published_traces_are_counted_as_their_archives_describe_them() {
    // How it is opened, its lines, format, reads, writes, left out, bytes, devices, distinct blocks.
    let cases: &[(&str, &str, &str, [u64; 6])] = &[
        // ARC: 8 and 64 blocks of 512 bytes.
        ("", "230027 8 0 0\n1842745 64 0 1\n230027 1 0 2\n", "arc", [3, 0, 0, 73 * 512, 1, 72]),
        ("", "1 1 0 0\n2 1 0 0\n", "arc", [2, 0, 0, 1024, 1, 2]),
        ("arc", "230027 8\n1842745 64\n", "arc", [2, 0, 0, 72 * 512, 1, 72]),
        // SYSTOR '17: a request that was never answered has no direction.
        ("", "Timestamp,Response,IOType,LUN,Offset,Size\n1456135200.013118000,0.000806000,W,4,8192,512\n\
              1456135200.1,,,4,8192,512\n1456135201.0,0.5,R,0,0,1024\n", "csv", [1, 1, 1, 1536, 2, 3]),
        ("", "timestamp_ms,offset,bytes\n1700000000000,8192,512\n1700000000000,0,1024\n", "csv", [2, 0, 0, 1536, 1, 3]),
        ("", "0,R,126703644672,4096,1577808000000626\n1,W,0,512,1577808000000700\n",
         "alibaba", [1, 1, 0, 4608, 2, 9]),
        ("", "1538323200,12910952,128,0,1063\n1538323200,0,1,1,1064\n", "tencent", [1, 1, 0, 129 * 512, 2, 129]),
        ("", "0,nz:u:eeW5,22,304,647,get,0\n0,nz:u:eeW5,22,304,647,set,60\n1,b,1,1,0,delete,0\n",
         "twitter", [1, 1, 1, 652, 1, 1]),
        // CacheLib: a row counts op_count times.
        ("", "key,op,size,op_count,key_size\n1668757755,SET,82,1,40\n1668757755,GET,82,3,40\n",
         "cachelib-kv", [3, 1, 0, 488, 1, 1]),
        ("", "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n\
              604038471,a54f88ab02ece24d,24,GET,3,0,0,0,699950563,699950563\n\
              604038471,749ab7237b8d0372,47,GET_LEASE,7,10,7,0,176962275,176962275\n\
              604038475,2699f87908764e76,52,SET_LEASE,1,14,0,14400,366387042,393203707\n\
              604038476,db993c1d94a28a9b,65,DELETE,2,0,0,0,2777918327,2497741817\n",
         "cachelib-kv", [10, 1, 1, 3 * 24 + 7 * 57 + 66, 1, 3]),
        // Columns in another order, as in the second sample of cachebench.
        ("", "op_time,key,key_size,op,op_count,size,cache_hits,usecase,sub_usecase,ttl\n\
              603347270,2748536847,56,GET,2,21,2,2777918327,4180585383,0\n",
         "cachelib-kv", [2, 0, 0, 154, 1, 1]),
        ("", "op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,op_name,op_count,host_name,rs_shard_id\n\
              1702511883,33964cbf-8b,40,1024,1536,2005364192,3487869255,getChunkData.Permanent,1,157370105,7\n\
              1702511883,33964cbf-8b,40,2048,0,2005364192,3487869255,getChunkData.Permanent,2,157370105,7\n\
              1702511884,c5fbfea2-ba,40,512,0,4235083322,3487869255,putChunk.NotInitialized,1,573095890,1\n",
         "cachelib-block", [3, 1, 0, 1024 + 4096 + 512, 1, 6]),
        // AdaptSize, LRB, webcachesim; further columns are features.
        ("webcachesim", "0 1 100\n1 2 200\n5 1 100\n", "webcachesim", [3, 0, 0, 400, 1, 2]),
        ("webcachesim", "0 1 100 4 7\n1 2 200 4 8\n", "webcachesim", [2, 0, 0, 300, 1, 2]),
        // libCacheSim's own sample: version, time, operation as a SCSI command, size, block.
        ("time-col=2,time-unit=us,op-col=3,reads=28/88,writes=2a/8a,obj-size-col=4,obj-id-col=5",
         "1,5633898611441,2a,512,42932745\n1,5633898611442,28,1024,42932746\n", "csv", [1, 1, 0, 1536, 1, 2]),
        // SNIA MSPS after its preamble is cut, and others: blanks, sectors, microseconds, names of devices.
        ("delimiter=blank,time-col=1,time-unit=us,op-col=2,device-col=3,offset-col=4,offset-unit=sector,\
          obj-size-col=5,size-unit=sector",
         "17  W  sda   8  2\n18\tR\tsdb\t0\t1\n", "csv", [1, 1, 0, 1536, 2, 3]),
        ("delimiter=tab,obj-id-col=1,count-col=2", "a b\t2\nc\t1\n", "csv", [3, 0, 0, 0, 1, 2]),
        // Line ends of two systems in one file.
        ("lirs", "1\r\n2\n\r\n3\r\n", "lirs", [3, 0, 0, 0, 1, 3]),
    ];
    for (how, text, format, [reads, writes, left_out, bytes, devices, distinct]) in cases {
        let wanted = Counts {
            format, reads: *reads, writes: *writes, left_out: *left_out, bytes: *bytes, devices: *devices,
            distinct: *distinct,
        };
        match counts(how, text.as_bytes()) {
            Ok(found) => assert_eq!(found, wanted, "{text}"),
            Err(error) => panic!("{error}\n{text}"),
        }
    }
}

#[rustfmt::skip]
#[test]
fn a_trace_that_could_be_misread_is_refused_with_its_line_and_the_reason() {
    let cases: &[(&str, &str, &[&str])] = &[
        // Three numbers are block, disk and computing, or time, object and size.
        ("", "0 1 100\n1 2 200\n", &["\"0 1 100\"", "plain (guessed only where a line is one word) or webcachesim", "--trace-format"]),
        ("", "1 2\n3 4\n", &["arc (guessed only where the third column is 0 and the last one begins at 0) or plain"]),
        ("", "0 1 100 4 7\n1 2 200 4 8\n", &["disksim (guessed only where the flags are 0 or 1) or webcachesim (never guessed)"]),
        // One word, unless the marks between its columns are known.
        ("", "1;1216016;8192;r\n", &["\"1;1216016;8192;r\"", "plain (guessed only where a line is one word)"]),
        ("", "7|8192\n", &["plain (guessed only"]),
        ("", "{\"a\":1}\n", &["plain (guessed only"]),
        // Four and five numbers of something else.
        ("", "5 6 7 8\n", &["--trace-format"]),
        ("", "5 6 7 0\n5 6 7 5\n", &["webcachesim", "--trace-format"]),
        ("", "17,12910952,128,0,1063\n", &["tencent (guessed only where the first column is seconds", "--trace-format"]),
        // Time, object and size, or time, offset and bytes.
        ("", "0,1048576,4096\n1,1052672,4096\n", &["t:1: ", "csv (time,object,size", "--columns"]),
        ("", "time,offset,offset\n1,2,3\n", &["t:1", "column \"offset\": must be the only column of its meaning"]),
        ("", "moment,offset\n1,2\n", &["t:1", "column \"moment\"", "time_ms", "timestamp_..", "device_id"]),
        ("", "timestamp,offset\n1700000000000,2\n", &["t:2", "1700000000000", "seconds", "time_ms"]),
        ("", "0,R,126703644672,4096,1577808000\n", &["alibaba", "--trace-format"]),
        // A column that says more than its name.
        ("", "key,op,size,freq\n1,GET,100,58\n", &["t:1", "column \"freq\""]),
        ("", "op_time,key,op,size\n1,1,GET,100\n", &["t:1", "column \"op_time\""]),
        ("", "time,time_us,key\n1,1,1\n", &["t:1", "column \"time_us\""]),
        ("", "key,op,size,op_count,key_size,weight\n1,GET,1,1,1,9\n", &["t:1", "column \"weight\""]),
        // Operations that are no reads and writes.
        ("", "key,op,size\n1,GET,1\n2,DELETE,1\n", &["t:3", "op \"DELETE\"", "skips="]),
        ("", "key,op,size,op_count,key_size\n1,GET,1,1,1\n1,SAT,1,1,1\n", &["t:3", "op \"SAT\""]),
        ("", "0,a,1,1,1,get,0\n0,a,1,1,1,touch,0\n", &["t:2", "op \"touch\""]),
        ("", "Timestamp,Response,IOType,LUN,Offset,Size\n1.5,0.25,X,4,8192,512\n", &["t:2", "op \"X\""]),
        // Counts, sizes and places out of range.
        ("", "key,op,size,op_count,key_size\n1,GET,1,0,1\n", &["t:2", "count \"0\"", "1 to 4294967295"]),
        ("", "time,key,size\n1,1,9223372036854775808\n", &["t:2", "9223372036854775808", "2^32"]),
        ("", "time,offset,size\n1,18446744073709551615,8\n", &["t:2", "2^64"]),
        ("offset-col=1,offset-unit=sector", "9223372036854775808\n", &["t:1", "offset", "2^64"]),
        ("arc", "9223372036854775808 1\n", &["t:1", "sectors"]),
        ("tencent", "1538323200,9223372036854775808,1,0,1\n", &["t:1", "offset"]),
        ("webcachesim", "0 1 9223372036854775808\n", &["t:1", "2^32"]),
        ("", "op_time,block_id,io_size,io_offset,op_name,op_count\n1,a,512,8388097,getChunkData,1\n",
         &["t:2", "within their object"]),
        ("", "block,offset\n1,2\n", &["t:2", "not both"]),
        // Names among numbers, numbers among names of devices.
        ("", "time,key,lun\n1,1,0\n1,1,sda\n", &["t:3", "device \"sda\""]),
        ("webcachesim", "0 1 100\n1 x 100\n", &["t:2", "block \"x\""]),
        // No requests.
        ("", "time,key,size\n", &["no request"]),
        ("", "key,op,size,op_count,key_size\n", &["no request"]),
        ("", "Timestamp,Response,IOType,LUN,Offset,Size\n1,,,4,8192,512\n", &["no request"]),
        ("time-col=1,obj-id-col=2,has-header=true", "time;key\n", &["no request"]),
        ("fio", "fio version 3 iolog\n", &["no request"]),
        // Rows that are cut, or longer than others.
        ("", "0,R,0,4096,1577808000000626\n0,R,0,4096\n", &["t:2", "device,R|W,offset"]),
        ("arc", "230027 8 0 0\n1842745 64 0 1\n1 1 0\n", &["t:3", "start count"]),
        ("obj-id-col=3", "1,2\n", &["t:1", "cells"]),
        ("", "time,key\n1,2,3\n", &["t:2", "cells"]),
        // A request that is missing, or of two files joined.
        ("arc", "1 1 0 0\n2 1 0 1\n3 1 0 3\n", &["t:3", "the line before or one more"]),
        // Line ends of an old Macintosh are inside a line.
        ("lirs", "1\r2\r3\n", &["t:1", "carriage return"]),
        ("plain", "1\n2\r3\n", &["t:2", "carriage return"]),
        // A mark and nothing else; text; a database.
        ("", "\u{feff}", &["none of the formats"]),
        ("", "once upon a time, there was\n", &["\"once upon a time, there was\"", "none of the formats", "--columns"]),
        ("", "SQLite format 3\u{0}\u{10}\u{0}", &["none of the formats"]),
    ];
    for (how, text, parts) in cases {
        let error = match counts(how, text.as_bytes()) {
            Ok(found) => panic!("{found:?}\n{text}"),
            Err(error) => error.to_string(),
        };
        for part in *parts {
            assert!(error.contains(part), "{error}: {part}\n{text}");
        }
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn columns_are_those_of_a_csv_alone() {
    let options = Options {
        columns: Some("obj-id-col=2".parse().unwrap()),
        ..Options::default()
    };
    let bytes = || Cursor::new(b"1,2,3\n".to_vec());
    let refused = read("t", bytes(), Format::named("spc"), &options).unwrap_err();
    assert!(refused.to_string().contains("--columns"), "{refused}");
    let mut named = read("t", bytes(), Format::named("csv"), &options).unwrap();
    let mut implied = read("t", bytes(), None, &options).unwrap();
    let record = Some(Ok(Record::block(2)));
    assert_eq!((named.next(), implied.next()), (record.clone(), record));
}

#[test]
fn a_row_that_counts_many_times_takes_no_memory() {
    let text = b"key,op,size,op_count,key_size\n7,GET,1,4294967295,1\n7,SET,1,1,1\n";
    let records = open("", text).unwrap();
    let bytes = |record: Result<Record, TraceError>| u64::from(record.unwrap().bytes);
    assert_eq!(records.take(100_000).map(bytes).sum::<u64>(), 200_000);
}

#[test]
fn times_that_step_back_are_sorted_or_refused_in_every_format_with_times() {
    let line = |second: u64| format!("{},{},8,0,1\n", 1_538_323_200 + second, second * 8);
    let near: String = [3, 1, 2].map(line).concat();
    let times: Vec<u64> = open("", near.as_bytes())
        .unwrap()
        .map(|record| record.unwrap().arrival.unwrap().0 / 1_000_000_000 - 1_538_323_200)
        .collect();
    assert_eq!(times, [1, 2, 3]);
    let far: String = (1000..4000).chain([0]).map(line).collect();
    let error = open("", far.as_bytes()).unwrap().find_map(Result::err);
    let message = error.unwrap().to_string();
    assert!(message.contains("t:3001"), "{message}");
    assert!(message.contains("step back"), "{message}");
}

#[test]
fn values_are_those_of_the_line() {
    let one = |text: &str| open("", text.as_bytes()).unwrap().next().unwrap().unwrap();
    let systor = "Timestamp,Response,IOType,LUN,Offset,Size\n1.5,0.25,W,4,8192,512\n";
    let wanted = Record {
        device: 4,
        op: Op::Write,
        arrival: Some(Nanos(1_500_000_000)),
        response: Some(Nanos(250_000_000)),
        ..Record::range(8192, 512).unwrap()
    };
    assert_eq!(one(systor), wanted);
    let alibaba = one("3,W,126703644672,4096,1577808000000626\n");
    assert_eq!(alibaba.place, Place::Byte(126_703_644_672));
    assert_eq!(alibaba.arrival, Some(Nanos(1_577_808_000_000_626_000)));
    assert_eq!((alibaba.device, alibaba.op), (3, Op::Write));
    let tencent = one("1538323200,12910952,128,1,1063\n");
    assert_eq!(tencent.place, Place::Byte(12_910_952 * 512));
    assert_eq!((tencent.bytes, tencent.device), (65_536, 1063));
    let block =
        "op_time,block_id,io_size,io_offset,op_name,op_count\n9,b,10,3,putChunk.Permanent,1\n";
    assert_eq!(
        (one(block).place, one(block).is_named),
        (Place::Byte(3), true)
    );
}
