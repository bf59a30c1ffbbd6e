package import BLECore
internal import CBluetooth
internal import Glibc

/// The adapters of this machine, as the kernel lists them.
package enum Controllers {
    /// The maximum number of adapters in a list; the kernel has far fewer.
    private static let mostAdapters = 64
    private static let mostLinks = 64
    /// The kernel's type of an LE link and its state of a link that is up.
    private static let lowEnergyLink: UInt8 = 0x80
    private static let connected: UInt16 = 1

    /// A Boolean value that indicates whether the kernel offers Bluetooth sockets to this process: it has them, and
    /// this is the first network namespace.
    package static var isAddressFamilyAvailable: Bool {
        do throws(SystemCallError) {
            _ = try OwnedDescriptor.hciSocket()
            return true
        } catch {
            return error.errno != EAFNOSUPPORT && error.errno != EPROTONOSUPPORT
        }
    }

    /// Returns all adapters, by index; those that disappear meanwhile are left out.
    package static func list() throws(SystemCallError) -> [ControllerInfo] {
        let socket = try OwnedDescriptor.hciSocket()
        var request = KernelRecord(count: 4 + mostAdapters * 8)
        request.store(UInt16(mostAdapters), at: 0)
        try SystemCallError.check("HCIGETDEVLIST", request.ioctl(socket.number, ble_HCIGETDEVLIST))
        var found: [ControllerInfo] = []
        for index in adapterIndices(request).sorted() {
            do throws(SystemCallError) {
                found.append(try info(index, socket.number))
            } catch  where error.errno == ENODEV {
                continue
            }
        }
        return found
    }

    /// Returns one adapter; throws `ENODEV` if none has this index.
    package static func info(_ index: UInt16) throws(SystemCallError) -> ControllerInfo {
        let socket = try OwnedDescriptor.hciSocket()
        return try info(index, socket.number)
    }

    /// Powers an adapter, and waits until the kernel has set it up, which may take half a second. Needs CAP_NET_ADMIN.
    ///
    /// This is needed after plugging in too: an adapter that appears to be up goes down two seconds later.
    package static func powerUp(_ index: UInt16) throws(SystemCallError) {
        try change("HCIDEVUP", ble_HCIDEVUP, index)
    }

    /// Switches an adapter off, even if it is off already; all links of all programs end. Needs CAP_NET_ADMIN.
    package static func powerDown(_ index: UInt16) throws(SystemCallError) {
        try change("HCIDEVDOWN", ble_HCIDEVDOWN, index)
    }

    /// Resets a controller that is on; all links of all programs end. Needs CAP_NET_ADMIN.
    package static func reset(_ index: UInt16) throws(SystemCallError) {
        try change("HCIDEVRESET", ble_HCIDEVRESET, index)
    }

    /// Returns the LE links that the kernel knows on an adapter, whichever program uses them.
    package static func links(of index: UInt16) throws(SystemCallError) -> [ControllerLink] {
        links(try linkRecord(of: index))
    }

    private static func linkRecord(of index: UInt16) throws(SystemCallError) -> KernelRecord {
        let socket = try OwnedDescriptor.hciSocket()
        var request = KernelRecord(count: 4 + mostLinks * MemoryLayout<hci_conn_info>.size)
        request.store(index, at: 0)
        request.store(UInt16(mostLinks), at: 2)
        try SystemCallError.check("HCIGETCONNLIST", request.ioctl(socket.number, ble_HCIGETCONNLIST))
        return request
    }

    /// Returns the handles of all links that are up on an adapter, of both kinds of Bluetooth,
    /// whichever program uses them.
    package static func handlesOfLinks(of index: UInt16) throws(SystemCallError) -> [ConnectionHandle] {
        handlesOfLinks(try linkRecord(of: index))
    }

    /// The kernel's list of the channels of all links, and of those that wait for links. Only root may read it, and
    /// debugfs has to be mounted.
    package static let channelsPath = "/sys/kernel/debug/bluetooth/l2cap"

    /// Returns the addresses of the adapters that the kernel can pair with, by its list of channels; `nil` for a list
    /// that may have been cut, because any user can fill it.
    ///
    /// The kernel opens a channel of the Security Manager when an adapter is switched on under management. A line has
    /// the own address and the peer's, on newer kernels each with a type in brackets, the state, the PSM, and the own
    /// channel.
    package static func pairingAddresses(inChannels list: String) -> Set<BluetoothAddress>? {
        // The newline at the end may be missing.
        guard list.utf8.count + 1 < SystemFile.limit else { return nil }
        var addresses: Set<BluetoothAddress> = []
        for line in list.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard let own = fields.first, let address = BluetoothAddress(String(own)),
                let channel = fields.first(where: { $0.hasPrefix("0x") }), channel == securityManagerChannel
            else { continue }
            addresses.insert(address)
        }
        return addresses
    }

    /// Returns a Boolean value that indicates whether the kernel can pair with the adapter of this address; `nil`
    /// without permission to see that, or if its list is too long.
    package static func canPair(_ address: BluetoothAddress) -> Bool? {
        SystemFiles.text(channelsPath).flatMap { pairingAddresses(inChannels: $0)?.contains(address) }
    }

    private static let securityManagerChannel = "0x0006"

    // MARK: Inside

    private static func info(_ index: UInt16, _ socket: Int32) throws(SystemCallError) -> ControllerInfo {
        var request = KernelRecord(count: MemoryLayout<hci_dev_info>.size)
        request.store(index, at: 0)
        try SystemCallError.check("HCIGETDEVINFO", request.ioctl(socket, ble_HCIGETDEVINFO))
        return ControllerInfo(request)
    }

    private static func change(_ call: String, _ request: UInt, _ index: UInt16) throws(SystemCallError) {
        let socket = try OwnedDescriptor.hciSocket()
        let result = ble_ioctl_number(socket.number, request, Int32(index))
        // Up already, or in its first two seconds, which the call turns into staying up.
        if result == -EALREADY { return }
        try SystemCallError.check(call, result)
    }

    /// Decodes `hci_dev_list_req`: a count, two bytes of padding, then index, padding and flags of each.
    static func adapterIndices(_ record: KernelRecord) -> [UInt16] {
        let count = min(Int(record.load(UInt16.self, at: 0)), mostAdapters)
        return (0..<count).map { record.load(UInt16.self, at: 4 + $0 * 8) }
    }

    static func handlesOfLinks(_ record: KernelRecord) -> [ConnectionHandle] {
        let count = min(Int(record.load(UInt16.self, at: 2)), mostLinks)
        return (0..<count).compactMap { position -> ConnectionHandle? in
            let start = 4 + position * 16
            return record.load(UInt16.self, at: start + 10) == connected ? record.load(UInt16.self, at: start) : nil
        }
    }

    /// Decodes `hci_conn_list_req`: index, count, then sixteen bytes of each link.
    static func links(_ record: KernelRecord) -> [ControllerLink] {
        let count = min(Int(record.load(UInt16.self, at: 2)), mostLinks)
        return (0..<count).compactMap { position -> ControllerLink? in
            let start = 4 + position * 16
            guard record.load(UInt8.self, at: start + 8) == lowEnergyLink else { return nil }
            return ControllerLink(
                handle: record.load(UInt16.self, at: start),
                address: record.address(at: start + 2),
                isCentral: record.load(UInt8.self, at: start + 9) != 0,
                isConnected: record.load(UInt16.self, at: start + 10) == connected)
        }
    }
}
