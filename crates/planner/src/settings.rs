//! Settings: what `SET`, `SHOW` and `RESET` speak of.

use thalweg_dataflow::plan::JobSettings;

/// The settings that hold for one query: those in force where its statement stands.
#[derive(Debug, Clone)]
pub struct QuerySettings {
    /// `updating_ttl`, nanoseconds of event time; `None`: for ever.
    pub updating_ttl: Option<i64>,
    pub job: JobSettings,
}

impl Default for QuerySettings {
    fn default() -> Self {
        Self {
            updating_ttl: Some(86_400_000_000_000),
            job: JobSettings::default(),
        }
    }
}
