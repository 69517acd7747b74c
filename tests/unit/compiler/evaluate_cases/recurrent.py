"""Recurrent layers."""

from evaluate_cases.common import *

def recurrent(kind, T, B, H, lengths=None, states=False, peephole=False, hidden_bias=False, reverse=False, activations=None, alpha=None, beta=None, clip=0.0, coupled=False):
    """ONNX's operator with an identity as the weight of its input."""
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[kind]
    functions = max(gates - 1, 1)
    x, weight = r(T, B, gates * H), r(H, gates * H, scale=0.5)
    h, c = (r(B, H), r(B, H) if kind == "lstm" else None) if states else (None, None)
    p = r(3 * H) if peephole else None
    b = r(H) if hidden_bias else None
    bias = None
    if hidden_bias:
        bias = np.zeros((1, 6 * H), F32)
        bias[0, 5 * H:] = b
    attrs = {"hidden_size": H, "direction": "reverse" if reverse else "forward"}
    if clip:
        attrs["clip"] = clip
    if coupled:
        attrs["input_forget"] = 1
    if hidden_bias:
        attrs["linear_before_reset"] = 1
    if activations:
        attrs["activations"] = activations
        if alpha:
            attrs["activation_alpha"] = [v for v in alpha if v is not None]
        if beta:
            attrs["activation_beta"] = [v for v in beta if v is not None]
    inputs = [x, np.eye(gates * H, dtype=F32)[None], weight.T[None].copy(), bias, None if lengths is None else a(lengths, np.int32), None if h is None else h[None]]
    if kind == "lstm":
        inputs += [None if c is None else c[None], None if p is None else p[None]]
    results = onnx_all(kind.upper(), inputs, 3 if kind == "lstm" else 2, opset=14, **attrs)
    expected = [results[0][:, 0]] + [y[0] for y in results[1:]]
    names = activations or {"rnn": ["Tanh"], "gru": ["Sigmoid", "Tanh"], "lstm": ["Sigmoid", "Tanh", "Tanh"]}[kind]
    numbers = lambda given: "array<f32: " + ", ".join(f"{float(F32(v or 0)):.9e}" for v in (given or [0] * functions)) + ">"
    text = ", ".join(f'"{name}"' for name in names)
    options = "".join(f", {name}" for name, on in (("reverse", reverse), ("linearBeforeReset", hidden_bias), ("coupled", coupled)) if on)
    case("recurrent", [x, weight, None if lengths is None else a(lengths, np.int32), h, c, p, b], expected, segments=True, absolute=2e-6,
         attrs=f"kind = #transept<cell {kind}>, activations = [{text}], alpha = {numbers(alpha)}, beta = {numbers(beta)}, clip = {clip:e} : f32{options}")


for kind in ("rnn", "gru", "lstm"):
    recurrent(kind, 3, 2, 4)
    recurrent(kind, 4, 3, 2, lengths=[4, 1, 2], states=True, reverse=True)
    recurrent(kind, 4, 3, 2, lengths=[3, 0, 2])
recurrent("gru", 3, 2, 3, hidden_bias=True, states=True)
recurrent("lstm", 3, 2, 3, peephole=True, states=True, clip=0.5)
recurrent("lstm", 3, 2, 3, coupled=True)
recurrent("lstm", 2, 1, 3, activations=["HardSigmoid", "ScaledTanh", "Softsign"], alpha=[0.3, 1.5, None], beta=[0.4, 0.75, None])
recurrent("gru", 2, 1, 3, activations=["Affine", "Softplus"], alpha=[0.5, None], beta=[0.25, None])
for name, alpha in (("Relu", None), ("LeakyRelu", 0.1), ("ThresholdedRelu", 0.5), ("Elu", 0.7)):
    recurrent("rnn", 2, 2, 3, activations=[name], alpha=[alpha] if alpha else None)
