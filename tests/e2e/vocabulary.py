"""Greedy steps that read the last matrix in 8 bits: the tokens of all logits, and where that is not possible, a sentence."""

import json
import os
import random
import shutil

import numpy
import onnx
from onnx import numpy_helper

from pronunciation import check_samples
from tool import expect, expect_error, expect_success, read

FLAG = "--two-stage-vocabulary"
SETTINGS = (
    {},
    {"suppress_tokens": [5, 6, 7, 8], "begin_suppress_tokens": [9, 10]},
    {"repetition_penalty": 1.4},
    {"repetition_penalty": 0.7},
    {"no_repeat_ngram_size": 2, "min_new_tokens": 12},
    {"forced_eos_token_id": 3, "max_new_tokens": 6},
    {"bad_words_ids": [[4], [11, 12]], "forced_bos_token_id": 6},
    {"return_token_scores": True},
    {"num_beams": 3},
    {"do_sample": True, "seed": 5},
)


def requests_of(described, folder, count=60):
    draw = random.Random(3)
    path = os.path.join(folder, "expected.json")
    expected = json.loads(read(path)) if os.path.exists(path) else {}
    common = {key: expected[key] for key in ("decoder_start_token_id", "eos_token_id", "pad_token_id") if key in expected}
    for i in range(count):
        ids = [draw.randrange(3, described["generation"]["vocabulary"]) for _ in range(draw.randint(1, 12))]
        yield {"id": i, "input_ids": ids, "num_beams": 1, "max_new_tokens": 20, **common, **SETTINGS[i % len(SETTINGS)]}


def inspect(tool, artifact):
    described = tool.run("transept", "inspect", artifact, "--json")
    expect_success(described, "inspect")
    return json.loads(described.stdout)


def expect_same_answers(tool, folder, tmp, *flags):
    """Of an export, with and without two stages: alone, in batches that screen and in larger ones. The screened artifact."""
    plain, screened = os.path.join(tmp, "plain.tsp"), os.path.join(tmp, "screened.tsp")
    expect_success(tool.compile(folder, plain, *flags), "compile")
    expect_success(tool.compile(folder, screened, FLAG, *flags), "compile with two stages")
    described = inspect(tool, screened)
    expect(described["generation"]["step_greedy"] == "step_greedy", "no step_greedy")
    lines = "".join(json.dumps(request) + "\n" for request in requests_of(described, folder))
    want = tool.run("transept", "generate", plain, "--batch", "1", "--threads", "1", stdin=lines)
    expect_success(want, "generate")
    for batch, threads in ((1, 1), (4, 2), (16, 1)):
        got = tool.run("transept", "generate", screened, "--batch", str(batch), "--threads", str(threads), stdin=lines)
        expect_success(got, f"generate, batch {batch}")
        wrong = [a for a, b in zip(want.stdout.splitlines(), got.stdout.splitlines()) if a != b]
        expect(got.stdout == want.stdout, f"batch {batch}, {threads} threads: {len(wrong)} other answers, {wrong[:1]}")
    return screened


def benched(tool, artifact, *flags):
    result = tool.run("transept", "bench", artifact, "--json", "--tokens", "16", "--source", "8", "--repeat", "1", "--threads", "1", *flags)
    expect_success(result, "bench")
    return json.loads(result.stdout)


def computed_logits(tool, artifact, *flags):
    """None where the whole matrix was read."""
    return benched(tool, artifact, *flags).get("two_stage_vocabulary")


def pronunciations(tool, root, tmp):
    """Against the answers of PyTorch."""
    artifact = os.path.join(tmp, "g2p.tsp")
    expect_success(tool.compile(os.path.join(root, "models/g2p"), artifact, FLAG), "compile")
    check_samples(tool, root, artifact)
    with open(os.path.join(root, "tests/e2e/g2p/test.tsv")) as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:][::16]
    flags = ("--max-new-tokens", "48", "--num-beams", "1", "--threads", "1")
    plain = os.path.join(tmp, "plain.tsp")
    expect_success(tool.compile(os.path.join(root, "models/g2p"), plain), "compile")
    words = "".join(row[0] + "\n" for row in rows)
    want = tool.run("transept", "translate", plain, "--batch", "32", *flags, stdin=words)
    expect_success(want, "translate")
    for batch in ("1", "8"):
        got = tool.run("transept", "translate", artifact, "--batch", batch, *flags, stdin=words)
        expect_success(got, f"translate, batch {batch}")
        expect(got.stdout == want.stdout, f"batch {batch}: other pronunciations")
    computed = computed_logits(tool, artifact)
    expect(computed["of"] == 70 and 1 <= computed["computed_logits"] < 35, f"computed {computed}")
    for flags in (("--num-beams", "4"), ("--batch", "16")):
        expect(computed_logits(tool, artifact, *flags) is None, f"{flags} read the narrow matrix")
    # Two panels of 64 columns of 256 bytes instead of 256 numbers; per column a bias for both ways, a scale and two norms.
    reads, all_reads = (benched(tool, model)["step_read_bytes"]["weights"] for model in (artifact, plain))
    expect(all_reads - reads == 2 * 64 * 256 * 3 - 4 * 70 * 4, f"reads {reads} and {all_reads} bytes")


# What becomes of the rows of the vocabulary, [V, K]. The rows of the bias follow those of the matrix.


def same_rows(rows):
    """Groups of five equal rows: the lowest token of a group wins all its ties."""
    return rows[numpy.arange(len(rows)) // 5 * 5]


def nearly_same_rows(rows):
    """Groups of rows that differ in the last bit of a few elements."""
    rows = same_rows(rows)
    draw = numpy.random.default_rng(1)
    for row in rows[::3]:
        place = draw.integers(len(row))
        row[place] = numpy.nextafter(row[place], numpy.float32(draw.choice([-9, 9])))
    return rows


def uneven_rows(rows):
    """Rows of very different length, some of which are told apart by one large element."""
    draw = numpy.random.default_rng(2)
    rows = rows * (10.0 ** draw.uniform(-9, 2, (len(rows), 1))).astype(numpy.float32)
    if rows.shape[1] > 1:
        rows[::4, 7] *= 1000
    return rows


def many_rows(rows):
    """More than one block of the vocabulary, of near copies."""
    draw = numpy.random.default_rng(3)
    copies = [rows * (1 + draw.normal(0, 0.001, rows.shape)).astype(numpy.float32) for _ in range(8)]
    return numpy.concatenate([rows, *copies])


def change_vocabulary(source, target, edit):
    shutil.copytree(source, target)
    with open(os.path.join(target, "config.json")) as file:
        config = json.load(file)
    vocabulary = config["vocab_size"]
    for name in os.listdir(target):
        if not name.endswith(".onnx"):
            continue
        model = onnx.load(os.path.join(target, name))
        for tensor in model.graph.initializer:
            rows = numpy_helper.to_array(tensor)
            changed = None
            if rows.ndim == 2 and rows.shape[0] == vocabulary:
                changed = edit(rows.copy())
            elif rows.ndim == 2 and rows.shape[1] == vocabulary:  # the bias, or the matrix turned round
                changed = edit(rows.T.copy()).T
            if changed is not None:
                tensor.CopyFrom(numpy_helper.from_array(numpy.ascontiguousarray(changed), tensor.name))
                config["vocab_size"] = max(changed.shape)
        onnx.save(model, os.path.join(target, name))
    with open(os.path.join(target, "config.json"), "w") as file:
        json.dump(config, file)


def changed(tool, root, name, edit, tmp, *flags):
    folder = os.path.join(tmp, "export")
    change_vocabulary(os.path.join(root, name), folder, edit)
    artifact = expect_same_answers(tool, folder, tmp, *flags)
    computed = computed_logits(tool, artifact)
    expect(1 <= computed["computed_logits"] <= computed["of"] / 3, f"computed {computed}")


def dumps(tool, root, tmp):
    """The option travels in dumps."""
    whole, again, folder = (os.path.join(tmp, name) for name in ("whole.tsp", "again.tsp", "dumps"))
    model = os.path.join(root, "tests/models/marian-tiny")
    expect_success(tool.compile(model, whole, FLAG, "--cpu-levels", "x86-64", "--dump-ir", folder), "compile")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".mlir"):
            expect_success(tool.compile(os.path.join(folder, name), again, "--start-from", name[3:-5]), f"from {name}")
            expect(read(again) == read(whole), f"from {name}: other bytes")


def report(tool, root, tmp):
    artifact, page = os.path.join(tmp, "m.tsp"), os.path.join(tmp, "report.json")
    expect_success(tool.compile(os.path.join(root, "tests/models/marian-tiny"), artifact, FLAG, "--report", page), "compile")
    lines = [line for line in json.loads(read(page))["staging"] if line.startswith("two-stage vocabulary")]
    # 273 columns of 64.
    expect(len(lines) == 1 and f"{273 * 64 + 273 * 12} bytes in place of {273 * 64 * 4}" in lines[0], f"report: {lines}")


def refusals(tool, root, tmp):
    models, artifact = os.path.join(root, "tests/models"), os.path.join(tmp, "m.tsp")
    for more in (("--precision", "bf16"), ("--precision", "int8"), ("--target", "vulkan"), ("--target", "cpu,vulkan")):
        expect_error(tool.compile(os.path.join(models, "marian-tiny"), artifact, FLAG, *more), 2, FLAG)
    # A softmax behind the product.
    expect_error(tool.compile(os.path.join(models, "nn-transformer-paper-op17"), artifact, FLAG), 4, FLAG, "logits are no product")
    expect_error(tool.compile(os.path.join(models, "bert-tiny"), artifact, FLAG), 4, FLAG, "generates nothing")


def tests(tool, root):
    yield "vocabulary pronunciations", lambda tmp: pronunciations(tool, root, tmp)
    for name in ("marian-tiny", "bart-tiny", "gpt2-tiny", "t5-tiny"):
        folder = os.path.join(root, "tests/models", name)
        yield f"vocabulary {name}", lambda tmp, folder=folder: expect_same_answers(tool, folder, tmp)
    # One with the instructions of this processor, one without multiply-add.
    for name, flags in (("models/g2p", ()), ("tests/models/marian-tiny", ("--cpu-levels", "x86-64"))):
        for edit in (same_rows, nearly_same_rows, uneven_rows, many_rows):
            title = f"vocabulary {edit.__name__} of {os.path.basename(name)}"
            yield title, lambda tmp, name=name, edit=edit, flags=flags: changed(tool, root, name, edit, tmp, *flags)
    yield "vocabulary dumps", lambda tmp: dumps(tool, root, tmp)
    yield "vocabulary report", lambda tmp: report(tool, root, tmp)
    yield "vocabulary refusals", lambda tmp: refusals(tool, root, tmp)
