//! Ranges of parameters, and what is said of one outside.

use crate::rating::RatingError;

/// A parameter outside its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} {problem}")]
pub struct ParamsError {
    /// The parameter as a file names it, for example `training.window.min`.
    pub path: String,
    /// What is wrong with it, for example `is 0, allowed is 1 to 100`.
    pub problem: String,
}

impl From<RatingError> for ParamsError {
    fn from(error: RatingError) -> Self {
        match error {
            RatingError::OutOfRange {
                what,
                value,
                low,
                high,
            } => outside(what, value, &format!("{low} to {high}")),
            RatingError::HypothesesOrder { elo0, elo1 } => {
                outside("elo0", elo0, &format!("less than elo1, which is {elo1}"))
            }
            other => Self {
                path: "rule".to_owned(),
                problem: format!("cannot be: {other}"),
            },
        }
    }
}

/// The error of a parameter whose value is none of those allowed.
pub(super) fn outside(path: &str, value: f64, allowed: &str) -> ParamsError {
    // What the file gives as 0.1 is not to be shown as 0.10000000149.
    let short = value as f32;
    let shown = if f64::from(short) == value {
        short.to_string()
    } else {
        value.to_string()
    };
    ParamsError {
        path: path.to_owned(),
        problem: format!("is {shown}, allowed is {allowed}"),
    }
}

/// Checks that a parameter is finite and within `low` to `high`, both as the parameter's type may
/// have rounded them.
pub(super) fn within(
    path: &str,
    value: impl Into<f64>,
    low: f64,
    high: f64,
) -> Result<(), ParamsError> {
    let value = value.into();
    let rounded = |bound: f64| f64::from(bound as f32);
    if (low.min(rounded(low))..=high.max(rounded(high))).contains(&value) {
        Ok(())
    } else {
        Err(outside(path, value, &format!("{low} to {high}")))
    }
}

/// As [`within`], for numbers that may need more than 32 bits.
pub(super) fn within_u64(path: &str, value: u64, low: u64, high: u64) -> Result<(), ParamsError> {
    within(path, value as f64, low as f64, high as f64)
}

/// What the check of a section found, with the section's name before the parameter's.
pub(super) fn inside(section: &str, check: Result<(), ParamsError>) -> Result<(), ParamsError> {
    check.map_err(|error| ParamsError {
        path: format!("{section}.{}", error.path),
        ..error
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_parameter_where_it_lies() {
        let error = inside("outer", inside("inner", within("name", 0.1_f32, 0.5, 2.0)));
        assert_eq!(
            error.unwrap_err().to_string(),
            "outer.inner.name is 0.1, allowed is 0.5 to 2"
        );
        assert!(within("name", f64::NAN, 0.0, 1.0).is_err());
        assert_eq!(within_u64("name", 1 << 40, 1, 1 << 40), Ok(()));
    }
}
