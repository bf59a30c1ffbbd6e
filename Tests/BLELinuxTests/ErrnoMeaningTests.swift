import BLECore
import Glibc
import TestSupport
import Testing

@testable import BLELinux

@Suite("Meanings of error numbers") struct ErrnoMeaningTests {
    /// Observed on Debian's kernels: which error number a link's socket gives for the controller's reason.
    @Test(
        arguments: [
            (UInt8(0x08), ETIMEDOUT), (0x13, ECONNRESET), (0x14, ECONNRESET), (0x15, ECONNRESET), (0x16, ECONNABORTED),
            (0x05, EACCES), (0x18, EACCES), (0x02, ENOTCONN), (0x06, EBADE), (0x3E, ENOSYS), (0x3D, ENOSYS),
            (0x22, ENOSYS), (0x1F, ENOSYS), (0x44, ENOSYS), (0x29, EOPNOTSUPP), (0x20, EOPNOTSUPP), (0x11, EOPNOTSUPP),
            (0x09, EMLINK), (0x0A, EMLINK), (0x0D, ECONNREFUSED), (0x0E, ECONNREFUSED), (0x0F, ECONNREFUSED),
            (0x1B, ECONNREFUSED), (0x0C, EBUSY), (0x04, EHOSTDOWN), (0x3C, EHOSTDOWN),
        ] as [(UInt8, Int32)])
    func anErrorNumberStandsForTheObservedStatus(status: UInt8, errno: Int32) {
        #expect(ErrnoMeaning.statuses(errno).contains(HCIStatus(rawValue: status)))
        let end = LinkEnd(errno: errno)
        #expect(end.errno == errno)
        #expect(end.statuses.contains(HCIStatus(rawValue: status)))
    }

    @Test func noStatusHasTwoNumbers() {
        var owners: [HCIStatus: Int32] = [:]
        for errno: Int32 in 1..<134 {
            for status in ErrnoMeaning.statuses(errno) {
                #expect(owners.updateValue(errno, forKey: status) == nil)
            }
        }
        #expect(ErrnoMeaning.statuses(0) == [])
        #expect(ErrnoMeaning.statuses(EAGAIN) == [])
    }

    @Test(.row("L04", "O13")) func anErrorNumberOfALinkNamesItsEnd() {
        #expect(LinkEnd(errno: 0) == .closed)
        #expect(LinkEnd(errno: EPIPE) == .closed)
        #expect(LinkEnd(errno: ETIMEDOUT) == .outOfReach)
        #expect(LinkEnd(errno: ECONNRESET) == .endedByPeer)
        #expect(LinkEnd(errno: ECONNABORTED) == .endedByHost)
        #expect(LinkEnd(errno: EACCES) == .authenticationFailed)
        #expect(LinkEnd(errno: EBADE) == .keyMissing)
        #expect(LinkEnd(errno: ENOSYS) == .radioFailure)
        #expect(LinkEnd(errno: ENOTCONN) == .unknownLink)
        #expect(LinkEnd(errno: 99) == .other(errno: 99))
    }

    @Test(.row("O14")) func anErrorNumberOfAConnectNamesItsFailure() {
        #expect(ConnectFailure(errno: ECONNREFUSED, timeRanOut: true) == .timedOut)
        #expect(ConnectFailure(errno: ECONNREFUSED, timeRanOut: false) == .lowEnergyOff)
        let table: [(Int32, ConnectFailure)] = [
            (EINPROGRESS, .timedOut), (ETIMEDOUT, .timedOut), (EHOSTUNREACH, .adapterUnavailable), (EBUSY, .busy),
            (EISCONN, .alreadyConnected), (EOPNOTSUPP, .notLowEnergy), (EAFNOSUPPORT, .noBluetooth), (EINVAL, .invalid),
            (EBADFD, .invalid), (ECONNABORTED, .aborted), (EMLINK, .tooManyLinks), (ENOSYS, .notEstablished),
            (EIO, .other(errno: EIO)),
        ]
        for (errno, meaning) in table {
            for timeRanOut in [false, true] {
                #expect(ConnectFailure(errno: errno, timeRanOut: timeRanOut) == meaning)
            }
        }
    }

    @Test func anErrorNumberOfALocalCallNamesItsFailure() {
        let table: [(String, Int32, LocalFailure)] = [
            ("socket", EAFNOSUPPORT, .noBluetooth), ("HCIDEVUP", EPERM, .notPermitted(.netAdmin)),
            ("send", EPERM, .notPermitted(.netRaw)), ("bind", EPERM, .notPermitted(.netAdmin)),
            ("bind monitor", EPERM, .notPermitted(.netRaw)), ("HCIDEVUP", ERFKILL, .blocked),
            ("bind", ENODEV, .adapterGone),
            ("send", EPIPE, .adapterGone), ("send", ENETDOWN, .adapterDown), ("bind", EBUSY, .inUse),
            ("bind", EUSERS, .inUse), ("HCIDEVUP", EADDRNOTAVAIL, .noAddress), ("HCIDEVUP", ETIMEDOUT, .noResponse),
            ("HCIDEVUP", EOPNOTSUPP, .unconfigured), ("bind", EOPNOTSUPP, .other(errno: EOPNOTSUPP)),
            ("socket", EMFILE, .outOfResources), ("bind", EIO, .other(errno: EIO)),
        ]
        for (call, errno, meaning) in table {
            #expect(SystemCallError(call: call, errno: errno).meaning == meaning)
        }
        #expect(SystemCallError(call: "bind", errno: ENODEV).description == "bind: No such device (19)")
    }

    @Test func everyMeaningIsOneSentence() {
        let errors = Array(Int32(0)...133)
        var sentences = Set(errors.map { LinkEnd(errno: $0).sentence })
        sentences.formUnion(errors.map { ConnectFailure(errno: $0, timeRanOut: $0 % 2 == 0).sentence })
        for call in ["send", "HCIDEVUP"] {
            sentences.formUnion(errors.map { SystemCallError(call: call, errno: $0).meaning.sentence })
        }
        for sentence in sentences {
            #expect(sentence.hasSuffix("."))
            #expect(sentence.first?.isUppercase == true)
            #expect(!sentence.contains(". "))
            #expect(sentence.utf8.count < 120)
        }
    }
}
