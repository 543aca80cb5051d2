//! `forerun report` and `forerun advise`: pages from rows of every kind, in a browser, and bad rows.

mod advice;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;

use super::browser::{browser, seen_by};
use super::skipped::skipped;
use super::{Folder, forerun, output_of};

/// Three presets by three memories by two seeds, as a sweep would write them, and one that is saturated.
fn rows(trace: &str) -> String {
    let mut text = String::new();
    for (preset, rate) in [("none", 1u64), ("linux-2.6.24", 2), ("forerun", 3)] {
        for (at, memory) in [1u64 << 20, 8 << 20, 64 << 20].into_iter().enumerate() {
            for seed in 1..=2u64 {
                let elapsed = 1_000_000_000 / rate / (at as u64 + 1) + seed * 1_000_000;
                let row = json!({
                    "trace": trace, "device": "seagate_146gb_10k", "preset": preset, "cache_bytes": memory, "seed": seed,
                    "elapsed_ns": elapsed, "reads": 1000, "block_bytes": 4096, "miss_ratio": 0.5 / (at + 1) as f64,
                    "response_p99_ns": elapsed / 20, "saturated": preset == "none" && at == 0, "over_bound": 1.5,
                    "bound_kind": "transfer", "version": "0.1.0", "settings": {"trace": trace, "seed": seed.to_string()},
                });
                text += &format!("{row}\n");
            }
        }
    }
    text
}

fn page(folder: &Folder, rows: &str, more: &str) -> String {
    let output = folder.name("page.html");
    output_of(&format!("report {rows} -o {output} {more}"));
    fs::read_to_string(output).unwrap()
}

/// Nothing is fetched, run or left open.
fn is_self_contained(page: &str) {
    let without = page.replace("http://www.w3.org/2000/svg", "");
    for part in [
        "http:", "https:", "<script", "<link", "<img", " src=", "@import", "url(", "onload",
    ] {
        assert!(!without.contains(part), "{part}");
    }
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(page.contains("prefers-color-scheme:dark"));
}

#[test]
fn a_page_has_figures_answers_and_intervals_and_needs_nothing_else() {
    let folder = Folder::new();
    let rows = folder.file("rows", rows("video.csv").as_bytes());
    let figures = folder.name("figures");
    let page = page(&folder, &rows, &format!("--within 10% --figures {figures}"));
    is_self_contained(&page);
    assert_eq!(page.matches("<svg").count(), 4);
    for part in [
        "video.csv on seagate_146gb_10k",
        "within 10 % of the best",
        "<b>forerun</b> with <b>64 MiB</b>",
        "intervals of the mean over up to 2 seeds",
        "No percentile where the queue grew to the end of the run: none 1 MiB.",
        "(transfer)",
        "16 MiB",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let mut files: Vec<_> = fs::read_dir(figures)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    assert_eq!(files.len(), 8, "{files:?}");
    let csv = files
        .iter()
        .find(|file| file.ends_with("01-video-csv-on-seagate-146gb-10k-throughput.csv"))
        .unwrap();
    let csv = fs::read_to_string(csv).unwrap();
    assert_eq!(csv.lines().next(), Some("line,memory_bytes,MB/s,low,high"));
    assert_eq!(csv.lines().count(), 10);
    for svg in files
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "svg"))
    {
        let text = fs::read_to_string(svg).unwrap();
        assert!(
            text.starts_with("<svg") && text.contains("<style>"),
            "{}",
            svg.display()
        );
    }
}

#[test]
fn two_runs_are_compared_point_by_point() {
    let folder = Folder::new();
    let after = folder.file("after", rows("t").as_bytes());
    let before = rows("t").replace("\"reads\":1000", "\"reads\":500");
    let before = folder.file("before", before.as_bytes());
    let page = page(&folder, &after, &format!("--against {before}"));
    assert!(page.contains("9 of 9 runs are faster by more than 1 %, 0 slower."));
    assert!(page.contains("(+100.0 %)") && page.contains("dashed: the rows compared with"));
}

#[test]
fn runs_are_compared_under_names_of_both_files_and_the_others_are_counted() {
    let folder = Folder::new();
    let on = |disks: u64| {
        rows("t").replace(
            "{\"block_bytes",
            &format!("{{\"disks\":{disks},\"block_bytes"),
        )
    };
    let compared = |before: &[u64], after: &[u64]| {
        let file = |name: &str, disks: &[u64]| {
            let rows: String = disks.iter().map(|disks| on(*disks)).collect();
            folder.file(name, rows.as_bytes())
        };
        let (before, after) = (file("before", before), file("after", after));
        page(&folder, &after, &format!("--against {before}"))
    };
    let more = compared(&[1], &[1, 2]);
    assert_eq!(more.matches("0 of 9 runs are faster").count(), 1, "{more}");
    assert!(!more.contains("Not compared"), "{more}");
    let other = compared(&[1], &[4]);
    assert!(!other.contains("runs are faster"), "{other}");
    let said = "Not compared, for want of a run of the same name and memory here: 9 of 9 runs of ";
    assert!(other.contains(said), "{other}");
    assert!(
        other.contains("t on seagate_146gb_10k, disks 1: forerun"),
        "{other}"
    );
    let fewer = compared(&[1, 2], &[2]);
    assert!(fewer.contains("here: 9 of 18 runs of "), "{fewer}");
    assert_eq!(
        fewer.matches("0 of 9 runs are faster").count(),
        1,
        "{fewer}"
    );
}

#[test]
fn benches_under_other_conditions_are_runs_of_their_own() {
    let folder = Folder::new();
    let bench = |flags: &str| {
        output_of(&format!(
            "bench --readers 2 --clock virtual --preset forerun --format json {flags}"
        ))
    };
    let disk = "--file-bytes 2MB --emulate switching=8ms,rate=80MB/s";
    let all = [
        disk,
        "--file-bytes 2MB --emulate switching=1ms,rate=80MB/s",
        "--file-bytes 1MB --emulate switching=8ms,rate=80MB/s",
        &format!("{disk} --disks 2"),
        &format!("{disk} --shared"),
        &format!("{disk} --think 1ms"),
        &format!("{disk} --depth fixed(depth_bytes=65536)"),
        &format!("{disk} --pattern strided"),
        &format!("{disk} --pattern strided(stride_bytes=131072)"),
        &format!("{disk} --hints"),
        &format!("{disk} --hints --wrong-percent 50"),
    ];
    let rows: String = all.iter().map(|flags| bench(flags)).collect();
    let rows = folder.file("rows", rows.as_bytes());
    let figures = folder.name("figures");
    let page = page(&folder, &rows, &format!("--figures {figures}"));
    let points: usize = fs::read_dir(figures)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with("throughput.csv"))
        .map(|path| fs::read_to_string(path).unwrap().lines().count() - 1)
        .sum();
    assert_eq!(points, all.len(), "{page}");
    assert!(!page.contains("a later one of the same run replaces"));
    for name in [
        "switching=1ms,rate=",
        "disks 2",
        "shared",
        "think 1ms",
        "wrong-percent 50",
        "pth_bytes=65536)",
    ] {
        assert!(page.contains(name), "{name}: {page}");
    }
}

#[test]
fn benches_are_compared_with_rows_from_before_their_conditions_were_told() {
    let folder = Folder::new();
    let bench = |flags: &str| {
        output_of(&format!(
            "bench --readers 2 --clock virtual --preset forerun,none --format json --file-bytes 2MB {flags}"
        ))
    };
    let former = |rows: &str, slower: u64| {
        let row = |line: &str| {
            let mut row: Value = serde_json::from_str(line).unwrap();
            for name in ["device", "disks", "load", "flags"] {
                row.as_object_mut().unwrap().remove(name).unwrap();
            }
            let rate = row["throughput_bytes_per_second"].as_u64().unwrap();
            row["throughput_bytes_per_second"] = json!(rate / slower);
            format!("{row}\n")
        };
        rows.lines().map(row).collect::<String>()
    };
    for flags in [
        "",
        "--emulate switching=8ms,rate=80MB/s",
        "--emulate switching=8ms,rate=80MB/s --disks 2 --shared --depth fixed(depth_bytes=65536)",
    ] {
        let after = bench(flags);
        let before = former(&after, 2);
        let compared = |one: &str, other: &str| {
            let one = folder.file("one", one.as_bytes());
            let other = folder.file("other", other.as_bytes());
            page(&folder, &one, &format!("--against {other}"))
        };
        let after_before = compared(&after, &before);
        let said = "2 of 2 runs are faster by more than 1 %, 0 slower.";
        assert!(after_before.contains(said), "{flags}: {after_before}");
        assert!(!after_before.contains("Not compared"), "{after_before}");
        let before_after = compared(&before, &after);
        let said = "0 of 2 runs are faster by more than 1 %, 2 slower.";
        assert!(before_after.contains(said), "{flags}: {before_after}");
        // Rows that are replaced there are told, too.
        let replaced = " that a later one of the same run replaces, with other figures: 2.";
        assert!(!after_before.contains(replaced));
        let twice = compared(&after, &(former(&after, 4) + &before));
        assert!(twice.contains(replaced), "{twice}");
    }
}

#[test]
fn rows_that_others_replace_are_counted_where_their_figures_differ() {
    let folder = Folder::new();
    let said = |rows: String| {
        let rows = folder.file("rows", rows.as_bytes());
        let page = page(&folder, &rows, "");
        let (_, rest) = page.split_once("replaces, with other figures: ")?;
        Some(rest.split_once('.')?.0.parse::<usize>().unwrap())
    };
    assert_eq!(said(rows("t") + &rows("t")), None);
    let slower = rows("t").replace("\"reads\":1000", "\"reads\":500");
    assert_eq!(said(slower + &rows("t")), Some(18));
}

#[test]
fn names_of_traces_and_presets_are_text_and_nothing_else() {
    let folder = Folder::new();
    let hostile = "</title><script>alert(1)</script>\"'&<img onload=x>";
    let mut text = rows(hostile);
    text += &format!(
        "{}\n",
        json!({"error": format!("{hostile} failed"), "key": "k"})
    );
    text += &format!("{}\n", json!({"advice": [hostile]}));
    let rows = folder.file("rows", text.as_bytes());
    let page = page(&folder, &rows, "");
    let without = page.replace("onload=x&gt;", "");
    is_self_contained(&without);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn rows_of_other_commands_are_shown() {
    let folder = Folder::new();
    let bench = output_of(
        "bench --emulate switching=8ms,rate=80MB/s --readers 4 --file-bytes 2MB --clock virtual --preset \
         none,forerun --format json",
    );
    let bench = folder.file("bench", bench.as_bytes());
    let drawn = page(&folder, &bench, "");
    assert!(
        drawn.contains("sequential on switching=8ms,rate=80MB/s, virtual time"),
        "{drawn}"
    );
    assert!(drawn.contains("<rect class=\"bar\""));
    let trace = folder.file("t", b"block,bytes\n1,1\n2,1\n1,1\n");
    let counts = output_of(&format!(
        "trace count {trace} --policy lru,opt --cache 1,2 --format json"
    ));
    let counts = folder.file("counts", counts.as_bytes());
    assert!(page(&folder, &counts, "").contains("Miss ratio against memory"));
}

#[test]
fn counts_of_other_traces_parts_and_flags_are_points_of_their_own() {
    let folder = Folder::new();
    let text = b"time,block,bytes,op\n0,1,1,r\n1,2,1,r\n2,1,1,r\n3,1,1,w\n";
    let one = folder.file("one, \"a\"", text);
    let other = folder.file("other", text);
    let mut rows = String::new();
    for (trace, flags) in [
        (&one, &[][..]),
        (&other, &[]),
        (&other, &["--until", "2s"]),
        (&other, &["--warm-up", "1"]),
        (&other, &["--writes"]),
        (&other, &["--block-bytes", "4KiB"]),
    ] {
        let mut command = Command::new(cargo_bin!("forerun"));
        command.args([
            "trace", "count", trace, "--policy", "lru", "--cache", "8KiB",
        ]);
        let output = command
            .args(flags)
            .args(["--format", "json"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        rows += &String::from_utf8(output.stdout).unwrap();
    }
    let rows = folder.file("rows", rows.as_bytes());
    let figures = folder.name("figures");
    let page = page(&folder, &rows, &format!("--figures {figures}"));
    let points: usize = fs::read_dir(figures)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "csv"))
        .map(|path| fs::read_to_string(path).unwrap().lines().count() - 1)
        .sum();
    assert_eq!(points, 6, "{page}");
    for name in [
        "one, &quot;a&quot;</h2>",
        "until 2000000000ns",
        "warm up 1",
        "writes true",
    ] {
        assert!(page.contains(name), "{name}");
    }
}

#[test]
fn lines_that_are_no_rows_are_refused_with_their_number_and_nothing_is_written() {
    let folder = Folder::new();
    let good = rows("t");
    for (name, text, said) in [
        ("empty", String::new(), "no rows"),
        (
            "cut",
            format!("{good}{{\"preset\":\n"),
            "line 19: no JSON object",
        ),
        (
            "other",
            format!("{good}{{\"a\":1}}\n"),
            "line 19: no row of simulate",
        ),
        ("list", "[1]\n".to_owned(), "line 1: no row of simulate"),
        (
            "claims",
            format!("{good}{{\"claim\":\"c\",\"paper\":\"wu10\",\"published\":[1]}}\n"),
            "line 19: a claim of a paper: `forerun-lab reproduce PAPER -o DIR`",
        ),
        (
            "kind",
            format!("{good}{{\"preset\":\"none\",\"elapsed_ns\":\"12\"}}\n"),
            "line 19: elapsed_ns is \"12\": must be a number of at least 0",
        ),
    ] {
        let rows = folder.file(name, text.as_bytes());
        let output = folder.name("page.html");
        let ended = forerun(&format!("report {rows} -o {output}")).code(2);
        let stderr = String::from_utf8_lossy(&ended.get_output().stderr).into_owned();
        assert!(stderr.contains(said), "{name}: {stderr}");
        assert!(!folder.path("page.html").exists(), "{name}");
    }
    let rows = folder.file("rows", good.as_bytes());
    for (within, said) in [
        ("120%", "'--within <PERCENT>': must lie from 0% to 100%"),
        ("NaN", "'--within <PERCENT>': must lie from 0% to 100%"),
        ("-1%", "'--within <PERCENT>': must lie from 0% to 100%"),
    ] {
        let ended = forerun(&format!("report {rows} -o p.html --within {within}")).code(2);
        let stderr = String::from_utf8_lossy(&ended.get_output().stderr).into_owned();
        assert!(stderr.contains(said), "{within}: {stderr}");
    }
    forerun(&format!("report {rows} -o {rows}")).code(2);
}

#[test]
fn a_run_that_failed_is_told_once_and_not_where_a_row_has_its_result() {
    let folder = Folder::new();
    let failed = |key: &str, why: &str| format!("{}\n", json!({"key": key, "error": why}));
    let result = rows("t")
        .lines()
        .next()
        .unwrap()
        .replacen('{', "{\"key\":\"a\",", 1);
    let text =
        failed("a", "replaced") + &failed("b", "first") + &result + "\n" + &failed("b", "last");
    let rows = folder.file("rows", text.as_bytes());
    let page = page(&folder, &rows, "");
    assert!(
        page.contains("<h2>1 runs failed</h2>\n<ul>\n<li>last</li>"),
        "{page}"
    );
    assert!(!page.contains("replaced"));
}

/// Attributes of a page that a script in a frame of this width found: its width, and its figures that are drawn.
fn seen(browser: &Path, folder: &Folder, page: &str, width: u32) -> Value {
    let inner = page.replace('&', "&amp;").replace('"', "&quot;");
    let outer = format!(
        "<!DOCTYPE html><body style=\"margin:0\"><iframe style=\"border:0\" width=\"{width}\" height=\"900\" srcdoc=\"{inner}\">\
         </iframe><script>onload = () => {{ const page = document.querySelector('iframe').contentDocument; \
         const boxes = [...page.querySelectorAll('svg')].map(svg => svg.getBoundingClientRect()); \
         const wide = [...page.querySelectorAll('body > *')].filter(e => e.getBoundingClientRect().right > {width}); \
         document.body.dataset.seen = JSON.stringify({{scroll: page.documentElement.scrollWidth, \
         drawn: boxes.filter(box => box.width > 200 && box.height > 100).length, wide: wide.length, \
         marks: page.querySelectorAll('polyline').length}}); }}</script></body>"
    );
    let file = folder.file("frame.html", outer.as_bytes());
    seen_by(browser, folder, Path::new(&file), &[])
}

#[test]
fn in_a_browser_the_page_fits_phones_and_desks_and_all_figures_are_drawn() {
    let Some(browser) = browser() else {
        skipped("needs chromium");
        return;
    };
    let folder = Folder::new();
    let long = "a/very/long/folder/with-a-name-without-any-blank/".repeat(4) + "video.csv";
    let rows = folder.file("rows", rows(&long).as_bytes());
    let page = page(&folder, &rows, "");
    for width in [420, 1280] {
        let seen = seen(&browser, &folder, &page, width);
        assert!(
            seen["scroll"].as_u64().unwrap() <= width.into(),
            "{width}: {seen}"
        );
        assert_eq!(
            (&seen["drawn"], &seen["wide"]),
            (&json!(4), &json!(0)),
            "{width}: {seen}"
        );
        assert_eq!(seen["marks"], 12, "{width}: {seen}");
    }
}

#[test]
fn a_page_that_cannot_be_written_leaves_no_figures_and_rows_of_a_pipe_have_a_heading() {
    let folder = Folder::new();
    let rows = folder.file("rows", rows("video.csv").as_bytes());
    let figures = folder.path("figures");
    for output in ["/nonexistent/page.html", "/dev/full", &folder.name("")] {
        let end = forerun(&format!(
            "report {rows} -o {output} --figures {}",
            figures.display()
        ));
        let said = String::from_utf8_lossy(&end.get_output().stderr).into_owned();
        assert!(
            !end.get_output().status.success() && said.contains(output),
            "{said}"
        );
        assert!(!figures.exists(), "{output}");
    }
    let page = snapbox::cmd::Command::new(snapbox::cmd::cargo_bin!("forerun"))
        .args(["report", "-", "-o", "-"])
        .stdin(snapbox::Data::read_from(Path::new(&rows), None))
        .assert()
        .success();
    let page = String::from_utf8(page.get_output().stdout.clone()).unwrap();
    assert!(page.contains("<h1>standard input</h1>"));
}
