// The kernel's own Bluetooth sockets, with two adapters that hear each other. They switch adapters on and off, so they
// run only where BAREBLE_KERNEL_TESTS asks for it: in a virtual machine with two simulated controllers of the LE-only
// kind that keeps to Bluetooth 4.2 (btvirt's other kind does not connect to a legacy advertiser).

import BLECore
import Glibc
import TestSupport
import Testing

@testable import BLELinux

private let isAskedFor = unsafe getenv("BAREBLE_KERNEL_TESTS") != nil

@Suite("Kernel sockets", .serialized, .enabled(if: isAskedFor), .timeLimit(.minutes(5)))
struct KernelSocketTests {
    private let loop = EventLoop()
    private let adapter: UInt16 = 0

    private func start(
        to peer: PeerID, timeout: Duration = .seconds(20)
    ) throws(SystemCallError) -> LinkSocket {
        let own = try Controllers.info(adapter).address
        return try LinkSocket.connectingL2CAP(from: own, type: .public, to: peer, sendTimeout: timeout)
    }

    private func finish(_ socket: inout LinkSocket) -> ConnectProgress {
        var writable = !socket.isConnecting
        loop.onWritable(socket.descriptor) { writable = true }
        #expect(loop.wait { writable })
        loop.unregister(socket.descriptor)
        return socket.finishConnect()
    }

    /// Waits for the end of a link, reading what comes before it.
    private func end(of socket: inout LinkSocket) -> LinkEnd? {
        var buffer = [UInt8](repeating: 0, count: LinkSocket.bufferSize)
        var readable = false
        loop.onReadable(socket.descriptor) { readable = true }
        defer { loop.unregister(socket.descriptor) }
        while loop.wait(until: { readable }) {
            readable = false
            while true {
                let input = socket.receive(into: &buffer)
                if case .ended(let errno) = input { return LinkEnd(errno: errno) }
                if input == .wouldBlock { break }
            }
        }
        return nil
    }

    /// Sends a request and waits for its response.
    private func exchange(_ request: [UInt8], on socket: inout LinkSocket) -> [UInt8] {
        var others = 0
        return exchange(request, on: &socket, countingOthers: &others)
    }

    private func exchange(
        _ request: [UInt8], on socket: inout LinkSocket, countingOthers others: inout Int
    ) -> [UInt8] {
        #expect(socket.send(request) == .sent)
        var readable = false
        loop.onReadable(socket.descriptor) { readable = true }
        defer { loop.unregister(socket.descriptor) }
        while loop.wait(until: { readable }) {
            readable = false
            var buffer = [UInt8](repeating: 0, count: LinkSocket.bufferSize)
            while true {
                let input = socket.receive(into: &buffer)
                if case .packet(let count, _) = input {
                    if buffer[0] == 0x01 { return Array(buffer.prefix(count)) }
                    others += 1
                }
                if case .ended = input { return [] }
                if input == .wouldBlock { break }
            }
        }
        return []
    }

    @Test func adaptersAreListedAndFiltersKept() throws {
        _ = try KernelPeripheral.ready(adapter, loop)
        let info = try Controllers.info(adapter)
        #expect(info.isUp && info.isRunning)
        #expect(info.address != .zero)
        #expect(info.bus == .virtual)
        #expect(try Controllers.list().contains(info))
        #expect(Privileges.current().has(.netRaw) && Privileges.current().has(.netAdmin))
        let socket = try HCISocket(adapter: adapter)
        try socket.setFilter(.everything)
        #expect(try socket.filter().events & 1 << 62 != 0)
        try socket.raiseReceiveBuffer()
        #expect(RadioSwitch.bluetooth().allSatisfy { !$0.isBlocked })
    }

    @Test func whatIsNotReadInTimeIsCounted() throws {
        var raw = try KernelPeripheral.ready(adapter, loop)
        var lazy = try HCISocket(adapter: adapter)
        try lazy.setFilter(.commands)
        let readAddress: [UInt8] = [0x01, 0x09, 0x10, 0]
        let asked = 1_000
        for _ in 0..<asked { _ = try KernelPeripheral.command(readAddress, on: &raw, loop) }
        let dropped = lazy.droppedPackets
        var kept = 0
        var buffer = [UInt8](repeating: 0, count: HCISocket.bufferSize)
        while case .packet = lazy.receive(into: &buffer) { kept += 1 }
        #expect(dropped > 0)
        #expect(kept + dropped == asked)
    }

    @Test func aLinkCarriesPacketsAndEndsWithItsReason() throws {
        var raw = try KernelPeripheral.ready(adapter, loop)
        let peripheral = try KernelPeripheral(adapter: 1, loop: loop)
        defer { peripheral.end() }
        var link = try start(to: peripheral.peer)
        try peripheral.advertise()
        #expect(finish(&link) == .connected)
        #expect(exchange([0x0A, 3, 0], on: &link) == [0x01, 0x0A, 0, 0, 0x0A])
        let handle = try link.hciHandle()
        let known = try Controllers.links(of: adapter)
        #expect(
            known == [
                ControllerLink(handle: handle, address: peripheral.peer.address, isCentral: true, isConnected: true)
            ])
        // A second socket to the same peer is refused.
        do throws(SystemCallError) {
            _ = try start(to: peripheral.peer)
            Issue.record("two sockets on one link")
        } catch {
            #expect(ConnectFailure(errno: error.errno, timeRanOut: false) == .busy)
        }
        // HCI Disconnect ends it at once, where closing would take two seconds.
        let disconnect: [UInt8] = [0x01, 0x06, 0x04, 3, UInt8(handle & 0xFF), UInt8(handle >> 8), 0x13]
        #expect(try KernelPeripheral.command(disconnect, on: &raw, loop) == [0])
        // One emulator reports our own hang-up as the peer's.
        let reason = end(of: &link)
        #expect(reason == .endedByHost || reason == .endedByPeer)
        #expect(link.send([0x0A, 3, 0]) != .sent)
    }

    @Test func anAbsentPeerTimesOut() throws {
        _ = try KernelPeripheral.ready(adapter, loop)
        let nobody = PeerID(address: BluetoothAddress(rawValue: 0xC012_3456_789A), type: .random)
        var link = try start(to: nobody, timeout: .seconds(1))
        guard case .failed(let errno) = finish(&link) else {
            Issue.record("connected to nobody")
            return
        }
        #expect(ConnectFailure(errno: errno, timeRanOut: true) == .timedOut)
    }

    @Test(.row("O04")) func switchingTheAdapterOffEndsLinks() throws {
        var raw = try KernelPeripheral.ready(adapter, loop)
        let peripheral = try KernelPeripheral(adapter: 1, loop: loop)
        defer { peripheral.end() }
        var link = try start(to: peripheral.peer)
        try peripheral.advertise()
        #expect(finish(&link) == .connected)
        try Controllers.powerDown(adapter)
        #expect(end(of: &link) == .endedByHost)
        #expect(raw.send([0x01, 0x03, 0x0C, 0]) == .failed(errno: ENETDOWN))
        #expect(try !Controllers.info(adapter).isUp)
        do throws(SystemCallError) {
            _ = try start(to: peripheral.peer)
            Issue.record("connecting from an adapter that is off")
        } catch {
            #expect(ConnectFailure(errno: error.errno, timeRanOut: false) == .adapterUnavailable)
        }
        // The raw socket outlives the pause.
        _ = try KernelPeripheral.ready(adapter, loop)
        #expect(try KernelPeripheral.command([0x01, 0x09, 0x10, 0], on: &raw, loop).first == 0)
    }

    /// Not reading makes the kernel drop packets, which it reports with the first packet that it queues afterwards.
    @Test(.row("L06")) func lossIsCounted() throws {
        _ = try KernelPeripheral.ready(adapter, loop)
        let peripheral = try KernelPeripheral(adapter: 1, loop: loop)
        defer { peripheral.end() }
        var link = try start(to: peripheral.peer)
        try peripheral.advertise()
        #expect(finish(&link) == .connected)
        #expect(exchange([0x0A, 3, 0], on: &link).count == 5)
        var sent = 0
        var settled = 0
        // This side does not know when all has arrived: a time without progress on the other must do.
        while sent < 600, settled < 100 {
            let count = peripheral.notify(600 - sent)
            sent += count
            settled = count == 0 ? settled + 1 : 0
            pause(.milliseconds(50))
        }
        pause(.seconds(3))
        var kept = 0
        while link.receivePacket() != nil { kept += 1 }
        // What was on its way arrives before the response.
        #expect(exchange([0x0A, 3, 0], on: &link, countingOthers: &kept).count == 5)
        #expect(sent == 600)
        #expect(kept < 600 && kept > 100)
        #expect(Int(link.droppedPackets) == 600 - kept)
    }

    private func pause(_ time: Duration) {
        var over = false
        _ = loop.schedule(at: loop.now() + time) { over = true }
        loop.run { over }
    }
}
