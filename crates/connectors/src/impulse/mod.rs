//! `impulse`: a source of numbered events at a steady rate, for trying things out and for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use thalweg_dataflow::options::{
    ConnectorDecl, OptionDecl, OptionFault, OptionKind, Options, TableCheck,
};
use thalweg_dataflow::table::{SinkSpec, SourceSpec};
use thalweg_dataflow::time::parse_duration;
use thalweg_runtime::connector::{ConnectorError, Sink, Source};

use crate::registry::{Connector, one_way};

mod offset;
mod pace;
mod source;

static DECLARATION: ConnectorDecl = ConnectorDecl {
    name: "impulse",
    meaning: "Makes events by itself. Each has a `counter`; the counters of all subtasks together are 0, 1, 2, … \
              without gaps, whatever the parallelism.",
    options: &[
        OptionDecl::optional(
            "event_rate",
            OptionKind::Number,
            None,
            "Events per second, all subtasks together. Needed unless there is a `message_count`; without it the \
             events come as fast as they are taken.",
        ),
        OptionDecl::optional(
            "message_count",
            OptionKind::Count,
            None,
            "How many events there are, all subtasks together. Without it the source never ends.",
        ),
        OptionDecl::optional(
            "event_time_interval",
            OptionKind::Text,
            None,
            "Event time from one counter to the next: a duration, or a whole number of nanoseconds. Without it an \
             event's time is when it was due by the clock.",
        ),
        OptionDecl::optional(
            "event_time_start",
            OptionKind::Text,
            None,
            "Event time of counter 0, as '2024-01-01T00:00:00Z', for use with `event_time_interval`. Without it the \
             time at which the job started.",
        ),
    ],
    can_read: true,
    can_write: false,
    formats: &[],
    default_format: |_| None,
    fixed_columns: &[
        ("counter", "BIGINT UNSIGNED"),
        ("subtask_index", "BIGINT UNSIGNED"),
    ],
    metadata: &[],
    takes_updates: false,
    bounded: is_bounded,
};

fn is_bounded(options: &BTreeMap<String, String>) -> bool {
    options.contains_key("message_count")
}

pub struct Impulse;

impl Connector for Impulse {
    fn declaration(&self) -> &ConnectorDecl {
        &DECLARATION
    }

    fn check(&self, table: &TableCheck<'_>) -> Result<(), OptionFault> {
        Config::parse(table.options)?;
        table
            .schema
            .fields()
            .iter()
            .try_for_each(|field| check_column(field))
    }

    fn source(&self, spec: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError> {
        let config = Config::parse(&spec.options)
            .map_err(|f| ConnectorError::configuration(f.message, f.hint))?;
        Ok(Box::new(source::ImpulseSource::new(
            config,
            spec.record_schema(),
        )))
    }

    fn sink(&self, _spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        Err(one_way(DECLARATION.name, "written"))
    }
}

/// What the options say.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Config {
    /// Events per second; `None`: as fast as they are taken.
    rate: Option<f64>,
    /// Events in all; `u64::MAX`: without end.
    count: u64,
    /// Nanoseconds of event time between counters.
    interval: Option<i64>,
    /// Event time of counter 0, ns.
    start: Option<i64>,
}

impl Config {
    fn parse(options: &Options) -> Result<Self, OptionFault> {
        let rate = options.number("event_rate");
        if rate == Some(0.0) {
            return Err(fault(
                "event_rate",
                "an event rate of 0 would never give an event",
                None,
            ));
        }
        let count = options.count("message_count");
        if rate.is_none() && count.is_none() {
            let hint = "write for example event_rate = '100'";
            return Err(fault(
                "event_rate",
                "connector 'impulse' needs an event_rate or a message_count",
                Some(hint),
            ));
        }
        let interval = options
            .text("event_time_interval")
            .map(parse_interval)
            .transpose()?;
        let start = options
            .text("event_time_start")
            .map(parse_instant)
            .transpose()?;
        if start.is_some() && interval.is_none() {
            let hint = "add for example event_time_interval = '1 second'";
            return Err(fault(
                "event_time_start",
                "event_time_start needs an event_time_interval",
                Some(hint),
            ));
        }
        Ok(Self {
            rate,
            count: count.unwrap_or(u64::MAX),
            interval,
            start,
        })
    }
}

fn parse_interval(text: &str) -> Result<i64, OptionFault> {
    let nanos = match text.trim().parse::<i64>() {
        Ok(nanos) => nanos,
        Err(_) => {
            parse_duration(text).map_err(|message| fault("event_time_interval", message, None))?
        }
    };
    if nanos < 0 {
        return Err(fault(
            "event_time_interval",
            format!("'{text}' would let event time run backwards"),
            None,
        ));
    }
    Ok(nanos)
}

fn parse_instant(text: &str) -> Result<i64, OptionFault> {
    arrow::compute::kernels::cast_utils::string_to_timestamp_nanos(text).map_err(|_| {
        let hint = "write for example '2024-01-01T00:00:00Z'";
        fault(
            "event_time_start",
            format!("'{text}' is not an instant"),
            Some(hint),
        )
    })
}

fn check_column(field: &Field) -> Result<(), OptionFault> {
    let is_fixed = DECLARATION
        .fixed_columns
        .iter()
        .any(|(name, _)| name == field.name());
    if is_fixed && field.data_type() == &DataType::UInt64 {
        return Ok(());
    }
    let message = format!(
        "connector 'impulse' has no column \"{}\" of this type",
        field.name()
    );
    let hint = "its columns are counter BIGINT UNSIGNED and subtask_index BIGINT UNSIGNED, and need not be declared";
    Err(OptionFault {
        option: None,
        message,
        hint: Some(hint.to_string()),
    })
}

fn fault(option: &str, message: impl Into<String>, hint: Option<&str>) -> OptionFault {
    OptionFault {
        option: Some(option.to_string()),
        message: message.into(),
        hint: hint.map(str::to_string),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::options;

    fn parse(given: &[(&str, &str)]) -> Result<Config, String> {
        Config::parse(&options(given)).map_err(|f| f.message)
    }

    #[test]
    fn options_are_read_with_their_units() {
        let config = parse(&[
            ("event_rate", "2.5"),
            ("message_count", "10"),
            ("event_time_interval", "250 milliseconds"),
            ("event_time_start", "1970-01-01T00:00:01Z"),
        ]);
        let second = 1_000_000_000;
        let expected = Config {
            rate: Some(2.5),
            count: 10,
            interval: Some(second / 4),
            start: Some(second),
        };
        assert_eq!(config, Ok(expected));
        let bare = parse(&[("event_rate", "1"), ("event_time_interval", "1000")]).unwrap();
        assert_eq!((bare.interval, bare.count), (Some(1000), u64::MAX));
    }

    #[test]
    fn options_that_make_no_sense_together_are_refused() {
        assert!(
            parse(&[])
                .unwrap_err()
                .contains("needs an event_rate or a message_count")
        );
        assert!(parse(&[("event_rate", "0")]).unwrap_err().contains("never"));
        let of = |extra| parse(&[("event_rate", "1"), extra]).unwrap_err();
        assert!(
            of(("event_time_start", "2024-01-01T00:00:00Z"))
                .contains("needs an event_time_interval")
        );
        assert!(of(("event_time_interval", "soon")).contains("not a duration"));
        assert!(of(("event_time_interval", "-1 second")).contains("backwards"));
        assert!(of(("event_time_start", "today")).contains("not an instant"));
    }

    #[test]
    fn columns_are_its_own_only() {
        assert!(check_column(&Field::new("counter", DataType::UInt64, false)).is_ok());
        assert!(check_column(&Field::new("counter", DataType::Int64, false)).is_err());
        assert!(check_column(&Field::new("count", DataType::UInt64, false)).is_err());
    }

    #[test]
    fn a_message_count_makes_it_bounded() {
        assert!(is_bounded(
            &[("message_count".to_string(), "1".to_string())].into()
        ));
        assert!(!is_bounded(&BTreeMap::new()));
    }
}
