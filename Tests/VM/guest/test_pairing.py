"""Kernel tests of pairing and bonds: a program that pairs through the kernel, and locks of another project.

Each test begins with a lock that knows nobody and a kernel without keys. The lock's log has each packet of its links in
their order, and whether they were encrypted: it is the trace of the air.
"""

import itertools
import stat
import zlib

import bluez
from locks import *

METHODS = (
    # The closures of the agent, the lock's capability, and what comes of it with Secure Connections and without.
    ("", NOTHING, "just-works", "just-works"),
    ("enter", DISPLAY, "passkey-typed", "passkey-typed"),
    ("show", KEYBOARD, "passkey-shown", "passkey-shown"),
    ("show compare", DISPLAY_YES_NO, "numeric-comparison", "just-works"),
    ("show compare enter", KEYBOARD_DISPLAY, "numeric-comparison", "passkey-shown"),
    ("show compare enter", DISPLAY_YES_NO, "numeric-comparison", "passkey-typed"),
)
QUESTIONS = {"just-works": [], "passkey-typed": ["enter"], "passkey-shown": ["show"], "numeric-comparison": ["compare"]}
LEGACY, LEGACY_OF_RESPONDER, SECURE = 1, 2, 3  # types of long term keys in the kernel's list
REQUEST, PUBLIC_KEY, CONFIRM, RANDOM, CHECK = (
    f"SMP_PAIRING_{name}_COMMAND" for name in ("REQUEST", "PUBLIC_KEY", "CONFIRM", "RANDOM", "DHKEY_CHECK"))
MTU_EXCHANGE = {"ATT_EXCHANGE_MTU_REQUEST", "ATT_EXCHANGE_MTU_RESPONSE"}
DISCOVERY = {
    "ATT_READ_BY_GROUP_TYPE_REQUEST", "ATT_READ_BY_GROUP_TYPE_RESPONSE", "ATT_READ_BY_TYPE_REQUEST",
    "ATT_READ_BY_TYPE_RESPONSE", "ATT_FIND_INFORMATION_REQUEST", "ATT_FIND_INFORMATION_RESPONSE", "ATT_ERROR_RESPONSE",
}
ECHO = 0x80  # the PSM of the lock's channels
IDENTITY, ASKS = "SMP_IDENTITY_INFORMATION_COMMAND", "SMP_SECURITY_REQUEST_COMMAND"


def types_of_keys():
    return {kind for _, kind, _ in kernel_keys()}


@test
def the_adapter_is_switched_off_and_on_once():
    """K01: an adapter that another program switched on without the management interface."""
    replug()
    control(HCI_UP)
    same(kernel_pairs(), [], "channels of the Security Manager before")
    with Management() as others, Trial() as trial:
        trial.do("ready")
        settings = [struct.unpack("<I", parameters)[0] for code, parameters in others.events() if code == SETTINGS]
        powers = [bool(each & POWERED) for each in settings]
        changes = [power for power, _ in itertools.groupby(powers)]
        assert changes in ([False, True], [True, False, True]), f"changes of the power: {powers}"
        assert not settings[-1] & BONDABLE, "the adapter is bondable"
        assert kernel_pairs(), "no Security Manager"
        trial.connect()
        trial.pair()
        same(others.events() and kernel_keys() != [], True, "keys")
        return kernel_pairs()


@test
def just_works_makes_a_bond_that_is_stored():
    """K02, with LE Secure Connections and without."""
    for is_secure, kinds in (True, {SECURE}), (False, {LEGACY, LEGACY_OF_RESPONDER}):
        forget_everything()
        tell(sc=is_secure)
        with beginning() as trial:
            trial.connect()
            trial.fails(f"read {LOCK} {SEALED}", "insufficientSecurity")
            seen = len(trial.lines)
            same(trial.pair("name=door"), f"{LOCK} just-works 16 resolves", "the bond")
            same(trial.lines[seen], "disk 600 has it\n", "the file of bonds when the call returned")
            same(stat.S_IMODE(stored().parent.stat().st_mode), 0o700, "mode of the directory")
            assert "name=door" in stored().read_text(), "the bond is not in the file"
            same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value")
            same(types_of_keys(), kinds, "types of the kernel's keys")
            same({size for *_, size in kernel_keys()}, {16}, "sizes of the kernel's keys")


@test
def a_bond_outlives_the_process_and_the_adapter():
    """K06: no packet of the Security Manager, and none unencrypted, on each later link."""
    with beginning() as trial:
        trial.connect()
        trial.pair()
    log = LockLog()
    with beginning(keep=True) as trial:
        trial.connect()
        same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value")
        trial.do(f"disconnect {LOCK}")
        log.check_encrypted()
        replug()
        same(kernel_keys(), [], "keys of the kernel after a replug")
        trial.do("ready")
        trial.connect()
        same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value after a replug")
        log.check_encrypted(links=2)


@row("S01")
@test
def a_channel_to_a_bonded_lock_is_encrypted():
    """K06: at the level of the bond, which the kernel has already; so there is no packet of the Security Manager."""
    for io, *words in (NOTHING,), (DISPLAY, "enter", "reply=123456"):
        forget_everything()
        tell(io=io)
        with beginning() as trial:
            trial.connect()
            trial.pair(*words)
            trial.do(f"disconnect {LOCK}")
            log = LockLog()
            trial.connect()
            same(trial.do(f"channel {LOCK} {ECHO}"), "0708", "the packet that comes back")
            same([event["encrypted"] for event in log.all("opened")], [True], "channels")
            log.check_encrypted()


def try_all_methods(is_secure):
    tell(sc=is_secure)
    with beginning() as trial:
        for closures, io, *methods in METHODS:
            method = methods[0 if is_secure else 1]
            log = LockLog()
            tell(io=io)
            trial.connect()
            seen = trial.say(f"pair {LOCK} {closures} {'' if method == 'passkey-shown' else 'reply=123456'}".replace(
                "reply=123456", "reply=yes" if method == "numeric-comparison" else "reply=123456"))
            if method == "passkey-shown":
                trial.wait_for(lambda lines: any(line.startswith("asked show") for line in lines[seen:]), "a passkey")
                shown = next(line for line in trial.lines[seen:] if line.startswith("asked show"))
                tell(type=int(shown.split()[2]))
            succeeded, bond = trial.end(f"pair {LOCK}", seen)
            worth = {
                "just-works": "", "numeric-comparison": " authenticated",
            }.get(method, " authenticated" if is_secure else " legacy-passkey")
            same(bond, f"{LOCK} {method} 16{worth} resolves", f"the bond with {closures or 'nothing'} and {io}")
            same(trial.asked(seen), QUESTIONS[method], f"questions with {closures or 'nothing'} and {io}")
            if method == "numeric-comparison":
                number = next(line for line in trial.lines[seen:] if line.startswith("asked compare")).split()[2]
                same(log.all("compared")[-1]["number"], int(number), "the number that the lock shows")
            if worth:
                same(bytes.fromhex(trial.do(f"read {LOCK} {GUARDED}")), b"authenticated", "the value")
            trial.do(f"forget {LOCK}")
            trial.do(f"disconnect {LOCK}")
            tell(forget=True)


@test
def each_agent_pairs_as_the_capabilities_say():
    """K03 with LE Secure Connections."""
    try_all_methods(True)


@test
def each_agent_pairs_as_the_capabilities_say_in_legacy_pairing():
    """K03 without."""
    try_all_methods(False)


@test
def a_pairing_that_cannot_be_protected_makes_no_key():
    """K04: the lock has neither input nor output."""
    log = LockLog()
    with beginning() as trial:
        trial.connect()
        trial.fails(f"pair {LOCK} enter reply=123456 require=authenticated", "pairingFailed", "no input or output")
        same(bytes.fromhex(trial.do(f"read {LOCK} {OPEN}")), b"open", "the value")
        same(log.all("encrypted") + log.all("disconnected"), [], "encryption or the link's end")
        trial.check_nothing_is_left()


@row("S14")
@test
def a_pairing_that_somebody_refuses_leaves_nothing():
    """K05: the passkey, our user, the lock, nobody, and a cancelled task; and the next pairing works."""
    with beginning() as trial:
        def after(orders, words, code, link_stays):
            tell(**orders)
            trial.connect()
            trial.fails(f"pair {LOCK} {words}", code)
            if link_stays:
                same(bytes.fromhex(trial.do(f"read {LOCK} {OPEN}")), b"open", f"the value after {words}")
            trial.do(f"disconnect {LOCK}")
            trial.check_nothing_is_left()

        after({"io": DISPLAY}, "enter reply=654321", "wrongPasskey", False)
        after({"io": DISPLAY}, "enter reply=no", "pairingRefused", True)
        after({"io": NOTHING}, "confirm reply=no", "pairingRefused", True)
        after({"accept": False}, "", "pairingRefused", False)
        after({"accept": True, "io": DISPLAY}, "enter timeout=1", "timedOut", True)
        trial.connect()
        seen = trial.say(f"pair {LOCK} enter")
        trial.wait_for(lambda lines: "asked enter" in lines[seen:], "the question")
        trial.do(f"cancel {LOCK}")
        trial.check_failure(f"pair {LOCK}", seen, "cancelled")
        trial.check_nothing_is_left()
        trial.pair("enter", "reply=123456")


@row("S15")
@test
def a_link_that_ends_in_a_pairing_leaves_nothing():
    """K05: in each phase, at packets of both; last, when the link is encrypted and keys are distributed."""
    with beginning() as trial:
        for packet in REQUEST, PUBLIC_KEY, CONFIRM, RANDOM, CHECK, IDENTITY:
            tell(drop_at=packet)
            trial.connect()
            trial.fails(f"pair {LOCK}", "disconnected")
            trial.do(f"disconnect {LOCK}")
            trial.check_nothing_is_left()
        trial.connect()
        trial.pair()


@row("S01", "S02")
@test
def a_lock_that_has_lost_its_key_is_neither_believed_nor_paired():
    """K07: and sends notifications as soon as the link is up, as in BLESA."""
    with beginning() as trial:
        trial.connect()
        trial.pair()
        trial.do(f"disconnect {LOCK}")
        before = kernel_keys()
        tell(forget=True, greeting=6)
        log = LockLog()
        trial.fails(f"connect {LOCK}", "bondRejected")
        same([bond[-1] for bond in trial.bonds()], ["rejected"], "the bond's state")
        same(kernel_keys(), before, "keys of the kernel")
        log.wait("disconnected")
        log.check_no_pairing()
        same([packet for packet in log.names("heard", ATT)], [], "what we sent unencrypted")


@row("S02")
@test
def a_lock_with_another_key_is_not_paired():
    """K09."""
    with beginning() as trial:
        trial.connect()
        trial.pair()
        trial.do(f"disconnect {LOCK}")
        tell(spoil=True)
        log = LockLog()
        trial.fails(f"connect {LOCK}", "bondRejected")
        same([bond[-1] for bond in trial.bonds()], ["rejected"], "the bond's state")
        log.check_no_pairing()
        # What the user does then.
        trial.do(f"forget {LOCK}")
        tell(forget=True)
        trial.connect()
        trial.pair()


@row("S02", "S11")
@test
def a_bond_that_a_lock_has_lost_is_replaced_by_a_connect():
    """A lock that was reset, at its identity's address and at private ones."""
    for privacy in False, True:
        forget_everything()
        tell(privacy=privacy)
        with beginning() as trial:
            address = trial.do("find Lock").split()[0]
            trial.connect(address)
            trial.pair(peer=address)
            trial.do(f"disconnect {address}")
            tell(forget=True)
            trial.fails(f"connect {LOCK}", "bondRejected")
            trial.do(f"connect {LOCK} replacing=lostByPeer")
            same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value")
            trial.do(f"disconnect {LOCK}")
            same([bond[0] for bond in trial.bonds() if "rejected" not in bond], [LOCK], "good bonds")
            log = LockLog()
            trial.connect()
            same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value on the next link")
            trial.do(f"disconnect {LOCK}")
            log.check_encrypted()


@row("S03")
@test
def keys_that_another_program_has_removed_are_not_made_again():
    """K08: after our list was loaded, and before the link is up. The next link has the key again."""
    # Else a lock that may have changed its address is listened for first.
    tell(identity=False)
    with beginning() as trial, Management() as others:
        trial.connect()
        trial.pair()
        trial.do(f"disconnect {LOCK}")
        radio("off Lock")
        seen = trial.say(f"connect {LOCK}")
        until(lambda: doing()["connecting"], "no connection attempt")
        same(others.command(LOAD_KEYS, bytes(2))[0], 0, "status of the response to an empty list")
        log = LockLog()
        radio("on Lock")
        succeeded, rest = trial.end(f"connect {LOCK}", seen)
        assert succeeded, f"a connect without the key: {rest}"
        same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value")
        same(log.all("paired"), [], "pairings")
        same([event for event in log.events if event.get("channel") == ATT and not event["encrypted"]], [], "unencrypted packets")
        same(len(kernel_keys()), 1, "keys of the kernel")
        return f"{len(log.all('connected'))} links"


@row("S04")
@test
def requests_of_strangers_for_a_pairing_are_refused():
    """K10: with the bonding bit and without, once and fifty times."""
    with beginning() as trial:
        for orders in {"requests": 1}, {"requests": 1, "bonding": False}, {"requests": 50, "bonding": True}:
            log = LockLog()
            tell(**orders)
            trial.connect()
            log.wait("sent", orders["requests"], name="SMP_SECURITY_REQUEST_COMMAND")
            same(bytes.fromhex(trial.do(f"read {LOCK} {OPEN}")), b"open", "the value")
            time.sleep(0.5)
            same(log.all("paired") + log.all("encrypted"), [], "pairings, encryption")
            trial.do(f"disconnect {LOCK}")
            trial.check_nothing_is_left()


@row("S04")
@test
def requests_without_end_take_no_memory():
    """K10."""
    def memory():
        lines = Path(f"/proc/{trial.child.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

    with beginning() as trial:
        trial.connect()

        def hear(count):
            log = LockLog()
            tell(request=count)
            log.wait("sent", count, name=ASKS)
            # It has read what came before that.
            same(bytes.fromhex(trial.do(f"read {LOCK} {OPEN}")), b"open", "the value")
            log.wait("heard", count, name="SMP_PAIRING_FAILED_COMMAND")

        count = 300
        # As many at once have found room before.
        hear(count)
        before = memory()
        hear(count)
        grown = memory() - before
        assert grown * 1024 < count * 128, f"{grown} KiB more after {count} requests"
        return f"{grown} KiB"


@row("S04")
@test
def requests_at_any_moment_change_nothing():
    """K21: with the three after it a hundred links, on which the lock asks for security while this side encrypts."""
    return race(0)


@row("S04")
@test
def requests_two_turns_later_change_nothing():
    """K21."""
    return race(2)


@row("S04")
@test
def requests_five_turns_later_change_nothing():
    """K21."""
    return race(5)


@row("S04")
@test
def requests_seven_turns_later_change_nothing():
    """K21."""
    return race(7)


def race(first):
    """Has the lock ask after `first` turns of its event loop, then after ten, twenty, thirty and forty more."""
    with beginning() as trial:
        trial.connect()
        trial.pair()
        trial.do(f"disconnect {LOCK}")
        log, count = LockLog(), 25
        for number in range(count):
            # At another moment after each five links.
            if number % 5 == 0:
                tell(requests=1, turns=first + 2 * number)
            link = LockLog()
            trial.do(f"link {LOCK}")
            link.wait("sent", name=ASKS)
            trial.do(f"disconnect {LOCK}")
        log.wait("disconnected", count)
        same(len(log.links()), count, "links")
        for link in log.links():
            # One that arrives after the encryption has the kernel refresh it, as the specification demands. It may have been
            # sent before.
            asked = [event for event in link if event.get("name") == ASKS]
            times = len([event for event in link if event["event"] == "encrypted" and event["on"]])
            assert 1 <= times <= 1 + len(asked), f"encrypted {times} times: {link}"
        same(log.names("heard"), [], "packets of our Security Manager")
        same(set(log.names("sent")), {ASKS}, "packets of the lock's Security Manager")
        same([event for event in log.events if event.get("channel") == ATT and not event["encrypted"]], [], "unencrypted packets")
        same({kind for _, kind, _ in kernel_keys()}, {SECURE}, "types of the kernel's keys")
        early, all_of_them = len(log.all("sent", name=ASKS, encrypted=False)), len(log.all("sent", name=ASKS))
        assert 0 < early and all_of_them == count, f"{early} of {all_of_them} requests before the encryption"
        return f"{early} of {all_of_them} requests before the encryption"


@row("S04")
@test
def requests_of_bonded_locks_change_nothing():
    """K10: beside our own encryption, asking for the same and for more."""
    with beginning() as trial:
        trial.connect()
        trial.pair()
        trial.do(f"disconnect {LOCK}")
        for mitm in False, True:
            tell(requests=1, mitm=mitm)
            log = LockLog()
            for _ in range(5):
                trial.connect()
                same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value")
                trial.do(f"disconnect {LOCK}")
            same(set(log.names("sent")), {"SMP_SECURITY_REQUEST_COMMAND"}, "packets of the lock's Security Manager")
            same(log.names("heard"), [], "packets of ours")
            same(len(log.all("encrypted", on=True)), 5, "encrypted links")


@row("S06")
@test
def short_keys_are_refused():
    """K11."""
    with beginning() as trial:
        for size in 7, 15:
            tell(size=size)
            log = LockLog()
            trial.connect()
            trial.fails(f"pair {LOCK}", "keyTooShort", str(size))
            log.wait("disconnected")
            trial.do(f"disconnect {LOCK}")
            trial.check_nothing_is_left()
            tell(forget=True)


@row("S11")
@test
def a_lock_with_private_addresses_is_one_lock():
    """K12."""
    tell(privacy=True)
    with beginning() as trial:
        address, identity = trial.do("find Lock").split()
        same(identity, "none", "identity of a stranger")
        trial.connect(address)
        same(trial.pair(peer=address).split()[0], LOCK, "identity of the bond")
        trial.do(f"disconnect {address}")
        same(trial.do("find Lock").split()[1], LOCK, "its identity under the address that was a stranger's")
        log, count = LockLog(), 20
        seen = {address}
        for _ in range(count):
            tell(rotate=True)
            address, identity = trial.do("find Lock").split()
            same(identity, LOCK, "identity in a scan")
            seen.add(address)
            trial.connect(address)
            same(bytes.fromhex(trial.do(f"read {address} {SEALED}")), b"encrypted", "the value")
            trial.do(f"disconnect {address}")
        same(len(seen), count + 1, "addresses")
        same(trial.do("devices"), "2", "devices that were heard, the latch among them")
        log.check_encrypted(links=count)
        same(len(trial.bonds()), 1, "bonds")


@row("S11")
@test
def a_lock_that_another_program_has_paired_is_read_by_its_private_address():
    """The kernel keeps the lock's key, and has its links under the identity."""
    tell(privacy=True)
    with beginning() as trial:
        address, _ = trial.do("find Lock").split()
        trial.connect(address)
        trial.pair(peer=address)
        trial.do(f"disconnect {address}")
        tell(rotate=True)
        address, _ = trial.do("find Lock").split()
    blescan("read", address, OPEN, "--hex-only", "--no-bond").must(DONE)


@row("S11")
@test
def a_session_stays_with_a_lock_that_changes_its_address():
    """K12: each time the link is lost."""
    tell(privacy=True)
    with beginning() as trial:
        address, _ = trial.do("find Lock").split()
        trial.connect(address)
        trial.pair(peer=address)
        trial.do(f"disconnect {address}")
        # The pauses of a session between its links double, from one second on.
        log, count = LockLog(), 3
        trial.do(f"session {LOCK} {SEALED}")
        for number in range(1, count + 1):
            trial.wait_for(
                lambda lines: lines.count(f"value {LOCK} {b'encrypted'.hex()}") >= number, f"the value of link {number}")
            trial.wait_for(
                lambda lines: lines.count(f"session-event {LOCK} ready") >= number, f"link {number} of the session")
            if number < count:
                radio("off Lock")
                log.wait("disconnected", number)
                tell(rotate=True)
                radio("on Lock")
        trial.do(f"end {LOCK}")
        log.check_encrypted(links=count)
        same(len({link["address"] for link in log.all("connected")}), count, "addresses")


@row("S11")
@test
def a_private_address_without_the_key_proves_nothing():
    """K13: an address that another device repeats."""
    tell(privacy=True)
    with beginning() as trial:
        address, _ = trial.do("find Lock").split()
        trial.connect(address)
        trial.pair(peer=address)
        trial.do(f"disconnect {address}")
        tell(forget=True, greeting=3)
        log = LockLog()
        trial.fails(f"connect {address}", "bondRejected")
        log.check_no_pairing()
        same(len(trial.bonds()), 1, "bonds")


@row("S10")
@test
def a_lock_that_hides_its_identity_is_not_bonded():
    """K14: its link is encrypted all the same."""
    tell(privacy=True, identity=False)
    with beginning() as trial:
        address, _ = trial.do("find Lock").split()
        trial.connect(address)
        trial.fails(f"pair {address}", "notBonded", "identity")
        same(bytes.fromhex(trial.do(f"read {address} {SEALED}")), b"encrypted", "the value")
        trial.check_nothing_is_left()


@test
def a_forgotten_bond_is_nowhere():
    """K15: while connected, while pairing, and of a stranger."""
    with beginning() as trial:
        trial.do(f"forget {LOCK}")
        trial.connect()
        trial.pair()
        log = LockLog()
        trial.do(f"forget {LOCK}")
        log.wait("disconnected")
        trial.check_nothing_is_left()
        same(kernel_list("identity_resolving_keys"), [], "identity keys of the kernel")
        trial.do(f"forget {LOCK}")
        tell(forget=True, io=DISPLAY)
        trial.do(f"disconnect {LOCK}")
        trial.connect()
        seen = trial.say(f"pair {LOCK} enter")
        trial.wait_for(lambda lines: "asked enter" in lines[seen:], "the question")
        trial.do(f"forget {LOCK}")
        trial.say("reply 123456")
        succeeded, rest = trial.end(f"pair {LOCK}", seen)
        assert not succeeded, f"a bond that was forgotten while it was made: {rest}"
        trial.check_nothing_is_left()
        return rest


@test
def a_killed_program_leaves_the_old_bond_or_the_new_one():
    """K16: at packets of a pairing, and while it is stored."""
    def consistent():
        with beginning(keep=True) as trial:
            bonds = [bond[0] for bond in trial.bonds()]
            same(sorted({address for address, *_ in kernel_keys()}), [bond.split("/")[0].lower() for bond in bonds], "keys")
            return len(bonds)

    counts = []
    for heard in PUBLIC_KEY, CHECK, None:
        forget_everything()
        log = LockLog()
        with beginning() as trial:
            trial.connect()
            seen = trial.say(f"pair {LOCK}")
            if heard:
                log.wait("heard", name=heard)
            else:
                log.wait("paired")
            trial.child.kill()
            counts.append(consistent())
    return counts


@test
def a_program_killed_at_the_question_of_a_replacement_keeps_the_old_bond():
    """K16: the kernel waits for the reply, for as long as a pairing may take."""
    def asked(trial, log, old):
        trial.wait_for(lambda lines: "asked enter" in lines, "the question")

    is_new, result = kill_in_a_replacement(asked, "enter", io=DISPLAY)
    same(is_new, False, "whether the key is a new one")
    return result


@test
def a_program_killed_at_the_request_of_a_replacement_leaves_one_bond():
    """K16."""
    return kill_at_a_packet_of_a_replacement("heard", REQUEST)


@test
def a_program_killed_at_the_public_key_of_a_replacement_leaves_one_bond():
    """K16."""
    return kill_at_a_packet_of_a_replacement("heard", PUBLIC_KEY)


@row("S15")
@test
def a_program_killed_at_the_check_of_a_replacement_leaves_one_bond():
    """K16: the kernel goes on without the program."""
    return kill_at_a_packet_of_a_replacement("heard", CHECK, goes_on=True)


@row("S15")
@test
def a_program_killed_at_the_identity_in_a_replacement_leaves_one_bond():
    """K16: while keys are distributed."""
    return kill_at_a_packet_of_a_replacement("sent", IDENTITY, goes_on=True)


@row("S15")
@test
def a_program_killed_at_the_end_of_a_replacement_leaves_one_bond():
    """K16: the lock has the new key."""
    _, result = kill_in_a_replacement(lambda trial, log, old: log.wait("paired"))
    return result


@test
def a_program_killed_after_it_has_stored_a_replacement_keeps_the_new_bond():
    """K16."""
    def stored_the_new_one(trial, log, old):
        until(lambda: stored_keys() != [old], "no new key is stored")

    is_new, result = kill_in_a_replacement(stored_the_new_one)
    same(is_new, True, "whether the key is a new one")
    return result


def kill_at_a_packet_of_a_replacement(direction, name, goes_on=False):
    # The program may have gone on until the signal came.
    _, result = kill_in_a_replacement(lambda trial, log, old: log.wait(direction, name=name), goes_on=goes_on)
    return result


def kill_in_a_replacement(moment, *words, io=NOTHING, goes_on=False):
    """Kills a program that replaces a bond once `moment` has returned: one of the two is left, whole, and the next run reads
    the value, or reports that the lock has another key.

    With `goes_on` the kernel completes the pairing without the program, which is waited for. Returns whether the bond is the
    new one, and the result in words.
    """
    with beginning() as trial:
        trial.connect()
        trial.pair()
        trial.do(f"disconnect {LOCK}")
        old, = stored_keys()
        tell(io=io)
        log = LockLog()
        trial.say(" ".join(["connect", LOCK, "replacing=always", *words]))
        moment(trial, log, old)
        trial.child.kill()
    if goes_on:
        log.wait("paired")
    end_links()
    keys = stored_keys()
    same(len(keys), 1, "stored keys")
    is_new = keys != [old]
    log = LockLog()
    with beginning(keep=True) as trial:
        same([bond[0] for bond in trial.bonds()], [LOCK], "bonds")
        same([line.split()[-1] for line in kernel_list("long_term_keys")], keys, "keys of the kernel")
        same([path.name for path in STORE.iterdir() if path.suffix == ".tmp"], [], "what is left of the writing")
        succeeded, rest = trial.end(f"connect {LOCK}", trial.say(f"connect {LOCK}"))
        if succeeded:
            same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value")
            log.check_encrypted()
        else:
            # The lock has the new key, and this side the old one.
            assert rest.startswith("bondRejected: "), f"a connect after the replacement: {rest}"
            log.check_no_pairing()
            same(log.names("heard", ATT), [], "what was sent unencrypted")
    same(stored_keys(), keys, "stored keys after the connect")
    return is_new, f"{'new' if is_new else 'old'} {'read' if succeeded else 'rejected'}"


@test
def a_bond_that_cannot_be_stored_is_undone():
    """K17: on a full disk, and on one that is read-only."""
    STORE.mkdir(exist_ok=True, mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "none", STORE], check=True)
    try:
        with beginning(keep=True) as trial:
            filling = STORE / "filling"
            with contextlib.suppress(OSError), open(filling, "wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
            for is_full in True, False:
                if not is_full:
                    # Over the file system that the program has files open on, which cannot become read-only itself.
                    filling.unlink()
                    subprocess.run(["mount", "--bind", STORE, STORE], check=True)
                    subprocess.run(["mount", "-o", "remount,bind,ro", STORE], check=True)
                trial.connect()
                trial.fails(f"pair {LOCK}", "bondNotStored")
                trial.do(f"disconnect {LOCK}")
                tell(forget=True)
                same(kernel_keys(), [], "keys of the kernel")
            subprocess.run(["umount", STORE], check=True)
            same(trial.bonds(), [], "bonds")
            trial.connect()
            trial.pair()
    finally:
        subprocess.run(["umount", "-l", STORE])


def store(text, mode=0o600):
    """Replaces the file of bonds."""
    stored().write_text(text)
    stored().chmod(mode)


def bond_line(number, line):
    """A stored bond of another identity."""
    address = f"C0:00:00:00:{number >> 8:02X}:{number & 255:02X}"
    fields = []
    for field in line.split()[1:]:
        if field.startswith("irk="):
            field = f"irk={number:032x}"
        if field.startswith("ltk="):
            field = "ltk=" + bytes.fromhex(address.replace(":", ""))[::-1].hex() + field[len("ltk=") + 12:]
        fields.append(field)
    return " ".join([f"{address}/random", *fields])


def paired():
    """Pairs; returns the text of the file of bonds."""
    with beginning() as trial:
        trial.connect()
        trial.pair()
    return stored().read_text()


@test
def a_thousand_bonds_are_loaded():
    """K18."""
    header, bond, _ = paired().splitlines()
    body = "\n".join([header, bond, *(bond_line(number, bond) for number in range(1, 1024))]) + "\n"
    store(f"{body}checksum {zlib.crc32(body.encode()):08x}\n")
    log = LockLog()
    with beginning(keep=True) as trial:
        same(len(trial.bonds()), 1024, "bonds")
        same(len(kernel_keys()), 1024, "keys of the kernel")
        same(len(kernel_list("identity_resolving_keys")), 1024, "identity keys of the kernel")
        trial.connect()
        same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value")
        log.check_encrypted()


@test
def damaged_files_are_set_aside():
    """K18: cut, changed, readable by others, or a link."""
    text = paired()
    for damage in text[:len(text) // 2], text.replace("level=2", "level=4"):
        store(damage)
        with beginning(keep=True) as trial:
            same(trial.bonds(), [], "bonds of a damaged file")
        aside = [path.name for path in STORE.iterdir() if ".damaged" in path.name]
        assert aside, f"nothing is set aside: {os.listdir(STORE)}"
    store(text, 0o644)
    with Trial(keep=True) as trial:
        trial.fails("bonds", "notPermitted")
    stored().unlink()
    os.symlink("/run/vm/elsewhere", stored())
    with Trial(keep=True) as trial:
        succeeded, rest = trial.end("bonds", trial.say("bonds"))
        assert not succeeded, "a link was followed"
    return rest.split(":")[0]


USERS = Path("/run/vm/bonds-of-a-user")


def unprivileged():
    """The program that pairs with CAP_NET_RAW alone, and with the bonds in a directory of its user."""
    program = "/run/vm/pairing-trials"
    shutil.copy(TRIALS, program)
    for path in USERS, *USERS.iterdir():
        os.chown(path, PLAIN_USER, PLAIN_USER)
    trial = Program(str(USERS), program=program, stdin=subprocess.PIPE, user=PLAIN_USER, capabilities=[CAPABILITY])
    trial.__class__ = Trial
    return trial.wait_for(lambda lines: "began" in lines, "its beginning")


@test
def a_pairing_needs_a_privilege_and_nothing_else_does():
    """K20: without CAP_NET_ADMIN."""
    shutil.rmtree(USERS, ignore_errors=True)
    USERS.mkdir(mode=0o700)
    with unprivileged() as trial:
        trial.do("ready")
        trial.connect()
        same(bytes.fromhex(trial.do(f"read {LOCK} {OPEN}")), b"open", "the value")
        trial.fails(f"pair {LOCK}", "notPermitted", "CAP_NET_ADMIN")
        same(bytes.fromhex(trial.do(f"read {LOCK} {OPEN}")), b"open", "the value")


@test
def a_bond_is_used_without_that_privilege():
    """K20: this library has the controller encrypt, with the key from the disk; the kernel has none."""
    use_without_privilege(True)


@test
def a_legacy_bond_is_used_without_that_privilege():
    """K20: without LE Secure Connections."""
    use_without_privilege(False)


def use_without_privilege(is_secure):
    shutil.rmtree(USERS, ignore_errors=True)
    tell(sc=is_secure)
    with beginning(store=USERS, keep=False) as trial:
        trial.connect()
        trial.pair()
    end_links()
    with Management() as management:
        for code in LOAD_IDENTITIES, LOAD_KEYS:
            same(management.command(code, bytes(2))[0], 0, "status of the response to an empty list")
    log = LockLog()
    with unprivileged() as trial:
        trial.do("ready")
        for _ in range(2):
            trial.connect()
            same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value")
            # The kernel has no key: for a level it would pair.
            same(trial.do(f"channel {LOCK} {ECHO}"), "0708", "the packet that comes back over a channel")
            trial.do(f"disconnect {LOCK}")
        log.check_encrypted(links=2)
        same(kernel_keys(), [], "keys of the kernel")
        tell(forget=True, greeting=3)
        lost = LockLog()
        trial.fails(f"connect {LOCK}", "bondRejected")
        same([bond[-1] for bond in trial.bonds()], ["rejected"], "the bond's state")
        lost.wait("disconnected")
        lost.check_no_pairing()
        same(lost.names("heard", ATT), [], "what was sent unencrypted")


@test
def a_slow_pairing_and_a_bonded_lock_do_not_disturb_each_other():
    """K22."""
    with beginning() as trial:
        trial.connect(LATCH)
        trial.pair(peer=LATCH)
        trial.do(f"disconnect {LATCH}")
        tell(io=DISPLAY)
        trial.connect()
        seen = trial.say(f"pair {LOCK} enter")
        trial.wait_for(lambda lines: "asked enter" in lines[seen:], "the question")
        log, count = LockLog("Latch"), 20
        with Monitor() as monitor:
            def loads():
                return {LOAD_KEYS, LOAD_IDENTITIES} & set(monitor.commands())

            for _ in range(count):
                trial.connect(LATCH)
                same(bytes.fromhex(trial.do(f"read {LATCH} {SEALED}")), b"encrypted", "the value")
                trial.do(f"disconnect {LATCH}")
                same(loads(), set(), "lists that are loaded while the lock pairs")
            log.check_encrypted(links=count)
            trial.say("reply 123456")
            succeeded, rest = trial.end(f"pair {LOCK}", seen)
            assert succeeded, rest
            until(lambda: len(loads()) == 2, "the lists are not loaded after the pairing")
        same(len(trial.bonds()), 2, "bonds")


@test
def bonds_outlive_the_power():
    """K23: off and on by another program, and rfkill."""
    with beginning() as trial, Management() as others:
        trial.connect()
        trial.pair()
        log = LockLog()

        def encrypted_again(links):
            trial.do("ready")
            trial.do(f"disconnect {LOCK}")
            trial.connect()
            same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value")
            log.check_encrypted(links)

        for power in False, True:
            same(others.command(SET_POWERED, bytes([power]))[0], 0, "status of Set Powered")
        encrypted_again(1)
        control(HCI_DOWN)
        control(HCI_UP)
        encrypted_again(2)
        switch = rfkill_switches()[0]
        switch.write_text("1")
        switch.write_text("0")
        encrypted_again(3)


@test
def data_from_elsewhere_authenticate():
    """K24: out of band, right and wrong."""
    tell(oob=True, share=True)
    shared = LockLog.__new__(LockLog)
    shared.path, shared.start = Path("/run/vm/peers/Lock.log"), 0
    data = shared.all("shared")[-1]
    with beginning() as trial:
        trial.connect()
        bond = trial.pair(f"oob={data['c']},{data['r']}", "require=authenticated")
        same(bond, f"{LOCK} out-of-band 16 authenticated resolves", "the bond")
        trial.do(f"forget {LOCK}")
        trial.do(f"disconnect {LOCK}")
        tell(forget=True)
        trial.connect()
        trial.fails(f"pair {LOCK} oob={data['r']},{data['c']} require=authenticated", "pairingFailed")
        trial.check_nothing_is_left()


@row("S03")
@test
def bluetoothd_that_begins_later_is_noticed_and_changes_no_bond():
    """K19: it empties the kernel's lists and lets every peer bond."""
    with beginning() as trial:
        trial.do("events")
        trial.connect()
        trial.pair()
        trial.do(f"disconnect {LOCK}")
        log, seen = LockLog(), len(trial.lines)
        with bluez.Daemon() as others:
            trial.wait_for(lambda lines: "event otherManager" in lines[seen:], "the event")
            results = [beside_bluetoothd(trial) for _ in range(3)]
            others.stop()
        trial.do("ready")
        trial.connect()
        same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value after bluetoothd")
        check_no_pairing_beside_bluetoothd(log)
        return results


@row("S03")
@test
def bluetoothd_that_was_there_before_is_noticed_and_changes_no_bond():
    """K19: and a pairing beside it makes a bond, or says why not."""
    with beginning() as trial:
        trial.connect()
        trial.pair()
    log = LockLog()
    with bluez.Daemon() as others, Trial(keep=True) as trial:
        trial.do("events")
        trial.do("ready")
        trial.wait_for(lambda lines: "event otherManager" in lines, "the event")
        results = [beside_bluetoothd(trial) for _ in range(3)]
        check_no_pairing_beside_bluetoothd(log)
        succeeded, rest = trial.end(f"connect {LATCH}", trial.say(f"connect {LATCH}"))
        if succeeded:
            succeeded, rest = trial.end(f"pair {LATCH}", trial.say(f"pair {LATCH}"))
        assert succeeded or rest.startswith("adapterShared: "), f"a pairing beside bluetoothd: {rest}"
        others.stop()
        return [*results, rest]


@test
def a_program_that_shares_the_adapter_with_none_uses_no_bond_beside_bluetoothd():
    with beginning("exclusive") as trial:
        trial.connect()
        trial.pair()
        trial.do(f"disconnect {LOCK}")
        log = LockLog()
        with bluez.Daemon() as others:
            trial.fails("ready", "adapterShared", "bluetoothd")
            trial.fails(f"connect {LOCK}", "adapterShared", "bluetoothd")
            others.stop()
        log.check_no_pairing()
        trial.do("ready")
        trial.connect()
        same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value after bluetoothd")


def beside_bluetoothd(trial):
    """Connects to the bonded lock: the link is encrypted, or the error says that the adapter is shared."""
    succeeded, rest = trial.end(f"connect {LOCK}", trial.say(f"connect {LOCK}"))
    if succeeded:
        same(bytes.fromhex(trial.do(f"read {LOCK} {SEALED}")), b"encrypted", "the value beside bluetoothd")
        trial.do(f"disconnect {LOCK}")
    else:
        assert rest.startswith(("adapterShared: ", "busy: ")), f"a connect beside bluetoothd: {rest}"
    return rest.split(":")[0]


def check_no_pairing_beside_bluetoothd(log):
    """Where bluetoothd is faster, a link that is to be encrypted is its own first: it asks for the MTU and discovers the
    services unencrypted until the link is disconnected. This program discovers nothing: it reads one handle. The next link
    is encrypted before its first packet.
    """
    log.check_no_pairing()
    links = log.links()
    encrypted = [link for link in links if any(event["event"] == "encrypted" and event["on"] for event in link)]
    assert encrypted, f"no link was encrypted: {links}"
    for link in links:
        packets = [event for event in link if event.get("channel") == ATT]
        if link in encrypted:
            same([packet for packet in packets if not packet["encrypted"]], [], "unencrypted packets on an encrypted link")
        else:
            names = {packet["name"] for packet in packets}
            same(names - MTU_EXCHANGE - DISCOVERY, set(), "packets on a link of bluetoothd")


if __name__ == "__main__":
    main(before=forget_everything)
