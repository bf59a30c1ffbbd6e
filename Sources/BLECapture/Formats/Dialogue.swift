internal import BLECore

/// A conversation between an ATT client and a server, recorded or written by hand, one PDU per line.
///
///     # Read Characteristic Value, the plain case
///     test: GATT/GAR/CL/BV-01-C
///     origin: bluez unit tests, taken as facts
///     mtu: 512
///
///     < 0a 0300            # Read Request, handle 0x0003
///     > 0b 426c75655a      # "BlueZ"
///     ! wait 50 ms
///     ! link lost
///
/// `<` is what the client sends and `>` what it receives, as in btmon's output on the client's machine. Bytes are
/// hexadecimal with optional spaces; text after `#` is a comment. Headers precede the first step: `test` (the test's
/// identifier), `origin`, `mtu` (in effect from the first line; 23 if missing), and others by convention. A line with
/// `!` is not a PDU.
public struct Dialogue: Hashable, Sendable {
    /// A header of the dialogue, such as `mtu: 512`.
    public struct Header: Hashable, Sendable {
        /// The text before the colon.
        public var name: String
        /// The text after the colon.
        public var value: String

        /// Creates a header.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The event of one line.
    public enum Event: Hashable, Sendable {
        /// The client sends this PDU.
        case sent([UInt8])
        /// The client receives this PDU.
        case received([UInt8])
        /// A pause of at least this duration.
        case wait(Duration)
        /// The link is lost.
        case linkLost
    }

    /// One line of the dialogue.
    public struct Step: Hashable, Sendable {
        /// The event.
        public var event: Event
        /// The text after `#`, or an empty string.
        public var comment: String
        /// The line number in the file, from 1; 0 if the step does not come from a file.
        public var line: Int

        /// Creates a step.
        public init(_ event: Event, comment: String = "", line: Int = 0) {
            self.event = event
            self.comment = comment
            self.line = line
        }
    }

    /// The headers, in order.
    public var headers: [Header]
    /// The steps, in order.
    public var steps: [Step]

    /// Creates a dialogue.
    public init(headers: [Header] = [], steps: [Step]) {
        self.headers = headers
        self.steps = steps
    }

    /// Returns the value of the first header with this name.
    public func header(_ name: String) -> String? {
        headers.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
    }

    /// The MTU before the first step: the header `mtu`, or the minimum of ATT.
    public var initialMTU: Int {
        header("mtu").flatMap { Int($0) } ?? 23
    }
}

extension Dialogue {
    /// An error in the text of a dialogue.
    public struct ParsingError: Error, Hashable, Sendable, CustomStringConvertible {
        /// The problem of a line.
        public enum Reason: Hashable, Sendable {
            /// The line is neither a header nor does it begin with `<`, `>`, `!` or `#`.
            case unknownLine
            /// A header follows the first step.
            case headerBelowSteps
            /// The text after the arrow is not hexadecimal.
            case notHexadecimal
            /// There is no byte after the arrow.
            case emptyPDU
            /// The text after `!` is neither `link lost` nor `wait N ms`.
            case unknownDirective
            /// The header `mtu` is not a number from 23 to 65535.
            case invalidMTU
        }

        /// The line number, from 1.
        public let line: Int
        /// The problem of the line.
        public let reason: Reason

        /// A message such as "line 4: what follows the arrow is not hexadecimal".
        public var description: String {
            let text =
                switch reason {
                case .unknownLine: "a line begins with <, >, ! or #, or reads \"name: value\""
                case .headerBelowSteps: "headers stand above the first PDU"
                case .notHexadecimal: "what follows the arrow is not hexadecimal"
                case .emptyPDU: "a PDU has one byte at least"
                case .unknownDirective: "what follows ! is \"link lost\" or \"wait N ms\""
                case .invalidMTU: "the MTU is a number from 23 to 65535"
                }
            return "line \(line): \(text)"
        }
    }
}
