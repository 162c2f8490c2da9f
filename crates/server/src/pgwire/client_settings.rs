//! Settings of PostgreSQL that clients set and ask for. They concern a connection and no query.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_dataflow::time::parse_duration;
use thalweg_planner::parse::statement::{Name, SetValue, Show, Statement};

use super::error::Failure;

/// Version of PostgreSQL whose dialect of the catalog and of the protocol is spoken.
pub const SERVER_VERSION: &str = concat!("14.0 (Thalweg ", env!("CARGO_PKG_VERSION"), ")");

/// SET, SHOW or RESET of such a setting.
pub enum ClientSetting {
    Set {
        setting: &'static Declared,
        /// `None`: the default.
        value: Option<String>,
    },
    Show(&'static Declared),
}

pub struct Declared {
    /// As SHOW and ParameterStatus spell it.
    pub name: &'static str,
    pub default: &'static str,
    allowed: Allowed,
    /// Whether the client is told each change, and the value when it connects.
    pub is_reported: bool,
}

enum Allowed {
    /// It changes nothing here.
    Any,
    /// How long something may take; with a unit, or in milliseconds.
    Duration,
    /// These, in any case: other values would change what a client gets, and are not there.
    Only(&'static [&'static str]),
    Nothing,
}

const fn declared(
    name: &'static str,
    default: &'static str,
    allowed: Allowed,
    is_reported: bool,
) -> Declared {
    Declared {
        name,
        default,
        allowed,
        is_reported,
    }
}

const UTF8: &[&str] = &["utf8", "utf-8", "unicode", "sql_ascii"];
const ISO: &[&str] = &[
    "iso", "iso, mdy", "iso, dmy", "iso, ymd", "iso,mdy", "iso,dmy", "iso,ymd", "mdy", "ymd", "dmy",
];

/// Where a connection's user is shown in place of a default.
pub const USER: &str = "session_authorization";

/// How long FETCH waits for rows of a result that never ends.
const FETCH_TIMEOUT: &str = "fetch_timeout";

static SETTINGS: [Declared; 32] = [
    declared("application_name", "", Allowed::Any, true),
    declared("bytea_output", "hex", Allowed::Only(&["hex"]), false),
    declared("client_encoding", "UTF8", Allowed::Only(UTF8), true),
    declared("client_min_messages", "notice", Allowed::Any, false),
    declared("DateStyle", "ISO, MDY", Allowed::Only(ISO), true),
    declared("default_tablespace", "", Allowed::Any, false),
    declared(
        "default_transaction_isolation",
        "read committed",
        Allowed::Any,
        false,
    ),
    declared("default_transaction_read_only", "off", Allowed::Any, true),
    declared("escape_string_warning", "on", Allowed::Any, false),
    declared("extra_float_digits", "1", Allowed::Any, false),
    declared(FETCH_TIMEOUT, "1 second", Allowed::Duration, false),
    declared(
        "idle_in_transaction_session_timeout",
        "0",
        Allowed::Only(&["0"]),
        false,
    ),
    declared("in_hot_standby", "off", Allowed::Nothing, true),
    declared("integer_datetimes", "on", Allowed::Nothing, true),
    declared(
        "IntervalStyle",
        "postgres",
        Allowed::Only(&["postgres"]),
        true,
    ),
    declared("is_superuser", "off", Allowed::Nothing, true),
    declared("jit", "off", Allowed::Any, false),
    declared("lock_timeout", "0", Allowed::Only(&["0"]), false),
    declared("max_identifier_length", "63", Allowed::Nothing, false),
    declared("row_security", "off", Allowed::Any, false),
    declared("search_path", "public", Allowed::Any, false),
    declared("server_encoding", "UTF8", Allowed::Nothing, true),
    declared("server_version", SERVER_VERSION, Allowed::Nothing, true),
    declared("server_version_num", "140000", Allowed::Nothing, false),
    declared(USER, "", Allowed::Nothing, true),
    declared(
        "standard_conforming_strings",
        "on",
        Allowed::Only(&["on", "true"]),
        true,
    ),
    declared("statement_timeout", "0", Allowed::Only(&["0"]), false),
    declared("synchronous_commit", "on", Allowed::Any, false),
    declared("transaction_deferrable", "off", Allowed::Any, false),
    declared(
        "transaction_isolation",
        "read committed",
        Allowed::Any,
        false,
    ),
    declared("transaction_read_only", "off", Allowed::Any, false),
    declared("xmloption", "content", Allowed::Any, false),
];

/// What a statement wants of such a setting, if it is about one.
pub fn of(statement: &Statement) -> Option<ClientSetting> {
    match statement {
        Statement::Set { setting, value } => {
            let value = match value {
                SetValue::To { text, .. } => Some(text.clone()),
                SetValue::Default => None,
            };
            Some(ClientSetting::Set {
                setting: find(setting)?,
                value,
            })
        }
        Statement::Reset(Some(name)) => Some(ClientSetting::Set {
            setting: find(name)?,
            value: None,
        }),
        Statement::Show(Show::Setting(name)) => Some(ClientSetting::Show(find(name)?)),
        _ => None,
    }
}

fn find(name: &Name) -> Option<&'static Declared> {
    by_name(&name.text)
}

pub fn by_name(name: &str) -> Option<&'static Declared> {
    SETTINGS
        .iter()
        .find(|setting| setting.name.eq_ignore_ascii_case(name))
}

/// The values of one connection.
#[derive(Default)]
pub struct ClientSettings {
    changed: BTreeMap<&'static str, String>,
    pub user: String,
}

impl ClientSettings {
    pub fn get(&self, setting: &Declared) -> &str {
        match self.changed.get(setting.name) {
            Some(value) => value,
            None if setting.name == USER => &self.user,
            None => setting.default,
        }
    }

    /// Errors: a setting that cannot be changed, a value that is not there.
    pub fn set(&mut self, setting: &'static Declared, value: Option<&str>) -> Result<(), Failure> {
        let Some(value) = value else {
            self.changed.remove(setting.name);
            return Ok(());
        };
        let value = value.trim_matches('\'');
        match setting.allowed {
            Allowed::Any => {}
            Allowed::Duration => {
                parsed(value).map_err(|error| {
                    let message = format!("setting \"{}\": {error}", setting.name);
                    Failure::new("22023", message)
                })?;
            }
            Allowed::Only(values) => {
                if !values.iter().any(|known| known.eq_ignore_ascii_case(value)) {
                    let name = setting.name;
                    let message = format!("setting \"{name}\": '{value}' is not supported");
                    let hint = format!("leave it at '{}'", setting.default);
                    return Err(Failure::new("22023", message).hint(hint));
                }
                // All of them come to the same.
                return Ok(());
            }
            Allowed::Nothing => {
                let message = format!("parameter \"{}\" cannot be changed", setting.name);
                return Err(Failure::new("55P02", message));
            }
        }
        self.changed.insert(setting.name, value.to_string());
        Ok(())
    }

    pub fn fetch_timeout(&self) -> Duration {
        let value = by_name(FETCH_TIMEOUT).map_or("", |setting| self.get(setting));
        parsed(value).unwrap_or(Duration::from_secs(1))
    }

    pub fn reset_all(&mut self) {
        self.changed.clear();
    }

    /// What a client is told when it connects.
    pub fn reported(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let reported = SETTINGS.iter().filter(|setting| setting.is_reported);
        let values = reported.map(|setting| (setting.name, self.get(setting)));
        values.chain([("TimeZone", "UTC")])
    }
}

/// `250 ms`, or a number of milliseconds as PostgreSQL's timeouts have it. Errors: below zero; neither.
fn parsed(text: &str) -> Result<Duration, String> {
    if let Ok(millis) = text.parse() {
        return Ok(Duration::from_millis(millis));
    }
    let nanos = parse_duration(text)?;
    let nanos = u64::try_from(nanos).map_err(|_| format!("'{text}' is below zero"))?;
    Ok(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_would_change_the_output_are_refused() {
        let mut settings = ClientSettings::default();
        let mut set = |name: &str, value| {
            let setting = by_name(name).unwrap();
            settings.set(setting, Some(value)).map_err(|f| f.message)
        };
        assert_eq!(set("client_encoding", "'utf-8'"), Ok(()));
        assert_eq!(
            set("client_encoding", "LATIN1").unwrap_err(),
            "setting \"client_encoding\": 'LATIN1' is not supported"
        );
        assert_eq!(
            set("server_version", "9").unwrap_err(),
            "parameter \"server_version\" cannot be changed"
        );
        assert_eq!(set("APPLICATION_NAME", "psql"), Ok(()));
        assert_eq!(settings.get(by_name("application_name").unwrap()), "psql");
        settings.reset_all();
        assert_eq!(settings.get(by_name("application_name").unwrap()), "");
    }
}
