"""The program that pairs (Tests/PairingTrials) and its locks (peripherals/lock.py), for the tests of pairing."""

import shutil
import zlib

from harness import *

TRIALS = os.environ["PAIRING_TRIALS"]
LOCK, LATCH = "D1:00:00:00:00:06/random", "D1:00:00:00:00:07/random"
OPEN, SEALED, GUARDED, BEAT = (vendor(number) for number in (0x31, 0x32, 0x33, 0x34))
STORE = Path("/run/vm/bonds")
OWN = "001A7D000001"  # the adapter's address, as the names of its files have it
ATT, SECURITY = 4, 6  # channels
SET_POWERED, LOAD_KEYS, LOAD_IDENTITIES, SETTINGS = 0x05, 0x13, 0x30, 0x06
POWERED, BONDABLE = 1 << 0, 1 << 4
DISPLAY, DISPLAY_YES_NO, KEYBOARD, NOTHING, KEYBOARD_DISPLAY = range(5)
NO_KEY, AUTHENTICATION_FAILED = 6, 5


class LockLog:
    """What a lock has noted since this object was created."""

    def __init__(self, name="Lock"):
        self.path = Path(f"/run/vm/peers/{name}.log")
        self.start = self.path.stat().st_size

    @property
    def events(self):
        return noted(self.path, self.start)

    def all(self, kind, **more):
        return [event for event in self.events if {**event, "event": kind, **more} == event]

    def wait(self, kind, count=1, **more):
        until(lambda: len(self.all(kind, **more)) >= count, f"the lock does not note {kind} {more}: {self.events[-6:]}")
        return self.all(kind, **more)[-1]

    def links(self):
        """Returns the events of each link, the link's begin included."""
        found = []
        for event in self.events:
            if event["event"] == "connected":
                found.append([])
            if found:
                found[-1].append(event)
        return found

    def names(self, direction, channel=SECURITY):
        """Returns the names of the packets that the lock has sent or heard."""
        return [event["name"] for event in self.all(direction, channel=channel)]

    def check_no_pairing(self):
        same(self.names("heard") + self.names("sent"), [], "packets of the Security Manager")

    def check_encrypted(self, links=1):
        """Checks that each link was encrypted, without a pairing, before the first byte of either side."""
        self.check_no_pairing()
        packets = [event for event in self.events if event.get("channel") == ATT]
        same([packet for packet in packets if not packet["encrypted"]], [], "unencrypted packets")
        same(len(self.all("connected")), links, "links")
        same(len(self.all("encrypted", on=True)), links, "encrypted links")


def tell(name="Lock", **orders):
    """Changes how a lock pairs, or makes it act, and waits until it has."""
    log = LockLog(name)
    radio(f"tell {name} {json.dumps(orders, separators=(',', ':'))}")
    return log.wait("told")


class Trial(Program):
    """The program that pairs. With `keep` it continues with the bonds of the one before."""

    def __init__(self, *options, keep=False, store=STORE, **more):
        if not keep:
            shutil.rmtree(store, ignore_errors=True)
        super().__init__(str(store), *map(str, options), program=TRIALS, stdin=subprocess.PIPE, **more)
        self.wait_for(lambda lines: "began" in lines, "its beginning")

    def say(self, line):
        """Gives a command, and returns the number of lines before."""
        seen = len(self.lines)
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return seen

    def end(self, command, seen=0):
        """Waits for the end of a command; returns whether it succeeded, and the rest of the line."""
        name = " ".join(command.split()[:2])

        def ends(lines):
            return [line for line in lines[seen:] if line.startswith((f"{name} ", f"failed {name} "))]
        self.wait_for(ends, f"the end of `{command}`")
        line = ends([line.rstrip("\n") for line in self.lines])[0]
        return not line.startswith("failed "), line.partition(f"{name} ")[2]

    def do(self, command):
        succeeded, rest = self.end(command, self.say(command))
        assert succeeded, f"`{command}`: {rest}"
        return rest

    def fails(self, command, code, *words):
        self.check_failure(command, self.say(command), code, *words)

    def check_failure(self, command, seen, code, *words):
        succeeded, rest = self.end(command, seen)
        assert not succeeded and rest.startswith(f"{code}: "), f"`{command}`: expected {code}, found {rest}"
        for word in words:
            assert word in rest, f"`{command}`: no {word!r} in {rest}"

    def asked(self, seen=0):
        """The questions to the agent, without their numbers."""
        return [line.split()[1] for line in self.lines[seen:] if line.startswith("asked ")]

    def connect(self, peer=LOCK):
        self.do(f"connect {peer}")

    def pair(self, *words, peer=LOCK):
        return self.do(" ".join(["pair", peer, *words]))

    def bonds(self):
        """The bonds, each as the words of its line."""
        seen = len(self.lines)
        count = int(self.do("bonds"))
        found = [line.split()[1:] for line in self.lines[seen:] if line.startswith("bond ")]
        same(len(found), count, "lines of bonds")
        return found

    def check_nothing_is_left(self):
        same(self.bonds(), [], "bonds")
        same(kernel_keys(), [], "keys of the kernel")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.finish()


def beginning(*options, **more):
    """A program whose adapter is under management."""
    trial = Trial(*options, **more)
    trial.do("ready")
    return trial


def kernel_list(name):
    return Path(f"/sys/kernel/debug/bluetooth/hci0/{name}").read_text().splitlines()


def kernel_keys():
    """The kernel's long term keys, each with its address, its type as the kernel numbers them (1 and 2 for legacy pairing, 3
    for LE Secure Connections), and its size.
    """
    rows = [line.split() for line in kernel_list("long_term_keys")]
    return [(row[0], int(row[4], 16), int(row[5])) for row in rows]


def kernel_pairs():
    """Whether the kernel has a Security Manager for the adapter: a channel of it that belongs to no link."""
    return [line for line in Path("/sys/kernel/debug/bluetooth/l2cap").read_text().splitlines() if " 0x0006 " in line]


def stored():
    """The stored bonds' file."""
    return STORE / f"{OWN}.bonds"


def stored_keys():
    """The keys of the stored bonds, whose file is whole."""
    header, *bonds, checksum = stored().read_text().splitlines()
    body = "\n".join([header, *bonds]) + "\n"
    same(checksum, f"checksum {zlib.crc32(body.encode()):08x}", "the last line of the file of bonds")
    return [field[-32:] for bond in bonds for field in bond.split() if field.startswith("ltk=")]


def end_links():
    """Ends the links that killed programs have left, and waits until the kernel has none.

    A pairing holds pointers into the lists until its link has ended: the kernel dies of an empty list before. The kernel itself
    ends such a link after two seconds, but after thirty where a pairing waits for a reply.
    """
    radio("drop 0")
    until(lambda: doing()["links"] == [] and link_states() == [], "a link of a killed program stays")


def forget_everything():
    """Makes the locks and the kernel as they are in the beginning."""
    for name in "Lock", "Latch":
        radio(f"on {name}")
        tell(name, reset=True, forget=True, rotate=False)
    end_links()
    with Management() as management:
        for code in LOAD_IDENTITIES, LOAD_KEYS:
            same(management.command(code, bytes(2))[0], 0, "status of an empty list")


def replug(index=0):
    radio(f"unplug {index}")
    folder = Path(f"/sys/kernel/debug/bluetooth/hci{index}")
    until(lambda: f"hci{index}" not in adapters(), "the adapter stays")
    # The kernel keeps it, and its number, until the last program has closed its sockets.
    until(lambda: not folder.exists(), "the adapter is still in use")
    radio(f"plug {index}")
    until(lambda: (folder / "long_term_keys").exists(), "the adapter does not come back")
