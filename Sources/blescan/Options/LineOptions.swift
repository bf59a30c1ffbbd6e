import ArgumentParser
import BLECore
import BLEProfiles
import Glibc

/// The format of a scan's lines.
enum LineFormat: String, ExpressibleByArgument, CaseIterable, Sendable {
    case plain, json, theengs, csv
}

/// The number of lines of a scan.
enum Verbosity: String, ExpressibleByArgument, CaseIterable, Sendable {
    case packet, change, device
}

/// The contents of a scan's lines, and their number.
struct LineOptions: ParsableArguments {
    @Option(
        name: [.long, .customShort("n")], parsing: .unconditional,
        help: ArgumentHelp("Stop after this number of lines.", valueName: "n"),
        transform: NumberArgument.count)
    var count: Int?

    @Option(
        help: ArgumentHelp(
            "A line for each packet, for each change of what a device sends, or once for each device. "
                + "(default: change)", valueName: "what"))
    var each: Verbosity?

    @Option(
        help: ArgumentHelp(
            "Output format: plain, json, csv, or theengs, which Theengs Gateway reads on its topic "
                + "BTtoMQTT/undecoded.",
            valueName: "form"))
    var format: LineFormat?

    @Option(
        help: ArgumentHelp(
            "The columns of --format csv, separated by commas: t, address, name, rssi, temperature and others; a wrong "
                + "one lists them all. Lines that repeat the last one about their device but for t and event, and in "
                + "the default columns but for rssi, are left out, unless --each is packet.", valueName: "list"),
        transform: FieldsArgument.init(argument:))
    var fields: FieldsArgument?

    @Option(
        name: .customLong("scanner-id"),
        help: ArgumentHelp(
            "The name of this scanner in JSON objects. (default: the name of the host)", valueName: "text"))
    var scanner: String?

    @Flag(
        help: ArgumentHelp(
            "Replace addresses, names and beacons' identifiers in advertisements, also in the bytes, by numbers: for "
                + "screenshots and bug reports. Serial numbers, identifiers in unknown formats, the models of sensors in "
                + "their names, and names of one or two letters or in unknown encodings, stay: look before you publish. "
                + "Recordings and the packets of links are not masked."))
    var redact = false

    @OptionGroup var times: TimeOptions

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count takes a number from 1.") }
        if let scanner, Self.cleaned(scanner).isEmpty { throw ValidationError("--scanner-id takes a text to show.") }
    }

    /// Returns the requested format; `nil` if none was.
    ///
    /// - Throws: `ValidationError` for two different ones.
    func format(orJSON json: Bool) throws -> LineFormat? {
        if fields != nil, json || format != .csv { throw ValidationError("--fields is for --format csv; add that.") }
        guard json else { return format }
        if let format, format != .json {
            throw ValidationError("--json is --format json; leave it out, or --format \(format.rawValue).")
        }
        return .json
    }

    /// Returns the lines that these options describe; with `onlySensors` those about measurements alone.
    func lines(_ format: LineFormat, onlySensors: Bool, look: ScreenLook) -> ScanLines {
        // Otherwise each line would identify the machine.
        let host = redact ? "(host)" : Self.cleaned(Self.hostName)
        return ScanLines(
            format: format, scanner: scanner.map(Self.cleaned) ?? (host.isEmpty ? "localhost" : host),
            fields: fields?.fields ?? CSVField.usual, redaction: redact ? AdvertisementRedaction() : nil,
            each: each ?? .change,
            // An RSSI that is asked for is news by itself.
            comparesRSSI: fields != nil, onlySensors: onlySensors, look: look)
    }

    /// The given options, in their spelling.
    var given: [String] {
        [
            count.map { _ in "--count" }, each.map { _ in "--each" }, format.map { _ in "--format" },
            fields.map { _ in "--fields" },
            scanner.map { _ in "--scanner-id" }, redact ? "--redact" : nil,
            times.utc ? "--utc" : nil,
        ].compactMap(\.self)
    }

    private static func cleaned(_ text: String) -> String {
        var cleaned = String.UnicodeScalarView()
        for scalar in text.unicodeScalars where !scalar.isUnprintable { cleaned.append(scalar) }
        return String(cleaned)
    }

    private static var hostName: String {
        var bytes = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&bytes, bytes.count - 1) == 0 else { return "" }
        return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
