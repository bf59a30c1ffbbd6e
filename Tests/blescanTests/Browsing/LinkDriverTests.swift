import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

@testable import blescan

/// The links of a screen: requests go in, events come out.
@Suite struct LinkDriverTests {
    /// A driver of links to a virtual device.
    private final class Link: Sendable {
        private let events = Lock<[LinkEvent]>([])
        private let requests: AsyncStream<LinkRequest>.Continuation
        private let serving: Task<Void, Never>
        /// The device of the link that was made last.
        let peripheral = Lock<VirtualPeripheral?>(nil)
        let ended = Lock(0)

        init(to device: VirtualDevice = .uart, attempt: (@Sendable () async throws -> Void)? = nil) {
            let (stream, requests) = AsyncStream.makeStream(of: LinkRequest.self)
            self.requests = requests
            let (events, peripheral, ended) = (events, peripheral, ended)
            let driver = LinkDriver(timeout: .seconds(20)) { _, found, body in
                found()
                try await attempt?()
                let virtual = VirtualPeripheral(device)
                peripheral.withLock { $0 = virtual }
                let central = Central.ofCommand(Configuration())
                // As on a virtual radio; the user has typed demo:uart.
                let name = "C0:FF:EE:00:00:01/random"
                let link = try await central.attach(descriptor: try await virtual.connect(), name: name)
                let result = await Result.of { try await body(link) }
                await link.disconnect()
                ended.withLock { $0 += 1 }
                try result.get()
            } report: { event in
                events.withLock { $0.append(event) }
            }
            serving = Task { await driver.serve(stream) }
        }

        var all: [LinkEvent] { events.withLock(\.self) }

        func send(_ request: LinkRequest) { requests.yield(request) }

        func happened(_ what: String, _ condition: (LinkEvent) -> Bool) async throws {
            try await waited(for: what) { all.contains(where: condition) }
        }

        func connected() async throws {
            send(.connect(.demo("uart")))
            try await happened("everything is read") { if case .value(0x000C, _, .read) = $0 { true } else { false } }
        }

        /// Ends everything.
        func finish() async {
            requests.finish()
            await serving.value
        }
    }

    @Test func theStepsOfAVisitAreReportedInOrder() async throws {
        let link = Link()
        try await link.connected()
        link.send(.subscribe(0x000A))
        try await link.happened("subscribed") { if case .subscribed(0x000A) = $0 { true } else { false } }
        link.send(.write(0x0008, Array("hi".utf8), .withResponse))
        try await link.happened("the echo") { event in
            if case .value(0x000A, let bytes, .sent) = event { bytes == Array("hi".utf8) } else { false }
        }
        try await link.happened("written") { if case .written(0x0008, 2, .withResponse) = $0 { true } else { false } }
        link.send(.unsubscribe(0x000A))
        try await link.happened("unsubscribed") { if case .unsubscribed(0x000A) = $0 { true } else { false } }
        link.send(.read(0x0008))
        try await link.happened("refused") { event in
            guard case .failed(0x0008, let failure, _) = event else { return false }
            return failure.message.contains("(demo:uart): it is not readable") && failure.hint != nil
        }
        link.send(.read(0x000A))
        // The key of the screen, in place of a command.
        try await link.happened("refused too") { event in
            guard case .failed(0x000A, let failure, _) = event else { return false }
            return failure.hint == "s subscribes to it."
        }
        link.send(.disconnect)
        await link.finish()
        #expect(link.ended.withLock(\.self) == 1)
        #expect(!link.all.contains { if case .ended = $0 { true } else { false } }, "the user has left")
    }

    @Test func aLostLinkIsReportedWithItsReason() async throws {
        let link = Link()
        try await link.connected()
        link.send(.subscribe(0x000A))
        try await link.happened("subscribed") { if case .subscribed(0x000A) = $0 { true } else { false } }
        await link.peripheral.withLock(\.self)?.disconnect()
        try await link.happened("the end") { event in
            guard case .ended(let failure?) = event else { return false }
            return failure.message.contains("could not keep the link")
        }
        // And again.
        let before = link.all.count
        link.send(.connect(.demo("uart")))
        try await waited(for: "another link") {
            link.all.dropFirst(before).contains { if case .discovered = $0 { true } else { false } }
        }
        await link.finish()
        #expect(link.ended.withLock(\.self) == 2)
    }

    /// As in `explore`.
    @Test func anInvalidValueLeavesTheLinkAndTheOthers() async throws {
        let virtual = await UnrulyPeerTests.peripheralWithInvalidValues()
        let device = try await Central().attach(descriptor: try await virtual.connect(), ConnectOptions(mtu: 23))
        let events = Lock<[LinkEvent]>([])
        let session = LinkSession(device, of: .demo("lamp"), timeout: .seconds(20)) { event in
            events.withLock { $0.append(event) }
        }
        let running = Task { try await session.run() }
        try await waited(for: "the last value") {
            events.withLock { $0.contains { if case .value(0x0007, _, .read) = $0 { true } else { false } } }
        }
        let codes = events.withLock { events in
            events.compactMap { event -> BLEError.Code? in
                guard case .unreadable(_, let error) = event else { return nil }
                return error.code
            }
        }
        #expect(codes == [.tooLong, .malformedReply])
        #expect(await device.isConnected)
        running.cancel()
        _ = await running.result
        await session.end()
        await device.disconnect()
    }

    @Test func theSignalIsMeasuredWhereThereIsARadio() async throws {
        let radio = VirtualRadio()
        await radio.add(.heartRate)
        let device = try await Central(radio: radio).connect(toFirst: .services(0x180D)).peripheral
        let events = Lock<[LinkEvent]>([])
        let session = LinkSession(device, of: .demo("heart-rate"), timeout: .seconds(20)) { event in
            events.withLock { $0.append(event) }
        }
        let running = Task { try await session.run() }
        try await waited(for: "a signal strength") {
            events.withLock { $0.contains { if case .strength(let strength?) = $0 { strength < 0 } else { false } } }
        }
        running.cancel()
        _ = await running.result
        await session.end()
        await device.disconnect()
    }

    /// The advice is that of `read`; over a socket nothing pairs.
    @Test(
        arguments: [
            (.demo("long-value"), "only demo:lock pairs"), (.unix("/tmp/belt"), "a link on a socket cannot be either"),
            (
                .address(BluetoothAddress(rawValue: 0xC35A_190B_7E21), .random),
                "`blescan pair C3:5A:19:0B:7E:21/random`"
            ),
        ] as [(PeerArgument, String)])
    func aRefusalForLackOfSecurityNamesWhatPairs(_ peer: PeerArgument, _ advice: String) async throws {
        let virtual = VirtualPeripheral(.longValue)
        let device = try await Central().attach(descriptor: try await virtual.connect(), name: "peer")
        let database = try await device.discover()
        let handle = try #require(database.characteristics.first { $0.uuid == 0xFFF2 }).valueHandle
        let failures = Lock<[Failure]>([])
        let session = LinkSession(device, of: peer, timeout: .seconds(20)) { event in
            if case .failed(_, let failure, _) = event { failures.withLock { $0.append(failure) } }
        }
        await session.perform(.read(handle))
        try await waited(for: "the refusal") { failures.withLock { !$0.isEmpty } }
        let hint = failures.withLock { $0.first?.hint ?? "" }
        #expect(hint.hasPrefix("The peer requires a paired or encrypted link") && hint.contains(advice), "\(hint)")
        await session.end()
        await device.disconnect()
    }

    /// A peer that has responded has not.
    @Test func aPeerMayHaveCarriedOutAWriteThatItHasNotRespondedTo() async throws {
        let virtual = VirtualPeripheral(.uart)
        let device = try await Central().attach(descriptor: try await virtual.connect(), name: "peer")
        _ = try await device.discover()
        let failures = Lock<[Bool]>([])
        let session = LinkSession(device, of: .demo("uart"), timeout: .seconds(1)) { event in
            if case .failed(_, _, let mayBeCarriedOut) = event { failures.withLock { $0.append(mayBeCarriedOut) } }
        }
        await session.perform(.write(0x000A, [1], .withResponse))
        try await waited(for: "the refusal") { failures.withLock { $0.count == 1 } }
        await virtual.stopResponding()
        await session.perform(.write(0x0008, [1], .withResponse))
        try await waited(for: "the end of the time") { failures.withLock { $0.count == 2 } }
        #expect(failures.withLock(\.self) == [false, true])
        await session.end()
        await device.disconnect()
    }

    /// A controller knows the strength after some packets of the link.
    @Test func aSignalThatIsNotKnownYetIsMeasuredAgain() async throws {
        let radio = VirtualRadio()
        let belt = await radio.add(.heartRate)
        let device = try await Central(radio: radio).connect(toFirst: .services(0x180D)).peripheral
        await radio.move(belt, to: .heard(127))
        let events = Lock<[LinkEvent]>([])
        let session = LinkSession(
            device, of: .demo("heart-rate"), timeout: .seconds(20), strengthPause: .milliseconds(1)
        ) { event in
            events.withLock { $0.append(event) }
        }
        let running = Task { try await session.run() }
        // The first measurement begins before the first read.
        try await waited(for: "a value") {
            events.withLock { $0.contains { if case .value = $0 { true } else { false } } }
        }
        await radio.move(belt, to: .heard(-50))
        try await waited(for: "a signal strength") {
            events.withLock { $0.contains { if case .strength(let strength?) = $0 { strength == -50 } else { false } } }
        }
        // It is unknown again: the former one must not stay.
        await radio.move(belt, to: .heard(127))
        try await waited(for: "that the signal strength is unknown") {
            events.withLock { events in
                if case .strength(nil)? = events.last { true } else { false }
            }
        }
        running.cancel()
        _ = await running.result
        await session.end()
        await device.disconnect()
    }

    @Test func anAttemptIsCancelled() async throws {
        let (waits, wait) = AsyncStream.makeStream(of: Void.self)
        let link = Link { for await _ in waits {} }
        link.send(.connect(.demo("uart")))
        try await link.happened("the attempt") { if case .found = $0 { true } else { false } }
        await link.finish()
        wait.finish()
        #expect(link.all.count == 1 || !link.all.contains { if case .discovered = $0 { true } else { false } })
    }

    @Test func aFailureOfTheAttemptIsTheEnd() async throws {
        let link = Link { throw Failure(message: "no such peer", hint: "Check it.", status: .usage) }
        link.send(.connect(.demo("uart")))
        try await link.happened("the failure") { event in
            guard case .ended(let failure?) = event else { return false }
            return failure.message == "no such peer"
        }
        await link.finish()
    }
}
