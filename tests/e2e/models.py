"""tests/models: export directories against the answers of PyTorch, under every search setting that came with them."""

import json
import os

import numpy as np
from cases import trim
from tool import Failed, expect, expect_error, expect_success

RENAMED = {"k": "num_beams", "alpha": "length_penalty", "bos": "decoder_start_token_id", "eos": "eos_token_id"}
FEATURES = ("input_features", "pixel_values")
# Folders that do not generate, each with its reason.
EXCLUDED = {"nn-transformer-paper-baked": "its lengths are baked into Reshapes; run_baked tests what it can do"}
ROUNDED = ("fp16", "int8")  # in a name: other weights than those of the sequences; families.py tests their logits


def settings_of(raw, expected):
    """The search settings under their generation_config names."""
    settings = {RENAMED.get(key, key): content for key, content in raw.items()}
    if "bos" in raw:
        settings["pad_token_id"] = expected["pad"]
        if "num_beams" in settings:
            settings.update(search="tensor2tensor", num_return_sequences=settings["num_beams"])
    else:
        for key in ("decoder_start_token_id", "eos_token_id", "pad_token_id"):
            if key in expected:
                settings.setdefault(key, expected[key])
        if isinstance(expected.get("decoder_prompt"), list):
            settings.setdefault("decoder_input_ids", expected["decoder_prompt"])
    if "min_new_tokens" in settings:
        settings.pop("min_length", None)
    return settings


def requests_of(kind, expected, arrays, settings, tmp):
    inputs = expected["inputs"][kind]
    ids = inputs.get("input_ids") or inputs.get("src")
    if ids is None:
        name = next(n for n in FEATURES if n in inputs)
        for i, row in enumerate(arrays[f"{kind}.{name}"]):
            path = os.path.join(tmp, f"{kind}{i}.npz")
            np.savez(path, **{name: row[None]})
            yield {"inputs": path, **settings}
        return
    if "attention_mask" in inputs:
        masks = inputs["attention_mask"]
    elif "src_key_padding_mask" in inputs:
        masks = [[not padding for padding in row] for row in inputs["src_key_padding_mask"]]
    else:
        masks = [[token != settings.get("pad_token_id") for token in row] for row in ids]
    for row, mask in zip(ids, masks):
        yield {"input_ids": [token for token, keep in zip(row, mask) if keep], **settings}


def flatten(rows):
    """One list of sequences (or scores) from a list per request."""
    if rows is None:
        return None
    flat = []
    for row in rows:
        nested = isinstance(row, list) and row and isinstance(row[0], list)
        flat.extend(row if nested else [row])
    return flat


def check_answers(answers, want, settings, what):
    hypotheses = [h for answer in answers for h in answer["hypotheses"]]
    sequences = flatten(want["sequences"])
    scores = want.get("sequences_scores") or want.get("scores")
    scores = [s for row in scores for s in (row if isinstance(row, list) else [row])] if scores else None
    expect(len(hypotheses) == len(sequences), f"{what}: {len(hypotheses)} sequences, expected {len(sequences)}")
    pad, eos = settings.get("pad_token_id"), settings.get("eos_token_id")
    for i, (hypothesis, row) in enumerate(zip(hypotheses, sequences)):
        if "decoder_start_token_id" not in settings:  # decoder alone: prompts are padded on the left
            row = row[next(j for j, token in enumerate(row) if token != pad) :]
        expect(trim(hypothesis["ids"], pad, eos) == trim(row, pad, eos), f"{what} row {i}: {hypothesis['ids']}, expected {trim(row, pad, eos)}")
        if scores:
            expect(abs(hypothesis["score"] - scores[i]) <= 1e-4 * max(1, abs(scores[i])), f"{what} row {i}: score {hypothesis['score']}, expected {scores[i]}")


def run_model(tool, folder, expected_folder, tmp):
    """All settings on one artifact; one line per setting that fails."""
    with open(os.path.join(expected_folder, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    arrays = np.load(os.path.join(expected_folder, "expected.npz"))
    artifact = os.path.join(tmp, "m.tsp")
    expect_success(tool.compile(folder, artifact), "compile")
    wrong = []
    for name, wanted in expected["generation"].items():
        settings = settings_of(wanted["settings"], expected)
        # Of a decoder alone, these two count the padding on the left: what they give in a batch is not a result of the prompt.
        padded = "decoder_start_token_id" not in settings and ("repetition_penalty" in settings or "min_length" in settings)
        for kind in ("single",) if padded else ("single", "batch"):
            lines = "".join(json.dumps(r) + "\n" for r in requests_of(kind, expected, arrays, settings, tmp))
            result = tool.run("transept", "generate", artifact, stdin=lines)
            try:
                expect_success(result, f"{name} {kind}")
                answers = [json.loads(line) for line in result.stdout.splitlines() if line.strip()]
                check_answers(answers, wanted[kind], settings, f"{name} {kind}")
            except Failed as why:
                wrong.append(str(why))
                break
    expect(not wrong, f"{len(wrong)} of {len(expected['generation'])} settings: " + "; ".join(wrong))


def run_baked(tool, folder, expected_folder, tmp):
    """A graph that works at the lengths of its export, and says why it cannot at others."""
    arrays = np.load(os.path.join(expected_folder, "expected.npz"))
    artifact, inputs, outputs = (os.path.join(tmp, name) for name in ("m.tsp", "x.npz", "y.npz"))
    expect_success(tool.compile(os.path.join(folder, "model.onnx"), artifact), "compile")

    def run(kind, length):
        feeds = {name: arrays[f"{kind}.{name}"] for name in ("src", "src_key_padding_mask", "tgt")}
        feeds["tgt"] = feeds["tgt"][:, :length]
        np.savez(inputs, **feeds)
        return tool.run("transept", "run", artifact, "--inputs", inputs, "--outputs", outputs)

    expect_success(run("batch", 10), "at the baked lengths")
    results = np.load(outputs)
    got, want = results[results.files[0]], arrays["batch.teacher_forced_logits"][:, :10]
    expect(np.abs(got - want).max() < 1e-4, f"differs by {np.abs(got - want).max():.3g}")
    expect_error(run("batch", 9), 8, "Reshape", "10", "tgt_len=9")
    expect_error(run("single", 10), 8, "Reshape", "12", "src_len=7")
    expect_success(tool.compile(folder, artifact), "compile as export")
    expect_error(tool.run("transept", "generate", artifact, stdin='{"input_ids": [5, 6], "decoder_start_token_id": 1}\n'), 8, "Reshape")


def tests(tool, root):
    folder = os.path.join(root, "tests/models")
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not os.path.exists(os.path.join(path, "meta.json")) or any(word in name for word in ROUNDED):
            continue
        with open(os.path.join(path, "meta.json"), encoding="utf-8") as file:
            meta = json.load(file)
        if os.path.exists(os.path.join(path, "expected.json")):
            expected = path
        else:
            expected = os.path.normpath(os.path.join(path, meta.get("expected_in") or ""))
        with open(os.path.join(expected, "expected.json"), encoding="utf-8") as file:
            if "generation" not in json.load(file):
                continue
        if name in EXCLUDED:
            yield f"baked {name}", lambda tmp, path=path, expected=expected: run_baked(tool, path, expected, tmp)
            continue
        yield f"model {name}", lambda tmp, path=path, expected=expected: run_model(tool, path, expected, tmp)
