import BLECore

/// A peer on the command line.
enum PeerArgument: Hashable, Sendable, CustomStringConvertible {
    /// A device on air. Without a type the device is scanned for first, to learn it.
    case address(BluetoothAddress, AddressType?)
    /// An ATT server on a Unix SEQPACKET socket.
    case unix(String)
    /// One of the virtual devices.
    case demo(String)

    var description: String {
        switch self {
        case .address(let address, let type?): PeerID(address: address, type: type).description
        case .address(let address, nil): address.description
        case .unix(let path): "unix:" + path
        case .demo(let name): "demo:" + name
        }
    }
}

extension PeerArgument {
    /// The peer's identity, however it was written: with the type of the address or without.
    var identity: String {
        if case .address(let address, _) = self { return address.description }
        return description
    }

    /// Whether an adapter is needed to reach it.
    var isInTheAir: Bool {
        if case .address = self { return true }
        return false
    }

    /// Whether it is a socket in the file system.
    var isSocket: Bool {
        if case .unix = self { return true }
        return false
    }
}

extension PeerArgument {
    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init(argument: String) throws(BadValue) {
        if AdvertisedPeer.isMeant(by: argument) {
            throw BadValue(
                description: "name the device by its address here: any device may advertise a name or a service. "
                    + "`blescan scan` shows the addresses.")
        } else if let path = argument.dropped(prefix: "unix:") {
            guard !path.isEmpty else { throw BadValue(description: "unix: takes the path of a socket.") }
            self = .unix(path)
        } else if let name = argument.dropped(prefix: "demo:") {
            self = .demo(name)
        } else if let peer = PeerID(argument) {
            self = .address(peer.address, peer.type)
        } else if let address = BluetoothAddress(argument) {
            self = .address(address, nil)
        } else {
            throw BadValue(
                description:
                    "write AA:BB:CC:DD:EE:FF, with /random or /public where the type is known, unix:PATH or demo:NAME.")
        }
    }
}

extension String {
    func dropped(prefix: String) -> String? {
        hasPrefix(prefix) ? String(dropFirst(prefix.count)) : nil
    }
}
