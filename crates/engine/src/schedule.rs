//! Schedules: every so many steps, every so much physical time, every so many seconds of wall time.
//!
//! In an input a schedule is a whole number (steps) or a text: `"10 steps"`, `"0.5 t"`, `"30 s"`, `"5 min"`, `"2 h"`.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::sim::Clock;

/// An interval between two occasions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Schedule {
    /// Interval in steps.
    Steps(u64),
    /// Interval of physical time, in the solver's unit of time.
    Time(f64),
    /// Interval of wall time.
    Wall(Duration),
    /// No occasion at all.
    Never,
}

/// Accepted forms of a schedule, for messages.
pub const FORMS: &str =
    "a number of steps, `\"10 steps\"`, `\"0.5 t\"` (physical time), `\"30 s\"`, `\"5 min\"` or `\"2 h\"` (wall time), `\"never\"`";

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a schedule; allowed: {FORMS}");
        let text = text.trim();
        if text == "never" {
            return Ok(Self::Never);
        }
        let split = text.find(|c: char| c.is_alphabetic() && !matches!(c, 'e' | 'E')).unwrap_or(text.len());
        let (number, unit) = (text[..split].trim(), text[split..].trim());
        let value: f64 = number.parse().map_err(|_| wrong())?;
        if !(value.is_finite() && value > 0.0) {
            return Err(format!("the interval of `{text}` must be positive; allowed: {FORMS}"));
        }
        match unit {
            "" | "step" | "steps" | "cycle" | "cycles" | "iteration" | "iterations" => {
                if value.fract() == 0.0 && value <= 9e15 {
                    Ok(Self::Steps(value as u64))
                } else {
                    Err(wrong())
                }
            }
            "t" => Ok(Self::Time(value)),
            "s" | "min" | "h" => {
                let seconds = value * [1.0, 60.0, 3600.0][["s", "min", "h"].iter().position(|u| *u == unit).unwrap_or(0)];
                Duration::try_from_secs_f64(seconds).map(Self::Wall).map_err(|_| wrong())
            }
            _ => Err(wrong()),
        }
    }
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Steps(n) => write!(f, "{n} steps"),
            Self::Time(t) => write!(f, "{t} t"),
            Self::Wall(d) => write!(f, "{} s", d.as_secs_f64()),
            Self::Never => f.write_str("never"),
        }
    }
}

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Schedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(f64),
            Text(String),
        }
        let text = match Form::deserialize(deserializer)? {
            Form::Number(n) => n.to_string(),
            Form::Text(t) => t,
        };
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Schedule {
    fn schema_name() -> Cow<'static, str> {
        "Schedule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": format!("An interval: {FORMS}."), "type": ["integer", "string"] })
    }
}

/// A schedule under way.
#[derive(Debug, Clone)]
pub struct Trigger {
    schedule: Schedule,
    last: f64,
}

impl Trigger {
    /// Starts counting at `clock`, `wall` into the run.
    pub fn new(schedule: Schedule, clock: Clock, wall: Duration) -> Self {
        let mut trigger = Self { schedule, last: 0.0 };
        trigger.last = trigger.periods(clock, wall);
        trigger
    }

    fn periods(&self, clock: Clock, wall: Duration) -> f64 {
        match self.schedule {
            Schedule::Steps(n) => (clock.step / n) as f64,
            // Rounding of the summed time must not shift an occasion by a step.
            Schedule::Time(t) => (clock.time.unwrap_or(0.0) / t * (1.0 + 1e-12)).floor(),
            Schedule::Wall(d) => (wall.as_secs_f64() / d.as_secs_f64()).floor(),
            Schedule::Never => 0.0,
        }
    }

    /// Returns true if an occasion has come since the last call that returned true.
    pub fn due(&mut self, clock: Clock, wall: Duration) -> bool {
        let periods = self.periods(clock, wall);
        let due = periods > self.last;
        self.last = periods;
        due
    }
}

/// Several schedules under way, such as those of a solver's diagnostics.
#[derive(Debug, Clone, Default)]
pub struct Agenda(Vec<Trigger>);

impl Agenda {
    /// Starts at `clock`, where the solver was set up or to where it was restored: what fell due until then is done,
    /// but at step 0 everything is due.
    pub fn new(schedules: impl IntoIterator<Item = Schedule>, clock: Clock) -> Self {
        let start = |schedule| {
            let mut trigger = Trigger::new(schedule, clock, Duration::ZERO);
            if clock.step == 0 && schedule != Schedule::Never {
                trigger.last = -1.0;
            }
            trigger
        };
        Self(schedules.into_iter().map(start).collect())
    }

    /// Places in the list of the schedules that have fallen due since the last call.
    pub fn due(&mut self, clock: Clock, wall: Duration) -> Vec<usize> {
        // All are asked: each remembers that it was.
        self.0.iter_mut().enumerate().filter_map(|(i, trigger)| trigger.due(clock, wall).then_some(i)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agenda_begins_at_step_zero_and_goes_on_where_it_was_left() {
        let schedules = [Schedule::Steps(4), Schedule::Time(0.3)];
        let clock = |step: u64| Clock { step, time: Some(step as f64 * 0.1) };
        let mut agenda = Agenda::new(schedules, clock(0));
        let whole: Vec<_> = (0..=8).map(|i| agenda.due(clock(i), Duration::ZERO)).collect();
        assert_eq!(whole, [vec![0, 1], vec![], vec![], vec![1], vec![0], vec![], vec![1], vec![], vec![0]]);
        let mut resumed = Agenda::new(schedules, clock(4));
        assert_eq!((5..=8).map(|i| resumed.due(clock(i), Duration::ZERO)).collect::<Vec<_>>(), whole[5..]);
    }

    #[test]
    fn reads_every_form_and_prints_it_back() {
        for (text, want) in [
            ("10", Schedule::Steps(10)),
            ("10 steps", Schedule::Steps(10)),
            ("1 cycle", Schedule::Steps(1)),
            ("0.5 t", Schedule::Time(0.5)),
            ("1e-3t", Schedule::Time(1e-3)),
            ("30 s", Schedule::Wall(Duration::from_secs(30))),
            ("1.5min", Schedule::Wall(Duration::from_secs(90))),
            ("2 h", Schedule::Wall(Duration::from_secs(7200))),
            ("never", Schedule::Never),
        ] {
            let schedule: Schedule = text.parse().unwrap();
            assert_eq!(schedule, want, "{text}");
            assert_eq!(schedule.to_string().parse::<Schedule>().unwrap(), want);
        }
        for text in ["", "s", "-1 s", "0", "1.5 steps", "3 parsecs", "nan s", "1e400 s", "é"] {
            assert!(text.parse::<Schedule>().unwrap_err().contains("allowed"), "{text}");
        }
    }

    #[test]
    fn fires_once_a_period() {
        let mut trigger = Trigger::new(Schedule::Time(0.3), Clock::default(), Duration::ZERO);
        let fired: Vec<u64> = (1..=12).filter(|i| trigger.due(Clock { step: *i, time: Some(*i as f64 * 0.1) }, Duration::ZERO)).collect();
        assert_eq!(fired, [3, 6, 9, 12]);
        let mut trigger = Trigger::new(Schedule::Steps(4), Clock { step: 6, time: None }, Duration::ZERO);
        let fired: Vec<u64> = (7..=17).filter(|i| trigger.due(Clock { step: *i, time: None }, Duration::ZERO)).collect();
        assert_eq!(fired, [8, 12, 16]);
    }
}
