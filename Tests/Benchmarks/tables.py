"""Tables for people, and the comparison with thresholds/SECTION.json.

A threshold is the most that a figure may be; figures with thresholds are ratios, counts and sizes, which depend little on
the machine.
"""

import json
from pathlib import Path

THRESHOLDS = Path(__file__).parent / "thresholds"


def show(title, heads, rows, note=""):
    cells = [heads] + [[text(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    print(f"\n{title}\n")
    for number, row in enumerate(cells):
        first, rest = row[0].ljust(widths[0]), [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  " + "   ".join([first, *rest]).rstrip())
        if number == 0:
            print("  " + "-" * (sum(widths) + 3 * (len(widths) - 1)))
    if note:
        print(f"\n  {note}")


def text(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 10 else f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


class Verdicts:
    def __init__(self):
        self.rows, self.failed = [], 0

    def compare(self, section, figures):
        for name, most in json.loads((THRESHOLDS / f"{section}.json").read_text()).items():
            figure = figures.get(name)
            good = figure is not None and figure <= most
            self.failed += not good
            verdict = "ok" if good else "NOT MEASURED" if figure is None else "ABOVE"
            self.rows.append([f"{section}: {name}", figure, most, verdict])

    def show(self):
        show("Thresholds (Tests/Benchmarks/thresholds)", ["figure", "measured", "at most", ""], self.rows)
        print(f"\n{len(self.rows) - self.failed} within, {self.failed} not")
        return 1 if self.failed else 0
