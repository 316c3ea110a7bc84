//! Memory of the device: when it is taken, when it goes back, and what happens where it is short.

use super::*;
use crate::adapter::GpuAdapter;

fn reported(gpu: &Gpu) -> wgpu::AllocatorReport {
    let report = gpu.device.generate_allocator_report();
    report.expect("the driver's allocator reports")
}

/// What a pause promises: other programs get the memory that games took.
#[test]
fn memory_of_dropped_networks_goes_back_to_the_system() {
    let gpu = open(Checks::None);
    // What the driver has given, not only what is in use of it.
    let used = || reported(&gpu).total_reserved_bytes;
    // A block that the library takes with the device, and keeps.
    let (before, allocated) = (used(), gpu.allocated_bytes());
    let backend =
        GpuBackend::with_gpu(Arc::clone(&gpu), Precision::F32, KernelTuner::default()).unwrap();
    let weights = Weights::random(NetworkSpec::resnet(4, 64), 1).unwrap();
    let mut evaluator = backend.load(&weights).unwrap().evaluator();
    let batch = batch_for(weights.spec(), 300, 1);
    let mut answer = Evaluations::default();
    evaluator.evaluate(&batch, &mut answer).unwrap();
    let weights_of_tower = 8 * 64 * 64 * 9 * 4;
    assert!(used() > before + weights_of_tower, "{} of {before}", used());

    drop(evaluator);
    backend.release_memory();
    println!("{before} bytes are kept, {allocated} of them in use");
    assert!(gpu.allocated_bytes() <= allocated);
    // Cards have several kinds of memory, of which the library keeps a block each.
    if gpu.adapter.is_software {
        assert_eq!(used(), before);
    }
}

#[test]
fn batches_are_halved_until_there_is_memory_for_them() {
    let gpu = open(Checks::None);
    let weights = busy_weights(&small_specs().remove(0), 2);
    let batch = batch_for(weights.spec(), 300, 5);
    let loaded = GpuNetwork::new(Arc::clone(&gpu), &weights, Storage::F32, LAYERED).unwrap();
    let loaded = Arc::new(loaded);
    let unbounded = evaluate(&mut GpuEvaluator::new(Arc::clone(&loaded)), &batch);
    let mut small = GpuEvaluator::new(Arc::clone(&loaded));
    evaluate(&mut small, &batch_for(weights.spec(), 64, 5));
    let enough = reported(&gpu).total_allocated_bytes;
    drop(small);

    gpu.memory_limit.store(enough, Relaxed);
    let mut evaluator = GpuEvaluator::new(Arc::clone(&loaded));
    assert_eq!(evaluate(&mut evaluator, &batch), unbounded);
    assert_eq!(loaded.bound.positions(std::time::Instant::now()), 64);

    gpu.memory_limit.store(0, Relaxed);
    let mut another = GpuEvaluator::new(loaded);
    let error = another.evaluate(&batch, &mut Evaluations::default());
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("too little free memory for a single position"),
        "{error}"
    );
    let refused = GpuNetwork::new(gpu, &weights, Storage::F32, LAYERED);
    assert!(matches!(refused, Err(BackendError::OutOfMemory(_))));
    // Whoever has memory keeps it.
    assert_eq!(evaluate(&mut evaluator, &batch), unbounded);
}

#[test]
fn no_memory_is_taken_after_the_first_batch() {
    let gpu = open(Checks::None);
    let weights = busy_weights(&small_specs().remove(0), 2);
    let mut evaluator = network(Arc::clone(&gpu), &weights, Storage::F32, FUSED);
    let batch = batch_for(weights.spec(), 64, 5);
    let first = evaluate(&mut evaluator, &batch);
    let taken = |report: wgpu::AllocatorReport| {
        (
            report.allocations.len(),
            report.total_allocated_bytes,
            report.total_reserved_bytes,
        )
    };
    let before = taken(reported(&gpu));
    // Whatever asks for memory now has an error.
    gpu.memory_limit.store(0, Relaxed);
    for positions in 0..100 {
        let part = batch_for(weights.spec(), 1 + positions % 64, 5);
        evaluate(&mut evaluator, &part);
        assert_eq!(taken(reported(&gpu)), before);
    }
    assert_eq!(evaluate(&mut evaluator, &batch), first);
}

#[test]
fn a_gpus_own_memory_is_known_where_vulkan_tells() {
    let GpuAdapter {
        interface,
        memory_bytes,
        ..
    } = &gpu().adapter;
    let is_known = memory_bytes.is_some_and(|bytes| bytes > 0);
    assert_eq!(is_known, *interface == "vulkan", "{memory_bytes:?}");
}
