//! The stand-ins: fits of each to a figure of the paper, and that figure without the fit.
//!
//! Reads, distinct blocks and compute time of all nine are those of Table 3, exactly, and their
//! structure is that of section 3.1. The rest was chosen; a figure that a choice was fitted to is
//! no test any more, and stands here with the fit and without:
//!
//! ```text
//! cscope1    a loop of 1067 blocks    4959, 8535 fetches    with it ..    all blocks in the loop ..
//! ```

use super::super::lab::{CSCOPE_3_EVEN, Lab, SELECT_TENTH};
use super::super::{Exhibit, Shown, Table};
use super::methods::{AGGRESSIVE, ARRAYS, DEMAND, HORIZON, REVERSE, SELECT, SYNTH, compared};
use super::numbers::{elapsed_s, service_ms, slower_percent, utilisation};
use super::tables::head;
use forerun_sim::hinted::stand_in::{cscope, glimpse, postgres, xds};

pub(super) const STAND_INS: Exhibit = Exhibit {
    id: "stand-ins",
    title: "Stand-ins: parameters fitted to a published figure",
    note: "Reads, distinct blocks and compute time of each are those of Table 3, and their structure that of section \
           3.1. A figure that a choice was fitted to is no test of that trace: it is shown with the choice \
           and without it. A crossover is the least number of disks from which on fixed horizon is no \
           slower than aggressive; section 4.3 gives it as above or below five.",
    draw: |lab, shown: &mut Shown| {
        let rows = rows(lab).into_iter().map(|row| row.to_vec()).collect();
        let head = head(&[
            "trace",
            "fitted",
            "to which figure",
            "published",
            "with the fit",
            "without",
        ]);
        shown.tables = vec![Table::new("", head, rows)];
    },
};

type Row = [String; 6];

fn row(cells: [&str; 4], with: String, without: String) -> Row {
    let [trace, fitted, figure, published] = cells.map(str::to_owned);
    [trace, fitted, figure, published, with, without]
}

fn rows(lab: &mut Lab) -> Vec<Row> {
    let none = |trace| row([trace, "nothing", "-", "-"], "-".into(), "-".into());
    let mut rows = vec![none("dinero")];
    rows.extend(cscopes(lab));
    rows.push(row(
        [
            glimpse::GLIMPSE.name,
            "a keyword names half of the partitions; without: one keyword names each",
            "crossover, section 4.3",
            "above 5 disks",
        ],
        crossover(lab, glimpse::GLIMPSE.name),
        crossover(lab, glimpse::GLIMPSE_ONCE.name),
    ));
    rows.push(none("ld"));
    rows.push(row(
        [
            postgres::JOIN.name,
            "tuples are looked up in the order of the key; without: in random order",
            "crossover, section 4.3",
            "below 5 disks",
        ],
        crossover(lab, postgres::JOIN.name),
        crossover(lab, postgres::JOIN_RANDOM.name),
    ));
    let load = |lab: &mut Lab, trace| format!("{:.2}", utilisation(&lab.run(trace, DEMAND, 1)));
    rows.push(row(
        [
            SELECT,
            "a tenth of the printed compute time, shown beside the whole; without: all of it",
            "utilisation of one disk by demand fetching, Table 4",
            "0.82",
        ],
        load(lab, SELECT_TENTH),
        load(lab, SELECT),
    ));
    let seconds = |lab: &mut Lab, trace| format!("{:.1}", elapsed_s(&lab.run(trace, HORIZON, 5)));
    rows.push(row(
        [
            xds::XDS.name,
            "slices go through the volume layer by layer; without: in any order",
            "seconds of fixed horizon on 5 disks, Table 2",
            "33.5",
        ],
        seconds(lab, xds::XDS.name),
        seconds(lab, xds::XDS_ANY.name),
    ));
    let exact = "nothing: it is defined exactly, and not lost";
    rows.push(row([SYNTH, exact, "-", "-"], "-".into(), "-".into()));
    rows
}

fn cscopes(lab: &mut Lab) -> [Row; 3] {
    let fetches = |lab: &mut Lab, trace| {
        let fetches = [64, 2048].map(|horizon| {
            let policy = format!("fixed-horizon(horizon_refs={horizon})");
            lab.run(trace, &policy, 1).fetches().to_string()
        });
        fetches.join(", ")
    };
    let ms = |lab: &mut Lab, trace| {
        let ms = [4, 160].map(|batch| {
            let policy = format!("aggressive(batch_blocks={batch})");
            format!("{:.1}", service_ms(&lab.run(trace, &policy, 1)))
        });
        ms.join(", ")
    };
    let percent = |lab: &mut Lab, trace| {
        let reverse = compared(lab, REVERSE, trace, 1);
        let aggressive = lab.run(trace, AGGRESSIVE, 1);
        format!("{:.1}", slower_percent(&reverse, &aggressive))
    };
    let (single, long) = (
        ms(lab, cscope::CSCOPE_2_SINGLE.name),
        ms(lab, cscope::CSCOPE_2_LONG.name),
    );
    [
        row(
            [
                cscope::CSCOPE_1.name,
                "a loop of 1067 blocks; without: all blocks but one",
                "fetches of fixed horizon, H = 64 and 2048, section 4.4 (K16)",
                "4959, 8535",
            ],
            fetches(lab, cscope::CSCOPE_1.name),
            fetches(lab, cscope::CSCOPE_1_WHOLE.name),
        ),
        row(
            [
                cscope::CSCOPE_2.name,
                "files of 2.5 blocks in the mean; without: of 1, or of 8.5 as those of ld",
                "ms a fetch of aggressive in batches of 4 and 160, section 4.4 (K15)",
                "10.4, 8.4",
            ],
            ms(lab, cscope::CSCOPE_2.name),
            format!("{single}; {long}"),
        ),
        row(
            [
                cscope::CSCOPE_3.name,
                "bursts near 1 and around 7 ms, as section 4.3 tells; without: all compute times the mean",
                "per cent that reverse aggressive is slower than aggressive on one disk, Figure 5",
                "much slower",
            ],
            percent(lab, cscope::CSCOPE_3.name),
            percent(lab, CSCOPE_3_EVEN),
        ),
    ]
}

/// From how many disks on fixed horizon is no slower than aggressive.
fn crossover(lab: &mut Lab, trace: &'static str) -> String {
    let slower = ARRAYS.map(|disks| {
        let aggressive = lab.run(trace, AGGRESSIVE, disks).elapsed;
        lab.run(trace, HORIZON, disks).elapsed > aggressive
    });
    match slower.iter().rposition(|slower| *slower) {
        None => "1 disk".to_owned(),
        Some(last) => match ARRAYS.get(last + 1) {
            Some(disks) => format!("{disks} disks"),
            None => "above 16 disks".to_owned(),
        },
    }
}
