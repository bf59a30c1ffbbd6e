import ArgumentParser
import BareBLE
import Foundation
import Glibc
import Testing

@testable import blescan

/// Every exit status of the contract, from the built program.
@Suite struct ExitStatusTests {
    /// A way to end with one of the statuses.
    struct Ending: Sendable, CustomStringConvertible {
        let description: String
        let status: Int32
        var arguments: [String] = []
        var input = ""
        var output = Sink.collected
    }

    static let endings: [Ending] = [
        Ending(description: "done", status: 0, arguments: ["read", "demo:battery", "2a19"]),
        Ending(description: "help is a result", status: 0, arguments: ["help", "scan"]),
        Ending(description: "a reader had enough", status: 0, arguments: ["--help"], output: .closedPipe),
        Ending(description: "looked and did not find", status: 1, arguments: ["read", "demo:battery", "2a6e"]),
        Ending(
            description: "one of several is not there", status: 1, arguments: ["read", "demo:battery", "2a19", "2a6e"]),
        Ending(
            description: "nothing came", status: 1, arguments: ["notify", "demo:heart-rate", "2a05", "--for", "200ms"]),
        Ending(
            description: "no such packets", status: 1, arguments: ["replay", "-", "--only", "adv"], input: "< 02 0502\n"
        ),
        Ending(description: "wrong usage", status: 64, arguments: ["read"]),
        Ending(description: "no such command to help with", status: 64, arguments: ["help", "nonsense"]),
        Ending(description: "no hexadecimal in an argument", status: 64, arguments: ["decode", "--hex", "0g"]),
        Ending(description: "no such file", status: 64, arguments: ["decode", "/nowhere/lines.txt"]),
        Ending(description: "no hexadecimal in a file", status: 65, arguments: ["decode", "-"], input: "0g\n"),
        Ending(description: "no capture", status: 65, arguments: ["replay", "-"], input: "no capture\n"),
        Ending(description: "no adapter", status: 69, arguments: ["scan", "--adapter", "hci9999"]),
        Ending(
            description: "no such socket", status: 64, arguments: ["explore", "unix:/nowhere/peer.sock"]),
        Ending(
            description: "results not written", status: 74, arguments: ["read", "demo:battery", "2a19"],
            output: .file("/dev/full")),
        Ending(description: "help not written", status: 74, arguments: ["--help"], output: .file("/dev/full")),
        Ending(
            description: "timed out", status: 75,
            arguments: ["notify", "demo:battery", "2a19", "--count", "1", "--for", "200ms"]),
        Ending(description: "refused", status: 76, arguments: ["read", "demo:long-value", "fff2"]),
    ]

    @Test(arguments: endings) func aCommandEndsWithItsDocumentedStatus(_ ending: Ending) async throws {
        let outcome = try await BuiltProgram.run(ending.arguments, input: ending.input, output: ending.output)
        #expect(outcome.status == ending.status, "\(outcome.errors)")
        #expect(outcome.errors.isEmpty == (ending.status == 0))
    }

    /// With each writer of results: the command, and a thread beside the link.
    @Test(arguments: [
        ["read", "demo:battery", "2a19"], ["notify", "demo:heart-rate", "2a37", "-n", "1"],
        ["talk", "demo:battery", "read 2a19"], ["watch", "demo:battery", "2a19", "-n", "1"],
    ])
    func aFullDiskHasAHint(_ arguments: [String]) async throws {
        let outcome = try await BuiltProgram.run(arguments, output: .file("/dev/full"))
        #expect(outcome.status == 74)
        #expect(outcome.errors.hasSuffix("\nhint: Make room there, or write to another disk.\n"), "\(outcome.errors)")
    }

    @Test func aLostLinkEndsWith74() async throws {
        let peer = try SocketPeer { _ in .disconnect }
        #expect(try await BuiltProgram.run(["explore", "unix:\(peer.path)"]).status == 74)
    }

    @Test func aTimeoutEndsWith75() async throws {
        let peer = try SocketPeer { _ in .silence }
        #expect(try await BuiltProgram.run(["explore", "unix:\(peer.path)", "--timeout", "0.2"]).status == 75)
    }

    /// The peer reports one more service in each response, forever; what `--service` shows is chosen after that.
    @Test(arguments: [[], ["--service", "battery"]] as [[String]])
    func aPeerWithoutEnd(_ arguments: [String]) async throws {
        let peer = try SocketPeer { request in
            guard request.first == 0x10, request.count > 2 else { return .response([0x01, request[0], 0, 0, 0x06]) }
            return .response([0x11, 6, request[1], request[2], request[1], request[2], 0x0F, 0x18])
        }
        let outcome = try await BuiltProgram.run(["explore", "unix:\(peer.path)"] + arguments)
        #expect(outcome.status == 76)
        #expect(outcome.errors.contains("hint: `blescan read unix:\(peer.path) UUID` reads"), "\(outcome.errors)")
    }

    /// A time alone is how long to look, as that of a scan; a number is a request, which the time has ended.
    @Test(
        arguments: [
            ([], 0, nil, nil), (["--for", "2s"], 1, nil, nil),
            (["--for", "2s"], 0, .notFound, "no value came in 2 s"),
            (["--for", "2s", "-n", "3"], 0, .timedOut, "no value came in 2 s"),
            (["--for", "2s", "-n", "3"], 2, .timedOut, "only 2 of 3 values came"),
            (["--for", "2s", "-n", "3"], 3, nil, nil),
        ] as [([String], Int, blescan.ExitStatus?, String?)])
    func whatDidNotComeDecidesTheStatus(
        _ options: [String], _ number: Int, _ status: blescan.ExitStatus?, _ message: String?
    ) throws {
        let limit = try LimitOptions.parse(options)
        var failure: Failure?
        do {
            try limit.expect(number, isInterrupted: false, "came", advice: "Write with --after.")
        } catch let error as Failure {
            failure = error
        }
        #expect(failure?.status == status && failure?.message == message)
        if number == 0, let failure { #expect(failure.hint == "Write with --after.") }
        // After ^C there may be fewer; a number that was asked for was not finished.
        if options.contains("-n"), number < 3 {
            #expect(throws: CancellationError.self) { try limit.expect(number, isInterrupted: true, "came") }
        } else {
            try limit.expect(number, isInterrupted: true, "came")
        }
    }

    /// The operation's description is text that may change.
    @Test(arguments: ["discover the services", "find 2a19"])
    func theOriginOfALimitDecidesAndNotItsText(operation: String) {
        let ofThePeer = BLEError(.tooLong, during: operation, because: "there is no end", origin: .peer)
        #expect(blescan.ExitStatus(ofThePeer) == .refused)
        let ofTheUser = BLEError(.tooLong, during: operation, because: "of the value")
        #expect(blescan.ExitStatus(ofTheUser) == .usage)
    }

    @Test(arguments: [
        (BLEError.Code.notBonded, nil, blescan.ExitStatus.refused), (.bondRejected, nil, .refused),
        (.pairingFailed, nil, .refused), (.pairingRefused, nil, .refused), (.keyTooShort, nil, .refused),
        (.bondNotStored, nil, .refused), (.bondNotStored, ENOSPC, .linkLost), (.bondNotStored, EROFS, .notPermitted),
        (.adapterShared, nil, .timedOut),
    ])
    func aFailureOfPairingHasItsStatus(code: BLEError.Code, errno: Int32?, status: blescan.ExitStatus) {
        let error = BLEError(code, during: "pair", because: "it failed", errorNumber: errno)
        #expect(blescan.ExitStatus(error) == status)
    }

    @Test func aDisagreementEndsWith76() async throws {
        // A response without a request.
        let outcome = try await BuiltProgram.run(["replay", "-", "--check"], input: "< 0a 0300\n> 13\n")
        #expect(outcome.status == 76)
    }

    @Test func aMissingPermissionEndsWith77() async throws {
        let machine = try FakeMachine()
        try machine.write("proc/self/status", "CapEff:\t0000000000000000\nSeccomp:\t0\n")
        machine.radio.openers = nil
        machine.radio.adapters[0].controller = nil
        machine.radio.adapters[0].before = nil
        machine.radio.adapters[0].scan = nil
        #expect(try await machine.doctor().status == 77)
    }

    @Test func anInterruptedCommandEndsWith130() async throws {
        let peer = try SocketPeer { _ in .silence }
        let program = try RunningProgram(["explore", "unix:\(peer.path)", "--timeout", "5m"])
        try await peer.received("the first request") { _ in true }
        program.signal(SIGINT)
        #expect(try await program.outcome().status == 130)
    }

    /// Every documented status has a test.
    @Test func noneIsLeftOut() {
        let tested = Set(Self.endings.map(\.status) + [74, 75, 76, 77, 130])
        let known = (0...255 as ClosedRange<Int32>).filter { blescan.ExitStatus(rawValue: $0) != nil }
        #expect(tested.sorted() == known)
    }
}
