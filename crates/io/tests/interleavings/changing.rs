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
        let before = version.count();
        let bytes = version.bytes();
        if before.is_multiple_of(2) && version.count() == before {
            assert_eq!(bytes, 10 + 5 * before);
        }
        changing.join().unwrap();
    });
}
