internal import BLELinux

extension SecurityConfiguration {
    /// The treatment of an adapter that another program, such as bluetoothd, manages too.
    public enum Sharing: Hashable, Sendable {
        /// It goes on, and reports `SecurityEvent.otherManager`: the other program may refuse its pairings, and remove
        /// the keys of its bonds from the kernel.
        case observed
        /// `Central.ready(powerOn:timeout:)`, pairings and connects to bonded peers fail with
        /// `BLEError.Code.adapterShared`.
        ///
        /// That program is recognized where this process may see other processes' open files, which takes their user's
        /// rights or root's.
        case exclusive
    }
}

/// Pairing and bonds of a central.
///
/// With it, the adapter is put under the kernel's management before its first use. That needs CAP_NET_ADMIN until it is
/// done, and switches an adapter that was on off and on once, because the kernel pairs only with adapters that were
/// powered on under management.
public struct SecurityConfiguration: Sendable {
    /// The store of the bonds.
    public var bonds: BondStore
    /// The options of a pairing with a peer that refuses a call for lack of security (ATT errors 0x05, 0x0F and 0x0C),
    /// before the call is repeated once; `nil` lets the call fail.
    ///
    /// It happens once on a link for each level that the peer requires, and never for a peer that is bonded: its calls
    /// fail with `BLEError.Code.insufficientSecurity`, because a better key needs a new pairing. Where the peer or a
    /// user refuses the pairing, the call fails with `.pairingRefused`; after a wrong passkey with `.wrongPasskey`.
    /// Nor does it happen after stored bonds were found damaged, because the peer may have had one of them: in that
    /// run, and in each later one that begins while the file that they were moved to is there.
    public var onDemand: PairingOptions?
    /// The length of the shortest key that is accepted, 7 to 16 bytes.
    public var minimumKeySize = 16
    /// A Boolean value that indicates whether the bonds that are made from now on are for this hardware alone.
    ///
    /// Bonds are stored by the adapter's address, which a program or another controller can have as well. The keys of
    /// such a bond are used on no adapter with that address but one on the same bus, and of the same vendor and product
    /// where the bus reports them: a connect to its peer fails with `BLEError.Code.adapterMismatch`. The kernel is not
    /// given the keys either. What a bond is for is stored with it, and holds whatever a later configuration specifies.
    public var pinsAdapter = false
    /// The treatment of an adapter that another program manages too.
    public var sharing = Sharing.observed
    /// The time of day, in seconds since 1970.
    package var timeOfDay: @Sendable () -> UInt64 = { UInt64(max(0, WallClock.now().components.seconds)) }

    /// Creates a configuration that keeps its bonds in `bonds`.
    public init(bonds: BondStore) {
        self.bonds = bonds
    }
}
