public import BLECore
internal import BLELinux

extension Peripheral {
    /// Writes a value on a link without encryption, signed so that the peer can authenticate it. There is no response.
    ///
    /// The call returns when the kernel has taken the packet. The signer's counter is incremented as soon as the
    /// packet was created, whether or not it is sent. On an encrypted link the signature is useless: write without
    /// response there.
    ///
    /// - Parameters:
    ///   - value: At most `mtu - 15` bytes.
    ///   - characteristic: The value to write.
    ///   - signer: The key that the peer knows, and the counter.
    ///   - timeout: The longest time.
    /// - Throws: `BLEError` with `.tooLong`, `.notSupported` if a known characteristic does not allow it,
    ///   `.invalidArgument` if the signer has no counters left, has used the reserved ones, or returns no code,
    ///   `.ambiguous`, `.attributeNotFound`, `.timedOut`, `.disconnected`, `.cancelled`.
    ///
    /// Spec: Signed Write Without Response, Core Vol 3 Part G, 4.9.2.
    public func write(
        _ value: [UInt8], to characteristic: CharacteristicReference, signedBy signer: inout WriteSigner,
        timeout: Duration? = nil
    ) async throws(BLEError) {
        let bytes = value.count == 1 ? "1 byte" : "\(value.count) bytes"
        let context = context("write \(bytes) signed to \(characteristic)", within: timeout ?? Self.valueTimeout)
        let scopes = scheduler.enterFreely() ? [] : try await beginCall(in: context)
        defer { scheduler.callEnds(scopes) }
        let handle = try await signedHandle(characteristic, in: context)
        let room = mtu - 3 - ATTSignedWriteCommand.signatureLength
        guard value.count <= room else {
            throw BLEError(
                .tooLong, subject: name, during: context.operation,
                because: "a signed write carries at most \(room) bytes on this link")
        }
        guard let command = signer.sign(value, for: handle) else {
            throw BLEError(
                .invalidArgument, subject: name, during: context.operation,
                because: "the signer has used all counters, or all that were set aside, or gave no code of 8 bytes",
                hint: "Set more aside with reserve(_:); a key whose counters are used up needs a new bonding.")
        }
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
