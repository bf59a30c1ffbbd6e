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
                "not configured, company \(configuration.company.map { Hex.number($0) } ?? "?"), "
                    + "missing \(configuration.missing.map { Hex.number($0) } ?? "?")")
        }
        if let management = adapter.management {
            parts += [
                "supported \(Hex.number(management.supported))", "current \(Hex.number(management.current))",
                "company \(Hex.number(management.company))", "version \(management.version)",
            ]
        }
        if let version = adapter.controller?.version {
            parts.append(
                "HCI revision \(Hex.number(version.hciRevision)), LMP subversion \(Hex.number(version.linkSubversion)), "
                    + "manufacturer \(Hex.number(version.company))")
        }
        if let features = adapter.controller?.features { parts.append("LE features \(Hex.number(features))") }
        if let lists = adapter.controller?.listsExtendedScan {
            parts.append("lists extended scan: \(lists ? "yes" : "no")")
        }
        let results = (adapter.controller?.failures ?? []) + (adapter.scan?.steps ?? [])
        parts += results.map { "\(Hex.number($0.command)) → \($0.status.map { Hex.number($0) } ?? "no response")" }
        return ["\(adapter.name): " + (parts.isEmpty ? "no data" : parts.joined(separator: ", "))]
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
