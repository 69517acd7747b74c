#!/usr/bin/env python3
"""Tests on models that are not part of the repository: the layouts of g2p, annalog, Whisper tiny.en, models of real size.

Usage: large.py MODELS_DIR [--bin DIR] [--only WORD,...] [--whisper EXPORT_DIR] [-v]. MODELS_DIR holds g2p/{split,merged,nopast,
monolith}, annalog and whisper-tiny-en as their README files describe them, and opus-mt and nllb-600m as bench/export_random.py
makes them; a model that is not there is skipped and named.
EXPORT_DIR is the `onnx` folder that whisper-tiny-en/export_whisper.py writes; default: whisper-tiny-en/onnx.
Prints a line per failure, and at the end 'N passed, N failed'.
"""

import argparse
import json
import os
import sys
import tempfile
import wave

import numpy as np
from answers import log_softmax, score_entry
from compiler import compile_measured
from run import run_test
from tool import Tool, expect, expect_success

HERE = os.path.dirname(os.path.abspath(__file__))
LAYOUTS = ("split", "merged", "nopast", "monolith")
SCORE_TOLERANCE = 1e-4


def load(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


def generate(tool, artifact, requests, *flags):
    result = tool.run("transept", "generate", artifact, *flags, stdin="".join(json.dumps(r) + "\n" for r in requests), timeout=900)
    expect_success(result, "generate")
    answers = [json.loads(line)["hypotheses"] for line in result.stdout.splitlines()]
    expect(len(answers) == len(requests), f"{len(answers)} answers for {len(requests)} requests")
    return answers


def check_layouts(tool, folder, tmp):
    """Whatever was exported: one program, one set of answers; scores as PyTorch's."""
    reference = load(folder, "samples.json")
    programs, answers = {}, {}
    for layout in LAYOUTS:
        artifact, dumps, report = (os.path.join(tmp, f"{layout}{end}") for end in (".tsp", "-dumps", ".json"))
        expect_success(tool.compile(os.path.join(folder, layout), artifact, "--dump-ir", dumps, "--report", report), layout)
        result = tool.run("transept-opt", os.path.join(dumps, "05-stage.mlir"), "--normalize")
        expect_success(result, layout)
        programs.setdefault(result.stdout, []).append(layout)
        page = load(report)
        expect(page["attention"]["fused"] == page["attention"]["sites"], f"{layout}: attention {page['attention']}")
        expect(page["shape_ops_left"] == 0, f"{layout}: {page['shape_ops_left']} shape ops left")
        # Whoever exports no caches is told where they come from; a decoder of a whole prefix goes before exported ones.
        how = "caches as in the export" if layout in ("split", "merged") else "caches derived"
        expect(any(line.startswith(how) for line in page["staging"]), f"{layout}: {page['staging']}")
        for mode in ("greedy", "beam4"):
            requests = [{"text": sample["text"], **reference["settings"][mode]} for sample in reference["samples"]]
            got = generate(tool, artifact, requests)
            answers.setdefault(mode, got)
            expect(got == answers[mode], f"{layout}, {mode}: not the answers of {LAYOUTS[0]}")
    expect(len(programs) == 1, f"{len(programs)} programs after staging: {sorted(programs.values())}")
    for sample, greedy, beam in zip(reference["samples"], answers["greedy"], answers["beam4"]):
        expect([h["ids"] for h in greedy] == [sample["greedy"]["ids"]], f"{sample['text']}: {greedy}")
        expect([h["ids"] for h in beam] == [h["ids"] for h in sample["beam4"]], f"{sample['text']}: {beam}")
        worst = max(abs(h["score"] - w["score"]) for h, w in zip(beam, sample["beam4"]))
        expect(worst <= SCORE_TOLERANCE, f"{sample['text']}: scores differ by {worst:.2g}")


# annalog: an export without config.json; what that would say comes with each request.
ANNALOG = {"decoder_start_token_id": 2, "eos_token_id": 3, "pad_token_id": 1, "max_length": 102}


def annalog_beam(tool, artifact, source, width, tmp):
    """The package's own rule: sums of log-probabilities, finished hypotheses leave the beam, stop when `width` are finished."""
    finished, alive = [], [(0.0, [ANNALOG["decoder_start_token_id"]])]
    while alive and len(finished) < width and len(alive[0][1]) < ANNALOG["max_length"]:
        sources = np.array([source] * len(alive))
        inputs = {"input_ids": sources, "attention_mask": np.ones_like(sources), "decoder_input_ids": np.array([ids for _, ids in alive])}
        totals = log_softmax(score_entry(tool, artifact, inputs, tmp)[:, -1]) + np.array([[score] for score, _ in alive])
        following = []
        for place in np.argsort(-totals.reshape(-1), kind="stable")[:width]:
            row, token = divmod(int(place), totals.shape[1])
            ids = alive[row][1] + [token]
            (finished if token == ANNALOG["eos_token_id"] else following).append((float(totals[row, token]), ids))
        alive = following
    return sorted(finished, key=lambda hypothesis: -hypothesis[0])[:width]


def check_annalog(tool, folder, tmp):
    artifact = os.path.join(tmp, "annalog.tsp")
    expect_success(tool.compile(folder, artifact), "compile")
    samples = load(folder, "samples.json")["samples"]
    requests = [{"input_ids": sample["input_ids"], **ANNALOG} for sample in samples]
    for sample, hypotheses in zip(samples, generate(tool, artifact, requests)):
        expect(hypotheses[0]["ids"] == sample["greedy_ids"], f"greedy, {sample['name']}: {hypotheses[0]['ids']}")
    for sample in samples:
        got = annalog_beam(tool, artifact, sample["input_ids"], 4, tmp)
        expect([ids for _, ids in got] == [h["ids"] for h in sample["beam4"]], f"its own beams, {sample['name']}: {got}")
        worst = max(abs(score - h["score"]) for (score, _), h in zip(got, sample["beam4"]))
        expect(worst <= SCORE_TOLERANCE, f"its own beams, {sample['name']}: scores differ by {worst:.2g}")
    # One setting of ours, pinned: what the program said when its logits were checked as above.
    pinned = load(HERE, "annalog.json")
    expect(pinned["names"] == [sample["name"] for sample in samples], "annalog.json is of other samples")
    for name, hypotheses, want in zip(pinned["names"], generate(tool, artifact, [{**r, **pinned["settings"]} for r in requests]), pinned["answers"]):
        expect([h["ids"] for h in hypotheses] == [h["ids"] for h in want], f"pinned, {name}: {hypotheses}")
        worst = max(abs(h["score"] - w["score"]) for h, w in zip(hypotheses, want))
        expect(worst <= SCORE_TOLERANCE, f"pinned, {name}: scores differ by {worst:.2g}")


# Whisper's features: 30 s at 16 kHz, windows of 400 at steps of 160, 80 mel bands up to 8 kHz on Slaney's scale and norm.
RATE, SECONDS, WINDOW, STEP, BANDS = 16000, 30, 400, 160, 80


def mel_filters():
    def hertz(mel):  # linear to 1 kHz, then 27 mels for a factor of 6.4
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))

    top = 15 + 27 * np.log(RATE / 2 / 1000) / np.log(6.4)
    edges = hertz(np.linspace(0, top, BANDS + 2))
    bins = np.linspace(0, RATE / 2, WINDOW // 2 + 1)
    rise = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    fall = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    return np.maximum(0, np.minimum(rise, fall)) * (2 / (edges[2:] - edges[:-2]))[:, None]


def features(path):
    if path.endswith(".wav"):
        with wave.open(path) as file:
            content = file.readframes(file.getnframes())
    else:
        with open(path, "rb") as file:
            content = file.read()
    sound = np.zeros(RATE * SECONDS)
    samples = np.frombuffer(content, "<i2")[: len(sound)] / 32768
    sound[: len(samples)] = samples
    padded = np.pad(sound, WINDOW // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::STEP][:-1]
    power = np.abs(np.fft.rfft(frames * np.hanning(WINDOW + 1)[:-1])) ** 2
    bands = np.log10(np.maximum(mel_filters() @ power.T, 1e-10))
    return ((np.maximum(bands, bands.max() - 8) + 4) / 4).astype("f4")[None]


def check_whisper(tool, folder, export, tmp):
    reference = load(folder, "samples.json")
    artifact = os.path.join(tmp, "whisper.tsp")
    expect_success(tool.compile(export, artifact), "compile")
    settings = {
        "decoder_input_ids": reference["prompt_ids"], "eos_token_id": reference["eos"], "max_length": 200, "num_beams": 1,
        "suppress_tokens": reference["suppress_ids"], "begin_suppress_tokens": reference["suppress_ids_begin"],
    }  # fmt: skip
    requests = []
    for number, sample in enumerate(reference["samples"]):
        array = features(os.path.join(folder, "audio", sample["audio"]))
        ready = os.path.join(folder, os.path.splitext(sample["audio"])[0] + ".features.npy")
        if os.path.exists(ready):
            difference = np.abs(array - np.load(ready)).max()
            expect(difference < 1e-3, f"{sample['audio']}: features differ by {difference:.2g}; the test is wrong, not the model")
        requests.append({"inputs": os.path.join(tmp, f"{number}.npz"), **settings})
        np.savez(requests[-1]["inputs"], input_features=array)
    for flags in (("--batch", "1"), ("--batch", "8", "--threads", "2")):
        for sample, hypotheses in zip(reference["samples"], generate(tool, artifact, requests, *flags)):
            expect(hypotheses[0]["ids"] == sample["ids"], f"{sample['audio']}: {hypotheses[0]['ids']}, expected {sample['ids']}")


# What compiling may cost, as multiples of the weights that differ.
PEAK_MEMORY, ARTIFACT_SIZE = 2.2, 1.05


def check_real_size(tool, folder, tmp):
    """Compiles with no flag, within bounds that are printed, and says what PyTorch says."""
    reference = load(folder, "samples.json")
    artifact, weights = os.path.join(tmp, "m.tsp"), reference["weight_bytes"]
    result, memory, seconds = compile_measured(tool, os.path.join(folder, "onnx"), artifact)
    expect_success(result, "compile")
    size = os.path.getsize(artifact)
    print(f"{os.path.basename(folder)}: weights {weights / 1e6:.0f} MB, compiled in {seconds:.0f} s, peak memory {memory / weights:.2f} times the "
          f"weights, artifact {size / weights:.3f} times", flush=True)  # fmt: skip
    expect(memory <= PEAK_MEMORY * weights, f"{memory} bytes of memory for {weights} bytes of weights")
    expect(size <= ARTIFACT_SIZE * weights, f"an artifact of {size} bytes for {weights} bytes of weights")
    expect(len({token for sample in reference["requests"] for token in sample["ids"]}) > 10, "the samples say next to nothing")
    requests = [{"input_ids": sample["input_ids"], **reference["settings"]} for sample in reference["requests"]]
    for flags in (("--batch", "1"), ("--batch", "3")):
        for sample, hypotheses in zip(reference["requests"], generate(tool, artifact, requests, *flags)):
            expect(hypotheses[0]["ids"] == sample["ids"], f"{hypotheses[0]['ids']}, expected {sample['ids']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models")
    parser.add_argument("--bin")
    parser.add_argument("--only", default="", help="run tests whose names contain one of these words")
    parser.add_argument("--whisper")
    parser.add_argument("-v", action="store_true", dest="verbose")
    arguments = parser.parse_args()
    tool = Tool(arguments.bin)
    g2p, annalog, whisper, opus, nllb = (
        os.path.join(arguments.models, name) for name in ("g2p", "annalog", "whisper-tiny-en", "opus-mt", "nllb-600m")
    )
    export = arguments.whisper or os.path.join(whisper, "onnx")
    tests = (
        ("large g2p layouts", os.path.join(g2p, "monolith"), lambda tmp: check_layouts(tool, g2p, tmp)),
        ("large annalog", annalog, lambda tmp: check_annalog(tool, annalog, tmp)),
        ("large whisper", export, lambda tmp: check_whisper(tool, whisper, export, tmp)),
        ("large opus-mt", opus, lambda tmp: check_real_size(tool, opus, tmp)),
        ("large nllb-600m", nllb, lambda tmp: check_real_size(tool, nllb, tmp)),
    )
    passed = failed = 0
    for name, needed, function in tests:
        if not any(word in name for word in arguments.only.split(",")):
            continue
        if not os.path.isdir(needed):
            print(f"{name}: skipped, there is no {needed}")
            continue
        name, why, seconds = run_test((name, function))
        passed, failed = passed + (why is None), failed + (why is not None)
        if why or arguments.verbose:
            print(f"{name}: {why or f'ok, {seconds:.1f} s'}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
