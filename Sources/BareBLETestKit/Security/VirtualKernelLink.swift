internal import BLECore
internal import BLELinux

// The kernel's state of one link: the peer's name, how the link is encrypted, the pairing on it, and the
// sockets and commands that wait for either.
//
// Invariants
// - A link has one pairing at a time, and one encryption that was begun.
// - The level of a link without encryption is the lowest, unless its socket asked for another (`socketConnected`).
// - The capability is the adapter's when the link came up; later settings do not change it.

/// A link of an adapter of a virtual machine, as the kernel knows it.
struct VirtualKernelLink {
    let onAir: PeerID
    let capability: IOCapability
    /// The peer's name on this interface: its identity, if known.
    private(set) var peer: ManagementPeer
    /// Returns the description of the peer as it is now.
    private(set) var security: () -> VirtualSecurity?
    private(set) var level = SocketSecurity.Level.low
    private(set) var keySize: UInt8 = 0
    /// The level that is requested, and the key for it, while the controller encrypts.
    private var encrypting: (level: SocketSecurity.Level, key: ManagementLongTermKey)?
    private(set) var pairing: VirtualPairing?
    /// The number of the last pairing, whose event of the controller may still be due.
    private(set) var lastPairing: UInt64 = 0
    /// True if the peer is the central, and has begun a pairing.
    private(set) var isPeersPairing = false
    /// The number of the Security Request to which the central has not reacted.
    private(set) var request: UInt64?
    /// True while the socket waits for a level.
    private(set) var isWaiting = false
    /// True if the peer did not accept the key.
    private(set) var hasLostKey = false
    /// The commands that wait for the end of the link.
    private(set) var disconnects: [UInt64] = []
    private(set) var unpairs: [UInt64] = []

    init(
        to onAir: PeerID, _ peer: ManagementPeer, capability: IOCapability, security: @escaping () -> VirtualSecurity?
    ) {
        self.onAir = onAir
        self.peer = peer
        self.capability = capability
        self.security = security
    }

    func has(_ wanted: SocketSecurity.Level) -> Bool { wanted <= .low || (keySize > 0 && level >= wanted) }

    // MARK: Encryption

    /// Whether the controller encrypts the link for the kernel.
    var isEncrypting: Bool { encrypting != nil }

    /// The controller is to encrypt the link with a key of the kernel.
    mutating func encrypt(with key: ManagementLongTermKey, for level: SocketSecurity.Level) {
        encrypting = (level, key)
    }

    /// A socket requests a level while the controller encrypts.
    mutating func raiseEncryption(to level: SocketSecurity.Level) {
        if let current = encrypting { encrypting = (max(level, current.level), current.key) }
    }

    /// The controller has encrypted the link, or has failed; returns whether a key of the kernel encrypts it now.
    ///
    /// - Parameter isKernels: Whether the kernel began it, and not a program by a command of its own.
    mutating func encryptionEnded(_ status: HCIStatus, isKernels: Bool) -> Bool {
        let ended = isKernels ? encrypting : nil
        if isKernels { encrypting = nil }
        guard status.isSuccess else {
            hasLostKey = status == .keyMissing
            return false
        }
        guard let ended else { return false }
        level = ended.level
        keySize = ended.key.size
        isWaiting = false
        return true
    }

    /// The central has encrypted the link, or has ended its encryption.
    mutating func centralEncrypted(_ security: VirtualLinkSecurity) {
        request = nil
        keySize = UInt8(clamping: security.keySize)
        level = !security.isEncrypted ? .low : security.isAuthenticated ? .high : .medium
    }

    /// The link is no longer encrypted, though it is up.
    mutating func encryptionStopped() {
        level = .low
        keySize = 0
    }

    // MARK: The socket

    /// The socket cannot be used until the level is reached.
    mutating func wait() { isWaiting = true }

    /// A socket that was given a level before is connected. The link has the level, or the kernel cannot encrypt, and
    /// repeats the request.
    mutating func socketConnected(_ level: SocketSecurity.Level) {
        if keySize == 0 { self.level = level }
    }

    // MARK: Pairing

    mutating func begin(_ pairing: VirtualPairing) {
        self.pairing = pairing
        lastPairing = pairing.number
    }

    /// The central has begun to pair as described.
    mutating func centralPairs(_ security: VirtualSecurity) {
        self.security = { security }
        isPeersPairing = true
        request = nil
    }

    /// Passes something to the pairing, if there is one.
    mutating func withPairing<Value>(_ body: (inout VirtualPairing) -> Value) -> Value? {
        guard var current = pairing else { return nil }
        let value = body(&current)
        pairing = current
        return value
    }

    /// The pairing has made keys, which encrypt the link.
    mutating func paired(_ keys: VirtualPairing.Keys) {
        peer = keys.peer
        keySize = UInt8(truncatingIfNeeded: keys.reached.keySize)
        level = keys.level
    }

    /// The pairing has ended, with keys that were reported, or without.
    mutating func endPairing(isSuccess: Bool) {
        pairing = nil
        // A socket that waits for a failed encryption is never writable.
        if isSuccess { isWaiting = false }
    }

    // MARK: Requests

    /// A Security Request is out.
    mutating func beginRequest(_ number: UInt64) { request = number }

    mutating func endRequest() { request = nil }

    /// A Disconnect command waits for the end.
    mutating func awaitEnd(forDisconnecting socket: UInt64) { disconnects.append(socket) }

    /// An Unpair Device command waits for the end.
    mutating func awaitEnd(forUnpairing socket: UInt64) { unpairs.append(socket) }
}
