"""One training step of Rookery's default network in PyTorch, timed. `scripts/bench-pytorch --help` says more.

The network is written here from docs/formats.md: input convolution, residual blocks with squeeze-excitation, Lc0's convolution
policy, WDL value. Policy cross-entropy over the legal moves, value cross-entropy, SGD with Nesterov momentum, weight decay,
gradient clipping and averaged weights, as the trainer has them by default.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

try:
    import torch
except ImportError:
    sys.exit("bench-pytorch: this Python has no torch; --python names one that has (see --help)")
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parent.parent.parent
LEGAL = 32  # legal moves of a position, about the mean
WARM_UP = 3  # steps, as of `rookery-trainer bench`
KINDS = {"f32": torch.float32, "bf16": torch.bfloat16}
LAYOUTS = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}
# What is compared: samples a second, and the ratios of two of them in one round.
SPEEDS = ["pipeline", "load", "step", "together", "pytorch"]
RATIOS = [("together", "step"), ("step", "pytorch"), ("together", "pytorch")]


class Convolution(nn.Module):
    def __init__(self, into, out, size):
        super().__init__()
        self.convolution = nn.Conv2d(into, out, size, padding=size // 2, bias=False)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x):
        return self.norm(self.convolution(x))


class Block(nn.Module):
    def __init__(self, filters):
        super().__init__()
        units = filters // (4 if filters <= 32 else 8)
        self.conv1 = Convolution(filters, filters, 3)
        self.conv2 = Convolution(filters, filters, 3)
        self.squeeze = nn.Linear(filters, units)
        self.excite = nn.Linear(units, 2 * filters)

    def forward(self, x):
        y = self.conv2(F.relu(self.conv1(x)))
        gamma, beta = self.excite(F.relu(self.squeeze(y.mean((2, 3))))).chunk(2, 1)
        return F.relu(torch.sigmoid(gamma)[:, :, None, None] * y + beta[:, :, None, None] + x)


class Network(nn.Module):
    def __init__(self, blocks, filters):
        super().__init__()
        self.body = nn.Sequential(Convolution(112, filters, 3), nn.ReLU(), *(Block(filters) for _ in range(blocks)))
        self.policy = nn.Sequential(Convolution(filters, filters, 3), nn.ReLU(), nn.Conv2d(filters, 80, 3, padding=1))
        self.value = nn.Sequential(
            Convolution(filters, 32, 1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 64, 128), nn.ReLU(), nn.Linear(128, 3)
        )

    def forward(self, x):
        x = self.body(x)
        return self.policy(x).flatten(1), self.value(x)


class Step:
    """A training step on a batch that lies on the device."""

    def __init__(self, options, layout):
        self.device, self.kind = torch.device(options.device), KINDS[options.precision]
        self.batch = options.batch
        torch.manual_seed(1)
        blocks, filters = map(int, options.shape.split("x"))
        layout = {"memory_format": LAYOUTS[layout]}
        self.network = Network(blocks, filters).to(self.device, **layout)
        self.parameters = list(self.network.parameters())
        self.averages = [parameter.detach().clone() for parameter in self.parameters]
        self.optimiser = torch.optim.SGD(
            self.parameters, lr=1e-6, momentum=0.9, nesterov=True, weight_decay=1e-4, fused=True
        )
        self.planes = (torch.rand(self.batch, 112, 8, 8) < 0.1).float().to(self.device, **layout)
        self.cells = torch.randint(0, 73 * 64, (self.batch, LEGAL)).to(self.device)
        self.policy = torch.softmax(torch.randn(self.batch, LEGAL), 1).to(self.device)
        self.value = torch.softmax(torch.randn(self.batch, 3), 1).to(self.device)

    def loss(self):
        raw, wdl = self.network(self.planes)
        logits = raw.gather(1, self.cells).float()
        loss = -(self.policy * F.log_softmax(logits, 1)).sum() / self.batch
        return loss - (self.value * F.log_softmax(wdl.float(), 1)).sum() / self.batch

    def take(self):
        with torch.autocast(self.device.type, self.kind, enabled=self.kind != torch.float32):
            loss = self.loss()
        self.optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, 10.0)
        self.optimiser.step()
        torch._foreach_lerp_(self.averages, [parameter.detach() for parameter in self.parameters], 0.01)

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def speed(self, seconds):
        """Positions a second."""
        for _ in range(WARM_UP):
            self.take()
        self.wait()
        begin, steps = time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            # A GPU is given some steps at a time; nobody asks for the losses of each, as the trainer does.
            for _ in range(1 if self.device.type == "cpu" else 10):
                self.take()
                steps += 1
            self.wait()
        return steps * self.batch / (time.monotonic() - begin)


def measure(options):
    """PyTorch at its best, in this process."""
    torch.set_num_threads(options.threads)
    torch.backends.cudnn.benchmark = True
    layout = max(LAYOUTS, key=lambda layout: Step(options, layout).speed(options.seconds / 4))
    print(json.dumps({"layout": layout, "samples_per_s": Step(options, layout).speed(options.seconds)}))


def run(command, environment):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"bench-pytorch: {' '.join(map(str, command))} failed; its message is above")
    return json.loads(done.stdout)


def ours(options, flags):
    """What the trainer measures, in the numbers that were asked for."""
    environment = dict(os.environ)
    if options.libtorch:
        paths = [str(options.libtorch.resolve()), environment.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = ":".join(filter(None, paths))
    answer = run([options.trainer, "bench", "--json", "--network", options.shape, *flags], environment)
    precision = flags[flags.index("--precision") + 1]
    if answer.get("precision") != precision or not answer["device"].startswith(options.device):
        sys.exit(f"bench-pytorch: asked for {precision} on {options.device}, the trainer measured "
                 f"{answer.get('precision')} on {answer['device']}; is it built of this checkout?")
    return answer


def summary(numbers):
    return {"median": statistics.median(numbers), "low": min(numbers), "high": max(numbers)}


def compare(options, precision, threads):
    """All rounds in these numbers with so many threads."""
    flags = ["--device", options.device, "--batch", options.batch, "--seconds", options.seconds,
             "--precision", precision, "--threads", threads]
    rounds, layouts = [], set()
    for _ in range(options.rounds):
        answer = ours(options, flags)
        speeds = {name: answer[f"{name}_samples_per_s"] for name in SPEEDS[:-1]}
        theirs = run([sys.executable, __file__, "--measure", "--shape", options.shape, *flags], None)
        layouts.add(theirs["layout"])
        rounds.append(speeds | {"pytorch": theirs["samples_per_s"]})
    result = {"precision": precision, "threads": threads, "encode_threads": answer["encode_threads"],
              "device": answer["device"], "pytorch_layouts": sorted(layouts)}
    for name in SPEEDS:
        result[f"{name}_samples_per_s"] = summary([speeds[name] for speeds in rounds])
    for a, b in RATIOS:
        result[f"{a}_over_{b}"] = summary([speeds[a] / speeds[b] for speeds in rounds])
    return result


def table(results):
    """The results in Markdown."""
    def cell(numbers, digits):
        median, low, high = (f"{numbers[part]:,.{digits}f}" for part in ("median", "low", "high"))
        return f"{median} ({low} to {high})"

    names = [*(f"{name}_samples_per_s" for name in SPEEDS), *(f"{a}_over_{b}" for a, b in RATIOS)]
    heads = ["pipeline alone, samples/s", "loading alone", "step alone", "together", "PyTorch",
             *(f"{a} over {b}" for a, b in RATIOS)]
    heads = [head.replace("pytorch", "PyTorch") for head in heads]
    rows = [["", *heads], ["---"] * (1 + len(heads))]
    for result in results:
        threads = f"{result['threads']} thread" + ("s" if result["threads"] > 1 else "")
        digits = [0] * len(SPEEDS) + [2] * len(RATIOS)
        cells = [cell(result[name], places) for name, places in zip(names, digits)]
        rows.append([f"{result['precision']}, {threads}", *cells])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def precisions(text):
    names = text.split(",")
    for name in names:
        if name not in KINDS:
            raise argparse.ArgumentTypeError(f"{name!r} is none that both train in; write f32, bf16 or f32,bf16")
    return names


def arguments():
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(prog="scripts/bench-pytorch")
    parser.add_argument("--shape", default="6x64")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", type=precisions, default=["f32", "bf16"])
    parser.add_argument("--threads", type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--trainer", type=Path, default=target / "release/rookery-trainer")
    parser.add_argument("--libtorch", type=Path)
    parser.add_argument("--json", action="store_true")
    # One measurement of PyTorch, in a process of its own.
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.threads is None:
        options.threads = sorted({1, cores}) if options.device == "cpu" else [cores]
    return options


def main():
    options = arguments()
    if options.measure:
        [options.precision], [options.threads] = options.precision, options.threads
        return measure(options)
    results = [compare(options, precision, threads)
               for precision in options.precision for threads in options.threads]
    if options.json:
        about = {"shape": options.shape, "batch": options.batch, "rounds": options.rounds,
                 "seconds": options.seconds, "pytorch": torch.__version__}
        print(json.dumps(about | {"results": results}))
    else:
        print(f"{options.shape} on {options.device}, batches of {options.batch}, {options.rounds} rounds of "
              f"{options.seconds:g} s, PyTorch {torch.__version__}:\n\n{table(results)}")


if __name__ == "__main__":
    main()
