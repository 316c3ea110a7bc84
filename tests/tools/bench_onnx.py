"""Evaluations a second here and in ONNX Runtime. `scripts/bench-onnx --help` says more."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

from local_run import check_built  # noqa: E402

PLANES = 112


def program(options, name):
    return options.bin / f"rookery-{name}"


def run(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench-onnx: {Path(words[0]).name} {words[1]} failed; its message is above")
    return done.stdout


def exported(options, folder):
    """The network as a .onnx, and as what `bench` reads."""
    network = Path(options.network)
    if not network.is_file():
        network = folder / "network.safetensors"
        run(program(options, "trainer"), "init", options.network, "--output", network)
    elif network.name.endswith(".pb.gz"):
        network = folder / "network.safetensors"
        run(program(options, "trainer"), "import", options.network, "--output", network)
    onnx = folder / "network.onnx"
    run(program(options, "trainer"), "export", network, "--format", "onnx", "--output", onnx)
    return onnx, network


def ours(options, network, precision):
    words = [program(options, "worker"), "bench", "--device", "cpu", "--network", network, "--precision", precision,
             "--threads", options.threads, "--batches", ",".join(map(str, options.batches)),
             "--seconds", options.seconds, "--json"]
    return max(row["evals_per_s"] for row in json.loads(run(*words))["bare"])


class Theirs:
    """ONNX Runtime as it is fastest by default: all optimisations, `threads` threads in every operator."""

    def __init__(self, onnx, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = onnxruntime.InferenceSession(str(onnx), options, providers=["CPUExecutionProvider"])
        self.input = self.session.get_inputs()[0].name

    def speed(self, batch, seconds):
        planes = (numpy.random.default_rng(1).random((batch, PLANES, 8, 8)) < 0.1).astype(numpy.float32)
        for _ in range(3):
            self.session.run(None, {self.input: planes})
        begin, batches = time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            self.session.run(None, {self.input: planes})
            batches += 1
        return batches * batch / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench-onnx")
    parser.add_argument("--network", default="6x64")
    parser.add_argument("--batches", type=lambda text: [int(size) for size in text.split(",")], default=[64, 128, 256])
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--bin", type=Path, default=Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release")
    options = parser.parse_args()
    check_built(options.bin, "worker", "trainer")
    measured = {"rookery_f32": [], "rookery_auto": [], "onnxruntime_f32": []}
    with tempfile.TemporaryDirectory() as folder:
        onnx, network = exported(options, Path(folder))
        theirs = Theirs(onnx, options.threads)
        for _ in range(options.rounds):
            measured["rookery_f32"].append(ours(options, network, "f32"))
            measured["rookery_auto"].append(ours(options, network, "auto"))
            measured["onnxruntime_f32"].append(max(theirs.speed(batch, options.seconds) for batch in options.batches))
    medians = {name: statistics.median(values) for name, values in measured.items()}
    print(json.dumps({
        "network": str(options.network), "threads": options.threads, "batches": options.batches,
        "onnxruntime": onnxruntime.__version__, "evaluations_per_s": medians, "rounds": measured,
        "f32_over_onnxruntime": medians["rookery_f32"] / medians["onnxruntime_f32"],
        "auto_over_onnxruntime": medians["rookery_auto"] / medians["onnxruntime_f32"],
    }))


if __name__ == "__main__":
    main()
