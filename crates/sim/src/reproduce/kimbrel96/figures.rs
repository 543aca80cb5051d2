//! Figures 2 to 10 of the paper: what each shows, on the traces and arrays it shows it for.
//!
//! The paper's own figures are pictures, so there is nothing beside them to print but what the
//! text says of them.

use super::super::lab::{Lab, SELECT_TENTH};
use super::super::{Bar, Chart, Exhibit, Shown, Table};
use super::loads::{BATCHES, HORIZONS};
use super::methods::{
    AGGRESSIVE, ARRAYS, DEMAND, FORESTALL, HORIZON, REVERSE, SELECT, SYNTH, bar, compared,
    searched_aggressive, searched_reverse,
};
use super::numbers::{seconds, service_ms};
use super::tables::{SELECT_NOTE, head};

/// An exhibit that shows nothing but bars of some methods on a trace.
macro_rules! bars {
    ($name:ident, $id:literal, $title:literal, $note:expr, $show:expr) => {
        pub(super) const $name: Exhibit = Exhibit {
            id: $id,
            show: |lab| Shown {
                title: $title.to_owned(),
                note: $note.to_owned(),
                tables: Vec::new(),
                charts: $show(lab),
            },
        };
    };
}

const ALL_BUT_FORESTALL: &[&str] = &[DEMAND, HORIZON, AGGRESSIVE, REVERSE];
const THREE: &[&str] = &[HORIZON, AGGRESSIVE, REVERSE];
const PRACTICAL: &[&str] = &[HORIZON, AGGRESSIVE, FORESTALL];

bars!(
    FIGURE_2,
    "figure-2",
    "Figure 2: postgres-select",
    SELECT_NOTE,
    |lab: &mut Lab| vec![
        chart(lab, ALL_BUT_FORESTALL, SELECT, &ARRAYS),
        chart(lab, ALL_BUT_FORESTALL, SELECT_TENTH, &ARRAYS),
    ]
);
bars!(
    FIGURE_3,
    "figure-3",
    "Figure 3: synth and cscope1",
    "On synth with the searched parameters, see K4 and K5. cscope1 is a stand-in.",
    |lab: &mut Lab| vec![
        searched_chart(lab),
        chart(lab, THREE, "cscope1", &[1, 2, 3, 4])
    ]
);
bars!(
    FIGURE_4,
    "figure-4",
    "Figure 4: ld",
    "A stand-in. The paper: comparable on one disk, fixed horizon level with aggressive at ten.",
    |lab: &mut Lab| vec![chart(lab, THREE, "ld", &ARRAYS)]
);
bars!(
    FIGURE_5,
    "figure-5",
    "Figure 5: cscope3",
    "A stand-in. The paper: reverse aggressive much worse than aggressive on one disk.",
    |lab: &mut Lab| vec![chart(lab, THREE, "cscope3", &ARRAYS)]
);
bars!(
    FIGURE_8,
    "figure-8",
    "Figure 8: synth and xds",
    "All in the batches of Table 6. xds is a stand-in.",
    |lab: &mut Lab| vec![
        chart(lab, PRACTICAL, SYNTH, &[1, 2, 3, 4]),
        chart(lab, PRACTICAL, "xds", &[1, 2, 3, 4, 5, 6]),
    ]
);
bars!(
    FIGURE_9,
    "figure-9",
    "Figure 9: cscope2",
    "A stand-in.",
    |lab: &mut Lab| vec![chart(lab, PRACTICAL, "cscope2", &ARRAYS)]
);
bars!(
    FIGURE_10,
    "figure-10",
    "Figure 10: glimpse",
    "A stand-in.",
    |lab: &mut Lab| vec![chart(lab, PRACTICAL, "glimpse", &ARRAYS)]
);

pub(super) const FIGURE_6: Exhibit = Exhibit {
    id: "figure-6",
    show: figure_6,
};
pub(super) const FIGURE_7: Exhibit = Exhibit {
    id: "figure-7",
    show: figure_7,
};

fn chart(lab: &mut Lab, methods: &[&'static str], trace: &'static str, arrays: &[u16]) -> Chart {
    let mut bars: Vec<Bar> = Vec::new();
    for disks in arrays {
        for method in methods {
            let run = compared(lab, method, trace, *disks);
            bars.push(bar(method, *disks, &run));
        }
    }
    Chart::Bars {
        title: trace.to_owned(),
        bars,
    }
}

fn searched_chart(lab: &mut Lab) -> Chart {
    let mut bars: Vec<Bar> = Vec::new();
    for disks in 1..=4 {
        for (method, policy) in [
            (HORIZON, HORIZON.to_owned()),
            (AGGRESSIVE, searched_aggressive(disks)),
            (REVERSE, searched_reverse(disks)),
        ] {
            bars.push(bar(method, disks, &lab.run(SYNTH, &policy, disks)));
        }
    }
    Chart::Bars {
        title: SYNTH.to_owned(),
        bars,
    }
}

/// Elapsed time over a parameter, a line for each number of disks, and what the runs did.
fn over(
    lab: &mut Lab,
    trace: &'static str,
    arrays: &[u16],
    parameter: &str,
    values: &[u32],
    policy: impl Fn(u32) -> String,
) -> (Table, Chart) {
    let mut lines = Vec::new();
    let mut rows = Vec::new();
    for disks in arrays {
        let mut points = Vec::new();
        for value in values {
            let run = lab.run(trace, &policy(*value), *disks);
            points.push((f64::from(*value), seconds(run.elapsed)));
            rows.push(vec![
                disks.to_string(),
                value.to_string(),
                format!("{:.1}", seconds(run.elapsed)),
                run.ledger.fetches.to_string(),
                format!("{:.2}", service_ms(&run)),
                format!("{:.3}", seconds(run.stall)),
            ]);
        }
        lines.push((disks.to_string(), points));
    }
    let table = Table {
        title: trace.to_owned(),
        head: head(&[
            "disks",
            parameter,
            "elapsed s",
            "fetches",
            "disk ms a fetch",
            "stall s",
        ]),
        rows,
    };
    let chart = Chart::Lines {
        title: trace.to_owned(),
        over: parameter.to_owned(),
        lines,
    };
    (table, chart)
}

fn figure_6(lab: &mut Lab) -> Shown {
    let arrays = [1, 2, 3, 4, 5];
    let policy = |batch| format!("aggressive(batch_blocks={batch})");
    let (table, chart) = over(lab, "cscope2", &arrays, "batch, blocks", &BATCHES, policy);
    Shown {
        title: "Figure 6: aggressive by its batch, on cscope2".to_owned(),
        note:
            "A stand-in; a line for each number of disks. The paper's text: on one disk 10.4 ms a \
               fetch in batches of 4, 8.4 in 160; 6771 fetches in 160, 9806 in 1280; on five disks \
               11,325 and 11,399."
                .to_owned(),
        tables: vec![table],
        charts: vec![chart],
    }
}

fn figure_7(lab: &mut Lab) -> Shown {
    let policy = |horizon| format!("fixed-horizon(horizon_refs={horizon})");
    let traces: [(&'static str, &[u16]); 2] =
        [("cscope1", &[1, 2, 3]), ("cscope2", &[1, 2, 3, 4, 5])];
    let mut shown = Shown {
        title: "Figure 7: fixed horizon by its horizon, on cscope1 and cscope2".to_owned(),
        note: "Stand-ins; a line for each number of disks. The paper's text: cscope1 on one disk \
               makes 4959 fetches with H = 64 and 8535 with 2048; cscope2 gains from H until it is \
               very large."
            .to_owned(),
        ..Shown::default()
    };
    for (trace, arrays) in traces {
        let (table, chart) = over(lab, trace, arrays, "H, references", &HORIZONS, policy);
        shown.tables.push(table);
        shown.charts.push(chart);
    }
    shown
}
