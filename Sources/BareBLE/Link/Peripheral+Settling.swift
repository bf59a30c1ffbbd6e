internal import BLECore
internal import BLELinux

// Calls that wait: until nothing that is known is stale, or until another call's discovery is over. Each ends its wait with its
// own deadline, its task and the link; when it is resumed it looks for itself whether that is what it has waited for.

extension Peripheral {
    /// Returns when nothing that is known is stale.
    func settle(until deadline: BootInstant, during operation: String) async throws(BLEError) {
        while !knowledge.isSettled {
            rediscover()
            if knowledge.isSettled { return }
            try await waitForSettling(until: deadline, during: operation) { knowledge.isSettled }
        }
    }

    /// Waits for the next time that everything is settled, or that a search ends, unless what is waited for `isOver`.
    func waitForSettling(
        until deadline: BootInstant, during operation: String, unless isOver: () -> Bool
    ) async throws(BLEError) {
        lastNumber &+= 1
        let number = lastNumber
        let timer = loop.schedule(at: deadline) { [weak self] in
            self?.assumeIsolated { $0.stopSettling(number) }
        }
        let isSettled = await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: CheckedContinuation<Bool, Never>) in
                if Task.isCancelled || end != nil || scheduler.isClearing || isOver() {
                    return waiter.resume(returning: isOver())
                }
                settling[number] = waiter
            }
        } onCancel: {
            Task(executorPreference: loop) { await self.stopSettling(number) }
        }
        loop.cancel(timer)
        if end != nil { throw endError(during: operation) }
        guard !isSettled else { return }
        throw BLEError(
            Task.isCancelled ? OperationFailure.cancelled : .timedOut, subject: name, during: operation)
    }

    private func stopSettling(_ number: UInt64) {
        settling.removeValue(forKey: number)?.resume(returning: false)
    }

    func resumeSettling(_ isSettled: Bool) {
        let waiting = settling
        settling = [:]
        for (_, waiter) in waiting.sorted(by: { $0.key < $1.key }) { waiter.resume(returning: isSettled) }
    }
}
