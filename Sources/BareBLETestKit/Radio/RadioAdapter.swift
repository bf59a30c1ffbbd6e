internal import BLECore
internal import BLELinux
internal import Glibc

// One adapter of a virtual radio: its controller, the programs that use it, the kernel's own connection attempts, and
// the times of its advertising events. What it does on the air is up to the radio.
//
// Invariants:
// - Its controller changes by what is here only.
// - Every program sees the commands of the others, and all events: LE events on one socket, all others on the other. As
//   the kernel does, it passes no LE events to a program that had no CAP_NET_RAW when it opened its sockets.
// - Only the radio uses it, on its event loop.

/// A connection attempt that is left to the kernel.
struct KernelConnect {
    let peer: PeerID
    let end: FarEnd
    let descriptor: Int32
    let security: SocketSecurity.Level?
    let fate: Lock<Int32?>
}

/// An adapter of a virtual radio.
final class RadioAdapter {
    /// The pair of sockets of one program.
    private struct Client {
        let commands: PeerLink
        let reports: PeerLink
        let mayCommand: Bool
    }

    /// The time from the command that enables an advertisement to its first event.
    private static let startTime: Duration = .milliseconds(1)

    let index: UInt16
    private var controller: VirtualController
    private var clients: [UInt64: Client] = [:]
    /// The peers of links that only the controller knows.
    private var hiddenPeers: [VirtualPeripheral] = []
    private var kernelConnects: [KernelConnect] = []
    /// The instants of the next advertising events, by the handles of the sets that are on air.
    private var airTimes: [UInt8: BootInstant] = [:]
    /// True if it ignores commands.
    private(set) var isSilent = false
    /// True if the kernel has set the controller up since it was switched on.
    private var isSetUp = true

    /// Creates an adapter that the kernel has set up.
    init(_ index: UInt16, _ address: BluetoothAddress, _ personality: VirtualPersonality) {
        self.index = index
        controller = VirtualController(address: address, personality: personality)
        controller.kernelSetsUp()
    }

    /// Creates an adapter that is back after an action that has taken it away.
    init(
        _ index: UInt16, returning controller: VirtualController, isUp: Bool, after action: VirtualPersonality.Recovery
    ) {
        self.index = index
        self.controller = controller
        self.controller.returned(after: action)
        isSetUp = isUp
        if isUp { self.controller.kernelSetsUp() }
    }

    var address: BluetoothAddress { controller.address }
    var personality: VirtualPersonality { controller.personality }
    var isScanning: Bool { controller.isScanning }

    /// True while it receives advertisements.
    var isListening: Bool { controller.isListening || !kernelConnects.isEmpty }

    // MARK: State

    /// Replaces the controller with another one, after its reset.
    func replaceController(_ controller: VirtualController) {
        self.controller = controller
    }

    /// Ends the adapter's activities without events.
    ///
    /// - Returns: The peers of links that only the controller has known.
    func fallSilent() -> [VirtualPeripheral] {
        for connect in kernelConnects { connect.fate.withLock { $0 = ECONNABORTED } }
        kernelConnects = []
        controller.reset()
        defer { hiddenPeers = [] }
        return hiddenPeers
    }

    /// It was switched off, so that the kernel sets it up again later.
    func switchedOff() {
        isSetUp = false
    }

    /// The radio was blocked and unblocked, which has switched it off and on.
    func unblocked() {
        controller.returned(after: .radioSwitch)
    }

    /// Has the kernel set up an adapter that was switched on, unless its controller does not respond.
    ///
    /// - Returns: What every program sees of it.
    func setUp() -> [VirtualController.Action] {
        guard !isSetUp, !isSilent else { return [] }
        isSetUp = true
        return controller.kernelSetsUp()
    }

    /// Makes the controller ignore commands, or respond again.
    func silence(_ isSilent: Bool) {
        self.isSilent = isSilent
    }

    /// Closes the sockets of all programs, and returns the controller, which was unplugged.
    func unplug() -> VirtualController {
        closeSockets()
        return controller
    }

    func limitLinks(to count: Int) {
        controller.linkLimit = max(0, count)
    }

    /// Refuses a command about a link from now on; `nil` accepts it again.
    func refuse(_ opcode: HCIOpcode, with status: HCIStatus?) {
        controller.refuse(opcode, with: status)
    }

    // MARK: Programs

    /// True if a program uses the adapter.
    var isInUse: Bool { !clients.isEmpty }

    func add(_ number: UInt64, commands: PeerLink, reports: PeerLink, mayCommand: Bool) {
        clients[number] = Client(commands: commands, reports: reports, mayCommand: mayCommand)
    }

    /// A program has closed its socket for commands.
    func remove(_ number: UInt64) {
        clients.removeValue(forKey: number)?.reports.close()
    }

    func closeSockets() {
        for client in sortedClients {
            client.value.commands.close()
            client.value.reports.close()
        }
    }

    /// Passes a command of a program, or of one without sockets here, to the controller.
    func execute(_ command: HCICommandPacket, of number: UInt64?) -> [VirtualController.Action] {
        for (other, client) in sortedClients where other != number { client.commands.send(command.bytes) }
        return controller.received(command)
    }

    /// Passes a packet to all programs that may have it.
    func pass(_ packet: [UInt8]) {
        let isLowEnergy = packet.first != HCIPacketType.event.rawValue || packet.dropFirst().first == 0x3E
        for (_, client) in sortedClients where client.mayCommand || !isLowEnergy {
            (isLowEnergy ? client.reports : client.commands).send(packet)
        }
    }

    /// Returns what programs receive of a packet of the controller, in order, each with its delay; `nil` for none.
    func shape(_ packet: [UInt8]) -> [(delay: Duration?, packet: [UInt8])] {
        guard let packet = controller.shape(packet) else { return [] }
        guard let delay = controller.delay(of: packet) else { return [(nil, packet)] }
        guard personality.dataLead != nil, let handle = VirtualController.handle(ofLinkIn: packet) else {
            return [(delay, packet)]
        }
        // The peer's request for an MTU of 517.
        let request: [UInt8] = [0x02] + (handle | 0x2000).littleEndianBytes + [7, 0, 3, 0, 4, 0, 0x02, 0x05, 0x02]
        return [(nil, request), (delay, packet)]
    }

    private var sortedClients: [(key: UInt64, value: Client)] { clients.sorted { $0.key < $1.key } }

    // MARK: Receiving

    /// Returns the reports of an advertisement that the controller receives.
    func reports(of peer: PeerID, _ advertisement: VirtualAdvertisement, rssi: Int8) -> [[UInt8]] {
        guard controller.isScanning, controller.mayReport(peer, advertisement) else { return [] }
        return controller.reports(of: peer, advertisement, rssi: rssi)
    }

    // MARK: Connecting

    /// True if the controller initiates to a peer.
    func initiates(to peer: PeerID) -> Bool { controller.attempt?.peer == peer }

    /// True if the kernel initiates to a peer by its own means.
    func hasKernelConnect(to peer: PeerID) -> Bool { kernelConnects.contains { $0.peer == peer } }

    /// The peer of the controller's attempt advertises.
    func respond(
        _ status: HCIStatus, rssi: Int8
    ) -> (handle: ConnectionHandle?, actions: [VirtualController.Action]) {
        controller.respond(status, rssi: rssi)
    }

    /// Returns true if nobody but the controller is to know of a new link with this peer.
    func hidesLink(with peripheral: VirtualPeripheral) -> Bool {
        guard controller.hidesLink() else { return false }
        hiddenPeers.append(peripheral)
        return true
    }

    /// The kernel begins an attempt.
    func begin(_ connect: KernelConnect) {
        kernelConnects.append(connect)
    }

    /// The kernel takes all advertisements off air before it initiates.
    func kernelInitiates() -> [VirtualController.Action] { controller.kernelInitiates() }

    func end(_ connect: KernelConnect) {
        kernelConnects.removeAll { $0.end === connect.end }
    }

    func takeKernelConnect(to peer: PeerID) -> KernelConnect? {
        kernelConnects.firstIndex { $0.peer == peer }.map { kernelConnects.remove(at: $0) }
    }

    /// Registers a link that the kernel has established by itself.
    func accept(_ peer: PeerID, rssi: Int8) -> ConnectionHandle { controller.accept(peer, rssi: rssi) }

    /// A central connects by an advertisement that is on air.
    func centralConnects(
        _ peer: PeerID, by advertisement: UInt8, _ parameters: ConnectionParameters, rssi: Int8
    ) -> (handle: ConnectionHandle, actions: [VirtualController.Action]) {
        controller.centralConnects(peer, by: advertisement, parameters, rssi: rssi)
    }

    // MARK: Links

    /// True if a link that comes up now breaks on 2M.
    var losesLinks: Bool { controller.losesLinks }

    func hasLink(_ handle: ConnectionHandle) -> Bool { controller.links[handle] != nil }

    /// The supervision timeout of a link; `nil` if the controller does not have it.
    func supervisionTimeout(of handle: ConnectionHandle) -> Duration? {
        controller.links[handle]?.parameters.supervisionTimeout
    }

    func linkEnded(_ handle: ConnectionHandle) {
        controller.linkEnded(handle)
    }

    func setRSSI(_ rssi: Int8, of handle: ConnectionHandle) {
        controller.setRSSI(rssi, of: handle)
    }

    func parameters(of handle: ConnectionHandle) -> ConnectionParameters? { controller.links[handle]?.parameters }

    func setParameters(_ parameters: ConnectionParameters, of handle: ConnectionHandle) {
        controller.setParameters(parameters, of: handle)
    }

    func setPHY(_ transmit: PHY, _ receive: PHY, of handle: ConnectionHandle) {
        controller.setPHY(transmit, receive, of: handle)
    }

    // MARK: Advertising

    /// The sets that are on air, in the order of their handles.
    var setsOnAir: [VirtualAdvertiser.AdvertisingSet] { controller.advertiser.setsOnAir }

    /// Sets went on air or off.
    func advertisingChanged(at now: BootInstant) {
        let onAir = Set(setsOnAir.map(\.handle))
        airTimes = airTimes.filter { onAir.contains($0.key) }
        for handle in onAir where airTimes[handle] == nil { airTimes[handle] = now + Self.startTime }
    }

    /// Returns the instant of the next advertising event. Events before `now` have passed without a listener.
    func nextAdvertisingEvent(from now: BootInstant) -> BootInstant? {
        var earliest: BootInstant?
        for set in setsOnAir {
            guard var due = airTimes[set.handle] else { continue }
            if due < now {
                let beat = set.interval.saturatedNanoseconds
                due = due + .nanoseconds(((now - due).saturatedNanoseconds + beat - 1) / beat * beat)
                airTimes[set.handle] = due
            }
            earliest = min(earliest ?? due, due)
        }
        return earliest
    }

    /// Returns the sets whose advertising events are due, with their instants. Call `passEvent` for each.
    func setsDue(at now: BootInstant) -> [(set: VirtualAdvertiser.AdvertisingSet, due: BootInstant)] {
        setsOnAir.compactMap { set in
            guard let due = airTimes[set.handle], due <= now else { return nil }
            return (set, due)
        }
    }

    /// An advertising event of a set passes.
    func passEvent(of set: VirtualAdvertiser.AdvertisingSet, due: BootInstant) {
        airTimes[set.handle] = due + set.interval
    }
}

/// The adapters of a virtual radio, and the controllers that were unplugged.
///
/// Only the radio uses it, on its event loop.
final class RadioAdapters {
    private var running: [UInt16: RadioAdapter] = [:]
    /// The one that was unplugged last at the end.
    private var unplugged: [(index: UInt16, controller: VirtualController)] = []

    init(_ first: RadioAdapter) {
        add(first)
    }

    subscript(_ index: UInt16) -> RadioAdapter? { running[index] }

    /// The adapters that are plugged in, in the order of their numbers.
    var all: [RadioAdapter] { running.values.sorted { $0.index < $1.index } }

    /// The number of the next adapter. Unplugged adapters keep their numbers and thereby their addresses.
    var next: UInt16 {
        (Array(running.keys) + unplugged.map(\.index)).max().map { $0 + 1 } ?? 0
    }

    func add(_ adapter: RadioAdapter) {
        running[adapter.index] = adapter
    }

    func unplug(_ index: UInt16) {
        if let adapter = running.removeValue(forKey: index) { unplugged.append((index, adapter.unplug())) }
    }

    /// Returns the controller that was unplugged under a number, which is no longer kept; `nil` if there is none.
    func takeUnplugged(_ index: UInt16) -> VirtualController? {
        unplugged.lastIndex { $0.index == index }.map { unplugged.remove(at: $0).controller }
    }
}
