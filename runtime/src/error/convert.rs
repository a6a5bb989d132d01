//! Conversions from the errors of gemm-dsl.

use super::{ContractError, Error};
use gemm_dsl::ir::program::BindError;
use gemm_dsl::ir::{HostError, IrError};

impl From<ContractError> for Error {
    fn from(error: ContractError) -> Self {
        Error::Unmet(Box::new(error))
    }
}

impl From<BindError> for Error {
    fn from(error: BindError) -> Self {
        match error {
            BindError::Value(error) => error.into(),
            error => Error::Internal(error.to_string()),
        }
    }
}

impl From<IrError> for Error {
    fn from(error: IrError) -> Self {
        Error::Internal(format!("kernel `{}`: {}", error.kernel, error.rule))
    }
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Self {
        Error::TooLarge {
            what: format!("the launches for these extents cannot be computed: {error}"),
            limit: u64::MAX,
            remedy: "Use smaller extents",
        }
    }
}
