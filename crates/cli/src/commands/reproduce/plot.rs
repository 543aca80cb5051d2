//! Plots of the report: elapsed time by number of disks, split as in the paper's figures.
//!
//! One plot a method, all at one scale: a bar is what the reader computed, on top of it what
//! fetches cost the processor, and on top of that what it waited (kimbrel96 figures 2 to 5 and
//! 10 are of this kind). SVG text, drawn by `plotters`; no fonts and no bitmaps are needed.

use forerun_sim::reproduce::Bar;
use plotters::prelude::*;

use crate::failure::Failure;

/// In pixels; two stand side by side on a laptop.
const SIZE: (u32, u32) = (560, 320);

/// Fill of each part, and its name; told apart in grey as well.
pub(super) const PARTS: [(&str, RGBColor); 3] = [
    ("compute", RGBColor(69, 104, 138)),
    ("driver", RGBColor(232, 178, 80)),
    ("stall", RGBColor(190, 70, 60)),
];

/// A plot for each method, in the order of their first bars: name and SVG.
pub(super) fn all(bars: &[Bar]) -> Result<Vec<(&'static str, String)>, Failure> {
    let mut methods: Vec<&'static str> = Vec::new();
    for bar in bars {
        if !methods.contains(&bar.method) {
            methods.push(bar.method);
        }
    }
    let top = bars.iter().map(|bar| ends(bar)[2]).fold(0.0, f64::max);
    let plot = |method| {
        let own: Vec<&Bar> = bars.iter().filter(|bar| bar.method == method).collect();
        let svg = one(method, &own, top * 1.05);
        svg.map(|svg| (method, svg))
            .map_err(|e| Failure::Run(format!("cannot draw {method}: {e}")))
    };
    methods.into_iter().map(plot).collect()
}

/// Where each part of a bar ends, in seconds.
fn ends(bar: &Bar) -> [f64; 3] {
    let mut end = 0.0;
    [bar.compute, bar.driver, bar.stall].map(|part| {
        end += part.0 as f64 / 1e9;
        end
    })
}

fn one(method: &str, bars: &[&Bar], top: f64) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(format!("synth, {method}"), ("sans-serif", 16))
            .margin(8)
            .x_label_area_size(32)
            .y_label_area_size(48)
            .build_cartesian_2d(0.0..bars.len().max(1) as f64, 0.0..top.max(1.0))?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_labels(0)
            .x_desc("disks")
            .y_desc("elapsed, s")
            .draw()?;
        for (at, bar) in bars.iter().enumerate() {
            let (left, right) = (at as f64 + 0.15, at as f64 + 0.85);
            let mut from = 0.0;
            for ((_, colour), to) in PARTS.iter().zip(ends(bar)) {
                let part = Rectangle::new([(left, from), (right, to)], colour.filled());
                chart.draw_series([part])?;
                from = to;
            }
            let (x, y) = chart.backend_coord(&(at as f64 + 0.5, 0.0));
            let text = Text::new(bar.disks.to_string(), (x - 4, y + 4), ("sans-serif", 12));
            area.draw(&text)?;
        }
        area.present()?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use forerun_core::Nanos;

    use super::*;

    #[test]
    fn every_bar_has_three_parts() {
        let bar = |disks| Bar {
            method: "aggressive",
            disks,
            compute: Nanos(1_000_000_000),
            driver: Nanos(500_000_000),
            stall: Nanos(250_000_000),
        };
        let plots = all(&[bar(1), bar(2)]).unwrap();
        assert_eq!(plots.len(), 1);
        let svg = &plots[0].1;
        assert!(
            svg.starts_with("<svg") && svg.contains("aggressive"),
            "{svg}"
        );
        // One more is the background.
        assert_eq!(svg.matches("<rect").count(), 2 * 3 + 1, "{svg}");
    }
}
