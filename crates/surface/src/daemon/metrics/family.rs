//! Families of metrics: a name with its help and its samples, and how they are encoded.
//!
//! A [`Page`] collects the families of a daemon, and [`Families`] hands them
//! to Prometheus' own encoder, which ends names with their unit and counters with `_total`. Nothing
//! here refers to a daemon.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// A metric with its samples.
#[derive(Debug)]
pub struct Family {
    /// Without the unit and `_total`.
    pub name: &'static str,
    /// Of its values.
    pub unit: Option<Unit>,
    /// One sentence.
    pub help: &'static str,
    /// Its samples.
    pub values: Values,
}

/// Samples of a kind.
#[derive(Debug)]
pub enum Values {
    /// They only grow.
    Counters(Vec<Sample>),
    /// They come and go.
    Gauges(Vec<Sample>),
    /// Count of each bound, and the sum.
    Histogram(Vec<(f64, u64)>, f64),
}

/// A value.
#[derive(Debug)]
pub struct Sample {
    /// Which one of the family it is.
    pub labels: Vec<(&'static str, String)>,
    /// The value itself.
    pub value: f64,
}

/// The families of a page.
#[derive(Debug)]
pub(super) struct Families(pub(super) Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in &self.0 {
            let kind = match &family.values {
                Values::Counters(_) => MetricType::Counter,
                Values::Gauges(_) => MetricType::Gauge,
                Values::Histogram(..) => MetricType::Histogram,
            };
            let unit = family.unit.as_ref();
            let mut metric = encoder.encode_descriptor(family.name, family.help, unit, kind)?;
            let samples = match &family.values {
                Values::Counters(samples) | Values::Gauges(samples) => samples,
                Values::Histogram(buckets, sum) => {
                    let count = buckets.iter().map(|(_, count)| count).sum();
                    metric.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)?;
                    continue;
                }
            };
            let grows = matches!(family.values, Values::Counters(_));
            for Sample { labels, value } in samples {
                // An empty set of labels would leave a comma behind.
                if labels.is_empty() {
                    encode(&mut metric, grows, *value)?;
                } else {
                    encode(&mut metric.encode_family(labels)?, grows, *value)?;
                }
            }
        }
        Ok(())
    }
}

fn encode(metric: &mut MetricEncoder<'_>, grows: bool, value: f64) -> Result<(), fmt::Error> {
    if grows {
        metric.encode_counter::<NoLabelSet, f64, u64>(&value, None)
    } else {
        metric.encode_gauge(&value)
    }
}

/// Collects families.
#[derive(Debug, Default)]
pub struct Page(pub Vec<Family>);

impl Page {
    /// A family of one kind.
    pub fn family(
        &mut self,
        grows: bool,
        (name, unit): (&'static str, Option<Unit>),
        help: &'static str,
        samples: Vec<Sample>,
    ) {
        let values = match grows {
            true => Values::Counters(samples),
            false => Values::Gauges(samples),
        };
        self.0.push(Family {
            name,
            unit,
            help,
            values,
        });
    }

    /// A number that only grows.
    pub fn counter(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.family(true, (name, None), help, vec![plain(value as f64)]);
    }

    /// Bytes that only grow.
    pub fn bytes(&mut self, name: &'static str, help: &'static str, value: u64) {
        let unit = Some(Unit::Bytes);
        self.family(true, (name, unit), help, vec![plain(value as f64)]);
    }

    /// Time that only grows.
    pub fn seconds(&mut self, name: &'static str, help: &'static str, ns: u64) {
        let unit = Some(Unit::Seconds);
        self.family(true, (name, unit), help, vec![plain(ns as f64 / 1e9)]);
    }

    /// A number.
    pub fn gauge(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.family(false, (name, None), help, vec![plain(value as f64)]);
    }

    /// A quantity.
    pub fn gauge_of(&mut self, name: &'static str, unit: Unit, help: &'static str, value: f64) {
        self.family(false, (name, Some(unit)), help, vec![plain(value)]);
    }

    /// Parts of a whole, each with a label; bytes.
    pub fn parts<const N: usize>(
        &mut self,
        grows: bool,
        name: &'static str,
        help: &'static str,
        label: &'static str,
        parts: [(&str, u64); N],
    ) {
        let samples = parts.map(|(part, value)| labelled(label, part, value));
        let unit = Some(Unit::Bytes);
        self.family(grows, (name, unit), help, samples.into());
    }
}

fn plain(value: f64) -> Sample {
    let labels = Vec::new();
    Sample { labels, value }
}

/// A sample with one label.
#[must_use]
pub fn labelled(label: &'static str, of: &str, value: u64) -> Sample {
    Sample {
        labels: vec![(label, of.to_owned())],
        value: value as f64,
    }
}
