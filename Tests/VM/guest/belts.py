"""The heart-rate daemon of the examples and its belt, for the tests of long-running operation.

The belt is Bumble's; it counts its beats and keeps a log of its own (peripherals/belt.py).
"""

import shutil
import signal
import time

from harness import *

LOGGER, TRIALS = os.environ["HEART_RATE_LOGGER"], os.environ["LINK_TRIALS"]
BELT = "D1:00:00:00:00:05/random"
CROWD = [f"D1:00:00:00:02:{number:02X}/random" for number in range(10)]
BELT_LOG = Path("/run/vm/peers/Belt.log")
STATE = Path("/run/vm/state")
MTU, HASH, READ, WRITE = "ATT_EXCHANGE_MTU_REQUEST", "ATT_READ_BY_TYPE_REQUEST", "ATT_READ_REQUEST", "ATT_WRITE_REQUEST"
SET_POWERED, BUSY, BLOCKED = 5, 0x0A, 0x12


class BeltLog:
    """The belt's log entries since this object was created."""

    def __init__(self):
        self.start = BELT_LOG.stat().st_size

    @property
    def events(self):
        return noted(BELT_LOG, self.start)

    @property
    def links(self):
        """The events of each link, from its beginning to its end."""
        links = []
        for event in self.events:
            if event["event"] == "connected":
                links.append([])
            if links:
                links[-1].append(event)
        return links

    def count(self, kind):
        return sum(event["event"] == kind for event in self.events)

    @property
    def beats(self):
        return [event["number"] for event in self.events if event["event"] == "beat"]


def value_handle(uuid):
    """Returns the handle of the belt's characteristic value of this kind."""
    return next(row["handle"] for row in tree("Belt") if row.get("uuid") == uuid and "properties" in row)


def beats_in(lines):
    return [int(line.split()[1]) for line in lines if line.startswith("bpm ")]


def daemon(*options):
    return Program(*options, program=LOGGER, env={**os.environ, "STATE_DIRECTORY": str(STATE)}, timeout=3 * PATIENCE)


def forget():
    """Removes what the daemon has stored in earlier runs."""
    shutil.rmtree(STATE, ignore_errors=True)
    STATE.mkdir()


def links_in(lines):
    """Returns the daemon's output, link by link: an interruption ends one."""
    links = [[]]
    for line in lines:
        if line.startswith("interrupted "):
            links.append([])
        else:
            links[-1].append(line.rstrip("\n"))
    return links


def beating(link, count=3):
    """Waits for so many beats on the daemon's link of this number, from 1, or on a later one."""
    def true(lines):
        return any(len(beats_in(lines)) >= count for lines in links_in(lines)[link - 1:])
    return true


def check_handshakes(program, log, count):
    """Checks each link in the daemon's output and in the belt's log: first the handshake, then the subscription and
    beats.
    """
    links = links_in(program.lines)
    same(len(links), count, "links in the daemon's output")
    for link in links:
        same(link[0], "worn chest", "the first line of a link")
        same(link.count("worn chest"), 1, "handshakes of a link")
    counted = beats_in(program.lines)
    same(counted, sorted(set(counted)), "beats in order, each once")
    location, measurement = value_handle("2a38"), value_handle("2a37")
    # The daemon cannot report a link that is lost before the subscription.
    subscribed = [link for link in log.links if any(event["event"] in ("subscribed", "beat") for event in link)]
    same(len(subscribed), count, "links in the belt's log")
    for number, link in enumerate(subscribed):
        requests = [event for event in link if event["event"] == "request"]
        names = [event["name"] for event in requests]
        handshake = next(i for i, r in enumerate(requests) if r["handle"] == location or r["type"] == "2a38")
        # An MTU exchange, and the Database Hash: the library's own requests.
        same(names[:handshake], [MTU, HASH], f"requests before the handshake on link {number}")
        written = [event["handle"] for event in requests if event["name"] == WRITE]
        assert measurement + 1 in written, f"link {number}: no subscription: {requests}"


def stop(program):
    program.child.send_signal(signal.SIGTERM)
    return program.finish().must(0)


def set_powered(on, index=0):
    """Switches an adapter as bluetoothctl does, by the kernel's management channel; retries while the kernel is busy
    with it.
    """
    with Management() as management:
        end = time.monotonic() + WAIT
        while True:
            status, _ = management.command(SET_POWERED, bytes([on]), index)
            if status not in (BUSY, BLOCKED) or time.monotonic() > end:
                same(status, 0, "status of Set Powered")
                return
            time.sleep(0.1)
