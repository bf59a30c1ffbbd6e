import BareBLE

extension HostileRow {
    /// Faults of a peer in the Attribute Protocol, played over a socketpair.
    ///
    /// A response that belongs to nothing is dropped and counted, because devices in the field send such; three of them
    /// within one request end the link, and the first one where the application wants it strict.
    static let attributeProtocol: [HostileRow] =
        strayResponses + errorResponses + values + peerRequests + sizes + variableLists
        + [
            .read("T11", "an opcode alone, where a value may be empty", respondingWith: "0b", is: "nothing"),
            HostileRow(
                "T11", "an opcode alone, where a list must have an entry",
                """
                call: discover full -> ! malformedReply
                call: read 0x0003 -> 01

                < 10 0100ffff0028
                > 11 06010009000f18
                < 10 0a00ffff0028
                > 01 100a000a
                < 08 020009000328
                > 09 070200020300192a
                < 04 04000900
                > 05
                < 0a 0300
                > 0b 01
                """),
        ]

    private static let variableLists: [HostileRow] = ["21 0500aa", "21 01", "21 0100aa", "21 0100aa010001bb", "21"].map
    {
        HostileRow(
            "T28", "a list of two values that does not add up",
            """
            call: read-variable 0x0003 0x0005 -> ! malformedReply
            call: read 0x0003 -> 01

            < 20 03000500
            > \($0)
            < 0a 0300
            > 0b 01
            """)
    }

    private static let strayResponses: [HostileRow] = [
        HostileRow(
            "T01", "a response that nobody asked for",
            """
            offer: 517
            call: wait unexplainedResponses -> 1
            call: read 0x0003 -> 01

            < 02 0502
            > 03 0502
            > 0b 01
            < 0a 0300
            > 0b 01
            """),
        HostileRow(
            "T01", "a response that nobody asked for, and a strict application",
            """
            offer: 517
            strict: yes
            call: end -> the peer violated the protocol: the device sent responses without a request
            call: read 0x0003 -> ! disconnected

            < 02 0502
            > 03 0502
            > 0b 01
            """),
        .beforeAResponse("T02", "a response to something else", ["> 13"], counts: "unexplainedResponses", 1),
        HostileRow(
            "T02", "three responses to something else",
            """
            call: read 0x0003 -> ! disconnected
            call: end -> the peer violated the protocol: the device sent responses without a request

            < 0a 0300
            > 13
            > 0d
            > 0f
            """),
        HostileRow(
            "T02", "a response to something else, and a strict application",
            """
            strict: yes
            call: read 0x0003 -> ! disconnected
            call: end -> the peer violated the protocol: the device sent responses without a request

            < 0a 0300
            > 13
            """),
    ]

    private static let errorResponses: [HostileRow] =
        [
            .read("T03", "an error of two bytes", respondingWith: "01 0a", is: "! malformedReply"),
            .read("T03", "an error of six bytes", respondingWith: "01 0a03000500", is: "! malformedReply"),
            .read(
                "T04", "an error that names another handle", respondingWith: "01 0a990001", is: "! refusedByPeer 0x01"),
            .beforeAResponse(
                "T04", "an error that names another request", ["> 01 12030001"], counts: "unexplainedResponses", 1),
        ]
        + ([0x00, 0x14, 0x7F, 0x80, 0x9F, 0xA0, 0xDF, 0xE0, 0xFC, 0xFF] as [UInt8]).map { code in
            let text = Hex.encode([code])
            return .read("T05", "the code \(text)", respondingWith: "01 0a0300\(text)", is: "! refusedByPeer 0x\(text)")
        }

    private static let values: [HostileRow] =
        [
            .beforeAResponse(
                "T14", "a value longer than the MTU carries", ["> 1b 0300" + String(repeating: "00", count: 21)],
                counts: "oversizedValues", 1),
            HostileRow(
                "T14", "a value of 513 bytes",
                """
                offer: 517
                call: read 0x0003 -> 01
                call: count oversizedValues -> 1

                < 02 0502
                > 03 0502
                < 0a 0300
                > 1b 0300\(String(repeating: "00", count: 513))
                > 0b 01
                """),
            .beforeAResponse(
                "T15", "values without a whole handle", ["> 1b", "> 1b 03", "> 1d", "< 1e", "> 1d 03", "< 1e"],
                counts: "truncatedValues", 4),
            HostileRow(
                "T15", "sixteen values without a whole handle",
                """
                call: read 0x0003 -> ! disconnected
                call: end -> the peer violated the protocol: the device sent too many notifications that are too short

                < 0a 0300
                \(String(repeating: "> 1b 01\n", count: 16))
                """),
            .beforeAResponse("T16", "a value of handle 0", ["> 1b 000001"], counts: "valuesWithoutHandle", 1),
            .beforeAResponse("T16", "a value that nobody wants", ["> 1b 999901"], counts: "notifications", 1),
            .beforeAResponse(
                "T18", "an indication that nobody wants", ["> 1d 999901", "< 1e"], counts: "confirmations", 1),
            .beforeAResponse(
                "T19", "two indications in a row", ["> 1d 030001", "> 1d 030002", "< 1e", "< 1e"],
                counts: "confirmations", 2),
        ]
        + ["23 0300ff00aa", "23 03000100aa05", "23 0300", "23"].map {
            .beforeAResponse("T21", "a list of values that does not add up", ["> \($0)"], counts: "malformedLists", 1)
        }

    private static let peerRequests: [HostileRow] =
        [
            .beforeAResponse(
                "T12", "an unknown request", ["> 2a 0102", "< 01 2a000006"], counts: "peerRequestsRefused", 1),
            .beforeAResponse("T12", "an unknown command", ["> 6a 0102"], counts: "peerCommandsIgnored", 1),
            .beforeAResponse(
                "T24", "a question about the MTU that is none", ["> 02 17", "< 01 02000004"],
                counts: "peerRequestsRefused", 1),
            .beforeAResponse("T29", "a write command", ["> 52 030001"], counts: "peerCommandsIgnored", 1),
            .beforeAResponse(
                "T29", "a signed write", ["> d2 030001" + String(repeating: "00", count: 12)],
                counts: "peerCommandsIgnored", 1),
            .beforeAResponse("T29", "a confirmation", ["> 1e"], counts: "strayConfirmations", 1),
        ]
        + ["04 0100ffff", "06 0100ffff00280018", "08 0100ffff0328", "0a 0300", "0c 03000000", "10 0100ffff0028"].map {
            .beforeAResponse(
                "T24", "a request of its own", ["> \($0)", "< 01 \($0.prefix(2))000006"],
                counts: "peerRequestsRefused", 1)
        }
        + ["12 030001", "16 0300000001", "18 01"].map {
            .beforeAResponse(
                "T29", "a write of its own", ["> \($0)", "< 01 \($0.prefix(2))000006"],
                counts: "peerRequestsRefused", 1)
        }

    private static let sizes: [HostileRow] = [
        HostileRow(
            "T13", "a response longer than the MTU",
            """
            call: read 0x0003 -> ! disconnected
            call: end -> the peer violated the protocol: the device sent a response longer than the MTU

            < 0a 0300
            > 0b \(String(repeating: "00", count: 23))
            """),
        .mtu("the MTU 0", "03 0000", is: 23),
        .mtu("the MTU 22", "03 1600", is: 23),
        .mtu("the MTU 65535", "03 ffff", is: 517),
        .mtu("an MTU of one byte", "03 17", is: 23),
        .mtu("an MTU of three bytes", "03 170000", is: 23),
        HostileRow(
            "T22", "the MTU twice",
            """
            offer: 517
            call: wait knownStrays -> 1
            call: mtu -> 23
            call: read 0x0003 -> 01

            < 02 0502
            > 03 1700
            > 03 f700
            < 0a 0300
            > 0b 01
            """),
        HostileRow(
            "T23", "both ask for the MTU at once",
            """
            offer: 517
            call: mtu -> 100
            call: count peerMTURequests -> 1
            call: read 0x0003 -> 01

            < 02 0502
            > 02 6400
            < 03 0502
            > 03 f700
            < 0a 0300
            > 0b 01
            """),
    ]
}
