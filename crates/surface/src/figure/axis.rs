//! An axis of a figure: where values lie, and which are written beside it.

/// An axis: values from and to, and where they lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) is_log: bool,
    pub(super) begin: f64,
    pub(super) end: f64,
}

impl Axis {
    pub(super) fn at(&self, value: f64) -> f64 {
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
    pub(super) fn ticks(&self, is_memory: bool, most: usize) -> Vec<f64> {
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
