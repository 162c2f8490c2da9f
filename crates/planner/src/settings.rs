//! Settings: what `SET`, `SHOW` and `RESET` speak of.
//!
//! A setting is declared once; parsing, error hints, `SHOW ALL` and the manual come from the
//! declaration. Settings hold for the statements after their `SET`, so each query captures its own.

use std::collections::BTreeMap;

use thalweg_dataflow::options::{OptionKind, parse_bytes};
use thalweg_dataflow::plan::JobSettings;
use thalweg_dataflow::time::parse_duration;

use crate::error::{Fault, FaultKind, Position, closest};
use crate::parse::statement::{Name, SetValue};

/// One setting. Names are compared with `.`, `-` and `_` alike and in any case.
#[derive(Debug, Clone, Copy)]
pub struct SettingDecl {
    pub name: &'static str,
    pub kind: OptionKind,
    /// As SHOW gives it.
    pub default: &'static str,
    /// Words that may stand in place of a value of the kind.
    pub words: &'static [&'static str],
    /// Whether zero is a value.
    pub zero: bool,
    pub meaning: &'static str,
}

pub const SETTINGS: &[SettingDecl] = &[
    SettingDecl {
        name: "checkpoint.interval",
        kind: OptionKind::Duration,
        default: "10 seconds",
        words: &[],
        zero: false,
        meaning: "How often the state of a job is committed.",
    },
    SettingDecl {
        name: "pipeline.epoch_max_bytes",
        kind: OptionKind::Bytes,
        default: "256 MiB",
        words: &[],
        zero: false,
        meaning: "An epoch ends early when it has taken in this many bytes.",
    },
    SettingDecl {
        name: "pipeline.epoch_max_rows",
        kind: OptionKind::Count,
        default: "unlimited",
        words: &["unlimited"],
        zero: false,
        meaning: "An epoch ends early when it has taken in this many rows.",
    },
    SettingDecl {
        name: "pipeline.parallelism",
        kind: OptionKind::Count,
        default: "auto",
        words: &["auto"],
        zero: false,
        meaning: "How many subtasks each operator has; auto: the number of cores.",
    },
    SettingDecl {
        name: "pipeline.update-aggregate-flush-interval",
        kind: OptionKind::Duration,
        default: "1 second",
        words: &[],
        zero: true,
        meaning: "How long an epoch lasts, and so how often updating results change; 0: an epoch for every row.",
    },
    SettingDecl {
        name: "state.memory",
        kind: OptionKind::Bytes,
        default: "1 GiB",
        words: &[],
        zero: false,
        meaning: "How much decoded state a job keeps in memory; the rest is read from disk when needed.",
    },
    SettingDecl {
        name: "timezone",
        kind: OptionKind::Choice(&["UTC"]),
        default: "UTC",
        words: &[],
        zero: true,
        meaning: "The time zone of timestamps without one, which is always UTC.",
    },
    SettingDecl {
        name: "updating_ttl",
        kind: OptionKind::Duration,
        default: "1 day",
        words: &["infinite"],
        zero: true,
        meaning: "How long the state of a key is kept after the last row seen for it, in event time; 0 or infinite: for ever.",
    },
];

/// The settings that hold for one query: those in force where its statement stands.
#[derive(Debug, Clone)]
pub struct QuerySettings {
    /// `updating_ttl`, nanoseconds of event time; `None`: for ever.
    pub updating_ttl: Option<i64>,
    pub job: JobSettings,
}

impl Default for QuerySettings {
    fn default() -> Self {
        Settings::default().for_query()
    }
}

/// The values in force.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    changed: BTreeMap<&'static str, String>,
}

impl Settings {
    /// Errors: an unknown name, or a value that is none.
    pub fn set(&mut self, name: &Name, value: &SetValue) -> Result<(), Fault> {
        let decl = find(name)?;
        match value {
            SetValue::Default => {
                self.changed.remove(decl.name);
            }
            SetValue::To { text, position } => {
                self.changed
                    .insert(decl.name, checked(decl, text, *position)?);
            }
        }
        Ok(())
    }

    /// Back to the default: one setting, or all.
    pub fn reset(&mut self, name: Option<&Name>) -> Result<(), Fault> {
        match name {
            None => self.changed.clear(),
            Some(name) => {
                self.changed.remove(find(name)?.name);
            }
        }
        Ok(())
    }

    /// The name as declared and the value of a setting.
    pub fn show(&self, name: &Name) -> Result<(&'static str, &str), Fault> {
        let decl = find(name)?;
        Ok((decl.name, self.value(decl.name)))
    }

    /// Every setting with its value.
    pub fn all(&self) -> impl Iterator<Item = (&'static SettingDecl, &str)> {
        SETTINGS.iter().map(|decl| (decl, self.value(decl.name)))
    }

    pub fn for_query(&self) -> QuerySettings {
        let nanos = |name| parse_duration(self.value(name)).ok();
        let bytes =
            |name| parse_bytes(self.value(name)).expect("sizes are checked when they are set");
        let count = |name| self.value(name).parse::<u64>().ok();
        QuerySettings {
            updating_ttl: nanos("updating_ttl").filter(|ttl| *ttl > 0),
            job: JobSettings {
                flush_interval: nanos("pipeline.update-aggregate-flush-interval")
                    .expect("durations are checked when they are set"),
                epoch_max_rows: count("pipeline.epoch_max_rows"),
                epoch_max_bytes: bytes("pipeline.epoch_max_bytes"),
                checkpoint_interval: nanos("checkpoint.interval")
                    .expect("durations are checked when they are set"),
                parallelism: count("pipeline.parallelism").map(|n| n as usize),
                state_memory: bytes("state.memory"),
            },
        }
    }

    fn value(&self, name: &str) -> &str {
        let changed = self.changed.get(name).map(String::as_str);
        changed.unwrap_or_else(|| {
            SETTINGS
                .iter()
                .find(|decl| decl.name == name)
                .expect("names come from the declarations")
                .default
        })
    }
}

fn canonical(name: &str) -> String {
    name.to_lowercase().replace(['.', '-'], "_")
}

fn find(name: &Name) -> Result<&'static SettingDecl, Fault> {
    let wanted = canonical(&name.text);
    if let Some(decl) = SETTINGS.iter().find(|decl| canonical(decl.name) == wanted) {
        return Ok(decl);
    }
    let fault = Fault::new(
        FaultKind::UndefinedObject,
        format!("unknown setting \"{}\"", name.text),
    )
    .at(Some(name.position));
    let names = SETTINGS.iter().map(|decl| decl.name);
    Err(match closest(&name.text.to_lowercase(), names) {
        Some(known) => fault.hint(format!("did you mean \"{known}\"?")),
        None => fault.hint("SHOW ALL lists the settings"),
    })
}

/// `text` as SHOW gives it back.
fn checked(decl: &SettingDecl, text: &str, position: Position) -> Result<String, Fault> {
    if let Some(word) = decl
        .words
        .iter()
        .find(|word| word.eq_ignore_ascii_case(text))
    {
        return Ok(word.to_string());
    }
    let invalid = |error: String| {
        let fault = Fault::new(
            FaultKind::InvalidOption,
            format!("setting \"{}\": {error}", decl.name),
        )
        .at(Some(position));
        match decl.words {
            [] => fault,
            words => fault.hint(format!("or '{}'", words.join("', '"))),
        }
    };
    if let OptionKind::Choice(words) = decl.kind {
        let known = words.iter().find(|word| word.eq_ignore_ascii_case(text));
        return known
            .map(|word| word.to_string())
            .ok_or_else(|| invalid(format!("'{text}' is not supported")));
    }
    decl.kind.check(text).map_err(invalid)?;
    let (zero, negative) = match decl.kind {
        OptionKind::Duration => {
            let nanos = parse_duration(text).map_err(invalid)?;
            (nanos == 0, nanos < 0)
        }
        OptionKind::Bytes => (parse_bytes(text) == Some(0), false),
        OptionKind::Count => (text.parse() == Ok(0_u64), false),
        _ => (false, false),
    };
    if negative || (zero && !decl.zero) {
        return Err(invalid(format!("it must be above zero, not '{text}'")));
    }
    Ok(text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name {
            text: text.into(),
            position: Position { line: 1, column: 5 },
        }
    }

    fn set(settings: &mut Settings, setting: &str, value: &str) -> Result<(), String> {
        let value = SetValue::To {
            text: value.into(),
            position: Position {
                line: 1,
                column: 20,
            },
        };
        settings
            .set(&name(setting), &value)
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn defaults_are_those_of_the_vocabulary() {
        let ours = QuerySettings::default();
        assert_eq!(
            format!("{:?}", ours.job),
            format!("{:?}", JobSettings::default())
        );
        assert_eq!(ours.updating_ttl, Some(86_400_000_000_000), "semantics 5.1");
    }

    #[test]
    fn a_name_may_be_written_with_dots_hyphens_or_underscores() {
        for spelling in [
            "pipeline.update-aggregate-flush-interval",
            "pipeline.update_aggregate_flush_interval",
            "PIPELINE_UPDATE_AGGREGATE_FLUSH_INTERVAL",
        ] {
            let mut settings = Settings::default();
            set(&mut settings, spelling, "250 ms").unwrap();
            assert_eq!(
                settings.for_query().job.flush_interval,
                250_000_000,
                "{spelling}"
            );
        }
    }

    #[test]
    fn ttl_is_endless_for_zero_and_infinite() {
        for value in ["0", "infinite", "INFINITE"] {
            let mut settings = Settings::default();
            set(&mut settings, "updating_ttl", value).unwrap();
            assert_eq!(settings.for_query().updating_ttl, None, "{value}");
        }
    }

    #[test]
    fn wrong_values_and_names_are_faults_with_a_way_out() {
        let mut settings = Settings::default();
        for (setting, value, error) in [
            (
                "updating_tll",
                "1 day",
                "unknown setting \"updating_tll\" at 1:5 · hint: did you mean \"updating_ttl\"?",
            ),
            (
                "colour",
                "red",
                "unknown setting \"colour\" at 1:5 · hint: SHOW ALL lists the settings",
            ),
            (
                "updating_ttl",
                "10",
                "setting \"updating_ttl\": '10' has no unit; write for example '10 seconds' at 1:20 · hint: or 'infinite'",
            ),
            (
                "updating_ttl",
                "-1 hour",
                "setting \"updating_ttl\": it must be above zero, not '-1 hour' at 1:20 · hint: or 'infinite'",
            ),
            (
                "pipeline.parallelism",
                "0",
                "setting \"pipeline.parallelism\": it must be above zero, not '0' at 1:20 · hint: or 'auto'",
            ),
            (
                "timezone",
                "Europe/Berlin",
                "setting \"timezone\": 'Europe/Berlin' is not supported at 1:20",
            ),
        ] {
            assert_eq!(set(&mut settings, setting, value), Err(error.to_string()));
        }
        assert!(settings.changed.is_empty());
    }

    #[test]
    fn reset_goes_back_to_the_default() {
        let mut settings = Settings::default();
        set(&mut settings, "state.memory", "2 GiB").unwrap();
        set(&mut settings, "pipeline.parallelism", "3").unwrap();
        settings.reset(Some(&name("state_memory"))).unwrap();
        assert_eq!(
            settings.show(&name("state.memory")).unwrap(),
            ("state.memory", "1 GiB")
        );
        assert_eq!(settings.for_query().job.parallelism, Some(3));
        settings.reset(None).unwrap();
        assert_eq!(settings.for_query().job.parallelism, None);
    }
}
