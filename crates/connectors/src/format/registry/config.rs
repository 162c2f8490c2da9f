//! What the options of a schema registry mean.

use std::time::Duration;

use thalweg_dataflow::options::{OptionFault, Options};

use super::{API_KEY, API_SECRET, ENDPOINT, SUBJECT, TIMEOUT};

/// Where a registry is, and who asks.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Config {
    /// Without a slash at its end.
    pub endpoint: String,
    /// User and password.
    pub login: Option<(String, String)>,
    pub timeout: Duration,
    pub subject: Option<String>,
}

/// The secret stays out of logs.
impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("endpoint", &self.endpoint)
            .field("login", &self.login.as_ref().map(|(user, _)| user))
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Errors: no endpoint, or one that is no URL.
    pub fn parse(options: &Options) -> Result<Self, OptionFault> {
        let endpoint = options.text(ENDPOINT.name).unwrap_or_default();
        if endpoint.is_empty() {
            let hint = "add schema_registry.endpoint = 'http://…'";
            return Err(fault("a schema registry is needed", Some(hint)));
        }
        let url = reqwest::Url::parse(endpoint)
            .map_err(|e| fault(&format!("\"{endpoint}\" is not a URL: {e}"), None))?;
        if !matches!(url.scheme(), "http" | "https") || url.cannot_be_a_base() {
            let message = format!("\"{endpoint}\" does not begin with http:// or https://");
            return Err(fault(&message, None));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let hint = "use schema_registry.api_key and schema_registry.api_secret";
            return Err(fault("a login does not belong into the URL", Some(hint)));
        }
        let key = options.text(API_KEY.name);
        let secret = options.text(API_SECRET.name).unwrap_or_default();
        let nanos = options.duration(TIMEOUT.name).filter(|n| *n > 0);
        let timeout = nanos.and_then(|n| u64::try_from(n).ok());
        Ok(Self {
            endpoint: endpoint.trim_end_matches('/').to_string(),
            login: key.map(|key| (key.to_string(), secret.to_string())),
            timeout: timeout.map_or(Duration::from_secs(30), Duration::from_nanos),
            subject: subject(options),
        })
    }
}

/// The subject that the options say: as given, or by the topic.
fn subject(options: &Options) -> Option<String> {
    let given = options.text(SUBJECT.name).map(str::to_string);
    given.or_else(|| options.text("topic").map(|topic| format!("{topic}-value")))
}

fn fault(message: &str, hint: Option<&str>) -> OptionFault {
    OptionFault {
        option: Some(ENDPOINT.name.to_string()),
        message: message.to_string(),
        hint: hint.map(str::to_string),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::options;

    #[test]
    fn options_become_a_configuration() {
        let config = Config::parse(&options(&[
            ("schema_registry.endpoint", "https://registry:8081/"),
            ("schema_registry.api_key", "me"),
            ("schema_registry.api_secret", "hush"),
            ("schema_registry.timeout", "5 seconds"),
            ("topic", "orders"),
        ]))
        .unwrap();
        assert_eq!(config.endpoint, "https://registry:8081");
        assert_eq!(config.login, Some(("me".into(), "hush".into())));
        assert_eq!(config.timeout, Duration::from_secs(5));
        assert_eq!(config.subject.as_deref(), Some("orders-value"));
        assert!(!format!("{config:?}").contains("hush"));
    }

    #[test]
    fn what_is_no_registry_is_refused() {
        let message = |given: &[(&str, &str)]| Config::parse(&options(given)).unwrap_err().message;
        let at = |url: &str| message(&[("schema_registry.endpoint", url)]);
        assert_eq!(message(&[]), "a schema registry is needed");
        assert!(at("registry").contains("is not a URL"));
        assert!(at("ftp://registry").contains("does not begin with http"));
        assert!(at("registry:8081").contains("does not begin with http"));
        assert!(at("http://me:hush@registry").contains("a login does not belong"));
    }
}
