/// One thing that a hostile or faulty peer does, and what has to come of it.
///
/// The identifiers are those of this project's catalogue: T for the Attribute Protocol, G for GATT. Every row also
/// means: no trap, no hang, one end for each call, and no effect on another link. A row may be played in several ways.
struct HostileRow: Sendable, CustomStringConvertible {
    var id: String
    var what: String
    /// A dialogue with calls, see `DialogueCalls`.
    var dialogue: String

    init(_ id: String, _ what: String, _ dialogue: String) {
        self.id = id
        self.what = what
        self.dialogue = dialogue
    }

    var description: String { "\(id): \(what)" }
}

extension HostileRow {
    /// A peer that responds to one read with `response`, and correctly to the next one.
    static func read(
        _ id: String, _ what: String, respondingWith response: String, is outcome: String, offer: Int = 23
    ) -> HostileRow {
        HostileRow(
            id, what,
            """
            call: read 0x0003 -> \(outcome)
            call: read 0x0003 -> 01

            < 0a 0300
            > \(response)
            < 0a 0300
            > 0b 01
            """)
    }

    /// A peer that sends `packets` before its response to a read; then `name` counts `count`.
    static func beforeAResponse(
        _ id: String, _ what: String, _ packets: [String], counts name: String, _ count: Int
    ) -> HostileRow {
        HostileRow(
            id, what,
            """
            call: read 0x0003 -> 01
            call: count \(name) -> \(count)

            < 0a 0300
            \(packets.joined(separator: "\n"))
            > 0b 01
            """)
    }

    /// A peer that responds to the MTU request with `response`; a read works after it.
    static func mtu(_ what: String, _ response: String, is mtu: Int) -> HostileRow {
        HostileRow(
            "T22", what,
            """
            offer: 517
            call: mtu -> \(mtu)
            call: read 0x0003 -> 01

            < 02 0502
            > \(response)
            < 0a 0300
            > 0b 01
            """)
    }
}
