//! How a connection opens.

use std::sync::Arc;

use pgwire::messages::response::TransactionStatus;
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};
use thalweg_planner::parse::statement::{Name, SetValue};
use thalweg_planner::{Position, settings::Settings};

use super::backend::Output;
use super::backends::Registered;
use super::client::Client;
use super::client_settings::{ClientSettings, by_name};
use super::error::Failure;
use super::frontend::Startup;
use crate::engine::Engine;

/// Opens a connection as the client asked. Whoever comes is let in: the server listens on loopback only.
pub fn open(
    engine: &Arc<Engine>,
    startup: &Startup,
    asked: Asked,
    registered: &Registered,
    mut output: Output,
) -> Client {
    let unknown: Vec<String> = startup
        .parameters
        .iter()
        .filter(|(name, _)| name.starts_with("_pq_."))
        .map(|(name, _)| name.clone())
        .collect();
    if startup.minor > 0 || !unknown.is_empty() {
        // 3.0 is what there is.
        output.put(&NegotiateProtocolVersion::new(3 << 16, unknown));
    }
    output.put(&Authentication::Ok);
    for (name, value) in asked.client_settings.reported() {
        output.put(&ParameterStatus::new(name.to_string(), value.to_string()));
    }
    let secret = SecretKey::I32(registered.secret);
    output.put(&BackendKeyData::new(registered.pid, secret));
    let mut client = Client::new(engine.clone(), asked.client_settings, output);
    client.settings = asked.settings;
    client.output.ready(TransactionStatus::Idle);
    client
}

/// What the start-up packet asks for.
pub struct Asked {
    settings: Settings,
    client_settings: ClientSettings,
}

impl Asked {
    /// Errors: a setting that is not there; no user.
    pub fn of(startup: &Startup) -> Result<Self, Failure> {
        let mut asked = Self {
            settings: Settings::default(),
            client_settings: ClientSettings::default(),
        };
        let mut user = None;
        for (name, value) in &startup.parameters {
            match name.as_str() {
                "user" => user = Some(value.clone()),
                // There is one, and it answers to every name.
                "database" => {}
                "replication" if ["false", "off", "no", "0"].contains(&value.as_str()) => {}
                "replication" => {
                    return Err(Failure::unsupported(
                        "replication connections are not supported",
                    ));
                }
                "options" => asked.options(value)?,
                name if name.starts_with("_pq_.") => {}
                name => asked.set(name, value)?,
            }
        }
        let Some(user) = user.filter(|user| !user.is_empty()) else {
            return Err(Failure::new("28000", "no user name in startup packet"));
        };
        asked.client_settings.user = user;
        Ok(asked)
    }

    /// `-c name=value`, `--name=value`, as PGOPTIONS has them.
    fn options(&mut self, options: &str) -> Result<(), Failure> {
        let mut words = options.split_ascii_whitespace();
        while let Some(word) = words.next() {
            let setting = match word {
                "-c" => words.next(),
                _ => word.strip_prefix("-c").or_else(|| word.strip_prefix("--")),
            };
            let setting = setting.and_then(|setting| setting.split_once('='));
            let (name, value) = setting.ok_or_else(|| {
                let message = format!("option \"{word}\" of the start-up packet is not supported");
                Failure::new("42601", message).hint("write -c name=value")
            })?;
            self.set(name, value)?;
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        if let Some(setting) = by_name(name) {
            return self.client_settings.set(setting, Some(value));
        }
        let position = Position { line: 1, column: 1 };
        let name = Name {
            text: name.to_string(),
            position,
        };
        let value = SetValue::To {
            text: value.to_string(),
            position,
        };
        let set = self.settings.set(&name, &value);
        set.map_err(|fault| {
            let mut failure = Failure::of_faults(&[fault], "");
            failure.position = None;
            failure
        })
    }
}
