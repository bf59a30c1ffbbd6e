import BLECore
import CBluetooth
import Foundation
import Glibc
import TestSupport
import Testing

@testable import BLELinux

@Suite("Link sockets") struct LinkSocketTests {
    @Test func packetsKeepTheirBounds() throws {
        let (near, far) = try LinkSocket.pair()
        var sender = LinkSocket(adopting: near)
        var receiver = LinkSocket(adopting: far)
        #expect(receiver.receivePacket() == nil)
        #expect(sender.send([0x0A, 0x03, 0x00]) == .sent)
        #expect(sender.send([0x1E]) == .sent)
        #expect(receiver.receivePacket() == [0x0A, 0x03, 0x00])
        #expect(receiver.receivePacket() == [0x1E])
        #expect(receiver.receivePacket() == nil)
        #expect(receiver.send([0x0B, 0xFF]) == .sent)
        #expect(sender.receivePacket() == [0x0B, 0xFF])
    }

    @Test(.row("O16")) func aLongPacketIsCutAndReportsItsLength() throws {
        let (near, far) = try LinkSocket.pair()
        var sender = LinkSocket(adopting: near)
        var receiver = LinkSocket(adopting: far)
        #expect(sender.send([UInt8](repeating: 0x5A, count: 1500)) == .sent)
        #expect(sender.send([1]) == .sent)
        var buffer = [UInt8](repeating: 0, count: LinkSocket.bufferSize)
        #expect(receiver.receive(into: &buffer) == .packet(count: 1024, length: 1500))
        #expect(buffer.count == 1024)
        #expect(receiver.receive(into: &buffer) == .packet(count: 1, length: 1))
    }

    @Test func aListenerRemovesItsOwnFileAlone() throws {
        let folder = try Folder(inMemory: true)
        let path = folder.path + "/links"
        let first = try ListeningSocket.unix(path: path)
        // Another program takes the path.
        try FileManager.default.removeItem(atPath: path)
        let second = try ListeningSocket.unix(path: path)
        _ = consume first
        _ = try LinkSocket.connectedUnix(path: path)
        _ = consume second
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    /// A packet that the kernel has no time of, as one that was put together from fragments, has not arrived now.
    @Test func arrivalsAreInOrderAndNeverInvented() throws {
        let (near, far) = try LinkSocket.pair()
        var sender = LinkSocket(adopting: near)
        var receiver = LinkSocket(adopting: far)
        #expect(sender.send([1]) == .sent)
        try receiver.reportArrivals()
        #expect(sender.send([2]) == .sent)
        #expect(sender.send([3]) == .sent)
        var arrivals: [ArrivalTime?] = []
        for number in 1...3 as ClosedRange<UInt8> {
            #expect(receiver.receivePacket() == [number])
            arrivals.append(receiver.lastArrival)
        }
        #expect(arrivals[0] == nil)
        let (first, second) = (try #require(arrivals[1]), try #require(arrivals[2]))
        #expect(first <= second)
        #expect(receiver.receivePacket() == nil)
        let last = receiver.lastArrival
        #expect(last == nil)
    }

    @Test(.row("T10")) func anEmptyPacketIsNotTheEnd() throws {
        let (near, far) = try LinkSocket.pair()
        var sender = LinkSocket(adopting: near)
        var receiver = LinkSocket(adopting: far)
        var buffer = [UInt8](repeating: 0, count: 16)
        #expect(sender.send([]) == .sent)
        #expect(receiver.receive(into: &buffer) == .packet(count: 0, length: 0))
        #expect(receiver.receive(into: &buffer) == .wouldBlock)
        #expect(sender.send([]) == .sent)
        #expect(sender.send([7]) == .sent)
        #expect(receiver.receive(into: &buffer) == .packet(count: 0, length: 0))
        #expect(receiver.receive(into: &buffer) == .packet(count: 1, length: 1))
    }

    @Test(.row("L05"), arguments: [[], [[7]], [[7], [8]]] as [[[UInt8]]])
    func aLinkHasEndedUnusedIfNothingWasSent(_ packets: [[UInt8]]) throws {
        let (near, far) = try LinkSocket.pair()
        var receiver = LinkSocket(adopting: far)
        var hasEnded = receiver.hasEndedUnused()
        #expect(!hasEnded, "the other end is open")
        do {
            var sender = LinkSocket(adopting: near)
            for packet in packets { #expect(sender.send(packet) == .sent) }
        }
        hasEnded = receiver.hasEndedUnused()
        #expect(hasEnded == packets.isEmpty)
        // Nothing was taken.
        for packet in packets { #expect(receiver.receivePacket() == packet) }
        hasEnded = receiver.hasEndedUnused()
        #expect(hasEnded)
    }

    @Test func aLinkHasInputUntilItWasReadAndAtItsEnd() throws {
        let (near, far) = try LinkSocket.pair()
        var sender = LinkSocket(adopting: near)
        var receiver = LinkSocket(adopting: far)
        var hasInput = receiver.hasInput
        #expect(!hasInput)
        #expect(sender.send([7]) == .sent)
        hasInput = receiver.hasInput
        #expect(hasInput)
        #expect(receiver.receivePacket() == [7])
        hasInput = receiver.hasInput
        #expect(!hasInput)
        sender.shutdown()
        hasInput = receiver.hasInput
        #expect(hasInput, "the end")
    }

    @Test(.row("L05")) func whatWasSentBeforeTheEndIsStillRead() throws {
        let (near, far) = try LinkSocket.pair()
        var receiver = LinkSocket(adopting: far)
        do {
            var sender = LinkSocket(adopting: near)
            #expect(sender.send([]) == .sent)
            #expect(sender.send([1, 2]) == .sent)
        }
        var buffer = [UInt8](repeating: 0, count: 16)
        // The end may read as nothing before the last packet, so the empty one is not distinguished from it.
        #expect(receiver.receive(into: &buffer) == .packet(count: 2, length: 2))
        #expect(receiver.receive(into: &buffer) == .ended(errno: 0))
        #expect(receiver.receive(into: &buffer) == .ended(errno: 0))
        #expect(receiver.send([1]) == .failed(errno: EPIPE))
    }

    /// The kernel looks for a packet, then for the end: both may come in between. FaultTests make it happen each time;
    /// here the kernel does.
    @Test(.row("T10")) func theEndIsNotAnEmptyPacket() throws {
        for round in 0..<500 {
            let (near, far) = try LinkSocket.pair()
            // Not a task: this loop keeps a thread of the pool, and the others may be in use.
            Thread.detachNewThread {
                var sender = LinkSocket(adopting: near)
                _ = sender.send([1, 2])
            }
            var receiver = LinkSocket(adopting: far)
            var buffer = [UInt8](repeating: 0, count: 16)
            var inputs: [LinkInput] = []
            while true {
                let input = receiver.receive(into: &buffer, isAwaited: false)
                if input == .wouldBlock { continue }
                inputs.append(input)
                if case .ended = input { break }
            }
            try #require(inputs == [.packet(count: 2, length: 2), .ended(errno: 0)], "round \(round)")
        }
    }

    /// A Unix peer that closes without having read makes the kernel report a reset, before what it had sent itself.
    @Test(.row("L05")) func theReasonComesAfterTheLastPacket() throws {
        let (near, far) = try LinkSocket.pair()
        var receiver = LinkSocket(adopting: far)
        do {
            var sender = LinkSocket(adopting: near)
            #expect(receiver.send([9]) == .sent)
            #expect(sender.send([1, 2, 3]) == .sent)
        }
        var buffer = [UInt8](repeating: 0, count: 16)
        #expect(receiver.receive(into: &buffer) == .packet(count: 3, length: 3))
        #expect(receiver.receive(into: &buffer) == .ended(errno: ECONNRESET))
        #expect(receiver.receive(into: &buffer) == .ended(errno: ECONNRESET))
    }

    @Test(.row("O13")) func theReasonThatASendLearnsIsKeptForTheReader() throws {
        let (near, far) = try LinkSocket.pair()
        var receiver = LinkSocket(adopting: far)
        #expect(receiver.send([9]) == .sent)
        do { _ = LinkSocket(adopting: near) }
        let outcome = receiver.send([9])
        #expect(outcome == .failed(errno: EPIPE) || outcome == .failed(errno: ECONNRESET))
        var buffer = [UInt8](repeating: 0, count: 16)
        #expect(receiver.receive(into: &buffer) == .ended(errno: ECONNRESET))
    }

    /// A child process has copies of its parent's descriptors until it executes its program.
    @Test(.row("L05")) func aLinkEndsThoughAChildHasACopyOfItsDescriptor() throws {
        let (near, far) = try LinkSocket.pair()
        let copy = dup(near)
        defer { Glibc.close(copy) }
        var receiver = LinkSocket(adopting: far)
        do {
            var sender = LinkSocket(adopting: near)
            #expect(sender.send([1, 2]) == .sent)
        }
        #expect(receiver.receivePacket() == [1, 2])
        var buffer = [UInt8](repeating: 0, count: 16)
        #expect(receiver.receive(into: &buffer) == .ended(errno: 0))
    }

    @Test func aReleasedDescriptorStaysConnected() throws {
        let (near, far) = try LinkSocket.pair()
        var receiver = LinkSocket(adopting: far)
        var sender = LinkSocket(adopting: LinkSocket(adopting: near).release())
        #expect(sender.send([3]) == .sent)
        #expect(receiver.receivePacket() == [3])
    }

    @Test func shutdownEndsBothSides() throws {
        let (near, far) = try LinkSocket.pair()
        var one = LinkSocket(adopting: near)
        var other = LinkSocket(adopting: far)
        one.shutdown()
        var buffer = [UInt8](repeating: 0, count: 16)
        #expect(one.receive(into: &buffer) == .ended(errno: 0))
        #expect(other.receive(into: &buffer) == .ended(errno: 0))
        #expect(other.send([1]) == .failed(errno: EPIPE))
    }

    @Test(.row("O10")) func aFullBufferWouldBlockAndDrains() throws {
        let (near, far) = try LinkSocket.pair()
        var sender = LinkSocket(adopting: near)
        var receiver = LinkSocket(adopting: far)
        var sent = 0
        while sent < 100_000, sender.send([UInt8](repeating: UInt8(sent % 256), count: 244)) == .sent { sent += 1 }
        #expect(sender.send([1]) == .wouldBlock)
        let loop = EventLoop()
        var writable = 0
        loop.onWritable(sender.descriptor) { writable += 1 }
        // Nothing but the timer can end this run: a full socket is not writable.
        var late = false
        _ = loop.schedule(at: loop.now() + .milliseconds(5)) { late = true }
        loop.run { late || writable > 0 }
        #expect(writable == 0)
        for index in 0..<sent { #expect(receiver.receivePacket()?.first == UInt8(index % 256)) }
        loop.run { writable > 0 }
        #expect(sender.send([0xEE]) == .sent)
        #expect(receiver.receivePacket() == [0xEE])
        loop.unregister(sender.descriptor)
    }

    @Test func descriptorsAreClosedAndNotInherited() throws {
        let (near, far) = try LinkSocket.pair()
        do {
            let socket = LinkSocket(adopting: near)
            #expect(fcntl(socket.descriptor, F_GETFD) & FD_CLOEXEC != 0)
            #expect(fcntl(socket.descriptor, F_GETFL) & O_NONBLOCK != 0)
        }
        // Closed: the peer sees the end. The number itself may be in use by another test already.
        var other = LinkSocket(adopting: far)
        var buffer = [UInt8](repeating: 0, count: 16)
        #expect(other.receive(into: &buffer) == .ended(errno: 0))
    }

    @Test func aConnectedPairNeedsNoFinish() throws {
        let (near, far) = try LinkSocket.pair()
        var socket = LinkSocket(adopting: near)
        _ = LinkSocket(adopting: far)
        let isConnecting = socket.isConnecting
        #expect(!isConnecting)
        #expect(socket.finishConnect() == .connected)
        try socket.raiseReceiveBuffer()
        #expect(throws: SystemCallError.self) { _ = try socket.hciHandle() }
    }

    /// Only the kernel's own sockets have a security.
    @Test func aStandInHasNoSecurity() throws {
        let (near, far) = try LinkSocket.pair()
        var socket = LinkSocket(adopting: near)
        _ = LinkSocket(adopting: far)
        do {
            _ = try socket.securityLevel()
            Issue.record("a socketpair has a security")
        } catch {
            #expect(error.call == "BT_SECURITY" && [EOPNOTSUPP, ENOPROTOOPT].contains(error.errno))
        }
        do {
            try socket.setSecurityLevel(.medium)
            Issue.record("a socketpair has a security")
        } catch {
            #expect(error.call == "BT_SECURITY" && [EOPNOTSUPP, ENOPROTOOPT].contains(error.errno))
        }
        #expect(
            SocketSecurity.Level.low < .medium && .medium < SocketSecurity.Level.high
                && .high < SocketSecurity.Level.fips)
    }

    @Test func aMissingUnixSocketIsATypedError() {
        #expect(throws: SystemCallError(call: "connect", errno: ENOENT)) {
            _ = try LinkSocket.connectedUnix(path: "/nonexistent/socket")
        }
        #expect(throws: SystemCallError(call: "connect", errno: ENAMETOOLONG)) {
            _ = try LinkSocket.connectedUnix(path: String(repeating: "x", count: 200))
        }
    }

    /// The layout is the kernel's: family, PSM, address in wire order, channel, address type, one byte of padding.
    @Test(arguments: [(AddressType.public, UInt8(1)), (.random, 2), (.publicIdentity, 1), (.randomIdentity, 2)])
    func socketAddressesHaveTheKernelsLayout(type: AddressType, wire: UInt8) throws {
        let address = try #require(BluetoothAddress("C0:11:22:33:44:55"))
        var kernel = LinkSocket.socketAddress(address, type)
        let bytes = unsafe withUnsafeBytes(of: &kernel) { unsafe [UInt8]($0) }
        #expect(bytes.count == 14)
        #expect(bytes.prefix(13) == [31, 0, 0, 0, 0x55, 0x44, 0x33, 0x22, 0x11, 0xC0, 4, 0, wire])
    }

    /// Without Bluetooth in the kernel the socket cannot be made; with it, no adapter has this address.
    @Test func connectingWithoutAnAdapterIsATypedError() throws {
        let nobody = try #require(BluetoothAddress("02:00:00:00:00:01"))
        let peer = PeerID(address: nobody, type: .random)
        do {
            _ = try LinkSocket.connectingL2CAP(from: nobody, type: .public, to: peer, sendTimeout: .seconds(1))
            Issue.record("connected from an adapter that does not exist")
        } catch {
            #expect(
                [
                    SystemCallError(call: "socket", errno: EAFNOSUPPORT),
                    SystemCallError(call: "connect", errno: EHOSTUNREACH),
                ].contains(error))
        }
    }
}
