// What libFuzzer calls: one function for every place where bytes of a peer, a controller or a file come in, and two for
// whole sessions, whose input is a script.
//
// `run` links these files with BLECore into one program; BAREBLE_FUZZER names the function to use. A trap is a finding;
// so is a broken promise, which `require` turns into one. Nothing outlives a run: each begins with fresh state.

import BLECapture
import BLECore
import Glibc

/// Ends the program when a promise about any input is broken.
func require(_ condition: Bool, _ promise: StaticString) {
    if !condition { fatalError("\(promise)") }
}

/// Keeps the optimiser from leaving out what is only read.
@inline(never) func use<Value>(_ value: Value) {}

/// A step-by-step run of an input.
protocol FuzzedRun: ~Copyable {
    var script: FuzzInput { get }

    init(_ input: [UInt8])
    mutating func step()
    /// Brings what is under way to its end.
    mutating func end()
}

extension FuzzedRun where Self: ~Copyable {
    /// Plays `input` to its end, or that many steps of it.
    static func play(_ input: [UInt8], atMost limit: Int) {
        var run = Self(input)
        var steps = 0
        while !run.script.isAtEnd, steps < limit {
            run.step()
            steps += 1
        }
        run.end()
    }
}

/// Walks over an input; after its end there are only zeros.
struct FuzzInput {
    private let bytes: [UInt8]
    private var place = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    var isAtEnd: Bool { place >= bytes.count }

    mutating func byte() -> UInt8 {
        guard place < bytes.count else { return 0 }
        defer { place += 1 }
        return bytes[place]
    }

    /// The number of two bytes.
    mutating func word() -> UInt16 { UInt16(byte()) | UInt16(byte()) << 8 }

    mutating func bytes(_ count: Int) -> [UInt8] {
        let end = min(place + count, bytes.count)
        defer { place = end }
        return Array(bytes[place..<end])
    }

    /// A length byte, then so many bytes.
    mutating func piece() -> [UInt8] { bytes(Int(byte())) }

    /// A packet that may be longer than a length byte can say: 255 is followed by a piece that is repeated up to 600
    /// bytes.
    mutating func packet() -> [UInt8] {
        let length = byte()
        guard length == 255 else { return bytes(Int(length)) }
        let piece = piece()
        guard !piece.isEmpty else { return [] }
        return (0..<600).map { piece[$0 % piece.count] }
    }

    mutating func rest() -> [UInt8] { bytes(bytes.count) }

    /// The step of a clock: mostly small, sometimes to either side of a deadline.
    mutating func pause() -> Duration {
        let pauses: [Duration] = [
            .zero, .milliseconds(1), .milliseconds(50), .milliseconds(500), .seconds(1), .milliseconds(1_999),
            .seconds(2),
            .seconds(3), .seconds(5), .seconds(10), .milliseconds(29_999), .seconds(30), .seconds(60), .seconds(90),
            .seconds(3_600), .seconds(86_400),
        ]
        return pauses[Int(byte()) % pauses.count]
    }
}

/// Cuts the input into packets: a length byte, then so many bytes.
func packets(_ input: [UInt8]) -> [[UInt8]] {
    var script = FuzzInput(input)
    var result: [[UInt8]] = []
    while !script.isAtEnd { result.append(script.piece()) }
    return result
}

let fuzzers: [String: @Sendable ([UInt8]) -> Void] = [
    "advertising": fuzzAdvertisingData, "hci": fuzzHCIEvent, "reports": fuzzReports, "adapter": fuzzAdapter,
    "att": fuzzATTPacket, "client": fuzzGATTClient, "lists": fuzzLists, "session": fuzzSession,
    "values": fuzzValues, "capture": fuzzCapture, "traffic": fuzzTraffic, "dialogue": fuzzDialogue, "text": fuzzText,
    "management": fuzzManagement, "cache": fuzzCache, "daemon-state": fuzzDaemonState, "link-state": fuzzLinkState,
    "bond-files": fuzzBonds, "pairing": fuzzPairing, "server": fuzzServer, "served": fuzzServed,
]

let chosen: @Sendable ([UInt8]) -> Void = {
    guard let name = getenv("BAREBLE_FUZZER").map({ String(cString: $0) }), let fuzzer = fuzzers[name] else {
        print("BAREBLE_FUZZER must be one of \(fuzzers.keys.sorted())")
        // `exit` would be taken for a finding.
        fflush(nil)
        _exit(64)
    }
    return fuzzer
}()

/// Called by libFuzzer first: an unknown name is reported before any input is tried.
@_cdecl("LLVMFuzzerInitialize")
public func initializeFuzzer(_ count: UnsafeMutablePointer<Int32>?, _ words: UnsafeMutableRawPointer?) -> Int32 {
    _ = chosen
    return 0
}

/// The entry point that libFuzzer looks for.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    chosen(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}
