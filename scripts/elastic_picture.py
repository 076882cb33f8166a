#!/usr/bin/env python3
"""Draws the speed of a job whose ranks come and go.

    scripts/elastic_picture.py LOG > elastic.svg

LOG is what `kolo_digits_elastic --log LOG` writes: a line for each step with its time in seconds, the number of ranks
and the samples of the step.
"""
import math
import sys

LEFT, RIGHT, TOP, BOTTOM, WIDTH, HEIGHT = 70, 30, 64, 50, 760, 360
WINDOW = 0.5  # seconds that a point of the curve stands for
LOST, CAME = "#c0392b", "#2e8b57"


def steps_of(path):
    """(seconds since the first step, ranks, samples) of each step."""
    steps = []
    with open(path, encoding="utf-8") as log:
        for number, line in enumerate(log, 1):
            try:
                time, ranks, samples = line.split()
                steps.append((float(time), int(ranks), int(samples)))
            except ValueError:
                # A rank that is killed while it writes leaves half a line.
                print(f"{path}:{number}: not a step: {line.strip()}", file=sys.stderr)
    if len(steps) < 2:
        sys.exit(f"elastic_picture: {path} has fewer than two steps; was the job started with --log?")
    steps.sort()
    return [(time - steps[0][0], ranks, samples) for time, ranks, samples in steps]


def changes_of(steps):
    """(seconds, ranks before, ranks after) of each new group."""
    return [(b[0], a[1], b[1]) for a, b in zip(steps, steps[1:]) if a[1] != b[1]]


def speeds_of(steps):
    """(seconds, samples a second): the samples of a step are spread over the time since the step before."""
    end = steps[-1][0]
    bins = [0.0] * max(1, math.ceil(end / WINDOW))
    for (start, _, _), (stop, _, samples) in zip(steps, steps[1:]):
        first, last = int(start / WINDOW), min(int(stop / WINDOW), len(bins) - 1)
        for index in range(first, last + 1):
            shared = min(stop, (index + 1) * WINDOW) - max(start, index * WINDOW)
            bins[index] += samples * (shared / (stop - start) if stop > start else 1)
    widths = [min(end, (i + 1) * WINDOW) - i * WINDOW for i in range(len(bins))]
    return [(i * WINDOW + width / 2, samples / width)
            for i, (samples, width) in enumerate(zip(bins, widths)) if width > WINDOW / 4]


def tick_of(most):
    """1, 2 or 5 times a power of ten, so that about five ticks fit."""
    power = 10 ** math.floor(math.log10(most / 5))
    return next(power * times for times in (1, 2, 5, 10) if most / (power * times) <= 6)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    steps = steps_of(sys.argv[1])
    speeds, changes = speeds_of(steps), changes_of(steps)
    end = max(steps[-1][0], 1e-3)
    tick = tick_of(max(speed for _, speed in speeds))
    top = tick * math.ceil(max(speed for _, speed in speeds) / tick)

    def x(seconds):
        return LEFT + (WIDTH - LEFT - RIGHT) * seconds / end

    def y(speed):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * speed / top

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="20" font-size="15">Samples a second of an elastic job</text>',
           f'<text x="{LEFT}" y="38"><tspan fill="{LOST}">red: ranks are lost or leave</tspan>, '
           f'<tspan fill="{CAME}">green: ranks come</tspan>; the numbers are ranks before and after</text>']
    for i in range(round(top / tick) + 1):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(i * tick):.1f}" y2="{y(i * tick):.1f}" '
                   f'stroke="#dddddd"/><text x="{LEFT - 8}" y="{y(i * tick) + 4:.1f}" text-anchor="end">'
                   f'{i * tick:g}</text>')
    step = tick_of(end)
    for i in range(int(end / step) + 1):
        out.append(f'<text x="{x(i * step):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{i * step:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">seconds</text>')
    for seconds, before, after in changes:
        colour = CAME if after > before else LOST
        out.append(f'<line x1="{x(seconds):.1f}" x2="{x(seconds):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" '
                   f'stroke="{colour}" stroke-dasharray="4,3"/><text x="{x(seconds) + 4:.1f}" y="{TOP - 6}" '
                   f'fill="{colour}">{before} → {after}</text>')
    points = " ".join(f"{x(seconds):.1f},{y(speed):.1f}" for seconds, speed in speeds)
    out.append(f'<polyline points="{points}" fill="none" stroke="#1f5fa8" stroke-width="2"/>')
    print("\n".join(out + ["</svg>"]))


main()
