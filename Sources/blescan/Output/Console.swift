import FoundationEssentials
import Glibc

/// The two streams of the program: results on standard output, everything else on standard error.
enum Console {
    /// Writes one line of results, whole and at once. A reader that closed the pipe ends the program quietly.
    static func out(_ line: String) {
        if !write(line + "\n", to: STDOUT_FILENO) { exit(ExitStatus.done.rawValue) }
    }

    /// Writes a message for people.
    static func note(_ line: String) {
        _ = write(line + "\n", to: STDERR_FILENO)
    }

    /// Whether standard output is a terminal.
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    private static func write(_ text: String, to descriptor: Int32) -> Bool {
        let bytes = Array(text.utf8)
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(descriptor, buffer.baseAddress?.advanced(by: written), buffer.count - written)
            }
            if count > 0 {
                written += count
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}

/// Times as the output shows them.
enum Timestamp {
    /// The wall clock in RFC 3339 with milliseconds, in UTC.
    static func now() -> String {
        text(.now)
    }

    /// The same for a time that is counted from 1970-01-01 00:00 UTC.
    static func text(sinceEpoch time: Duration) -> String {
        text(Date(timeIntervalSince1970: time / .seconds(1)))
    }

    private static func text(_ date: Date) -> String {
        date.formatted(
            .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
    }
}

extension String {
    /// The text without anything that could steer a terminal: control characters and marks of direction are escaped.
    var printable: String {
        var result = ""
        for scalar in unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned:
                result += "\\u{" + String(scalar.value, radix: 16) + "}"
            default:
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
