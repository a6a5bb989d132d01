//! Spans of `tracing`. Without the feature `tracing` they are not compiled.

/// Enters a span that ends with the enclosing block.
macro_rules! span {
    ($name:literal $(, $field:ident = $value:expr)*) => {
        #[cfg(feature = "tracing")]
        let _entered = tracing::debug_span!(target: "gemm_runtime", $name $(, $field = %$value)*)
            .entered();
    };
}

/// Records an event in the current span.
macro_rules! event {
    ($message:literal, $($field:ident = $value:expr),*) => {
        #[cfg(feature = "tracing")]
        tracing::debug!(target: "gemm_runtime", $($field = %$value,)* $message);
    };
}

pub(crate) use {event, span};
