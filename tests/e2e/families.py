"""What families of models add: decoders alone, explicit caches, recurrent state, alignments, prompts, sampling, encoders alone."""

import json
import os
import shutil

import numpy as np
from models import requests_of, run_model, settings_of
from tool import expect, expect_error, expect_success


def load(folder):
    with open(os.path.join(folder, "expected.json"), encoding="utf-8") as file:
        return json.load(file), np.load(os.path.join(folder, "expected.npz"))


def answers(tool, command, artifact, requests, *flags):
    result = tool.run("transept", command, artifact, *flags, stdin="".join(json.dumps(r) + "\n" for r in requests))
    expect_success(result, command)
    return [json.loads(line) for line in result.stdout.splitlines() if line.strip()]


def compiled(tool, folder, tmp, name="m.tsp"):
    artifact = os.path.join(tmp, name)
    expect_success(tool.compile(folder, artifact), f"compile {os.path.basename(folder)}")
    return artifact


def part_of(folder, tmp, leave_out, name="part"):
    """A copy of an export directory without some of its files."""
    copy = os.path.join(tmp, name)
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(*leave_out))
    return copy


def near(got, want, what, tolerance=1e-4):
    got, want = np.asarray(got), np.asarray(want)
    expect(got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}")
    expect(np.abs(got - want).max() <= tolerance, f"{what}: differs by {np.abs(got - want).max():.3g}")


# ---- alignments ----


def alignments(tool, folder, tmp):
    """Attention over the source as PyTorch has it, in scores, greedy answers and beams."""
    expected, arrays = load(folder)
    artifact = compiled(tool, folder, tmp)
    layers = [arrays[name][0] for name in sorted(arrays.files) if name.startswith("single.cross_attention")]
    inputs, greedy = expected["inputs"]["single"], expected["generation"]["greedy"]
    settings = settings_of(greedy["settings"], expected)
    if layers[0].ndim == 2:  # one layer, one head
        layers = [layer[None] for layer in layers]
    prompt = settings.get("decoder_input_ids") or [settings["decoder_start_token_id"]]
    source = inputs.get("input_ids") or inputs.get("src")
    request = {"input_ids": source[0]} if source else next(iter(requests_of("single", expected, arrays, {}, tmp)))
    given = next((n for n in ("single.decoder_input_ids", "single.tgt") if n in arrays.files), None)
    tokens = arrays[given][0].tolist() if given else greedy["single"]["sequences"][0]
    length = layers[0].shape[1] - len(prompt) + 1
    want = [layer[:, len(prompt) - 1 :] for layer in layers]

    start = {"decoder_input_ids": prompt}
    target = (tokens[len(prompt) :] + [5])[:length]
    score = answers(tool, "score", artifact, [{**request, **start, "target_ids": target, "return_alignments": True}])[0]
    plain = answers(tool, "score", artifact, [{**request, **start, "target_ids": target}])[0]
    near(score["token_scores"], plain["token_scores"], "scores with and without alignments")
    for got, layer in zip(score["alignments"], want):
        near(got, layer, "score")
    mean = answers(tool, "score", artifact, [{**request, **start, "target_ids": target, "return_alignments": "mean"}])[0]
    near(mean["alignments"], np.concatenate(want).mean(0), "mean")

    for beams in (1, 3):
        asked = {**request, **settings, "num_beams": beams, "num_return_sequences": beams}
        plain, found = (
            answers(tool, "generate", artifact, [{**asked, **more}])[0]["hypotheses"] for more in ({}, {"return_alignments": True})
        )
        expect([h["ids"] for h in plain] == [h["ids"] for h in found], "alignments change the answer")
        for hypothesis in found:
            # Beams take their parents' weights along: each is scored alone.
            alone = answers(
                tool, "score", artifact, [{**request, **start, "target_ids": hypothesis["ids"][len(prompt) :], "return_alignments": True}]
            )[0]
            for got, layer in zip(hypothesis["alignments"], alone["alignments"]):
                near(got, layer, f"{beams} beams")


# ---- prompts ----


def prompts(tool, folder, tmp):
    """A prompt computed at once gives what its positions give one after the other."""
    expected, arrays = load(folder)
    artifact = compiled(tool, folder, tmp)
    page = tool.run("transept", "inspect", artifact, "--json")
    expect_success(page, "inspect")
    expect(json.loads(page.stdout)["generation"]["prefill"] == "prefill", "no entry for prompts")
    settings = settings_of(expected["generation"]["greedy"]["settings"], expected)
    requests = list(requests_of("batch", expected, arrays, {**settings, "max_new_tokens": 12}, tmp))
    whole = [a["hypotheses"][0]["ids"] for a in answers(tool, "generate", artifact, requests)]
    asked, want = [], []
    for request, ids in zip(requests, whole):
        for length in (1, 2, 5, len(ids) - 1):
            if 0 < length < len(ids):
                asked.append({**request, "decoder_input_ids": ids[:length], "max_new_tokens": len(ids) - length, "return_token_scores": True})
                want.append(ids)
    together = answers(tool, "generate", artifact, asked, "--batch", "16")
    alone = answers(tool, "generate", artifact, asked, "--batch", "1", "--threads", "1")
    expect(together == alone, "prompts of different lengths in a batch change each other")
    for answer, ids in zip(together, want):
        expect(answer["hypotheses"][0]["ids"] == ids, f"{answer['hypotheses'][0]['ids']}, expected {ids}")


def decoder_alone(tool, folder, tmp):
    """A model without an encoder: scores as teacher forcing gives them, and what its requests may not hold."""
    expected, arrays = load(folder)
    artifact = compiled(tool, folder, tmp)
    logits = arrays["single.teacher_forced_logits"][0].astype(np.float64)
    tokens = expected["generation"]["greedy"]["single"]["sequences"][0][: len(logits) + 1]
    want = [row[token] - np.log(np.exp(row).sum()) for row, token in zip(logits, tokens[1:])]
    for length in (1, 5):
        answer = answers(tool, "score", artifact, [{"input_ids": tokens[:length], "target_ids": tokens[length:]}])[0]
        near(answer["token_scores"], want[length - 1 :], f"prompt of {length}")
        expect(answer["input_tokens"] == length, f"{answer['input_tokens']} input tokens")
    for request, word in (
        ({"input_ids": []}, "empty"),
        ({"input_ids": [1, 400]}, "vocabulary"),
        ({"input_ids": [1], "decoder_input_ids": [2]}, "no encoder"),
        ({"input_ids": [1], "return_alignments": True}, "no attention over the source"),
        ({"inputs": "x.npz"}, "no encoder"),
        ({"input_ids": [1] * 65}, "64"),
    ):
        expect_error(tool.run("transept", "generate", artifact, stdin=json.dumps(request) + "\n"), 8, "line 1", word)


# ---- sampling ----


def sampling(tool, folder, tmp):
    """The same seed gives the same text in any batch and with any number of threads, another one another text."""
    expected, arrays = load(folder)
    artifact = compiled(tool, folder, tmp)
    settings = {**settings_of(expected["generation"]["greedy"]["settings"], expected), "do_sample": True, "temperature": 1.5, "top_k": 0}
    sources = list(requests_of("batch", expected, arrays, settings, tmp)) + list(requests_of("single", expected, arrays, settings, tmp))
    requests = [{**source, "seed": seed, "num_return_sequences": 3} for seed in (1, 2, 2**40) for source in sources]
    ids = [[h["ids"] for h in a["hypotheses"]] for a in answers(tool, "generate", artifact, requests, "--batch", "7", "--threads", "2")]
    again = [[h["ids"] for h in a["hypotheses"]] for a in answers(tool, "generate", artifact, requests[::-1], "--batch", "1", "--threads", "1")][::-1]
    expect(ids == again, "a seed gives another text in another batch")
    count = len(sources)
    expect(ids[:count] != ids[count : 2 * count] != ids[2 * count :], "seeds make no difference")
    expect(all(len(set(map(tuple, rows))) > 1 for rows in ids), "sequences of one request are all the same")
    first = [rows[0] for rows in ids[:count]]
    single = answers(tool, "generate", artifact, [{**source, "seed": 1} for source in sources])
    expect(first == [a["hypotheses"][0]["ids"] for a in single], "the first of three is not what is drawn alone")
    cold = answers(tool, "generate", artifact, [{**source, "top_k": 1} for source in sources])
    greedy = answers(tool, "generate", artifact, [{k: v for k, v in source.items() if k not in ("do_sample", "temperature", "top_k")} for source in sources])
    expect([a["hypotheses"][0]["ids"] for a in cold] == [a["hypotheses"][0]["ids"] for a in greedy], "top_k 1 is not greedy")
    expect_error(tool.run("transept", "generate", artifact, stdin=json.dumps({**sources[0], "num_beams": 2}) + "\n"), 8, "do_sample", "num_beams")


# ---- caches as exported ----


def explicit_caches(tool, folder, tmp):
    """An encoder that makes cross-attention keys, and a decoder of one token with its own caches: nothing else."""
    run_model(tool, part_of(folder, tmp, ["full.onnx"]), folder, tmp)


def missing_cross_keys(tool, folder, tmp):
    part = part_of(folder, tmp, ["decoder_model.onnx", "decoder_model_merged.onnx"])
    expect_error(tool.compile(part, os.path.join(tmp, "m.tsp")), None, "past_key_values.0.encoder.key", "made by no file")


def overrides(tool, folder, tmp):
    """Roles that cannot be known from names come from transept.json."""
    part = part_of(folder, tmp, ["full.onnx"])
    for name in ("encode.onnx", "step.onnx"):
        path = os.path.join(part, name)
        with open(path, "rb") as file:
            content = file.read()
        # Names of the same length: the files stay well-formed.
        content = content.replace(b"last_id", b"wordnow").replace(b"encoder_bias", b"hidden_price")
        with open(path, "wb") as file:
            file.write(content)

    def say(page):
        with open(os.path.join(part, "transept.json"), "w", encoding="utf-8") as file:
            json.dump(page, file)

    artifact = os.path.join(tmp, "m.tsp")
    say({"files": {"step.onnx": {"role": "decoder_with_past", "ports": {"wordnow": "target_words"}}}})
    expect_error(tool.compile(part, artifact), 3, "transept.json", "'wordnow'", "target_ids")
    say({"files": {"step.onnx": {"role": "nothing"}}})
    expect_error(tool.compile(part, artifact), 3, "transept.json", "'nothing'", "decoder_with_past")
    say({"files": {"step.onnx": {"ports": {"elsewhere": "target_ids"}}}})
    expect_error(tool.compile(part, artifact), 3, "'elsewhere'", "step.onnx")
    say({"files": {"step.onnx": {"role": "decoder_with_past", "ports": {"wordnow": "target_ids", "hidden_price": "encoder_result"}}}})
    run_model(tool, part, folder, tmp)


# ---- relative positions ----


def relative_bias(tool, folder, tmp):
    """A bias by distance is no obstacle to fused attention, caches, or padded batches."""
    report = os.path.join(tmp, "r.json")
    expect_success(tool.compile(folder, os.path.join(tmp, "m.tsp"), "--report", report, "--stop-after", "plan"), "compile")
    with open(report, encoding="utf-8") as file:
        page = json.load(file)
    expect(page["attention"]["fused"] == page["attention"]["sites"] > 0, f"attention: {page['attention']}")
    expect(any("is computed from 2 self caches" in line for line in page["staging"]), f"staging: {page['staging']}")


# ---- a whole generation in one operator ----


def search_operator(tool, folder, tmp):
    """The graphs of a BeamSearch operator generate what ONNX Runtime makes of them; what it stores are settings."""
    with open(os.path.join(folder, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    artifact = compiled(tool, os.path.join(folder, "model.onnx"), tmp)
    for case in expected["cases"]:
        for kind, inputs in expected["inputs"].items():
            requests = [
                {"input_ids": [token for token, keep in zip(row, mask) if keep], **case["settings"]}
                for row, mask in zip(inputs["input_ids"], inputs["attention_mask"])
            ]
            for answer, sequences, scores in zip(answers(tool, "generate", artifact, requests), case[kind]["sequences"], case[kind]["scores"]):
                what = f"{case['settings']} {kind}"
                expect(len(answer["hypotheses"]) == len(sequences), f"{what}: {len(answer['hypotheses'])} hypotheses")
                for hypothesis, sequence, score in zip(answer["hypotheses"], sequences, scores):
                    # The operator leaves the end token out and fills with padding, 0, which also begins.
                    while len(sequence) > 1 and sequence[-1] == 0:
                        sequence = sequence[:-1]
                    ids = [token for token in hypothesis["ids"] if token != 1]
                    expect(ids == sequence, f"{what}: {ids}, expected {sequence}")
                    expect(abs(hypothesis["score"] - score) < 1e-4 * max(1, abs(score)), f"{what}: score {hypothesis['score']}, expected {score}")
    refused = tool.compile(os.path.join(folder, "model.onnx"), artifact, "--as-graph")
    expect_error(refused, 4, "BeamSearch")


# ---- narrow types ----


def precision(tool, folder, tmp):
    """Logits of exports in float16 and of dynamically quantised ones, to the tolerance that comes with them."""
    with open(os.path.join(folder, "meta.json"), encoding="utf-8") as file:
        meta = json.load(file)
    own = os.path.join(folder, "expected.npz")
    arrays = np.load(own if os.path.exists(own) else os.path.join(folder, meta["expected_in"], "expected.npz"))
    artifact = compiled(tool, folder, tmp)
    inputs, outputs = os.path.join(tmp, "x.npz"), os.path.join(tmp, "y.npz")
    for kind in ("single", "batch"):
        np.savez(inputs, **{name: arrays[f"{kind}.{name}"] for name in ("input_ids", "attention_mask", "decoder_input_ids")})
        expect_success(tool.run("transept", "run", artifact, "--entry", "score", "--inputs", inputs, "--outputs", outputs), kind)
        near(np.load(outputs)["logits"].astype(np.float32), arrays[f"{kind}.teacher_forced_logits"], kind, meta["ort_tolerance"])


# ---- graphs that do not generate ----


def encoder_only(tool, folder, tmp):
    """A directory with an encoder alone is a plain graph."""
    expected, arrays = load(folder)
    artifact = compiled(tool, folder, tmp)
    inputs, outputs = os.path.join(tmp, "x.npz"), os.path.join(tmp, "y.npz")
    for kind in ("single", "batch"):
        np.savez(inputs, **{name: arrays[f"{kind}.{name}"] for name in expected["inputs"][kind]})
        expect_success(tool.run("transept", "run", artifact, "--inputs", inputs, "--outputs", outputs), kind)
        results = np.load(outputs)
        expect(len(results.files) > 0, "no outputs")
        for name in results.files:
            near(results[name], arrays[f"{kind}.{name}"], f"{kind} {name}")


def tests(tool, root):
    def folder(name):
        return os.path.join(root, "tests/models", name)

    def test(function, name):
        return f"{function.__name__.replace('_', ' ')} {name}", lambda tmp: function(tool, folder(name), tmp)

    for name in ("marian-tiny", "nn-transformer-paper-op17", "gru-seq2seq-tiny"):
        yield test(alignments, name)
    yield test(prompts, "marian-tiny")
    yield test(decoder_alone, "gpt2-tiny")
    yield test(sampling, "marian-tiny")
    yield test(explicit_caches, "t2t-style")
    yield test(missing_cross_keys, "marian-tiny")
    yield test(overrides, "t2t-style")
    yield test(relative_bias, "t5-tiny")
    yield test(relative_bias, "longt5-tiny")
    yield test(search_operator, "t5-beam-search")
    yield test(encoder_only, "bert-tiny")
    yield test(precision, "marian-tiny-fp16-native")
    yield test(precision, "marian-tiny-int8")
