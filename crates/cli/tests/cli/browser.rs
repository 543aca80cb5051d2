//! A browser, where there is one: it loads a page, whose script leaves in the attribute `data-seen` of its body what it
//! found, as JSON.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::Folder;

/// A browser, if there is one.
pub(super) fn browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders = ["/usr/bin", "/usr/local/bin", "/snap/bin"];
    let mut all = folders
        .iter()
        .flat_map(|folder| names.map(|name| Path::new(folder).join(name)));
    all.find(|path| path.exists())
}

/// The attribute `data-seen` of a page's body once it is loaded.
pub(super) fn seen_by(browser: &Path, folder: &Folder, page: &Path, flags: &[&str]) -> Value {
    // A browser that hangs is ended, and the test fails.
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=10", "600"])
        .arg(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args(["--disable-dev-shm-usage", "--window-size=1400,900"])
        .args(flags)
        .arg(format!("--user-data-dir={}", folder.name("browser")))
        .arg(format!("file://{}", page.display()))
        .stdout(File::create(folder.path("dom")).unwrap())
        .stderr(Stdio::null());
    let ended = command.status().unwrap();
    assert!(ended.success(), "the browser: {ended}");
    let dom = fs::read_to_string(folder.path("dom")).unwrap();
    let seen = dom
        .split("data-seen=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let seen = seen.unwrap_or_else(|| panic!("the page's script has not ended: {dom}"));
    serde_json::from_str(&seen.replace("&quot;", "\"")).unwrap()
}
