//! An opened GPU: its queue, its compiled kernels, and what went wrong on it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::{Mutex, MutexGuard};
use rookery_engine::BackendError;

use crate::adapter::{GpuAdapter, MATRIX_FEATURES, adapter};
use crate::kernel::Kernel;
use crate::matrix_choice::MatrixChoice;

/// A GPU that any number of networks and threads share.
pub(crate) struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) adapter: GpuAdapter,
    /// Rows and columns of the cooperative matrices that kernels may use.
    pub(crate) matrix_tile: Option<usize>,
    pub(crate) checks: Checks,
    /// By their source: networks of one shape share them.
    pipelines: Mutex<HashMap<Kernel, wgpu::ComputePipeline>>,
    fault: Arc<Mutex<Option<String>>>,
    submissions: AtomicUsize,
    /// The most submissions that were in flight at the same time.
    #[cfg(test)]
    pub(crate) most_in_flight: AtomicUsize,
    /// Bytes of the device that may be allocated.
    #[cfg(test)]
    pub(crate) memory_limit: std::sync::atomic::AtomicU64,
}

/// A submission that the device has not finished.
#[derive(Debug)]
pub(crate) struct InFlight<'a> {
    gpu: &'a Gpu,
    /// Submissions that were in flight when this one was sent, with itself. They are computed one after the other.
    pub(crate) queued: usize,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.gpu.submissions.fetch_sub(1, Relaxed);
    }
}

/// Whether kernels check their accesses to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checks {
    /// They do not, and workgroup memory begins as it is. For kernels that tests have run with the checks.
    None,
    /// Bounds are checked and workgroup memory begins with zeros, as in a browser.
    #[cfg(test)]
    All,
}

/// What the GPU could not do.
#[derive(Debug)]
pub(crate) enum GpuError {
    /// It has too little free memory.
    OutOfMemory,
    /// Anything else.
    Failed(String),
}

impl Gpu {
    /// Opens the GPU of this number, with 16-bit storage if it has that.
    ///
    /// # Errors
    ///
    /// [`BackendError`] if there is none of this number, or it cannot be opened.
    pub(crate) fn open(
        number: usize,
        checks: Checks,
        matrices: MatrixChoice,
    ) -> Result<Arc<Self>, BackendError> {
        let (found, adapter) = adapter(number)?;
        let matrix_tile = matrices.tile(&adapter).map(|tile| tile as usize);
        let mut features = found.features() & wgpu::Features::SHADER_F16;
        if matrix_tile.is_some() {
            features |= MATRIX_FEATURES;
        }
        let descriptor = wgpu::DeviceDescriptor {
            label: None,
            required_features: features,
            experimental_features: experimental(matrix_tile.is_some()),
            required_limits: found.limits(),
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) =
            pollster::block_on(found.request_device(&descriptor)).map_err(|error| {
                BackendError::Failed(format!("{adapter} cannot be opened: {error}"))
            })?;
        let fault = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&fault);
        device.set_device_lost_callback(move |_, message| {
            note(&noted, format!("the device was lost: {message}"));
        });
        let noted = Arc::clone(&fault);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            note(&noted, error.to_string());
        }));
        Ok(Arc::new(Self {
            device,
            queue,
            adapter,
            matrix_tile,
            checks,
            pipelines: Mutex::default(),
            fault,
            submissions: AtomicUsize::new(0),
            #[cfg(test)]
            most_in_flight: AtomicUsize::new(0),
            #[cfg(test)]
            memory_limit: u64::MAX.into(),
        }))
    }

    /// What went wrong outside of [`attempt`](Self::attempt), if anything has. The device is not used any more then.
    pub(crate) fn fault(&self) -> Option<String> {
        locked(&self.fault).clone()
    }

    /// Gives the device up. Answers with the first fault, from which this one may follow.
    pub(crate) fn give_up(&self, fault: String) -> String {
        note(&self.fault, fault.clone());
        self.fault().unwrap_or(fault)
    }

    /// Counts a submission until the guard is dropped.
    pub(crate) fn in_flight(&self) -> InFlight<'_> {
        let queued = self.submissions.fetch_add(1, Relaxed) + 1;
        #[cfg(test)]
        self.most_in_flight.fetch_max(queued, Relaxed);
        InFlight { gpu: self, queued }
    }

    /// Does something with the device, whose errors are caught.
    ///
    /// # Errors
    ///
    /// [`GpuError`] if the device has too little memory for it, or reports anything else.
    pub(crate) fn attempt<T>(&self, make: impl FnOnce() -> T) -> Result<T, GpuError> {
        let filters = [
            wgpu::ErrorFilter::OutOfMemory,
            wgpu::ErrorFilter::Validation,
            wgpu::ErrorFilter::Internal,
        ];
        let scopes = filters.map(|filter| self.device.push_error_scope(filter));
        let made = make();
        // The innermost scope is left first.
        let [memory, validation, internal] = scopes;
        let errors = [internal, validation, memory].map(|scope| pollster::block_on(scope.pop()));
        let mut failed = None;
        for error in errors.into_iter().flatten() {
            match error {
                wgpu::Error::OutOfMemory { .. } => return Err(GpuError::OutOfMemory),
                other => failed = Some(GpuError::Failed(other.to_string())),
            }
        }
        #[cfg(test)]
        if self.allocated_bytes() > self.memory_limit.load(Relaxed) {
            return Err(GpuError::OutOfMemory);
        }
        failed.map_or(Ok(made), Err)
    }

    /// Memory of the device that is in use.
    #[cfg(test)]
    pub(crate) fn allocated_bytes(&self) -> u64 {
        let report = self.device.generate_allocator_report();
        report.map_or(0, |report| report.total_allocated_bytes)
    }

    /// A kernel, compiled. Its entry is `main`.
    pub(crate) fn pipeline(&self, kernel: Kernel) -> wgpu::ComputePipeline {
        if let Some(known) = locked(&self.pipelines).get(&kernel) {
            return known.clone();
        }
        let module = self.module(&kernel);
        let descriptor = wgpu::ComputePipelineDescriptor {
            label: Some(kernel.name),
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &[],
                zero_initialize_workgroup_memory: self.checks != Checks::None,
            },
            cache: None,
        };
        let pipeline = self.device.create_compute_pipeline(&descriptor);
        locked(&self.pipelines).insert(kernel, pipeline.clone());
        pipeline
    }

    /// The kernels that have been compiled.
    #[cfg(test)]
    pub(crate) fn kernels(&self) -> Vec<Kernel> {
        locked(&self.pipelines).keys().cloned().collect()
    }

    #[expect(
        unsafe_code,
        reason = "kernels without checks are faster; these are our own, and the tests run them with checks too"
    )]
    fn module(&self, kernel: &Kernel) -> wgpu::ShaderModule {
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(kernel.name),
            source: wgpu::ShaderSource::Wgsl(kernel.source.as_str().into()),
        };
        if self.checks != Checks::None {
            return self.device.create_shader_module(descriptor);
        }
        // SAFETY: the kernels read and write within their arrays and end, whatever the batch: positions and moves are
        // counted and policy cells looked up before they are sent.
        unsafe {
            let checks = wgpu::ShaderRuntimeChecks::unchecked();
            self.device.create_shader_module_trusted(descriptor, checks)
        }
    }

    /// An array on the device with these bytes, whose number is a multiple of four.
    pub(crate) fn array(&self, bytes: &[u8]) -> wgpu::Buffer {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        let buffer = self.buffer(bytes.len() as u64, usage);
        self.queue.write_buffer(&buffer, 0, bytes);
        buffer
    }

    /// Memory of the device.
    pub(crate) fn buffer(&self, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        })
    }
}

/// wgpu's leave to use features that it may still change.
#[expect(
    unsafe_code,
    reason = "cooperative matrices are experimental in wgpu; every network is compared with the processor's numbers"
)]
fn experimental(wanted: bool) -> wgpu::ExperimentalFeatures {
    if !wanted {
        return wgpu::ExperimentalFeatures::disabled();
    }
    // SAFETY: the kernels use matrices as the tests do, with and without checks.
    unsafe { wgpu::ExperimentalFeatures::enabled() }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu")
            .field("adapter", &self.adapter)
            .field("checks", &self.checks)
            .finish_non_exhaustive()
    }
}

/// The first fault is what others follow from.
fn note(fault: &Mutex<Option<String>>, message: String) {
    locked(fault).get_or_insert(message);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
