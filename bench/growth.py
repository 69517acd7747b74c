#!/usr/bin/env python3
"""How speed grows with batch, beams, source, output and threads: Transept and CTranslate2 in turns, a table and pictures."""
import argparse
import csv
import pathlib
import statistics
import time

import run

POINT = {"batch": 1, "beams": 1, "source": 32, "tokens": 64, "threads": 2}  # where every curve passes
CURVES = {  # axis: values, and what else the curve fixes away from POINT
    "batch": ((1, 4, 8, 32, 64), {}),
    "beams": ((1, 4, 8), {"batch": 8}),
    "source": ((8, 32, 128, 512), {}),
    "tokens": ((16, 64, 256), {}),
    "threads": ((1, 2), {"batch": 8}),
}
PEER_SETTINGS = {"CT2_USE_MKL": "0", "CT2_FORCE_CPU_ISA": "AVX512"}  # its best one on processors with AVX-512


def measure(args, point):
    """Tokens per second of each contender: median and best of the rounds."""
    work = run.Work("base", "sentences", point["batch"], point["beams"], point["source"], point["tokens"], run.MEMORY)
    contenders = [run.Ours(args, work, "fp32", point["threads"], None),
                  run.Peer(args, work, "fp32", "ctranslate2", point["threads"], PEER_SETTINGS)]
    times = [[] for _ in contenders]
    for _ in range(args.rounds):
        for contender, list_ in zip(contenders, times):
            list_.append(run.turn(contender, args)[1])
            time.sleep(0.3)  # idle threads of the last one stop spinning after 0.2 s
    for contender in contenders:
        contender.close()
    return [(c.name.split()[0], c.tokens / statistics.median(t), c.tokens / min(t)) for c, t in zip(contenders, times)]


def draw(rows, out):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "transept"
    from matplotlib import pyplot
    figure, plots = pyplot.subplots(1, len(CURVES), figsize=(3.2 * len(CURVES), 3), constrained_layout=True)
    for plot, (axis, (values, fixed)) in zip(plots, CURVES.items()):
        for name in dict.fromkeys(r["name"] for r in rows):
            line = [(int(r["value"]), float(r["median"])) for r in rows if r["axis"] == axis and r["name"] == name]
            plot.plot(*zip(*line), marker="o", label=name)
        plot.set_xscale("log", base=2)
        plot.set_xticks(values, values)
        plot.minorticks_off()
        plot.set_ylim(bottom=0)
        plot.set_xlabel(axis + "".join(f" ({k} {v})" for k, v in fixed.items()))
    plots[0].set_ylabel("tokens per second")
    plots[0].legend()
    figure.savefig(out, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=pathlib.Path, required=True, help="where base/ is, made by export_random.py")
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the programs transept and transept-compile")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tries", type=int, default=2, help="of one call, while others are busy")
    parser.add_argument("--wait", type=float, default=60, help="for quiet, seconds at most")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="write OUT.csv and OUT.svg")
    args = parser.parse_args()
    rows, known = [], {}
    for axis, (values, fixed) in CURVES.items():
        for value in values:
            point = POINT | fixed | {axis: value}
            key = tuple(point.values())
            known[key] = known.get(key) or measure(args, point)
            for name, median, best in known[key]:
                rows.append({"axis": axis, "value": value, "name": name, "median": f"{median:.1f}", "best": f"{best:.1f}"})
                print(*rows[-1].values(), flush=True)
    with open(args.out.with_suffix(".csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    draw(rows, args.out.with_suffix(".svg"))


if __name__ == "__main__":
    main()
