/// A report of `blescan selftest --json`, as far as it describes how the controller behaves.
///
/// Any decoder reads it, such as that of Foundation; members that are not known are ignored:
///
///     let report = try JSONDecoder().decode(AdapterReport.self, from: data)
///     await radio.setPersonality(try VirtualPersonality(report: report))
public struct AdapterReport: Hashable, Sendable, Decodable {
    /// The reason why a report does not describe a controller.
    public enum Invalid: Error, Hashable, Sendable {
        /// It is not a report of the self-test: it has no schema, or no checks.
        case notAReport
        /// It is of a version that is not known here.
        case unknownSchema(Int)
        /// The self-test ended before the controller had reported what it can do.
        case noCapabilities
        /// A member has a value that it cannot have: the path of the member.
        case malformed(String)
    }

    /// The capabilities that the controller lists. Bit fields are hexadecimal.
    public struct Capabilities: Hashable, Sendable, Decodable {
        /// The numbers of entries in the controller's lists.
        public struct Lists: Hashable, Sendable, Decodable {
            /// The size of the filter accept list.
            public var accept: Int?
            /// The size of the resolving list.
            public var resolving: Int?
        }

        /// The controller's buffers for data.
        public struct Buffers: Hashable, Sendable, Decodable {
            /// The length of each, in bytes.
            public var length: Int?
            /// The number of buffers.
            public var count: Int?
            /// The longest data of a packet on air, in bytes.
            public var maxDataLength: Int?
        }

        /// The LE features, such as `0x00000000000059ff`.
        public var features: String?
        /// The supported commands: 64 octets.
        public var commands: String?
        /// The LE states.
        public var states: String?
        /// The sizes of lists.
        public var lists: Lists?
        /// The buffers for data.
        public var buffers: Buffers?
        /// The number of advertising sets.
        public var advertisingSets: Int?
        /// The longest advertising data, in bytes.
        public var maxAdvertisingData: Int?
    }

    /// The versions of the controller.
    public struct Adapter: Hashable, Sendable, Decodable {
        /// The version of HCI.
        public struct HCI: Hashable, Sendable, Decodable {
            /// The version.
            public var version: Int?
            /// The revision, which the maker assigns.
            public var revision: Int?
        }

        /// The version of the link layer.
        public struct Link: Hashable, Sendable, Decodable {
            /// The version.
            public var version: Int?
            /// The subversion, which the maker assigns.
            public var subversion: Int?
        }

        /// The number of the maker.
        public var company: Int?
        /// The version of HCI.
        public var hci: HCI?
        /// The version of the link layer.
        public var link: Link?
    }

    /// The set of commands with which the kernel scans.
    public struct KernelChoice: Hashable, Sendable, Decodable {
        /// `extended` or `legacy`.
        public var set: String?
    }

    /// One check of the self-test.
    public struct Check: Hashable, Sendable, Decodable {
        /// Its name, such as `S05`.
        public var id: String
        /// Its verdict, such as `fit` or `not-run`.
        public var verdict: String?
        /// The rows of the catalogue that it has seen, such as `W04`.
        public var quirks: [String]?
        /// The statuses of the commands that it has sent, by opcode; `nil` for those without a response.
        public var statuses: [String: [Int?]]?
    }

    /// The limits that the controller has reached.
    public struct Limits: Hashable, Sendable, Decodable {
        /// The number of links that were up at once.
        public var linksHeld: Int?
        /// The status with which the next one was refused.
        public var linksRefusedWith: Int?
    }

    /// The version of the report's format.
    public var schema: Int?
    /// The versions of the controller.
    public var adapter: Adapter?
    /// The capabilities that the controller lists.
    public var capabilities: Capabilities?
    /// The set of commands with which the kernel scans.
    public var kernelChoice: KernelChoice?
    /// The checks, in their order.
    public var checks: [Check]?
    /// The limits that the controller has reached.
    public var limits: Limits?

    /// The version of the format that is read here.
    public static let supportedSchema = 1
}

extension AdapterReport.Invalid: CustomStringConvertible {
    /// The reason as a clause, such as "it is not a report of the self-test".
    public var description: String {
        switch self {
        case .notAReport: "it is not a report of the self-test"
        case .unknownSchema(let schema): "its schema is \(schema), and \(AdapterReport.supportedSchema) is known here"
        case .noCapabilities: "the self-test ended before the controller had reported what it can do"
        case .malformed(let path): "the value of \(path) is malformed"
        }
    }
}
