//! Findings of a `reproduce` that was interrupted, for the next one.
//!
//! Each finding is a line of a file in the user's cache folder (`$XDG_CACHE_HOME/forerun` or `~/.cache/forerun`), written
//! when its claim is complete, and the file goes when the run is. There is a file for each request (paper, claims, moments, knobs),
//! and each line has the bytes of its program as a hash: a line of another program counts for nothing.

use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use forerun_lab::Notice;
use forerun_lab::{Claim, Figures, Finding, Measured, Verdict};
use serde::{Deserialize, Serialize};

/// See the [module](self). Without a folder that can be written, nothing is kept.
#[derive(Debug)]
pub(crate) struct Kept {
    path: Option<PathBuf>,
    key: String,
    file: Option<File>,
}

/// A finding as it is written. Numbers are texts, which are read back bit for bit.
#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    id: String,
    measured: Vec<LineMeasured>,
}

#[derive(Serialize, Deserialize)]
struct LineMeasured {
    notice: String,
    is_one: bool,
    figures: Vec<String>,
    range: Vec<(String, String)>,
    verdict: String,
    is_borderline: bool,
    fitted: Option<String>,
    note: String,
}

impl Kept {
    /// The file of a paper, for findings under these settings.
    pub(crate) fn of(folder: Option<&Path>, paper: &str, settings: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(settings.as_bytes());
        let name = format!("reproduce-{paper}-{:08x}.jsonl", hasher.finish() as u32);
        let path = folder.map(|folder| folder.join(name));
        let program = program().map_or_else(String::new, |hash| format!("{hash:016x}"));
        Self {
            // Without the program's bytes, nothing says that a finding is its own.
            path: path.filter(|_| !program.is_empty()),
            key: format!("{program} {settings}"),
            file: None,
        }
    }

    /// Findings of an interrupted run, of these claims. A file of another program begins anew.
    pub(crate) fn findings(&mut self, claims: &[Claim]) -> Vec<Finding> {
        let Some(path) = &self.path else {
            return Vec::new();
        };
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().map(serde_json::from_str::<Line>);
        let own = lines
            .filter_map(Result::ok)
            .filter(|line| line.key == self.key);
        let findings = own.filter_map(|line| line.finding(claims));
        let findings: Vec<Finding> = findings.collect();
        if findings.is_empty() {
            self.remove();
        }
        findings
    }

    /// Keeps a finding. One that cannot be written is measured again.
    pub(crate) fn add(&mut self, finding: &Finding) {
        let Some(path) = &self.path else { return };
        if self.file.is_none() {
            let _ = path.parent().map(fs::create_dir_all);
            self.file = OpenOptions::new().append(true).create(true).open(path).ok();
        }
        let line = Line::of(&self.key, finding);
        if let (Some(file), Ok(mut text)) = (&mut self.file, serde_json::to_string(&line)) {
            // One write, so that lines of two runs do not mix. The line before may have been cut off.
            text = format!("\n{text}\n");
            let _ = file.write_all(text.as_bytes());
        }
    }

    /// The paper is complete: nothing is kept of it.
    pub(crate) fn remove(&mut self) {
        self.file = None;
        let _ = self.path.as_ref().map(fs::remove_file);
    }
}

/// A hash of the bytes of this program.
fn program() -> Option<u64> {
    let mut file = File::open(std::env::current_exe().ok()?).ok()?;
    let (mut hasher, mut part) = (DefaultHasher::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut part).ok()? {
            0 => return Some(hasher.finish()),
            bytes => hasher.write(&part[..bytes]),
        }
    }
}

impl Line {
    fn of(key: &str, finding: &Finding) -> Self {
        let measured = finding.measured.iter().map(LineMeasured::of);
        Self {
            key: key.to_owned(),
            id: finding.claim.id.clone(),
            measured: measured.collect(),
        }
    }

    fn finding(self, claims: &[Claim]) -> Option<Finding> {
        let claim = claims.iter().find(|claim| claim.id == self.id)?.clone();
        let measured = self.measured.into_iter().map(LineMeasured::measured);
        Some(Finding {
            claim,
            measured: measured.collect::<Option<Vec<Measured>>>()?,
        })
    }
}

impl LineMeasured {
    fn of(one: &Measured) -> Self {
        let range = one.range.iter();
        Self {
            notice: one.notice.name().to_owned(),
            is_one: matches!(one.figures, Figures::One(_)),
            figures: one.figures.all().iter().map(f64::to_string).collect(),
            range: range.map(|(a, b)| (a.to_string(), b.to_string())).collect(),
            verdict: one.verdict.name().to_owned(),
            is_borderline: one.is_borderline,
            fitted: one.fitted.clone(),
            note: one.note.clone(),
        }
    }

    fn measured(self) -> Option<Measured> {
        let number = |text: &String| text.parse::<f64>().ok();
        let figures: Vec<f64> = self.figures.iter().map(number).collect::<Option<_>>()?;
        let range = self.range.iter();
        let notice = Notice::LIST.iter().find(|(name, _)| *name == self.notice)?;
        Some(Measured {
            notice: notice.1,
            figures: match figures.as_slice() {
                [one] if self.is_one => Figures::One(*one),
                _ => Figures::Several(figures),
            },
            range: range
                .map(|(a, b)| Some((number(a)?, number(b)?)))
                .collect::<Option<_>>()?,
            verdict: Verdict::LIST
                .into_iter()
                .find(|one| one.name() == self.verdict)?,
            is_borderline: self.is_borderline,
            fitted: self.fitted,
            note: self.note,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Vec<Claim> {
        forerun_lab::find("wu10").unwrap().claims().unwrap().claims
    }

    fn finding(at: usize, figures: Figures) -> Finding {
        let measured = Measured {
            notice: Notice::AtReads,
            figures,
            range: vec![(0.1 + 0.2, f64::MAX)],
            verdict: Verdict::Fitted,
            is_borderline: true,
            fitted: Some("a fit".to_owned()),
            note: "a note, \"quoted\"".to_owned(),
        };
        Finding {
            claim: claims().remove(at),
            measured: vec![measured],
        }
    }

    #[test]
    fn findings_come_back_as_they_were_and_only_under_their_own_key() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("forerun");
        let all = [
            finding(1, Figures::One(0.1 + 0.2)),
            finding(2, Figures::Several(vec![1.0 / 3.0, f64::MIN_POSITIVE])),
        ];
        let mut kept = Kept::of(Some(&deep), "wu10", "at-once");
        assert!(kept.findings(&claims()).is_empty());
        for finding in &all {
            kept.add(finding);
        }
        let path = kept.path.clone().unwrap();
        // The last line of a run that was killed may be a part of one.
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}{}", &text[..40])).unwrap();
        let mut again = Kept::of(Some(&deep), "wu10", "at-once");
        assert_eq!(again.findings(&claims()), all);
        again.add(&finding(3, Figures::One(1.0)));
        assert_eq!(
            Kept::of(Some(&deep), "wu10", "at-once")
                .findings(&claims())
                .len(),
            3
        );
        // Other settings have another file, and another program begins anew.
        let mut other = Kept::of(Some(&deep), "wu10", "at-once seed=3");
        assert!(other.findings(&claims()).is_empty() && path.exists());
        let mut changed = Kept::of(Some(&deep), "wu10", "at-once");
        changed.key = "another program".to_owned();
        assert!(changed.findings(&claims()).is_empty() && !path.exists());
    }

    #[test]
    fn without_a_folder_nothing_is_kept() {
        let mut kept = Kept::of(None, "wu10", "");
        kept.add(&finding(1, Figures::One(1.0)));
        assert!(kept.findings(&claims()).is_empty());
        let mut kept = Kept::of(Some(Path::new("/proc/no-such-folder")), "wu10", "");
        kept.add(&finding(1, Figures::One(1.0)));
        assert!(kept.findings(&claims()).is_empty());
    }
}
