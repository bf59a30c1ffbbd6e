"""Parses the events again and again with the parsers of two Python packages; the orders are those of `benchmarks parse`."""

import sys
import time


def read_events():
    events = []
    for line in sys.stdin:
        if line == ".\n":
            break
        events.append(bytes.fromhex(line))
    return events


def payload(event):
    """The advertising data of the one report in an event."""
    start = 14 if event[3] == 0x02 else 29
    return event[start:start + event[start - 1]]


def prepare(name, events):
    """The parser and what it is given: Bumble takes whole events, bluetooth-data-tools only their payloads."""
    if name == "bumble":
        from bumble import hci
        return hci.HCI_Packet.from_bytes, events
    from bluetooth_data_tools import gap
    if not gap.__file__.endswith(".so"):
        sys.exit("bluetooth-data-tools is not compiled here: the comparison would be unfair")
    payloads = [payload(event) for event in events]
    if name == "empty":
        return None, payloads
    if name == "cached":
        return gap.parse_advertisement_data_bytes, payloads
    return gap._uncached_parse_advertisement_bytes, payloads


def run(parse, inputs, passes):
    start = time.perf_counter_ns()
    if parse is None:
        for _ in range(passes):
            for item in inputs:
                pass
    else:
        for _ in range(passes):
            for item in inputs:
                parse(item)
    return time.perf_counter_ns() - start


def main():
    events, prepared = read_events(), {}
    for line in sys.stdin:
        name, passes = line.split()
        if name not in prepared:
            prepared[name] = prepare(name, events)
        print(run(*prepared[name], int(passes)), flush=True)


main()
