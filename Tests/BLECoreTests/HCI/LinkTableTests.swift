import BLECore
import TestSupport
import Testing

@Suite struct LinkTableTests {
    private let start = BootInstant(nanoseconds: 7_000_000_000)
    private let handle: ConnectionHandle = 0x40
    private let peer = PeerID(address: BluetoothAddress(rawValue: 0x60AA_000F_AF46), type: .random)
    private let other = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0001), type: .random)

    // The macros cannot take a call of a noncopyable value apart, so its result is compared with `true`.

    // MARK: Links

    @Test func aLinkIsCurrentUntilItsEndOrUntilAnotherHasItsHandle() throws {
        var table = LinkTable()
        let first = table.register(handle, peer)
        #expect(table.isCurrent(first) == true)
        #expect(try table.ended(disconnection(), at: start) == [])
        #expect(table.isCurrent(first) == false)
        let second = table.register(handle, peer)
        #expect(table.isCurrent(second) && !table.isCurrent(first))
        let third = table.register(handle, other)
        #expect(table.isCurrent(third) && !table.isCurrent(second))
        #expect(table.peers == [other])
        let standIn = table.register(nil, peer)
        #expect(table.isCurrent(standIn) == true, "nothing is known of a stand-in")
    }

    /// The kernel lists it for a moment more. Whatever it lists later is another link, whose beginning was missed.
    @Test func aLinkHasJustEndedForAMoment() throws {
        var table = LinkTable()
        #expect(table.hasJustEnded(handle, at: start) == false)
        _ = try table.ended(disconnection(), at: start)
        #expect(table.hasJustEnded(handle, at: start) == true)
        #expect(table.hasJustEnded(handle, at: start + .milliseconds(1999)) == true)
        #expect(table.hasJustEnded(handle, at: start + .seconds(2)) == false)
        table.attemptBegins()
        table.began(try connection())
        #expect(table.hasJustEnded(handle, at: start) == false)
    }

    /// What comes for a link that is known, or whose beginning never comes, is not ahead of anything.
    @Test(.row("W44")) func dataAheadOfALinkIsCountedWhenTheLinkComes() throws {
        var table = LinkTable()
        table.dataSeen(on: handle)
        table.dataSeen(on: handle)
        table.dataSeen(on: handle + 1)
        #expect(table.packetsAhead == 0)
        table.began(try connection())
        #expect(table.packetsAhead == 2)
        table.dataSeen(on: handle)
        table.began(try connection())
        #expect(table.packetsAhead == 2)
        // Of a link that has ended, whose beginning was not read.
        _ = try table.ended(disconnection(), at: start)
        table.dataSeen(on: handle)
        _ = try table.ended(disconnection(), at: start)
        table.attemptBegins()
        table.began(try connection())
        #expect(table.packetsAhead == 2)
        _ = try table.ended(disconnection(), at: start)
        table.dataSeen(on: handle)
        _ = table.controllerReset()
        table.began(try connection())
        #expect(table.packetsAhead == 2)
        // From the time before an attempt.
        _ = try table.ended(disconnection(), at: start)
        table.dataSeen(on: handle)
        table.attemptBegins()
        table.began(try connection())
        #expect(table.packetsAhead == 2)
    }

    /// The peer of a link waits for a response to what the kernel has dropped; that of the next link does not.
    @Test(.row("W44")) func aRequestAheadOfALinkIsKnownUntilTheNextLink() throws {
        var table = LinkTable()
        table.dataSeen(on: handle)
        table.began(try connection())
        #expect(table.hasLostRequest(on: handle) == false)
        _ = try table.ended(disconnection(), at: start)
        table.attemptBegins()
        table.dataSeen(on: handle, needsResponse: true)
        #expect(table.hasLostRequest(on: handle) == false, "there is no link yet")
        table.began(try connection())
        #expect(table.packetsAhead == 2)
        #expect(table.hasLostRequest(on: handle) == true)
        #expect(table.hasLostRequest(on: handle + 1) == false)
        // The link responds to what comes later.
        table.dataSeen(on: handle, needsResponse: true)
        _ = try table.ended(disconnection(), at: start)
        table.attemptBegins()
        table.began(try connection())
        #expect(table.hasLostRequest(on: handle) == false)
        #expect(table.packetsAhead == 2)
    }

    /// Encrypting the link is what a Security Request asks for; a request of ATT needs its own response.
    @Test(.row("W44")) func aSecurityRequestAheadOfALinkThatIsEncryptedIsNotLost() throws {
        for (isSecurityRequest, isLost) in [(true, false), (false, true)] {
            var table = LinkTable()
            table.dataSeen(on: handle, needsResponse: true, needsEncryption: isSecurityRequest)
            table.began(try connection())
            #expect(table.hasLostRequest(on: handle) == true)
            #expect(table.hasLostRequest(on: handle, isEncrypted: true) == isLost)
        }
    }

    @Test func theReasonOfAnEndIsKeptForItsOwnerOnce() throws {
        var table = LinkTable()
        let first = table.register(handle, peer)
        _ = try table.ended(disconnection(reason: "13"), at: start)
        let second = table.register(handle, peer)
        _ = try table.ended(disconnection(reason: "08"), at: start)
        #expect(table.takeReason(of: first) == .remoteUserTerminated)
        #expect(table.takeReason(of: first) == nil)
        #expect(table.takeReason(of: second) == .connectionTimeout)
    }

    /// Also where nothing can resolve its address.
    @Test func thePeerOfALinkMayReportItsIdentity() throws {
        var table = LinkTable()
        let link = table.register(handle, peer)
        #expect(table.identity(of: peer) == nil)
        table.identified(link, as: other)
        #expect(table.identity(of: peer) == other && table.identity(of: other) == nil)
        _ = try table.ended(disconnection(), at: start)
        #expect(table.identity(of: peer) == nil)
    }

    @Test(.row("S19")) func theKeyOfALinkIsKnownOnlyWhileNothingHasEndedIt() throws {
        let ends: [(String, (inout LinkTable) throws -> Void)] = [
            ("off", { $0.encryptionEnded(handle) }), ("end", { _ = try $0.ended(disconnection(), at: start) }),
            ("another link", { $0.began(try connection()) }), ("reset", { _ = $0.controllerReset() }),
        ]
        for (name, end) in ends {
            var table = LinkTable()
            table.encrypted(handle, keySize: 16)
            let link = table.register(handle, peer, kernelName: other)
            #expect(table.keySize(of: handle) == 16 && table.keySize(of: link) == 16)
            #expect(link.peer == peer && link.kernelName == other)
            #expect(table.keySize(of: 0x41) == nil)
            try end(&table)
            #expect(table.keySize(of: handle) == nil && table.keySize(of: link) == nil, "\(name)")
            // The handle is used again, for a link that is encrypted too.
            let next = table.register(handle, other)
            table.encrypted(handle, keySize: 7)
            #expect(table.keySize(of: next) == 7 && table.keySize(of: link) == nil, "\(name)")
        }
    }

    @Test func onlySoManyReasonsAreKept() throws {
        var table = LinkTable()
        let links = try (0...LinkTable.reasonLimit).map { _ in
            let link = table.register(handle, peer)
            _ = try table.ended(disconnection(), at: start)
            return link
        }
        let reasons = links.map { table.takeReason(of: $0) }
        #expect(reasons.first == .some(nil))
        #expect(reasons.dropFirst().allSatisfy { $0 == .localHostTerminated })
    }

    @Test func aFailedDisconnectEndsNothing() throws {
        var table = LinkTable()
        let link = table.register(handle, peer)
        #expect(try table.ended(disconnection(status: "0c"), at: start) == [])
        #expect(table.isCurrent(link) == true)
    }

    @Test func anEndThatIsReadBeforeItsBeginningBelongsToIt() throws {
        var table = LinkTable()
        table.attemptBegins()
        _ = try table.ended(disconnection(reason: "3e"), at: start)
        try table.began(connection())
        #expect(table.lastEnd(of: handle) == .connectionFailedToBeEstablished)
        #expect(table.parameters(of: handle) == nil)

        // One of an earlier attempt does not.
        table.attemptBegins()
        try table.began(connection())
        #expect(table.lastEnd(of: handle) == nil)
        #expect(table.parameters(of: handle)?.intervalMin == 0x28)
        _ = try table.ended(disconnection(), at: start)
        table.attemptBegins()
        try table.began(connection())
        #expect(table.lastEnd(of: handle) == nil)
    }

    /// A process without CAP_NET_RAW reads no beginning at all.
    @Test func anEndOfAKnownLinkIsNotThatOfTheNextOneWithItsHandle() throws {
        var table = LinkTable()
        _ = table.register(handle, peer)
        _ = try table.received(encryption(status: "06"))
        _ = try table.ended(disconnection(), at: start)
        #expect(table.lastEnd(of: handle) != nil && table.unseenEnd(of: handle) == nil)
        table.attemptBegins()
        #expect(table.unseenEnd(of: handle) == nil && table.encryptionFailure(of: handle) == nil)
        let isAwaited = table.awaitEnd(of: handle, isUnseen: true, 7)
        let woken = try table.ended(disconnection(reason: "3e"), at: start)
        #expect(isAwaited && woken == [7])
        #expect(table.unseenEnd(of: handle) == .connectionFailedToBeEstablished)
        let isAwaitedAgain = table.awaitEnd(of: handle, isUnseen: true, 8)
        #expect(!isAwaitedAgain)
        table.attemptBegins()
        #expect(table.unseenEnd(of: handle) == nil)
    }

    @Test func parametersFollowTheControllersEvents() throws {
        var table = LinkTable()
        try table.began(connection(status: "3e"))
        #expect(table.parameters(of: handle) == nil)
        try table.began(connection())
        _ = table.register(handle, peer)
        #expect(table.parameters(of: handle)?.timeout == 0x1F4)
        _ = try table.updated(update(status: "3b"))
        #expect(table.parameters(of: handle)?.intervalMin == 0x28)
        _ = try table.updated(update())
        #expect(table.parameters(of: handle)?.intervalMin == 6)
        _ = try table.ended(disconnection(), at: start)
        _ = try table.updated(update())
        #expect(table.parameters(of: handle) == nil, "the link is over")
        #expect(table.lastEnd(of: handle) == .localHostTerminated)
    }

    @Test func theEndOfADisconnectedLinkCanBeAwaited() throws {
        var table = LinkTable()
        let link = table.register(handle, peer)
        #expect(table.disconnectingHandle(to: peer) == nil)
        table.disconnecting(link)
        #expect(table.disconnectingHandle(to: peer) == handle)
        #expect(table.disconnectingHandle(to: other) == nil)
        #expect(table.awaitEnd(of: handle, 1) == true)
        #expect(table.awaitEnd(of: handle, 2) == true)
        #expect(table.awaitEnd(of: handle, 3) == true)
        table.cancelAwaitingEnd(of: handle, 2)
        #expect(try table.ended(disconnection(), at: start) == [1, 3])
        #expect(table.disconnectingHandle(to: peer) == nil)
        #expect(table.awaitEnd(of: handle, 4) == false)

        table.disconnecting(table.register(handle, peer))
        table.stopAwaitingEnd(of: handle)
        #expect(table.disconnectingHandle(to: peer) == nil)
    }

    /// A connect may be cancelled, or fail, when its link is up and nothing is attached to it.
    @Test func theEndOfALinkThatIsNotRegisteredCanBeAwaited() throws {
        var table = LinkTable()
        table.disconnecting(handle, from: peer)
        #expect(table.disconnectingHandle(to: peer) == nil, "there is no link")
        table.began(try connection())
        #expect(table.disconnectingHandle(to: peer) == nil)
        table.disconnecting(handle, from: peer)
        _ = try table.updated(update())
        #expect(table.disconnectingHandle(to: peer) == handle)
        #expect(table.disconnectingHandle(to: other) == nil)
        table.stopAwaitingEnd(of: handle)
        #expect(table.disconnectingHandle(to: peer) == nil)
        table.disconnecting(handle, from: peer)
        _ = try table.ended(disconnection(), at: start)
        #expect(table.disconnectingHandle(to: peer) == nil)
        table.began(try connection())
        #expect(table.disconnectingHandle(to: peer) == nil, "it is another link")
    }

    @Test(.row("H15")) func aResetDropsAllLinksInTheOrderOfTheirRegistration() throws {
        let order = Recorded()
        var table = LinkTable()
        let late = table.register(0x41, peer)
        let later = table.register(0x40, other)
        table.watchLoss(of: late) { _ in order.add(1) }
        table.watchLoss(of: later) { _ in order.add(2) }
        let former = table.register(0x42, other)
        _ = table.register(0x42, peer)
        table.watchLoss(of: former) { _ in order.add(3) }
        try table.began(connection())
        #expect(table.beginUpdate(phyKey, for: 7, until: start) == true)
        #expect(table.awaitEnd(of: 0x41, 8) == true)
        let (waiters, handlers) = table.controllerReset()
        #expect(waiters == [7, 8])
        let (remaining, _) = table.controllerReset()
        #expect(remaining.isEmpty, "each is resumed once")
        for handler in handlers { handler(nil) }
        #expect(order.all == [1, 2])
        #expect(table.peers.isEmpty && !table.isCurrent(late) && table.parameters(of: handle) == nil)
        #expect(table.takeReason(of: late) == nil, "the reset is the reason")
    }

    /// The report of an end may come after it was concluded from a response: it is not the end of the next link.
    @Test(.row("W34")) func aReportThatIsLateAfterAllEndsNothing() throws {
        var table = LinkTable()
        try table.began(connection())
        let link = table.register(handle, peer)
        #expect(
            table.endedUnreported(link, after: 0, isReportDue: true, at: start) == nil,
            "another link has begun meanwhile")
        #expect(table.endedUnreported(link, after: 1, isReportDue: true, at: start) != nil)
        #expect(table.endedUnreported(link, after: 1, isReportDue: true, at: start) == nil)
        #expect(table.unreportedEnds == 1 && !table.isCurrent(link))
        _ = try table.ended(disconnection(), at: start + .seconds(1))
        try table.began(connection())
        let next = table.register(handle, other)
        #expect(table.isCurrent(next) && table.parameters(of: handle) != nil)
        _ = try table.ended(disconnection(), at: start + .seconds(2))
        #expect(table.isCurrent(next) == false)
    }

    /// No report follows one that was dropped: the next end is another link's, also where no beginning is read.
    @Test func anEndAfterADroppedReportIsThatOfTheNextLink() throws {
        var table = LinkTable()
        let link = table.register(handle, peer)
        #expect(table.endedUnreported(link, after: 0, isReportDue: false, at: start) != nil)
        table.attemptBegins()
        let isAwaited = table.awaitEnd(of: handle, isUnseen: true, 7)
        let woken = try table.ended(disconnection(reason: "3e"), at: start)
        #expect(isAwaited && woken == [7])
        #expect(table.unseenEnd(of: handle) == .connectionFailedToBeEstablished)
    }

    // MARK: Encryption

    /// The beginning of a link and that of its encryption come by two sockets, in either order.
    @Test func theEncryptionMayBeReadAheadOfItsLink() throws {
        let arrival = try #require(ArrivalTime(nanoseconds: 5))
        let change = try encryption()
        for isReadFirst in [true, false] {
            var table = LinkTable()
            if isReadFirst { _ = table.received(change, at: arrival) }
            try table.began(connection())
            let link = table.register(handle, peer)
            if !isReadFirst { _ = table.received(change, at: arrival) }
            #expect(table.encryptionBeginning(of: link) == arrival)
            // The next one has nothing of it.
            _ = try table.ended(disconnection(), at: start)
            try table.began(connection())
            #expect(table.encryptionBeginning(of: table.register(handle, peer)) == nil)
            // Also where the end was lost.
            _ = table.received(change, at: arrival)
            try table.began(connection())
            #expect(table.encryptionBeginning(of: table.register(handle, peer)) == nil)
        }
    }

    @Test func theTasksOfALinkAreResumedByItsEncryption() throws {
        var table = LinkTable()
        table.awaitEncryption(of: handle, 3)
        table.awaitEncryption(of: 0x41, 2)
        table.awaitEncryption(of: handle, 4)
        #expect(table.encryptionWaiters == [2, 3, 4])
        #expect(table.encryptionWaiters(of: handle) == [3, 4] && table.encryptionWaiters(of: 0x42) == [])
        #expect(try table.received(encryption()) == [3, 4])
        #expect(table.encryptionFailure(of: handle) == nil)
        table.stopAwaitingEncryption(3)
        #expect(try table.received(encryption(status: "06")) == [4])
        table.stopAwaitingEncryption(2)
        #expect(table.encryptionWaiters == [4])
    }

    @Test func whyEncryptionHasFailedIsKnownUntilAnotherLinkHasTheHandle() throws {
        var table = LinkTable()
        try table.began(connection())
        _ = try table.received(encryption(status: "06"))
        #expect(table.encryptionFailure(of: handle) == .keyMissing && table.encryptionFailure(of: 0x41) == nil)
        _ = try table.ended(disconnection(), at: start)
        try table.began(connection(status: "3e"))
        #expect(table.encryptionFailure(of: handle) == .keyMissing, "it explains the end")
        try table.began(connection())
        #expect(table.encryptionFailure(of: handle) == nil)
    }

    @Test(.row("S19")) func encryptionThatStopsOrFailsEndsTheKey() throws {
        for (status, mode, size) in [("00", "01", 16 as UInt8?), ("00", "00", nil), ("06", "01", nil)] {
            var table = LinkTable()
            table.encrypted(handle, keySize: 16)
            _ = try table.received(encryption(status: status, mode: mode))
            #expect(table.keySize(of: handle) == size, "status \(status), mode \(mode)")
        }
    }

    // MARK: Updates

    @Test func oneUpdateOfAKindIsOutOnALink() throws {
        var table = LinkTable()
        _ = table.register(handle, peer)
        let expiry = start + LinkTable.procedureTimeout
        #expect(table.beginUpdate(key, for: 1, until: expiry) == true)
        #expect(table.beginUpdate(key, for: 2, until: expiry) == false)
        #expect(table.beginUpdate(phyKey, for: 3, until: expiry) == true)
        #expect(table.updateExpiry(key) == expiry)
        table.awaitUpdateTurn(key, 2)
        #expect(table.takeUpdateEnd(key)?.next == nil)
        #expect(try table.updated(update()) == [1])
        #expect(try table.updated(update()) == [], "the caller is on its way")
        #expect(table.beginUpdate(key, for: 2, until: expiry) == false)
        let taken = table.takeUpdateEnd(key)
        let (end, next) = try #require(taken)
        #expect(try end == .parameters(update()))
        #expect(next == [2])
        #expect(table.updateExpiry(key) == nil)
        #expect(table.beginUpdate(key, for: 2, until: expiry) == true)
    }

    @Test func anAbandonedUpdateIsOutUntilItsEventOrItsExpiry() throws {
        var table = LinkTable()
        _ = table.register(handle, peer)
        #expect(table.beginUpdate(key, for: 1, until: start) == true)
        table.abandonUpdate(key)
        table.awaitUpdateTurn(key, 2)
        #expect(try table.updated(update()) == [2])
        #expect(table.updateExpiry(key) == nil)

        #expect(table.beginUpdate(key, for: 3, until: start) == true)
        table.expireUpdate(key, at: start)
        #expect(table.updateExpiry(key) == start, "its caller waits")
        table.abandonUpdate(key)
        table.expireUpdate(key, at: start + .nanoseconds(-1))
        #expect(table.updateExpiry(key) == start)
        table.expireUpdate(key, at: start)
        #expect(table.updateExpiry(key) == nil)
    }

    @Test func anUpdateEndsWithItsRefusalAndWithItsLink() throws {
        let refusal = HCICommandFailure(opcode: .leConnectionUpdate, reason: .status(.invalidParameters))
        var table = LinkTable()
        _ = table.register(handle, peer)
        #expect(table.beginUpdate(key, for: 1, until: start) == true)
        #expect(table.updateFailed(key, refusal) == [1])
        #expect(table.takeUpdateEnd(key)?.end == .failed(refusal))
        #expect(table.beginUpdate(phyKey, for: 2, until: start) == true)
        #expect(table.beginUpdate(key, for: 3, until: start) == true)
        #expect(table.awaitEnd(of: handle, 4) == true)
        #expect(try table.ended(disconnection(), at: start) == [3, 2, 4])
        #expect(table.takeUpdateEnd(key)?.end == .linkLost)
        #expect(table.takeUpdateEnd(phyKey)?.end == .linkLost)
    }

    // MARK: Events, by the layouts of Core Vol 4 Part E, 7.7

    private var key: LinkUpdate.Key { LinkUpdate.Key(handle: handle, kind: .parameters) }
    private var phyKey: LinkUpdate.Key { LinkUpdate.Key(handle: handle, kind: .phy) }

    private struct OtherEvent: Error {}

    private func disconnection(status: String = "00", reason: String = "16") throws -> HCIDisconnectionComplete {
        guard case .disconnectionComplete(let complete) = try HCIEvent(bytes("0504" + status + "4000" + reason).span)
        else { throw OtherEvent() }
        return complete
    }

    private func connection(status: String = "00") throws -> LEConnectionComplete {
        let packet = bytes("3e1301" + status + "40000001" + "46af0f00aa60" + "28000000f40100")
        guard case .connectionComplete(let complete) = try HCIEvent(packet.span) else { throw OtherEvent() }
        return complete
    }

    private func encryption(status: String = "00", mode: String = "01") throws -> HCIEncryptionChange {
        let packet = bytes("0804" + status + "4000" + mode)
        guard case .encryptionChange(let change) = try HCIEvent(packet.span) else { throw OtherEvent() }
        return change
    }

    private func update(status: String = "00") throws -> LEConnectionUpdateComplete {
        let packet = bytes("3e0a03" + status + "400006000000f401")
        guard case .connectionUpdateComplete(let complete) = try HCIEvent(packet.span) else { throw OtherEvent() }
        return complete
    }
}

/// Numbers in the order in which handlers were called; the tests call them one after the other.
private final class Recorded: @unchecked Sendable {
    private(set) var all: [Int] = []

    func add(_ number: Int) { all.append(number) }
}
