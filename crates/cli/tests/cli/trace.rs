//! `forerun trace`: counts of made-up traces, conversions, and errors of bad ones.

use std::process::Command;

use snapbox::cmd::{OutputAssert, cargo_bin};
use snapbox::str;

use super::{Folder, forerun, output_of};

/// Runs the binary with these words as arguments and these bytes on a pipe as standard input.
pub(super) fn piped(arguments: &str, bytes: &[u8], temporary: &Folder) -> OutputAssert {
    snapbox::cmd::Command::new(cargo_bin!("forerun"))
        .env_remove("COLUMNS")
        .env_remove("FORERUN_LOG")
        .env("TMPDIR", temporary.path(""))
        .args(arguments.split_whitespace())
        .stdin(bytes.to_vec())
        .assert()
}

#[test]
fn what_is_in_a_trace() {
    let folder = Folder::new();
    let trace = folder.file(
        "t.csv",
        b"0,0,8192,r,0.5\n0,16,8192,W,0.75\n1,0,512,r,1.0\n",
    );
    forerun(&format!("trace info {trace}"))
        .success()
        .stdout_eq(str![[r#"
format                spc
requests              3
reads                 2
writes                1
devices               2
processes             0
bytes                 16896
request_bytes_min     512
request_bytes_mean    5632
request_bytes_max     8192
block_bytes           8192
references            3
distinct_blocks       3
span_blocks           3
sequential_per_mille  333
timed                 3
duration_ns           500000000
compute_ns            0
answered              0
response_ns           0
out_of_order          0
left_out              0
unwanted              0

"#]]);
}

#[test]
fn every_command_reads_a_part_of_a_trace_and_several_logs_as_one() {
    let folder = Folder::new();
    let one = folder.file(
        "one.csv",
        b"time_s,pid,device,op,offset,bytes\n5,7,0,r,0,4096\n6,8,1,r,8192,4096\n7,7,0,w,0,4096\n9,7,1,r,4096,4096\n",
    );
    let two = folder.file(
        "two.csv",
        b"time_s,pid,device,op,offset,bytes\n6.5,9,0,r,0,4096\n",
    );
    let info = |flags: &str| -> Vec<u64> {
        let text = output_of(&format!("trace info {one} --format json {flags}"));
        let all: serde_json::Value = serde_json::from_str(&text).unwrap();
        let of = |name: &str| all[name].as_u64().unwrap();
        ["requests", "devices", "unwanted"].map(of).to_vec()
    };
    for (flags, wanted) in [
        ("", [4, 2, 0]),
        ("--only-devices 1", [2, 1, 2]),
        ("--from 1s --until 3s", [2, 2, 1]),
        ("--only-op write", [1, 1, 3]),
        ("--only-processes 7,9", [3, 2, 1]),
        (&format!("--merge {two}"), [5, 3, 0]),
        (
            &format!("--merge {two} --from 1500ms --until 2s"),
            [1, 1, 2],
        ),
    ] {
        assert_eq!(info(flags), wanted, "{flags}");
    }
    // The same flags for counts, conversions and simulations.
    let counted = output_of(&format!(
        "trace count {one} --merge {two} --only-op read --policy lru --cache 9 --format json"
    ));
    let counted: serde_json::Value = serde_json::from_str(&counted).unwrap();
    assert_eq!(counted["references"], 4, "{counted}");
    let written = output_of(&format!(
        "trace convert {one} --merge {two} --only-processes 9 --to csv"
    ));
    assert_eq!(
        written.lines().nth(1),
        Some("6500000000,0,,0,4096,r,,,,9"),
        "{written}"
    );
    let row = output_of(&format!(
        "simulate --trace {one} --merge {two} --only-processes 8,9 --preset none --disks 1 --format json"
    ));
    let row: serde_json::Value = serde_json::from_str(&row).unwrap();
    assert_eq!(row["part"], "only-processes 8,9", "{row}");
    assert_eq!(row["trace"], format!("{one} + {two}"), "{row}");
    for (arguments, why) in [
        (
            format!("trace info {one} --until 0s"),
            "later than --from, 0ns",
        ),
        (
            format!("trace info {one} --from 9000s"),
            "none of its 4 requests",
        ),
        (
            format!("trace info {one} --only-devices x"),
            "--only-devices",
        ),
        (
            format!("trace info {one} --merge /nowhere"),
            "/nowhere: no such file",
        ),
        (
            "simulate --workload synth --preset none --from 1s".to_owned(),
            "has no trace, which --from is for",
        ),
    ] {
        let ended = forerun(&arguments).code(2);
        let stderr = String::from_utf8_lossy(&ended.get_output().stderr).into_owned();
        assert!(stderr.contains(why), "{arguments}: {stderr}");
    }
}

#[test]
fn each_format_of_several_logs_is_named_once() {
    let folder = Folder::new();
    let csv = b"time_s,device,offset,bytes\n5,0,0,4096\n";
    let [one, other] = ["one", "other"].map(|name| folder.file(name, csv));
    let spc = folder.file("t.spc", b"0,0,8192,r,0.5\n0,16,8192,W,0.75\n");
    let said = output_of(&format!("trace info {one} --merge {spc},{other}"));
    assert!(said.contains("format                csv, spc\n"), "{said}");
}

#[test]
fn json_has_the_same_keys() {
    let folder = Folder::new();
    let trace = folder.file("t", b"1\n2\n1\n");
    forerun(&format!("trace info {trace} --format json"))
        .success()
        .stdout_eq(str![[r#"
{"answered":0,"block_bytes":8192,"bytes":0,"compute_ns":0,"devices":1,"distinct_blocks":2,"duration_ns":0,"format":"lirs","left_out":0,"out_of_order":0,"processes":0,"reads":3,"references":3,"request_bytes_max":0,"request_bytes_mean":0,"request_bytes_min":0,"requests":3,"response_ns":0,"sequential_per_mille":333,"span_blocks":2,"timed":0,"unwanted":0,"writes":0}

"#]]);
}

#[test]
fn a_trace_goes_into_another_format_and_says_what_it_lost() {
    let folder = Folder::new();
    let trace = folder.file("t", b"0,0,8192,r,0.5\n0,16,8192,W,0.75\n1,0,512,r,1.0\n");
    forerun(&format!(
        "trace convert {trace} --to plain --block-bytes 4096"
    ))
    .success()
    .stdout_eq(str![[r#"
0
1
2
3
0 1

"#]])
    .stderr_eq(str![[r#"
 WARN plain: 1 of 3 requests are writes, which became reads
 WARN plain: 3 of 3 requests lost their time

"#]]);
}

#[test]
fn times_and_sizes_that_a_format_rounds_are_counted() {
    let folder = Folder::new();
    let trace = folder.file("t", b"0,0,8192,r,0.5\n0,16,512,r,2.0\n");
    forerun(&format!(
        "trace convert {trace} --to twitter --block-bytes 4096"
    ))
    .success()
    .stderr_eq(str![[r#"
 WARN twitter: 1 of 2 requests have their time rounded down to the format's unit
 WARN twitter: 1 of 2 requests became longer: whole blocks (--block-bytes) or sectors

"#]]);
}

#[test]
fn there_and_back_is_the_same() {
    let folder = Folder::new();
    let text = "0,20941264,8192,W,0.551706000\n0,20939840,8192,r,0.554041000\n";
    let (trace, there) = (folder.file("t", text.as_bytes()), folder.name("there"));
    assert_eq!(
        output_of(&format!("trace convert {trace} --to csv -o {there}")),
        ""
    );
    let back = output_of(&format!("trace convert {there} --to spc"));
    assert_eq!(back.to_lowercase(), text.to_lowercase());
}

#[test]
fn a_pipe_is_read_like_a_file() {
    let folder = Folder::new();
    // More lines than a pipe holds at once.
    let lines: String = (0..50_000).map(|n| format!("{}\n", n * 7 % 1000)).collect();
    let trace = folder.file("t", lines.as_bytes());
    let temporary = Folder::new();
    for command in ["trace info {}", "trace convert {} --to csv"] {
        let with = |name: &str| command.replace("{}", name);
        let expected = output_of(&with(&trace));
        for name in ["-", "/dev/stdin"] {
            let assert = piped(&with(name), lines.as_bytes(), &temporary).success();
            let found = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
            assert!(found == expected, "{command} from {name}");
        }
    }
    for (bytes, message) in [
        (&b"1\n2\nx\n"[..], "standard input:3: "),
        (b"", "standard input:1: there is no request in it"),
    ] {
        let arguments = "trace info - --trace-format lirs";
        let assert = piped(arguments, bytes, &temporary).code(2);
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn what_cannot_be_read_is_named_with_its_line() {
    let folder = Folder::new();
    let good = folder.file("good", b"1\n2\n");
    let broken = folder.file("broken", b"1\n2\nthree\n");
    let cut = folder.file("cut", &[0; 40]);
    let empty = folder.file("empty", b"");
    for (arguments, message) in [
        (format!("trace info {broken} --trace-format lirs"), ":3: "),
        (
            format!("trace info {good} --trace-format spc"),
            "it looks like",
        ),
        (
            format!("trace info {cut} --trace-format oracle-general"),
            "24 bytes are there",
        ),
        (format!("trace info {empty}"), "no request"),
        (
            format!("trace info {broken} --trace-format lisr"),
            "there is fio",
        ),
        ("trace info no-such-file".to_owned(), "no-such-file"),
        (format!("trace convert {good} --to disksim"), "time"),
        (
            format!("trace convert {broken} --to plain -o {broken}"),
            "broken",
        ),
    ] {
        let assert = forerun(&arguments).code(2);
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(error.contains(message), "{arguments}: {error}");
    }
}

/// A program that took more than 64 MiB would end by a signal, not with a message.
const FEW_BLOCKS: &str = "ulimit -v 65536; exec";

/// 200,000 different blocks where there is room for fewer, and 64 MiB of line ends in 4 KiB of zstd.
#[test]
fn a_trace_of_too_many_blocks_and_a_bomb_end_in_bounded_memory() {
    let folder = Folder::new();
    let lines: String = (0..200_000u64).map(|n| format!("{}\n", n * 977)).collect();
    let many = folder.file("many", lines.as_bytes());
    // A frame of blocks that are one byte repeated 65,536 times each.
    let (magic, block) = ([0x28, 0xb5, 0x2f, 0xfd], (65_536u32 << 3 | 2).to_le_bytes());
    let mut bomb = magic.to_vec();
    bomb.extend([0, 0x38]);
    for at in 0..1024 {
        let is_last = u8::from(at == 1023);
        bomb.extend([block[0] | is_last, block[1], block[2], b'\n']);
    }
    let bomb = folder.file("bomb.zst", &bomb);
    for (arguments, message) in [
        (
            format!("simulate --trace {many} --preset demand-lru --trace-memory 4MiB"),
            "many:65537: no room for 65537 different blocks in --trace-memory 4MiB",
        ),
        (
            format!("simulate --trace {many} --preset forerun --trace-memory 4MiB"),
            "different blocks in --trace-memory 4MiB, of which each takes 64 bytes",
        ),
        (
            format!("trace info {many} --trace-memory 4MiB"),
            "no room for 131041 different blocks of 1 devices in --trace-memory 4MiB",
        ),
        (format!("trace info {bomb}"), "none of the formats"),
        (format!("trace info {bomb} --trace-format plain"), "bomb"),
        (
            format!("simulate --trace {bomb} --trace-format lirs --preset demand-lru"),
            "bomb",
        ),
    ] {
        let program = cargo_bin!("forerun").display().to_string();
        let script = format!("{FEW_BLOCKS} {program} {arguments}");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains(message), "{arguments}: {said}");
    }
}

#[test]
fn policies_are_counted_in_caches_of_several_sizes() {
    let folder = Folder::new();
    let trace = folder.file("t", b"1\n2\n3\n1\n2\n4\n1\n2\n");
    forerun(&format!(
        "trace count {trace} --policy lru,fifo,opt --cache 2,50%,16KiB"
    ))
    .success()
    .stdout_eq(str![[r#"
policy  objects  references  misses  miss ratio
lru           2           8       8      1.0000
lru           2           8       8      1.0000
lru           2           8       8      1.0000
fifo          2           8       8      1.0000
fifo          2           8       8      1.0000
fifo          2           8       8      1.0000
opt           2           8       6      0.7500
opt           2           8       6      0.7500
opt           2           8       6      0.7500

"#]]);
    forerun(&format!(
        "trace count {trace} --policy 2q(in_per_mille=500,out_per_mille=500) --cache 3 --warm-up 4 --format csv"
    ))
    .success()
    .stdout_eq(str![[r#"
trace,part,policy,cache_objects,cache_share,references,misses,miss_ratio,miss_ratio_error,bytes,missed_bytes,byte_miss_ratio,byte_miss_ratio_error,sample_per_million,block_bytes,sizes,writes,warm_up
[..],,"2q(in_per_mille=500,out_per_mille=500)",3,0.75,4,[..]

"#]]);
}

#[test]
fn objects_weigh_their_bytes_by_sizes() {
    let folder = Folder::new();
    let trace = folder.file(
        "t",
        b"time,key,size\n0,1,100\n1,2,10\n2,1,100\n3,3,10\n4,2,10\n",
    );
    forerun(&format!(
        "trace count {trace} --sizes --policy lru,gdsf --cache 110B --format json"
    ))
    .success()
    .stdout_eq(str![[r#"
{"block_bytes":8192,"byte_miss_ratio":0.5652173913043478,"byte_miss_ratio_error":null,"bytes":230,"cache_bytes":110,"cache_share":0.9166666666666666,"miss_ratio":0.8,"miss_ratio_error":null,"missed_bytes":130,"misses":4,"part":null,"policy":"lru","references":5,"sample_per_million":1000000,"sizes":true,"trace":"[..]","warm_up":0,"writes":false}
{"block_bytes":8192,"byte_miss_ratio":0.5217391304347826,"byte_miss_ratio_error":null,"bytes":230,"cache_bytes":110,"cache_share":0.9166666666666666,"miss_ratio":0.6,"miss_ratio_error":null,"missed_bytes":120,"misses":3,"part":null,"policy":"gdsf","references":5,"sample_per_million":1000000,"sizes":true,"trace":"[..]","warm_up":0,"writes":false}

"#]]);
}

#[test]
fn a_warm_up_is_of_all_references_and_a_sample_has_its_share_of_it() {
    let folder = Folder::new();
    let lines: Vec<String> = (0..3000).map(|at| format!("{}\n", at % 1000)).collect();
    let trace = folder.file("t", lines.concat().as_bytes());
    let count = |warm_up: u32| {
        format!(
            "trace count {trace} --sample 10% --warm-up {warm_up} --cache 100 --policy lru --format json"
        )
    };
    let counted = |warm_up: u32| -> u64 {
        let row: serde_json::Value = serde_json::from_str(&output_of(&count(warm_up))).unwrap();
        row["references"].as_u64().unwrap()
    };
    assert_eq!(counted(0) - counted(2000), 200);
    let end = forerun(&count(3000)).code(2);
    let said = String::from_utf8_lossy(&end.get_output().stderr).into_owned();
    assert!(
        said.contains("--warm-up 3000: it has 3000 references, the sample of 10% "),
        "{said}"
    );
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let folder = Folder::new();
    let trace = folder.file("t", b"1\n2\n");
    let sized = folder.file("s", b"time,key,size\n0,1,100\n");
    for (arguments, message) in [
        (
            format!("{trace} --policy mru"),
            "no policy method \"mru\": there is lru, ",
        ),
        (format!("{trace} --policy mru"), ", gdsf, opt"),
        (
            format!("{trace} --cache 0"),
            "a share as 5%, a number of objects as 1000, or a size as 64MiB, each more than 0",
        ),
        (format!("{trace} --cache 101%"), "from 0.0001% to 100%"),
        (
            format!("{trace} --cache 1KiB"),
            "must hold a block of 8192 bytes",
        ),
        (
            format!("{trace} --cache 1KiB --sizes --policy lru"),
            "a request has no size",
        ),
        (
            format!("{sized} --cache 5 --sizes --policy lru"),
            "a share as 5% or a size",
        ),
        (
            format!("{sized} --sizes --policy opt"),
            "no optimum is known",
        ),
        (format!("{trace} --sample 0%"), "from 0.0001% to 100%"),
        (
            format!("{trace} --warm-up 2"),
            "--warm-up 2: it has 2 references, of which none is left",
        ),
        (format!("{trace} --curve 0"), "from 1 to 1000"),
        (
            format!("{trace} --trace-memory 1B"),
            "no room for more than",
        ),
    ] {
        let refused = forerun(&format!("trace count {arguments}")).code(2);
        let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(stderr.contains(message), "{arguments}: {stderr}");
    }
}

#[test]
fn a_full_disk_is_told_with_the_file_that_has_no_room() {
    let folder = Folder::new();
    let trace = folder.file("t", b"0\n1\n2\n");
    for (command, target) in [
        (
            format!("trace convert {trace} --to csv -o /dev/full"),
            "/dev/full: No space",
        ),
        (
            "trace sample web -o /dev/full".to_owned(),
            "/dev/full: No space",
        ),
        (format!("trace convert {trace} --to csv"), ""),
    ] {
        let end = forerun(&command);
        let said = String::from_utf8_lossy(&end.get_output().stderr).into_owned();
        assert_eq!(
            end.get_output().status.success(),
            target.is_empty(),
            "{said}"
        );
        assert!(said.contains(target), "{command}: {said}");
    }
}
