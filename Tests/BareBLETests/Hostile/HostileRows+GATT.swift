extension HostileRow {
    /// Faults of a peer in reads and writes of values, played over a socketpair.
    static let values22 = (0..<22).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()

    static let procedures: [HostileRow] = longReads + reliableWrites

    private static let longReads: [HostileRow] =
        [("07", "Invalid Offset"), ("0b", "Attribute Not Long")].map { code, name in
            HostileRow(
                "G16", "\(name) after the first part",
                """
                call: read 0x0003 -> \(values22)
                call: read 0x0003 -> 01

                < 0a 0300
                > 0b \(values22)
                < 0c 03001600
                > 01 0c0300\(code)
                < 0a 0300
                > 0b 01
                """)
        }
        + [
            HostileRow(
                "G16", "another error after the first part",
                """
                call: read 0x0003 -> ! refusedByPeer 0x0e
                call: read 0x0003 -> 01

                < 0a 0300
                > 0b \(values22)
                < 0c 03001600
                > 01 0c03000e
                < 0a 0300
                > 0b 01
                """)
        ]

    /// A long write of 22 bytes whose first part gets a response by `response`, or the first and second by both.
    private static func write(
        _ id: String, _ what: String, is outcome: String, _ exchange: String
    ) -> HostileRow {
        HostileRow(
            id, what,
            """
            call: write 0x0003 \(values22) -> \(outcome)
            call: write 0x0003 01 -> ok

            < 16 03000000\(values22.prefix(36))
            \(exchange)
            < 12 030001
            > 13
            """)
    }

    private static let reliableWrites: [HostileRow] =
        [
            ("another handle", "17 04000000\(values22.prefix(36))"),
            ("another offset", "17 03000100\(values22.prefix(36))"),
            ("other bytes", "17 03000000ff\(values22.prefix(36).dropFirst(2))"),
            ("fewer bytes", "17 03000000\(values22.prefix(34))"),
            ("nothing", "17"),
        ].map { what, response in
            write("G17", "an echo with \(what)", is: "! malformedReply", "> \(response)\n< 18 00\n> 19")
        }
        + [
            write(
                "G18", "the queue is full in the middle", is: "! refusedByPeer 0x09",
                """
                > 17 03000000\(values22.prefix(36))
                < 16 03001200\(values22.suffix(8))
                > 01 16030009
                < 18 00
                > 19
                """),
            write(
                "G18", "the last request is refused", is: "! refusedByPeer 0x0e",
                """
                > 17 03000000\(values22.prefix(36))
                < 16 03001200\(values22.suffix(8))
                > 17 03001200\(values22.suffix(8))
                < 18 01
                > 01 1803000e
                """),
            HostileRow(
                "G18", "the link goes ahead of the last request",
                """
                call: write 0x0003 \(values22) -> ! disconnected
                call: write 0x0003 01 -> ! disconnected

                < 16 03000000\(values22.prefix(36))
                ! link lost
                """),
        ]
}
