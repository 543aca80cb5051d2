//! Figures: curves over memory, bars, and ratios on a scale, as SVG and as CSV.
//!
//! Colours are those of Okabe and Ito, told apart by readers of any colour vision; lines differ in their marks as well.
//! They are variables of a style sheet, so that a page can be light or dark. Memory is on a logarithmic axis where it spans
//! a factor of four or more; percentiles where they span twenty.

use std::fmt::Write;

use super::text::{escaped, memory, number, shortened};

/// A point of a line: where, how much, and its interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mark {
    /// Along the axis of memory, or of ratios.
    pub x: f64,
    /// Its value; of a row of ratios, the row.
    pub y: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
}

/// A line, or a bar of one mark.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// In the order of x.
    pub marks: Vec<Mark>,
    /// Of rows that are compared with: dashed, in the colour of the line before.
    pub is_other: bool,
}

/// The kind of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Over memory.
    Curves,
    /// A bar a line.
    Bars,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Figure {
    /// Subject.
    pub title: String,
    /// Input and device.
    pub of: String,
    /// Name and unit of the values.
    pub unit: String,
    /// Its form.
    pub kind: Kind,
    /// Its lines.
    pub series: Vec<Series>,
    /// The name of its files.
    pub file: String,
}

/// The style of figures, inside a page or a file.
pub const STYLE: &str = ".fig{font:12px system-ui,sans-serif;\
    --ink:#222;--soft:#555;--grid:#ddd;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#b0568a;--c4:#b97a00;--c5:#3a8fc4;--c6:#666}\
    @media(prefers-color-scheme:dark){.fig{--ink:#eee;--soft:#aaa;--grid:#3a3d42;--c0:#5cb3ee;--c1:#ff8c42;--c2:#35c99b;\
    --c3:#e6a0c8;--c4:#f2b632;--c5:#a5d8f7;--c6:#b5b5b5}}\
    .fig text{fill:var(--ink)}.fig .soft{fill:var(--soft)}.fig .title{font-weight:600;font-size:13px}\
    .fig .grid{stroke:var(--grid);stroke-width:1}.fig .axis{stroke:var(--soft);stroke-width:1}\
    .fig .line{fill:none;stroke-width:2;stroke-linejoin:round}.fig .other{stroke-dasharray:5 4;stroke-width:1.5}\
    .fig .bar{stroke-width:1.5}.fig .spread{stroke-width:1.5;opacity:.7}";

/// Size of the plot, and the room around it.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 210.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 56.0;
const COLOURS: usize = 7;
/// Characters that fit a title of this width.
const TITLE: usize = 64;
/// The span of memory, and of percentiles, from which on an axis is logarithmic.
const LOG_FROM: f64 = 4.0;
const LOG_VALUES_FROM: f64 = 20.0;

/// An axis: values from and to, and where they lie.
#[derive(Clone, Copy, Debug)]
struct Axis {
    from: f64,
    to: f64,
    is_log: bool,
    begin: f64,
    end: f64,
}

impl Axis {
    fn at(&self, value: f64) -> f64 {
        let place = |value: f64| {
            if self.is_log {
                value.max(f64::MIN_POSITIVE).ln()
            } else {
                value
            }
        };
        let share = (place(value) - place(self.from)) / (place(self.to) - place(self.from));
        let share = if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.5
        };
        self.begin + share * (self.end - self.begin)
    }

    /// Values to be written at the axis: powers of two of memory, else 1, 2 and 5 times powers of ten.
    fn ticks(&self, is_memory: bool, most: usize) -> Vec<f64> {
        let all = match (self.is_log, is_memory) {
            (true, true) => powers(self, 2.0, &[1.0]),
            (true, false) => {
                let fine = powers(self, 10.0, &[1.0, 2.0, 5.0]);
                let coarse = powers(self, 10.0, &[1.0]);
                if fine.len() > most && coarse.len() > 1 {
                    coarse
                } else {
                    fine
                }
            }
            (false, _) => steps(self, most, is_memory),
        };
        let each = all.len().div_ceil(most.max(1)).max(1);
        all.into_iter().step_by(each).collect()
    }
}

fn powers(axis: &Axis, base: f64, times: &[f64]) -> Vec<f64> {
    let first = axis.from.log(base).floor() as i32;
    let last = axis.to.log(base).ceil() as i32;
    let all = (first..=last).flat_map(|power| times.iter().map(move |by| base.powi(power) * by));
    let is_inside = |value: &f64| *value >= axis.from * 0.999 && *value <= axis.to * 1.001;
    all.filter(is_inside).collect()
}

fn steps(axis: &Axis, most: usize, is_memory: bool) -> Vec<f64> {
    let rough = (axis.to - axis.from) / most.max(1) as f64;
    let step = match is_memory {
        true => rough.log2().ceil().exp2(),
        false => {
            let power = 10f64.powf(rough.log10().floor());
            let by = [1.0, 2.0, 5.0, 10.0]
                .into_iter()
                .find(|by| power * by >= rough * 0.999);
            power * by.unwrap_or(10.0)
        }
    };
    if !(step.is_finite() && step > 0.0) {
        return vec![axis.from];
    }
    let first = (axis.from / step).ceil();
    let all = (0..=most + 1).map(|at| (first + at as f64) * step);
    all.take_while(|value| *value <= axis.to * 1.0001).collect()
}

impl Figure {
    /// Whether there is anything to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.marks.is_empty())
    }

    /// The points as lines of a CSV file.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = format!(
            "line,memory_bytes,{},low,high\n",
            self.unit.replace([',', '\n'], " ")
        );
        for series in &self.series {
            let name = match series.is_other {
                true => format!("{} (compared with)", series.name),
                false => series.name.clone(),
            };
            let name = format!(
                "\"{}\"",
                name.replace('"', "\"\"").replace(['\n', '\r'], " ")
            );
            for mark in &series.marks {
                let (low, high) = mark
                    .interval
                    .map_or((String::new(), String::new()), |(low, high)| {
                        (low.to_string(), high.to_string())
                    });
                let x = if mark.x > 0.0 {
                    mark.x.to_string()
                } else {
                    String::new()
                };
                let _ = writeln!(text, "{name},{x},{},{low},{high}", mark.y);
            }
        }
        text
    }

    /// As a part of a page, which has the style.
    #[must_use]
    pub fn inline(&self) -> String {
        self.svg("")
    }

    /// As a file of its own.
    #[must_use]
    pub fn alone(&self) -> String {
        let style = format!(
            "<style>{STYLE}.fig{{background:#fff}}@media(prefers-color-scheme:dark){{.fig{{background:#16181c}}}}</style>"
        );
        self.svg(&style)
    }

    fn svg(&self, style: &str) -> String {
        let (body, height) = match self.kind {
            Kind::Curves => self.curves(),
            Kind::Bars => self.bars(),
        };
        let (title, of) = (
            escaped(&shortened(&self.title, TITLE)),
            escaped(&shortened(&self.of, TITLE + 6)),
        );
        format!(
            "<svg class=\"fig\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
             aria-label=\"{title}: {of}\">{style}<text class=\"title\" x=\"4\" y=\"15\">{title}</text>\
             <text class=\"soft\" x=\"4\" y=\"31\">{of}</text>{body}</svg>\n"
        )
    }

    /// The colour of a line: lines that are compared with have that of their namesake.
    fn colour(&self, at: usize) -> usize {
        let own = |series: &&Series| !series.is_other;
        let mut names = self
            .series
            .iter()
            .filter(own)
            .map(|series| series.name.as_str());
        let name = self.series[at].name.as_str();
        names.position(|own| own == name).unwrap_or(at)
    }

    fn curves(&self) -> (String, f64) {
        let marks = || self.series.iter().flat_map(|series| &series.marks);
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, 0.0f64), |(least, most), value| {
                (least.min(value), most.max(value))
            })
        };
        let (least, most) = ends(&mut marks().map(|mark| mark.x));
        let x = Axis {
            from: least,
            to: if most > least { most } else { least * 2.0 },
            is_log: least > 0.0 && most / least >= LOG_FROM,
            begin: LEFT + 8.0,
            end: WIDTH - RIGHT,
        };
        let bottom = TOP + HEIGHT;
        let y = self.values(&ends, bottom);
        let mut svg = String::new();
        for tick in y.ticks(false, 5) {
            let at = y.at(tick);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{0:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"soft\" x=\"{1:.1}\" y=\"{2:.1}\" text-anchor=\"end\">{3}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                at + 4.0,
                number(tick)
            );
        }
        for tick in x.ticks(true, 6) {
            let at = x.at(tick);
            let _ = write!(
                svg,
                "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{bottom:.1}\" y2=\"{0:.1}\"/>\
                 <text class=\"soft\" x=\"{at:.1}\" y=\"{1:.1}\" text-anchor=\"middle\">{2}</text>",
                bottom + 4.0,
                bottom + 18.0,
                memory(tick)
            );
        }
        let log = if y.is_log { ", logarithmic" } else { "" };
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{0:.1}\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\"/>\
             <text class=\"soft\" x=\"4\" y=\"{1:.1}\">{2}{log}</text>\
             <text class=\"soft\" x=\"{0:.1}\" y=\"{3:.1}\" text-anchor=\"end\">memory</text>",
            WIDTH - RIGHT,
            TOP - 8.0,
            escaped(&self.unit),
            bottom + 33.0,
        );
        // Those that are compared with first: the others are drawn over them.
        for is_other in [true, false] {
            for (at, series) in self.series.iter().enumerate() {
                if series.is_other == is_other {
                    svg += &curve(series, self.colour(at), &x, &y);
                }
            }
        }
        let (legend, height) = self.legend(bottom + 48.0);
        (svg + &legend, height)
    }

    /// The axis of values: from zero or from the least possible, or logarithmic.
    fn values(
        &self,
        ends: &dyn Fn(&mut dyn Iterator<Item = f64>) -> (f64, f64),
        bottom: f64,
    ) -> Axis {
        let marks = || self.series.iter().flat_map(|series| &series.marks);
        let (least, most) = ends(&mut marks().map(|mark| mark.y));
        let (_, high) = ends(&mut marks().filter_map(|mark| Some(mark.interval?.1)));
        let most = most.max(high);
        let is_log = self.unit == "ms" && least > 0.0 && most / least >= LOG_VALUES_FROM;
        let (from, to) = match is_log {
            true => (least / 1.3, most * 1.3),
            // Over the least possible: none is below.
            false if self.unit == "times" && least >= 1.0 => (1.0, (most * 1.02).max(1.1)),
            false => (0.0, if most > 0.0 { most * 1.05 } else { 1.0 }),
        };
        Axis {
            from,
            to,
            is_log,
            begin: bottom,
            end: TOP,
        }
    }

    fn legend(&self, top: f64) -> (String, f64) {
        let longest = self
            .series
            .iter()
            .map(|series| series.name.chars().count())
            .max();
        let columns: usize = match longest.unwrap_or(0) {
            0..=14 => 3,
            15..=26 => 2,
            _ => 1,
        };
        let room = (WIDTH / columns as f64 / 6.4) as usize - 5;
        let (mut svg, mut at) = (String::new(), 0);
        for (number, series) in self
            .series
            .iter()
            .enumerate()
            .filter(|(_, series)| !series.is_other)
        {
            let (x, y) = (
                4.0 + (at % columns) as f64 * WIDTH / columns as f64,
                top + (at / columns) as f64 * 18.0,
            );
            let colour = self.colour(number);
            let _ = write!(
                svg,
                "<line class=\"line\" style=\"stroke:var(--c{0})\" x1=\"{x:.1}\" x2=\"{1:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>{2}\
                 <text x=\"{3:.1}\" y=\"{4:.1}\">{5}</text>",
                colour % COLOURS,
                x + 22.0,
                shape(colour, x + 11.0, y),
                x + 27.0,
                y + 4.0,
                escaped(&shortened(&series.name, room))
            );
            at += 1;
        }
        let mut bottom = top + at.div_ceil(columns) as f64 * 18.0;
        if self.series.iter().any(|series| series.is_other) {
            let _ = write!(
                svg,
                "<line class=\"line other\" style=\"stroke:var(--soft)\" x1=\"4\" x2=\"26\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\"/>\
                 <text class=\"soft\" x=\"31\" y=\"{:.1}\">dashed: the rows compared with</text>",
                bottom + 4.0
            );
            bottom += 18.0;
        }
        (svg, bottom)
    }

    fn bars(&self) -> (String, f64) {
        const BAR: f64 = 22.0;
        const NAMES: f64 = 170.0;
        let marks = || self.series.iter().flat_map(|series| &series.marks);
        let ends =
            marks().flat_map(|mark| [mark.y, mark.interval.map_or(mark.y, |(_, high)| high)]);
        let most = ends.fold(0.0f64, f64::max);
        let x = Axis {
            from: 0.0,
            to: if most > 0.0 { most } else { 1.0 },
            is_log: false,
            begin: NAMES,
            end: WIDTH - 60.0,
        };
        let mut svg = format!(
            "<text class=\"soft\" x=\"{NAMES}\" y=\"{:.1}\">{}</text>",
            TOP - 6.0,
            escaped(&self.unit)
        );
        let mut y = TOP + 4.0;
        for (at, series) in self.series.iter().enumerate() {
            let Some(mark) = series.marks.first() else {
                continue;
            };
            let colour = self.colour(at) % COLOURS;
            let fill = match series.is_other {
                true => "none".to_owned(),
                false => format!("var(--c{colour})"),
            };
            let name = match series.is_other {
                true => "compared with".to_owned(),
                false => series.name.clone(),
            };
            let (end, middle) = (x.at(mark.y), y + BAR / 2.0 - 2.0);
            let _ = write!(
                svg,
                "<text x=\"{0:.1}\" y=\"{1:.1}\" text-anchor=\"end\">{2}</text>\
                 <rect class=\"bar\" x=\"{NAMES}\" y=\"{y:.1}\" width=\"{3:.1}\" height=\"{4:.1}\" \
                 style=\"fill:{fill};stroke:var(--c{colour})\"/>",
                NAMES - 8.0,
                middle + 4.0,
                escaped(&shortened(&name, 25)),
                (end - NAMES).max(0.5),
                BAR - 4.0
            );
            let mut beside = end;
            if let Some((low, high)) = mark.interval {
                let _ = write!(
                    svg,
                    "<line class=\"axis\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>",
                    x.at(low.max(0.0)),
                    x.at(high)
                );
                beside = x.at(high);
            }
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                beside + 6.0,
                middle + 4.0,
                number(mark.y)
            );
            y += BAR;
        }
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{NAMES}\" x2=\"{NAMES}\" y1=\"{TOP}\" y2=\"{y:.1}\"/>"
        );
        (svg, y + 6.0)
    }
}

fn curve(series: &Series, colour: usize, x: &Axis, y: &Axis) -> String {
    let style = format!("stroke:var(--c{})", colour % COLOURS);
    let mut svg = String::new();
    for mark in &series.marks {
        if let Some((low, high)) = mark.interval {
            let _ = write!(
                svg,
                "<line class=\"spread\" style=\"{style}\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{2:.1}\"/>",
                x.at(mark.x),
                y.at(low.max(y.from)),
                y.at(high)
            );
        }
    }
    let points: Vec<String> = series
        .marks
        .iter()
        .map(|mark| format!("{:.1},{:.1}", x.at(mark.x), y.at(mark.y)))
        .collect();
    let class = if series.is_other {
        "line other"
    } else {
        "line"
    };
    let _ = write!(
        svg,
        "<polyline class=\"{class}\" style=\"{style}\" points=\"{}\"/>",
        points.join(" ")
    );
    if !series.is_other {
        for mark in &series.marks {
            svg += &shape(colour, x.at(mark.x), y.at(mark.y));
        }
    }
    svg
}

/// A mark: one of five shapes.
fn shape(colour: usize, x: f64, y: f64) -> String {
    let fill = format!("style=\"fill:var(--c{})\"", colour % COLOURS);
    let polygon = |points: &[(f64, f64)]| {
        let points: Vec<String> = points
            .iter()
            .map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy))
            .collect();
        format!("<polygon {fill} points=\"{}\"/>", points.join(" "))
    };
    match colour % 5 {
        0 => format!("<circle {fill} cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>"),
        1 => polygon(&[(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)]),
        2 => polygon(&[(0.0, -4.5), (4.2, 3.2), (-4.2, 3.2)]),
        3 => polygon(&[(0.0, -4.6), (4.6, 0.0), (0.0, 4.6), (-4.6, 0.0)]),
        _ => polygon(&[(0.0, 4.5), (4.2, -3.2), (-4.2, -3.2)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(points: &[(f64, f64)]) -> Figure {
        let mark = |&(x, y): &(f64, f64)| Mark {
            x,
            y,
            interval: Some((y * 0.9, y * 1.1)),
        };
        Figure {
            title: "t<".to_owned(),
            of: "a & b".to_owned(),
            unit: "ms".to_owned(),
            kind: Kind::Curves,
            series: vec![Series {
                name: "one".to_owned(),
                marks: points.iter().map(mark).collect(),
                is_other: false,
            }],
            file: "f".to_owned(),
        }
    }

    #[test]
    fn no_number_of_a_figure_is_infinite_or_none_whatever_its_points() {
        for points in [
            &[(1024.0, 0.0)][..],
            &[(1024.0, 5.0), (1024.0, 5.0)],
            &[(1.0, 1e-9), (1e18, 1e12)],
            &[(4096.0, 1.0), (8192.0, 2.0)],
        ] {
            for kind in [Kind::Curves, Kind::Bars] {
                let figure = Figure {
                    kind,
                    ..figure(points)
                };
                let svg = figure.alone();
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                assert!(svg.contains("t&lt;") && svg.contains("a &amp; b"), "{svg}");
            }
        }
    }

    #[test]
    fn memory_that_spans_is_on_a_logarithmic_axis_with_powers_of_two() {
        let svg = figure(&[
            (1_048_576.0, 1.0),
            (4_194_304.0, 2.0),
            (16_777_216.0, 100.0),
        ])
        .inline();
        for tick in ["1 MiB", "2 MiB", "4 MiB", "8 MiB", "16 MiB"] {
            assert!(svg.contains(tick), "{tick}: {svg}");
        }
        assert!(svg.contains("logarithmic"));
        // The middle of the axis is the middle point.
        let points = svg
            .split("points=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let x: Vec<f64> = points
            .split(' ')
            .map(|p| p.split(',').next().unwrap().parse().unwrap())
            .collect();
        assert!((x[0] + x[2] - 2.0 * x[1]).abs() < 0.3, "{x:?}");
    }
}
