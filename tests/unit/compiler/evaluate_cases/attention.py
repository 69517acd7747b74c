"""Attention by its definition, in double precision."""

from evaluate_cases.common import *

def attention(q, k, v, key_mask=None, bias=None, mask=None, scale=1.0, causal=None, softcap=0.0, empty="zero", relative=None, origin=0):
    """[B, T, H, D] layouts, straight from the definition, in double precision."""
    B, T, H, D = q.shape
    S, K = k.shape[1:3]
    scores = np.einsum("bihd,bjhd->bhij", q.astype(F64), np.repeat(k.astype(F64), H // K, axis=2)) * float(F32(scale))
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    visible = np.ones((B, H, T, S), bool)
    if causal is not None:
        visible &= (np.arange(S)[None, :] <= np.arange(T)[:, None] + causal)[None, None]
    if key_mask is not None:
        visible &= (key_mask != 0)[:, None, None, :]
    if mask is not None:
        visible &= np.broadcast_to(mask, visible.shape)
    if bias is not None:
        scores = scores + bias.astype(F64)
        visible &= np.broadcast_to(bias.astype(F64) > -1e4, visible.shape)
    if relative is not None:
        columns = np.clip(np.arange(S)[None, :] - np.arange(T)[:, None] - origin, 0, relative.shape[1] - 1)
        scores = scores + relative.astype(F64)[:, columns]
    weights = np.zeros((B, H, T, S))
    for index in np.ndindex(B, H, T):
        seen = visible[index]
        if not seen.any():
            weights[index] = {"zero": 0.0, "uniform": 1 / S if S else 0, "nan": nan}[empty]
            continue
        row = np.exp(scores[index][seen] - scores[index][seen].max())
        weights[index][seen] = row / row.sum()
    result = np.einsum("bhij,bjhd->bihd", weights, np.repeat(v.astype(F64), H // K, axis=2))
    return result.astype(q.dtype), weights.astype(q.dtype)


def attention_case(q, k, v, probabilities=False, **options):
    result, weights = attention(q, k, v, **options)
    attrs = f"scale = {float(F32(options.get('scale', 1.0))):.9e} : f32, emptyRow = #transept<empty_row {options.get('empty', 'zero')}>, softcap = {options.get('softcap', 0.0):.6e} : f32"
    if options.get("causal") is not None:
        attrs += f", causal, causalOffset = #transept.dim<{options['causal']}>"
    if "relative" in options:
        attrs += f", relativeOrigin = #transept.dim<{options['origin']}>"
    case("attention", [q, k, v, options.get("key_mask"), options.get("bias"), options.get("mask"), options.get("relative")], [result, weights] if probabilities else [result], attrs=attrs, segments=True, ulps=1, absolute=1e-14)


def qkv(B, T, S, H, K, D, V, dtype=F32):
    return r(B, T, H, D, dtype=dtype), r(B, S, K, D, dtype=dtype), r(B, S, K, V, dtype=dtype)


attention_case(*qkv(1, 3, 3, 2, 2, 4, 4), scale=0.5)
attention_case(*qkv(2, 3, 5, 2, 2, 4, 3), scale=0.5, causal=2, probabilities=True)
attention_case(*qkv(1, 4, 4, 4, 2, 4, 4), scale=0.5, causal=0)
attention_case(*qkv(2, 2, 3, 1, 1, 4, 4), key_mask=a([[1, 1, 0], [1, 0, 0]], np.int64), probabilities=True)
attention_case(*qkv(2, 2, 3, 1, 1, 4, 4), key_mask=a([[True, True, False], [False, False, False]], bool), empty="uniform")
attention_case(*qkv(2, 2, 3, 1, 1, 4, 4), key_mask=a([[1, 1, 0], [0, 0, 0]]), empty="nan")
attention_case(*qkv(2, 2, 3, 1, 1, 4, 4), key_mask=a([[1, 1, 0], [0, 0, 0]]), empty="zero", probabilities=True)
attention_case(*qkv(1, 2, 3, 2, 2, 4, 4), bias=r(1, 2, 2, 3), scale=0.5)
attention_case(*qkv(1, 2, 3, 2, 2, 4, 4), bias=a([[[[0.0, -1e9, -inf], [0.0, 0.0, -1e4]]]]), scale=0.5, probabilities=True)
attention_case(*qkv(1, 2, 3, 2, 2, 4, 4), mask=a([[True, False, True], [False, False, False]], bool), scale=0.5)
attention_case(*qkv(1, 2, 3, 3, 1, 4, 4), softcap=2.0, bias=r(3, 1, 3), scale=0.5)
attention_case(*qkv(1, 2, 0, 1, 1, 4, 4), empty="nan")
attention_case(*qkv(0, 2, 3, 1, 1, 4, 4))
attention_case(*qkv(1, 2, 4, 2, 2, 4, 4, dtype=F16), scale=0.5, causal=1)
case("attention", [*qkv(1, 2, 3, 3, 2, 4, 4), None, None, None, None], [r(1, 2, 3, 4)], attrs="scale = 1.0 : f32, emptyRow = #transept<empty_row zero>", segments=True, error="cannot attend from [1, 2, 3, 4]")
even = [np.linspace(-1, 1, 2 * 5 * 2 * 4).reshape(2, 5, 2, 4).astype(F32), np.linspace(1, -2, 2 * 6 * 2 * 4).reshape(2, 6, 2, 4).astype(F32), np.linspace(0, 3, 2 * 6 * 2 * 3).reshape(2, 6, 2, 3).astype(F32)]
attention_case(*even, scale=0.5, relative=a([[0.5, -1.0, 2.0, 0.25], [1.5, 0.0, -0.75, 3.0]]), origin=-2, probabilities=True)
attention_case(*even, scale=0.5, relative=a([[0.5, -1.0, 2.0]]), origin=1, causal=1, key_mask=a([[1, 1, 1, 1, 0, 1], [0, 1, 1, 1, 1, 1]]))
