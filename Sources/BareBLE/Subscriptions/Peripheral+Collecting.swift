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
    ///   - deadline: The time by which the peer must have accepted the subscription and confirmed the request.
    /// - Returns: The outcome, and the collected values.
    func collect(
        _ collector: ResponseCollector, from source: CharacteristicReference, after request: CollectedRequest?,
        until deadline: BootInstant, during operation: String
    ) async throws(BLEError) -> (outcome: ResponseCollector.Outcome, collector: ResponseCollector) {
        try await calling(until: deadline, during: operation) { () async throws(BLEError) in
            let id = subscriptionHub.nextID()
            subscriptionHub.beginCollecting(id, collector, during: operation)
            defer { write(subscriptionHub.endCollecting(id)) }
            do throws(BLEError) {
                _ = try await recovering(until: deadline, during: operation) { (deadline) async throws(BLEError) in
                    try await listen(
                        to: source, as: id, into: .collector, preferring: .notifications, sharing: nil,
                        until: deadline, during: operation)
                }
                try await ask(request, for: id, until: deadline, during: operation)
                let outcome = try await outcome(of: id)
                return (outcome, subscriptionHub.collector(id) ?? collector)
            } catch {
                let bytes = subscriptionHub.collector(id)?.bytes ?? []
                throw bytes.isEmpty ? error : error.carrying(bytes)
            }
        }
    }

    private func ask(
        _ request: CollectedRequest?, for id: Subscriptions.ID, until deadline: BootInstant, during operation: String
    ) async throws(BLEError) {
        if let request {
            try await recovering(until: deadline, during: operation, repeating: .never) {
                (deadline) async throws(BLEError) in
                let handle = try await writableHandle(
                    request.characteristic, request.kind, until: deadline, during: operation)
                switch request.kind {
                case .withResponse:
                    try await writeOnce(request.value, to: handle, until: deadline, during: operation, askingFor: id)
                case .withoutResponse:
                    try await sendCommand(request.value, to: handle, until: deadline, during: operation, askingFor: id)
                }
            }
        } else {
            subscriptionHub.requestWritten(for: id)
        }
        subscriptionHub.requestConfirmed(for: id, at: loop.now())
    }

    private func outcome(of id: Subscriptions.ID) async throws(BLEError) -> ResponseCollector.Outcome {
        let result = await suspend(
            until: nil,
            giveUp: { (peripheral: isolated Peripheral, _) in
                peripheral.subscriptionHub.interruptCollector(id, with: peripheral.cancellation(of: id))
            },
            { (waiter: SubscriptionHub.CollectorWaiter) in
                guard !Task.isCancelled, !scheduler.isClearing else {
                    return waiter.resume(returning: .failure(cancellation(of: id)))
                }
                subscriptionHub.waitForCollector(id, waiter)
                armCollectorTimer()
            })
        return try result.get()
    }

    private func cancellation(of id: Subscriptions.ID) -> BLEError {
        BLEError(
            .cancelled as OperationFailure, subject: name,
            during: subscriptionHub.operation(of: id) ?? "wait for values")
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
            attributeHandle: attributeHandle, hciStatus: hciStatus, errorNumber: errorNumber, partialValue: partial)
    }
}
