//! Figures of every page: curves over memory or another parameter, bars, and bars of parts, as SVG and as CSV.
//!
//! Colours are those of Okabe and Ito, told apart by readers of any colour vision; lines differ in their marks as well.
//! They are variables of a style sheet, so that a page can be light or dark. Memory is on a logarithmic axis where it spans
//! a factor of four or more; percentiles where they span twenty.

mod axis;
mod bars;
mod curves;
pub mod stacks;

use std::fmt::Write;

use super::text::{escaped, shortened};

/// A point of a line: where, how much, and its interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mark {
    /// Along the axis.
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
    /// Lines.
    Curves,
    /// A bar a line.
    Bars,
}

/// The parameter of curves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Over {
    /// Memory, in bytes.
    Memory,
    /// A number of this name.
    Number(String),
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
    /// The parameter along its axis.
    pub over: Over,
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
impl Figure {
    /// Whether there is anything to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.marks.is_empty())
    }

    /// The points as lines of a CSV file.
    #[must_use]
    pub fn csv(&self) -> String {
        let over = match &self.over {
            Over::Memory => "memory_bytes",
            Over::Number(name) => name,
        };
        let [over, unit] = [over, &self.unit].map(|name| name.replace([',', '\n'], " "));
        let mut text = format!("line,{over},{unit},low,high\n");
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
        framed([&self.title, &self.of], (WIDTH, height), style, &body)
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
}

/// A figure of this title and size around its parts.
fn framed([title, of]: [&str; 2], (width, height): (f64, f64), style: &str, body: &str) -> String {
    let (title, of) = (
        escaped(&shortened(title, TITLE)),
        escaped(&shortened(of, TITLE + 6)),
    );
    format!(
        "<svg class=\"fig\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"{title}: {of}\">{style}<text class=\"title\" x=\"4\" y=\"15\">{title}</text>\
         <text class=\"soft\" x=\"4\" y=\"31\">{of}</text>{body}</svg>\n"
    )
}

/// A line of the grid at a value of the axis on the left, and that value, in a figure up to `right`.
fn grid(y: &axis::Axis, tick: f64, right: f64) -> String {
    let at = y.at(tick);
    format!(
        "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
         <text class=\"soft\" x=\"{0:.1}\" y=\"{1:.1}\" text-anchor=\"end\">{2}</text>",
        LEFT - 6.0,
        at + 4.0,
        super::text::number(tick)
    )
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
            over: Over::Memory,
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
    fn a_number_that_begins_at_zero_is_drawn_to_scale_and_named() {
        let rates = Figure {
            over: Over::Number("place, %".to_owned()),
            unit: "MB/s".to_owned(),
            ..figure(&[(0.0, 55.0), (50.0, 45.0), (100.0, 34.0)])
        };
        let svg = rates.inline();
        assert!(svg.contains("place, %") && !svg.contains("memory"), "{svg}");
        assert!(!svg.contains("inf") && !svg.contains("NaN"), "{svg}");
        let x = places(&svg);
        assert!((x[0] + x[2] - 2.0 * x[1]).abs() < 0.3, "{x:?}");
        assert_eq!(
            rates.csv().lines().next(),
            Some("line,place  %,MB/s,low,high")
        );
    }

    /// Where the points of the first line lie.
    fn places(svg: &str) -> Vec<f64> {
        let points = svg.split("points=\"").nth(1).unwrap();
        let points = points.split('"').next().unwrap().split(' ');
        let x = points.map(|point| point.split(',').next().unwrap().parse().unwrap());
        x.collect()
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
        let x = places(&svg);
        assert!((x[0] + x[2] - 2.0 * x[1]).abs() < 0.3, "{x:?}");
    }
}
