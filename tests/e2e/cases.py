"""tests/cases: small models of what people reported to other projects."""

import json
import os

import numpy as np
from tool import Failed, expect, expect_error, expect_success

# Where the kinds of error in case.json show, and their exit codes.
ERRORS = {
    "external_data_invalid": ("compile", 3),
    "index_out_of_range": ("run", 8),
    "input_type_mismatch": ("run", 8),
    "non_finite_logits": ("run", 8),
    "shape_mismatch": ("run", 8),
    "unsupported_op": ("compile", 4),
}


def trim(row, pad, eos):
    """Cuts what fills a row behind its first EOS; the decoder may start with EOS."""
    row = [int(token) for token in row]
    if eos in row[1:]:
        return row[: row.index(eos, 1) + 1]
    while len(row) > 1 and row[-1] == pad:
        row.pop()
    return row


def check_outputs(path, expected, case, what):
    got, want = np.load(path), np.load(expected)
    for key in want.files:
        expect(key in got.files, f"{what}: output {key} is missing")
        g, w = got[key], want[key]
        expect(g.shape == w.shape and g.dtype == w.dtype, f"{what}: {key} is {g.dtype} {g.shape}, expected {w.dtype} {w.shape}")
        close = np.allclose(g.astype("f8"), w.astype("f8"), rtol=case["rtol"], atol=case["atol"], equal_nan=True)
        distance = np.abs(g.astype("f8") - w.astype("f8"))
        expect(close, f"{what}: {key} differs by {np.nanmax(distance, initial=0):.3g}")


def check_sequences(answers, expected, case, settings, what):
    want = np.load(expected)
    wanted = settings.get("num_return_sequences", 1)
    hypotheses = [h for answer in answers for h in answer["hypotheses"][:wanted]]
    rows = want["sequences"]
    expect(len(hypotheses) == len(rows), f"{what}: {len(hypotheses)} sequences, expected {len(rows)}")
    pad, eos = settings.get("pad_token_id"), settings.get("eos_token_id")
    for i, (hypothesis, row) in enumerate(zip(hypotheses, rows)):
        expect(trim(hypothesis["ids"], pad, eos) == trim(row, pad, eos), f"{what} row {i}: {hypothesis['ids']}, expected {trim(row, pad, eos)}")
        if "sequences_scores" in want.files:
            score = float(want["sequences_scores"][i])
            expect(abs(hypothesis["score"] - score) <= case["atol"] + case["rtol"] * abs(score), f"{what} row {i}: score {hypothesis['score']}, expected {score}")


def requests_of(inputs, settings):
    arrays = np.load(inputs)
    for row, mask in zip(arrays["input_ids"], arrays["attention_mask"]):
        yield {"input_ids": [int(token) for token, keep in zip(row, mask) if keep], **settings}


def run_case(tool, folder, tmp):
    with open(os.path.join(folder, "case.json"), encoding="utf-8") as file:
        case = json.load(file)
    whole = case["kind"] == "generate" or len(case["models"]) > 1
    source = os.path.abspath(folder if whole else os.path.join(folder, case["models"][0]))
    artifact = os.path.join(tmp, "m.tsp")
    result = tool.compile(source, artifact, cwd=tmp if case.get("run_from_other_directory") else None)
    stage, code = ERRORS[case["error_kind"]] if case["expect"] == "error" else (None, None)
    if stage == "compile":
        return expect_error(result, code)
    expect_success(result, "compile")
    limit = case.get("max_weight_bytes_in_artifact")
    if limit and os.path.getsize(artifact) > limit * 1.3 + 200_000:
        raise Failed(f"the artifact has {os.path.getsize(artifact)} bytes, its weights allow {limit}")
    for i in range(max(len(case["inputs"]), 1)):
        inputs = os.path.join(folder, case["inputs"][i]) if case["inputs"] else None
        expected = os.path.join(folder, case["expected"][i]) if i < len(case["expected"]) else None
        if case["kind"] == "run":
            outputs = os.path.join(tmp, "o.npz")
            result = tool.run("transept", "run", artifact, "--inputs", inputs, "--outputs", outputs)
        else:
            all_settings = case.get("generate", [{}])
            settings = all_settings[i] if i < len(all_settings) else all_settings[0]
            lines = "".join(json.dumps(request) + "\n" for request in requests_of(inputs, settings))
            result = tool.run("transept", "generate", artifact, stdin=lines)
        if stage == "run" and i == len(case["inputs"]) - 1:
            return expect_error(result, code)
        expect_success(result, f"input {i}")
        if case["kind"] == "run":
            check_outputs(outputs, expected, case, f"input {i}")
        else:
            answers = [json.loads(line) for line in result.stdout.splitlines() if line.strip()]
            check_sequences(answers, expected, case, settings, f"input {i}")


def tests(tool, root):
    folder = os.path.join(root, "tests/cases")
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.exists(os.path.join(path, "case.json")):
            yield f"case {name}", lambda tmp, path=path: run_case(tool, path, tmp)
