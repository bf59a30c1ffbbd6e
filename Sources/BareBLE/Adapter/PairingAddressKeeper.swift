internal import BLECore
internal import BLELinux

// The address that the kernel pairs with while centrals may pair, and the tasks that wait until it is the adapter's own
// one: the owner of the machine `AdvertisingAddressReset`.
//
// Duties: know which address is to be kept; resume each task that waits once the kernel pairs with it, or cannot; keep
// the reason why it cannot. Know the instances that other programs were seen to have, also while no address is kept.
//
// Invariants
// - `address` is set while the machine keeps it, from `keep` to `release`. What was added before `release` is removed
//   after it as well, and that ends by `finished`.
// - Only `AdvertisingInstances` uses it, on the event loop. It never sends a command: it returns actions.

/// Has the kernel pair with the adapter's own address.
final class PairingAddressKeeper {
    typealias Action = AdvertisingAddressReset.Action

    private let loop: EventLoop
    private var machine = AdvertisingAddressReset()
    /// The adapter's own address, while the kernel is to pair with that.
    private var address: BluetoothAddress?
    private let resets: Waiters<Void>
    /// Why the kernel may pair with another address than the adapter's own one.
    private(set) var failure: AdvertisingAddressReset.Failure?

    init(on loop: EventLoop) {
        self.loop = loop
        resets = Waiters(on: loop)
    }

    var nextDeadline: BootInstant? { machine.nextDeadline }
    /// A Boolean value that indicates whether no command is out, and none is to be sent.
    var isResting: Bool { machine.isResting }
    /// The number of the instance that is being added or removed.
    var usedNumbers: Set<UInt8> { machine.usedNumbers }

    /// Tasks that wait.
    var outstanding: Int { resets.count }

    /// Returns the numbers that may be in use by other programs, as far as they are known, and that the kernel does not
    /// list.
    func numbersUnlisted(by kernel: ManagementAdvertisingFeatures) -> Set<UInt8> { machine.unlisted(by: kernel) }

    // MARK: What is wanted

    /// Has the kernel pair with this address from now on, until `release`.
    ///
    /// - Parameters:
    ///   - address: The adapter's address, a public one.
    ///   - kernel: What the kernel can have, as it was just read.
    ///   - own: The numbers of the instances of this program.
    /// - Returns: Whether there is something to do with this adapter: a run is due then.
    func keep(_ address: BluetoothAddress, on kernel: ManagementAdvertisingFeatures, own: Set<UInt8>) -> Bool {
        release()
        guard machine.keep(on: kernel, own: own, at: loop.now()) else { return false }
        self.address = address
        return true
    }

    /// The kernel may pair with any address from now on.
    func release() {
        machine.release()
        address = nil
        failure = nil
        resets.resumeAll()
    }

    /// Waits until no run is due or under way; `failure` has the reason if the last one has failed.
    func awaitRest(isolation: isolated (any Actor)? = #isolation) async {
        // It may have been released before this task waits.
        _ = await resets.wait(isolation: isolation) { _ in machine.isResting ? () : nil }
    }

    /// Begins a run, if one is due.
    ///
    /// - Parameter used: Returns the numbers that the run must not use, of those that the kernel can have.
    /// - Returns: `nil` if none is due.
    func begin(avoiding used: (ManagementAdvertisingFeatures, BluetoothAddress) -> Set<UInt8>) -> [Action]? {
        let now = loop.now()
        guard machine.isDue(at: now), let kernel = machine.kernel, let address else { return nil }
        return machine.begin(avoiding: used(kernel, address), at: now)
    }

    // MARK: What happens

    /// Takes the end of a run.
    func finished(_ failure: AdvertisingAddressReset.Failure?) {
        self.failure = failure
        resets.resumeAll()
    }

    func commandFinished(_ failure: ManagementCommandFailure?) -> [Action] {
        machine.commandFinished(failure, at: loop.now())
    }

    /// - Parameter own: The numbers of the instances of this program.
    func featuresRead(
        _ result: Result<ManagementAdvertisingFeatures, ManagementCommandFailure>, own: Set<UInt8>
    ) -> [Action] {
        machine.featuresRead(result, own: own, at: loop.now())
    }

    func received(_ event: ManagementEvent.Content) { machine.received(event) }

    /// An instance of this program that is not connectable is on air.
    func randomInstanceAdded() { machine.randomInstanceAdded() }

    /// This program has removed an instance, which no event reports.
    func removedByThisProgram(_ number: UInt8) { machine.removedByThisProgram(number) }

    /// The adapter was unplugged.
    func adapterGone() -> [Action] {
        // A run that waits for its time does not come.
        finished(nil)
        return machine.adapterGone(at: loop.now())
    }

    /// The adapter is there again, perhaps with another index. Tasks wait for the run that follows `eventsMissed`.
    func adapterReturned() -> [Action] { machine.adapterGone(at: loop.now()) }

    /// What other programs have done, or do for a time, is not known.
    func eventsMissed() { machine.eventsMissed() }

    func timePassed() -> [Action] { machine.timePassed(loop.now()) }
}
