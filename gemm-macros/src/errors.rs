//! Combination of several errors into one.

/// Returns the first value if neither result is an error, otherwise all errors combined.
pub(crate) fn both<T>(first: syn::Result<T>, second: syn::Result<()>) -> syn::Result<T> {
    match (first, second) {
        (Err(mut all), Err(more)) => {
            all.combine(more);
            Err(all)
        }
        (Ok(value), Ok(())) => Ok(value),
        (Err(errors), Ok(())) | (Ok(_), Err(errors)) => Err(errors),
    }
}
