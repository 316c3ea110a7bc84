"""An Lc0 network file computed with numpy: nothing but its protobuf and docs/formats.md.

Shares nothing with the Rust code or with Lc0. Residual networks only. In 64 bits, or, with `half`, as a GPU
computes in f16.
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


def exact(x):
    return x


def half(x):
    """Rounds to f16, but holds the numbers in 32 bits, in which products are then summed. What f16 has not the range for
    becomes infinite."""
    with np.errstate(over="ignore"):
        return np.float16(x).astype(np.float32)


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
    total = np.zeros((x.shape[0], outputs, 8, 8), x.dtype)
    for rank in range(kernel):
        for file in range(kernel):
            part = padded[:, :, rank:rank + 8, file:file + 8]
            total += np.einsum("nchw,oc->nohw", part, weight[:, :, rank, file], optimize=True)
    return total


def conv_block(x, block, kernel, rounded):
    """With the normalisation folded into weight and bias, and these, the sums and the result `rounded`."""
    weight = block["weights"].reshape(-1, x.shape[1] * kernel * kernel)
    column = lambda name, default: block.get(name, np.full(len(weight), default))
    scale, shift = np.ones(len(weight)), column("biases", 0.0)
    if "means" in block:
        scale = column("gammas", 1.0) / np.sqrt(column("variances", 1.0) + EPSILON)
        shift = (shift - column("means", 0.0)) * scale + column("betas", 0.0)
    y = rounded(convolve(x, rounded(weight * scale[:, None]), kernel))
    return rounded(y + rounded(shift).reshape(1, -1, 1, 1))


def dense(x, weight, bias, rounded=exact):
    return rounded(x @ rounded(weight.reshape(bias.size, -1).T) + rounded(bias))


class Lc0Network:
    """A network file; call it with planes [positions, 112, 8, 8], rule50 undivided.

    `rounded` is `exact` or `half`. What Rookery keeps in 32 bits on a GPU, the value's last layer, stays exact.
    """

    def __init__(self, path, rounded=exact):
        self.rounded = rounded
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
        x = self.conv(self.rounded(planes), "input", 3)
        for conv1, conv2, se in self.tower:
            y = self.activated(conv_block(x, conv1, 3, self.rounded))
            y = conv_block(y, conv2, 3, self.rounded)
            x = self.activated(self.rounded((self.excite(y, se) if se else y) + x))
        return self.policy(x, cells), self.value(x)

    def activated(self, x):
        return self.rounded(self.activate(x))

    def conv(self, x, part, kernel):
        return self.activated(conv_block(x, self.parts[part], kernel, self.rounded))

    def dense(self, x, part, rounded):
        return dense(x, self.parts[f"{part}_w"], self.parts[f"{part}_b"], rounded)

    def excite(self, y, se):
        mean = self.rounded(y.mean(axis=(2, 3)))
        units = self.activated(dense(mean, se["w1"], se["b1"], self.rounded))
        both = dense(units, se["w2"], se["b2"], self.rounded)[:, :, None, None]
        gamma, beta = np.split(both, 2, axis=1)
        return self.rounded(self.rounded(y * self.rounded(1 / (1 + np.exp(-gamma)))) + beta)

    def policy(self, x, cells):
        if self.convolution_policy:
            x = conv_block(self.conv(x, "policy1", 3), self.parts["policy"], 3, self.rounded)
            return x.reshape(len(x), -1)[:, cells]
        return self.dense(self.conv(x, "policy", 1).reshape(len(x), -1), "ip_pol", self.rounded)

    def value(self, x):
        x = self.conv(x, "value", 1).reshape(len(x), -1)
        x = self.dense(self.activated(self.dense(x, "ip1_val", self.rounded)), "ip2_val", exact)
        return softmax(x) if self.wdl else np.tanh(x)
