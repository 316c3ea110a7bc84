//! What tests of commands compute with.

use std::sync::Arc;

use rookery_backend_cpu::CpuBackend;
use rookery_common::network::NetworkSpec;
use rookery_engine::Precision;
use rookery_model::Weights;

use crate::device::Device;

/// A small network of random numbers.
pub(crate) fn network() -> Weights {
    Weights::random(NetworkSpec::resnet(1, 8), 1).unwrap()
}

/// One thread of the processor.
pub(crate) fn device() -> Device {
    Device::new(Arc::new(CpuBackend::new(Precision::F32).unwrap()), Some(1))
}
