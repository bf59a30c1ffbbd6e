import ArgumentParser
import BLECore

/// The part of a bug report besides the findings: the underlying numbers, without anything that identifies the user.
struct DoctorReport {
    let facts: SystemFacts

    /// The lines; addresses in them are not masked yet.
    var lines: [String] {
        let machine = [Self.architecture, facts.board].compactMap(\.self).joined(separator: ", ")
        var lines = ["", "blescan \(Self.version), kernel \(facts.kernelRelease), \(machine)"]
        for adapter in facts.radio.adapters { lines += Self.lines(of: adapter, facts.usbDevices[adapter.name]) }
        for opener in facts.radio.openers ?? [] {
            lines.append(
                "\(opener.program) has a \(opener.kind) socket of \(opener.adapter.map { "hci\($0)" } ?? "all")")
        }
        lines += (facts.kernelMessages ?? []).suffix(20).map { "kernel: \($0)" }
        return lines.map(\.printable)
    }

    private static func lines(of adapter: AdapterFacts, _ usb: USBDevice?) -> [String] {
        var parts: [String] = []
        if let usb {
            parts.append(
                "USB \(usb.identifier), power/control \(usb.control ?? "?"), runtime_status \(usb.status ?? "?")")
        }
        if let configuration = adapter.configuration {
            parts.append(
                "not configured, company \(configuration.company.map { hex($0) } ?? "?"), "
                    + "missing \(configuration.missing.map { hex($0) } ?? "?")")
        }
        if let management = adapter.management {
            parts += [
                "supported \(hex(management.supported))", "current \(hex(management.current))",
                "company \(hex(management.company))", "version \(management.version)",
            ]
        }
        if let version = adapter.controller?.version {
            parts.append(
                "HCI revision \(hex(version.hciRevision)), LMP subversion \(hex(version.linkSubversion)), "
                    + "manufacturer \(hex(version.company))")
        }
        if let features = adapter.controller?.features { parts.append("LE features \(hex(features))") }
        if let lists = adapter.controller?.listsExtendedScan {
            parts.append("lists extended scan: \(lists ? "yes" : "no")")
        }
        let results = (adapter.controller?.failures ?? []) + (adapter.scan?.steps ?? [])
        parts += results.map { "\(hex($0.command)) → \($0.status.map { hex($0) } ?? "no response")" }
        return ["\(adapter.name): " + (parts.isEmpty ? "no data" : parts.joined(separator: ", "))]
    }

    private static func hex<Number: FixedWidthInteger>(_ number: Number) -> String {
        let digits = String(number, radix: 16)
        return "0x" + String(repeating: "0", count: max(0, Number.bitWidth / 4 - digits.count)) + digits
    }

    static var version: String { Blescan.configuration.version }

    static var architecture: String {
        #if arch(x86_64)
        "x86_64"
        #elseif arch(arm64)
        "arm64"
        #elseif arch(arm)
        "arm"
        #else
        "another architecture"
        #endif
    }
}
