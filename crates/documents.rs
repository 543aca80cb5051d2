//! The commands of the documents: every line of a `sh` fence that begins with a given program.
//!
//! A line that ends in `\` goes on in the next one; `&&`, `;` and `|` begin another command; `#` after a space, `>`
//! and `<` end one. Example: `sudo forerun read FILE > copy   # all` has the words `read FILE`.
//!
//! Not a crate: test programs include it by path.

use std::fs;
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
        for line in lines(&text) {
            let words = words(&line);
            let mut commands: Vec<_> = words
                .split(|word| ["&&", ";", "|"].contains(&word.as_str()))
                .collect();
            commands.retain(|command| command.iter().any(|word| word == program));
            all.extend(commands.into_iter().filter_map(|command| {
                let begin = command.iter().position(|word| word != "sudo")?;
                let rest = command[begin..].strip_prefix(&[program.to_owned()])?;
                let document = document.clone();
                let words = rest.to_vec();
                Some(DocumentCommand { document, words })
            }));
        }
    }
    all
}

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
    let (path, text) = document(name);
    let begin = text.find("\n| ").unwrap() + 1;
    let end = begin + text[begin..].find("\n\n").unwrap() + 1;
    #[expect(
        clippy::disallowed_methods,
        reason = "asks whether to rewrite the table"
    )]
    let is_blessed = std::env::var_os("FORERUN_BLESS").is_some();
    if is_blessed {
        fs::write(&path, format!("{}{table}{}", &text[..begin], &text[end..])).unwrap();
        return;
    }
    assert!(
        &text[begin..end] == table,
        "{name} has\n{}expected\n{table}",
        &text[begin..end]
    );
}

/// The lines of all `sh` fences, joined where one goes on.
fn lines(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    let mut begun = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if let Some(front) = line.strip_suffix('\\').filter(|_| inside) {
            begun += front;
        } else if inside {
            found.push(std::mem::take(&mut begun) + line);
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
