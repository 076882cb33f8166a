#!/usr/bin/env python3
"""Draws the table of allreduce times in docs/benchmarks.md: scripts/allreduce_picture.py > docs/allreduce.svg"""
import math
import pathlib

LEFT, RIGHT, TOP, BOTTOM, WIDTH, HEIGHT = 70, 120, 50, 50, 760, 400
COLOURS = {"kolo, own": "#c0392b", "kolo, foreign": "#e67e22", "Open MPI": "#2c6fbb", "MPICH": "#5b8def",
           "Gloo": "#777777"}
UNITS = {"B": 1, "KB": 1024, "MB": 1024 ** 2}


def table():
    """Column names, and rows of (label, bytes, times)."""
    page = (pathlib.Path(__file__).parent.parent / "docs/benchmarks.md").read_text()
    lines = page[page.index("| size | kolo, foreign |"):].split("\n\n")[0].split("\n")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rows = []
    for label, *times in cells[2:]:
        number, unit = label.split()
        rows.append((label, int(number) * UNITS[unit], [float(t) for t in times]))
    return cells[0][1:], rows


def main():
    names, rows = table()
    low, high = 0.1, 100000
    first, last = math.log(rows[0][1]), math.log(rows[-1][1])

    def x(size):
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log(size) - first) / (last - first)

    def y(time):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(time / low) / math.log(high / low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="24" font-size="15">Time of one allreduce between two ranks of a host, '
           'in µs (less is better)</text>']
    for power in range(-1, 6):
        at = y(10.0 ** power)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#dddddd"/>'
                   f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{10.0 ** power:g}</text>')
    for label, size, _ in rows:
        out.append(f'<text x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{label}</text>')
    ends = []
    for name, colour in COLOURS.items():
        column = names.index(name)
        points = " ".join(f"{x(size):.1f},{y(times[column]):.1f}" for _, size, times in rows)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        ends.append((y(rows[-1][2][column]), name, colour))
    below = 0.0
    for at, name, colour in sorted(ends):  # labels do not cover each other
        below = max(at + 4, below + 14)
        out.append(f'<text x="{WIDTH - RIGHT + 8}" y="{below:.1f}" fill="{colour}">{name}</text>')
    print("\n".join(out + ["</svg>"]))


main()
