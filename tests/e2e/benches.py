"""What `transept bench` counts, against figures made by hand from the model's configuration; and what bench/compare says."""

import json
import os
import subprocess
import sys

import numpy as np
from tool import expect, expect_error, expect_success

PANEL = 64  # columns that a packed matrix is padded to


def figures(tool, artifact, *flags):
    result = tool.run("transept", "bench", artifact, "--json", *flags)
    expect_success(result, f"bench {' '.join(flags)}")
    return json.loads(result.stdout)


def decoder_bytes(config, precision):
    """Of weights that a step of a Marian decoder reads: all but the cross-attention's keys and values, and embeddings."""
    width, inner, words = config["d_model"], config["decoder_ffn_dim"], config["vocab_size"]

    def matrix(inputs, columns):
        elements = inputs * -(-columns // PANEL) * PANEL
        return 4 * elements if precision == "fp32" else elements + 4 * columns  # a scale for each column

    products = 6 * matrix(width, width) + matrix(width, inner) + matrix(inner, width)
    biases_and_norms = 4 * (6 * width + inner + width + 3 * 2 * width)
    return config["decoder_layers"] * (products + biases_and_norms) + matrix(width, words)  # whose bias is zero


def check_counts(tool, root, tmp):
    source, artifact = os.path.join(root, "models/g2p"), os.path.join(tmp, "g2p.tsp")
    with open(os.path.join(source, "config.json")) as file:
        config = json.load(file)
    position = 2 * config["decoder_layers"] * config["d_model"] * 4  # keys and values of one
    for precision, batch, beams, length, tokens in (("fp32", 1, 1, 9, 20), ("int8", 3, 4, 12, 7)):
        expect_success(tool.compile(source, artifact, "--precision", precision, "--cpu-levels", "avx2,x86-64"), "compile")
        flags = ("--batch", batch, "--num-beams", beams, "--source", length, "--tokens", tokens, "--repeat", 3)
        got = figures(tool, artifact, *map(str, flags))
        what = f"batch {batch}, {beams} beams: {got}"
        expect(got["tokens"] == batch * tokens and got["steps"] == tokens and got["source"] == length, what)
        reads = got["step_read_bytes"]
        # Step i reads i positions of each hypothesis; the first step has one of each sentence.
        positions = batch * (1 + beams * sum(range(2, tokens + 1)))
        expect(reads["self_cache"] == round(position * positions / tokens), what)
        expect(reads["cross_cache"] == batch * length * (position + 8), what)  # 8: the mask
        weights = decoder_bytes(config, precision)
        expect(reads["weights"] == weights, f"{precision}: {weights} expected, {what}")
        expect(reads["total"] == reads["weights"] + reads["self_cache"] + reads["cross_cache"], what)
        for times in (got["call_milliseconds"], got["step_milliseconds"]):
            expect(0 < times["best"] <= times["p50"] <= times["p95"] <= times["p99"], what)
        expect(got["step_milliseconds"]["best"] * tokens <= got["call_milliseconds"]["best"] * 1.001, what)
        stream = got["stream"]
        expect(stream["limit_gbytes_per_second"] > 0, what)
        reached = reads["total"] / got["step_milliseconds"]["p50"] * 1e-6
        expect(abs(stream["reached_gbytes_per_second"] / reached - 1) < 1e-9, what)
        expect(abs(stream["share"] * stream["limit_gbytes_per_second"] / reached - 1) < 1e-9, what)


def check_tensors(tool, root, tmp):
    """A source may come as the encoder's tensors from a file."""
    artifact, clip = os.path.join(tmp, "m.tsp"), os.path.join(tmp, "clip.npz")
    expect_success(tool.compile(os.path.join(root, "tests/models/marian-tiny"), artifact, "--cpu-levels", "avx2,x86-64"), "compile")
    np.savez(clip, input_ids=np.arange(4, 15).reshape(1, 11), attention_mask=np.ones((1, 11), np.int64))
    got = figures(tool, artifact, "--inputs", clip, "--batch", "2", "--tokens", "5", "--repeat", "1")
    expect(got["source"] == 11 and got["tokens"] == 10 and got["steps"] == 5, f"{got}")
    np.savez(clip, features=np.zeros((1, 11), np.float32))
    expect_error(tool.run("transept", "bench", artifact, "--inputs", clip), 8, "features")


def check_compare(root, tmp):
    """Made-up summaries: a row that moved within its noise, ones that became slower and faster, missing rows, another processor."""

    def summary(name, cpu="one", **ratios):
        rows = {row.replace("_", "-"): {"ratio": ratio, "noise": 0.03, "limit": "gbytes_per_s"} for row, ratio in ratios.items()}
        path = os.path.join(tmp, name)
        with open(path, "w") as file:
            json.dump({"cpu": cpu, "features": ["avx2"], "rows": rows}, file)
        return path

    def compare(*paths):
        done = subprocess.run([sys.executable, os.path.join(root, "bench/compare"), *paths], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    before = summary("before.json", batch_1=5.0, batch_32=8.0, words=2.0)
    # Two results of 3 % noise each differ by chance by up to 4.2 %.
    expect(compare(summary("a.json", batch_1=4.8, batch_32=8.3, words=2.0), before)[:2] == (
        0, "batch-1: same, -4.0 % (noise 4.2 %)\nbatch-32: same, +3.8 % (noise 4.2 %)\nwords: same, +0.0 % (noise 4.2 %)\n"), "within the noise")  # fmt: skip
    code, out, _ = compare(summary("b.json", batch_1=4.7, batch_32=9.0, words=2.0), before)
    expect(code == 1 and "batch-1: slower, -6.0 %" in out and "batch-32: faster, +12.5 %" in out, f"slower: {code} {out}")
    code, out, _ = compare(summary("c.json", batch_1=5.0, clip=1.0), before)
    expect(code == 0 and "batch-32: not measured\n" in out and "clip: new\n" in out and "words: not measured\n" in out, f"missing: {code} {out}")
    code, _, err = compare(summary("d.json", cpu="two", batch_1=1.0), before)
    expect(code == 2 and "another processor: two; the baseline is of one" in err, f"another processor: {code} {err}")
    code, _, err = compare(os.path.join(tmp, "none.json"), before)
    expect(code == 2 and "none.json" in err, f"no file: {code} {err}")
    with open(os.path.join(tmp, "e.json"), "w") as file:
        file.write('{"cpu": "one", "features": [], "rows": {"batch-1": {"ratio": 0}}}')
    expect(compare(os.path.join(tmp, "e.json"), before)[0] == 2, "impossible figures")
    expect(compare()[0] == 2, "no arguments")


def tests(tool, root):
    yield "bench counts", lambda tmp: check_counts(tool, root, tmp)
    yield "bench tensors", lambda tmp: check_tensors(tool, root, tmp)
    yield "bench compare", lambda tmp: check_compare(root, tmp)
