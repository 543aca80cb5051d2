//! The claims of kimbrel96 as `forerun reproduce` measures them: those that depend on no disk are
//! met exactly, those that could not be measured say so, and nothing is left out.

use forerun_sim::reproduce::{self, Finding, Verdict};

fn finding<'a>(findings: &'a [Finding], id: &str) -> &'a Finding {
    findings
        .iter()
        .find(|finding| finding.claim.id == id)
        .unwrap()
}

#[test]
fn kimbrel96_is_measured_claim_by_claim() {
    let paper = reproduce::find("kimbrel96").unwrap();
    let mut steps = 0;
    let all = paper.reproduce(&mut |_, _| steps += 1).unwrap();
    assert_eq!(steps, 19);
    let ids: Vec<&str> = all.findings.iter().map(|f| f.claim.id.as_str()).collect();
    let expected: Vec<String> = (1..=18).map(|number| format!("K{number}")).collect();
    assert_eq!(ids, expected);
    for id in ["K1", "K2", "K3", "K4", "K5", "K6", "K7", "K9", "K10", "K18"] {
        let finding = finding(&all.findings, id);
        assert_eq!(finding.verdict, Verdict::Met, "{finding:?}");
    }
    for id in ["K11", "K12"] {
        let finding = finding(&all.findings, id);
        assert_eq!(finding.verdict, Verdict::MetInPart, "{finding:?}");
        assert!(finding.note.contains("synth only"), "{finding:?}");
    }
    for id in ["K13", "K14", "K15", "K16", "K17"] {
        let finding = finding(&all.findings, id);
        assert_eq!(finding.verdict, Verdict::NotMeasured, "{finding:?}");
        assert_eq!(finding.measured, None);
        assert!(finding.note.contains("missing"), "{finding:?}");
    }
    // A figure that was looked for says so, and what Table 6 gives.
    for id in ["K4", "K5", "K7", "K9"] {
        let note = &finding(&all.findings, id).note;
        assert!(
            note.contains("found by search") && note.contains("Table 6"),
            "{note}"
        );
    }
    assert_eq!(all.bars.len(), 5 * 11);
    for table in &all.tables {
        assert!(table.rows.iter().all(|row| row.len() == table.head.len()));
    }
}

#[test]
fn a_paper_there_is_not_is_answered_with_those_there_are() {
    let refused = reproduce::find("kimbrel95").unwrap_err();
    assert!(refused.contains("kimbrel96"), "{refused}");
}
