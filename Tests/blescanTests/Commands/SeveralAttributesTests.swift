import BLECore
import BareBLETestKit
import Foundation
import Glibc
import Testing

/// `notify` and `read` of several attributes at once: one connection, and each value with its name.
@Suite struct SeveralAttributesTests {
    private static let thermometer = VirtualDevice(
        name: "Two probes",
        services: [
            VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(
                        0xFFF1, .notify, plan: NotifyPlan([[0x0A], [0x0B]], every: .milliseconds(20))),
                    VirtualCharacteristic(
                        0x2A6E, .indicate, plan: NotifyPlan([[0xC4, 0x09]], every: .milliseconds(20))),
                    VirtualCharacteristic(0xFFF2, .read, value: [7]),
                ])
        ])

    /// Returns the configurations that were written to the peer, by handle.
    private func configurations(_ peer: SocketPeer) -> [[UInt8]] {
        peer.packets.filter { $0.first == 0x12 }.map { Array($0.dropFirst()) }
    }

    /// Listens until a value of each has arrived: `last` is one of the second, and the first has begun before it.
    private func listen(_ arguments: [String], _ last: String) async throws -> Outcome {
        let program = try RunningProgram(arguments)
        try await program.printed(last)
        try await program.printed("fff1")
        program.signal(SIGINT)
        return try await program.outcome()
    }

    @Test func valuesHaveTheHandleAndTheNameOfTheirAttribute() async throws {
        let peer = try await SocketPeer(Self.thermometer)
        let outcome = try await listen(["notify", "unix:\(peer.path)", "fff1", "temperature", "0x0003"], "c409")
        #expect(outcome.status == 0)
        #expect(outcome.errors == "unix:\(peer.path): subscribed, waiting for values\nunsubscribed\n")
        let lines = outcome.output.split(separator: "\n").map { $0.split(separator: " ", maxSplits: 1)[1] }
        #expect(
            Set(lines).isSubset(of: [
                " 0x0003 fff1         0a", " 0x0003 fff1         0b", " 0x0006 Temperature  c409  25.00 °C",
            ]), "\(lines)")
        #expect(lines.contains { $0.contains("Temperature") } && lines.contains { $0.contains("fff1") })
        #expect(
            configurations(peer)
                == [[4, 0, 1, 0], [7, 0, 2, 0], [4, 0, 0, 0], [7, 0, 0, 0]], "each on and off once")
    }

    @Test func objectsHaveTheirHandles() async throws {
        let peer = try await SocketPeer(Self.thermometer)
        let outcome = try await listen(["notify", "unix:\(peer.path)", "fff1", "2a6e", "--json"], "\"hex\":\"c409\"")
        #expect(outcome.status == 0)
        #expect(outcome.errors.isEmpty, "programs see the end themselves")
        let objects = try outcome.objects()
        #expect(Set(objects.compactMap { $0["handle"] as? Int }) == [3, 6])
        #expect(Set(objects.compactMap { $0["uuid"] as? String }) == ["fff1", "2a6e"])
        #expect(Set(objects.compactMap { $0["event"] as? String }) == ["notification", "indication"])
    }

    /// The others are disabled again before the command ends.
    @Test(arguments: [("fff9", 1, "could not subscribe to fff9"), ("fff2", 76, "could not subscribe to fff2")])
    func oneThatCannotBeSubscribedToEndsIt(_ name: String, _ status: Int32, _ words: String) async throws {
        let peer = try await SocketPeer(Self.thermometer)
        let outcome = try await BuiltProgram.run(["notify", "unix:\(peer.path)", "fff1", name, "2a6e"])
        #expect(outcome.status == status)
        #expect(outcome.errors.contains(words))
        #expect(outcome.output.isEmpty)
        #expect(configurations(peer) == [[4, 0, 1, 0], [4, 0, 0, 0]])
    }

    @Test func whatCanBeReadIsShown() async throws {
        let peer = try await SocketPeer(.battery)
        let outcome = try await BuiltProgram.run(["read", "unix:\(peer.path)", "2a19", "0x0003", "fff9", "2a01"])
        #expect(outcome.status == 1)
        #expect(
            outcome.output
                == """
                0x0008 Battery Level  40  64 %
                0x0003 Device Name    5669727475616c2062617474657279  "Virtual battery"
                0x0005 Appearance     0000  Unknown

                """)
        #expect(outcome.errors.contains("fff9"))
        #expect(
            peer.packets.count == 7, "the MTU, one request a value, one for the type of a handle, one for a service")
    }

    /// Each line says which value it is, also if it is the only one of its service.
    @Test func aServiceStandsForItsReadableValues() async throws {
        let information = """
            0x001c Manufacturer Name String  42617265424c45  "BareBLE"
            0x001e Model Number String       48524d2d31  "HRM-1"
            0x0020 Firmware Revision String  312e30  "1.0"

            """
        for name in ["device-information", "180a"] {
            let outcome = try await BuiltProgram.run(["read", "demo:heart-rate", name])
            #expect(outcome.status == 0 && outcome.output == information)
        }
        let battery = try await BuiltProgram.run(["read", "demo:battery", "battery"])
        #expect(battery.output == "0x0008 Battery Level  40  64 %\n")
        let mixed = try await BuiltProgram.run(["read", "demo:heart-rate", "2a19", "180a", "--json"])
        #expect(try mixed.objects().map { $0["handle"] as? Int } == [24, 28, 30, 32])
        let talk = try await BuiltProgram.run(["talk", "demo:heart-rate", "read 180a", "read 180f", "--json"])
        #expect(try talk.objects().map { $0["handle"] as? Int } == [28, 30, 32, 24])
        let watched = try await BuiltProgram.run(["watch", "demo:heart-rate", "180a", "--count", "3", "--hex-only"])
        #expect(watched.output == "42617265424c45\n48524d2d31\n312e30\n")
    }

    @Test(arguments: [
        ("demo:battery", "heart-rate", "the peer has no service 180d"),
        ("demo:uart", "nordic-uart", "nothing of this service is readable"),
        ("demo:uart", "6e400001-b5a3-f393-e0a9-e50e24dcca9e", "nothing of this service is readable"),
        ("demo:uart", "6e400001b5a3f393e0a9e50e24dcca9e", "nothing of this service is readable"),
    ])
    func aServiceWithoutValuesIsAFailureOfItsOwn(_ peer: String, _ service: String, _ words: String) async throws {
        let outcome = try await BuiltProgram.run(["read", peer, service, "2a00"])
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains(words), "\(outcome.errors)")
        #expect(outcome.output.contains("0x0003 Device Name"))
        #expect(try await BuiltProgram.run(["talk", peer, "read \(service)"]).status == 1)
    }

    /// A UUID without a name may be either; only the peer knows.
    @Test func aVendorsServiceStandsForItsReadableValues() async throws {
        let peer = try await SocketPeer(Self.thermometer)
        let outcome = try await BuiltProgram.run(["read", "unix:\(peer.path)", "fff0"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output == "0x0009 fff2  07\n")
        let other = try await SocketPeer(Self.thermometer)
        let talk = try await BuiltProgram.run(["talk", "unix:\(other.path)", "read fff0"])
        #expect(talk.status == 0 && talk.output == "0x0009 fff2  07\n")
        let folder = try TestFolder()
        let file = folder["value"]
        try Data().write(to: URL(filePath: file))
        let third = try await SocketPeer(Self.thermometer)
        let raw = try await BuiltProgram.run(["read", "unix:\(third.path)", "fff0", "--raw"], output: .file(file))
        #expect(raw.status == 64 && raw.errors.contains("fff0 is a service"), "\(raw.errors)")
        #expect(try Data(contentsOf: URL(filePath: file)).isEmpty)
    }

    /// A characteristic with the UUID comes before a service, and its first value has distinguished them.
    @Test func aVendorsServiceIsReadAgain() async throws {
        let peer = try await SocketPeer(Self.thermometer)
        let outcome = try await BuiltProgram.run(["watch", "unix:\(peer.path)", "fff0", "--every", "10ms", "-n", "2"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let lines = outcome.output.split(separator: "\n").map { $0.split(separator: " ", maxSplits: 1)[1] }
        #expect(lines == [" 0x0009 fff2  07", " 0x0009 fff2  07"])
        let device = VirtualDevice(
            name: "Same",
            services: [
                VirtualService(
                    0xFFF0,
                    [
                        VirtualCharacteristic(0xFFF0, .read, value: [1]),
                        VirtualCharacteristic(0xFFF1, .read, value: [2]),
                    ])
            ])
        let other = try await SocketPeer(device)
        let same = try await BuiltProgram.run([
            "watch", "unix:\(other.path)", "fff0", "--every", "10ms", "-n", "2", "--hex-only",
        ])
        #expect(same.status == 0 && same.output == "01\n01\n", "\(same.errors)")
        #expect(other.packets.count == 3, "the MTU, one request a value")
    }

    /// It is reported once: only what was found is read again.
    @Test func whatHasNoValuesDoesNotEndAWatch() async throws {
        let words = "nothing of this service is readable"
        for count in ["1", "2"] {
            let outcome = try await BuiltProgram.run([
                "watch", "demo:uart", "nordic-uart", "2a00", "--every", "10ms", "-n", count,
            ])
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(outcome.output.split(separator: "\n").allSatisfy { $0.contains("0x0003 Device Name") })
            #expect(outcome.errors.components(separatedBy: words).count == 2, "\(outcome.errors)")
        }
        let none = try await BuiltProgram.run(["watch", "demo:uart", "nordic-uart", "180d"])
        #expect(none.status == 1 && none.output.isEmpty)
        #expect(none.errors.contains(words) && none.errors.contains("the peer has no service 180d"), "\(none.errors)")
    }

    /// A UUID that may be a service is looked for before the first value is printed.
    @Test(arguments: [["2a19", "9999"], ["9999", "2a19"]])
    func whatIsMissingIsReportedAlsoAfterTheLastValue(_ attributes: [String]) async throws {
        let outcome = try await BuiltProgram.run(["watch", "demo:heart-rate"] + attributes + ["-n", "1"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let lines = outcome.output.split(separator: "\n")
        #expect(lines.count == 1 && lines[0].contains("Battery Level"))
        #expect(outcome.errors.components(separatedBy: "could not read 9999").count == 2, "\(outcome.errors)")
    }

    /// The second read uses the handle that the first one has found.
    @Test func oneTypeReportsBoth() async throws {
        let lines = try await BuiltProgram.run(["read", "demo:heart-rate", "0x0018", "2a19"]).output
        #expect(lines == "0x0018 Battery Level  57  87 %\n0x0018 Battery Level  57  87 %\n")
        let objects = try await BuiltProgram.run(["read", "demo:heart-rate", "2a19", "0x0018", "--json"]).objects()
        #expect(objects.map { $0["uuid"] as? String } == ["2a19", "2a19"])
        #expect(objects.allSatisfy { $0["value"] != nil })
    }

    /// The cached type of a handle is shown; without a cache the peer is asked, unless only the bytes are wanted.
    @Test func theCacheReportsHandles() async throws {
        let folder = try TestFolder()
        _ = try await BuiltProgram.run(["explore", "demo:heart-rate", "--no-read", "--cache", folder["cache"]])
        let outcome = try await BuiltProgram.run([
            "read", "demo:heart-rate", "0x0018", "--json", "--cache", folder["cache"],
        ])
        #expect(try outcome.objects().first?["uuid"] as? String == "2a19")
        #expect(try outcome.objects().first?["value"] != nil)
        #expect(try await BuiltProgram.run(["read", "demo:heart-rate", "0x0018"]).output == "57  87 %\n")
        let peer = try await SocketPeer(.battery)
        let bytes = try await BuiltProgram.run(["read", "unix:\(peer.path)", "0x0008", "--hex-only"])
        #expect(bytes.output == "40\n")
        #expect(peer.packets.count == 2)
    }
}
