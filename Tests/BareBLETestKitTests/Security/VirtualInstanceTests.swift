import BLECore
import BareBLE
import Testing

@testable import BareBLETestKit

/// Advertising instances of the virtual kernel, by raw packets.
@Suite("Virtual advertising instances", .timeLimit(.minutes(5)))
struct VirtualInstanceTests {
    private static let added = [
        "54000000 1200 04 01400000 0000 0000 a0000000 a0000000 7f", "55000000 0600 04 03 00 020106",
    ]

    @Test("An instance is an advertising set, and other programs are notified")
    func anInstanceIsAnAdvertisingSet() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            let other = try await bench.anotherSocket()
            let untrusted = try await bench.anotherSocket(isTrusted: false)
            #expect(
                try await bench.exchange("3d000000 0000") == [packet("01000000 0b00 3d00 00 81c30100 fb fb 04 00")])
            #expect(
                try await bench.exchange(Self.added[0]) == [packet("01000000 0700 5400 00 04 7f fb fb")])
            #expect(await bench.radio.advertisements().isEmpty)
            #expect(try await bench.exchange(Self.added[1]) == [packet("01000000 0400 5500 00 04")])
            #expect(await bench.radio.advertisements().map(\.set) == [4])
            #expect(await bench.radio.advertisements().first?.data == AdvertisingData([2, 1, 6]))
            #expect(other.received() == [packet("23000000 0100 04")])
            #expect(
                try await bench.exchange("3d000000 0000") == [
                    packet("01000000 0b00 3d00 00 81c30100 fb fb 04 00")
                ], "a number beyond the number of instances is not listed")
            #expect(try await bench.exchange("3f000000 0100 04") == [packet("01000000 0400 3f00 00 04")])
            #expect(await bench.radio.advertisements().isEmpty)
            #expect(other.received() == [packet("24000000 0100 04")])
            #expect(untrusted.received().isEmpty)
        }
    }

    @Test("What cannot be is refused, and data that are refused remove the instance")
    func refusedDataRemoveTheInstance() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            let untrusted = try await bench.anotherSocket(isTrusted: false)
            try untrusted.send("3d000000 0000")
            await bench.pass(.zero)
            #expect(untrusted.received() == [packet("02000000 0300 3d00 14")])
            #expect(try await bench.exchange("3f000000 0100 04") == [packet("02000000 0300 3f00 0d")])
            // Beyond the greatest number; a flag that is not supported; data without parameters.
            let beyond = "54000000 1200 05 01400000 0000 0000 a0000000 a0000000 7f"
            #expect(try await bench.exchange(beyond) == [packet("02000000 0300 5400 0d")])
            let strange = "54000000 1200 04 00004000 0000 0000 a0000000 a0000000 7f"
            #expect(try await bench.exchange(strange) == [packet("02000000 0300 5400 0d")])
            #expect(try await bench.exchange(Self.added[1]) == [packet("02000000 0300 5500 0d")])
            // A structure that is cut off.
            _ = try await bench.exchange(Self.added[0])
            #expect(try await bench.exchange("55000000 0600 04 03 00 030106") == [packet("02000000 0300 5500 0d")])
            #expect(await bench.radio.instances().isEmpty)
            await bench.radio.limitInstances(to: 1)
            #expect(try await bench.exchange(Self.added[0]) == [packet("02000000 0300 5400 0d")])
            await bench.radio.limitInstances(to: nil)
            await bench.radio.powerOff()
            await bench.pass(.zero)
            _ = bench.management.received()
            #expect(try await bench.exchange(Self.added[0]) == [packet("02000000 0300 5400 0b")])
        }
    }

    @Test("It is on air again after a power cycle, and gone after the adapter was unplugged")
    func powerCycle() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            for command in Self.added { _ = try await bench.exchange(command) }
            await bench.radio.powerOff()
            #expect(await bench.radio.advertisements().isEmpty)
            await bench.radio.powerOn()
            #expect(await bench.radio.advertisements().map(\.set) == [4])
            await bench.radio.unplug()
            await bench.radio.plugIn(isUp: true)
            #expect(await bench.radio.advertisements().isEmpty)
            #expect(await bench.radio.instances().isEmpty)
        }
    }

    @Test(
        "With sets it is off air until the link of a central ends; without, it is on again at once",
        arguments: [true, false])
    func aCentralTakesAnInstanceWithASetOffAir(hasSets: Bool) async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            await bench.radio.setPersonality(hasSets ? .bluetooth5 : .bluetooth4)
            for command in Self.added { _ = try await bench.exchange(command) }
            #expect(await bench.radio.advertisements().map(\.set) == [hasSets ? 4 : 0])
            let central = await bench.radio.addCentral()
            try await central.connect()
            await bench.pass(.zero)
            #expect(await bench.radio.advertisements().count == (hasSets ? 0 : 1))
            // No socket listens: the kernel ends the link.
            await bench.pass(.seconds(5))
            #expect(await bench.radio.advertisements().count == 1)
        }
    }
}
