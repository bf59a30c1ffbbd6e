"""The guest's radio: Bumble's virtual controllers on /dev/vhci, and Bumble peripherals that exist only on the air.

    radio.py N [--legacy] [--peer MODULE]...

creates hci0 ... hciN-1 (LE 5 with extended advertising; LE 4.2 with --legacy), starts peripherals/MODULE.py of each
--peer, and creates radio.ready when all is up. Standard input accepts commands, one per line:

    drop I [REASON]     ends every link of hciI, on both sides, with this HCI error (default 8, supervision time-out)
    unplug I, plug I    removes the controller from the machine, and adds it again
    deafen I, undeafen I    hciI receives no advertising meanwhile
    confuse I           the same, until hciI is reset, as the kernel does when it switches it on
    off NAME, on NAME   switches the peripherals whose names have this prefix off, with their links, and on again
    show I              writes the state of hciI into peers/hciI.json
    tell NAME TEXT      passes the text to this peripheral, if it can be told something
"""

import argparse
import asyncio
import errno
import importlib
import json
import os
import sys
from pathlib import Path

from air import Air
from bumble import core, hci
from bumble.transport import open_transport
from controllers import Status, VirtualController

READY = Path("/run/vm/radio.ready")
PEERS = Path("/run/vm/peers")


class Machine:
    """The controllers that the guest's kernel sees, by index."""

    def __init__(self, air, legacy, peripherals):
        self.air, self.legacy, self.plugged, self.peripherals = air, legacy, {}, peripherals

    async def plug(self, index):
        transport = await open_transport("vhci")
        parse = transport.source.data_received

        def receive(packet):
            # One read is one packet. Bytes that a host appends to one must not shift those that follow.
            transport.source.parser.reset()
            try:
                parse(packet)
            except core.InvalidPacketError as error:
                print(f"radio: hci{index} was sent {packet.hex()}: {error}", flush=True)

        transport.source.data_received = receive
        device = transport.sink.transport.get_extra_info("pipe")

        def send(packet):
            # A kernel whose adapter is off refuses the controller's packets, which a real controller never learns.
            # Bumble would take that for the end: it would close the device, and the adapter would disappear from the
            # machine.
            try:
                if not device.closed:
                    device.write(packet)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    print(f"radio: hci{index} cannot say {packet.hex()}: {error}", flush=True)

        transport.sink.on_packet = send
        controller = VirtualController(
            f"hci{index}", host_source=transport.source, host_sink=transport.sink, link=self.air, legacy=self.legacy,
            public_address=f"00:1A:7D:00:00:{index + 1:02X}")
        self.plugged[index] = controller, transport

    async def unplug(self, index):
        controller, transport = self.plugged.pop(index)
        controller.drop_links(Status.CONNECTION_TIMEOUT_ERROR)
        self.air.remove_controller(controller)
        await transport.close()

    def show(self, index):
        controller = self.plugged[index][0]
        doing = {
            "scanning": bool(controller.le_scan_enable), "connecting": controller.pending_le_connection is not None,
            "advertising": controller.is_advertising, "begun": controller.advertisements_begun,
            "links": [str(address) for address in controller.le_connections]}
        fresh = PEERS / "fresh"
        fresh.write_text(json.dumps(doing))
        os.replace(fresh, PEERS / f"hci{index}.json")

    async def obey(self, line):
        match line.split():
            case ["drop", index, *reason]:
                self.plugged[int(index)][0].drop_links(int(reason[0], 0) if reason else 8)
            case ["unplug", index]:
                await self.unplug(int(index))
            case ["plug", index]:
                await self.plug(int(index))
            case ["deafen" | "undeafen" as verb, index]:
                self.plugged[int(index)][0].deaf = verb == "deafen"
            case ["confuse", index]:
                self.plugged[int(index)][0].deaf = self.plugged[int(index)][0].hears_after_reset = True
            case ["error", index, code]:
                self.plugged[int(index)][0].send_hci_packet(hci.HCI_Event(bytes([int(code, 0)]), event_code=0x10))
            case ["show", index]:
                self.show(int(index))
            case ["off" | "on" as verb, *words]:
                for controller in [c for c in self.air.controllers if c.name.startswith(" ".join(words))]:
                    controller.is_off = verb == "off"
                    if controller.is_off:
                        controller.drop_links(Status.CONNECTION_TIMEOUT_ERROR)
            case ["tell", name, *words]:
                await self.peripherals[name].obey(" ".join(words))
            case _:
                print("radio: no such command:", line.strip(), flush=True)


async def main():
    options = argparse.ArgumentParser()
    options.add_argument("controllers", type=int)
    options.add_argument("--legacy", action="store_true")
    options.add_argument("--peer", action="append", default=[])
    chosen = options.parse_args()
    air = Air()
    # Peripherals first: importing their stack takes longer than the kernel waits for a new controller's first response.
    sys.path.insert(0, str(Path(__file__).resolve().parent / "peripherals"))
    alive = [await importlib.import_module(name).start(air, VirtualController, chosen.legacy) for name in chosen.peer]
    machine = Machine(air, chosen.legacy, {
        peripheral.name: peripheral for made in alive if isinstance(made, list) for peripheral in made if hasattr(peripheral, "obey")})
    for index in range(chosen.controllers):
        await machine.plug(index)
    READY.touch()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        await machine.obey(line)
    return alive


if __name__ == "__main__":
    asyncio.run(main())
