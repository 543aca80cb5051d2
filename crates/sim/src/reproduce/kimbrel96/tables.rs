//! Tables of the report: the paper's Table 2 as far as it is about `synth`, and every run.

use super::super::lab::Lab;
use super::super::{Broken, Table};
use super::synth::{ARRAYS, aggressive, methods, seconds, service_ms};

/// Table 2, `synth`: disks, CMU simulator (fixed horizon, aggressive), UW simulator (the same).
const TABLE_2: [(u16, [&str; 4]); 4] = [
    (1, ["213.0", "168.5", "201.4", "155.8"]),
    (2, ["136.3", "126.9", "130.9", "121.7"]),
    (3, ["118.9", "149.5", "118.9", "150.4"]),
    (4, ["118.9", "150.4", "118.9", "150.1"]),
];

pub(super) fn all(lab: &mut Lab) -> Result<Vec<Table>, Broken> {
    Ok(vec![table_2(lab)?, runs(lab)?])
}

fn table_2(lab: &mut Lab) -> Result<Table, Broken> {
    let mut rows = Vec::new();
    for (disks, published) in TABLE_2 {
        let mut row = vec![disks.to_string()];
        row.extend(published.map(str::to_owned));
        for policy in [
            "fixed-horizon".to_owned(),
            aggressive(disks),
            "aggressive".to_owned(),
        ] {
            row.push(format!(
                "{:.1}",
                seconds(lab.synth(&policy, disks)?.elapsed)
            ));
        }
        rows.push(row);
    }
    Ok(Table {
        title: "Table 2, synth: elapsed seconds; CMU and UW as published".to_owned(),
        head: head(&[
            "disks",
            "CMU F.H.",
            "CMU Agg.",
            "UW F.H.",
            "UW Agg.",
            "here F.H.",
            "here Agg., searched batches",
            "here Agg., batches of Table 6",
        ]),
        rows,
    })
}

fn runs(lab: &mut Lab) -> Result<Table, Broken> {
    let mut rows = Vec::new();
    for disks in ARRAYS {
        for (_, policy) in methods(disks) {
            let run = lab.synth(&policy, disks)?;
            let times = [run.elapsed, run.compute, run.driver, run.stall];
            let mut row = vec![disks.to_string(), policy];
            row.extend([run.ledger.fetches, run.ledger.evicted_unused].map(|n| n.to_string()));
            row.extend(times.map(|time| format!("{:.3}", seconds(time))));
            row.push(format!("{:.2}", service_ms(run)));
            row.push(format!("{:.2}", run.utilisation_ppm() as f64 / 1e6));
            rows.push(row);
        }
    }
    Ok(Table {
        title: "synth: every run of the plots".to_owned(),
        head: head(&[
            "disks",
            "method",
            "fetches",
            "evicted unused",
            "elapsed s",
            "compute s",
            "driver s",
            "stall s",
            "disk ms a fetch",
            "disk utilisation",
        ]),
        rows,
    })
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
