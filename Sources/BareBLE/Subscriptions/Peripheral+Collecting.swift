internal import BLECore
internal import BLELinux

// The calls that collect the values they request; `SubscriptionHub` keeps their `ResponseCollector`s.

extension Peripheral {
    /// A request whose response is collected.
    struct CollectedRequest {
        let value: [UInt8]
        let characteristic: CharacteristicReference
        let kind: WriteKind
    }

    /// Subscribes, writes a request, and waits for the requested values, as one call.
    ///
    /// A subscription that it makes ends with it; an existing one is shared.
    ///
    /// - Parameters:
    ///   - request: The request to write after the subscription; `nil` for none.
    ///   - context: Its deadline is for the peer's consent to the subscription and its confirmation of the request.
    /// - Returns: The outcome, and the collected values.
    func collect(
        _ collector: ResponseCollector, from source: CharacteristicReference, after request: CollectedRequest?,
        in context: CallContext
    ) async throws(BLEError) -> (outcome: ResponseCollector.Outcome, collector: ResponseCollector) {
        try await calling(context) { () async throws(BLEError) in
            let id = subscriptionHub.nextID()
            subscriptionHub.beginCollecting(id, collector, in: context)
            defer { write(subscriptionHub.endCollecting(id)) }
            do throws(BLEError) {
                _ = try await retrying(context) { () async throws(BLEError) in
                    try await listen(
                        to: source, as: id, into: .collector, preferring: .notifications, sharing: nil,
                        in: context)
                }
                try await ask(request, for: id, in: context)
                let outcome = try await outcome(of: id, in: context)
                return (outcome, subscriptionHub.collector(id) ?? collector)
            } catch {
                let bytes = subscriptionHub.collector(id)?.bytes ?? []
                throw bytes.isEmpty ? error : error.carrying(bytes)
            }
        }
    }

    private func ask(
        _ request: CollectedRequest?, for id: Subscriptions.ID, in context: CallContext
    ) async throws(BLEError) {
        if let request {
            try await retrying(context.retrying(.never)) { () async throws(BLEError) in
                let handle = try await writableHandle(
                    request.characteristic, request.kind, in: context)
                switch request.kind {
                case .withResponse:
                    try await writeOnce(request.value, to: handle, in: context, askingFor: id)
                case .withoutResponse:
                    try await sendCommand(request.value, to: handle, in: context, askingFor: id)
                }
            }
        } else {
            subscriptionHub.requestWritten(for: id)
        }
        subscriptionHub.requestConfirmed(for: id, at: loop.now())
    }

    private func outcome(
        of id: Subscriptions.ID, in context: CallContext
    ) async throws(BLEError) -> ResponseCollector.Outcome {
        let interruption = WaitInterruption.handled { [self] _, _ in
            assumeIsolated { $0.subscriptionHub.interruptCollector(id, with: $0.cancellation(in: context)) }
        }
        let result = await subscriptionHub.waitForCollector(interruption: interruption) { waiter in
            if scheduler.isClearing { return .failure(cancellation(in: context)) }
            if let result = subscriptionHub.awaitCollector(id, waiter) { return result }
            armCollectorTimer()
            return nil
        }
        guard let result else { throw cancellation(in: context) }
        return try result.get()
    }

    private func cancellation(in context: CallContext) -> BLEError {
        BLEError(.cancelled as OperationFailure, subject: name, during: context.operation)
    }

    /// Ends the collection of all calls: everything is cancelled, or the link is lost.
    func interruptCollectors() {
        subscriptionHub.interruptCollectors { operation in
            end == nil ? cleared(during: operation) : endError(during: operation)
        }
    }

    func armCollectorTimer() {
        subscriptionHub.armTimer { deadline in
            loop.schedule(at: deadline) { [weak self] in
                self?.assumeIsolated { peripheral in
                    peripheral.subscriptionHub.timePassed(peripheral.loop.now())
                    peripheral.armCollectorTimer()
                }
            }
        }
    }
}

extension BLEError {
    /// Returns the same failure with the values that came before it.
    func carrying(_ partial: [UInt8]) -> BLEError {
        BLEError(
            code, subject: subject, during: operation, because: reason, hint: hint, attError: attError,
            attributeHandle: attributeHandle, hciStatus: hciStatus, errorNumber: errorNumber, partialValue: partial,
            origin: origin)
    }
}
