public import BLECore
internal import BLELinux

/// The advertisement by which others find a local peripheral.
///
/// ```swift
/// let advertising = try await peripheral.advertise([
///     .flags([.generalDiscoverable, .classicNotSupported]), .localName("Sensor"),
/// ])
/// ```
public struct Advertisement: Hashable, Sendable, ExpressibleByArrayLiteral {
    /// The requests that devices which hear an advertisement may send.
    public enum Kind: Hashable, Sendable {
        /// Centrals may connect, and ask for the scan response.
        case connectable
        /// Scanners may ask for the scan response.
        case scannable
        /// Nothing, as a beacon.
        case nonconnectable
    }

    /// The way in which an adapter is made to advertise.
    public enum BackEnd: Hashable, Sendable {
        /// The choice of the library, which is ``Advertisement/BackEnd/controller`` at present.
        case automatic
        /// By commands to the controller. It requires CAP_NET_RAW.
        case controller
        /// By an advertising instance of the kernel's management interface. It requires CAP_NET_ADMIN.
        ///
        /// Use it where the kernel gives the adapter private addresses, which a connectable advertisement has then too;
        /// for several advertisements on a controller with one advertiser, which the kernel puts on air in turn; and
        /// beside bluetoothd, whose instances and these share the controller. An instance that is not connectable has a
        /// random address, another one each time that it is added. If another program has made the adapter connectable,
        /// every instance is. The adapter is under management from then on: the kernel lets no central bond before
        /// ``LocalPeripheral/allowPairing(_:for:)``.
        ///
        /// Data without Flags have 3 bytes less room: the kernel adds Flags on an adapter without BR/EDR.
        ///
        /// On a controller with one advertiser, one back end is in use at a time. The interval of an instance that is
        /// not connectable is 100 to 150 ms there, whatever is requested, unless another program has made the adapter
        /// discoverable. And the kernel does not write data that equal those it has written last: if the other back end
        /// has written others since then, these stay on air until the adapter was off and on.
        ///
        /// A killed program leaves its instances to the kernel, and one that ends while the adapter is off may do so:
        /// some kernels remove an instance only while it is on. The next one that advertises in this way removes them,
        /// unless bluetoothd runs: it takes what it finds in the upper half of the numbers, 16 at most, for left over.
        case management
    }

    /// The data, in the order of priority.
    public var data: AdvertisementData
    /// The requests that devices which hear it may send.
    public var kind: Kind
    /// The bounds of the time between two advertisements: 20 ms to 10.24 s. The radio adds up to 10 ms to each.
    public var interval: ClosedRange<Duration>
    /// A Boolean value that indicates whether extended PDUs are sent, which have room for more data, and which older
    /// devices do not receive.
    public var usesExtendedPDUs: Bool
    /// The PHY of the primary channels: `.le1M`, or with extended PDUs `.leCoded`, which is heard farther away.
    public var primaryPHY = PHY.le1M
    /// The PHY of the secondary channels, which extended PDUs use; `nil` for that of the primary ones.
    public var secondaryPHY: PHY?
    /// The greatest transmit power, -127 to 20 dBm, which the controller may lower; `nil` leaves it to the controller,
    /// as does one without advertising sets.
    public var txPower: Int8?
    /// The way in which the adapter is made to advertise.
    public var backEnd = BackEnd.automatic

    /// Creates an advertisement.
    public init(
        _ data: AdvertisementData, kind: Kind = .connectable,
        interval: ClosedRange<Duration> = .milliseconds(100)...(.milliseconds(150)), usesExtendedPDUs: Bool = false
    ) {
        self.data = data
        self.kind = kind
        self.interval = interval
        self.usesExtendedPDUs = usesExtendedPDUs
    }

    /// Creates a connectable advertisement of these elements.
    public init(arrayLiteral elements: AdvertisementData.Element...) {
        self.init(AdvertisementData(elements))
    }

    /// - Throws: `BLEError` with `.invalidArgument`, whose reason has the number of bytes that do not fit, or what else
    ///   is wrong.
    func plan(
        on controller: AdvertiseSession.Controller, _ ownAddressType: AddressType, _ own: BluetoothAddress?,
        _ adapter: String, during operation: String
    ) throws(BLEError) -> AdvertisingPlan {
        try plan(
            fitting: controller.limits(plannedKind, usesExtendedPDUs: usesExtendedPDUs),
            randomAddress: ownAddressType == .random ? own : nil, adapter, during: operation)
    }

    /// - Throws: `BLEError` with `.invalidArgument`, as for a controller.
    func plan(
        on kernel: ManagementAdvertisingFeatures, _ adapter: String, during operation: String
    ) throws(BLEError) -> AdvertisingPlan {
        var limits = AdvertisingPlan.limits(
            plannedKind, usesExtendedPDUs: usesExtendedPDUs, maximum: Int(kernel.maximumDataLength))
        if data.flags == nil {
            limits = AdvertisementData.Limits(
                advertisingData: limits.advertisingData - Self.addedFlags, scanResponse: limits.scanResponse)
        }
        return try plan(fitting: limits, randomAddress: nil, adapter, during: operation)
    }

    /// The bytes of the Flags that the kernel adds on an adapter without BR/EDR. Older kernels do not check that they
    /// fit; others leave them out where they do not.
    private static let addedFlags = 3

    private var plannedKind: AdvertisingPlan.Kind {
        switch kind {
        case .connectable: .connectable
        case .scannable: .scannable
        case .nonconnectable: .nonconnectable
        }
    }

    private func plan(
        fitting limits: AdvertisementData.Limits, randomAddress: BluetoothAddress?, _ adapter: String,
        during operation: String
    ) throws(BLEError) -> AdvertisingPlan {
        let payload: AdvertisementData.Payload
        do throws(AdvertisementData.Invalid) {
            payload = try data.payload(fitting: limits)
        } catch {
            throw BLEError(
                .invalidArgument, subject: adapter, during: operation, because: "\(error)",
                hint: "Leave something out, or shorten it.")
        }
        do throws(AdvertisingPlan.Invalid) {
            return try AdvertisingPlan(
                payload, kind: plannedKind, usesExtendedPDUs: usesExtendedPDUs, interval: interval,
                primaryPHY: primaryPHY, secondaryPHY: secondaryPHY, txPower: txPower, randomAddress: randomAddress)
        } catch {
            throw BLEError(.invalidArgument, subject: adapter, during: operation, because: reason(error))
        }
    }

    private func reason(_ invalid: AdvertisingPlan.Invalid) -> String {
        switch invalid {
        case .interval: "an interval is 20 ms to 10.24 s, and this one is \(interval)"
        case .phy:
            "legacy PDUs are sent on LE 1M; extended ones on LE 1M or Coded on the primary channels, and also on LE 2M "
                + "on the secondary ones"
        case .payload: "the data does not fit"
        }
    }
}

extension Advertisement {
    /// The state of an advertisement.
    public enum State: Hashable, Sendable {
        /// It is on air.
        case on
        /// It is not on air now, and will be again without a call; with the reason as part of a sentence.
        case paused(String)
        /// It was stopped.
        case stopped
    }
}

/// The states of an advertisement: first the one when `Advertisement.Lease.states` was read, then each change.
///
/// At most 64 wait for one iterator; beyond that the oldest are dropped. It ends after `.stopped`. `next()` throws
/// `BLEError` with `.busy` while another task waits for the next state of this iterator.
public typealias AdvertisingStateSequence = BLESequence<Advertisement.State>

extension Advertisement {
    /// An advertisement that a local peripheral keeps on air: after centrals have connected, after other programs have
    /// disturbed it, and after the adapter was off.
    ///
    /// It ends with `stop()`, with `LocalPeripheral.stop()`, or when the last reference goes away.
    public final class Lease: Sendable {
        private let readState: @Sendable () async -> State
        private let end: @Sendable () async -> Void
        private let changes: AdvertiseCoordinator.States
        private let token: LifetimeToken
        /// Whether `stop()` has returned: the event loop may have ended then.
        private let isOffAir = Lock(false)

        init(_ started: StartedAdvertisement, on adapter: Adapter) {
            let id = started.id
            changes = started.states
            readState = { await adapter.advertisingState(of: id) }
            let end: @Sendable () async -> Void = { await adapter.stopAdvertising(id) }
            self.end = end
            token = LifetimeToken {
                Task(executorPreference: adapter.loop) { await end() }
            }
        }

        /// The state: on air or not.
        public var state: State {
            get async { await readState() }
        }

        /// The states: first the present one, then each change, and `.stopped` at the end.
        ///
        /// A sequence does not keep the advertisement on air: the lease does.
        public var states: AdvertisingStateSequence { changes.events(losses: .none) }

        /// Takes it off air; the call returns when that is done, also if an earlier one has not returned yet.
        public func stop() async {
            _ = token.dismiss()
            guard !isOffAir.withLock({ $0 }) else { return }
            await end()
            isOffAir.withLock { $0 = true }
        }
    }
}

extension Advertisement.State {
    init(_ status: AdvertiseSession.Status) {
        switch status {
        case .on: self = .on
        case .starting: self = .paused("it is being started")
        case .stopped: self = .stopped
        case .paused(let pause): self = .paused(pause.sentence)
        }
    }
}

extension Advertisement.State {
    init(_ status: InstanceSession.Status) {
        switch status {
        case .on: self = .on
        case .starting: self = .paused("it is being started")
        case .stopped: self = .stopped
        case .paused(let pause): self = .paused(pause.sentence)
        }
    }
}

extension InstanceSession.Pause {
    fileprivate var sentence: String {
        switch self {
        case .adapterDown: "the adapter is off"
        case .requested: "this program is connecting to a peer"
        case .connected: "a central has just connected"
        case .removed: "another program has taken it off air"
        case .failed(let failure): "a command failed: \(failure)"
        }
    }
}

extension AdvertiseSession.Pause {
    fileprivate var sentence: String {
        switch self {
        case .adapterDown: "the adapter is off"
        case .requested: "this program is connecting to a peer"
        case .connected: "a central has just connected"
        case .disturbed: "another program has taken it off air"
        case .ownCommand: "the kernel has taken it off air for a command of this program"
        case .noRoom: "the controller has no room for another link"
        case .failed(let failure): "a command failed: \(failure)"
        }
    }
}
