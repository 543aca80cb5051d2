//! The objects below an address as a tree: names, versions, and keys that are no names.

use std::io;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use forerun_io::source::fetch;
use forerun_io::source::tree::{Age, Entry, Stat, Tree};
use forerun_store::{Client, Limits};

use crate::http_server::{Bare, Fault, Server};

fn client(server: &Server) -> Client {
    let variables = [
        ("AWS_ENDPOINT_URL", server.url("")),
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    Client::with_variables(Limits::default(), variables).unwrap()
}

/// The bucket `b` of a server as one of each kind of store, with the variables for it.
fn stores(server: &Server) -> [(&'static str, Vec<(String, String)>); 3] {
    let set = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    let s3 = [
        ("AWS_ENDPOINT_URL", &*server.url("")),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ];
    let az = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
        ("AZURE_STORAGE_ENDPOINT", &*server.url("")),
    ];
    let gs = [("GOOGLE_BASE_URL", &*server.url(""))];
    [
        ("s3://b", set(&s3)),
        ("az://b", set(&az)),
        ("gs://b", set(&gs)),
    ]
}

fn server(keys: &[&str]) -> Server {
    let server = Server::start();
    for key in keys {
        server.put(&format!("/b/{key}"), "1", key.as_bytes().to_vec());
    }
    server
}

/// Names of a folder, those of folders with a `/`, in order.
fn names(tree: &dyn Tree, folder: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in tree.list(folder)? {
        let (name, entry) = entry?;
        names.push(match entry {
            Entry::Folder => name + "/",
            Entry::Object(_) => name,
        });
    }
    names.sort();
    Ok(names)
}

fn object(found: Option<Entry>) -> Stat {
    match found {
        Some(Entry::Object(stat)) => stat,
        other => panic!("{other:?} is no object"),
    }
}

#[test]
fn a_name_is_found_as_it_is_listed() {
    let server = server(&["d/a", "d/e/f", "d/e-", "other", "d/ü %41+&"]);
    let tree = client(&server).tree("s3://b/d/").unwrap();
    assert_eq!(names(&tree, "").unwrap(), ["a", "e-", "e/", "ü %41+&"]);
    assert_eq!(names(&tree, "e").unwrap(), ["f"]);
    assert_eq!(tree.find("").unwrap(), Some(Entry::Folder));
    assert_eq!(tree.find("e").unwrap(), Some(Entry::Folder));
    for missing in ["other", "x", "e/x", "a/x", "..", ".", "e//f", "../other"] {
        assert_eq!(tree.find(missing).unwrap(), None, "{missing}");
    }
    for (listed, entry) in tree.list("").unwrap().map(Result::unwrap) {
        assert_eq!(tree.find(&listed).unwrap(), Some(entry), "{listed}");
    }
    let stat = object(tree.find("e/f").unwrap());
    let source = tree.open("e/f", &stat).unwrap();
    assert_eq!(fetch(&*source, 0, 100).unwrap(), b"d/e/f");
}

/// `b` comes with the second page: at the end of the first one a folder of its name can follow.
#[test]
fn a_listed_name_is_as_old_as_its_page() {
    let server = server(&["a", "b", "c", "d"]);
    server.page(2);
    let tree = client(&server).tree("s3://b").unwrap();
    let mut names = tree.list_recalled("").unwrap();
    let first = names.next().unwrap().unwrap().0;
    let between = Instant::now();
    let mut of = vec![(first, true)];
    for name in names {
        let (name, _, as_of) = name.unwrap();
        of.push((name, as_of < between));
    }
    let of: Vec<_> = of.iter().map(|(name, old)| (&**name, *old)).collect();
    assert_eq!(of, [("a", true), ("b", true), ("c", false), ("d", false)]);
}

/// The entry of a path, of an answer that may be so old.
fn recall(tree: &dyn Tree, path: &str, age: Age) -> Option<Entry> {
    let (give, given) = channel();
    let then = move |recalled: io::Result<_>| give.send(recalled.unwrap()).unwrap();
    tree.recall_then(path, age, Box::new(then));
    given.recv().unwrap().0
}

/// Answers are believed for ever, and so no test depends on the time it takes.
const FOR_EVER: Age = Age {
    present: Duration::MAX,
    absent: Duration::MAX,
};

#[test]
fn names_of_one_folder_are_answered_by_pages_and_as_if_each_was_asked_for_alone() {
    let mut keys: Vec<String> = (0..1500).map(|number| format!("f/k{number:05}")).collect();
    for more in [
        "f/",
        "f/k00007/x",
        "f/k00008-",
        "f/ü",
        "f/k01000 /y",
        "f/z/",
        "g",
    ] {
        keys.push(more.to_owned());
    }
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let server = server(&keys);
    let mut asked: Vec<String> = (0..1600).map(|number| format!("f/k{number:05}")).collect();
    for more in [
        "f/k00008-",
        "f/k00008!",
        "f/ü",
        "f/k01000 ",
        "f/z",
        "f/zz",
        "f/a",
        "g",
        "h",
    ] {
        asked.push(more.to_owned());
    }
    for (address, variables) in stores(&server) {
        let client = Client::with_variables(Limits::default(), variables).unwrap();
        let tree = client.tree(address).unwrap();
        let (before, _) = server.counts();
        let recalled = asked.iter().map(|path| recall(&tree, path, FOR_EVER));
        let recalled: Vec<_> = recalled.collect();
        let requests = server.counts().0 - before;
        for (path, recalled) in asked.iter().zip(recalled) {
            assert_eq!(recalled, tree.find(path).unwrap(), "{address}: {path}");
        }
        // The server of the tests begins each page of Azure at the first key.
        assert!(
            requests <= 20 || address == "az://b",
            "{address}: {requests} requests"
        );
    }
}

#[test]
fn an_answer_that_is_not_believed_is_asked_for_again() {
    let server = server(&["f/a", "f/b", "f/c", "f/d", "f/e"]);
    let tree = client(&server).tree("s3://b").unwrap();
    let count = |path, age| {
        let (before, _) = server.counts();
        recall(&tree, path, age);
        server.counts().0 - before
    };
    let never = Age {
        present: Duration::ZERO,
        absent: Duration::ZERO,
    };
    let present = Age {
        absent: Duration::ZERO,
        ..FOR_EVER
    };
    for path in ["f/a", "f/b", "f/c"] {
        assert_eq!(count(path, never), 2, "{path}");
    }
    assert_eq!((count("f/a", present), count("f/b", present)), (2, 1));
    assert_eq!((count("f/c", present), count("f/e", present)), (0, 0));
    server.put("/b/f/cc", "1", vec![1]);
    // Its page is believed, and not that it has no such name.
    assert_eq!((count("f/cc", FOR_EVER), count("f/cc", present)), (0, 1));
}

/// As programs do that are given whole paths.
#[test]
fn a_folder_that_is_walked_is_there_by_the_page_of_its_next_names() {
    let keys: Vec<String> = (0..100).map(|number| format!("f/k{number:02}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let server = server(&keys);
    let tree = client(&server).tree("s3://b").unwrap();
    let count = |path| {
        let (before, _) = server.counts();
        assert!(recall(&tree, path, FOR_EVER).is_some(), "{path}");
        server.counts().0 - before
    };
    assert_eq!((count("f"), count("f/k00"), count("f/k01")), (2, 2, 1));
    // A page of the folder above has no other name.
    assert_eq!((count("f"), count("f/k02")), (1, 0));
    let tree = client(&server).tree("s3://b").unwrap();
    for path in ["f/k00", "f/k01", "f/k02"] {
        recall(&tree, path, FOR_EVER);
    }
    let (before, _) = server.counts();
    assert_eq!(recall(&tree, "f", FOR_EVER), Some(Entry::Folder));
    assert_eq!(server.counts().0, before + 1);
    let lines = server.lines().join("\n");
    assert!(lines.contains("start-after=f%2Fk01"), "{lines}");
}

#[test]
fn a_store_that_lists_no_page_or_in_no_order_answers_names_alone() {
    let server = server(&["f/a", "f/b", "f/c"]);
    let tree = client(&server).tree("s3://b").unwrap();
    let stat = |path| recall(&tree, path, FOR_EVER).map(|entry| object(Some(entry)).bytes);
    assert_eq!(stat("f/a"), Some(3));
    let unordered = "<ListBucketResult><Contents><Key>f/c</Key><LastModified>2024-01-01T00:00:00Z\
                     </LastModified><ETag>\"1\"</ETag><Size>7</Size></Contents><Contents><Key>f/b</Key>\
                     <LastModified>2024-01-01T00:00:00Z</LastModified><ETag>\"1\"</ETag><Size>7</Size>\
                     </Contents></ListBucketResult>";
    server.fail([Fault::Text(200, unordered)]);
    assert_eq!(stat("f/b"), Some(3));
    assert_eq!(stat("f/c"), Some(3));
    server.fail([Fault::Status(400, None)]);
    assert_eq!(stat("f/b"), Some(3));
    assert_eq!(stat("f/c"), Some(3));
    assert_eq!(server.faults_left(), 0);
}

#[test]
fn a_version_is_read_or_refused() {
    let server = server(&["a"]);
    let tree = client(&server).tree("s3://b").unwrap();
    let old = object(tree.find("a").unwrap());
    server.put("/b/a", "2", b"new".to_vec());
    let new = object(tree.find("a").unwrap());
    assert_ne!(old.version, new.version);
    let read = |stat| fetch(&*tree.open("a", stat).unwrap(), 0, 100);
    assert_eq!(read(&new).unwrap(), b"new");
    let refused = read(&old).unwrap_err().raw_os_error();
    assert_eq!(refused, Some(libc::ESTALE));
    let none = Stat {
        version: None,
        ..new
    };
    let refused = tree.open("a", &none).unwrap_err().raw_os_error();
    assert_eq!(refused, Some(libc::ESTALE));
}

#[test]
fn a_folder_hides_the_object_of_its_name_and_its_own_marker() {
    let server = server(&["a", "a/b", "a/", "c/"]);
    let tree = client(&server).tree("s3://b").unwrap();
    assert_eq!(names(&tree, "").unwrap(), ["a/", "c/"]);
    assert_eq!(names(&tree, "a").unwrap(), ["b"]);
    assert_eq!(names(&tree, "c").unwrap(), [""; 0]);
    assert_eq!(tree.find("a").unwrap(), Some(Entry::Folder));
    assert_eq!(tree.find("c").unwrap(), Some(Entry::Folder));
}

#[test]
fn keys_without_a_name_are_left_out_and_all_others_listed_without_a_further_request() {
    let mut keys: Vec<String> = (0..2500).map(|i| format!("d/k{i:04}")).collect();
    let mut expected: Vec<String> = keys.iter().map(|key| key[2..].to_owned()).collect();
    // Behind, between and before the others; as objects, and as beginnings of many.
    let nameless = [
        "d/./a",
        "d//",
        "d//x",
        "d/k1234//",
        "d/k1234/../x",
        "d/l/",
        "d/~/./z",
        "d/\0",
        "d/\u{1}",
        "d/n\n",
        "d/..",
        "/d",
    ];
    keys.extend(nameless.map(str::to_owned));
    keys.extend((0..1500).map(|i| format!("d/more\u{7}{i}")));
    let long = "n".repeat(300);
    let names_too = [" blank ", "*", &long, "..x", "%2e%2e", "a&b<c>\"'", "ü"];
    keys.extend(names_too.map(|name| format!("d/{name}")));
    let server = server(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    expected.retain(|name| name != "k1234");
    expected.extend(["k1234/", "l/", "~/"].map(str::to_owned));
    expected.extend(names_too.map(str::to_owned));
    expected.sort();
    for (address, variables) in stores(&server) {
        let client = Client::with_variables(Limits::default(), variables).unwrap();
        let tree = client.tree(&format!("{address}/d")).unwrap();
        let (before, _) = server.counts();
        assert_eq!(names(&tree, "").unwrap(), expected, "{address}");
        assert_eq!(
            server.counts().0 - before,
            5,
            "{address}: pages of 1,000 keys"
        );
        assert_eq!(names(&tree, "k1234").unwrap(), [""; 0]);
        // Folders with nothing to be shown are there all the same.
        for folder in ["k1234", "~"] {
            assert_eq!(
                tree.find(folder).unwrap(),
                Some(Entry::Folder),
                "{address}: {folder}"
            );
        }
        for (name, entry) in tree.list("").unwrap().map(Result::unwrap) {
            if names_too.contains(&&*name) {
                assert_eq!(
                    tree.find(&name).unwrap(),
                    Some(entry.clone()),
                    "{address}: {name}"
                );
                let source = tree.open(&name, &object(Some(entry))).unwrap();
                assert_eq!(
                    fetch(&*source, 0, 400).unwrap(),
                    format!("d/{name}").as_bytes()
                );
            }
        }
        for none in ["..", ".", "", "a//b", "n\n", "\0", "/d", "more\u{7}1"] {
            let found = tree.find(&format!("x/{none}")).unwrap();
            assert_eq!(found, None, "{address}: {none:?}");
        }
    }
}

/// A listing and an answer with one ETag in two forms are of one version.
#[test]
fn a_listed_object_is_read_whatever_form_its_tag_has() {
    let server = server(&["d/a", "d/b"]);
    for bare in [
        Bare::Nowhere,
        Bare::InListings,
        Bare::InAnswers,
        Bare::Everywhere,
    ] {
        server.bare(bare);
        for (base, variables) in stores(&server) {
            let client = Client::with_variables(Limits::default(), variables).unwrap();
            let tree = client.tree(base).unwrap();
            let mut count = 0;
            for entry in tree.list("d").unwrap() {
                let (name, entry) = entry.unwrap();
                let path = format!("d/{name}");
                assert_eq!(
                    tree.find(&path).unwrap().as_ref(),
                    Some(&entry),
                    "{base}, {bare:?}"
                );
                let source = tree.open(&path, &object(Some(entry))).unwrap();
                assert_eq!(
                    fetch(&*source, 0, 100).unwrap(),
                    path.as_bytes(),
                    "{base}, {bare:?}"
                );
                count += 1;
            }
            assert_eq!(count, 2);
            let old = object(tree.find("d/a").unwrap());
            server.put("/b/d/a", "2", b"new".to_vec());
            let stale = fetch(&*tree.open("d/a", &old).unwrap(), 0, 100).unwrap_err();
            assert_eq!(stale.raw_os_error(), Some(libc::ESTALE), "{base}, {bare:?}");
            server.put("/b/d/a", "1", b"d/a".to_vec());
        }
    }
}

#[test]
fn a_name_stands_once_whatever_the_pages_are() {
    // Before the keys below the folder `a` come those with a dash or a dot behind an `a`.
    let mut keys: Vec<String> = (0..30).map(|i| format!("a-{i:02}")).collect();
    keys.extend(
        [
            "a", "a-07/x", "a.b", "a.b/c", "a/1", "a/2", "b/", "c", "c/", "d",
        ]
        .map(str::to_owned),
    );
    let server = server(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    let mut expected: Vec<String> = (0..30).map(|i| format!("a-{i:02}")).collect();
    expected[7] += "/";
    expected.extend(["a.b/", "a/", "b/", "c/", "d"].map(str::to_owned));
    expected.sort();
    for page in [1, 2, 3, 5, 30, 31, 32, 33, 40, 1000] {
        server.page(page);
        for (base, variables) in stores(&server) {
            let client = Client::with_variables(Limits::default(), variables).unwrap();
            let tree = client.tree(base).unwrap();
            assert_eq!(names(&tree, "").unwrap(), expected, "{base}, {page} keys");
        }
    }
}

#[test]
fn an_empty_folder_of_azure_is_one() {
    let server = server(&["dir/f"]);
    for key in ["dir", "none", "other"] {
        server.put(&format!("/b/{key}"), "folder", Vec::new());
    }
    server.put("/b/empty", "1", Vec::new());
    server.put("/b/full", "folder", vec![1]);
    let [_, (base, variables), _] = stores(&server);
    let client = Client::with_variables(Limits::default(), variables).unwrap();
    let tree = client.tree(base).unwrap();
    let expected = ["dir/", "empty", "full", "none/", "other/"];
    assert_eq!(names(&tree, "").unwrap(), expected);
    assert_eq!(names(&tree, "none").unwrap(), [""; 0]);
    for (name, entry) in tree.list("").unwrap().map(Result::unwrap) {
        assert_eq!(tree.find(&name).unwrap(), Some(entry), "{name}");
    }
}

#[test]
fn names_that_hang_are_bounded_and_leave_others() {
    let server = server(&["a"]);
    let tree = client(&server).tree("s3://b").unwrap();
    server.hang(Some("slow"));
    let (give, given) = channel();
    let ask = |names: std::ops::Range<u32>| {
        for number in names {
            let give = give.clone();
            let then = Box::new(move |found: io::Result<_>| give.send(found.unwrap()).unwrap());
            tree.find_then(&format!("slow{number}"), then);
        }
    };
    // Two requests each, of which 64 count and 192 more may hang.
    ask(0..110);
    assert_eq!(object(tree.find("a").unwrap()).bytes, 1);
    server.wait_for(2 * 110);
    ask(110..200);
    server.wait_for(64 + 192);
    let (_, most) = server.waiting();
    assert_eq!(most, 64 + 192);
    server.hang(None);
    for _ in 0..200 {
        assert_eq!(given.recv_timeout(Duration::from_secs(600)).unwrap(), None);
    }
}

/// Each of the folders has more names than a tenth of the memory for pages.
#[test]
fn folders_that_stay_open_are_listed_whole() {
    let server = Server::start();
    for number in 0..2000 {
        let key = format!("/b/{number:04}{}", "n".repeat(240));
        server.put(&key, "1", Vec::new());
    }
    server.put(&format!("/b/0999{}/x", "n".repeat(240)), "1", Vec::new());
    let tree = client(&server).tree("s3://b").unwrap();
    let mut open: Vec<_> = (0..30).map(|_| tree.list("").unwrap()).collect();
    let mut names = vec![Vec::new(); open.len()];
    for _ in 0..4 {
        for (listing, names) in open.iter_mut().zip(&mut names) {
            names.extend(listing.take(600).map(|entry| entry.unwrap().0));
        }
    }
    for names in &mut names {
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 2000);
    }
}

#[test]
fn a_listing_that_gives_no_further_name_ends() {
    let server = server(&["a", "b"]);
    let tree = client(&server).tree("s3://b").unwrap();
    for again in ["same", "other"] {
        server.again(again);
        let (before, _) = server.counts();
        let refused = names(&tree, "").unwrap_err();
        assert!(
            refused.to_string().contains("without a further name"),
            "{refused}"
        );
        let (after, _) = server.counts();
        assert!(after - before < 200, "{} requests", after - before);
    }
}

#[test]
fn a_tree_that_cannot_be_is_refused_by_its_address() {
    let server = server(&["a/b"]);
    let client = client(&server);
    let refused = |url: &str| client.tree(url).unwrap_err().to_string();
    assert!(refused("s3://b/c").contains("s3://b/c: no key begins with it and a /"));
    assert!(refused("s3://b/a/b").contains("s3://b/a/b: it is an object"));
    assert!(refused(&server.url("/b")).contains("no listings"));
    assert!(refused("s3://b//a").contains("empty part"));
    server.fail([Fault::Status(403, None)]);
    assert!(refused("s3://b").contains("Permission denied"));
    assert!(client.tree("s3://empty").is_ok(), "a bucket may be empty");
}

#[test]
fn a_fault_that_passes_is_asked_through_and_another_one_told() {
    let server = server(&["a"]);
    let tree = client(&server).tree("s3://b").unwrap();
    server.fail([Fault::Status(503, None), Fault::Reset]);
    assert_eq!(object(tree.find("a").unwrap()).bytes, 1);
    server.fail([Fault::Status(503, None)]);
    assert_eq!(names(&tree, "").unwrap(), ["a"]);
    server.fail_always(Some(Fault::Status(403, None)));
    let refused = [tree.find("a").map(drop), names(&tree, "").map(drop)];
    for refused in refused {
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EACCES));
    }
}
