//! An evaluator's memory on the device, for batches up to a size, and one round trip there.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rookery_common::encoding::InputEncoding;

use crate::gpu::{Gpu, GpuError};
use crate::network::GpuNetwork;
use crate::plan::{Binding, Step};
use crate::request::words;

/// Moves of a position for which there is room, on average. The most that any position has are 218.
const MOVES: usize = 64;
/// Moves of a batch for which there is room at least: more than a policy has.
const FEWEST_MOVES: usize = 8192;
/// A device that has not answered for so long never will.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Arrays between kernels, and two that the host can read and write.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// Positions for which there is room.
    pub(crate) positions: usize,
    /// Moves for which there is room.
    pub(crate) moves: usize,
    staging: wgpu::Buffer,
    request: wgpu::Buffer,
    answer: wgpu::Buffer,
    readback: wgpu::Buffer,
    /// Of each step.
    groups: Vec<wgpu::BindGroup>,
}

/// Bytes of the arrays.
struct Bytes {
    request: u64,
    stream: u64,
    between: u64,
    branch: u64,
    hidden: u64,
    answer: u64,
}

impl Bytes {
    fn new(network: &GpuNetwork, input: InputEncoding, positions: usize, moves: usize) -> Self {
        let sizes = network.plan.sizes;
        let filled = positions.next_multiple_of(sizes.group);
        // Behind a rank of zeros.
        let channels = |channels: usize| (8 + filled * 64 * channels) * network.storage.bytes();
        let bytes = |bytes: usize| bytes as u64;
        Self {
            request: bytes(4 * words(input, positions, moves)),
            stream: bytes(channels(sizes.stream)),
            between: bytes(channels(sizes.between)),
            branch: bytes(channels(sizes.branch)),
            hidden: bytes(4 * positions * sizes.hidden),
            answer: bytes(4 * (moves + positions * sizes.values)),
        }
    }

    fn largest(&self) -> u64 {
        let between = self.stream.max(self.between).max(self.branch);
        let rest = self.request.max(self.hidden).max(self.answer);
        between.max(rest)
    }
}

/// Moves for which buffers of this many positions have room.
fn room_for_moves(positions: usize) -> usize {
    (positions * MOVES).max(FEWEST_MOVES)
}

impl Buffers {
    /// Most positions whose arrays the device can bind, at most `wanted` and at least one.
    pub(crate) fn bindable(network: &GpuNetwork, input: InputEncoding, wanted: usize) -> usize {
        let mut positions = wanted.max(1);
        let most = network.gpu.adapter.binding_bytes;
        let largest =
            |positions| Bytes::new(network, input, positions, room_for_moves(positions)).largest();
        while positions > 1 && largest(positions) > most {
            positions = positions.div_ceil(2);
        }
        positions
    }

    /// Buffers for this many positions.
    ///
    /// # Errors
    ///
    /// [`GpuError`] if the device has too little memory, or fails.
    pub(crate) fn new(
        network: &GpuNetwork,
        input: InputEncoding,
        positions: usize,
    ) -> Result<Self, GpuError> {
        let moves = room_for_moves(positions);
        let bytes = Bytes::new(network, input, positions, moves);
        let gpu = &*network.gpu;
        gpu.attempt(|| {
            use wgpu::BufferUsages as Usage;
            let own = |size| gpu.buffer(size, Usage::STORAGE);
            let request = gpu.buffer(bytes.request, Usage::STORAGE | Usage::COPY_DST);
            let answer = gpu.buffer(bytes.answer, Usage::STORAGE | Usage::COPY_SRC);
            let arrays = Arrays {
                request: &request,
                stream: own(bytes.stream),
                between: own(bytes.between),
                branch: own(bytes.branch),
                hidden: own(bytes.hidden),
                answer: &answer,
            };
            let groups = network.plan.steps.iter();
            let groups = groups.map(|step| arrays.group(gpu, &step.pipeline, &step.bindings));
            let groups = groups.collect();
            Self {
                positions,
                moves,
                groups,
                staging: gpu.device.create_buffer(&wgpu::BufferDescriptor {
                    label: None,
                    size: bytes.request,
                    usage: Usage::MAP_WRITE | Usage::COPY_SRC,
                    mapped_at_creation: true,
                }),
                readback: gpu.buffer(bytes.answer, Usage::MAP_READ | Usage::COPY_DST),
                request,
                answer,
            }
        })
    }

    /// Sends a request of `[positions, moves]`, computes it, and reads the whole of `answer` back. Gives how many submissions
    /// the device had to compute then, with this one.
    ///
    /// # Errors
    ///
    /// What went wrong. The buffers may not be used again then.
    pub(crate) fn round_trip(
        &self,
        network: &GpuNetwork,
        request: &[u32],
        [positions, moves]: [usize; 2],
        answer: &mut [f32],
    ) -> Result<usize, String> {
        let gpu = &*network.gpu;
        let request: &[u8] = bytemuck::cast_slice(request);
        let sent = request.len() as u64;
        let mut view = self
            .staging
            .get_mapped_range_mut(..sent)
            .map_err(|error| error.to_string())?;
        view.copy_from_slice(request);
        drop(view);
        self.staging.unmap();
        let received = size_of_val(answer) as u64;
        let mut encoder = gpu
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(&self.staging, 0, &self.request, 0, sent);
        self.compute(network, &mut encoder, positions, moves);
        encoder.copy_buffer_to_buffer(&self.answer, 0, &self.readback, 0, received);
        let in_flight = gpu.in_flight();
        let submission = gpu.queue.submit([encoder.finish()]);
        #[cfg(debug_assertions)]
        lose_if_asked(gpu);
        self.wait(gpu, submission, received)?;
        let queued = in_flight.queued;
        drop(in_flight);
        let view = self
            .readback
            .get_mapped_range(..received)
            .map_err(|error| error.to_string())?;
        answer.copy_from_slice(bytemuck::cast_slice(&view));
        drop(view);
        self.readback.unmap();
        Ok(queued)
    }

    /// How long each step takes for a request of `[positions, moves]`, repeated `rounds` times in one submission. What the
    /// steps leave behind is no evaluation.
    ///
    /// # Errors
    ///
    /// What went wrong. The buffers may not be used again then.
    pub(crate) fn times(
        &self,
        network: &GpuNetwork,
        request: &[u32],
        [positions, moves]: [usize; 2],
        rounds: u32,
    ) -> Result<Vec<Duration>, String> {
        let gpu = &*network.gpu;
        let steps = network.plan.steps.iter().zip(&self.groups);
        gpu.queue
            .write_buffer(&self.request, 0, bytemuck::cast_slice(request));
        let time = |(step, group): (&Step, &wgpu::BindGroup)| {
            let mut encoder = gpu
                .device
                .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            let [x, y] = step.grid.workgroups(positions, moves);
            for _ in 0..rounds {
                pass.set_pipeline(&step.pipeline);
                pass.set_bind_group(0, group, &[]);
                pass.dispatch_workgroups(x, y, 1);
            }
            drop(pass);
            let commands = encoder.finish();
            let begun = Instant::now();
            let submission_index = Some(gpu.queue.submit([commands]));
            let timeout = Some(TIMEOUT);
            let wait = wgpu::PollType::Wait {
                submission_index,
                timeout,
            };
            gpu.device.poll(wait).map_err(|error| error.to_string())?;
            Ok(begun.elapsed() / rounds)
        };
        steps.map(time).collect()
    }

    fn compute(
        &self,
        network: &GpuNetwork,
        encoder: &mut wgpu::CommandEncoder,
        positions: usize,
        moves: usize,
    ) {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for (step, group) in network.plan.steps.iter().zip(&self.groups) {
            let [x, y] = step.grid.workgroups(positions, moves);
            if x > 0 {
                pass.set_pipeline(&step.pipeline);
                pass.set_bind_group(0, group, &[]);
                pass.dispatch_workgroups(x, y, 1);
            }
        }
    }

    /// Waits until the answer can be read and the next request be written.
    fn wait(
        &self,
        gpu: &Gpu,
        submission: wgpu::SubmissionIndex,
        received: u64,
    ) -> Result<(), String> {
        let (sender, mapped): (Sender<_>, Receiver<_>) = channel();
        for (buffer, mode, size) in [
            (&self.readback, wgpu::MapMode::Read, received),
            (&self.staging, wgpu::MapMode::Write, self.staging.size()),
        ] {
            let sender = sender.clone();
            buffer.map_async(mode, ..size, move |result| {
                // The send fails if the wait was given up.
                let _ = sender.send(result);
            });
        }
        let poll = wgpu::PollType::Wait {
            submission_index: Some(submission),
            timeout: Some(TIMEOUT),
        };
        let polled = gpu.device.poll(poll);
        if let Some(fault) = gpu.fault() {
            return Err(fault);
        }
        polled.map_err(|error| error.to_string())?;
        // Another thread's poll may be the one that says it.
        for _ in 0..2 {
            let result = mapped
                .recv_timeout(TIMEOUT)
                .map_err(|error| error.to_string())?;
            result.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Loses the device once for each time that a file appears whose path this variable of the environment has: for tests of
/// whole programs, which are not built for release.
#[cfg(debug_assertions)]
fn lose_if_asked(gpu: &Gpu) {
    let asked = std::env::var_os("ROOKERY_TEST_GPU_LOSS");
    if asked.is_some_and(|path| std::fs::remove_file(path).is_ok()) {
        gpu.device.destroy();
    }
}

/// What bindings stand for.
struct Arrays<'a> {
    request: &'a wgpu::Buffer,
    stream: wgpu::Buffer,
    between: wgpu::Buffer,
    branch: wgpu::Buffer,
    hidden: wgpu::Buffer,
    answer: &'a wgpu::Buffer,
}

impl Arrays<'_> {
    fn buffer<'b>(&'b self, binding: &'b Binding) -> &'b wgpu::Buffer {
        match binding {
            Binding::Weights(buffer) => buffer,
            Binding::Request => self.request,
            Binding::Stream => &self.stream,
            Binding::Between => &self.between,
            Binding::Branch => &self.branch,
            Binding::Hidden => &self.hidden,
            Binding::Answer => self.answer,
        }
    }

    fn group(
        &self,
        gpu: &Gpu,
        pipeline: &wgpu::ComputePipeline,
        bindings: &[Binding],
    ) -> wgpu::BindGroup {
        let entries = bindings.iter().enumerate();
        let entries = entries.map(|(number, binding)| wgpu::BindGroupEntry {
            binding: number as u32,
            resource: self.buffer(binding).as_entire_binding(),
        });
        let entries: Vec<_> = entries.collect();
        gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        })
    }
}
