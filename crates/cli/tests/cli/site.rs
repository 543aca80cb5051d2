//! The site of the documents in a browser: no page is wider than its window, headings are in order, and the search finds
//! words that users come with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::Folder;
use super::browser::{browser, seen_by};
use super::skipped::skipped;

/// Words that users come with: symptoms, programs, places.
const WORDS: &[&str] = &[
    "slow",
    "Permission denied",
    "Jellyfin",
    "S3",
    "NVMe",
    "fstab",
    "systemd",
    "docker",
    "Samba",
    "NFS",
    "PyTorch",
    "Parquet",
    "Prometheus",
    "Grafana",
    "uninstall",
    "upgrade",
    "Transport endpoint is not connected",
    "allow-other",
    "memory",
    "hangs",
];

/// A phone and a desk.
const WIDTHS: [u32; 2] = [380, 1280];

/// Loads each page, and the search for each word, in a frame of this width.
const SCRIPT: &str = r#"
const wait = ms => new Promise(done => setTimeout(done, ms));
const frame = address => new Promise(done => {
    const frame = document.createElement("iframe");
    frame.style = `border: 0; width: ${width}px; height: 900px`;
    frame.onload = () => done(frame.contentDocument);
    frame.src = address;
    document.body.replaceChildren(frame);
});
onload = async () => {
    const seen = {wide: [], disorder: [], unfound: []};
    for (const page of pages) {
        const shown = await frame(page);
        const scroll = shown.documentElement.scrollWidth;
        if (scroll > width) seen.wide.push(`${page}: ${scroll}`);
        const headings = [...shown.querySelectorAll("main :is(h1, h2, h3, h4, h5, h6)")];
        const levels = headings.map(heading => Number(heading.tagName[1]));
        const is_right = (level, at) => at == 0 ? level == 1 : level > 1 && level <= levels[at - 1] + 1;
        if (!levels.length || !levels.every(is_right)) seen.disorder.push(`${page}: ${levels}`);
    }
    for (const word of words) {
        const shown = await frame(`${pages[0]}?search=${encodeURIComponent(word)}`);
        let found = 0;
        for (let look = 0; look < 1000 && !found; look++) {
            await wait(10);
            found = shown.querySelectorAll("[id$='searchresults'] li").length;
        }
        if (!found) seen.unfound.push(word);
    }
    document.body.replaceChildren();
    document.body.dataset.seen = JSON.stringify(seen);
};
"#;

/// The paths of all pages below the folder of a site.
fn pages(book: &Path) -> Vec<String> {
    let (mut pages, mut folders) = (Vec::new(), vec![book.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(book).unwrap().to_str().unwrap();
            let is_page = name.ends_with(".html");
            if is_page && !["404.html", "print.html", "toc.html"].contains(&name) {
                pages.push(name.to_owned());
            }
        }
    }
    pages.sort();
    pages
}

/// The faults that a browser sees in frames of this width.
fn faults(browser: &Path, folder: &Folder, book: &Path, width: u32) -> Value {
    let (pages, words) = (json!(pages(book)), json!(WORDS));
    let script = format!("const pages = {pages}, words = {words}, width = {width};{SCRIPT}");
    let outer = book.join(format!("frame-{width}.htm"));
    fs::write(
        &outer,
        format!("<!DOCTYPE html><body><script>{script}</script></body>"),
    )
    .unwrap();
    // A frame's document is its own origin otherwise; and time passes as fast as nothing is left to do.
    let flags = [
        "--allow-file-access-from-files",
        "--virtual-time-budget=3600000",
    ];
    seen_by(browser, folder, &outer, &flags)
}

const SCRIPT_OF_SITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/site.py");

fn site(folder: &Path) -> Output {
    site_by(Path::new(SCRIPT_OF_SITE), folder)
}

fn site_by(script: &Path, folder: &Path) -> Output {
    let mut command = Command::new("python3");
    command.arg(script).arg(folder).output().unwrap()
}

#[test]
fn a_folder_with_files_of_others_is_left_as_it_is() {
    let folder = Folder::new();
    for (name, text) in [
        ("notes", "mine"),
        ("book.toml", "[book]\ntitle = \"another\"\n"),
    ] {
        let at = folder.path(name).with_extension("d");
        fs::create_dir(&at).unwrap();
        fs::write(at.join(name), text).unwrap();
        let said = site(&at);
        assert_eq!(said.status.code(), Some(2), "{said:?}");
        let stderr = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(stderr.contains("has files of others"), "{stderr}");
        assert_eq!(fs::read_to_string(at.join(name)).unwrap(), text);
    }
    // That of a site is made anew; without mdbook there are the sources alone.
    let at = folder.path("site");
    fs::create_dir(&at).unwrap();
    fs::write(at.join("book.toml"), "[book]\ntitle = \"forerun\"\n").unwrap();
    fs::write(at.join("old"), "a page").unwrap();
    site(&at);
    assert!(at.join("src/README.md").exists() && !at.join("old").exists());
}

#[test]
fn a_site_that_was_not_finished_is_made_again() {
    let folder = Folder::new();
    let root = folder.path("root");
    for name in ["packaging", "docs"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let script = root.join("packaging/site.py");
    fs::copy(SCRIPT_OF_SITE, &script).unwrap();
    fs::write(root.join("Cargo.toml"), "[workspace.package]\n").unwrap();
    let summary = "- [There](A.md)\n- [Missing](B.md)\n- [Missing](C.md)\n";
    fs::write(root.join("docs/SUMMARY.md"), summary).unwrap();
    fs::write(root.join("docs/A.md"), "# A\n").unwrap();
    let at = folder.path("site");
    for time in 1..4 {
        let said = site_by(&script, &at);
        let stderr = String::from_utf8_lossy(&said.stderr).into_owned();
        let is_missing = stderr.contains("B.md") || stderr.contains("C.md");
        assert!(
            is_missing && said.status.code() == Some(1),
            "{time}: {stderr}"
        );
    }
}

#[test]
fn in_a_browser_the_site_fits_phones_and_desks_and_finds_words_of_users() {
    let Some(browser) = browser() else {
        return skipped("needs chromium");
    };
    if Command::new("mdbook").arg("--version").output().is_err() {
        return skipped("needs mdbook: cargo install mdbook");
    }
    let folder = Folder::new();
    let made = site(&folder.path("site"));
    let said = String::from_utf8_lossy(&[made.stdout, made.stderr].concat()).into_owned();
    assert!(made.status.success(), "{said}");
    let book = folder.path("site").join("book");
    assert!(pages(&book).len() > 50, "{said}");
    for width in WIDTHS {
        let faults = faults(&browser, &folder, &book, width);
        let none = json!({"wide": [], "disorder": [], "unfound": []});
        assert_eq!(faults, none, "{width} pixels");
    }
}
