//! The commands of the bed that the documents show.

#[path = "../../documents.rs"]
mod documents;

use clap::Parser;
use documents::{DocumentCommand, commands};
use forerun_bed::args::Args;

#[test]
fn every_command_of_the_documents_is_one() {
    let found = commands("forerun-bed");
    assert!(
        found.len() > 15,
        "{} commands: are the fences found?",
        found.len()
    );
    for DocumentCommand { document, words } in found {
        let words = std::iter::once("forerun-bed".to_owned()).chain(words);
        let words: Vec<String> = words.collect();
        if let Err(error) = Args::try_parse_from(&words) {
            panic!("{}: {}\n{error}", document.display(), words.join(" "));
        }
    }
}
