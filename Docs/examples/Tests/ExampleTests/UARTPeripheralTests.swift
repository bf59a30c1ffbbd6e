import BareBLE
import Glibc
import Synchronization
import Testing
import UARTServing

/// The serial port, with a program that opens its terminal, and a central on a socket pair.
@Suite(.timeLimit(.minutes(10))) struct UARTPeripheralTests {
    private let bench = ServingBench()
    private let link = "/tmp/bareble-example-\(getpid())-\(UInt32.random(in: 0 ... .max))"

    /// Opens the channel of a central; its other end is a socket that preserves packets.
    private func open(_ port: UARTPeripheral, _ central: ConnectedCentral.ID) async throws -> Int32 {
        let (ours, theirs) = try ServingBench.pair()
        try await bench.peripheral.attach(channel: ours, to: port.channels, of: central)
        return theirs
    }

    private func terminal(_ name: String) async throws -> Int32 {
        let terminal = Mutex<Int32>(-1)
        try await waited(for: "\(name) is there") {
            let descriptor = Glibc.open(link, O_RDWR | O_NOCTTY | O_NONBLOCK)
            terminal.withLock { $0 = descriptor }
            return descriptor >= 0
        }
        return terminal.withLock { $0 }
    }

    private func received(_ count: Int, from descriptor: Int32) async throws -> [UInt8] {
        let bytes = Mutex<[UInt8]>([])
        try await waited(for: "\(count) bytes come", seen: { ["\(bytes.withLock { $0 })"] }) {
            var buffer = [UInt8](repeating: 0, count: 8_192)
            let length = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            let fromTerminal = length < 0 && errno == ENOTSOCK ? Glibc.read(descriptor, &buffer, buffer.count) : length
            return bytes.withLock { bytes in
                bytes += buffer.prefix(max(0, fromTerminal))
                return bytes.count >= count
            }
        }
        return bytes.withLock { $0 }
    }

    @Test func aCentralFindsThePSMAndCarriesBytesBothWays() async throws {
        let port = try await UARTPeripheral(bench.peripheral, linkedAt: link) { [lines = bench.lines] in lines.write($0)
        }
        async let end: Void = port.run()
        let (id, client) = try await bench.connect()
        #expect(try await client.read(.l2capPSM) == port.channels.psm)
        #expect(access(link, F_OK) != 0, "there is no terminal without a central")
        let channel = try await open(port, id)
        let program = try await terminal("the terminal")
        // Every byte value: a terminal that is not raw would change some.
        let text = (0..<600).map { UInt8(truncatingIfNeeded: $0) }
        #expect(write(program, text, text.count) == text.count)
        #expect(try await received(text.count, from: channel) == text)
        #expect(send(channel, text, text.count, 0) == text.count)
        #expect(try await received(text.count, from: program) == text)
        close(channel)
        try await waited(for: "the terminal is gone") { access(link, F_OK) != 0 }
        close(program)

        let next = try await open(port, id)
        let again = try await terminal("the terminal of the next channel")
        #expect(send(next, [7], 1, 0) == 1)
        #expect(try await received(1, from: again) == [7])
        close(again)
        await bench.peripheral.disconnect(id)
        try await waited(for: "the terminal is gone") { access(link, F_OK) != 0 }
        await bench.peripheral.stop()
        try await end
        close(next)
        #expect(bench.lines.all.count { $0.contains("opened a channel") } == 2)
    }

    @Test func aSecondChannelWaitsForTheFirst() async throws {
        let port = try await UARTPeripheral(bench.peripheral, linkedAt: link) { [lines = bench.lines] in lines.write($0)
        }
        let running = Task { try await port.run() }
        let (first, second) = (try await bench.connect(), try await bench.connect())
        let channel = try await open(port, first.id)
        let waiting = try await open(port, second.id)
        #expect(send(waiting, [2], 1, 0) == 1)
        try await bench.lines.wait(for: "central has opened a channel")
        let program = try await terminal("the first terminal")
        #expect(send(channel, [1], 1, 0) == 1)
        #expect(try await received(1, from: program) == [1])
        close(program)
        close(channel)
        try await bench.lines.wait(for: "central has opened a channel", count: 2)
        let next = try await terminal("the second terminal")
        #expect(try await received(1, from: next) == [2], "it was kept")
        close(next)
        running.cancel()
        _ = await running.result
        close(waiting)
        #expect(access(link, F_OK) != 0)
    }
}
