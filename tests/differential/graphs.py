"""Random valid graphs in the vocabulary of transformers, a function of a seed.

A value's shape is a tuple of numbers and names; names are the model's dynamic dimensions. Weights are small, so that nothing
overflows in 16 bits, and every row of a mask keeps at least one key: what a row without keys means depends on the precision.
"""

import math
import random

import numpy as np
from onnx import TensorProto, helper

FLOATS = {"fp32": TensorProto.FLOAT, "fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "fp64": TensorProto.DOUBLE}
IR_VERSION = 8
MIN_OPSET, MAX_OPSET = 11, 23
MIN_OPSET_BF16 = 16  # Where, among others, takes bfloat16 from here on
HALF_RANGE = 30000.0  # finite in every type


def keep_first(sizes, rng):
    """A mask whose rows keep at least the first key."""
    mask = rng.random(sizes) < 0.7
    mask[..., :1] = True
    return mask


class Value:
    def __init__(self, name, shape, dtype):
        self.name, self.shape, self.dtype = name, tuple(shape), dtype


class Graph:
    """Nodes, initializers and inputs under construction; one method per idea, whose spelling is drawn."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numpy = np.random.default_rng(seed)
        self.precision = self.random.choices(["fp32", "fp16", "bf16", "fp64"], [8, 2, 2, 1])[0]
        low = MIN_OPSET_BF16 if self.precision == "bf16" else MIN_OPSET
        self.opset = self.random.choice([low, 13, 14, 17, 18, 20, 21, 23, self.random.randint(low, MAX_OPSET)])
        self.opset = max(self.opset, low)
        self.dtype = FLOATS[self.precision]
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], {}, []
        self.count = 0
        dynamic = self.random.random() < 0.8
        self.batch, self.length, self.source = ("batch", "length", "source") if dynamic else self.random.choices([1, 2, 3, 5, 8], k=3)
        self.heads = self.random.choice([1, 2, 3, 4])
        self.size = self.random.choice([2, 4, 8, 16])
        self.width = self.heads * self.size
        self.ranges = {}

    def pick(self, *options):
        return self.random.choice(options)

    def chance(self, probability):
        return self.random.random() < probability

    # ---- nodes ----

    def fresh(self, hint):
        self.count += 1
        return f"{hint}_{self.count}"

    def op(self, kind, *inputs, shape=None, dtype=None, outputs=1, **attributes):
        """A node; its result has shape and type of the first input unless said otherwise. '' leaves an input out."""
        names = [self.fresh(kind.lower()) for _ in range(outputs)]
        domain = attributes.pop("domain", None)
        node = helper.make_node(kind, [i.name if isinstance(i, Value) else i for i in inputs], names, name=f"/{names[0]}", domain=domain, **attributes)
        self.nodes.append(node)
        shape = inputs[0].shape if shape is None else shape
        dtype = inputs[0].dtype if dtype is None else dtype
        if outputs == 1:
            return Value(names[0], shape, dtype)
        return [Value(name, s, dtype) for name, s in zip(names, shape)]

    def constant(self, array, dtype=None):
        """An initializer or a Constant node."""
        array = np.asarray(array)
        dtype = dtype or helper.np_dtype_to_tensor_dtype(array.dtype)
        name = self.fresh("constant")
        tensor = helper.make_tensor(name, dtype, array.shape, convert(array, dtype).tobytes(), raw=True)
        if self.chance(0.5):
            self.initializers.append(tensor)
        else:
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        return Value(name, array.shape, dtype)

    def scalar(self, number):
        return self.constant(np.full(self.pick((), (1,), ()), number), self.dtype)

    def ints(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def weight(self, *shape, scale=None):
        return self.constant(self.numpy.standard_normal(shape) * (scale or 1 / math.sqrt(shape[0])), self.dtype)

    def input(self, name, shape, dtype, make):
        """`make(shape)` draws its values for one binding of the dimensions."""
        if name not in self.inputs:
            self.inputs[name] = (Value(name, shape, dtype), make)
        return self.inputs[name][0]

    def float_input(self, name, *shape):
        return self.input(name, shape, self.dtype, lambda sizes, rng: rng.standard_normal(sizes))

    # ---- differences between opsets ----

    def unsqueeze(self, x, *axes):
        shape = list(x.shape)
        for axis in sorted(axes):
            shape.insert(axis, 1)
        if self.opset < 13:
            return self.op("Unsqueeze", x, shape=shape, axes=list(axes))
        return self.op("Unsqueeze", x, self.ints(*axes), shape=shape)

    def squeeze(self, x, axis):
        shape = x.shape[:axis] + x.shape[axis + 1 :]
        axis = self.pick(axis, axis - len(x.shape))
        if self.opset < 13:
            return self.op("Squeeze", x, shape=shape, axes=[axis])
        return self.op("Squeeze", x, self.ints(axis), shape=shape)

    def reduce(self, kind, x, axis, keep=True):
        axis %= len(x.shape)
        shape = x.shape[:axis] + ((1,) if keep else ()) + x.shape[axis + 1 :]
        axis = self.pick(axis, axis - len(x.shape))
        if self.opset < (13 if kind == "ReduceSum" else 18):
            return self.op(kind, x, shape=shape, axes=[axis], keepdims=int(keep))
        return self.op(kind, x, self.ints(axis), shape=shape, keepdims=int(keep))

    def split(self, x, axis, parts):
        axis %= len(x.shape)
        shapes = [x.shape[:axis] + (part,) + x.shape[axis + 1 :] for part in parts]
        if self.opset < 13:
            return self.op("Split", x, shape=shapes, outputs=len(parts), axis=axis, split=list(parts))
        if self.opset >= 18 and len(set(parts)) == 1 and self.chance(0.5):
            return self.op("Split", x, shape=shapes, outputs=len(parts), axis=axis, num_outputs=len(parts))
        return self.op("Split", x, self.ints(*parts), shape=shapes, outputs=len(parts), axis=axis)

    def slice(self, x, axis, start, end):
        """[start, end) of an axis of known size."""
        size = x.shape[axis]
        shape = list(x.shape)
        shape[axis] = end - start
        start = self.pick(start, start - size)
        end = self.pick(2**63 - 1, 2**31 - 1) if end == size else self.pick(end, end - size)
        return self.op("Slice", x, self.ints(start), self.ints(end), self.ints(self.pick(axis, axis - len(shape))), *([self.ints(1)] if self.chance(0.3) else []), shape=shape)

    # ---- shape idioms ----

    def dim(self, x, axis):
        """The size of an axis as a tensor of one element."""
        whole = self.op("Shape", x, shape=(len(x.shape),), dtype=TensorProto.INT64)
        way = self.pick("gather", "gather1", "slice")
        if way == "gather":
            index = self.constant(np.array(self.pick(axis, axis - len(x.shape)), np.int64))
            return self.unsqueeze(self.op("Gather", whole, index, shape=(), axis=0), 0)
        if way == "gather1":
            return self.op("Gather", whole, self.ints(axis), shape=(1,), axis=0)
        return self.op("Slice", whole, self.ints(axis), self.ints(axis + 1), self.ints(0), shape=(1,))

    def reshape(self, x, shape, like):
        """`like` gives per axis of the result (value, axis) whose size it is, or None. Sizes may be 0, -1, or computed."""
        way = self.pick("plain", "computed", "computed", "mixed")
        parts, used = [], False
        # A -1 is ambiguous where another size may be 0.
        may_be_empty = any(isinstance(size, str) for size in shape)
        for i, size in enumerate(shape):
            zero = i < len(x.shape) and x.shape[i] == size
            if not isinstance(size, str):
                if not used and not may_be_empty and way != "computed" and self.chance(0.3):
                    parts.append(-1)
                    used = True
                else:
                    parts.append(0 if zero and way == "plain" and size else size)
            elif zero and (way == "plain" or (way == "mixed" and self.chance(0.5))):
                parts.append(0)
            elif not used and not self.empty_rows and way != "computed" and self.chance(0.5):
                parts.append(-1)
                used = True
            else:
                parts.append(self.dim(*like[i]))
        if all(isinstance(part, int) for part in parts):
            return self.op("Reshape", x, self.ints(*parts), shape=shape)
        values = [part if isinstance(part, Value) else self.ints(part) for part in parts]
        target = self.op("Concat", *values, shape=(len(values),), axis=0) if len(values) > 1 else values[0]
        if self.chance(0.2):
            target = self.op("Cast", self.op("Cast", target, dtype=TensorProto.INT32, to=TensorProto.INT32), dtype=TensorProto.INT64, to=TensorProto.INT64)
        return self.op("Reshape", x, target, shape=shape)

    def range(self, x, axis):
        """0 … size - 1 of an axis, int64."""
        size = self.squeeze(self.dim(x, axis), 0)
        zero, one = self.constant(np.array(0, np.int64)), self.constant(np.array(1, np.int64))
        return self.op("Range", zero, size, one, shape=(x.shape[axis],), dtype=TensorProto.INT64)

    def transpose(self, x, *perm):
        return self.op("Transpose", x, shape=[x.shape[i] for i in perm], perm=list(perm))

    def cast(self, x, dtype):
        return self.op("Cast", x, dtype=dtype, to=dtype)

    def no_op(self, x):
        """Something that computes x, of at least two axes with a last one of known size."""
        rank, last = len(x.shape), x.shape[-1]
        way = self.pick("identity", "transpose", "reshape", "split", "slice", "unsqueeze", "expand", "where")
        if way == "identity":
            return self.op("Identity", x)
        if way == "transpose":
            perm = list(range(rank - 2)) + [rank - 1, rank - 2]
            return self.transpose(self.transpose(x, *perm), *perm)
        if way == "reshape" and rank == 3:
            flat = self.reshape(x, x.shape[:2] + (1, last), [(x, 0), (x, 1), None, None])
            return self.reshape(flat, x.shape, [(x, 0), (x, 1), None])
        if way == "split" and last >= 2:
            half = self.random.randint(1, last - 1)
            return self.op("Concat", *self.split(x, -1, [half, last - half]), shape=x.shape, axis=self.pick(-1, rank - 1))
        if way == "slice" and last >= 2:
            half = self.random.randint(1, last - 1)
            return self.op("Concat", self.slice(x, rank - 1, 0, half), self.slice(x, rank - 1, half, last), shape=x.shape, axis=-1)
        if way == "unsqueeze":
            axis = self.random.randint(0, rank)
            return self.squeeze(self.unsqueeze(x, axis), axis)
        if way == "expand":
            return self.op("Expand", x, self.op("Shape", x, shape=(rank,), dtype=TensorProto.INT64))
        if way == "where":
            return self.op("Where", self.constant(np.array(True)), x, self.op("Neg", x), shape=x.shape, dtype=x.dtype)
        return x

    # ---- layers ----

    def linear(self, x, outputs, bias=True):
        inputs = x.shape[-1]
        if self.chance(0.2):  # weights as PyTorch stores them
            weight = self.transpose(self.weight(outputs, inputs, scale=1 / math.sqrt(inputs)), 1, 0)
        else:
            weight = self.weight(inputs, outputs)
        shape = x.shape[:-1] + (outputs,)
        b = self.weight(outputs, scale=0.1) if bias and self.chance(0.8) else None
        if len(x.shape) == 3 and b and not self.empty_rows and self.precision in ("fp32", "fp64") and self.chance(0.15):
            flat = self.op("Reshape", x, self.ints(-1, inputs), shape=("rows", inputs))
            product = self.op("Gemm", flat, weight, b, shape=("rows", outputs))
            return self.reshape(product, shape, [(x, 0), (x, 1), None])
        product = self.op("MatMul", x, weight, shape=shape)
        if b:
            product = self.op("Add", *self.pick((product, b), (b, product)), shape=shape)
        return product

    def wide(self, x, body):
        """`body` in fp32 where the type is narrow."""
        if self.precision in ("fp16", "bf16") and self.chance(0.7):
            return self.cast(body(self.cast(x, TensorProto.FLOAT)), self.dtype)
        return body(x)

    def norm(self, x):
        rms = self.chance(0.4)
        scale = self.weight(x.shape[-1], scale=1)
        bias = self.weight(x.shape[-1], scale=0.1)
        epsilon = self.pick(1e-5, 1e-6) if self.precision != "fp16" else 1e-3
        if not rms and self.opset >= 17 and self.chance(0.5):
            return self.op("LayerNormalization", x, scale, *([bias] if self.chance(0.7) else []), axis=-1, epsilon=epsilon)
        if rms and self.opset >= 23 and self.chance(0.5):
            return self.op("RMSNormalization", x, scale, axis=-1, epsilon=epsilon)
        normalized = self.wide(x, lambda y: self.normalize(y, rms, epsilon))
        product = self.op("Mul", *self.pick((normalized, scale), (scale, normalized)), shape=x.shape)
        return product if rms or self.chance(0.1) else self.op("Add", product, bias)

    def normalize(self, x, rms, epsilon):
        def number(value):
            return self.constant(np.array(value), x.dtype)

        centred = x if rms else self.op("Sub", x, self.reduce("ReduceMean", x, -1))
        square = self.op("Mul", centred, centred) if self.chance(0.4) else self.op("Pow", centred, number(2.0))
        variance = self.op("Add", self.reduce("ReduceMean", square, -1), number(epsilon))
        root = self.op("Sqrt", variance)
        if self.chance(0.3):
            return self.op("Mul", centred, self.op("Reciprocal", root))
        if self.chance(0.3):
            return self.op("Mul", centred, self.op("Div", number(1.0), root))
        return self.op("Div", centred, root)

    def activation(self, x):
        way = self.pick("relu", "gelu", "gelu", "tanh_gelu", "quick_gelu", "silu", "tanh", "clip", "leaky")
        if way == "relu":
            return self.op("Relu", x)
        if way in ("gelu", "tanh_gelu") and self.opset >= 20 and self.chance(0.4):
            return self.op("Gelu", x, approximate="tanh" if way == "tanh_gelu" else "none")
        if way == "gelu":
            root = self.op("Div", x, self.scalar(math.sqrt(2))) if self.chance(0.6) else self.op("Mul", x, self.scalar(math.sqrt(0.5)))
            one = self.op("Add", *self.pick((root2 := self.op("Erf", root), s := self.scalar(1.0)), (s, root2)), shape=x.shape)
            order = self.pick(0, 1, 2)
            if order == 0:
                return self.op("Mul", self.op("Mul", x, one), self.scalar(0.5))
            if order == 1:
                return self.op("Mul", self.op("Mul", x, self.scalar(0.5)), one)
            return self.op("Mul", x, self.op("Mul", one, self.scalar(0.5)))
        if way == "tanh_gelu":
            cube = self.op("Pow", x, self.scalar(3.0)) if self.chance(0.5) else self.op("Mul", x, self.op("Mul", x, x))
            inner = self.op("Add", x, self.op("Mul", cube, self.scalar(0.044715)))
            one = self.op("Add", self.op("Tanh", self.op("Mul", inner, self.scalar(math.sqrt(2 / math.pi)))), self.scalar(1.0))
            return self.op("Mul", self.op("Mul", x, self.scalar(0.5)), one)
        if way == "quick_gelu":
            return self.op("Mul", x, self.op("Sigmoid", self.op("Mul", x, self.scalar(1.702))))
        if way == "silu":
            return self.op("Mul", x, self.op("Sigmoid", x))
        if way == "clip":
            low, high = self.constant(np.array(-1.0), self.dtype), self.constant(np.array(1.5), self.dtype)
            return self.op("Clip", x, *self.pick((low, high), (low,), ("", high)))
        if way == "leaky":
            return self.op("LeakyRelu", x, alpha=0.1)
        return self.op("Tanh", x)

    def feed_forward(self, x):
        inner = self.pick(self.width * 2, self.width + 1, 24)
        hidden = self.activation(self.linear(x, inner))
        if self.chance(0.25):
            hidden = self.op("Mul", hidden, self.linear(x, inner))
        return self.linear(hidden, x.shape[-1])

    # ---- masks ----

    def padding(self, kind, keys):
        """An input [batch, keys] that keeps the first key of every row; 1 or true keeps."""
        dtype = {"int": self.pick(TensorProto.INT64, TensorProto.INT32), "bool": TensorProto.BOOL, "float": self.dtype}[kind]
        return self.input(f"mask_{kind}_{keys}", (self.batch, keys), dtype, keep_first)

    def causal(self, queries, query_axis, keys, key_axis):
        """[queries, keys], true where the key is not behind the query."""
        q, k = queries.shape[query_axis], keys.shape[key_axis]
        if self.opset >= 14 and self.chance(0.4):
            shape = self.op("Concat", self.dim(queries, query_axis), self.dim(keys, key_axis), shape=(2,), axis=0)
            if self.chance(0.5):
                ones = self.op("ConstantOfShape", shape, shape=(q, k), dtype=TensorProto.FLOAT, value=helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0]))
                return self.cast(self.op("Trilu", ones, upper=0), TensorProto.BOOL)
            ones = self.op("ConstantOfShape", shape, shape=(q, k), dtype=TensorProto.BOOL, value=helper.make_tensor("v", TensorProto.BOOL, [1], [True]))
            return self.op("Not", self.op("Trilu", ones, self.constant(np.array(1, np.int64)), upper=1))
        rows = self.unsqueeze(self.range(queries, query_axis), 1)
        columns = self.unsqueeze(self.range(keys, key_axis), 0)
        if self.opset >= 12 and self.chance(0.5):
            if self.chance(0.5):
                return self.op("LessOrEqual", columns, rows, shape=(q, k), dtype=TensorProto.BOOL)
            return self.op("GreaterOrEqual", rows, columns, shape=(q, k), dtype=TensorProto.BOOL)
        if self.chance(0.5):
            return self.op("Not", self.op("Greater", columns, rows, shape=(q, k), dtype=TensorProto.BOOL))
        return self.op("Less", columns, self.op("Add", rows, self.ints(1)), shape=(q, k), dtype=TensorProto.BOOL)

    def window(self, queries, query_axis, keys, key_axis):
        """[queries, keys], true where they are near each other."""
        rows = self.unsqueeze(self.range(queries, query_axis), 1)
        columns = self.unsqueeze(self.range(keys, key_axis), 0)
        apart = self.op("Sub", rows, columns, shape=(queries.shape[query_axis], keys.shape[key_axis]))
        width = self.random.randint(1, 5)
        if self.chance(0.5):
            return self.op("Less", self.op("Abs", apart), self.ints(width), dtype=TensorProto.BOOL)
        near = self.op("Greater", apart, self.ints(-width), dtype=TensorProto.BOOL)
        return self.op("And", near, self.op("Less", apart, self.ints(width), dtype=TensorProto.BOOL))

    def bias(self, queries, query_axis, keys, key_axis):
        """Added to scores: a slope per head, a table by distance, or an input."""
        q, k = queries.shape[query_axis], keys.shape[key_axis]
        way = self.pick("slope", "table", "input")
        if way == "input":
            rows = self.pick(1, self.batch)
            heads = self.pick(1, self.heads)
            return self.float_input(f"bias_{rows}_{heads}_{q}_{k}", rows, heads, q, k)
        rows = self.unsqueeze(self.range(queries, query_axis), 1)
        columns = self.unsqueeze(self.range(keys, key_axis), 0)
        apart = self.op("Sub", columns, rows, shape=(q, k))
        if way == "slope":
            distance = self.unsqueeze(self.cast(self.op("Neg", self.op("Abs", apart)), self.dtype), 0)
            return self.op("Mul", distance, self.weight(self.heads, 1, 1, scale=0.1), shape=(self.heads, q, k))
        low, high = self.constant(np.array(-7, np.int64)), self.constant(np.array(8, np.int64))
        near = self.op("Clip", apart, low, high) if self.opset >= 12 else self.op("Mod", self.op("Abs", apart), self.ints(8))
        index = self.op("Add", near, self.ints(7))
        picked = self.op("Gather", self.weight(16, self.heads, scale=0.5), index, shape=(q, k, self.heads))
        return self.unsqueeze(self.transpose(picked, 2, 0, 1), 0) if self.chance(0.5) else self.transpose(picked, 2, 0, 1)

    def negative(self):
        """What hides a score."""
        choices = [-math.inf, -HALF_RANGE, "lowest"]
        if self.precision != "fp16":
            choices += [-1e9, -1e4]
        value = self.random.choice(choices)
        return {"fp16": -65504.0, "bf16": -3.3895e38, "fp32": -3.4028234663852886e38, "fp64": -1.7976931348623157e308}[self.precision] if value == "lowest" else value

    def additive(self, keep, low):
        """0 where `keep` is true, else `low`."""
        way = self.pick("where", "where", "subtract")
        if way == "subtract" and low != -math.inf:
            ones = self.op("Sub", self.scalar(1.0), self.cast(keep, self.dtype), shape=keep.shape)
            return self.op("Mul", ones, self.scalar(low))
        zero, lowest = self.scalar(0.0), self.scalar(low)
        if self.chance(0.3):
            return self.op("Where", self.op("Not", keep), lowest, zero, dtype=self.dtype)
        return self.op("Where", keep, zero, lowest, dtype=self.dtype)

    def mask(self, queries, query_axis, keys, key_axis, causal, padding):
        """How to change scores [batch, heads, queries, keys]: a function, or None."""
        parts = []
        q, k = queries.shape[query_axis], keys.shape[key_axis]
        if causal:
            parts.append((self.causal(queries, query_axis, keys, key_axis), (q, k)))
        elif not padding and q == k and self.chance(0.25):
            parts.append((self.window(queries, query_axis, keys, key_axis), (q, k)))
        elif not padding and self.chance(0.25):
            given = self.input(f"mask_{q}_{k}", (self.batch, q, k), self.pick(TensorProto.BOOL, TensorProto.INT64), keep_first)
            keep = given if given.dtype == TensorProto.BOOL else self.cast(given, TensorProto.BOOL)
            parts.append((self.unsqueeze(keep, 1), (self.batch, 1, q, k)))
        if padding:
            given = self.padding(padding, k)
            keep = given if padding == "bool" else self.cast(given, TensorProto.BOOL)
            parts.append((self.unsqueeze(keep, 1, 2), (self.batch, 1, 1, k)))
        if not parts:
            return None
        low = self.negative()
        if len(parts) == 2 and self.chance(0.5):
            both = self.op("And", parts[1][0], parts[0][0], shape=(self.batch, 1, q, k))
            parts = [(both, (self.batch, 1, q, k))]
        if self.chance(0.3):
            def choose(scores):
                for keep, _ in parts:
                    scores = self.op("Where", keep, scores, self.scalar(low), shape=scores.shape, dtype=scores.dtype)
                return scores
            return choose
        added = [self.additive(keep, low if low in (-math.inf, -1e4, -1e9, -HALF_RANGE) or len(parts) == 1 else -HALF_RANGE) for keep, _ in parts]
        if len(added) == 2 and self.precision != "fp16" and self.chance(0.5):
            added = [self.op("Add", added[1], added[0], shape=(self.batch, 1, q, k))]

        def add(scores):
            for term in added:
                scores = self.op("Add", *self.pick((scores, term), (term, scores)), shape=scores.shape)
            return scores

        return add

    # ---- attention ----

    def split_heads(self, x):
        """[batch, length, width] → [batch, length, heads, size]."""
        return self.reshape(x, x.shape[:2] + (self.heads, self.size), [(x, 0), (x, 1), None, None])

    def rotary(self, x):
        """[batch, length, heads, size], turned by position."""
        half = self.size // 2
        angles = self.op("Mul", self.unsqueeze(self.cast(self.range(x, 1), self.dtype), 1), self.constant(10.0 ** (-np.arange(half) / half), self.dtype), shape=(x.shape[1], half))
        both = self.op("Concat", angles, angles, shape=(x.shape[1], self.size), axis=-1)
        cos, sin = (self.unsqueeze(self.unsqueeze(self.op(kind, both), 0), 2) for kind in ("Cos", "Sin"))
        if self.chance(0.5):
            low, high = self.split(x, -1, [half, half])
        else:
            low, high = self.slice(x, 3, 0, half), self.slice(x, 3, half, self.size)
        turned = self.op("Concat", self.op("Neg", high), low, shape=x.shape, axis=-1)
        return self.op("Add", self.op("Mul", x, cos), self.op("Mul", turned, sin))

    def shared_heads(self, x):
        """The first head of [batch, length, heads, size], in place of all."""
        first = self.slice(x, 2, 0, 1)
        if self.chance(0.5):
            return self.op("Tile", first, self.ints(1, 1, self.heads, 1), shape=x.shape)
        return self.op("Expand", first, self.ints(1, 1, self.heads, 1), shape=x.shape)

    def scores(self, query, key, scale):
        """Of [batch, length, heads, size] each: [batch, heads, queries, keys]."""
        shape = (query.shape[0], self.heads, query.shape[1], key.shape[1])
        where = self.pick("query", "key", "both", "after", "divide", "none")
        if where in ("query", "both"):
            query = self.op("Mul", query, self.scalar(math.sqrt(scale) if where == "both" else scale))
        if where in ("key", "both"):
            key = self.op("Mul", key, self.scalar(math.sqrt(scale) if where == "both" else scale))
        way = self.pick("matmul", "matmul", "twice", "einsum", "flat")
        if way == "einsum" and self.opset >= 12:
            result = self.op("Einsum", query, key, shape=shape, equation="bqhd,bkhd->bhqk")
        elif way == "twice":
            k = self.transpose(self.transpose(key, 0, 2, 1, 3), 0, 1, 3, 2)
            result = self.op("MatMul", self.transpose(query, 0, 2, 1, 3), k, shape=shape)
        elif way == "flat" and not self.empty_rows:
            q = self.op("Reshape", self.transpose(query, 0, 2, 1, 3), self.op("Concat", self.ints(-1), self.dim(query, 1), self.ints(self.size), shape=(3,), axis=0), shape=("rows", query.shape[1], self.size))
            k = self.op("Reshape", self.transpose(key, 0, 2, 1, 3), self.op("Concat", self.ints(-1), self.dim(key, 1), self.ints(self.size), shape=(3,), axis=0), shape=("rows", key.shape[1], self.size))
            flat = self.op("MatMul", q, self.transpose(k, 0, 2, 1), shape=("rows", query.shape[1], key.shape[1]))
            target = self.op("Concat", self.dim(query, 0), self.ints(self.heads), self.dim(query, 1), self.dim(key, 1), shape=(4,), axis=0)
            result = self.op("Reshape", flat, target, shape=shape)
        else:
            result = self.op("MatMul", self.transpose(query, 0, 2, 1, 3), self.transpose(key, 0, 2, 3, 1), shape=shape)
        if where == "after":
            result = self.op("Mul", *self.pick((result, s := self.scalar(scale)), (s, result)), shape=shape)
        if where == "divide":
            result = self.op("Div", result, self.scalar(1 / scale))
        return result

    def softmax(self, scores, masked):
        # Along queries it is no attention; masks could hide a whole column then.
        axis = -2 if self.opset >= 13 and not masked and self.chance(0.2) else -1

        def plain(x):
            if self.chance(0.15):
                shifted = self.op("Exp", self.op("Sub", x, self.reduce("ReduceMax", x, axis)))
                return self.op("Div", shifted, self.reduce("ReduceSum", shifted, axis))
            return self.op("Softmax", x, axis=self.pick(axis, axis + 4) if self.opset >= 13 else 3)
        return self.wide(scores, plain)

    def attention(self, x, memory, causal, padding):
        if self.opset >= 23 and self.precision != "bf16" and not self.empty_rows and self.chance(0.3):
            return self.attention_op(x, memory, causal)
        qkv = self.projections(x, memory)
        query, key, value = (self.split_heads(part) for part in qkv)
        if self.size % 2 == 0 and x is memory and self.chance(0.25):
            query, key = self.rotary(query), self.rotary(key)
        if self.chance(0.15):
            key, value = self.shared_heads(key), self.shared_heads(value)
        change = self.mask(x, 1, memory, 1, causal, padding)
        scores = self.scores(query, key, self.pick(1 / math.sqrt(self.size), 0.25))
        if self.chance(0.1):
            scores = self.op("Mul", self.op("Tanh", self.op("Div", scores, self.scalar(5.0))), self.scalar(5.0))
        if self.chance(0.1):
            scores = self.op("Add", scores, self.weight(1, self.heads, 1, 1, scale=0.3))
        if self.chance(0.3):
            bias = self.bias(x, 1, memory, 1)
            scores = self.op("Add", *self.pick((scores, bias), (bias, scores)), shape=scores.shape)
        if change:
            scores = change(scores)
        weights = self.softmax(scores, change is not None)
        if self.chance(0.1):
            self.outputs.append(weights)
        shape = (x.shape[0], self.heads, x.shape[1], self.size)
        if self.opset >= 12 and self.chance(0.2):
            joined = self.op("Einsum", weights, value, shape=x.shape[:2] + (self.heads, self.size), equation="bhqk,bkhd->bqhd")
        else:
            joined = self.transpose(self.op("MatMul", weights, self.transpose(value, 0, 2, 1, 3), shape=shape), 0, 2, 1, 3)
        merged = self.reshape(joined, x.shape[:2] + (self.width,), [(x, 0), (x, 1), None])
        return self.linear(merged, x.shape[-1])

    def projections(self, x, memory):
        if x is memory and self.chance(0.3):
            together = self.linear(x, 3 * self.width)
            if self.chance(0.5):
                return self.split(together, -1, [self.width] * 3)
            return [self.slice(together, 2, i * self.width, (i + 1) * self.width) for i in range(3)]
        return [self.linear(source, self.width) for source in (x, memory, memory)]

    def attention_op(self, x, memory, causal):
        query, key, value = self.projections(x, memory)
        return self.linear(self.op("Attention", query, key, value, q_num_heads=self.heads, kv_num_heads=self.heads, is_causal=int(causal)), x.shape[-1])

    # ---- integers ----

    def integers(self, x):
        """Arithmetic on whole numbers made from token ids."""
        ids = self.input("ids", (self.batch, self.length), TensorProto.INT64, lambda sizes, rng: rng.integers(0, 11, sizes))
        dtype = self.pick(TensorProto.INT64, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8 if self.opset >= 14 else TensorProto.INT32)
        y = self.cast(ids, dtype)
        if self.chance(0.3):  # through floats: what Floor, Ceil and Cast do to negative halves
            f = self.op("Sub", self.op("Mul", self.cast(ids, TensorProto.FLOAT), self.constant(np.array(0.5, "f4"))), self.constant(np.array(1.75 if dtype != TensorProto.UINT8 else 0, "f4")))
            y = self.cast(self.op(self.pick("Floor", "Ceil", "Round", "Identity"), f), dtype)
        for _ in range(self.random.randint(1, 4)):
            number = self.constant(np.array(self.random.randint(1, 7)), dtype)
            kind = self.pick("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min")
            if kind in ("Max", "Min") and self.opset < 12:
                kind = "Add"
            if dtype == TensorProto.UINT8 and kind in ("Max", "Min", "Sub", "Mod"):
                kind = "Add"
            y = self.op(kind, y, number)
        test = self.op(self.pick("Equal", "Less", "Greater"), y, self.constant(np.array(5), dtype), dtype=TensorProto.BOOL)
        if self.chance(0.5):
            self.outputs.append(self.op("CumSum", y if dtype != TensorProto.UINT8 else self.cast(y, TensorProto.INT32), self.constant(np.array(1, np.int64)), exclusive=self.pick(0, 1)))
        elif self.chance(0.5):
            self.outputs.append(self.op("Where", test, y, self.op("Mul", y, y), dtype=dtype))
        keep = self.unsqueeze(self.cast(test, self.dtype), 2)
        return self.op("Mul", x, keep)

    def embedding(self):
        ids = self.input("ids", (self.batch, self.length), TensorProto.INT64, lambda sizes, rng: rng.integers(0, 11, sizes))
        table = self.weight(11, self.width, scale=1)
        x = self.op("Gather", table, ids, shape=(self.batch, self.length, self.width))
        if self.chance(0.5):
            positions = self.range(ids, 1)
            rows = self.op("Gather", self.weight(64, self.width, scale=0.5), positions, shape=(self.length, self.width))
            x = self.op("Add", x, rows)
        return x

    # ---- along the length ----

    def moved(self, x):
        """Positions of [batch, length, width] in another order or number, and back to as many."""
        way = self.pick("shift", "reverse", "pad", "twice", "stride", "pool", "cumsum")
        zero = self.constant(np.zeros((1, 1, 1)), x.dtype)
        if way == "shift":  # one to the right
            row = self.op("Expand", zero, self.op("Concat", self.dim(x, 0), self.ints(1, x.shape[2]), shape=(3,), axis=0), shape=(x.shape[0], 1, x.shape[2]))
            longer = self.op("Concat", row, x, shape=(x.shape[0], f"{x.shape[1]}+1", x.shape[2]), axis=1)
            return self.op("Slice", longer, self.ints(0), self.ints(-1), self.ints(1), shape=x.shape)
        if way == "reverse":
            return self.op("Slice", x, self.ints(-1), self.ints(-(2**63) + 1), self.ints(1), self.ints(-1), shape=x.shape)
        if way == "pad":
            value = self.constant(np.array(0.5), x.dtype)
            longer = self.op("Pad", x, self.ints(0, 1, 0, 0, 2, 0), value, shape=(x.shape[0], f"{x.shape[1]}+3", x.shape[2]))
            return self.op("Slice", longer, self.ints(2), self.ints(-1), self.ints(1), shape=x.shape)
        if way == "twice":
            double = self.op("Concat", x, self.op("Neg", x), shape=(x.shape[0], f"2*{x.shape[1]}", x.shape[2]), axis=1)
            return self.op("Slice", double, self.dim(x, 1), self.ints(2**31 - 1), self.ints(1), shape=x.shape)
        if way == "stride":
            return self.op("Slice", self.op("Tile", x, self.ints(1, 2, 1), shape=(x.shape[0], f"2*{x.shape[1]}", x.shape[2])), self.ints(0), self.ints(2**62), self.ints(1), self.ints(2), shape=x.shape)
        if way == "pool" and not self.empty_rows:
            return self.op("Add", x, self.reduce(self.pick("ReduceMean", "ReduceMax", "ReduceSum"), x, 1))
        return self.op("CumSum", x, self.constant(np.array(self.pick(1, -2), np.int32)), reverse=self.pick(0, 1)) if x.dtype != TensorProto.BFLOAT16 else x

    def rows(self, x):
        """Something over the last axis that is no norm."""
        way = self.pick("log_softmax", "l2", "gate", "top", "minmax")
        if way == "log_softmax":
            return self.op("LogSoftmax", x, axis=-1 if self.opset >= 13 else len(x.shape) - 1)
        if way == "l2":
            length = self.op("Add", self.reduce("ReduceL2", x, -1), self.scalar(0.1))
            return self.op("Div", x, length)
        if way == "top" and x.shape[-1] > 2 and x.dtype != TensorProto.BFLOAT16:
            values, _ = self.op("TopK", x, self.ints(x.shape[-1]), shape=[x.shape, x.shape], dtype=x.dtype, outputs=2, axis=-1, largest=self.pick(0, 1))
            return values
        if way == "minmax":
            return self.op("Sub", x, self.reduce(self.pick("ReduceMin", "ReduceMax"), x, -1))
        return self.op("Mul", x, self.op("Sigmoid", self.linear(x, 1)), shape=x.shape)

    def branch(self, x):
        """An If on an input, whose branches read what is outside."""
        flag = self.input("flag", (), TensorProto.BOOL, lambda sizes, rng: rng.random() < 0.5)
        names = [self.fresh("branch") for _ in range(2)]
        graphs = []
        for name, kind in zip(names, ("Neg", "Tanh")):
            out = helper.make_tensor_value_info(name, x.dtype, x.shape)
            graphs.append(helper.make_graph([helper.make_node(kind, [x.name], [name], name=f"/{name}")], name, [], [out]))
        return self.op("If", flag, shape=x.shape, dtype=x.dtype, then_branch=graphs[0], else_branch=graphs[1])

    # ---- whole graphs ----

    def layer(self, x, memory):
        kind = self.random.choices(["attention", "cross", "feed_forward", "no_op", "integers", "moved", "rows", "branch"], [7, 3, 4, 3, 2, 2, 2, 1])[0]
        if kind == "no_op":
            return self.no_op(x)
        if kind in ("integers", "moved", "rows", "branch"):
            return getattr(self, kind)(x)
        before = self.norm(x) if self.chance(0.4) else x
        if kind == "attention":
            y = self.attention(before, before, self.chance(0.5), self.pick(None, "int", "bool", "float"))
        elif kind == "cross":
            y = self.attention(before, memory, False, self.pick(None, "int", "bool", "float"))
        else:
            y = self.feed_forward(before)
        if self.chance(0.8):
            y = self.op("Add", *self.pick((x, y), (y, x)), shape=x.shape)
        return self.norm(y) if self.chance(0.3) else y

    def build(self):
        self.empty_rows = self.chance(0.25)  # a binding with a size of 0; then no -1 beside it
        x = self.embedding() if self.chance(0.4) else self.float_input("x", self.batch, self.length, self.width)
        memory = self.float_input("memory", self.batch, self.source, self.width)
        for _ in range(self.random.randint(1, 4)):
            x = self.layer(x, memory)
        self.outputs.append(x)

    def model(self):
        self.build()
        used = set().union(*(names_read(node) for node in self.nodes))
        inputs = [helper.make_tensor_value_info(v.name, v.dtype, v.shape) for v, _ in self.inputs.values() if v.name in used]
        outputs = [helper.make_tensor_value_info(v.name, v.dtype, [d if isinstance(d, str) or d >= 0 else None for d in v.shape]) for v in self.outputs]
        graph = helper.make_graph(self.nodes, "random", inputs, outputs, self.initializers)
        ir = IR_VERSION if self.opset < 19 else 10 if self.opset < 23 else 11
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=ir)

    def bindings(self):
        """Inputs by name, for several values of the dynamic dimensions."""
        names = [d for d in (self.batch, self.length, self.source) if isinstance(d, str)]
        sizes = [{}]
        if names:
            sizes = [dict.fromkeys(names, 1)] + [{n: self.random.randint(1, 4 if n == "batch" else most) for n in names} for most in (9, 20)]
            if self.empty_rows:
                sizes[0][self.pick("batch", "length")] = 0
        for binding in sizes:
            arrays = {}
            for value, make in self.inputs.values():
                shape = [binding.get(d, d) for d in value.shape]
                arrays[value.name] = convert(make(shape, self.numpy), value.dtype)
            yield arrays


def names_read(node):
    """Of values, by a node and by the graphs inside it."""
    names = set(node.input)
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs]:
            names |= {value.name for value in graph.output}.union(*(names_read(inner) for inner in graph.node))
    return names


def convert(array, dtype):
    """The array in the numpy type of an ONNX type; bfloat16 rounds to nearest even."""
    return np.asarray(array).astype(helper.tensor_dtype_to_np_dtype(dtype))


def to_tensor(array, name, dtype):
    return helper.make_tensor(name, dtype, array.shape, np.ascontiguousarray(array).tobytes(), raw=True)
