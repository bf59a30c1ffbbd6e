import BLECore
import Foundation
import Glibc
import TestSupport
import Testing

@testable import BLELinux

@Suite struct AdapterRecoveryStepTests {
    private static let address = BluetoothAddress(rawValue: 0x00AA_0100_0042)
    private let adapter = ControllerInfo(index: 3, name: "hci3", address: address, isUp: true)

    /// What a step does to the adapters of a pretended machine.
    private final class Machine: Sendable {
        let calls = Lock<[String]>([])
        let adapters: Lock<[ControllerInfo]>
        let failure: SystemCallError?
        /// Another program takes a step.
        let isClaimed: Bool

        init(_ adapters: [ControllerInfo], failing failure: SystemCallError? = nil, isClaimed: Bool = false) {
            self.adapters = Lock(adapters)
            self.failure = failure
            self.isClaimed = isClaimed
        }

        /// - Parameter reset: What happens when the port is reset.
        func recovery(
            root: String, reset: @escaping @Sendable () throws(SystemCallError) -> Void
        ) -> AdapterRecovery {
            AdapterRecovery(
                root: root, list: { () throws(SystemCallError) in self.adapters.withLock { $0 } },
                power: { _, _ throws(SystemCallError) in }, reset: { _ throws(SystemCallError) in try reset() },
                claim: { _ in nil }, returnTime: .zero)
        }

        func recovery(root: String) -> AdapterRecovery {
            AdapterRecovery(
                root: root,
                list: { () throws(SystemCallError) in self.adapters.withLock { $0 } },
                power: { index, isOn throws(SystemCallError) in
                    if let failure = self.failure { throw failure }
                    self.calls.withLock { $0.append("hci\(index) \(isOn ? "on" : "off")") }
                },
                claim: { _ throws(RecoveryFailure) in
                    if self.isClaimed { throw .underWay }
                    return nil
                })
        }
    }

    @Test func aDriverIsTakenOffAndPutOnAgain() throws {
        var tree = FakeTree()
        tree.write("usb/idVendor", "0a12")
        tree.write("usb/authorized", "x")
        tree.write("usb/1-1:1.0/interface", "")
        tree.write("sys/class/bluetooth/hci3/address", "")
        tree.link("sys/class/bluetooth/hci3/device", to: "\(tree.path)/usb/1-1:1.0")
        // It comes back under another name, and off.
        let machine = Machine([ControllerInfo(index: 4, name: "hci4", address: Self.address, isUp: false)])
        try machine.recovery(root: tree.path).take(.driver, adapter)
        #expect(SystemFiles.text("\(tree.path)/usb/authorized") == "1")
        #expect(machine.calls.withLock { $0 } == ["hci4 on"])
    }

    /// Whether a device that has come to the port meanwhile may be used, another program decides.
    @Test(.row("W56")) func aDeviceThatHasTakenThePlaceIsNotAuthorized() throws {
        let tree = machineWithPort()
        let path = tree.path
        let recovery = AdapterRecovery(
            root: path, list: { () throws(SystemCallError) in [] }, claim: { _ in nil },
            pause: { _ in
                try? "13".write(toFile: "\(path)/hub/1-3/devnum", atomically: false, encoding: .utf8)
            })
        #expect(throws: RecoveryFailure.adapterGone) { try recovery.take(.driver, adapter) }
        #expect(text("hub/1-3/authorized", tree) == "0")
    }

    @Test func aDriverWithoutUSBIsUnboundAndBound() throws {
        var tree = FakeTree()
        tree.write("driver/unbind", "............")
        tree.write("driver/bind", "............")
        tree.write("serial0/serial0-0/name", "")
        tree.link("serial0/serial0-0/driver", to: "\(tree.path)/driver")
        tree.write("sys/class/bluetooth/hci3/address", "")
        tree.link("sys/class/bluetooth/hci3/device", to: "\(tree.path)/serial0/serial0-0")
        let machine = Machine([adapter])
        try machine.recovery(root: tree.path).take(.driver, adapter)
        #expect(SystemFiles.text("\(tree.path)/driver/unbind")?.hasPrefix("serial0-0") == true)
        #expect(SystemFiles.text("\(tree.path)/driver/bind")?.hasPrefix("serial0-0") == true)
    }

    /// Such a driver has no files to unbind it.
    @Test func aDriverThatStaysOnItsDeviceIsNotApplicable() throws {
        var tree = FakeTree()
        tree.write("driver/uevent", "")
        tree.write("serial0/serial0-0/name", "")
        tree.link("serial0/serial0-0/driver", to: "\(tree.path)/driver")
        tree.write("sys/class/bluetooth/hci3/address", "")
        tree.link("sys/class/bluetooth/hci3/device", to: "\(tree.path)/serial0/serial0-0")
        let recovery = Machine([adapter]).recovery(root: tree.path)
        #expect(throws: RecoveryFailure.notApplicable) { try recovery.take(.driver, adapter) }
    }

    @Test func theRadioIsBlockedAndUnblocked() throws {
        var tree = FakeTree()
        for (entry, name) in [("rfkill0", "hci1"), ("rfkill1", "hci3")] {
            tree.write("sys/class/rfkill/\(entry)/type", "bluetooth\n")
            tree.write("sys/class/rfkill/\(entry)/name", "\(name)\n")
            tree.write("sys/class/rfkill/\(entry)/soft", "x")
        }
        try Machine([adapter]).recovery(root: tree.path).take(.radioSwitch, adapter)
        #expect(SystemFiles.text("\(tree.path)/sys/class/rfkill/rfkill1/soft") == "0")
        #expect(SystemFiles.text("\(tree.path)/sys/class/rfkill/rfkill0/soft") == "x")
    }

    @Test func powerGoesOffAndOn() throws {
        let machine = Machine([ControllerInfo(index: 3, name: "hci3", address: Self.address, isUp: false)])
        try machine.recovery(root: "/nowhere").take(.power, adapter)
        #expect(machine.calls.withLock { $0 } == ["hci3 off", "hci3 on"])
    }

    @Test func whatTheAdapterDoesNotHaveIsNotApplicable() {
        var tree = FakeTree()
        tree.write("sys/class/bluetooth/hci3/address", "")
        let recovery = Machine([adapter]).recovery(root: tree.path)
        for step in [RecoveryPolicy.Step.rescan, .eventMasks, .radioSwitch, .usbPort, .driver] {
            #expect(throws: RecoveryFailure.notApplicable) { try recovery.take(step, adapter) }
        }
    }

    @Test func aPortWithoutItsNodeFailsByName() {
        var tree = FakeTree()
        tree.write("usb/idVendor", "0a12")
        tree.write("usb/busnum", "1")
        tree.write("usb/devnum", "12")
        tree.write("usb/1-1:1.0/interface", "")
        tree.write("dev/bus/usb/001/012", "")
        tree.write("sys/class/bluetooth/hci3/address", "")
        tree.link("sys/class/bluetooth/hci3/device", to: "\(tree.path)/usb/1-1:1.0")
        // A plain file is no USB device: the call is refused.
        let failure = #expect(throws: RecoveryFailure.self) {
            try Machine([adapter]).recovery(root: tree.path).take(.usbPort, adapter)
        }
        guard case .failed(let text)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(text.contains("USBDEVFS_RESET"))
    }

    /// A machine with the adapter at port 3 of a hub.
    private func machineWithPort() -> FakeTree {
        var tree = FakeTree()
        for (file, text) in [("idVendor", "0a12"), ("busnum", "1"), ("devnum", "12"), ("authorized", "x")] {
            tree.write("hub/1-3/\(file)", text)
        }
        tree.write("hub/1-3/1-3:1.0/interface", "")
        tree.write("hub/1-0:1.0/usb1-port3/disable", "x")
        tree.link("hub/1-3/port", to: "\(tree.path)/hub/1-0:1.0/usb1-port3")
        tree.write("dev/bus/usb/001/012", "")
        tree.write("sys/class/bluetooth/hci3/address", "")
        tree.link("sys/class/bluetooth/hci3/device", to: "\(tree.path)/hub/1-3/1-3:1.0")
        return tree
    }

    private func text(_ file: String, _ tree: borrowing FakeTree) -> String? {
        SystemFiles.text("\(tree.path)/\(file)")
    }

    /// What a reset takes away, and what then has to bring the adapter back.
    @Test(
        .row("W56"),
        arguments: [("sys", "hub/1-3/authorized", "1"), ("hub/1-3", "hub/1-0:1.0/usb1-port3/disable", "0")])
    func aPortThatHasLostItsAdapterIsSetUpAgain(lost: String, file: String, expected: String) throws {
        let tree = machineWithPort()
        let path = tree.path
        let machine = Machine([])
        let failure = #expect(throws: RecoveryFailure.self) {
            try machine.recovery(root: path) { () throws(SystemCallError) in
                try? FileManager.default.removeItem(atPath: "\(path)/\(lost)")
                throw SystemCallError(call: "USBDEVFS_RESET", errno: ENODEV)
            }.take(.usbPort, adapter)
        }
        #expect(failure == .adapterGone)
        #expect(SystemFiles.text("\(path)/\(file)") == expected)
        // The other way was not tried.
        let others = ["hub/1-3/authorized", "hub/1-0:1.0/usb1-port3/disable"].filter { $0 != file }
        for other in others { #expect([nil, "x"].contains(SystemFiles.text("\(path)/\(other)"))) }
    }

    /// What was plugged in at the port while the adapter was waited for is not this program's.
    @Test(.row("W56"), arguments: ["idVendor", "serial"]) func anotherDeviceAtThePortIsLeftAlone(file: String) throws {
        var tree = machineWithPort()
        tree.write("hub/1-3/serial", "0001")
        let path = tree.path
        let failure = #expect(throws: RecoveryFailure.self) {
            try Machine([]).recovery(root: path) { () throws(SystemCallError) in
                try? "ffff".write(toFile: "\(path)/hub/1-3/\(file)", atomically: false, encoding: .utf8)
                throw SystemCallError(call: "USBDEVFS_RESET", errno: ENODEV)
            }.take(.usbPort, adapter)
        }
        #expect(failure == .failed("another device is at USB port 1-3 by now"))
        #expect(text("hub/1-3/authorized", tree) == "x")
        #expect(text("hub/1-0:1.0/usb1-port3/disable", tree) == "x")
    }

    @Test(.row("W56")) func aPortThatNothingBringsBackIsNamed() throws {
        let tree = machineWithPort()
        let path = tree.path
        let failure = #expect(throws: RecoveryFailure.self) {
            try Machine([]).recovery(root: path) { () throws(SystemCallError) in
                try? FileManager.default.removeItem(atPath: "\(path)/hub")
            }.take(.usbPort, adapter)
        }
        guard case .failed(let text)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(text.contains("USB port 1-3") && text.contains("plug it in again"))
    }

    /// One that comes back by itself is left alone.
    @Test func aPortThatKeepsItsAdapterIsOnlyReset() throws {
        let tree = machineWithPort()
        try Machine([adapter]).recovery(root: tree.path) { () throws(SystemCallError) in }.take(.usbPort, adapter)
        #expect(text("hub/1-3/authorized", tree) == "x")
        #expect(text("hub/1-0:1.0/usb1-port3/disable", tree) == "x")
    }

    /// A harsher step may help a controller that is there and does not respond: its port needs no setting up.
    @Test(.row("W30"), arguments: [RecoveryPolicy.Step.power, .usbPort, .driver])
    func anAdapterThatDoesNotRespondHasNotGone(step: RecoveryPolicy.Step) {
        let tree = machineWithPort()
        let down = ControllerInfo(index: 3, name: "hci3", address: Self.address, isUp: false)
        let recovery = AdapterRecovery(
            root: tree.path, list: { () throws(SystemCallError) in [down] },
            power: { _, isOn throws(SystemCallError) in
                if isOn { throw SystemCallError(call: "HCIDEVUP", errno: ETIMEDOUT) }
            },
            reset: { _ throws(SystemCallError) in }, claim: { _ in nil }, returnTime: .zero, pause: { _ in })
        let failure = #expect(throws: RecoveryFailure.self) { try recovery.take(step, adapter) }
        guard case .failed(let text)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(text.contains("HCIDEVUP"))
        #expect(self.text("hub/1-3/authorized", tree) == (step == .driver ? "1" : "x"))
        #expect(self.text("hub/1-0:1.0/usb1-port3/disable", tree) == "x")
    }

    /// Its driver has sent a last command, which had no response.
    @Test func anAdapterThatIsOffInSpiteOfAnErrorIsSwitchedOn() throws {
        let isUp = Lock(true)
        let address = Self.address
        let recovery = AdapterRecovery(
            root: "/nowhere",
            list: { () throws(SystemCallError) in
                [ControllerInfo(index: 3, name: "hci3", address: address, isUp: isUp.withLock { $0 })]
            },
            power: { _, isOn throws(SystemCallError) in
                isUp.withLock { $0 = isOn }
                if !isOn { throw SystemCallError(call: "HCIDEVDOWN", errno: ETIMEDOUT) }
            },
            claim: { _ in nil }, returnTime: .zero, pause: { _ in })
        try recovery.take(.power, adapter)
        #expect(isUp.withLock { $0 })
    }

    @Test func anAdapterThatStaysOnIsNotSwitchedOffAndOn() {
        let machine = Machine([adapter], failing: SystemCallError(call: "HCIDEVDOWN", errno: EBUSY))
        let failure = #expect(throws: RecoveryFailure.self) {
            try machine.recovery(root: "/nowhere").take(.power, adapter)
        }
        guard case .failed(let text)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(text.contains("HCIDEVDOWN"))
    }

    @Test func aMissingRightIsNamed() {
        let machine = Machine([adapter], failing: SystemCallError(call: "HCIDEVDOWN", errno: EPERM))
        let failure = #expect(throws: RecoveryFailure.self) {
            try machine.recovery(root: "/nowhere").take(.power, adapter)
        }
        guard case .notPermitted? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
    }

    @Test func aStepIsNotTakenWhileAnotherProgramTakesOne() {
        let machine = Machine([adapter], isClaimed: true)
        var isNoted = false
        #expect(throws: RecoveryFailure.underWay) {
            try machine.recovery(root: "/nowhere").take(.power, adapter) { isNoted = true }
        }
        #expect(!isNoted)
        #expect(machine.calls.withLock { $0 } == [])
    }

    /// A step that may not be taken any more is not begun.
    @Test func aStepIsNotTakenWhereItCannotBeNoted() {
        let machine = Machine([adapter])
        #expect(throws: RecoveryFailure.refused("12 steps")) {
            try machine.recovery(root: "/nowhere").take(.power, adapter) { () throws(RecoveryFailure) in
                throw .refused("12 steps")
            }
        }
        #expect(machine.calls.withLock { $0 } == [])
    }

    /// The service manager asks the helper program to end, and ends it some seconds later.
    @Test func aProgramThatIsToEndFinishesItsStepAndBeginsNone() {
        let tree = machineWithPort()
        let isEnding = Lock(false)
        let pauses = Lock(0)
        let recovery = AdapterRecovery(
            root: tree.path, list: { () throws(SystemCallError) in [] }, claim: { _ in nil }, returnTime: .seconds(2),
            pause: { _ in
                isEnding.withLock { $0 = true }
                pauses.withLock { $0 += 1 }
            },
            isEnding: { isEnding.withLock { $0 } })
        #expect(throws: RecoveryFailure.adapterGone) { try recovery.take(.driver, adapter) }
        #expect(text("hub/1-3/authorized", tree) == "1")
        // The one in which the driver was unbound: the adapter is not waited for.
        #expect(pauses.withLock { $0 } == 1)
        var isNoted = false
        #expect(throws: RecoveryFailure.unavailable("the program is to end")) {
            try recovery.take(.driver, adapter) { isNoted = true }
        }
        #expect(!isNoted)
    }

    /// What is not waited for has not failed to come back.
    @Test func aProgramThatIsToEndTakesNothingAwayAfterTheResetOfAPort() {
        let tree = machineWithPort()
        let isEnding = Lock(false)
        let recovery = AdapterRecovery(
            root: tree.path, list: { () throws(SystemCallError) in [] },
            reset: { _ throws(SystemCallError) in isEnding.withLock { $0 = true } }, claim: { _ in nil },
            returnTime: .seconds(2), pause: { _ in }, isEnding: { isEnding.withLock { $0 } })
        #expect(throws: RecoveryFailure.adapterGone) { try recovery.take(.usbPort, adapter) }
        #expect(text("hub/1-3/authorized", tree) == "x")
        #expect(text("hub/1-0:1.0/usb1-port3/disable", tree) == "x")
    }

    /// A client that gave up first would take a harsher step beside the one that is being finished.
    @Test func theUnitEndsTheHelperBeforeItsClientsGiveUp() throws {
        let lines = try RepositoryFiles.text("Docs/packaging/bareble-recover@.service").split(separator: "\n")
        let seconds = ["RuntimeMaxSec=", "TimeoutStopSec="].map { key in
            lines.first { $0.hasPrefix(key) }.flatMap { Int32($0.dropFirst(key.count)) }
        }
        let limit = try #require(seconds[0])
        let stopTime = try #require(seconds[1])
        #expect((limit + stopTime) * 1000 < RecoveryRequest.responseTime)
    }

    @Test func anAdapterIsClaimedByOneProgramAtATime() throws {
        // No adapter of a machine has these addresses and this name, and no other test.
        let process = UInt64(getpid())
        let adapters = [process << 8 | 1, process << 8 | 2, 0].map { address in
            ControllerInfo(
                index: 7, name: "test-\(process)-7", address: BluetoothAddress(rawValue: address), isUp: true)
        }
        var claims: [RecoveryClaim] = []
        for adapter in adapters { claims.append(try #require(try RecoveryClaim.make(for: adapter))) }
        for adapter in adapters {
            #expect(throws: RecoveryFailure.underWay) { try RecoveryClaim.make(for: adapter) }
        }
        let unnamed = ControllerInfo(index: 8, name: "test-\(process)-8", address: .zero, isUp: true)
        claims.append(try #require(try RecoveryClaim.make(for: unnamed)))
        withExtendedLifetime(claims) {}
        claims = []
        for adapter in adapters {
            let again = try claimOnceFree(adapter)
            #expect(again != nil)
        }
    }

    @Test func aSelfTestAndAStepAreClaimedApart() throws {
        let process = UInt64(getpid())
        let adapter = ControllerInfo(
            index: 7, name: "test-\(process)-7", address: BluetoothAddress(rawValue: process << 8 | 3), isUp: true)
        let test = try #require(try RecoveryClaim.make(for: adapter, purpose: .selfTest))
        let step = try #require(try RecoveryClaim.make(for: adapter))
        #expect(throws: RecoveryFailure.underWay) { try RecoveryClaim.make(for: adapter, purpose: .selfTest) }
        withExtendedLifetime((test, step)) {}
    }

    /// A child that another test has forked has the names of this process until it executes its own program.
    private func claimOnceFree(_ adapter: ControllerInfo) throws(RecoveryFailure) -> RecoveryClaim? {
        let end = ContinuousClock.now + .seconds(300)
        while ContinuousClock.now < end {
            do throws(RecoveryFailure) {
                return try RecoveryClaim.make(for: adapter)
            } catch {
                guard error == .underWay else { throw error }
                usleep(1_000)
            }
        }
        return try RecoveryClaim.make(for: adapter)
    }

    // MARK: The helper

    @Test func requestsAreReadAsTheyAreWritten() throws {
        for step in RecoveryPolicy.Step.allCases where step.endsLinks {
            for endsLinks in [false, true] {
                let request = RecoveryRequest(step: step, adapter: Self.address, endsLinks: endsLinks)
                #expect(RecoveryRequest(request.text) == request)
            }
        }
        for text in [
            "", "power", "power hci0", "rescan 00:AA:01:00:00:42", "power 00:00:00:00:00:00",
            "power 00:AA:01:00:00:42 ", "power 00:AA:01:00:00:42 link", "power 00:AA:01:00:00:42 links now",
            "POWER 00:AA:01:00:00:42", "power  00:AA:01:00:00:42",
        ] {
            #expect(RecoveryRequest(text) == nil, "\(text)")
        }
    }

    @Test(arguments: [
        RecoveryFailure.notPermitted("why"), .linksOfOthers(3), .blocked, .notApplicable, .adapterGone, .underWay,
        .refused("12 steps were taken in the last hour"), .failed("why: not"),
    ]) func responsesKeepTheReason(failure: RecoveryFailure) {
        let expected: RecoveryFailure =
            switch failure {
            case .notPermitted(let text): .notPermitted("the helper program: \(text)")
            case .refused(let text): .refused("the helper program: \(text)")
            case .failed(let text): .failed("the helper program: \(text)")
            default: failure
            }
        #expect(throws: expected) { try RecoveryRequest.check(response: RecoveryRequest.response(failure)) }
        #expect(throws: Never.self) { try RecoveryRequest.check(response: RecoveryRequest.response(nil)) }
        #expect(throws: RecoveryFailure.self) { try RecoveryRequest.check(response: "") }
        #expect(throws: RecoveryFailure.self) { try RecoveryRequest.check(response: "donee") }
    }

    @Test func aMissingHelperIsNamed() {
        let request = RecoveryRequest(step: .power, adapter: Self.address)
        let failure = #expect(throws: RecoveryFailure.self) { try request.send(to: "/nowhere/recover.socket") }
        guard case .notPermitted(let text)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(text.contains("/nowhere/recover.socket"))
    }

    /// The far end of a request's socket.
    enum HelperEnd: Sendable {
        /// It is closed before the request, as by a service manager that starts no further process.
        case closed
        /// It ends without a response.
        case ended
        /// It never responds.
        case silent
        case done
    }

    /// A harsher step must not follow where nothing was done.
    @Test(arguments: [
        (HelperEnd.closed, RecoveryFailure.unavailable("the helper program took no request")),
        (.ended, .unavailable("the helper program has ended without a response")),
        (.silent, .noResponse("the helper program did not respond in 0 s")),
    ]) func aHelperThatDoesNotRespondHasNotFailed(end: HelperEnd, expected: RecoveryFailure) throws {
        #expect(throws: expected) { try request(to: end) }
    }

    /// The request would be none.
    @Test(.row("W58")) func theHelperIsNotAskedForAnAdapterWithoutAddress() {
        let expected = RecoveryFailure.notPermitted(
            "the helper program knows adapters by their addresses, and this one has none")
        #expect(throws: expected) { try RecoveryRequest(step: .power, adapter: .zero).send(to: "/nonexistent/socket") }
    }

    @Test func aHelperThatHasTakenTheStepIsBelieved() throws {
        try request(to: .done)
    }

    private func request(to end: HelperEnd) throws {
        let (ours, theirs) = try LinkSocket.pair()
        var socket = LinkSocket(adopting: ours)
        switch end {
        case .closed: close(theirs)
        case .ended: shutdown(theirs, Int32(SHUT_WR))
        case .silent: break
        case .done:
            let bytes = Array("done".utf8)
            _ = unsafe write(theirs, bytes, bytes.count)
        }
        defer { if end != .closed { close(theirs) } }
        try RecoveryRequest(step: .power, adapter: Self.address).exchange(on: &socket, within: 0)
    }

    /// `nohup` has SIGHUP ignored; a terminal that closes sends it all the same, and it waits like a wanted one.
    @Test func aSignalThatIsIgnoredDoesNotEndTheHelper() {
        var former = sigset_t()
        unsafe pthread_sigmask(SIG_BLOCK, nil, &former)
        signal(SIGUSR2, SIG_IGN)
        let signals = EndSignals([SIGUSR1, SIGUSR2])
        pthread_kill(pthread_self(), SIGUSR2)
        #expect(!signals.haveCome)
        pthread_kill(pthread_self(), SIGUSR1)
        #expect(signals.haveCome)
        // What waits is dropped with that.
        for number in [SIGUSR1, SIGUSR2] { signal(number, SIG_IGN) }
        unsafe pthread_sigmask(SIG_SETMASK, &former, nil)
        for number in [SIGUSR1, SIGUSR2] { signal(number, SIG_DFL) }
    }

    @Test func stepsAreCountedForAnHour() throws {
        let tree = FakeTree()
        do {
            let record = try RecoveryRecord(of: Self.address, in: tree.path)
            #expect(throws: RecoveryFailure.underWay) {
                _ = try RecoveryRecord(of: Self.address, in: tree.path)
            }
            for index in 0..<RecoveryRecord.limit { try record.noteStep(at: 1_000 + Int64(index)) }
            #expect(throws: RecoveryFailure.refused("12 steps were taken in the last hour")) {
                try record.noteStep(at: 2_000)
            }
        }
        let later = try RecoveryRecord(of: Self.address, in: tree.path)
        #expect(throws: RecoveryFailure.self) { try later.noteStep(at: 4_599) }
        try later.noteStep(at: 4_600)
        unsafe remove("\(tree.path)/recover-00AA01000042")
        unsafe remove("\(tree.path)/recover-00AA01000042.lock")
    }

    /// As on a full file system: no step was taken, so that no harsher one must follow.
    @Test(arguments: ["recover-00AA01000042", "recover-00AA01000042.lock"])
    func aStepThatCannotBeNotedIsRefused(file: String) throws {
        var tree = FakeTree()
        // A folder in its place can be neither read nor written.
        tree.write("\(file)/content", "")
        let path = tree.path
        let failure = #expect(throws: RecoveryFailure.self) {
            let record = try RecoveryRecord(of: Self.address, in: path)
            try record.noteStep(at: 1_000)
        }
        #expect(failure?.wasRefused == true, "\(String(describing: failure))")
        unsafe remove("\(path)/recover-00AA01000042.lock")
    }

    /// A folder that cannot be created is no lack of rights: a service has them.
    @Test func aStepWithoutAFolderForItsRecordIsRefused() throws {
        var tree = FakeTree()
        tree.write("file", "")
        let path = tree.path
        let failure = #expect(throws: RecoveryFailure.self) { try RecoveryRecord.makeFolder("\(path)/file/records") }
        #expect(failure?.wasRefused == true, "\(String(describing: failure))")
        try RecoveryRecord.makeFolder("\(path)/records")
        try RecoveryRecord.makeFolder("\(path)/records")
        #expect(SystemFiles.isFolder("\(path)/records"))
        unsafe remove("\(path)/records")
    }

    /// A helper that ends with a damaged record would never take a step again.
    @Test func aDamagedRecordCountsWhatCanBeRead() throws {
        var tree = FakeTree()
        let times = (0..<RecoveryRecord.limit - 1).map { "\(1_000 + $0)\n" }.joined()
        tree.write("recover-00AA01000042", "\(Int64.min)\n\(Int64.max)\n-1x\n99999999999999999999\n\u{0}\n\(times)")
        do {
            let record = try RecoveryRecord(of: Self.address, in: tree.path)
            try record.noteStep(at: 2_000)
            #expect(throws: RecoveryFailure.refused("12 steps were taken in the last hour")) {
                try record.noteStep(at: 2_000)
            }
        }
        unsafe remove("\(tree.path)/recover-00AA01000042.lock")
    }

    @Test func aRecordThatIsTooLongIsReplaced() throws {
        var tree = FakeTree()
        tree.write("recover-00AA01000042", String(repeating: "1000\n", count: 1_000))
        do {
            let record = try RecoveryRecord(of: Self.address, in: tree.path)
            try record.noteStep(at: 2_000)
        }
        #expect(SystemFiles.text("\(tree.path)/recover-00AA01000042") == "2000")
        unsafe remove("\(tree.path)/recover-00AA01000042.lock")
    }
}
