package import BLECore
package import BLELinux

/// The two sockets of a controller: commands with their responses, and everything that LE reports.
///
/// They are two, so that a flood of reports cannot push a response out of the kernel's queue.
package struct AdapterSockets: ~Copyable, Sendable {
    package var commands: HCISocket
    package var reports: HCISocket

    package init(commands: consuming HCISocket, reports: consuming HCISocket) {
        self.commands = commands
        self.reports = reports
    }

    /// Has a simulated controller refuse commands with an error number, as the kernel does.
    package mutating func refuseCommands(_ refusal: @escaping @Sendable () -> Int32?) {
        commands.refuseCommands(refusal)
    }
}

/// The outcome of a claim to an advertising handle.
package enum HandleClaim: Sendable {
    case reserved(HeldReservation)
    /// Another process has the handle.
    case taken
    /// Nothing is known of other processes.
    case unknown
}

/// A reservation that is held until the last reference to it goes away.
package final class HeldReservation: Sendable {
    private let reservation: HandleReservation

    package init(_ reservation: consuming HandleReservation) {
        self.reservation = reservation
    }
}

/// The source of an adapter's descriptors: the kernel, or stand-ins for it in tests.
package struct AdapterSystem: Sendable {
    /// All adapters, by index.
    package var list: @Sendable () throws(SystemCallError) -> [ControllerInfo]
    /// One adapter.
    package var info: @Sendable (UInt16) throws(SystemCallError) -> ControllerInfo
    /// Opens both sockets of an adapter.
    package var open: @Sendable (UInt16) throws(SystemCallError) -> AdapterSockets
    /// Starts to connect to a peer from the adapter with this address; with a level of security, the socket is not
    /// connected before the link has it, if the kernel has a key for that.
    package var connect:
        @Sendable (BluetoothAddress, AddressType, PeerID, Duration, SocketSecurity.Level?)
            throws(SystemCallError) -> LinkSocket
    /// Listens for links to the adapter with this address.
    package var listen: @Sendable (BluetoothAddress) throws(SystemCallError) -> ListeningSocket
    /// Listens for channels to the adapter with this address.
    package var listenForChannels:
        @Sendable (BluetoothAddress, ChannelListenRequest) throws(SystemCallError) -> ListeningSocket
    /// Reserves an advertising handle of the adapter with this address, among processes with this library.
    package var reserveHandle: @Sendable (UInt8, BluetoothAddress) -> HandleClaim = { _, _ in .unknown }
    /// The security of a link, by the descriptor of its socket.
    package var security: @Sendable (Int32) throws(SystemCallError) -> SocketSecurity
    /// Requests a level of security for a link, by the descriptor of its socket.
    package var setSecurity: @Sendable (Int32, SocketSecurity.Level) throws(SystemCallError) -> Void
    /// Sends a Security Request to the central of a link to the adapter with this address.
    package var requestSecurity: @Sendable (BluetoothAddress, AddressType, PeerID) throws(SystemCallError) -> Void
    /// Starts to open a channel to a peer, beside the link that is up.
    package var openChannel:
        @Sendable (BluetoothAddress, AddressType, PeerID, ChannelRequest) throws(SystemCallError) -> LinkSocket
    /// The level of security that the kernel wants for a channel that is being opened, by the descriptor of its socket;
    /// `nil` if that is not known.
    package var wantedLevel: @Sendable (Int32) -> SocketSecurity.Level? = { LinkSocket.wantedLevel(of: $0) }
    /// The handle of the link to this address that is up on an adapter, of this or another program.
    package var linkHandle: @Sendable (UInt16, BluetoothAddress) -> ConnectionHandle?
    /// The peer's address of the link that is up with this handle on an adapter, as the kernel has it: the one of its
    /// identity where the kernel has resolved the address on air.
    package var linkAddress: @Sendable (UInt16, ConnectionHandle) -> BluetoothAddress?
    /// The handles of all links that are up on an adapter, of this and other programs; `nil` if that cannot be seen.
    package var linkHandles: @Sendable (UInt16) -> [ConnectionHandle]?
    /// The handles of the LE links among them.
    package var lowEnergyLinkHandles: @Sendable (UInt16) -> [ConnectionHandle]?
    /// Switches an adapter off; waits until the kernel is done.
    package var powerDown: @Sendable (UInt16) throws(SystemCallError) -> Void
    /// Takes a step of recovery, or has the helper program with this socket take it, beside the loop;
    /// waits until it is done.
    package var recover:
        @Sendable (RecoveryPolicy.Step, ControllerInfo, String?, EventLoop) async throws(RecoveryFailure) -> Void
    /// Claims an adapter for a step of recovery that is taken on the loop; `nil` if nothing is known of other programs.
    package var claimRecovery: @Sendable (ControllerInfo) throws(RecoveryFailure) -> RecoveryClaim? = { _ in nil }
    /// Powers an adapter; waits until the kernel is done.
    package var powerUp: @Sendable (UInt16) throws(SystemCallError) -> Void
    /// Returns a Boolean value that indicates whether the adapter of this name is blocked by rfkill.
    package var isBlocked: @Sendable (String) -> Bool
    /// Returns a Boolean value that indicates whether the adapter of this name likely shares its antenna with a Wi-Fi
    /// radio that is up.
    package var sharesAntenna: @Sendable (String) -> Bool = { _ in false }
    /// Returns a Boolean value that indicates whether the controller of the adapter of this name lists the coded PHY,
    /// which is known not to work.
    package var hasDefectiveCodedPHY: @Sendable (String) -> Bool = { _ in false }
    /// Returns a Boolean value that indicates whether the kernel may suspend the adapter of this name.
    package var mayBeSuspended: @Sendable (String) -> Bool = { _ in false }
    /// Returns the hardware of an adapter, as far as its bus reports it.
    package var hardware: @Sendable (ControllerInfo) -> String = { AdapterHardware.identifier(of: $0) }
    /// Returns the privileges of this process.
    package var privileges: @Sendable () -> Privileges
    /// Opens the management interface, which belongs to no adapter.
    package var openManagement: @Sendable () throws(SystemCallError) -> ManagementSocket
    /// Returns a Boolean value that indicates whether bluetoothd has the management interface open,
    /// as far as that can be seen.
    package var runsBluetoothd: @Sendable () -> Bool
    /// Opens the kernel's announcements about adapters; it fails if this process may not have them.
    package var openDeviceEvents: @Sendable () throws(SystemCallError) -> HCISocket = {
        () throws(SystemCallError) in
        throw SystemCallError(call: "HCI_FILTER", errno: SystemCallError.notPermitted)
    }
    /// The time of day, in seconds since 1970-01-01 00:00 UTC; it may jump.
    package var timeOfDay: @Sendable () -> UInt64 = { UInt64(max(0, WallClock.now().components.seconds)) }
    /// The identifier of this boot of the machine; `nil` where the kernel does not report it.
    package var bootIdentifier: @Sendable () -> BootIdentifier? = {
        SystemFiles.text("/proc/sys/kernel/random/boot_id").flatMap { BootIdentifier($0) }
    }

    /// The kernel.
    package static let kernel = AdapterSystem(
        list: { () throws(SystemCallError) in try Controllers.list() },
        info: { index throws(SystemCallError) in try Controllers.info(index) },
        open: { index throws(SystemCallError) in
            var commands = try HCISocket(adapter: index)
            try commands.reportArrivals()
            try commands.setFilter(HCIFilter(events: [0x05, 0x08, 0x0C, 0x0E, 0x0F, 0x10, 0x30], commands: true))
            let reports = try HCISocket(adapter: index)
            try reports.raiseReceiveBuffer()
            try reports.setFilter(.reports)
            return AdapterSockets(commands: commands, reports: reports)
        },
        connect: { own, type, peer, timeout, security throws(SystemCallError) in
            try LinkSocket.connectingL2CAP(
                from: own, type: type, to: peer, sendTimeout: timeout, security: security)
        },
        listen: { address throws(SystemCallError) in try ListeningSocket.attributeChannel(of: address) },
        listenForChannels: { own, request throws(SystemCallError) in
            try ListeningSocket.channels(
                psm: request.psm, of: own, receiveMTU: request.receiveMTU, security: request.security)
        },
        reserveHandle: { handle, address in
            do throws(HandleReservation.Failure) {
                return .reserved(HeldReservation(try HandleReservation(handle, of: address)))
            } catch {
                switch error {
                case .taken: return .taken
                case .unknown: return .unknown
                }
            }
        },
        security: { descriptor throws(SystemCallError) in try LinkSocket.security(of: descriptor) },
        setSecurity: { descriptor, level throws(SystemCallError) in
            try LinkSocket.setSecurity(level, of: descriptor)
        },
        requestSecurity: { own, type, central throws(SystemCallError) in
            try LinkSocket.requestSecurity(from: own, type: type, to: central)
        },
        openChannel: { own, type, peer, request throws(SystemCallError) in
            try LinkSocket.connectingChannel(
                psm: request.psm, from: own, type: type, to: peer, receiveMTU: request.receiveMTU,
                // The kernel's own time-out is the later one, so that it is never taken for a refusal.
                sendTimeout: request.timeout + .seconds(1), security: request.security)
        },
        linkHandle: { index, address in
            guard let links = try? Controllers.links(of: index) else { return nil }
            return links.first { $0.address == address && $0.isConnected }?.handle
        },
        linkAddress: { index, handle in
            guard let links = try? Controllers.links(of: index) else { return nil }
            return links.first { $0.handle == handle && $0.isConnected }?.address
        },
        linkHandles: { index in
            try? Controllers.handlesOfLinks(of: index)
        },
        lowEnergyLinkHandles: { index in
            guard let links = try? Controllers.links(of: index) else { return nil }
            return links.filter(\.isConnected).map(\.handle)
        },
        powerDown: { index throws(SystemCallError) in try Controllers.powerDown(index) },
        recover: { step, adapter, helper, loop throws(RecoveryFailure) in
            let result: Result<Void, RecoveryFailure>
            do throws(WorkFailure) {
                result = try await loop.offload {
                    Result { () throws(RecoveryFailure) in
                        try AdapterRecovery.take(step, adapter, helper: helper)
                    }
                }
            } catch {
                throw .failed("there is no room for another thread")
            }
            try result.get()
        },
        claimRecovery: { adapter throws(RecoveryFailure) in try RecoveryClaim.make(for: adapter) },
        powerUp: { index throws(SystemCallError) in try Controllers.powerUp(index) },
        isBlocked: { name in RadioSwitch.bluetooth().contains { $0.name == name && $0.isBlocked } },
        sharesAntenna: { SharedAntenna.isLikely(of: $0) },
        hasDefectiveCodedPHY: { CodedPHYDefect.isKnown(of: $0) },
        mayBeSuspended: { AdapterHardware.mayBeSuspended($0) },
        privileges: { Privileges.current() },
        openManagement: { () throws(SystemCallError) in try ManagementSocket() },
        runsBluetoothd: {
            HCISocket.openSockets()?.contains { $0.format == .control && $0.program == "bluetoothd" } ?? false
        },
        openDeviceEvents: { () throws(SystemCallError) in try HCISocket.deviceEvents() })
}
