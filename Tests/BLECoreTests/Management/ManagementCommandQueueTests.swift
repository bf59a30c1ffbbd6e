import BLECore
import TestSupport
import Testing

/// Packets are those of `ManagementPackets`, or follow the kernel's `mgmt.h`.
@Suite struct ManagementCommandQueueTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000)
    private let powerOn = ManagementSetPowered(true).packet(adapter: 0)
    private let noKeys = ManagementLoadLongTermKeys([]).packet(adapter: 0)
    private let pair = ManagementPairDevice(
        ManagementPeer(PeerID(address: BluetoothAddress("C6:55:44:33:22:11")!, type: .random)), .noInputNoOutput
    ).packet(adapter: 0)

    private func queue(largestPacket: Int = 0xFFFF) -> ManagementCommandQueue {
        ManagementCommandQueue(largestPacket: largestPacket)
    }

    private func failure(
        _ code: ManagementCommandCode, _ reason: ManagementCommandFailure.Reason
    ) -> Result<ManagementCommandComplete, ManagementCommandFailure> {
        .failure(ManagementCommandFailure(code: code, reason: reason))
    }

    private func send(_ ticket: ManagementCommandQueue.Ticket, _ bytes: [UInt8]) -> ManagementCommandQueue.Action {
        .send(ticket, SecretBytes(bytes))
    }

    @Test func commandsOfDifferentCodesDoNotWaitForEachOther() throws {
        var queue = queue()
        let (pairing, first) = queue.enqueue(pair, at: start)
        let (power, second) = queue.enqueue(powerOn, at: start)
        let (keys, third) = queue.enqueue(noKeys, at: start)
        #expect(first == [send(pairing, pair.bytes)])
        #expect(second == [send(power, ManagementPackets.setPowered)])
        #expect(third == [send(keys, ManagementPackets.loadNoKeys)])
        let loaded = try complete(ManagementPackets.noKeysLoaded)
        #expect(queue.received(loaded, adapter: 0, at: start) == [.finish(keys, .success(loaded))])
        let powered = try complete(ManagementPackets.powered)
        #expect(queue.received(powered, adapter: 0, at: start) == [.finish(power, .success(powered))])
        #expect(
            try powered.response(to: ManagementSetPowered.self) == [
                .powered, .bondable, .secureSimplePairing, .classic, .lowEnergy, .secureConnections,
            ])
        // The response names the identity, which the command did not.
        let paired = try complete(bytes("01000000 0a00 1900 00 ffeeddccbbaa01"))
        #expect(queue.received(paired, adapter: 0, at: start) == [.finish(pairing, .success(paired))])
        let deadline = queue.nextDeadline
        #expect(deadline == nil)
    }

    @Test func commandsOfOneCodeWaitForEachOtherAndLaterOnesPass() throws {
        var queue = queue()
        let (first, _) = queue.enqueue(pair, at: start)
        let (second, nothing) = queue.enqueue(pair, at: start)
        #expect(nothing.isEmpty && queue.count == 1)
        let (third, sent) = queue.enqueue(powerOn, at: start)
        #expect(sent == [send(third, ManagementPackets.setPowered)])
        // The same code for another adapter does not wait.
        let other = ManagementSetPowered(true).packet(adapter: 1)
        let (fourth, also) = queue.enqueue(other, at: start)
        #expect(also == [send(fourth, bytes("05000100 0100 01"))])
        let refusal = try status(bytes("02000000 0300 1900 05"))
        #expect(
            queue.received(refusal, adapter: 0, at: start) == [
                .finish(first, failure(.pairDevice, .status(.authenticationFailed))), send(second, pair.bytes),
            ])
        let powered = try complete(ManagementPackets.powered)
        #expect(queue.received(powered, adapter: 1, at: start) == [.finish(fourth, .success(powered))])
        #expect(queue.received(powered, adapter: 0, at: start) == [.finish(third, .success(powered))])
    }

    @Test(arguments: 1...0x15) func everyStatusIsAFailure(_ number: UInt8) throws {
        let reason = ManagementCommandFailure.Reason.status(ManagementStatus(rawValue: number))
        for isComplete in [false, true] {
            var queue = queue()
            let (ticket, _) = queue.enqueue(powerOn, at: start)
            let actions =
                isComplete
                ? queue.received(try complete([1, 0, 0, 0, 3, 0, 5, 0, number]), adapter: 0, at: start)
                : queue.received(try status([2, 0, 0, 0, 3, 0, 5, 0, number]), adapter: 0, at: start)
            #expect(actions == [.finish(ticket, failure(.setPowered, reason))])
        }
    }

    /// Command Status with success only announces that the result is still to come.
    @Test func anEarlyStatusEndsNothing() throws {
        var queue = queue()
        let (ticket, _) = queue.enqueue(powerOn, at: start)
        #expect(queue.received(try status(bytes("02000000 0300 0500 00")), adapter: 0, at: start) == [])
        let powered = try complete(ManagementPackets.powered)
        #expect(queue.received(powered, adapter: 0, at: start) == [.finish(ticket, .success(powered))])
        #expect(queue.strays == ManagementCommandQueue.Strays())
    }

    @Test(.row("O31")) func responsesOfOtherCommandsAndAdaptersEndNothing() throws {
        var queue = queue()
        let loaded = try complete(ManagementPackets.noKeysLoaded)
        #expect(queue.received(loaded, adapter: 0, at: start) == [])
        let (ticket, _) = queue.enqueue(powerOn, at: start)
        let powered = try complete(ManagementPackets.powered)
        #expect(queue.received(loaded, adapter: 0, at: start) == [])
        #expect(queue.received(powered, adapter: 1, at: start) == [])
        #expect(queue.received(powered, adapter: nil, at: start) == [])
        #expect(queue.received(try status(ManagementPackets.refusal), adapter: 0, at: start) == [])
        #expect(queue.strays.foreign == 5 && queue.strays.late == 0)
        #expect(queue.received(powered, adapter: 0, at: start) == [.finish(ticket, .success(powered))])
        #expect(queue.received(powered, adapter: 0, at: start) == [])
        #expect(queue.strays.foreign == 6)
    }

    @Test func aCommandWithoutAResponseFailsAndMakesRoom() throws {
        var queue = queue()
        let (first, _) = queue.enqueue(noKeys, at: start)
        let (second, _) = queue.enqueue(noKeys, at: start)
        let (power, _) = queue.enqueue(powerOn, timeout: .seconds(1), at: start)
        let soon = queue.nextDeadline
        #expect(soon == start + .seconds(1))
        #expect(queue.timePassed(start + .milliseconds(999)) == [])
        #expect(
            queue.timePassed(start + .seconds(1)) == [.finish(power, failure(.setPowered, .timeout))])
        let deadline = queue.nextDeadline
        #expect(deadline == start + .seconds(6))
        #expect(
            queue.timePassed(start + .seconds(6)) == [
                .finish(first, failure(.loadLongTermKeys, .timeout)), send(second, noKeys.bytes),
            ])
        let next = queue.nextDeadline
        #expect(next == start + .seconds(12), "the time counts from the writing")
        #expect(queue.received(try complete(ManagementPackets.powered), adapter: 0, at: start) == [])
        #expect(queue.strays.late == 1 && queue.strays.foreign == 0)
    }

    /// The kernel's lists would be taken for loaded by the response to an earlier command, and its own would be lost.
    @Test func aLateResponseIsNotTakenForTheNextCommands() throws {
        var queue = queue()
        let (first, _) = queue.enqueue(noKeys, at: start)
        let (second, _) = queue.enqueue(noKeys, at: start)
        _ = queue.timePassed(start + .seconds(6))
        let loaded = try complete(ManagementPackets.noKeysLoaded)
        #expect(queue.received(loaded, adapter: 0, at: start) == [] && queue.strays.late == 1)
        let refusal = try status(bytes("02000000 0300 1300 0d"))
        #expect(
            queue.received(refusal, adapter: 0, at: start) == [
                .finish(second, failure(.loadLongTermKeys, .status(.invalidParameters)))
            ])
        #expect(first != second)
    }

    /// The kernel drops responses that are not read in time: the commands after that do not pay for it for ever.
    @Test func aResponseThatNeverComesCostsOneCommand() throws {
        var queue = queue()
        var now = start
        let loaded = try complete(ManagementPackets.noKeysLoaded)
        _ = queue.enqueue(noKeys, at: now)
        now = now + .seconds(6)
        _ = queue.timePassed(now)
        let (second, _) = queue.enqueue(noKeys, at: now)
        #expect(queue.received(loaded, adapter: 0, at: now) == [])
        now = now + .seconds(6)
        #expect(queue.timePassed(now) == [.finish(second, failure(.loadLongTermKeys, .timeout))])
        let (third, _) = queue.enqueue(noKeys, at: now)
        #expect(queue.received(loaded, adapter: 0, at: now) == [.finish(third, .success(loaded))])
    }

    @Test func theReturnedPeerIdentifiesTheCommandOfAResponse() throws {
        let other = ManagementPairDevice(
            ManagementPeer(PeerID(address: BluetoothAddress("C6:00:00:00:00:01")!, type: .random)), .noInputNoOutput
        ).packet(adapter: 0)
        var queue = queue()
        _ = queue.enqueue(pair, timeout: .seconds(1), at: start)
        _ = queue.timePassed(start + .seconds(1))
        let (second, _) = queue.enqueue(other, at: start)
        let isOut = (queue.isOut(.pairDevice, adapter: 0), queue.isOut(.pairDevice, adapter: 1))
        #expect(isOut == (true, false))
        let paired = try complete(bytes("01000000 0a00 1900 00 0100000000c602"))
        #expect(queue.received(paired, adapter: 0, at: start) == [.finish(second, .success(paired))])
        let isOutStill = queue.isOut(.pairDevice, adapter: 0)
        #expect(!isOutStill)
        let late = try complete(bytes("01000000 0a00 1900 10 1122334455c602"))
        #expect(queue.received(late, adapter: 0, at: start) == [] && queue.strays.late == 1)
    }

    /// Lists of keys pass through the queue.
    @Test func noDescriptionShowsThePacket() {
        var queue = queue()
        let key = RecordedBonds.secureConnections
        let packet = ManagementLoadLongTermKeys([key]).packet(adapter: 0)
        let (_, actions) = queue.enqueue(packet, at: start)
        var texts = ["\(packet)", "\(actions)", String(reflecting: packet), String(reflecting: actions), ""]
        dump(packet, to: &texts[4])
        dump(actions, to: &texts[4])
        dump(key, to: &texts[4])
        // The first bytes of the key, and its halves, in decimal and hexadecimal.
        let halves: [UInt64] = [0xBE9D_5EE4_C126_8CEF, 0x8ED6_0539_9DE3_D7E3]
        for text in texts {
            for shown in ["239, 140", "ef8c", "EF8C"] + halves.map({ "\($0)" }) { #expect(!text.contains(shown)) }
        }
        #expect(texts[0] == "management packet 0x0013 of adapter 0, 38 bytes")
    }

    @Test func aPairingMayTakeMinutes() {
        var queue = queue()
        let (ticket, _) = queue.enqueue(pair, at: start)
        #expect(queue.timePassed(start + .seconds(179)) == [])
        #expect(queue.timePassed(start + .seconds(180)) == [.finish(ticket, failure(.pairDevice, .timeout))])
        #expect(queue.timePassed(start + .seconds(500)) == [])
    }

    @Test func cancelReleasesTheCallerAndKeepsTheSlot() throws {
        var queue = queue()
        let (first, _) = queue.enqueue(noKeys, at: start)
        let (second, _) = queue.enqueue(noKeys, at: start)
        let (third, _) = queue.enqueue(noKeys, at: start)
        #expect(queue.cancel(second) == [.finish(second, failure(.loadLongTermKeys, .cancelled))])
        #expect(queue.cancel(first) == [.finish(first, failure(.loadLongTermKeys, .cancelled))])
        #expect(queue.cancel(first) == [] && queue.count == 1)
        let loaded = try complete(ManagementPackets.noKeysLoaded)
        #expect(queue.received(loaded, adapter: 0, at: start) == [send(third, noKeys.bytes)])
        #expect(queue.strays == ManagementCommandQueue.Strays())
        #expect(queue.cancel(third) == [.finish(third, failure(.loadLongTermKeys, .cancelled))])
        // Nobody waits for it, so its time-out is reported to nobody.
        #expect(queue.timePassed(start + .seconds(6)) == [])
        let deadline = queue.nextDeadline
        #expect(deadline == nil)
    }

    @Test func aPacketThatCannotBeWrittenFailsAlone() {
        var queue = queue()
        let (first, _) = queue.enqueue(noKeys, at: start)
        let (second, _) = queue.enqueue(noKeys, at: start)
        #expect(
            queue.notSent(first, errno: 11, at: start) == [
                .finish(first, failure(.loadLongTermKeys, .notSent(errno: 11))), send(second, noKeys.bytes),
            ])
        #expect(queue.notSent(first, errno: 11, at: start) == [])
    }

    /// The 29th key does not fit into 1,028 bytes; the kernel would refuse the packet without a reason.
    @Test func aPacketBeyondTheLimitIsNeverWritten() throws {
        let key = ManagementLongTermKey(
            peer: ManagementPeer(PeerID(address: BluetoothAddress("C6:55:44:33:22:11")!, type: .random)),
            kind: .secureConnections, isCentral: false, size: 16, ediv: 0, rand: 0, key: .zero)
        func load(_ count: Int) -> ManagementPacket {
            ManagementLoadLongTermKeys([ManagementLongTermKey](repeating: key, count: count)).packet(adapter: 0)
        }
        var short = queue(largestPacket: 1_028)
        let (fits, sent) = short.enqueue(load(28), at: start)
        #expect(sent == [send(fits, load(28).bytes)] && load(28).bytes.count == 1_016)
        let (ticket, actions) = short.enqueue(load(29), at: start)
        #expect(actions == [.finish(ticket, failure(.loadLongTermKeys, .tooLong(limit: 1_028)))])
        var long = queue()
        let (most, all) = long.enqueue(load(1_820), at: start)
        #expect(all == [send(most, load(1_820).bytes)] && load(1_820).bytes.count == 65_528)
    }

    @Test func aRemovedAdapterFailsItsCommandsOnly() throws {
        var queue = queue()
        let (power, _) = queue.enqueue(powerOn, at: start)
        let (waiting, _) = queue.enqueue(powerOn, at: start)
        let (other, _) = queue.enqueue(ManagementSetPowered(true).packet(adapter: 1), at: start)
        #expect(
            queue.adapterLost(0) == [
                .finish(power, failure(.setPowered, .adapterLost)),
                .finish(waiting, failure(.setPowered, .adapterLost)),
            ])
        #expect(queue.adapterLost(0) == [])
        let powered = try complete(ManagementPackets.powered)
        #expect(queue.received(powered, adapter: 1, at: start) == [.finish(other, .success(powered))])
    }

    @Test func aLostSocketFailsEverythingOnce() {
        var queue = queue()
        let (power, _) = queue.enqueue(powerOn, at: start)
        let (cancelled, _) = queue.enqueue(noKeys, at: start)
        let (waiting, _) = queue.enqueue(powerOn, at: start)
        _ = queue.cancel(cancelled)
        #expect(
            queue.socketLost() == [
                .finish(power, failure(.setPowered, .socketLost)),
                .finish(waiting, failure(.setPowered, .socketLost)),
            ])
        #expect(queue.socketLost() == [])
        let (again, sent) = queue.enqueue(powerOn, at: start)
        #expect(sent == [send(again, ManagementPackets.setPowered)])
    }

    @Test func aFullQueueRefusesACommand() {
        var queue = queue()
        for _ in 0...ManagementCommandQueue.capacity { _ = queue.enqueue(powerOn, at: start) }
        let (ticket, actions) = queue.enqueue(powerOn, at: start)
        #expect(actions == [.finish(ticket, failure(.setPowered, .queueFull))])
    }

    @Test func failuresHaveAMessage() throws {
        let failures: [(ManagementCommandFailure.Reason, String)] = [
            (.status(.permissionDenied), "Permission Denied (0x14)"), (.timeout, "the kernel did not respond in time"),
            (.queueFull, "too many commands are queued"), (.cancelled, "cancelled"),
            (.tooLong(limit: 1_028), "the packet is longer than the 1028 bytes that the socket accepts"),
            (.adapterLost, "the adapter was removed"), (.socketLost, "the socket was closed"),
            (.notSent(errno: 22), "the kernel rejected the packet with error 22"),
        ]
        for (reason, text) in failures {
            let failure = ManagementCommandFailure(code: .loadLongTermKeys, reason: reason)
            #expect(failure.description == "management command 0x0013: \(text)")
            #expect((failure.status == nil) == (reason != .status(.permissionDenied)))
        }
        #expect(throws: ManagementCommandFailure.self) {
            try complete(bytes("01000000 0600 0500 00 d10a00")).response(to: ManagementSetPowered.self)
        }
        #expect(throws: ManagementCommandFailure(code: .setPowered, reason: .status(.blocked))) {
            try complete(bytes("01000000 0300 0500 12")).response(to: ManagementSetPowered.self)
        }
    }

    private func complete(_ packet: [UInt8]) throws -> ManagementCommandComplete {
        guard case .commandComplete(let complete) = try ManagementEvent(packet.span).content else {
            throw OtherEvent()
        }
        return complete
    }

    private func status(_ packet: [UInt8]) throws -> ManagementCommandStatus {
        guard case .commandStatus(let status) = try ManagementEvent(packet.span).content else { throw OtherEvent() }
        return status
    }

    private struct OtherEvent: Error {}
}
