"""Requests that it takes to discover a peer; on air each costs one or two connection intervals (30 to 100 ms)."""

import subprocess

import programs
from tables import show

# Worked out by reading the source code of each stack (its order of requests and its terminating conditions); the MTU
# exchange and what a stack reads besides are left out. MTU 23 / 247 / 517.
OTHERS = {
    "BlueZ": ["11/6/6", "43/20/18", "46/22/20", "85/11/8", "244/27/15"],
    "Bumble, habluetooth, trouble": ["18/15/15", "43/20/20", "49/26/26", "135/82/82", "321/125/123"],
    "go-ble, BTstack, PureSwift": ["15/12/12", "40/17/17", "45/22/22", "95/42/42", "281/85/83"],
    "noble, with descriptors": ["27/24/24", "52/29/29", "60/37/37", "295/242/242", "441/245/243"],
    "noble, without descriptors": ["12/9/9", "28/5/5", "32/9/9", "95/42/42", "241/45/43"],
    "bluepy, full": ["21/14/14", "76/53/53", "83/59/59", "175/82/82", "641/445/443"],
    "gatttool, all three lists": ["18/6/6", "78/55/53", "83/57/55", "172/18/11", "643/426/414"],
}
LEVELS = {
    "full": "BareBLE, every attribute", "subscribable": "BareBLE, ready to subscribe",
    "reconnect": "BareBLE, known and unchanged"}


def measure():
    done = subprocess.run(
        [programs.BUILD / "benchmarks", "discover"], capture_output=True, text=True, cwd=programs.ROOT)
    if done.returncode != 0:
        raise SystemExit(f"discovery failed: {done.stdout}{done.stderr}")
    counts, figures, databases = {}, {}, {}
    for line in done.stdout.splitlines():
        name, attributes, mtu, level, requests = line.split()
        databases[name] = attributes
        counts.setdefault((level, name), []).append(requests)
        figures[f"{name} at {mtu}, {level}"] = int(requests)
    rows = [[title, *("/".join(counts[level, name]) for name in databases)] for level, title in LEVELS.items()]
    rows += [[name, *values] for name, values in OTHERS.items()]
    show(
        "Requests to discover a database, MTU 23/247/517",
        ["stack", *(f"{name} ({attributes})" for name, attributes in databases.items())], rows,
        "BareBLE's are counted here, against the attribute server of BareBLETestKit; the others' follow from their code.")
    return figures
