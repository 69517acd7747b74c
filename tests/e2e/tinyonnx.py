"""Just enough of the ONNX format to write small models: protocol buffers by hand, so that no package is needed."""

import numpy as np

TYPES = {
    np.dtype("float32"): 1, np.dtype("uint8"): 2, np.dtype("int8"): 3, np.dtype("int32"): 6, np.dtype("int64"): 7,
    np.dtype("bool"): 9, np.dtype("float16"): 10, np.dtype("float64"): 11,
}  # fmt: skip


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def chunk(field, content):
    if isinstance(content, str):
        content = content.encode()
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(name, array):
    array = np.asarray(array)
    dims = b"".join(number(1, size) for size in array.shape)
    return dims + number(2, TYPES[array.dtype]) + chunk(8, name) + chunk(9, array.tobytes())


def value(name, dtype, dims):
    shape = b"".join(chunk(1, chunk(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return chunk(1, name) + chunk(2, chunk(1, number(1, TYPES[np.dtype(dtype)]) + chunk(2, shape)))


def attribute(name, content):
    head = chunk(1, name)
    if isinstance(content, float):
        return head + varint(2 << 3 | 5) + np.float32(content).tobytes() + number(20, 1)
    if isinstance(content, int):
        return head + number(3, content) + number(20, 2)
    if isinstance(content, str):
        return head + chunk(4, content) + number(20, 3)
    if isinstance(content, bytes):  # a graph
        return head + chunk(6, content) + number(20, 5)
    return head + b"".join(number(8, item) for item in content) + number(20, 7)


def node(kind, inputs, outputs, name="", domain="", **attributes):
    out = b"".join(chunk(1, i) for i in inputs) + b"".join(chunk(2, o) for o in outputs)
    out += chunk(3, name) + chunk(4, kind)
    out += b"".join(chunk(5, attribute(key, content)) for key, content in attributes.items())
    return out + (chunk(7, domain) if domain else b"")


def graph(nodes, inputs, outputs, weights=None):
    """`inputs` and `outputs` are (name, dtype, dims); `weights` maps names to arrays."""
    content = b"".join(chunk(1, n) for n in nodes) + chunk(2, "graph")
    content += b"".join(chunk(5, tensor(name, array)) for name, array in (weights or {}).items())
    return content + b"".join(chunk(11, value(*i)) for i in inputs) + b"".join(chunk(12, value(*o)) for o in outputs)


def model(nodes, inputs, outputs, weights=None, opset=17, domains=()):
    """A model of such a graph; without an opset where that is 0."""
    content = graph(nodes, inputs, outputs, weights)
    opsets = chunk(8, number(2, opset)) if opset else b""
    opsets += b"".join(chunk(8, chunk(1, d) + number(2, 1)) for d in domains)
    return number(1, 8) + chunk(7, content) + opsets


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)
    return str(path)


def linear_model(seed=0, k=24, n=40):
    """y = x · w + b; returns the model's bytes, w and b."""
    rng = np.random.default_rng(seed)
    w, b = rng.standard_normal((k, n)).astype("f4"), rng.standard_normal(n).astype("f4")
    nodes = [node("MatMul", ["x", "w"], ["h"], "mm"), node("Add", ["h", "b"], ["y"], "bias")]
    return model(nodes, [("x", "f4", ["rows", k])], [("y", "f4", ["rows", n])], {"w": w, "b": b}), w, b
