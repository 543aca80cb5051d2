//! `forerun reproduce`: what it prints, and the report it writes.

use std::fs;

use serde_json::Value;
use snapbox::str;

use super::{Folder, forerun, output_of};

#[test]
fn every_claim_is_a_line_of_json_with_a_verdict() {
    let folder = Folder::new();
    let report = folder.name("out");
    let printed = output_of(&format!("reproduce kimbrel96 --format json -o {report}"));
    let claims: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(claims.len(), 18);
    for claim in &claims {
        for key in ["id", "paper", "published", "measured", "verdict", "note"] {
            assert!(claim.get(key).is_some(), "{key} is missing: {claim}");
        }
        let measured = claim["measured"] != Value::Null;
        assert_eq!(measured, claim["verdict"] != "not measured", "{claim}");
        assert_eq!(claim["paper"], "kimbrel96");
    }
    for at in [0, 1, 2, 4] {
        assert_eq!(claims[at]["verdict"], "met", "{}", claims[at]);
    }
    assert_eq!(claims[1]["measured"], 37_280);
    let page = fs::read_to_string(folder.path("out").join("report.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 5, "a plot a method");
    // The name space of SVG is the only address in it.
    let addresses = page.matches("://").count();
    assert_eq!(
        addresses,
        page.matches("http://www.w3.org/2000/svg").count()
    );
}

#[test]
fn a_paper_there_is_not_is_refused() {
    forerun("reproduce kimbrel95").code(2).stderr_eq(str![[r#"
error: invalid value 'kimbrel95' for '<PAPER>': no such paper; there is kimbrel96

For more information, try '--help'.

"#]]);
}
