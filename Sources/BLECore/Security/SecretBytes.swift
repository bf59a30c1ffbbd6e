/// Bytes that may contain keys: they are overwritten when nobody needs them any more, and no description shows them.
///
/// What has taken the bytes out of it has copies that are not overwritten.
package final class SecretBytes: @unchecked Sendable {
    // Written only by `deinit`, when there is no other reference.
    private var storage: [UInt8]

    package init(_ bytes: consuming [UInt8]) {
        storage = bytes
    }

    deinit { storage.wipe() }

    package var bytes: [UInt8] { storage }
    package var count: Int { storage.count }
}

extension SecretBytes: Hashable {
    package static func == (left: SecretBytes, right: SecretBytes) -> Bool { left.storage == right.storage }

    package func hash(into hasher: inout Hasher) { hasher.combine(storage) }
}

extension SecretBytes: CustomStringConvertible {
    package var description: String { "(\(storage.count) bytes)" }
}

extension [UInt8] {
    /// Overwrites bytes that contained a key, and empties the array. Where the array has copies,
    /// these are not affected.
    package mutating func wipe() {
        var rest = self
        self = []
        overwrite(&rest)
    }
}

/// Overwrites the bytes. Without optimisation, because an optimiser leaves out what is written to memory that is freed.
@inline(never) @_optimize(none)
private func overwrite(_ bytes: inout [UInt8]) {
    for index in bytes.indices { bytes[index] = 0 }
}

// Embedded Swift has no reflection.
#if !hasFeature(Embedded)
extension SecretBytes: CustomReflectable {
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension Secret128: CustomReflectable {
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension ManagementPacket: CustomReflectable {
    package var customMirror: Mirror { Mirror(self, children: []) }
}
#endif
