//! Faults through DataFusion and back: our hooks in its planner can only give its error type.

use datafusion::common::DataFusionError;

use crate::error::{Fault, FaultKind};

impl From<Fault> for DataFusionError {
    fn from(fault: Fault) -> Self {
        Self::External(Box::new(fault))
    }
}

impl Fault {
    /// The fault that `error` carries, or what DataFusion says of a plan that was already bound: a type
    /// that does not fit, an expression that it cannot evaluate.
    pub fn from_datafusion(error: DataFusionError) -> Self {
        if let Some(fault) = carried(&error) {
            return fault.clone();
        }
        let (kind, message) = match error.find_root() {
            DataFusionError::Plan(message) => (FaultKind::InvalidType, message.clone()),
            DataFusionError::NotImplemented(message) => (FaultKind::Unsupported, message.clone()),
            DataFusionError::SchemaError(schema, _) => {
                (FaultKind::UndefinedColumn, schema.to_string())
            }
            DataFusionError::Internal(message) => (FaultKind::Internal, message.clone()),
            root => (FaultKind::InvalidType, root.strip_backtrace()),
        };
        Self::new(kind, message)
    }
}

fn carried(error: &DataFusionError) -> Option<&Fault> {
    match error {
        DataFusionError::External(inner) => match inner.downcast_ref::<Fault>() {
            Some(fault) => Some(fault),
            None => inner.downcast_ref::<DataFusionError>().and_then(carried),
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            carried(inner)
        }
        DataFusionError::Shared(inner) => carried(inner),
        DataFusionError::Collection(errors) => errors.iter().find_map(carried),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_survives_the_way_through_datafusion() {
        let fault = Fault::new(FaultKind::NotStreamable, "no").hint("yes");
        let error = DataFusionError::from(fault.clone())
            .context("rule")
            .context("pass");
        assert_eq!(Fault::from_datafusion(error), fault);
    }
}
