"""Scores of given outputs against PyTorch's logits, and the same bits whatever stands beside a row.

Teacher-forced logits come from expected.npz of tests/models. The probes change what a row must not see (later target tokens,
padding, other rows) and compare bits: an attention weight other than 0 there would show.
"""

import json
import os

import numpy as np
from tool import Failed, expect, expect_success

# One folder for each form of the graph; folders that share weights with one of these add nothing here but their layout.
MODELS = ("marian-tiny", "nn-transformer-paper-op14", "nn-transformer-paper-op17", "nn-transformer-dynamo-op18",
          "nn-transformer-dynamo-op18-causal", "nn-transformer-dynamo-op23", "nn-transformer-dynamo-op23-causal", "t2t-style")  # fmt: skip
TOLERANCE = 1e-4
SOURCES = ("input_ids", "src", "inputs")
MASKS = ("attention_mask", "src_key_padding_mask")


class Reference:
    """What PyTorch computed for a folder of tests/models."""

    def __init__(self, folder):
        with open(os.path.join(folder, "meta.json"), encoding="utf-8") as file:
            meta = json.load(file)
        if not os.path.exists(os.path.join(folder, "expected.npz")):
            folder = os.path.normpath(os.path.join(folder, meta["expected_in"]))
        with open(os.path.join(folder, "expected.json"), encoding="utf-8") as file:
            expected = json.load(file)
        self.arrays = np.load(os.path.join(folder, "expected.npz"))
        self.start = expected.get("decoder_start_token_id", expected.get("bos"))
        self.eos = expected.get("eos_token_id", expected.get("eos"))
        self.pad = expected.get("pad_token_id", expected.get("pad"))

    def get(self, kind, *names):
        """The first of these arrays that the model has, under its name."""
        return next(((name, self.arrays[f"{kind}.{name}"]) for name in names if f"{kind}.{name}" in self.arrays.files), None)

    def encoder_inputs(self, kind):
        return dict(filter(None, (self.get(kind, *SOURCES), self.get(kind, *MASKS))))

    def keep(self, kind):
        """True where the source is no padding."""
        mask = self.get(kind, *MASKS)
        if mask is None:
            return self.get(kind, *SOURCES)[1] != self.pad
        return mask[1] == 0 if mask[0] == "src_key_padding_mask" else mask[1] != 0

    def decoder_inputs(self, kind):
        """Beginning with the start token, whatever the graph shifts itself."""
        name, ids = self.get(kind, "decoder_input_ids", "tgt", "targets")
        if name == "targets":
            ids = np.concatenate([np.full((len(ids), 1), self.start, ids.dtype), ids[:, :-1]], 1)
        return ids

    def logits(self, kind):
        return self.arrays[f"{kind}.teacher_forced_logits"]

    def settings(self):
        return {"decoder_start_token_id": self.start, "eos_token_id": self.eos, "pad_token_id": self.pad}


def log_softmax(logits):
    shifted = logits.astype("f8") - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def score_entry(tool, artifact, inputs, tmp):
    files = [os.path.join(tmp, name) for name in ("x.npz", "y.npz")]
    np.savez(files[0], **inputs)
    expect_success(tool.run("transept", "run", artifact, "--entry", "score", "--inputs", files[0], "--outputs", files[1]), "run")
    with np.load(files[1]) as outputs:
        return outputs["logits"]


def compile_model(tool, folder, tmp):
    artifact = os.path.join(tmp, "m.tsp")
    expect_success(tool.compile(folder, artifact), "compile")
    return artifact


def check_entry(tool, folder, artifact, tmp):
    reference = Reference(folder)
    for kind in ("single", "batch"):
        inputs = {**reference.encoder_inputs(kind), "decoder_input_ids": reference.decoder_inputs(kind)}
        difference = np.abs(score_entry(tool, artifact, inputs, tmp) - reference.logits(kind)).max()
        expect(difference <= TOLERANCE, f"{kind}: logits differ by {difference:.3g}")


def check_command(tool, folder, artifact, tmp):
    reference = Reference(folder)
    for kind in ("single", "batch"):
        requests, wanted = [], []
        decoder, logs = reference.decoder_inputs(kind), log_softmax(reference.logits(kind))
        sources = reference.get(kind, *SOURCES)[1]
        for source, keep, ids, log in zip(sources, reference.keep(kind), decoder, logs):
            target = [int(token) for token in ids[1:]]
            request = {"input_ids": [int(token) for token in source[keep]], "target_ids": target}
            requests.append(json.dumps({**request, "decoder_start_token_id": reference.start, "pad_token_id": reference.pad}) + "\n")
            wanted.append([log[i, token] for i, token in enumerate(target)])
        result = tool.run("transept", "score", artifact, stdin="".join(requests))
        expect_success(result, kind)
        answers = [json.loads(line) for line in result.stdout.splitlines()]
        expect(len(answers) == len(wanted), f"{kind}: {len(answers)} answers for {len(wanted)} pairs")
        for i, (answer, want) in enumerate(zip(answers, wanted)):
            expect(len(answer["token_scores"]) == len(want), f"{kind} row {i}: {len(answer['token_scores'])} scores for {len(want)} tokens")
            difference = np.abs(np.subtract(answer["token_scores"], want)).max()
            expect(difference <= TOLERANCE, f"{kind} row {i}: log-probabilities differ by {difference:.3g}")
            expect(abs(answer["score"] - sum(answer["token_scores"])) < 1e-9, f"{kind} row {i}: the score is not their sum")


def same_rows(kept, probe, what):
    expect(kept.tobytes() == probe.tobytes(), f"{what}: {np.count_nonzero(kept != probe)} of {kept.size} logits have other bits")


def check_unseen(tool, folder, artifact, tmp):
    """Later tokens, padding and other rows weigh exactly 0."""
    reference = Reference(folder)
    encoder, decoder = reference.encoder_inputs("batch"), reference.decoder_inputs("batch")
    source, keep = reference.get("batch", *SOURCES)[0], reference.keep("batch")

    def logits(encoder, decoder):
        return score_entry(tool, artifact, {**encoder, "decoder_input_ids": decoder}, tmp)

    whole = logits(encoder, decoder)
    future = decoder.copy()
    half = decoder.shape[1] // 2
    future[:, half:] = (future[:, half:] + 7) % whole.shape[-1]
    same_rows(whole[:, :half], logits(encoder, future)[:, :half], "other later tokens")
    if reference.get("batch", *MASKS):
        padding = {**encoder, source: np.where(keep, encoder[source], 5)}
        same_rows(whole, logits(padding, decoder), "other ids under the padding mask")
    for row in range(len(decoder)):
        alone = {name: array[row : row + 1, keep[row]] for name, array in encoder.items()}
        same_rows(whole[row : row + 1], logits(alone, decoder[row : row + 1]), f"row {row} alone and without padding")


def check_generated(tool, folder, artifact, tmp):
    """A padded request is the request; each run says the same; scores are what `score` says of the answer."""
    reference = Reference(folder)
    encoder, keep = reference.encoder_inputs("batch"), reference.keep("batch")
    source = reference.get("batch", *SOURCES)[0]
    plain, padded, settings = [], [], {**reference.settings(), "max_new_tokens": 12, "return_token_scores": True}
    for row in range(len(keep)):
        path = os.path.join(tmp, f"row{row}.npz")
        np.savez(path, **{name: array[row : row + 1] for name, array in encoder.items()})
        for beams in (1, 4):
            own = {**settings, "num_beams": beams, "num_return_sequences": beams, "length_penalty": 0.6}
            own = {**own, "search": "tensor2tensor"} if beams > 1 else own
            ids = [int(token) for token in encoder[source][row, keep[row]]]
            plain.append(json.dumps({"input_ids": ids, **own}) + "\n")
            padded.append(json.dumps({"inputs": path, **own}) + "\n")
    answers = []
    for what, requests, flags in (("plain", plain, ()), ("again", plain, ("--threads", "2")), ("padded", padded, ("--batch", "3", "--threads", "1"))):
        result = tool.run("transept", "generate", artifact, *flags, stdin="".join(requests))
        expect_success(result, what)
        answers.append([json.loads(line)["hypotheses"] for line in result.stdout.splitlines()])
        expect(len(answers[-1]) == len(plain), f"{what}: {len(answers[-1])} answers for {len(plain)} requests")
        wrong = [i for i, (a, b) in enumerate(zip(answers[-1], answers[0])) if a != b]
        expect(not wrong, f"{what}: other answers for requests {wrong}")
    for hypotheses in answers[0][1::2]:
        for hypothesis in hypotheses:
            length = len(hypothesis["ids"]) - 1  # without the start token
            want = sum(hypothesis["token_scores"]) / ((5 + length) / 6) ** 0.6
            expect(abs(hypothesis["score"] - want) <= 1e-5 * abs(want), f"score {hypothesis['score']}, by the rule of Tensor2Tensor {want}")


CHECKS = {"score entry": check_entry, "score command": check_command, "unseen": check_unseen, "generated": check_generated}


def run_checks(tool, folder, tmp):
    """All checks on one artifact: compiling is what takes time."""
    artifact = compile_model(tool, folder, tmp)
    wrong = []
    for name, check in CHECKS.items():
        try:
            check(tool, folder, artifact, tmp)
        except Failed as why:
            wrong.append(f"{name}: {why}")
    expect(not wrong, "; ".join(wrong))


def tests(tool, root):
    for model in MODELS:
        folder = os.path.join(root, "tests/models", model)
        yield f"answers {model}", lambda tmp, folder=folder: run_checks(tool, folder, tmp)
