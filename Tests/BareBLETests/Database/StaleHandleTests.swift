import BLECore
import BareBLETestKit
import TestSupport
import Testing

@testable import BareBLE

/// Handles that were looked up are not used after a change that the peer announces: while the request is pending that
/// finds them, or between the look-up and the write. A write that the peer was requested to make by then ends with its
/// response.
///
/// The bytes are written by hand, from Core Vol 3 Part F, 3.4 and Part G, 7.1. The service 0xFFF0 has the
/// characteristic 0xFFF1 at handle 8 with descriptors at 9 and 10, and 0xFFF2 at 12. After the change 0xFFF2 is at 8
/// and 0xFFF1 at 10 with descriptors at 11, 12 and 13; at 9 there is a declaration.
@Suite(.timeLimit(.minutes(10))) struct StaleHandleTests {
    /// The moment at which the peer announces the change of 6...13, at its handle 3.
    enum Moment: CaseIterable {
        /// While it has not responded yet.
        case beforeResponse
        /// After its response, before the caller continues: another call's request waits, and before that is sent, what
        /// the peer has sent is read.
        case afterResponse

        func lines(response: String, change: String = "0600 0d00") -> String {
            switch self {
            case .beforeResponse: "> 1d 0300 \(change)\n< 1e\n> \(response)\n"
            case .afterResponse:
                "! wait 100 ms\n> \(response)\n> 1d 0300 \(change)\n< 1e\n< 0a 0300\n> 0b 00\n"
            }
        }
    }

    /// What the client knows of the peer, and how it has learned it.
    private enum Start {
        case allServices
        /// These two services and no other.
        case namedServices(DiscoveryLevel)
        /// The handle of the announcements, from a list made by hand.
        case announcer

        var script: String {
            switch self {
            case .allServices:
                """
                < 10 0100 ffff 0028
                > 11 06 0100 0500 0118 0600 0d00 f0ff
                < 10 0e00 ffff 0028
                > 01 10 0e00 0a
                < 08 0200 0d00 0328
                > 09 07 0200 20 0300 052a 0700 1b 0800 f1ff 0b00 12 0c00 f2ff

                """
            case .namedServices(let level):
                """
                < 06 0100 ffff 0028 0118
                > 07 0100 0500
                < 06 0100 ffff 0028 f0ff
                > 07 0600 0d00
                < 06 0e00 ffff 0028 f0ff
                > 01 06 0e00 0a
                < 08 0200 0500 0328
                > 09 07 0200 20 0300 052a
                < 08 0400 0500 0328
                > 01 08 0400 0a
                < 08 0700 0d00 0328
                > 09 07 0700 1b 0800 f1ff 0b00 12 0c00 f2ff

                """
                    + (level < .subscribable
                        ? ""
                        : """
                        < 08 0400 0a00 0229
                        > 09 04 0400 0000 0900 0000

                        """)
            case .announcer:
                """
                < 08 0100 0500 0328
                > 09 07 0200 20 0300 052a

                """
            }
        }

        func learn(from device: Peripheral) async throws {
            switch self {
            case .allServices: try await device.discover(level: .structure)
            case .namedServices(let level): try await device.discover(services: [0x1801, 0xFFF0], level: level)
            case .announcer: _ = try await device.discoverCharacteristics(in: 1...5, limit: 1)
            }
        }
    }

    private static let rediscovery = """
        < 10 0600 0d00 0028
        > 11 06 0600 0d00 f0ff
        < 08 0600 0d00 0328
        > 09 07 0700 12 0800 f2ff 0900 1b 0a00 f1ff
        < 08 0b00 0d00 0328
        > 01 08 0b00 0a

        """

    /// Plays `script` to a client that knows `start` and makes the calls of `body`.
    private func play(
        _ moment: Moment, _ start: Start, _ script: String,
        _ body: @Sendable @escaping (Peripheral) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let peer = ScriptedPeripheral(try Dialogue(start.script + script), time: time)
            let options = ConnectOptions(mtu: 23, observesServiceChanges: false)
            let device = try await Central(time: time).attach(descriptor: peer.connect(), options)
            do {
                try await start.learn(from: device)
                if moment == .afterResponse {
                    time.task {
                        try await time.clock.sleep(for: .milliseconds(50))
                        _ = try await device.read(.handle(3))
                    }
                }
                try await body(device)
            } catch {
                Issue.record("\(error)")
            }
            // Time continues when the client has made all of its requests, also surplus ones.
            try await time.clock.sleep(for: .seconds(1))
            let report = await peer.report
            #expect(report.isComplete, "\(report)")
            await device.disconnect()
        }
    }

    // MARK: Descriptors

    @Test(arguments: Moment.allCases) func aDescriptorIsReadWhereItIsNow(moment: Moment) async throws {
        try await play(
            moment, .allServices,
            """
            < 04 0900 0a00
            \(moment.lines(response: "05 01 0900 0129 0a00 0429"))\(Self.rediscovery)\
            < 04 0b00 0d00
            > 05 01 0b00 0129 0c00 0429 0d00 0629
            < 0a 0b00
            > 0b 6e6577
            """
        ) { device in
            let text = try await device.userDescription(of: 0xFFF1)
            #expect(text == "new")
        }
    }

    /// The handle was right when it was found, and is a declaration's when it is read.
    @Test(arguments: Moment.allCases) func aValueReadAtAnOldHandleIsNotReturned(moment: Moment) async throws {
        try await play(
            moment, .allServices,
            """
            < 04 0900 0a00
            > 05 01 0900 0129 0a00 0429
            < 0a 0900
            \(moment.lines(response: "0b 1b 0a00 f1ff"))\(Self.rediscovery)\
            < 04 0b00 0d00
            > 05 01 0b00 0129 0c00 0429 0d00 0629
            < 0a 0b00
            > 0b 6e6577
            """
        ) { device in
            let value = try await device.readDescriptor(0x2901, of: 0xFFF1)
            #expect(value == Array("new".utf8))
        }
    }

    @Test(arguments: Moment.allCases) func anOldCharacteristicsDescriptorIsNotRead(moment: Moment) async throws {
        try await play(
            moment, .allServices,
            """
            < 04 0900 0a00
            \(moment.lines(response: "05 01 0900 0129 0a00 0429"))\(Self.rediscovery)
            """
        ) { device in
            let old = try #require(await device.database?.characteristics(0xFFF1).first)
            await #expect(throws: error(.servicesChanged)) {
                _ = try await device.readDescriptor(0x2901, of: .characteristic(old))
            }
        }
    }

    /// By now the handle belongs to another characteristic.
    @Test(arguments: Moment.allCases) func aDescriptorByAnOldHandleIsNotRead(moment: Moment) async throws {
        try await play(
            moment, .allServices,
            """
            < 04 0900 0a00
            \(moment.lines(response: "05 01 0900 0129 0a00 0429"))\(Self.rediscovery)
            """
        ) { device in
            await #expect(throws: error(.servicesChanged)) {
                _ = try await device.readDescriptor(0x2901, of: .handle(8))
            }
        }
    }

    @Test(arguments: Moment.allCases) func aDescriptorIsNotWrittenAtItsOldHandle(moment: Moment) async throws {
        try await play(
            moment, .allServices,
            """
            < 04 0900 0a00
            \(moment.lines(response: "05 01 0900 0129 0a00 0429"))\(Self.rediscovery)
            """
        ) { device in
            await #expect(throws: error(.servicesChanged)) {
                try await device.writeDescriptor([0x41], to: 0x2901, of: 0xFFF1)
            }
        }
    }

    @Test(arguments: Moment.allCases) func aBroadcastIsNotSwitchedAtAnOldHandle(moment: Moment) async throws {
        try await play(
            moment, .allServices,
            """
            < 04 0900 0a00
            \(moment.lines(response: "05 01 0900 0329 0a00 0429"))\(Self.rediscovery)
            """
        ) { device in
            await #expect(throws: error(.servicesChanged)) { try await device.setBroadcast(true, of: 0xFFF1) }
        }
    }

    /// Only single services are known: the changed one is forgotten, and nothing known contradicts the old handle.
    @Test(arguments: Moment.allCases) func aDescriptorInANamedServiceIsNotWritten(moment: Moment) async throws {
        try await play(
            moment, .namedServices(.structure),
            """
            < 04 0900 0a00
            \(moment.lines(response: "05 01 0900 0129 0a00 0429"))
            """
        ) { device in
            await #expect(throws: error(.servicesChanged)) {
                try await device.writeDescriptor([0x41], to: 0x2901, of: .uuid(0xFFF1, service: 0xFFF0))
            }
        }
    }

    /// After a change of another service the descriptors are discovered once more, and the call continues.
    @Test(arguments: Moment.allCases) func anotherServiceMayChange(moment: Moment) async throws {
        try await play(
            moment, .namedServices(.structure),
            """
            < 04 0900 0a00
            \(moment.lines(response: "05 01 0900 0129 0a00 0429", change: "0100 0500"))\
            < 04 0900 0a00
            > 05 01 0900 0129 0a00 0429
            < 12 0900 41
            > 13
            """
        ) { device in
            try await device.writeDescriptor([0x41], to: 0x2901, of: .uuid(0xFFF1, service: 0xFFF0))
        }
    }

    // MARK: Prepared writes

    /// The first handle is known, and changes while the second one is discovered.
    @Test func aReliableWriteUsesNoOldHandle() async throws {
        try await play(
            .beforeResponse, .namedServices(.structure),
            """
            < 06 0100 ffff 0028 0f18
            \(Moment.beforeResponse.lines(response: "07 0e00 1000"))\
            < 06 1100 ffff 0028 0f18
            > 01 06 1100 0a
            < 08 0f00 1000 0328
            > 09 07 0f00 08 1000 192a
            < 06 0100 ffff 0028 f0ff
            > 07 0600 0d00
            < 06 0e00 ffff 0028 f0ff
            > 01 06 0e00 0a
            < 08 0700 0d00 0328
            > 09 07 0700 12 0800 f2ff 0900 1b 0a00 f1ff
            < 08 0b00 0d00 0328
            > 01 08 0b00 0a
            < 16 0a00 0000 41
            > 17 0a00 0000 41
            < 16 1000 0000 42
            > 17 1000 0000 42
            < 18 01
            > 19
            """
        ) { device in
            try await device.writeReliably([
                ([0x41], .uuid(0xFFF1, service: 0xFFF0)), ([0x42], .uuid(0x2A19, service: 0x180F)),
            ])
        }
    }

    /// The peer changes its services because of the write, and announces that before it responds.
    @Test(.row("G20"), arguments: [false, true])
    func aWriteThatIsExecutedEndsWithThePeersResponse(isReliable: Bool) async throws {
        try await play(
            .beforeResponse, .allServices,
            """
            < 16 0800 0000 41
            > 17 0800 0000 41
            < 18 01
            \(Moment.beforeResponse.lines(response: "19"))\(Self.rediscovery)
            """
        ) { device in
            if isReliable {
                try await device.writeReliably([([0x41], 0xFFF1)])
            } else {
                try await device.write([0x41], to: 0xFFF1, at: 0)
            }
        }
    }

    /// The change follows the response to the last piece, and is read before the peer is asked to write the pieces.
    @Test(.row("G20")) func aWriteThatIsNotExecutedYetIsWithdrawn() async throws {
        try await play(
            .beforeResponse, .allServices,
            """
            < 16 0800 0000 41
            > 17 0800 0000 41
            > 1d 0300 0600 0d00
            < 1e
            < 18 00
            > 19
            \(Self.rediscovery)
            """
        ) { device in
            await #expect(throws: error(.servicesChanged)) { try await device.write([0x41], to: 0xFFF1, at: 0) }
        }
    }

    // MARK: Subscriptions

    @Test(arguments: Moment.allCases) func nothingIsEnabledAtAnOldHandle(moment: Moment) async throws {
        try await play(
            moment, .namedServices(.structure),
            """
            < 04 0900 0a00
            \(moment.lines(response: "05 01 0900 0229 0a00 0429"))
            """
        ) { device in
            await #expect(throws: error(.servicesChanged)) {
                _ = try await device.subscribe(to: .uuid(0xFFF1, service: 0xFFF0))
            }
            #expect(await device.subscriptions.isEmpty)
        }
    }

    /// The inferred configuration does not exist. Before the request that discovers the real one, the change is read.
    @Test func nothingIsEnabledWhereAnOldConfigurationWasInferred() async throws {
        try await play(
            .beforeResponse, .namedServices(.subscribable),
            """
            < 12 0d00 0100
            > 01 12 0d00 0a
            > 1d 0300 0600 0d00
            < 1e
            < 04 0d00 0d00
            > 05 01 0d00 0229
            """
        ) { device in
            await #expect(throws: error(.servicesChanged)) {
                _ = try await device.subscribe(to: .uuid(0xFFF2, service: 0xFFF0))
            }
            #expect(await device.subscriptions.isEmpty)
        }
    }

    /// A change of everything ends the attempt to enable announcements; the library makes it again.
    @Test(arguments: Moment.allCases) func announcementsAreEnabledAtTheirNewHandle(moment: Moment) async throws {
        try await play(
            moment, .namedServices(.structure),
            """
            < 04 0400 0500
            \(moment.lines(response: "05 01 0400 0229 0500 0129", change: "0100 ffff"))\
            < 06 0100 ffff 0028 0118
            > 07 0100 0600
            < 08 0200 0600 0328
            > 09 07 0200 02 0300 2a2b 0400 20 0500 052a
            < 12 0600 0200
            > 13
            """
        ) { device in
            _ = try await device.serviceChanges()
        }
    }

    // MARK: Between the look-up and the write

    /// The announcement comes together with a response, which the loop reads alone: it waits in the socket until the
    /// loop has run the jobs that follow from the response.
    private static let announcement = """
        < 0a 0300
        > 0b 00
        > 1d 0300 0600 0d00
        < 1e

        """

    /// The task that writes the configuration runs after a job that reads the announcement.
    @Test(arguments: [true, false]) func noConfigurationIsWrittenOnceAChangeIsKnown(isEnabling: Bool) async throws {
        let enabling = isEnabling ? "" : "< 12 0d00 0100\n> 13\n"
        try await play(.beforeResponse, .namedServices(.subscribable), enabling + Self.announcement) { device in
            let id = Subscriptions.ID(1)
            if !isEnabling {
                let failures = await device.configure(0x000C, true, for: id)
                #expect(failures == [])
            }
            _ = try await device.read(.handle(3))
            let failures = await device.configure(0x000C, isEnabling, for: id, readingBeforeTheWrite: true)
            #expect(failures == [.servicesChanged])
        }
    }

    /// The task does not prefer the loop, so that a job which reads the announcement runs before it waits for the
    /// response.
    @Test func noValueIsWrittenOnceAChangeIsKnown() async throws {
        try await play(.beforeResponse, .allServices, Self.announcement + Self.rediscovery) { device in
            let old = try #require(await device.database?.characteristics(0xFFF1).first)
            _ = try await device.read(.handle(3))
            let write = await device.beginWriting(to: old)
            await #expect(throws: error(.servicesChanged)) { try await write.value }
        }
    }

    // MARK: Lists made by hand

    /// A discovery procedure of the specification, as an application uses it.
    enum Listing: CaseIterable {
        case services, secondaryServices, includes, characteristics, descriptors

        var request: String {
            switch self {
            case .services: "10 0600 0d00 0028"
            case .secondaryServices: "10 0600 0d00 0128"
            case .includes: "08 0600 0d00 0228"
            case .characteristics: "08 0600 0d00 0328"
            case .descriptors: "04 0900 0a00"
            }
        }

        var response: String {
            switch self {
            case .services, .secondaryServices: "11 06 0600 0d00 f0ff"
            case .includes: "09 08 0700 2000 2f00 0f18"
            case .characteristics: "09 07 0700 1b 0800 f1ff"
            case .descriptors: "05 01 0900 0129 0a00 0429"
            }
        }

        /// Returns the first handles that it finds.
        func firstHandle(on device: Peripheral) async throws -> AttributeHandle? {
            let range: ClosedRange<AttributeHandle> = 6...13
            return switch self {
            case .services: try await device.discoverServices(in: range).first?.handles.lowerBound
            case .secondaryServices: try await device.discoverSecondaryServices(in: range).first?.handles.lowerBound
            case .includes: try await device.discoverIncludedServices(in: range, limit: 1).first?.handle
            case .characteristics:
                try await device.discoverCharacteristics(in: range, limit: 1).first?.declarationHandle
            case .descriptors: try await device.discoverDescriptors(in: 9...10).first?.handle
            }
        }
    }

    /// What an application lists by hand while it changes is returned, and not relied on. The next list is.
    @Test(arguments: Listing.allCases, Moment.allCases)
    func aListThatAChangeOvertakesIsNotKept(listing: Listing, moment: Moment) async throws {
        try await play(
            moment, .announcer,
            """
            < \(listing.request)
            \(moment.lines(response: listing.response))\
            < \(listing.request)
            > \(listing.response)
            """
        ) { device in
            let found = try await listing.firstHandle(on: device)
            #expect(found != nil)
            // The change was of all that was known.
            #expect(await device.database == nil)
            let again = try await listing.firstHandle(on: device)
            #expect(again == found)
            #expect(await device.database != nil)
        }
    }
}

extension Peripheral {
    /// Subscribes `id` to the value at `handle`, or ends its subscription; returns the failures of the writes.
    ///
    /// - Parameter readsFirst: Whether the socket is read between the subscription and the task that writes.
    fileprivate func configure(
        _ handle: AttributeHandle, _ isEnabling: Bool, for id: Subscriptions.ID,
        readingBeforeTheWrite readsFirst: Bool = false
    ) async -> [OperationFailure] {
        let due: [SubscriptionHub.CCCDWrite]
        if isEnabling {
            guard let database, let characteristic = database.characteristic(valueHandle: handle) else { return [] }
            due = subscriptionHub.subscribe(
                id, to: characteristic, by: database.cccd(of: characteristic), preferring: .notification,
                into: .stream(subscriptionHub.makeBuffer(SubscribeOptions())), sharing: nil, 0)
        } else {
            due = subscriptionHub.stopListening(id)
        }
        let writes = write(due)
        if readsFirst { link.readable(happened) }
        var failures: [OperationFailure] = []
        for write in writes {
            if case .failure(let failure) = await write.value { failures.append(failure) }
        }
        return failures
    }

    /// Begins to write, and then to read the socket: tasks of the actor begin in this order, on the loop.
    fileprivate func beginWriting(to characteristic: GATTCharacteristic) -> Task<Void, any Error> {
        let writing: Task<Void, any Error> = Task {
            try await write([9], to: .characteristic(characteristic))
        }
        Task { link.readable(happened) }
        return writing
    }
}
