//! From packed positions to planes `[positions, planes, 8, 8]` in channels-last order.
//!
//! On a processor the planes are written here, bit by bit, as few bits are set; a GPU gets the
//! packed words and unpacks them itself. Counts are divided by the encoding's scales.
//!
//! A GPU gets a batch in one piece, as each copy takes its time, however small:
//!
//! ```text
//! words, 64 bits for each plane | counts, two of 32 bits in each 64 | cells of the legal moves
//! ```

use std::iter::repeat;
use std::marker::PhantomData;

use rookery_backend_cpu::Bf16;
use rookery_common::encoding::InputEncoding;
use rookery_engine::Batch;
use tch::{Device, Kind, Tensor};

use crate::error::TorchResult;
use crate::host::TorchElement;
use crate::tensors::{own_copy, upload};

/// Unpacks batches for one device, reusing its buffers.
#[derive(Debug)]
pub struct Unpacker {
    input: InputEncoding,
    device: Device,
    kind: Kind,
    singles: Vec<f32>,
    halves: Vec<Bf16>,
    upload: Vec<i64>,
}

impl Unpacker {
    /// An unpacker of this encoding's planes in numbers of this kind.
    pub fn new(input: InputEncoding, device: Device, kind: Kind) -> Self {
        Self {
            input,
            device,
            kind,
            singles: Vec::new(),
            halves: Vec::new(),
            upload: Vec::new(),
        }
    }

    /// In what numbers the planes are.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The planes of a batch, on the device.
    pub fn unpack(&mut self, batch: &Batch) -> TorchResult<Planes<'_>> {
        match self.device {
            Device::Cuda(_) => self.on_device(batch, batch.len(), &[]),
            _ => self.written(batch),
        }
    }

    /// As [`unpack`](Self::unpack), for an evaluation: a GPU gets numbers of the policy's cells along, and a batch of
    /// [usual size](usual_size), whose last positions may be empty.
    pub(crate) fn unpack_with(&mut self, batch: &Batch, cells: &[i64]) -> TorchResult<Planes<'_>> {
        match self.device {
            Device::Cuda(_) => self.on_device(batch, usual_size(batch.len()), cells),
            _ => self.written(batch),
        }
    }

    fn written(&mut self, batch: &Batch) -> TorchResult<Planes<'_>> {
        let tensor = match self.device {
            Device::Cpu if self.kind == Kind::BFloat16 => {
                on_host(self.input, batch, &mut self.halves)?
            }
            _ => on_host(self.input, batch, &mut self.singles)?
                .f_to_kind(self.kind)?
                .f_to_device(self.device)?,
        };
        Ok(Planes {
            tensor,
            cells: None,
            buffer: PhantomData,
        })
    }

    /// The batch on the device, padded with empty positions to `positions`.
    fn on_device(
        &mut self,
        batch: &Batch,
        positions: usize,
        cells: &[i64],
    ) -> TorchResult<Planes<'_>> {
        let scales = self.input.scalar_scales();
        let words = positions * self.input.binary_planes();
        let numbers = positions * scales.len();
        let counts = batch.scalars().iter().zip(scales.iter().cycle());
        let counts = counts.map(|(count, scale)| count / scale);
        self.upload.clear();
        let binary = batch.binary().iter().map(|word| word.cast_signed());
        self.upload.extend(binary);
        self.upload.resize(words, 0);
        push_pairs(&mut self.upload, counts.chain(repeat(0.0)).take(numbers));
        let first_cell = self.upload.len();
        self.upload.extend_from_slice(cells);

        let all = over(&self.upload, &[self.upload.len() as i64], Kind::Int64)?;
        let all = upload(&all, self.device)?;
        let part = |from: usize, to: usize| all.f_narrow(0, from as i64, (to - from) as i64);
        let bits = self.bits(&part(0, words)?, positions)?;
        let shape = [positions as i64, scales.len() as i64, 1];
        let counts = part(words, first_cell)?
            .f_view_dtype(Kind::Float)?
            .f_narrow(0, 0, numbers as i64)?
            .f_to_kind(self.kind)?
            .f_reshape(shape)?
            .f_expand([-1, -1, 64], false)?;
        let by_square = Tensor::f_cat(&[bits, counts], 1)?
            .f_permute([0, 2, 1])?
            .f_contiguous()?;
        let boards = by_square.f_reshape([positions as i64, 8, 8, -1])?;
        Ok(Planes {
            tensor: boards.f_permute([0, 3, 1, 2])?,
            cells: Some(part(first_cell, self.upload.len())?),
            buffer: PhantomData,
        })
    }

    /// `[positions, planes, 64]` of packed planes, in the numbers of the network. A word's bytes are its ranks;
    /// in bytes, what comes in between takes an eighth of the memory.
    fn bits(&self, words: &Tensor, positions: usize) -> TorchResult<Tensor> {
        let ranks = words
            .f_view_dtype(Kind::Uint8)?
            .f_reshape([positions as i64, -1, 8, 1])?;
        let files = Tensor::f_arange(8, (Kind::Uint8, self.device))?;
        let bits = ranks.f_bitwise_right_shift(&files)?.f_bitwise_and(1)?;
        bits.f_to_kind(self.kind)?
            .f_reshape([positions as i64, -1, 64])
    }
}

/// Rounds the size of a batch up to one of a few usual sizes: at most 1/32 larger, or 7 positions for small batches.
///
/// cuDNN plans every convolution anew for each size of a batch and for each thread. That can take longer than the
/// computation, and libtorch keeps each plan, of some 200 KB. In play, each batch differs in size from the one before.
fn usual_size(positions: usize) -> usize {
    let step = (positions.next_power_of_two() / 64).max(8);
    positions.next_multiple_of(step)
}

/// Adds numbers of 32 bits, two in each of 64, the first in its lower half.
fn push_pairs(words: &mut Vec<i64>, numbers: impl Iterator<Item = f32>) {
    let mut bits = numbers.map(|number| u64::from(number.to_bits()));
    while let Some(low) = bits.next() {
        let high = bits.next().unwrap_or_default();
        words.push(((high << 32) | low).cast_signed());
    }
}

/// The planes of a batch, which may lie in the unpacker's buffer, and perhaps of empty positions after it.
pub struct Planes<'a> {
    tensor: Tensor,
    cells: Option<Tensor>,
    buffer: PhantomData<&'a mut Unpacker>,
}

impl Planes<'_> {
    /// The planes, for a computation that keeps nothing of them.
    pub const fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// The numbers of cells that were taken along, where a GPU computes.
    pub const fn cells(&self) -> Option<&Tensor> {
        self.cells.as_ref()
    }

    /// A copy of the planes, for a computation that keeps them: gradients do.
    pub fn to_tensor(&self) -> TorchResult<Tensor> {
        own_copy(&self.tensor)
    }
}

/// The planes of a batch, written into `buffer`.
fn on_host<N: TorchElement>(
    input: InputEncoding,
    batch: &Batch,
    buffer: &mut Vec<N>,
) -> TorchResult<Tensor> {
    let planes = input.planes();
    buffer.clear();
    buffer.resize(batch.len() * 64 * planes, N::ZERO);
    for (index, board) in buffer.chunks_exact_mut(64 * planes).enumerate() {
        write_board(
            input,
            batch.binary_of(index),
            batch.scalars_of(index),
            board,
        );
    }
    let shape = [batch.len() as i64, 8, 8, planes as i64];
    over(buffer, &shape, N::KIND)?.f_permute([0, 3, 1, 2])
}

/// A tensor over a buffer, which it does not own: a copy would cost a twentieth of the evaluation of
/// a small network.
#[expect(
    unsafe_code,
    reason = "the tensor borrows the buffer, as `Planes` records"
)]
fn over<T>(buffer: &[T], shape: &[i64], kind: Kind) -> TorchResult<Tensor> {
    let data = buffer.as_ptr().cast();
    // SAFETY: the buffer holds as many numbers of this kind as the shape says, and `Planes` keeps it from
    // being changed or freed while the tensor is in use.
    unsafe { Tensor::f_from_blob(data, shape, &[], kind, Device::Cpu) }
}

/// Writes one position's planes, square by square, into zeros.
fn write_board<N: TorchElement>(
    input: InputEncoding,
    binary: &[u64],
    scalars: &[f32],
    board: &mut [N],
) {
    let planes = input.planes();
    for (plane, word) in binary.iter().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            board[rest.trailing_zeros() as usize * planes + plane] = N::ONE;
            rest &= rest - 1;
        }
    }
    let scales = input.scalar_scales();
    for (index, (count, scale)) in scalars.iter().zip(scales).enumerate() {
        if *count != 0.0 {
            let cells = board.iter_mut().skip(binary.len() + index).step_by(planes);
            cells.for_each(|cell| *cell = N::narrow(count / scale));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rookery_common::encoding::PolicyEncoding;
    use rookery_engine::dummy::random_batch;

    use super::*;

    /// Both ways give the same planes, and a cell is where the encoding says it is.
    #[test]
    fn host_and_device_unpack_alike() {
        for input in InputEncoding::ALL {
            let batch = random_batch(input, PolicyEncoding::Lc01858, 9, 5);
            let mut unpacker = Unpacker::new(input, Device::Cpu, Kind::Float);
            let host = unpacker.unpack(&batch).unwrap().to_tensor().unwrap();
            let cells: Vec<i64> = (0..31).map(|cell| cell * cell).collect();
            let device = unpacker.on_device(&batch, 12, &cells).unwrap();
            assert_eq!(device.cells(), Some(&Tensor::from_slice(&cells)));
            let device = device.to_tensor().unwrap();
            assert_eq!(device.size(), [12, input.planes() as i64, 8, 8]);
            let empty = device.narrow(0, 9, 3);
            assert_eq!(empty.abs().max().double_value(&[]), 0.0);
            let device = device.narrow(0, 0, 9);
            assert_eq!(host.size(), [9, input.planes() as i64, 8, 8]);
            assert_eq!(host, device);
            assert_eq!(
                host.stride(),
                device.stride(),
                "in the order of memory, too"
            );
            let (rank, file) = (1, 4);
            let mut half = Unpacker::new(input, Device::Cpu, Kind::BFloat16);
            let half = half.unpack(&batch).unwrap().to_tensor().unwrap();
            assert_eq!(half, device.to_kind(Kind::BFloat16));
            let expected = batch.binary_of(3)[0] >> (8 * rank + file) & 1;
            assert_eq!(host.double_value(&[3, 0, rank, file]), expected as f64);
        }
    }

    #[test]
    fn batches_in_play_have_few_sizes() {
        let mut sizes = HashSet::new();
        for positions in 1..=4096 {
            let size = usual_size(positions);
            let more = size - positions;
            assert!(more <= (positions / 32).max(7), "{size} for {positions}");
            sizes.insert(size);
        }
        assert!(sizes.len() <= 160, "{}", sizes.len());
        for full in [64, 512, 4096] {
            assert_eq!(usual_size(full), full);
        }
    }
}
