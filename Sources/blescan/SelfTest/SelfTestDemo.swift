import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import FoundationEssentials

/// A virtual machine with one adapter that imitates a controller, and devices around it, for `--adapter demo:NAME`. The
/// name may be that of a file, `REPORT.json`, with a report of the self-test: the controller behaves as reported.
enum SelfTestDemo {
    /// The imitations, as on the command line.
    static var allNames: [String] { VirtualPersonality.all.map { "demo:\($0.name)" } }
    /// The same in a sentence.
    static var names: String { allNames.joined(separator: ", ") }

    /// Returns what helps where there is none of this name.
    static func advice(for name: String) -> String {
        let written = NearNames.slips("demo:" + name, in: allNames)
        let near = allNames.filter { written.contains(NearNames.written($0)) }
        return near.isEmpty ? "The virtual adapters are \(names)." : "Did you mean \(NearNames.list(near))?"
    }

    /// Returns the imitation of this name, or of the controller of a report; `nil` if there is none.
    ///
    /// - Throws: `Failure` for a file that holds no report.
    static func personality(_ name: String) throws(Failure) -> VirtualPersonality? {
        if let known = VirtualPersonality.all.first(where: { $0.name == name }) { return known.personality }
        guard isFile(name) else { return nil }
        var file = try InputFile(name, advice: "Name a report of `blescan selftest --json`.")
        var bytes: [UInt8] = []
        while bytes.count <= longestReport {
            let more = try file.next()
            if more.isEmpty { break }
            bytes += more
        }
        guard let report = try? JSONDecoder().decode(AdapterReport.self, from: Data(bytes)) else {
            throw noReport(name, "it does not have the form of a report")
        }
        do throws(AdapterReport.Invalid) {
            return try VirtualPersonality(report: report)
        } catch {
            throw noReport(name, error.description)
        }
    }

    /// Returns whether a name is that of a file with a report.
    static func isFile(_ name: String) -> Bool { name.hasSuffix(".json") }

    private static let longestReport = 1 << 24

    private static func noReport(_ name: String, _ reason: String) -> Failure {
        Failure(
            message: "\(name.printable) cannot be used: \(reason)",
            hint: "Name the output of `blescan selftest --json`.", status: .badData)
    }

    /// Runs `body` with such a machine, in virtual time; `nil` if there is no imitation of this name.
    static func run<Value: Sendable>(
        _ name: String, _ body: @concurrent @Sendable @escaping (SelfTestMachine) async throws -> Value
    ) async throws -> Value? {
        guard let personality = try Self.personality(name) else { return nil }
        return try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(personality)
            for device in [VirtualDevice.heartRate, .battery, .uart] { await radio.add(device) }
            return try await body(SelfTestMachine(radio: radio, time: time))
        }
    }
}

extension SelfTestMachine {
    /// The machine of a virtual radio.
    init(radio: VirtualRadio, time: VirtualTime) {
        let system = radio.system
        self.init(
            system: system, loop: time.loop, isVirtual: true,
            facts: {
                var facts = SystemFacts()
                facts.kernelRelease = "virtual"
                facts.privileges = system.privileges()
                facts.radio.adapters = ((try? system.list()) ?? []).map { adapter in
                    AdapterFacts(
                        index: adapter.index, name: adapter.name, address: adapter.address.description,
                        isUp: adapter.isUp, isRunning: adapter.isRunning, bus: "virtual")
                }
                facts.codedPHYDefects = Set(facts.radio.adapters.map(\.name).filter { system.hasDefectiveCodedPHY($0) })
                facts.radio.openers = []
                return facts
            },
            usb: { _ in nil }, device: { _ in Device() }, gateway: { _ in nil }, distribution: nil,
            silence: { _ in }, kernelLog: { [] })
    }
}
