"""run.py [SECTION...]: the figures of Docs/users/performance.md, measured on this machine.

Sections: parsing, captures, start, screen, discovery, links, serving, facade, daemon; all of them without an argument. Prints a table for each, then every figure that
has a threshold. Status 0: all figures are within their thresholds; 1: one is above, or could not be measured.
"""

import sys

import captures
import daemon
import discovery
import facade
import links
import parsing
import programs
import screen
import serving
import start
from tables import Verdicts

SECTIONS = {
    "parsing": parsing, "captures": captures, "start": start, "screen": screen, "discovery": discovery, "links": links,
    "serving": serving, "facade": facade, "daemon": daemon,
}


def main(names):
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        print(f"run.py: the sections are {', '.join(SECTIONS)}", file=sys.stderr)
        return 64
    programs.build()
    verdicts = Verdicts()
    for name in names or SECTIONS:
        figures = SECTIONS[name].measure()
        verdicts.compare(name, figures)
    return verdicts.show()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
