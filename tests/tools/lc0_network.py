"""An Lc0 network file computed with numpy: nothing but its protobuf and docs/formats.md.

Shares nothing with the Rust code or with Lc0. Residual networks only.
"""

import gzip
import struct

import numpy as np

# Lc0's field numbers. A `Layer` is read into an array; a `ConvBlock` into a dictionary of arrays.
CONV = {1: "weights", 2: "biases", 3: "means", 4: "variances", 5: "gammas", 6: "betas"}
SE = {1: "w1", 2: "b1", 3: "w2", 4: "b2"}
LAYERS = {4: "ip_pol_w", 5: "ip_pol_b", 7: "ip1_val_w", 8: "ip1_val_b", 9: "ip2_val_w", 10: "ip2_val_b"}
BLOCKS = {1: "input", 3: "policy", 6: "value", 11: "policy1"}
EPSILON = 1e-5


def varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def fields(data):
    """Each field of a protobuf message: its number and what it holds."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 5:
            value, at = data[at:at + 4], at + 4
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, value


def layer(data):
    found = {1: bytes(4), 2: bytes(4), 4: 1, **dict(fields(data))}
    if found[4] == 4:
        return np.frombuffer(found[3], "<f4").astype(np.float64)
    if found[4] == 3:
        bits = np.frombuffer(found[3], "<u2").astype("<u4") << 16
        return bits.view("<f4").astype(np.float64)
    if found[4] == 2:
        return np.frombuffer(found[3], "<f2").astype(np.float64)
    low, high = (struct.unpack("<f", found[n])[0] for n in (1, 2))
    return low + (high - low) * (np.frombuffer(found[3], "<u2") / 65535.0)


def named_layers(data, names):
    return {names[number]: layer(value) for number, value in fields(data) if number in names}


def mish(x):
    return x * np.tanh(np.logaddexp(0, x))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def convolve(x, weight, kernel):
    """`x` is [positions, channels, 8, 8]; the board's size is kept."""
    outputs = weight.size // (x.shape[1] * kernel * kernel)
    weight = weight.reshape(outputs, x.shape[1], kernel, kernel)
    edge = kernel // 2
    padded = np.pad(x, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
    total = np.zeros((x.shape[0], outputs, 8, 8))
    for rank in range(kernel):
        for file in range(kernel):
            part = padded[:, :, rank:rank + 8, file:file + 8]
            total += np.einsum("nchw,oc->nohw", part, weight[:, :, rank, file], optimize=True)
    return total


def conv_block(x, block, kernel):
    y = convolve(x, block["weights"], kernel)
    column = lambda name, default: block.get(name, np.full(y.shape[1], default)).reshape(1, -1, 1, 1)
    y = y + column("biases", 0.0)
    if "means" not in block:
        return y
    y = (y - column("means", 0.0)) / np.sqrt(column("variances", 1.0) + EPSILON)
    return y * column("gammas", 1.0) + column("betas", 0.0)


def dense(x, weight, bias):
    return x @ weight.reshape(bias.size, -1).T + bias


class Lc0Network:
    """A network file; call it with planes [positions, 112, 8, 8], rule50 undivided."""

    def __init__(self, path):
        net = dict(fields(gzip.open(path).read()))
        assert net[1] == bytes.fromhex("c0010000"), "not an Lc0 network"
        network_format = dict(fields(dict(fields(net.get(4, b""))).get(2, b"")))
        self.convolution_policy = network_format.get(4, 1) == 2
        self.wdl = network_format.get(5, 1) == 2
        self.activate = mish if network_format.get(7, 0) == 1 else lambda x: np.maximum(x, 0)
        self.tower, self.parts = [], named_layers(net[10], LAYERS)
        for number, value in fields(net[10]):
            if number in BLOCKS:
                self.parts[BLOCKS[number]] = named_layers(value, CONV)
            elif number == 2:
                block = dict(fields(value))
                se = named_layers(block[3], SE) if 3 in block else None
                self.tower.append((named_layers(block[1], CONV), named_layers(block[2], CONV), se))

    def __call__(self, planes, cells):
        """Logits [positions, 1858] and win, draw, loss [positions, 3] or value [positions, 1].

        `cells` are the places of the 1858 moves among the convolution head's 80 planes.
        """
        x = self.activate(conv_block(planes, self.parts["input"], 3))
        for conv1, conv2, se in self.tower:
            y = conv_block(self.activate(conv_block(x, conv1, 3)), conv2, 3)
            x = self.activate((self.excite(y, se) if se else y) + x)
        return self.policy(x, cells), self.value(x)

    def excite(self, y, se):
        units = self.activate(dense(y.mean(axis=(2, 3)), se["w1"], se["b1"]))
        gamma, beta = np.split(dense(units, se["w2"], se["b2"])[:, :, None, None], 2, axis=1)
        return y / (1 + np.exp(-gamma)) + beta

    def policy(self, x, cells):
        if self.convolution_policy:
            x = self.activate(conv_block(x, self.parts["policy1"], 3))
            return conv_block(x, self.parts["policy"], 3).reshape(len(x), -1)[:, cells]
        x = self.activate(conv_block(x, self.parts["policy"], 1)).reshape(len(x), -1)
        return dense(x, self.parts["ip_pol_w"], self.parts["ip_pol_b"])

    def value(self, x):
        x = self.activate(conv_block(x, self.parts["value"], 1)).reshape(len(x), -1)
        x = self.activate(dense(x, self.parts["ip1_val_w"], self.parts["ip1_val_b"]))
        x = dense(x, self.parts["ip2_val_w"], self.parts["ip2_val_b"])
        return softmax(x) if self.wdl else np.tanh(x)
