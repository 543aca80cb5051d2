//! A file changes while it is read: `version_number`.

use std::sync::Arc;

use loom::thread;

use crate::explore;
use crate::version_number::VersionNumber;

#[test]
fn a_reader_takes_the_size_of_the_version_that_it_numbers() {
    explore(|| {
        let version = Arc::new(VersionNumber::new(10));
        let changing = thread::spawn({
            let version = version.clone();
            move || {
                version.begin(20);
                version.begun();
            }
        });
        if let Some((count, bytes)) = version.at_rest() {
            assert_eq!(bytes, 10 + 5 * count);
        }
        changing.join().unwrap();
    });
}
