"""One training step of Rookery's default network in PyTorch, timed. `scripts/bench-pytorch --help` says more.

The network is written here from docs/formats.md: input convolution, residual blocks with squeeze-excitation, Lc0's convolution
policy, WDL value. Policy cross-entropy over the legal moves, value cross-entropy, SGD with Nesterov momentum, weight decay,
gradient clipping and averaged weights, as the trainer has them by default.
"""

import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional as F

LEGAL = 32  # legal moves of a position, about the mean


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


def step_speed(options):
    blocks, filters = map(int, options.shape.split("x"))
    torch.manual_seed(1)
    network = Network(blocks, filters).to(memory_format=torch.channels_last)
    averages = [parameter.detach().clone() for parameter in network.parameters()]
    optimiser = torch.optim.SGD(network.parameters(), lr=1e-6, momentum=0.9, nesterov=True, weight_decay=1e-4)
    planes = (torch.rand(options.batch, 112, 8, 8) < 0.1).float().to(memory_format=torch.channels_last)
    cells = torch.randint(0, 73 * 64, (options.batch, LEGAL))
    policy = torch.softmax(torch.randn(options.batch, LEGAL), 1)
    value = torch.softmax(torch.randn(options.batch, 3), 1)

    def step():
        raw, wdl = network(planes)
        logits = raw.gather(1, cells)
        loss = -(policy * F.log_softmax(logits, 1)).sum() / options.batch
        loss = loss - (value * F.log_softmax(wdl, 1)).sum() / options.batch
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        optimiser.step()
        torch._foreach_lerp_(averages, [parameter.detach() for parameter in network.parameters()], 0.01)

    for _ in range(3):
        step()
    begin, steps = time.monotonic(), 0
    while time.monotonic() - begin < options.seconds:
        step()
        steps += 1
    return steps * options.batch / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--ours", required=True, help="what `rookery-trainer bench --json` has printed")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    result = json.loads(options.ours)
    result["pytorch"] = torch.__version__
    result["pytorch_samples_per_s"] = step_speed(options)
    result["step_over_pytorch"] = result["step_samples_per_s"] / result["pytorch_samples_per_s"]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
