import BLECore
import TestSupport
import Testing

@Suite struct HCICommandQueueTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000)
    private let address = HCICommandPacket(HCIReadAddress())
    private let version = HCICommandPacket(HCIReadLocalVersion())

    @Test func commandsAreSentOneAtATimeInOrder() {
        var queue = HCICommandQueue()
        let (first, sent) = queue.enqueue(address, at: start)
        #expect(sent == [.send(address)])
        let (second, nothing) = queue.enqueue(version, at: start)
        #expect(nothing.isEmpty)
        let response = done(.readAddress, [0, 1, 2, 3, 4, 5, 6])
        #expect(queue.received(response, at: start) == [.finish(first, .success(response)), .send(version)])
        let other = done(.readLocalVersion, [0])
        #expect(queue.received(other, at: start) == [.finish(second, .success(other))])
        let deadline = queue.nextDeadline
        #expect(deadline == nil)
    }

    @Test func refusalsAreFailures() {
        var queue = HCICommandQueue()
        let (ticket, _) = queue.enqueue(address, at: start)
        let refusal = HCICommandStatus(status: .commandDisallowed, credits: 1, opcode: .readAddress)
        let failure = HCICommandFailure(opcode: .readAddress, reason: .status(.commandDisallowed))
        #expect(queue.received(refusal, at: start) == [.finish(ticket, .failure(failure))])
    }

    @Test(.row("W14", "H12")) func foreignCompletionsFinishNoCommand() {
        var queue = HCICommandQueue()
        let stranger = done(.leSetScanEnable, [0])
        #expect(queue.received(stranger, at: start) == [.foreign(.leSetScanEnable, .success)])
        let (ticket, _) = queue.enqueue(address, at: start)
        #expect(queue.received(stranger, at: start) == [.foreign(.leSetScanEnable, .success)])
        let response = done(.readAddress, [0])
        #expect(queue.received(response, at: start) == [.finish(ticket, .success(response))])
        #expect(queue.received(response, at: start) == [.foreign(.readAddress, .success)])
        #expect(queue.received(done(.readAddress, []), at: start) == [.foreign(.readAddress, nil)])
    }

    @Test(.row("W15", "H13")) func noResponseFailsAfterTwoSecondsAndMakesRoom() {
        var queue = HCICommandQueue()
        let (first, _) = queue.enqueue(address, at: start)
        let (second, _) = queue.enqueue(version, at: start)
        let deadline = queue.nextDeadline
        #expect(deadline == start + .seconds(2))
        #expect(queue.timePassed(start + .milliseconds(1999)) == [])
        let late = start + .seconds(2)
        let timeout = HCICommandFailure(opcode: .readAddress, reason: .timeout)
        #expect(queue.timePassed(late) == [.finish(first, .failure(timeout)), .send(version)])
        #expect(queue.received(done(.readAddress, [0]), at: late) == [.foreign(.readAddress, .success)])
        let response = done(.readLocalVersion, [0])
        #expect(queue.received(response, at: late) == [.finish(second, .success(response))])
    }

    @Test(.row("W16")) func zeroCreditsWaitButNotForever() {
        var queue = HCICommandQueue()
        _ = queue.received(HCICommandComplete(credits: 0, opcode: .none, returnParameters: []), at: start)
        let (ticket, nothing) = queue.enqueue(address, at: start)
        #expect(nothing.isEmpty)
        #expect(queue.received(HCICommandComplete(credits: 0, opcode: .none, returnParameters: []), at: start) == [])
        let more = HCICommandComplete(credits: 1, opcode: .none, returnParameters: [])
        #expect(queue.received(more, at: start) == [.send(address)])
        let last = HCICommandComplete(credits: 0, opcode: .readAddress, returnParameters: [0])
        #expect(queue.received(last, at: start) == [.finish(ticket, .success(last))])
        _ = queue.enqueue(version, at: start)
        let deadline = queue.nextDeadline
        #expect(deadline == start + .seconds(2))
        #expect(queue.timePassed(start + .seconds(2)) == [.send(version)])
    }

    @Test func onlyWhatWasNotSentIsTakenOut() {
        var queue = HCICommandQueue()
        let (first, _) = queue.enqueue(address, at: start)
        let (second, _) = queue.enqueue(version, at: start)
        let cancelled = HCICommandFailure(opcode: .readLocalVersion, reason: .cancelled)
        #expect(queue.withdraw(.readAddress, at: start) == [])
        #expect(queue.withdraw(.readLocalVersion, at: start) == [.finish(second, .failure(cancelled))])
        #expect(queue.withdraw(.readLocalVersion, at: start) == [])
        let response = done(.readAddress, [0])
        #expect(queue.received(response, at: start) == [.finish(first, .success(response))], "nothing is sent")
    }

    /// Its owner ends everything that waits, and a call that went out before would be nobody's.
    @Test func nothingGoesOutAfterAStrangersReset() {
        var queue = HCICommandQueue()
        _ = queue.received(HCICommandComplete(credits: 0, opcode: .none, returnParameters: []), at: start)
        let (ticket, _) = queue.enqueue(address, at: start)
        #expect(queue.received(done(.reset, [0]), at: start) == [.foreign(.reset, .success)])
        let lost = HCICommandFailure(opcode: .readAddress, reason: .adapterLost)
        #expect(queue.adapterLost() == [.finish(ticket, .failure(lost))])
    }

    @Test func cancelReleasesTheCallerAndKeepsTheSlot() {
        var queue = HCICommandQueue()
        let (first, _) = queue.enqueue(address, at: start)
        let (second, _) = queue.enqueue(version, at: start)
        let cancelled = HCICommandFailure(opcode: .readAddress, reason: .cancelled)
        #expect(queue.cancel(first, at: start) == [.finish(first, .failure(cancelled))])
        #expect(queue.cancel(first, at: start) == [])
        #expect(queue.count == 1)
        #expect(queue.received(done(.readAddress, [0]), at: start) == [.send(version)])
        let (third, _) = queue.enqueue(address, at: start)
        #expect(queue.cancel(third, at: start) == [.finish(third, .failure(cancelled))])
        let response = done(.readLocalVersion, [0])
        #expect(queue.received(response, at: start) == [.finish(second, .success(response))])
        let deadline = queue.nextDeadline
        #expect(deadline == nil)
    }

    /// A missing response counts for recovery, also where no caller waits for it.
    @Test func aCancelledCommandWithoutAResponseIsReported() {
        var queue = HCICommandQueue()
        let (ticket, _) = queue.enqueue(address, at: start)
        _ = queue.enqueue(version, at: start)
        _ = queue.cancel(ticket, at: start)
        #expect(queue.timePassed(start + .seconds(2)) == [.noResponse(.readAddress), .send(version)])
    }

    @Test(.row("W64", "H15")) func lostAdapterFailsEverythingOnce() {
        var queue = HCICommandQueue()
        let (first, _) = queue.enqueue(address, at: start)
        let (second, _) = queue.enqueue(version, at: start)
        #expect(
            queue.adapterLost() == [
                .finish(first, .failure(HCICommandFailure(opcode: .readAddress, reason: .adapterLost))),
                .finish(second, .failure(HCICommandFailure(opcode: .readLocalVersion, reason: .adapterLost))),
            ])
        #expect(queue.adapterLost() == [])
        let (_, again) = queue.enqueue(address, at: start)
        #expect(again == [.send(address)])
    }

    @Test func aPacketThatCannotBeWrittenFailsAlone() {
        var queue = HCICommandQueue()
        let (first, _) = queue.enqueue(address, at: start)
        _ = queue.enqueue(version, at: start)
        let failure = HCICommandFailure(opcode: .readAddress, reason: .notSent(errno: 1))
        #expect(queue.notSent(errno: 1, at: start) == [.finish(first, .failure(failure)), .send(version)])
    }

    @Test func aFullQueueRefusesACommand() {
        var queue = HCICommandQueue()
        for _ in 0...HCICommandQueue.capacity { _ = queue.enqueue(address, at: start) }
        let (ticket, actions) = queue.enqueue(address, at: start)
        let full = HCICommandFailure(opcode: .readAddress, reason: .queueFull)
        #expect(actions == [.finish(ticket, .failure(full))])
    }

    private func done(_ opcode: HCIOpcode, _ returned: [UInt8]) -> HCICommandComplete {
        HCICommandComplete(credits: 1, opcode: opcode, returnParameters: returned)
    }
}
