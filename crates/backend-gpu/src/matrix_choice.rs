//! Whether kernels may use cooperative matrices.

use std::fmt;
use std::str::FromStr;

use crate::adapter::GpuAdapter;
use crate::kernel::Storage;

/// Whether kernels may use a GPU's cooperative matrices (NVIDIA's tensor cores, AMD's matrix cores), in 16 bits.
///
/// # Examples
///
/// ```
/// use rookery_backend_gpu::MatrixChoice;
///
/// assert_eq!("on".parse(), Ok(MatrixChoice::On));
/// assert!("yes".parse::<MatrixChoice>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MatrixChoice {
    /// With NVIDIA's own driver, with which they have been seen to work on one card.
    #[default]
    Auto,
    /// With every driver that has them.
    On,
    /// Never.
    Off,
}

impl MatrixChoice {
    /// Rows and columns of the matrices that kernels may use.
    pub fn tile(self, adapter: &GpuAdapter) -> Option<u32> {
        let allowed = match self {
            Self::Auto => adapter.interface == "vulkan" && adapter.driver.starts_with("NVIDIA "),
            Self::On => true,
            Self::Off => false,
        };
        adapter.matrix_tile.filter(|_| allowed)
    }

    /// Why asking for matrices has no effect on a GPU in this storage, if it has none.
    pub(crate) const fn obstacle(
        self,
        adapter: &GpuAdapter,
        storage: Storage,
    ) -> Option<&'static str> {
        match (self, adapter.matrix_tile, storage) {
            (Self::On, None, _) => {
                Some("it has no cooperative matrices, or its driver does not show them")
            }
            (Self::On, Some(_), Storage::F32) => {
                Some("they compute in 16 bits, and the precision is f32")
            }
            _ => None,
        }
    }
}

impl fmt::Display for MatrixChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        })
    }
}

impl FromStr for MatrixChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Auto, Self::On, Self::Off]
            .into_iter()
            .find(|choice| choice.to_string() == text)
            .ok_or_else(|| format!("`{text}` is none of auto, on and off"))
    }
}
