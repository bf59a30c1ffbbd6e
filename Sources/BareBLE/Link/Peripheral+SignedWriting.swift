public import BLECore
internal import BLELinux

extension Peripheral {
    /// Writes a value on a link without encryption, signed so that the peer can authenticate it. There is no response.
    ///
    /// The call returns when the kernel has taken the packet. The signer's counter is incremented as soon as the
    /// packet was created, whether or not it is sent. On an encrypted link nothing may be signed: the value is written
    /// without response, and the signer is not used.
    ///
    /// - Parameters:
    ///   - value: At most `mtu - 15` bytes.
    ///   - characteristic: The value to write.
    ///   - signer: The key that the peer knows, and the counter.
    ///   - timeout: The longest time, including the wait for its turn; `nil` for 60 s.
    /// - Throws: `BLEError` with `.tooLong`, `.notSupported` if a known characteristic does not allow it,
    ///   `.invalidArgument` if the signer has no counters left, has used the reserved ones, or returns no code,
    ///   `.ambiguous`, `.attributeNotFound`, `.timedOut`, `.disconnected`, `.cancelled`.
    ///
    /// Spec: Signed Write Without Response, Core Vol 3 Part G, 4.9.2; Core Vol 3 Part C, 10.2.2.
    public func write(
        _ value: [UInt8], to characteristic: CharacteristicReference, signedBy signer: inout WriteSigner,
        timeout: Duration? = nil
    ) async throws(BLEError) {
        let context = signingContext(value, characteristic, timeout)
        let scopes = scheduler.enterFreely() ? [] : try await beginCall(in: context)
        defer { scheduler.callEnds(scopes) }
        let handle = try await signedHandle(characteristic, in: context)
        try checkSignedLength(of: value, in: context)
        if security.isEncrypted { return try await sendCommand(value, to: handle, in: context) }
        guard let command = signer.sign(value, for: handle) else {
            throw BLEError(
                .invalidArgument, subject: name, during: context.operation,
                because: "the signer has used all counters, or all that were set aside, or gave no code of 8 bytes",
                hint: "Set more aside with reserve(_:); a key whose counters are used up needs a new bonding.")
        }
        try await send(command, in: context)
    }

    /// Writes a value on a link without encryption, signed with the key of the bond so that the peer can authenticate
    /// it. There is no response.
    ///
    /// The pairing made the key, if the peer asked for one. The counter is part of the bond: numbers are reserved on
    /// the disk before they are used, 64 at a time, so that none is used twice, even after a crash. The call returns
    /// when the kernel has taken the packet.
    ///
    /// The link to a bonded peer is encrypted, unless it was made with `ConnectOptions.SecurityDemand.none`. On an
    /// encrypted link nothing may be signed: the value is written without response.
    ///
    /// - Parameters:
    ///   - value: At most `mtu - 15` bytes.
    ///   - characteristic: The value to write.
    ///   - timeout: The longest time, including the wait for its turn; `nil` for 60 s.
    /// - Throws: `BLEError` with `.notBonded`; `.notSupported` without `Configuration.writeSignature` or a radio, if a
    ///   known characteristic does not allow it, and if the bond has no key for it or no counter left; `.bondNotStored`
    ///   if no counter could be reserved; `.invalidArgument` if the closure returns no code of 8 bytes; `.tooLong`,
    ///   `.ambiguous`, `.attributeNotFound`, `.timedOut`, `.disconnected`, `.cancelled`.
    ///
    /// Spec: Signed Write Without Response, Core Vol 3 Part G, 4.9.2; Core Vol 3 Part C, 10.2.2.
    public func writeSigned(
        _ value: [UInt8], to characteristic: CharacteristicReference, timeout: Duration? = nil
    ) async throws(BLEError) {
        let context = signingContext(value, characteristic, timeout)
        let scopes = scheduler.enterFreely() ? [] : try await beginCall(in: context)
        defer { scheduler.callEnds(scopes) }
        var handle = try await signedHandle(characteristic, in: context)
        try checkSignedLength(of: value, in: context)
        let controls = try radio(during: context.operation)
        if security.isEncrypted { return try await sendCommand(value, to: handle, in: context) }
        guard let writeSignature = protection.writeSignature else {
            throw BLEError(
                .notSupported, subject: name, during: context.operation, because: "no function signs writes",
                hint: "Set `Configuration.writeSignature`, with `import BareBLECrypto` to `{ $0.code }`.")
        }
        while true {
            try await controls.prepareSignature(context.operation, writeSignature)
            // While the disk was written, the services may have changed, and the link may have been encrypted, or have
            // ended.
            handle = try await signedHandle(characteristic, in: context)
            if security.isEncrypted { return try await sendCommand(value, to: handle, in: context) }
            switch controls.sign(value, handle) {
            case .signed(let command): return try await send(command, in: context)
            // Another task has taken the last one.
            case .notPrepared: continue
            case .noCode:
                throw BLEError(
                    .invalidArgument, subject: name, during: context.operation,
                    because: "`Configuration.writeSignature` gave no code of 8 bytes",
                    hint: "Return all 8 bytes of the code; with `import BareBLECrypto` set it to `{ $0.code }`.")
            }
        }
    }

    private func signingContext(
        _ value: [UInt8], _ characteristic: CharacteristicReference, _ timeout: Duration?
    ) -> CallContext {
        let bytes = value.count == 1 ? "1 byte" : "\(value.count) bytes"
        return context("write \(bytes) signed to \(characteristic)", within: timeout ?? Self.valueTimeout)
    }

    private func checkSignedLength(of value: [UInt8], in context: CallContext) throws(BLEError) {
        let room = mtu - 3 - ATTSignedWriteCommand.signatureLength
        guard value.count <= room else {
            throw BLEError(
                .tooLong, subject: name, during: context.operation,
                because: "a signed write carries at most \(room) bytes on this link",
                hint: "Write fewer bytes at once, or pair first: an encrypted link needs no signature.")
        }
    }

    private func send(_ command: ATTSignedWriteCommand, in context: CallContext) async throws(BLEError) {
        _ = try await run(in: context) { client, id, deadline, now in
            client.startCommand(command.bytes, id: id, deadline: deadline, at: now)
        }
    }

    private func signedHandle(
        _ reference: CharacteristicReference, in context: CallContext
    ) async throws(BLEError) -> AttributeHandle {
        if case .handle(let handle) = reference { return handle }
        let found = try await resolve(reference, in: context)
        guard found.properties.contains(.authenticatedSignedWrites) else {
            throw BLEError(
                .notSupported, subject: name, during: context.operation,
                because: "the characteristic takes no signed writes", hint: "Its properties are: \(found.properties).")
        }
        return found.valueHandle
    }
}
