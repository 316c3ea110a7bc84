//! Gate rules.
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
/// When a candidate is promoted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum GateRule {
    /// No test.
    #[default]
    None,
}
