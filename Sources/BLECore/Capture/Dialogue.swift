/// A recorded or invented conversation between an ATT client and a server, one PDU a line.
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
/// `<` is what the client sends and `>` what it receives, as btmon draws it for the client's machine. Bytes are
/// hexadecimal, spaced at will; everything behind `#` is a comment. Headers come before the first step and name what
/// the reader has to know: `test` (the test's identifier), `origin`, `mtu` (in force from the first line on; 23 when
/// missing), and whatever else a user of the file agrees on. A line with `!` is something other than a PDU.
public struct Dialogue: Hashable, Sendable {
    /// A named fact about the conversation, such as `mtu: 512`.
    public struct Header: Hashable, Sendable {
        /// The word before the colon.
        public var name: String
        /// The text behind the colon.
        public var value: String

        /// Names one fact.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// What happens on one line.
    public enum Event: Hashable, Sendable {
        /// The client sends this PDU.
        case sent([UInt8])
        /// The client receives this PDU.
        case received([UInt8])
        /// Nothing is sent for at least that long.
        case wait(Duration)
        /// The link is gone.
        case linkLost
    }

    /// One line of the conversation.
    public struct Step: Hashable, Sendable {
        /// What happens.
        public var event: Event
        /// What is written behind `#`, or nothing.
        public var comment: String
        /// Where the step stands in its file, counted from 1; 0 when it comes from no file.
        public var line: Int

        /// Describes one line.
        public init(_ event: Event, comment: String = "", line: Int = 0) {
            self.event = event
            self.comment = comment
            self.line = line
        }
    }

    /// The facts on top of the file, in order.
    public var headers: [Header]
    /// The conversation, in order.
    public var steps: [Step]

    /// A conversation of these steps.
    public init(headers: [Header] = [], steps: [Step]) {
        self.headers = headers
        self.steps = steps
    }

    /// The value of the first header of that name.
    public func header(_ name: String) -> String? {
        headers.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
    }

    /// The MTU in force before the first step: the header `mtu`, or ATT's smallest.
    public var initialMTU: Int {
        header("mtu").flatMap { Int($0) } ?? 23
    }
}

extension Dialogue {
    /// Why a text is no dialogue.
    public struct ParsingError: Error, Hashable, Sendable, CustomStringConvertible {
        /// What is wrong with a line.
        public enum Reason: Hashable, Sendable {
            /// It begins with none of `<`, `>`, `!`, `#`, and is no header.
            case unknownLine
            /// A header stands below the first step.
            case headerBelowSteps
            /// What follows the arrow is not hexadecimal.
            case notHexadecimal
            /// An arrow without a single byte.
            case emptyPDU
            /// What follows `!` is neither `link lost` nor `wait N ms`.
            case unknownDirective
            /// The header `mtu` is no number from 23 to 65535.
            case invalidMTU
        }

        /// The number of the line, counted from 1.
        public let line: Int
        /// What is wrong with it.
        public let reason: Reason

        /// A sentence such as "line 4: what follows the arrow is not hexadecimal".
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
