import Testing

@testable import blescan

/// Keys as xterm, the Linux console, screen and tmux send them; the sequences are those of their terminfo entries.
@Suite struct ScreenKeyTests {
    /// A reader with predictable results.
    private final class Reader {
        private var reader = ScreenKeyReader()
        var wait: ScreenKeyReader.Wait? { reader.wait }
        var isWaiting: Bool { wait != nil }
        func read(_ bytes: some Sequence<UInt8>) -> [ScreenKey] { reader.read(bytes) }
        func timePassed(_ wait: ScreenKeyReader.Wait) -> [ScreenKey]? { reader.timePassed(wait) }
        func timePassed() -> [ScreenKey] {
            guard let wait else { return [] }
            return timePassed(wait) ?? []
        }
    }

    private static let sequences: [(String, [ScreenKey])] = [
        ("\u{1B}[A", [.up]), ("\u{1B}OA", [.up]), ("\u{1B}[B", [.down]), ("\u{1B}OB", [.down]),
        ("\u{1B}[5~", [.pageUp]), ("\u{1B}[6~", [.pageDown]), ("\u{1B}[3~", [.delete]), ("\u{1B}[H", [.home]),
        ("\u{1B}OH", [.home]),
        ("\u{1B}[1~", [.home]), ("\u{1B}[7~", [.home]), ("\u{1B}[F", [.end]), ("\u{1B}OF", [.end]),
        ("\u{1B}[4~", [.end]),
        ("\u{1B}[8~", [.end]), ("\r", [.enter]), ("\n", [.enter]), ("\u{1B}OM", [.enter]), ("\u{7F}", [.backspace]),
        ("\u{8}", [.backspace]), ("\u{15}", [.clear]), ("\u{C}", [.redraw]),
        ("qs/", [.character("q"), .character("s"), .character("/")]),
        ("ü日👍", [.character("ü"), .character("日"), .character("👍")]),
        // Keys without a function here: F5, insert, control and an arrow, the focus.
        ("\u{1B}[15~", []), ("\u{1B}[2~", []), ("\u{1B}[1;5D", []), ("\u{1B}[I", []),
        // Mouse reports as ctlseqs of xterm describes them: left button, released, right button, with Shift, wheel.
        ("\u{1B}[<0;12;7M", [.click(column: 11, row: 6)]), ("\u{1B}[<0;12;7m", []), ("\u{1B}[<2;12;7M", []),
        ("\u{1B}[<4;12;7M", []), ("\u{1B}[<64;12;7M", [.up, .up, .up]), ("\u{1B}[<65;223;7M", [.down, .down, .down]),
        // None: no place, a number too many, no number.
        ("\u{1B}[<0;0;7M", []), ("\u{1B}[<0;1;2;3M", []), ("\u{1B}[<0;;7M", []), ("\u{1B}[<M", []),
        // In three bytes, from a terminal without the decimal form: left button, released, wheel, cut off.
        ("\u{1B}[M ,'q", [.click(column: 11, row: 6), .character("q")]), ("\u{1B}[M#,'q", [.character("q")]),
        ("\u{1B}[M`,'", [.up, .up, .up]), ("\u{1B}[M ,\u{1B}[A", [.up]),
        ("\u{0}\u{2}", []),
        // Alt and a letter.
        ("\u{1B}x", [.escape, .character("x")]), ("\u{1B}\u{1B}[A", [.escape, .up]),
    ]

    @Test(arguments: sequences) func keysAreUnderstoodWholeAndInPieces(_ text: String, _ keys: [ScreenKey]) {
        let bytes = Array(text.utf8)
        for cut in 0...bytes.count {
            let reader = Reader()
            #expect(reader.read(bytes[..<cut]) + reader.read(bytes[cut...]) == keys)
            #expect(reader.timePassed().isEmpty, "nothing is left")
        }
    }

    @Test func escapeAloneIsAKeyAfterAWhile() {
        let reader = Reader()
        #expect(reader.read([0x1B]).isEmpty)
        #expect(reader.isWaiting)
        #expect(reader.timePassed() == [.escape])
        #expect(reader.isWaiting)
        #expect(reader.timePassed().isEmpty)
        #expect(!reader.isWaiting)
        #expect(reader.timePassed().isEmpty)
        #expect(reader.read([0x1B, 0x5B]).isEmpty)
        #expect(reader.timePassed().isEmpty, "the rest of a sequence may take its time")
        #expect(reader.read([0x41]) == [.up])
    }

    /// In the table a bracket moves a recording, and an arrow does not.
    @Test(
        arguments: [
            ("[A", [.up]), ("[M ,'", [.click(column: 11, row: 6)]), ("[6~", [.pageDown]), ("[1;5D", []),
            ("j", [.character("j")]),
            ("\u{1B}[B", [.down]), ("[<0;3;4M", [.click(column: 2, row: 3)]),
        ] as [(String, [ScreenKey])])
    func theRestOfASequenceMayBeLate(_ rest: String, _ keys: [ScreenKey]) {
        let bytes = Array(rest.utf8)
        for pieces in [[bytes], bytes.map { [$0] }] {
            let reader = Reader()
            #expect(reader.read([0x1B]).isEmpty)
            #expect(reader.timePassed() == [.escape])
            #expect(pieces.flatMap { reader.read($0) } == keys)
            #expect(reader.timePassed().isEmpty)
            #expect(!reader.isWaiting)
            #expect(reader.read(Array("[".utf8)) == [.character("[")], "it is a key again")
        }
    }

    /// It takes effect a little later: the rest of a sequence may have followed.
    @Test(
        arguments: [
            ("", []), ("j", [.character("j")]), ("]", [.character("]")]), ("[", [.character("[")]), ("\r", [.enter]),
            ("ü", [.character("ü")]), ("\u{1B}[B", [.down]),
        ] as [(String, [ScreenKey])])
    func aBracketSoonAfterEscapeIsAKey(_ next: String, _ keys: [ScreenKey]) {
        let reader = Reader()
        #expect(reader.read([0x1B]).isEmpty)
        #expect(reader.timePassed() == [.escape])
        #expect(reader.read(Array("[".utf8)).isEmpty)
        #expect(reader.isWaiting)
        #expect(reader.read(Array(next.utf8)) + reader.timePassed() == [.character("[")] + keys)
        #expect(!reader.isWaiting)
    }

    /// The wait after Escape that is a key is the longer one: it may be over in the middle of that of the next Escape.
    @Test func aWaitEndsWithTheNextByte() throws {
        let reader = Reader()
        #expect(reader.read([0x1B]).isEmpty)
        let first = try #require(reader.wait)
        #expect(reader.timePassed(first) == [ScreenKey.escape])
        let late = try #require(reader.wait)
        #expect(late.duration > first.duration)
        #expect(reader.timePassed(first) == nil)
        #expect(reader.read([0x1B]).isEmpty)
        #expect(reader.timePassed(late) == nil)
        #expect(reader.read(Array("[A".utf8)) == [.up], "the rest of the sequence was still awaited")
        #expect(reader.read([0x1B]).isEmpty)
        let next = try #require(reader.wait)
        #expect(reader.timePassed(late) == nil)
        #expect(reader.timePassed(next) == [ScreenKey.escape])
    }

    @Test func anythingCanBeRead() {
        var generator = SystemRandomNumberGenerator()
        let reader = Reader()
        for _ in 0..<20_000 { _ = reader.read([UInt8.random(in: 0...255, using: &generator)]) }
        _ = reader.timePassed()
        _ = reader.read(Array("\u{1B}[".utf8) + [UInt8](repeating: 0x31, count: 5000) + [0x41])
        _ = reader.read([0x18, 0x41])
        #expect(reader.read(Array("\u{1B}[Bq".utf8)).suffix(1) == [.character("q")])
    }

    @Test(
        arguments: [
            (ScreenKey.down, 0, 1), (.down, 9, 9), (.character("j"), 4, 5), (.up, 0, 0), (.character("k"), 4, 3),
            (.pageDown, 0, 4), (.pageDown, 7, 9), (.pageUp, 9, 5), (.pageUp, 3, 0), (.home, 5, 0),
            (.character("g"), 5, 0),
            (.end, 5, 9), (.character("G"), 5, 9), (.enter, 5, nil), (.character("x"), 5, nil), (.left, 5, nil),
            (.down, nil, 0), (.pageUp, nil, 0), (.home, nil, 0), (.up, nil, 9), (.end, nil, 9), (.escape, nil, nil),
        ] as [(ScreenKey, Int?, Int?)]) func keysMoveInAList(_ key: ScreenKey, _ place: Int?, _ next: Int?)
    {
        #expect(key.moved(from: place, count: 10, page: 4) == next)
        #expect(key.moved(from: nil, count: 0, page: 4) == nil)
    }
}
