import Glibc
import Testing

/// The radio's commands on a machine whose kernel has no Bluetooth, such as a container. The kernel tests cover all
/// other machines.
@Suite struct NoAdapterTests {
    /// Whether the kernel supports Bluetooth sockets.
    static let kernelHasBluetooth: Bool = {
        let descriptor = socket(31, Int32(SOCK_RAW.rawValue), 1)
        if descriptor >= 0 { close(descriptor) }
        return descriptor >= 0 || errno != EAFNOSUPPORT
    }()

    @Test(
        arguments: [
            [], ["scan"], ["scan", "--json", "--for", "1s"], ["scan", "--min-rssi", "-70"], ["--count", "1"],
            ["explore", "AA:BB:CC:DD:EE:FF"], ["explore", "aa:bb:cc:dd:ee:ff/random", "--json"],
            ["read", "C0:BB:CC:DD:EE:FF", "battery-level"],
            ["write", "AA:BB:CC:DD:EE:FF/public", "0x0003", "--u8", "1"],
            ["notify", "AA:BB:CC:DD:EE:FF", "2a37"], ["watch"], ["selftest"],
        ])
    func theKernelHasNoBluetooth(_ arguments: [String]) async throws {
        guard !Self.kernelHasBluetooth else { return }
        let outcome = try await BuiltProgram.run(arguments)
        #expect(outcome.status == 69)
        #expect(outcome.output.isEmpty)
        #expect(outcome.errors.contains("this kernel has no Bluetooth"))
        #expect(outcome.errors.contains("`modprobe bluetooth`"))
        #expect(outcome.errors.contains("errno 97"))
        #expect(outcome.errors.contains("`blescan doctor` shows more."))
    }

    /// A consequence, in front of the failure, would hide it.
    @Test func theFailureIsReportedAlone() async throws {
        guard !Self.kernelHasBluetooth else { return }
        let folder = try TestFolder()
        let outcome = try await BuiltProgram.run([
            "serve", "demo:battery", "--pairing", "just-works", "--bonds", folder["bonds"],
        ])
        #expect(outcome.status == 69)
        #expect(outcome.errors.hasPrefix("blescan: could not accept centrals: this kernel"), "\(outcome.errors)")
    }

    /// Scripts compare it.
    @Test(arguments: [["scan"], ["explore", "AA:BB:CC:DD:EE:FF/public"], ["serve", "demo:battery"], ["selftest"]])
    func theCodeIsTheSameInAllCommands(_ arguments: [String]) async throws {
        guard !Self.kernelHasBluetooth else { return }
        let outcome = try await BuiltProgram.run(arguments + ["--json"])
        #expect(outcome.status == 69 && outcome.output.isEmpty)
        #expect(outcome.errors.hasSuffix(#""code":"unsupported","status":69}"# + "\n"), "\(outcome.errors)")
    }

    /// The real machine, not a simulated one.
    @Test func theDoctorReportsThatThereIsNoAdapter() async throws {
        guard !Self.kernelHasBluetooth else { return }
        let outcome = try await BuiltProgram.run(["doctor", "--json"])
        #expect(outcome.status == 69)
        #expect(outcome.output.hasPrefix(#"{"v":1,"check":1,"name":"sockets","level":"fail","id":"no-"#))
        let fixed = try await BuiltProgram.run(["doctor", "--fix", "up"])
        #expect(fixed.status == 69)
        #expect(fixed.output.hasPrefix("fix   no adapter is off\n"))
    }

    /// True on every machine: none has ten thousand adapters.
    @Test(arguments: [["scan"], ["explore", "AA:BB:CC:DD:EE:FF/public"]])
    func thatAdapterIsNotThere(_ arguments: [String]) async throws {
        let outcome = try await BuiltProgram.run(arguments + ["--adapter", "hci9999"])
        #expect(outcome.status == 69)
        #expect(outcome.errors.contains("hci9999"))
    }
}
