import BLECore
import BareBLE
import Glibc
import Testing

@testable import blescan

/// The exit status of failures, without the program.
@Suite struct FailureTests {
    private static func error(
        _ code: BLEError.Code, _ attError: ATTErrorCode? = nil, errno: Int32? = nil, origin: BLEError.Origin? = nil
    ) -> BLEError {
        BLEError(
            code, subject: "lamp", during: "read 2a19", because: "it is dark", attError: attError, errorNumber: errno,
            origin: origin)
    }

    @Test(
        arguments: [
            (error(.attributeNotFound), 1), (error(.ambiguous), 64), (error(.noAdapter), 69),
            (error(.disconnected), 74), (error(.disconnected, origin: .peer), 76),
            (error(.timedOut), 75), (error(.connectFailed), 75), (error(.connectFailed, errno: ENOENT), 64),
            (error(.refusedByPeer, .readNotPermitted), 76), (error(.refusedByPeer, .invalidHandle), 1),
            (error(.tooLong), 64), (error(.tooLong, origin: .peer), 76), (error(.notPermitted), 77),
            (error(.bondNotStored), 76), (error(.bondNotStored, errno: EACCES), 77),
            (error(.bondNotStored, errno: ENOSPC), 74), (error(.unusableState), 65), (error(.cancelled), 130),
        ] as [(BLEError, Int32)])
    func aCodeHasItsStatus(_ error: BLEError, _ status: Int32) {
        #expect(blescan.ExitStatus(error).rawValue == status)
    }

    /// The link, the machine, or a change of the services concern all attributes.
    @Test(
        arguments: [
            (error(.refusedByPeer, .readNotPermitted), true),
            (error(.insufficientSecurity, .insufficientEncryption), true), (error(.timedOut, origin: .peer), true),
            (error(.tooLong, origin: .peer), true),
            (error(.malformedReply, origin: .peer), true), (error(.malformedValue), true), (error(.tooLong), false),
            (error(.disconnected), false), (error(.cancelled), false), (error(.servicesChanged), false),
            (error(.system), false),
        ] as [(BLEError, Bool)])
    func aFailedReadConcernsItsAttributeAlone(_ error: BLEError, _ isOfOneAttribute: Bool) {
        #expect(error.isOfOneAttribute == isOfOneAttribute)
    }

    @Test func theFirstOfSeveralFailuresDecides() throws {
        let failures = [Self.error(.attributeNotFound), Self.error(.refusedByPeer, .readNotPermitted)]
        let ended = try #require(throws: FailureAfterOthers.self) { try FailureAfterOthers.end(with: failures) }
        #expect(ended.status == .notFound && ended.last.code == .refusedByPeer)
        let interrupted = try #require(throws: BLEError.self) {
            try FailureAfterOthers.end(with: [Self.error(.timedOut), Self.error(.cancelled)])
        }
        #expect(interrupted.code == .cancelled, "an interruption keeps its status")
    }

    /// The parser lists the values in a second sentence.
    @Test(arguments: [
        (
            "The value 'x' is invalid for '--each <what>'. Please provide one of 'packet', 'change' or 'device'.",
            "the value 'x' is invalid for '--each <what>': it takes packet, change or device."
        ),
        ("Missing value for '--each <what>'", "missing value for '--each <what>'"),
        ("MTU is too small\nsecond line", "MTU is too small"),
    ])
    func aMessageOfTheParserIsOneClause(_ text: String, _ message: String) {
        #expect(Failure.message(ofParser: text) == message)
    }

    /// `explore` has no option that discovers less.
    @Test func aDiscoveryOfTooMuchPointsToTheRead() {
        let peer = PeerArgument.unix("/tmp/my belt")
        let discovery = Self.error(.tooLong, origin: .peer).advisedToReadDirectly(peer)
        #expect(discovery.hint?.hasPrefix("`blescan read 'unix:/tmp/my belt' UUID` reads") == true)
        let value = BLEError(
            .tooLong, during: "read 2a19", because: "it is long", partialValue: [0x41], origin: .peer)
        #expect(value.advisedToReadDirectly(peer).hint == nil)
        #expect(Self.error(.tooLong).advisedToReadDirectly(peer).hint == nil, "an argument")
    }

    @Test func aFailureOfThisMachinePointsToTheDoctor() {
        #expect(Failure(Self.error(.noAdapter)).hint == "`blescan doctor` shows more.")
        #expect(Failure(Self.error(.timedOut)).hint == nil)
        #expect(Failure(Self.error(.timedOut)).message == "could not read 2a19 (lamp): it is dark")
    }
}
