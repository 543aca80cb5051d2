//! The commands of the documents: every line of a `sh` fence, and of a `console` fence each line behind `$ ` or `# `.
//!
//! A fence whose first line is `# not run here: REASON` is not run by the tests. A line that ends in `\` goes on in the next one; `&&`, `;` and `|` begin another command; `#` after a space, `>`
//! and `<` end one. Example: `sudo forerun read FILE > copy   # all` has the words `read FILE`.
//!
//! Not a crate: test programs include it by path.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A command, without the program's name.
#[derive(Debug)]
pub(crate) struct DocumentCommand {
    /// The document, from the repository's root.
    pub(crate) document: PathBuf,
    pub(crate) words: Vec<String>,
}

/// The commands of `program` in all documents of the repository.
pub(crate) fn commands(program: &str) -> Vec<DocumentCommand> {
    let mut all = Vec::new();
    for Fence {
        document, lines, ..
    } in fences()
    {
        for words in lines.iter().flat_map(|line| commands_of(line)) {
            if let Some(rest) = words.strip_prefix(&[program.to_owned()]) {
                let (document, words) = (document.clone(), rest.to_vec());
                all.push(DocumentCommand { document, words });
            }
        }
    }
    all
}

/// The commands of a line, without `sudo` and variables before them.
pub(crate) fn commands_of(line: &str) -> Vec<Vec<String>> {
    let words = words(line);
    let commands = words.split(|word| ["&&", ";", "|"].contains(&word.as_str()));
    let is_variable = |word: &str| {
        word.split_once('=')
            .is_some_and(|(name, _)| !name.contains(|c: char| !c.is_ascii_uppercase() && c != '_'))
    };
    let commands = commands.filter_map(|command| {
        let begin = command
            .iter()
            .position(|word| word != "sudo" && !is_variable(word))?;
        Some(command[begin..].to_vec())
    });
    commands.collect()
}

/// A fence of commands.
#[derive(Debug)]
#[allow(dead_code, reason = "not every test program looks at the marks")]
pub(crate) struct Fence {
    /// The document, from the repository's root.
    pub(crate) document: PathBuf,
    /// The reason why it is not run.
    pub(crate) not_run: Option<String>,
    /// Its commands, joined where one goes on.
    pub(crate) lines: Vec<String>,
}

/// All fences of commands of all documents.
pub(crate) fn fences() -> Vec<Fence> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut documents = vec![
        PathBuf::from("README.md"),
        "CONTRIBUTING.md".into(),
        "python/README.md".into(),
    ];
    for folder in ["docs", "docs/design"] {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        let names = entries.map(|entry| Path::new(folder).join(entry.unwrap().file_name()));
        documents.extend(names.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    documents.sort();
    let mut all = Vec::new();
    for document in documents {
        let text = fs::read_to_string(root.join(&document)).unwrap();
        all.extend(fences_of(&text).into_iter().map(|mut lines| {
            let mark = lines
                .first()
                .and_then(|line| line.strip_prefix(MARK))
                .map(str::to_owned);
            if mark.is_some() {
                lines.remove(0);
            }
            Fence {
                document: document.clone(),
                not_run: mark,
                lines,
            }
        }));
    }
    all
}

const MARK: &str = "# not run here: ";

/// A document of this repository.
#[allow(dead_code, reason = "not every test program compares tables")]
pub(crate) fn document(name: &str) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

/// Compares the first table of a document with one made from data, or puts that into the document.
#[allow(dead_code, reason = "not every test program compares tables")]
pub(crate) fn compare_first_table(name: &str, table: &str) {
    compare_table(name, "| ", table);
}

/// Where the first table of a text lies whose head begins like this, from its head to the end of its last line.
#[allow(dead_code, reason = "not every test program compares tables")]
pub(crate) fn table_at(text: &str, head: &str) -> Range<usize> {
    let begin = text.find(&format!("\n{head}")).unwrap() + 1;
    let end = begin + text[begin..].find("\n\n").unwrap() + 1;
    begin..end
}

/// Likewise the first table whose head begins like this.
#[allow(dead_code, reason = "not every test program compares tables")]
pub(crate) fn compare_table(name: &str, head: &str, table: &str) {
    let (path, text) = document(name);
    let at = table_at(&text, head);
    #[expect(
        clippy::disallowed_methods,
        reason = "asks whether to rewrite the table"
    )]
    let is_blessed = std::env::var_os("FORERUN_BLESS").is_some();
    if is_blessed {
        let (front, rest) = (&text[..at.start], &text[at.end..]);
        fs::write(&path, format!("{front}{table}{rest}")).unwrap();
        return;
    }
    assert!(
        &text[at.clone()] == table,
        "{name} has\n{}expected\n{table}",
        &text[at]
    );
}

/// The commands of each fence, joined where one goes on.
fn fences_of(text: &str) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    let (mut kind, mut begun) = ("", String::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("```") {
            kind = if kind.is_empty() { name } else { "" };
            if ["sh", "console"].contains(&kind) {
                found.push(Vec::new());
            }
            continue;
        }
        let is_begun = !begun.is_empty();
        let prompted = ["$ ", "# "]
            .iter()
            .find_map(|prompt| line.strip_prefix(prompt));
        let line = match (kind, prompted) {
            ("sh", _) => line,
            ("console", _) if is_begun || line.starts_with(MARK) => line,
            ("console", Some(line)) => line,
            _ => continue,
        };
        match (line.strip_suffix('\\'), found.last_mut()) {
            (Some(front), _) => begun += front,
            (None, Some(lines)) => lines.push(std::mem::take(&mut begun) + line),
            (None, None) => {}
        }
    }
    found
}

/// The words of a line; quotes keep spaces.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => return words,
            (None, '>' | '<') => return words.into_iter().chain(word).collect(),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
