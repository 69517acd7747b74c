#!/usr/bin/env python3
"""Measures rows of the tables in docs/performance.md: Transept and its peers in turns, in one run."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import numpy as np

import peers

HERE = pathlib.Path(__file__).resolve().parent


class Work(NamedTuple):
    model: str   # shape of export_random.py, a folder below --models
    kind: str    # sentences: forced to their length; clip: of features; words: of a text, natural ends; encoder: alone
    batch: int   # 0: the tool's own
    beams: int
    source: int
    tokens: int
    limit: str   # what the calibration has that no program can beat: gbytes_per_s or gflops


MEMORY, PEAK = "gbytes_per_s", "gflops"
WORKS = {
    "batch-1-greedy": Work("base", "sentences", 1, 1, 32, 64, MEMORY),
    "batch-1-beam-4": Work("base", "sentences", 1, 4, 32, 64, MEMORY),
    "batch-32-greedy": Work("base", "sentences", 32, 1, 32, 64, PEAK),
    "batch-32-beam-4": Work("base", "sentences", 32, 4, 32, 64, PEAK),
    "encoder-512": Work("base", "encoder", 1, 1, 512, 0, PEAK),
    "encoder-1024": Work("encoder", "encoder", 1, 1, 1024, 0, PEAK),
    "encoder-4096": Work("encoder", "encoder", 1, 1, 4096, 0, PEAK),
    "clip-greedy": Work("whisper", "clip", 1, 1, 0, 26, PEAK),
    "words-greedy": Work("g2p", "words", 0, 1, 0, 48, PEAK),
    "words-beam-4": Work("g2p", "words", 0, 4, 0, 48, PEAK),
}
PRECISIONS = ("fp32", "bf16", "int8")
ROWS = {work if precision == "fp32" else f"{work}-{precision}": (work, precision) for work in WORKS for precision in PRECISIONS}


def peers_of(work, precision):
    """Those that can do the work: names and precisions. bf16 is compared with whatever is exacter, int8 with int8 alone."""
    names = ["ctranslate2"] if work.kind != "encoder" else []
    names += ["onnxruntime"] if work.beams == 1 and work.kind != "words" else []
    names += ["openvino"] if work.beams == 1 and work.kind != "words" and precision != "int8" else []
    names += ["optimum"] if work.kind == "sentences" else []
    names += ["pytorch"] if work.kind in ("sentences", "words") and precision != "int8" else []
    if work.kind == "encoder" and work.model == "encoder" and precision == "int8":
        return []  # not exported in 8 bits
    narrow = {"fp32": (), "bf16": ("openvino", "pytorch"), "int8": names}[precision]
    return [(name, precision if name in narrow else "fp32") for name in names]


BUSY_CORES = 0.15  # of others: a turn during which they used more is repeated
DRIFT = 0.05       # of the calibration over a block: a block that moved more is repeated
TICK = os.sysconf("SC_CLK_TCK")


def busy_seconds():
    """Seconds all cores have spent on anything, other guests included, since the machine started."""
    user, nice, system, _, _, irq, softirq, steal = map(int, open("/proc/stat").readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICK


def process_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def wait_for_quiet(limit, seconds):
    """Waits until others use fewer than BUSY_CORES and the load is below `limit`, or for `seconds`."""
    end = time.monotonic() + seconds
    while True:
        before, begin = busy_seconds(), time.monotonic()
        time.sleep(2)
        cores = (busy_seconds() - before) / (time.monotonic() - begin)
        if (cores < BUSY_CORES and os.getloadavg()[0] < limit) or time.monotonic() > end:
            return


def cpus(threads):
    return sorted(os.sched_getaffinity(0))[-threads:]


def pinned(command, threads):
    return ["taskset", "-c", ",".join(map(str, cpus(threads))), *map(str, command)]


def artifact(args, work, precision, flags=()):
    """Compiled by the compiler beside the tool, again where that is newer."""
    source = {"g2p": peers.ROOT / "models/g2p"}.get(work.model, args.models / work.model / "onnx")
    name = precision
    if work.kind == "encoder":
        source, name = source / "encoder_model.onnx", "encoder-" + precision
    name += "".join(flags)
    path = args.models / work.model / f"{name}.tsp"
    newest = max(file.stat().st_mtime for file in (args.bin / "transept-compile", source))
    if not path.exists() or path.stat().st_mtime < newest:
        subprocess.run([args.bin / "transept", "compile", source, "-o", path, "--precision", precision, "-q", *flags], check=True)
    return path


class Ours:
    """A process for each turn: one call that is not counted, then one that is; of words, the whole text once."""

    def __init__(self, args, work, precision, threads, folder, flags=()):
        self.name, self.threads = " ".join(["transept", precision, *flags]), threads
        tool, path = args.bin / "transept", artifact(args, work, precision, flags)
        self.info = {"version": subprocess.check_output([tool, "--version"], text=True).split()[1]}
        self.words = work.kind == "words"
        self.tokens = len(peers.test_words()) if self.words else work.batch * (work.tokens or work.source)
        if self.words:
            self.input = "".join(word + "\n" for word in peers.test_words())
            flags = ["--num-beams", work.beams, "--length-penalty", 0.6, "--max-new-tokens", work.tokens]
            self.command = pinned([tool, "translate", path, "--threads", threads, "--json", "-q", *flags], threads)
            self.calls, self.start_cpu = 1, 0
            return

        def command(calls, source, tokens):
            flags = ["--batch", work.batch, "--num-beams", work.beams, "--source", source, "--tokens", tokens]
            if work.kind == "clip":
                flags += ["--inputs", args.models / work.model / "clip.npz"]
            if work.kind == "encoder":
                inputs = pathlib.Path(folder) / f"{source}.npz"
                ids = np.arange(1, source + 1).reshape(1, -1) % 900
                np.savez(inputs, input_ids=ids, attention_mask=np.ones_like(ids))
                flags = ["--inputs", inputs]
            return pinned([tool, "bench", path, "--threads", threads, "--warmup", calls - 1, "--repeat", 1, "--json", *flags], threads)

        self.command = command(2, work.source or 1, work.tokens or 1)
        self.calls, self.start_cpu = 2, float("inf")
        for _ in range(5):  # the least of them: what is left for the calls is rather too much than too little
            before = self.cpu_seconds()
            subprocess.run(command(1, 1, 1), check=True, stdout=subprocess.DEVNULL)
            self.start_cpu = min(self.start_cpu, self.cpu_seconds() - before)

    def cpu_seconds(self):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def check(self, tokens):
        if tokens != self.tokens:
            sys.exit(f"{self.name}: {tokens} tokens instead of {self.tokens}")

    def call(self):
        if self.words:
            done = subprocess.run(self.command, input=self.input, check=True, capture_output=True, text=True)
            self.check(done.stdout.count("\n"))
            return json.loads(done.stderr.splitlines()[-1])["seconds"]
        result = json.loads(subprocess.check_output(self.command, text=True))
        self.info |= {k: result[k] for k in ("level", "weight_bytes", "reserved_bytes", "resident_bytes", "step_read_bytes") if k in result}
        self.check(result.get("tokens", self.tokens))
        return result["call_milliseconds"]["best"] / 1e3

    def close(self):
        pass


class Peer:
    """A process for the whole block; its first call is not counted."""

    def __init__(self, args, work, precision, peer, threads, environment):
        self.name = " ".join([peer, precision, *(f"{k}={v}" for k, v in environment.items())])
        self.threads = threads
        command = [sys.executable, HERE / "peers.py", peer, "--model", args.models / work.model, "--threads", threads,
                   "--kind", work.kind, "--precision", precision, "--batch", work.batch, "--beams", work.beams,
                   "--source", work.source, "--tokens", work.tokens]
        self.tokens = len(peers.test_words()) if work.kind == "words" else work.batch * (work.tokens or work.source)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        self.process = subprocess.Popen(pinned(command, threads), env=clean | environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.info = json.loads(self.process.stdout.readline() or sys.exit(f"{self.name} does not start"))
        self.calls, self.start_cpu = 1, 0
        self.call()

    def cpu_seconds(self):
        return process_seconds(self.process.pid)

    def call(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        result = json.loads(self.process.stdout.readline())
        if result["tokens"] != self.tokens:
            sys.exit(f"{self.name}: {result['tokens']} tokens instead of {self.tokens}")
        self.info["resident_bytes"] = result["resident_bytes"]
        return result["seconds"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def turn(contender, args):
    """One timed call, again while others are busy; the quietest one counts, whatever its time."""
    tries = []
    for _ in range(args.tries):
        busy, own, begin = busy_seconds(), contender.cpu_seconds(), time.monotonic()
        seconds = contender.call()
        own = contender.cpu_seconds() - own
        others = (busy_seconds() - busy - own) / (time.monotonic() - begin)
        tries.append((max(0.0, others), seconds, (own - contender.start_cpu) / contender.calls))
        if tries[-1][0] < BUSY_CORES:
            break
        wait_for_quiet(99, args.wait / 10)
    return min(tries)


def calibrate(program, threads):
    return json.loads(subprocess.check_output(pinned([program, max(threads)], max(threads)), text=True))


def contenders_of(args, row, folder):
    work, precision = WORKS[ROWS[row][0]], ROWS[row][1]
    # Words are shared out to sessions or replicas, of which only the most are of interest.
    threads = [max(args.threads)] if work.kind == "words" else args.threads
    contenders = [Ours(args, work, precision, t, folder) for t in threads]
    if work.kind == "sentences" and work.batch == work.beams == 1 and precision == "fp32":
        contenders += [Ours(args, work, precision, t, folder, ["--two-stage-vocabulary"]) for t in threads]
    for peer, own in [] if args.no_peers else peers_of(work, precision):
        if args.peers and peer not in args.peers:
            continue
        settings = [{"CT2_USE_MKL": "0"}, {"CT2_USE_MKL": "1"}] if peer == "ctranslate2" else [{}]
        if own == "int8" and "GenuineIntel" not in open("/proc/cpuinfo").read():
            settings = settings[:1]  # MKL's products of 8 bits are twenty times slower on other processors
        if "avx512f" in open("/proc/cpuinfo").read():
            settings = [e | {"CT2_FORCE_CPU_ISA": "AVX512"} if e else e for e in settings]
        contenders += [Peer(args, work, own, peer, t, e) for e in settings for t in threads]
    return contenders


def block(args, row, program, folder):
    contenders = contenders_of(args, row, folder)
    wait_for_quiet(args.max_load, args.wait)
    load = [os.getloadavg()[0]]
    calibration = [calibrate(program, args.threads)]
    samples = [[] for _ in contenders]
    for _ in range(args.rounds):
        for contender, list_ in zip(contenders, samples):
            list_.append(turn(contender, args))
            time.sleep(0.3)  # idle threads of the last one stop spinning after 0.2 s
    wait_for_quiet(99, args.wait / 10)
    calibration.append(calibrate(program, args.threads))
    load.append(os.getloadavg()[0])
    results = []
    for contender, list_ in zip(contenders, samples):
        contender.close()
        times = [t[1] for t in list_]
        results.append({"name": contender.name, "threads": contender.threads, "seconds": times,
                        "others_cores": [round(t[0], 3) for t in list_], "best": contender.tokens / min(times),
                        "median": contender.tokens / statistics.median(times),
                        "cpu_seconds": statistics.median(t[2] for t in list_), **contender.info})
    before, after = calibration
    drift = max(abs(after[k] / before[k] - 1) for k in before)
    return {"calibration": calibration, "load": load, "drift": drift, "results": results}


def relative_to_limit(report):
    """Transept's best median over what the calibration gave, and how far that may be off by chance."""
    shown, limit = report["block"], WORKS[ROWS[report["row"]][0]].limit
    ours = max((r for r in shown["results"] if r["name"].startswith("transept") and "--" not in r["name"]), key=lambda r: r["median"])
    middle = statistics.median(ours["seconds"])
    deviation = statistics.median(abs(s - middle) for s in ours["seconds"]) / middle
    before, after = (c[limit] for c in shown["calibration"])
    # Of a median: 1.25 times that of the mean, and 1.48 median deviations are a standard deviation.
    error = 1.25 * 1.48 * deviation / len(ours["seconds"]) ** 0.5
    return {"limit": limit, "median": ours["median"], "threads": ours["threads"], "calibration": (before + after) / 2,
            "ratio": 2 * ours["median"] / (before + after), "noise": max(3 * error, abs(after / before - 1), 0.02)}


def markdown(report):
    work = WORKS[ROWS[report["row"]][0]]
    unit = {"sentences": "tok/s", "words": "words/s"}.get(work.kind, "ms")
    lines = [f"### {report['row']}", "",
             f"| | threads | median {unit} | best {unit} | processor s per call | resident MB | others, cores |",
             "|---|---|---|---|---|---|---|"]
    shown = report["block"]
    for r in shown["results"]:
        median, best, others = r["median"], r["best"], r["others_cores"]
        if unit == "ms":
            median, best = 1e3 * statistics.median(r["seconds"]), 1e3 * min(r["seconds"])
        resident = f"{r['resident_bytes'] / 1e6:.0f}" if "resident_bytes" in r else ""
        lines.append(f"| {r['name']} {r['version']} | {r['threads']} | {median:.1f} | {best:.1f} | "
                     f"{r['cpu_seconds']:.2f} | {resident} | {statistics.median(others):.2f}, at most {max(others):.2f} |")
    lines.append("")
    for peer, ratio in report["ratio"].items():
        lines.append(f"transept ÷ {peer}, medians, best setting of each: {ratio:.2f}.")
    for when, c, load in zip(("before", "after"), shown["calibration"], shown["load"]):
        lines.append(f"Calibration {when}: {c['gflops']:.0f} GFLOP/s, {c['gbytes_per_s']:.1f} GB/s; load {load:.2f}.")
    moved = f"moved {100 * shown['drift']:.0f} %" + (" (too much)" if shown["drift"] > DRIFT else "")
    lines.append(f"Calibration {moved}; block {report['blocks']} of at most {report['attempts']}; "
                 f"{report['date']}; {report['cpu']}.")
    return "\n".join(lines)


def machine():
    info = {k.strip(): v.strip() for k, v in (line.split(":", 1) for line in open("/proc/cpuinfo") if ":" in line)}
    return {"date": datetime.date.today().isoformat(),
            "cpu": f"{info.get('model name')} (family {info.get('cpu family')}, model {info.get('model')}), "
                   f"{len(os.sched_getaffinity(0))} cores",
            "features": sorted(f for f in info.get("flags", "").split() if f.startswith(("avx", "fma", "amx"))),
            "python": platform.python_version(), "kernel": platform.release()}


def measure(args, row, program, folder):
    blocks = []
    while len(blocks) < args.attempts and (not blocks or blocks[-1]["drift"] > DRIFT):
        blocks.append(block(args, row, program, folder))
    shown = min(blocks, key=lambda b: b["drift"])
    best = {}
    for r in shown["results"]:
        name = r["name"] if "--" in r["name"] else r["name"].split()[0]  # with an option, it is one more contender
        best[name] = max(best.get(name, 0), r["median"])
    report = {"row": row, **machine(), "threads": args.threads, "rounds": args.rounds, "attempts": args.attempts,
              "blocks": len(blocks), "block": shown, "all": blocks,
              "ratio": {k: best["transept"] / v for k, v in best.items() if k != "transept"}}
    report["relative"] = relative_to_limit(report)
    return report


def add_to_summary(path, report):
    """What bench/compare reads: rows measured on one kind of machine, the last result of each."""
    summary = json.loads(path.read_text()) if path.exists() else {}
    own = {k: report[k] for k in ("cpu", "features")}
    if {k: summary.get(k) for k in own} != own:
        summary = own | {"rows": {}}
    summary["rows"][report["row"]] = report["relative"] | {"date": report["date"], "rounds": report["rounds"], "peers": report["ratio"]}
    path.write_text(json.dumps(summary, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="+", choices=ROWS, metavar="row", help=", ".join(ROWS))
    parser.add_argument("--models", type=pathlib.Path, required=True, help="folder of folders of export_random.py, named by shape")
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the programs transept and transept-compile")
    parser.add_argument("--threads", type=lambda s: [int(t) for t in s.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peers", type=lambda s: s.split(","), help="these alone: " + ", ".join(peers.PEERS))
    parser.add_argument("--no-peers", action="store_true", help="Transept alone, for bench/compare")
    parser.add_argument("--attempts", type=int, default=2, help="blocks at most, while the calibration moves")
    parser.add_argument("--tries", type=int, default=3, help="of one call, while others are busy")
    parser.add_argument("--max-load", type=float, default=1.5, help="wait until the load is below this")
    parser.add_argument("--wait", type=float, default=180, help="for quiet, seconds at most")
    parser.add_argument("--out", type=pathlib.Path, help="write ROW.json and ROW.md into this folder")
    parser.add_argument("--summary", type=pathlib.Path, help="put what bench/compare needs into this file, beside other rows")
    args = parser.parse_args()
    if max(args.threads) > len(os.sched_getaffinity(0)):
        parser.error("more threads than cores")
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "calibrate"
        flags = ["-O3", "-march=native", "-ffp-contract=fast", "-pthread"]
        subprocess.run(["cc", *flags, HERE / "calibrate.c", "-o", program], check=True)
        for row in args.rows:
            report = measure(args, row, program, folder)
            text = markdown(report)
            print(text + "\n", flush=True)
            if args.out:
                args.out.mkdir(parents=True, exist_ok=True)
                (args.out / f"{row}.json").write_text(json.dumps(report, indent=1) + "\n")
                (args.out / f"{row}.md").write_text(text + "\n")
            if args.summary:
                add_to_summary(args.summary, report)


if __name__ == "__main__":
    main()
