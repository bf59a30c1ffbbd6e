internal import BLECore
internal import BLELinux
internal import Glibc

// Channels: those that programs open to peripherals, and those that centrals open to the listeners of programs.

/// The listeners of programs for channels, by their adapters and PSMs. Only the radio uses it, on its event loop.
final class RadioChannelListeners {
    /// The newest listener of a PSM.
    struct Listener {
        /// The links of the channels that wait to be accepted, in their order.
        let waiting: Lock<[ConnectionHandle]>
        /// The level that a link must have.
        let security: SocketSecurity.Level
    }

    private struct Place: Hashable {
        let address: BluetoothAddress
        let psm: UInt16
    }

    private var listeners: [Place: Listener] = [:]

    subscript(address: BluetoothAddress, psm: UInt16) -> Listener? {
        get { listeners[Place(address: address, psm: psm)] }
        set { listeners[Place(address: address, psm: psm)] = newValue }
    }
}

extension VirtualRadio {
    // MARK: Of programs

    /// Opens a channel from the adapter with this address to a peripheral, if the link has the level that is requested:
    /// this kernel encrypts no link for a channel.
    func openChannel(
        from own: BluetoothAddress, to peer: BluetoothAddress, _ psm: UInt16, _ security: SocketSecurity.Level?
    ) -> Result<(descriptor: Int32, isConnecting: Bool), SystemCallError> {
        let index = machine.withLock { machine in machine.adapters.first { $0.address == own && $0.isUp }?.index }
        guard let index,
            let name = links.names(of: index).first(where: { management.peer(of: $0)?.address == peer }),
            let link = links[name]
        else { return .failure(SystemCallError(call: "connect", errno: ENOTCONN)) }
        // Centrals accept no channels here.
        guard let peripheral = link.peripheral else {
            return .failure(SystemCallError(call: "connect", errno: ECONNREFUSED))
        }
        if let security, (management.security(of: name)?.level ?? .low) < security {
            return .failure(SystemCallError(call: "connect", errno: EACCES))
        }
        let isHeard = !link.isForgotten && !peripherals.isOutOfRange(peripheral)
        let level = management.security(of: name)?.level ?? .low
        let isRefused =
            switch peripheral.assumeIsolated({ $0.neededLevel(ofChannels: psm) }) {
            case .low: false
            case .medium: isHeard && level == .low
            // The kernel's level may be the one that was asked for.
            default: isHeard && peripheral.assumeIsolated { !$0.linkSecurity.isAuthenticated }
            }
        if isRefused {
            // There is nothing that the kernel could raise.
            if level > .medium { return .failure(SystemCallError(call: "connect", errno: ECONNREFUSED)) }
            perform(management.channelRefused(name))
        }
        switch peripheral.assumeIsolated({ $0.channelRequested(psm, isHeard: isHeard && !isRefused) }) {
        case .success(let opening?):
            links.connect(opening.descriptor, to: name)
            // Its descriptor may be that of an earlier channel.
            wantedLevels[opening.descriptor] = isRefused ? (level == .low ? .medium : .high) : nil
            return .success(opening)
        case .success(nil): return .failure(SystemCallError(call: "connect", errno: ECONNREFUSED))
        case .failure: return .failure(SystemCallError(call: "socket", errno: EMFILE))
        }
    }

    /// Returns the name of the sockets that stand in for the kernel's listeners for channels to an adapter.
    nonisolated func channelName(of own: BluetoothAddress) -> String {
        "bareble-\(getpid())-\(UInt(bitPattern: ObjectIdentifier(self).hashValue))-\(own)"
    }

    // MARK: Of centrals

    /// Opens a channel of a central to the program that listens on the adapter of its link.
    func openChannel(of central: VirtualCentral, _ psm: UInt16) -> Result<Int32, VirtualCentralError> {
        guard let name = links.names(of: central).first, let own = adapters[name.adapter]?.address else {
            return .failure(.notConnected)
        }
        let level = management.security(of: name)?.level ?? .low
        guard let listener = channelListeners[own, psm], level >= listener.security else {
            return .failure(.channelRefused(psm: psm))
        }
        do throws(SystemCallError) {
            let descriptor = try LinkSocket.connectedStandIn(psm: psm, named: channelName(of: own))
            listener.waiting.withLock { $0.append(name.handle) }
            return .success(descriptor)
        } catch {
            // The listener has ended, or too many channels wait there.
            let isRefused = error.errno == ECONNREFUSED || error.errno == EAGAIN
            return .failure(isRefused ? .channelRefused(psm: psm) : .noSockets(errno: error.errno))
        }
    }
}
