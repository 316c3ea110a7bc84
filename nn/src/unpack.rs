//! From packed positions to planes `[positions, planes, 8, 8]` in channels-last order.
//!
//! On a processor the planes are written here, bit by bit, as few bits are set; a GPU gets the
//! packed words and unpacks them itself. Counts are divided by the encoding's scales.

use std::marker::PhantomData;

use rookery_common::encoding::InputEncoding;
use rookery_engine::Batch;
use tch::{Device, Kind, Tensor};

use crate::error::TorchResult;
use crate::host::{Brain, Number};
use crate::tensors::own_copy;

/// Unpacks batches for one device, reusing its buffers.
#[derive(Debug)]
pub(crate) struct Unpacker {
    input: InputEncoding,
    device: Device,
    kind: Kind,
    singles: Vec<f32>,
    brains: Vec<Brain>,
    words: Vec<i64>,
    scaled: Vec<f32>,
}

impl Unpacker {
    pub(crate) fn new(input: InputEncoding, device: Device, kind: Kind) -> Self {
        Self {
            input,
            device,
            kind,
            singles: Vec::new(),
            brains: Vec::new(),
            words: Vec::new(),
            scaled: Vec::new(),
        }
    }

    /// The planes of a batch, on the device.
    pub(crate) fn unpack(&mut self, batch: &Batch) -> TorchResult<Planes<'_>> {
        let tensor = match self.device {
            Device::Cuda(_) => self.on_device(batch)?,
            Device::Cpu if self.kind == Kind::BFloat16 => {
                on_host(self.input, batch, &mut self.brains)?
            }
            _ => on_host(self.input, batch, &mut self.singles)?
                .f_to_kind(self.kind)?
                .f_to_device(self.device)?,
        };
        Ok(Planes {
            tensor,
            buffer: PhantomData,
        })
    }

    fn on_device(&mut self, batch: &Batch) -> TorchResult<Tensor> {
        let (positions, scales) = (batch.len() as i64, self.input.scalar_scales());
        self.words.clear();
        self.words
            .extend(batch.binary().iter().map(|word| word.cast_signed()));
        self.scaled.clear();
        let counts = batch.scalars().iter().zip(scales.iter().cycle());
        self.scaled
            .extend(counts.map(|(count, scale)| count / scale));

        let words = Tensor::f_from_slice(&self.words)?.f_to_device(self.device)?;
        let words = words.f_reshape([positions, -1, 1])?;
        let squares = Tensor::f_arange(64, (Kind::Int64, self.device))?;
        let bits = words.f_bitwise_right_shift(&squares)?.f_bitwise_and(1)?;
        let scalars = Tensor::f_from_slice(&self.scaled)?.f_to_device(self.device)?;
        let scalars = scalars
            .f_reshape([positions, -1, 1])?
            .f_expand([-1, -1, 64], false)?;
        let both = [bits.f_to_kind(self.kind)?, scalars.f_to_kind(self.kind)?];
        let by_square = Tensor::f_cat(&both, 1)?
            .f_permute([0, 2, 1])?
            .f_contiguous()?;
        by_square
            .f_reshape([positions, 8, 8, -1])?
            .f_permute([0, 3, 1, 2])
    }
}

/// The planes of a batch, which may lie in the unpacker's buffer.
pub(crate) struct Planes<'a> {
    tensor: Tensor,
    buffer: PhantomData<&'a mut Unpacker>,
}

impl Planes<'_> {
    /// The planes, for a computation that keeps nothing of them.
    pub(crate) const fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// A copy of the planes, for a computation that keeps them: gradients do.
    pub(crate) fn to_tensor(&self) -> TorchResult<Tensor> {
        own_copy(&self.tensor)
    }
}

/// A tensor over `buffer`, which it does not own: a copy would cost a twentieth of the evaluation of
/// a small network.
#[expect(
    unsafe_code,
    reason = "the tensor borrows the buffer, as `Planes` records"
)]
fn on_host<N: Number>(
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
    let data = buffer.as_ptr().cast();
    // SAFETY: the buffer holds as many numbers as the shape says, and `Planes` keeps it from being
    // changed or freed while the tensor is in use.
    let tensor = unsafe { Tensor::f_from_blob(data, &shape, &[], N::KIND, Device::Cpu)? };
    tensor.f_permute([0, 3, 1, 2])
}

/// Writes one position's planes, square by square, into zeros.
fn write_board<N: Number>(input: InputEncoding, binary: &[u64], scalars: &[f32], board: &mut [N]) {
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
    use rookery_common::encoding::PolicyEncoding;

    use super::*;
    use crate::testing::random_batch;

    /// Both ways give the same planes, and a cell is where the encoding says it is.
    #[test]
    fn host_and_device_unpack_alike() {
        for input in InputEncoding::ALL {
            let batch = random_batch(input, PolicyEncoding::Lc01858, 9, 5);
            let mut unpacker = Unpacker::new(input, Device::Cpu, Kind::Float);
            let host = unpacker.unpack(&batch).unwrap().to_tensor().unwrap();
            let device = unpacker.on_device(&batch).unwrap();
            assert_eq!(host.size(), [9, input.planes() as i64, 8, 8]);
            assert_eq!(host, device);
            let (rank, file) = (1, 4);
            let mut half = Unpacker::new(input, Device::Cpu, Kind::BFloat16);
            let half = half.unpack(&batch).unwrap().to_tensor().unwrap();
            assert_eq!(half, device.to_kind(Kind::BFloat16));
            let expected = batch.binary_of(3)[0] >> (8 * rank + file) & 1;
            assert_eq!(host.double_value(&[3, 0, rank, file]), expected as f64);
        }
    }
}
