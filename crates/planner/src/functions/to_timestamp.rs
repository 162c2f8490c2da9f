//! `to_timestamp` and its kin, as they should be.
//!
//! DataFusion 55.2 promises them a time zone and returns columns without one where the argument is a
//! column of text; the expression then fails on its first batch.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

const NAMES: [&str; 5] = [
    "to_timestamp",
    "to_timestamp_seconds",
    "to_timestamp_millis",
    "to_timestamp_micros",
    "to_timestamp_nanos",
];

/// Those of `all` that have the defect, mended.
pub fn mended(all: &[Arc<ScalarUDF>]) -> Vec<Arc<ScalarUDF>> {
    let defective = all.iter().filter(|udf| NAMES.contains(&udf.name()));
    defective
        .map(|udf| Arc::new(ScalarUDF::from(Mended(Arc::clone(udf)))))
        .collect()
}

/// Gives what the function promised.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Mended(Arc<ScalarUDF>);

impl ScalarUDFImpl for Mended {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.0.return_type(arg_types)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let updated = self.0.inner().with_updated_config(config)?;
        Some(ScalarUDF::from(Self(Arc::new(updated))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let promised = args.return_field.data_type().clone();
        // Not `ScalarUDF::invoke_with_args`, which checks the promise.
        self.0
            .inner()
            .invoke_with_args(args)?
            .cast_to(&promised, None)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}
