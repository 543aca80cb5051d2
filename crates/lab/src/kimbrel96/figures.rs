//! Figures 2 to 10 of the paper, each on the traces and arrays that the paper shows it for.
//!
//! The paper's own figures are pictures, so only numbers from its text can be printed beside them.

use super::super::lab::{Lab, SELECT_TENTH};
use super::super::{Bar, Chart, Exhibit, Shown, Table};
use super::loads::{BATCHES, HORIZONS};
use super::methods::{
    AGGRESSIVE, ARRAYS, DEMAND, FORESTALL, HORIZON, REVERSE, SELECT, SYNTH, bar, compared,
    searched_aggressive, searched_reverse,
};
use super::numbers::{seconds, service_ms};
use super::tables::{SELECT_NOTE, head};

const ALL_BUT_FORESTALL: &[&str] = &[DEMAND, HORIZON, AGGRESSIVE, REVERSE];
const THREE: &[&str] = &[HORIZON, AGGRESSIVE, REVERSE];
const PRACTICAL: &[&str] = &[HORIZON, AGGRESSIVE, FORESTALL];

pub(super) const FIGURE_2: Exhibit = Exhibit {
    id: "figure-2",
    title: "Figure 2: postgres-select",
    note: SELECT_NOTE,
    draw: |lab, shown| {
        shown.charts = vec![
            chart(lab, ALL_BUT_FORESTALL, SELECT, &ARRAYS),
            chart(lab, ALL_BUT_FORESTALL, SELECT_TENTH, &ARRAYS),
        ];
    },
};
pub(super) const FIGURE_3: Exhibit = Exhibit {
    id: "figure-3",
    title: "Figure 3: synth and cscope1",
    note: "On synth with the searched parameters, see K4 and K5. cscope1 is a stand-in.",
    draw: |lab, shown| {
        shown.charts = vec![
            searched_chart(lab),
            chart(lab, THREE, "cscope1", &[1, 2, 3, 4]),
        ];
    },
};
pub(super) const FIGURE_4: Exhibit = Exhibit {
    id: "figure-4",
    title: "Figure 4: ld",
    note: "A stand-in. The paper: comparable on one disk, fixed horizon level with aggressive at \
           ten.",
    draw: |lab, shown| shown.charts = vec![chart(lab, THREE, "ld", &ARRAYS)],
};
pub(super) const FIGURE_5: Exhibit = Exhibit {
    id: "figure-5",
    title: "Figure 5: cscope3",
    note: "A stand-in. The paper: reverse aggressive much worse than aggressive on one disk.",
    draw: |lab, shown| shown.charts = vec![chart(lab, THREE, "cscope3", &ARRAYS)],
};
pub(super) const FIGURE_6: Exhibit = Exhibit {
    id: "figure-6",
    title: "Figure 6: aggressive by its batch, on cscope2",
    note: "A stand-in; a line for each number of disks. The paper's text: on one disk 10.4 ms a \
           fetch in batches of 4, 8.4 in 160; 6771 fetches in 160, 9806 in 1280; on five disks \
           11,325 and 11,399.",
    draw: figure_6,
};
pub(super) const FIGURE_7: Exhibit = Exhibit {
    id: "figure-7",
    title: "Figure 7: fixed horizon by its horizon, on cscope1 and cscope2",
    note: "Stand-ins; a line for each number of disks. The paper's text: cscope1 on one disk \
           makes 4959 fetches with H = 64 and 8535 with 2048; cscope2 gains from H until it is \
           very large.",
    draw: figure_7,
};
pub(super) const FIGURE_8: Exhibit = Exhibit {
    id: "figure-8",
    title: "Figure 8: synth and xds",
    note: "All in the batches of Table 6. xds is a stand-in.",
    draw: |lab, shown| {
        shown.charts = vec![
            chart(lab, PRACTICAL, SYNTH, &[1, 2, 3, 4]),
            chart(lab, PRACTICAL, "xds", &[1, 2, 3, 4, 5, 6]),
        ];
    },
};
pub(super) const FIGURE_9: Exhibit = Exhibit {
    id: "figure-9",
    title: "Figure 9: cscope2",
    note: "A stand-in.",
    draw: |lab, shown| shown.charts = vec![chart(lab, PRACTICAL, "cscope2", &ARRAYS)],
};
pub(super) const FIGURE_10: Exhibit = Exhibit {
    id: "figure-10",
    title: "Figure 10: glimpse",
    note: "A stand-in.",
    draw: |lab, shown| shown.charts = vec![chart(lab, PRACTICAL, "glimpse", &ARRAYS)],
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
    let searched = searched_aggressive(lab);
    for disks in 1..=4 {
        for (method, policy) in [
            (HORIZON, HORIZON.to_owned()),
            (AGGRESSIVE, searched(disks)),
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

/// Elapsed time over a parameter, a line for each number of disks, and facts of the runs.
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
                run.fetches().to_string(),
                format!("{:.2}", service_ms(&run)),
                format!("{:.3}", seconds(run.stall)),
            ]);
        }
        lines.push((disks.to_string(), points));
    }
    let head = head(&[
        "disks",
        parameter,
        "elapsed s",
        "fetches",
        "disk ms a fetch",
        "stall s",
    ]);
    let table = Table::new(trace, head, rows);
    let chart = Chart::Lines {
        title: trace.to_owned(),
        measured: "elapsed, s".to_owned(),
        over: parameter.to_owned(),
        lines,
    };
    (table, chart)
}

fn figure_6(lab: &mut Lab, shown: &mut Shown) {
    let arrays = [1, 2, 3, 4, 5];
    let policy = |batch| format!("aggressive(batch_blocks={batch})");
    let (table, chart) = over(lab, "cscope2", &arrays, "batch, blocks", &BATCHES, policy);
    shown.tables.push(table);
    shown.charts.push(chart);
}

fn figure_7(lab: &mut Lab, shown: &mut Shown) {
    let policy = |horizon| format!("fixed-horizon(horizon_refs={horizon})");
    let traces: [(&'static str, &[u16]); 2] =
        [("cscope1", &[1, 2, 3]), ("cscope2", &[1, 2, 3, 4, 5])];
    for (trace, arrays) in traces {
        let (table, chart) = over(lab, trace, arrays, "H, references", &HORIZONS, policy);
        shown.tables.push(table);
        shown.charts.push(chart);
    }
}
