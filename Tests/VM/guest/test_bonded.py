"""Kernel tests of bonds as a user sees them, of `blescan` and of an example: a lock with a protected value and a passkey.

The bonds are where they are without an option: in the usual directory of root. The lock's log is the trace of the air.
"""

import shutil

from locks import *

READER = os.environ["LOCK_READER"]
USUAL = Path("/var/lib/bareble/bonds")
ADDRESS = LOCK.split("/")[0]


def forget_all():
    forget_everything()
    shutil.rmtree(USUAL, ignore_errors=True)
    tell(io=DISPLAY)


def pair(*options):
    return blescan("pair", ADDRESS, "--passkey", "123456", *options).must(DONE)


def read(*options, peer=ADDRESS):
    """Reads the value for authenticated peers."""
    form = () if "--json" in options else ("--hex-only",)
    return blescan("read", peer, GUARDED, *form, *options)


def succeeds(outcome, what):
    same(bytes.fromhex(outcome.must(DONE).out), b"authenticated", what)


def mentions(text, *words):
    for word in words:
        assert word in text, f"no {word!r} in {text!r}"


@test
def a_refused_read_names_the_command_after_which_it_succeeds():
    refused = read().must(REFUSED)
    mentions(refused.err, f"`blescan pair {ADDRESS}`")
    same(refused.out, "", "the output")
    same(json.loads(read("--json").must(REFUSED).err)["code"], "insufficientSecurity", "the code")
    mentions(pair().out, f"bonded with {LOCK}", "passkey", "authenticated")
    log = LockLog()
    succeeds(read(), "the value")
    log.check_encrypted()


@test
def a_bond_outlives_a_killed_program():
    pair()
    log = LockLog()
    notifications = Program("notify", ADDRESS, BEAT)
    log.wait("heard", channel=ATT, name="ATT_WRITE_REQUEST")
    notifications.child.kill()
    notifications.finish()
    succeeds(read(), "the value after SIGKILL")
    # Whether the second link is the one of the killed program depends on how soon the kernel ends that.
    log.check_encrypted(len(log.all("connected")))


@test
def a_bond_outlives_the_adapter_and_is_not_made_again():
    pair()
    replug()
    same(kernel_keys(), [], "keys of the kernel after a replug")
    log = LockLog()
    succeeds(read(), "the value after a replug")
    log.check_encrypted()
    mentions(pair().out, f"already bonded with {LOCK}")
    log.check_no_pairing()


@test
def a_lock_that_forgets_its_bond_is_reported_once_and_not_paired():
    pair()
    tell(forget=True)
    log = LockLog()
    failed = read().must(REFUSED)
    mentions(failed.err, "lost the key of its bond", f"`blescan forget {ADDRESS}`", f"`blescan pair {ADDRESS}`")
    same([line.split(":")[0] for line in failed.err.splitlines()], ["blescan", "hint"], "lines")
    same(json.loads(read("--json").must(REFUSED).err)["code"], "bondRejected", "the code")
    again = blescan("pair", ADDRESS, "--passkey", "123456").must(REFUSED)
    mentions(again.err, f"`blescan forget {ADDRESS}`")
    mentions(blescan("bonds").must(DONE).out, LOCK, "rejected by the peer")
    log.wait("disconnected", len(log.all("connected")))
    log.check_no_pairing()
    same(log.names("heard", ATT), [], "what was sent unencrypted")


@test
def a_rejected_bond_that_is_forgotten_can_be_made_again():
    pair()
    tell(forget=True)
    read().must(REFUSED)
    mentions(blescan("forget", ADDRESS).must(DONE).out, LOCK)
    pair()
    succeeds(read(), "the value of the new bond")


@test
def the_user_of_a_service_gets_its_bonds_by_one_command():
    """As RunningWithoutRoot describes it: the service itself has CAP_NET_RAW alone."""
    folder = Path("/run/vm/bonds-of-a-service")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    os.chown(folder, PLAIN_USER, PLAIN_USER)
    stored = "--bonds", str(folder)
    blescan(
        "pair", ADDRESS, "--passkey", "123456", *stored, user=PLAIN_USER, capabilities=(CAPABILITY, "net_admin")).must(DONE)
    same({path.stat().st_uid for path in folder.iterdir()}, {PLAIN_USER}, "owners of the files")
    log = LockLog()
    outcome = blescan("read", LOCK, GUARDED, "--hex-only", *stored, user=PLAIN_USER, capabilities=(CAPABILITY,))
    succeeds(outcome, "the value that the service reads")
    log.check_encrypted()
    log.check_no_pairing()


@test
def bonds_are_listed_and_forgotten():
    mentions(blescan("bonds").must(NOT_FOUND).err, "there are no bonds")
    mentions(blescan("forget", ADDRESS).must(NOT_FOUND).err, "there is no bond")
    pair("--name", "front door")
    listed = blescan("bonds").must(DONE).out
    mentions(listed, LOCK, "passkey", "authenticated", "front door")
    same(len(listed.splitlines()), 1, "lines")
    bond = blescan("bonds", "--json").must(DONE).objects[0]
    same((bond["peer"], bond["keySize"]), (LOCK, 16), "the bond")
    stored = next(USUAL.glob("*.bonds")).read_text()
    keys = [field.partition("=")[2] for field in stored.split() if field.startswith(("ltk=", "irk="))]
    assert len(keys) == 2, f"keys: {len(keys)}"
    for key in keys:
        assert key[-32:] not in listed + json.dumps(bond), "a key is shown"
    log = LockLog()
    mentions(blescan("forget", ADDRESS).must(DONE).out, LOCK)
    blescan("bonds").must(NOT_FOUND)
    same(kernel_keys(), [], "keys of the kernel")
    same(kernel_list("identity_resolving_keys"), [], "identity keys of the kernel")
    # Now it is a stranger again, whose record of the bond is its own.
    read().must(REFUSED)
    same(log.all("encrypted", on=True), [], "encrypted links")


@test
def a_wrong_passkey_makes_no_bond():
    failed = blescan("pair", ADDRESS, "--passkey", "654321").must(REFUSED)
    mentions(failed.err, "--passkey")
    # There is no terminal here.
    failed = blescan("pair", ADDRESS).must(USAGE)
    mentions(failed.err, "--passkey", "terminal")
    blescan("bonds").must(NOT_FOUND)
    same(kernel_keys(), [], "keys of the kernel")


@test
def an_example_asks_for_the_passkey_on_its_terminal_once():
    bonds = Path("/run/vm/reader")
    shutil.rmtree(bonds, ignore_errors=True)
    arguments = (str(bonds), LOCK, GUARDED)
    first = Program(*arguments, program=READER, stdin=subprocess.PIPE)
    # It is read when the lock shows its passkey.
    first.child.stdin.write("123456\n")
    first.child.stdin.flush()
    asked = first.finish().must(DONE)
    question = f"Passkey that {LOCK} shows: "
    mentions(asked.out, question)
    same(bytes.fromhex(asked.out.replace(question, "")), b"authenticated", "the value")
    until(lambda: doing()["links"] == [], "the link stays")
    log = LockLog()
    replug()
    # Without a terminal.
    succeeds(Program(*arguments, program=READER).finish(), "the value after a replug")
    log.check_encrypted()


@row("S11")
@test
def a_lock_that_changes_its_address_is_one_device():
    """By its identity; the scan and the reads need no other option than before."""
    tell(privacy=True)
    scan = Program("scan", "--json", "--name", "Lock").wait_for_lines(1).interrupt().must(DONE)
    first = scan.objects[0]["address"]
    assert "identity" not in scan.objects[0], "a stranger has an identity"
    blescan("pair", first, "--passkey", "123456").must(DONE)
    scan = Program("scan", "--json", "--name", "Lock").wait_for_lines(1)
    log, count = LockLog(), 4
    for number in range(count):
        seen = len(scan.lines)
        tell(rotate=True)
        scan.wait_for(lambda lines: len(lines) > seen, "the new address")
    found = scan.interrupt().must(DONE).objects
    same({report["identity"] for report in found}, {LOCK}, "identities")
    same([report["event"] for report in found].count("found"), 1, "devices")
    addresses = {report["address"] for report in found}
    same(len(addresses), count + 1, "addresses")
    for peer in ADDRESS, found[-1]["address"]:
        succeeds(read(peer=peer), f"the value by {peer}")
    log.check_encrypted(links=2)
    same(len(blescan("bonds", "--json").must(DONE).objects), 1, "bonds")


if __name__ == "__main__":
    main(before=forget_all)
