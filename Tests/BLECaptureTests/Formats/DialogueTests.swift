import BLECapture
import BLECore
import Testing

@Suite("Dialogue")
struct DialogueTests {
    static let text = """
        # Reads a name
        test: GATT/GAR/CL/BV-01-C
        origin: laid out by hand
        mtu: 64

        < 0a 0300          # Read Request
        > 0B 42:6c-75 65 5a
        ! wait 50 ms       # the peer thinks
        ! link lost

        """

    @Test("Reads headers, both arrows, comments and directives")
    func readsHeadersArrowsCommentsAndDirectives() throws {
        let dialogue = try Dialogue(Self.text)
        #expect(dialogue.header("test") == "GATT/GAR/CL/BV-01-C")
        #expect(dialogue.initialMTU == 64)
        #expect(
            dialogue.steps == [
                Dialogue.Step(.sent([0x0A, 0x03, 0x00]), comment: "Read Request", line: 6),
                Dialogue.Step(.received([0x0B, 0x42, 0x6C, 0x75, 0x65, 0x5A]), line: 7),
                Dialogue.Step(.wait(.milliseconds(50)), comment: "the peer thinks", line: 8),
                Dialogue.Step(.linkLost, line: 9),
            ])
    }

    @Test("What is written reads the same again, also with the line ends of Windows")
    func whatIsWrittenReadsTheSameAgain() throws {
        let dialogue = try Dialogue(Self.text)
        let again = try Dialogue(dialogue.text)
        #expect(again.headers == dialogue.headers)
        #expect(again.steps.map(\.event) == dialogue.steps.map(\.event))
        #expect(again.steps.map(\.comment) == dialogue.steps.map(\.comment))
        #expect(try Dialogue(Self.text.split(separator: "\n").joined(separator: "\r\n")).steps.count == 4)
    }

    @Test("A header and a comment stay one line, whatever the name of a peer or a file in it")
    func headersAndCommentsAreOneLine() throws {
        let headers = [
            Dialogue.Header("origin", "recorded, a\n< 02 1700\r\nmtu: 64"), Dialogue.Header("peer", "nobody"),
        ]
        let steps = [Dialogue.Step(.linkLost, comment: "out of range,\r\n! link lost")]
        let again = try Dialogue(Dialogue(headers: headers, steps: steps).text)
        #expect(again.headers.map(\.value) == ["recorded, a < 02 1700 mtu: 64", "nobody"])
        #expect(again.steps.map(\.event) == [.linkLost])
        #expect(again.steps.map(\.comment) == ["out of range, ! link lost"])
    }

    @Test("The MTU is 23 when nothing is said")
    func defaultMTU() throws {
        #expect(try Dialogue("< 02 1700").initialMTU == 23)
    }

    @Test(
        "Errors name the line",
        arguments: [
            ("hello", 1, Dialogue.ParsingError.Reason.unknownLine),
            ("\n< 0", 2, .notHexadecimal),
            ("< 0a\n> zz", 2, .notHexadecimal),
            ("<", 1, .emptyPDU),
            ("> # nothing", 1, .emptyPDU),
            ("! fly", 1, .unknownDirective),
            ("! wait -1 ms", 1, .unknownDirective),
            ("< 0a\nmtu: 23", 2, .headerBelowSteps),
            ("mtu: 22", 1, .invalidMTU),
        ])
    func errorsNameTheLine(_ text: String, _ line: Int, _ reason: Dialogue.ParsingError.Reason) {
        let error = #expect(throws: Dialogue.ParsingError.self) { try Dialogue(text) }
        #expect(error?.line == line)
        #expect(error?.reason == reason)
    }
}
