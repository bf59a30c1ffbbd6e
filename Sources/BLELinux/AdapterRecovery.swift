package import BLECore
internal import CBluetooth
internal import Glibc

// The steps of recovery that the kernel's files and calls offer, and the way to the helper program that takes them with
// rights that a daemon does not have.
//
// Invariants
// - The adapter is named by its address: a name such as `hci0` may belong to another one by the time of the step.
// - A step leaves nothing switched off: what it has blocked, unauthorized or unbound it restores, also after a failure.
// - A reset of the port that loses the adapter takes its folders away with it. Where the port is was read before, so
//   the step is finished by the port: the device there is authorized again, and where there is none, the port is
//   disabled and enabled.
// - Another device that has been plugged in there meanwhile is left as it is.
// - One program takes a step for an adapter at a time. The claim is released before the helper program is asked, which
//   makes its own.
// - The calls block: 10 s and one call of the kernel after a step, until the adapter is back, and twice as long after a
//   port that has lost it; the helper is waited for longer than its unit lets it run.
// - A program that is to end finishes a step that it has begun, but does not wait for the adapter, and begins none.

/// Takes steps of recovery.
package struct AdapterRecovery: Sendable {
    /// The folder in which `/sys` and `/dev` are; empty for this machine.
    private let root: String
    /// Returns all adapters.
    private let list: @Sendable () throws(SystemCallError) -> [ControllerInfo]
    private let power: @Sendable (UInt16, Bool) throws(SystemCallError) -> Void
    /// Resets the port of the USB device with this node.
    private let reset: @Sendable (Int32) throws(SystemCallError) -> Void
    /// Claims an adapter, so that no other program takes a step for it meanwhile.
    private let claim: @Sendable (ControllerInfo) throws(RecoveryFailure) -> RecoveryClaim?
    /// How long an adapter may take to come back.
    private let returnTime: Duration
    private let pause: @Sendable (Duration) -> Void
    /// Whether this program is to end.
    private let isEnding: @Sendable () -> Bool

    /// Steps on this machine; or on a pretended one, for tests.
    package init(
        root: String = "",
        list: @escaping @Sendable () throws(SystemCallError) -> [ControllerInfo] = {
            () throws(SystemCallError) in try Controllers.list()
        },
        power: @escaping @Sendable (UInt16, Bool) throws(SystemCallError) -> Void = {
            (index, isOn) throws(SystemCallError) in
            if isOn { try Controllers.powerUp(index) } else { try Controllers.powerDown(index) }
        },
        reset: @escaping @Sendable (Int32) throws(SystemCallError) -> Void = { node throws(SystemCallError) in
            try SystemCallError.check("USBDEVFS_RESET", ble_ioctl_number(node, ble_USBDEVFS_RESET, 0))
        },
        claim: @escaping @Sendable (ControllerInfo) throws(RecoveryFailure) -> RecoveryClaim? = {
            adapter throws(RecoveryFailure) in try RecoveryClaim.make(for: adapter)
        },
        returnTime: Duration = .seconds(10),
        pause: @escaping @Sendable (Duration) -> Void = { usleep(UInt32($0 / .microseconds(1))) },
        isEnding: @escaping @Sendable () -> Bool = { false }
    ) {
        self.root = root
        self.list = list
        self.power = power
        self.reset = reset
        self.claim = claim
        self.returnTime = returnTime
        self.pause = pause
        self.isEnding = isEnding
    }

    /// Takes a step, by the helper program where this process may not and `helper` names its socket.
    package static func take(
        _ step: RecoveryPolicy.Step, _ adapter: ControllerInfo, helper: String?
    ) throws(RecoveryFailure) {
        do throws(RecoveryFailure) {
            try AdapterRecovery().take(step, adapter)
        } catch {
            guard case .notPermitted = error, let helper else { throw error }
            // Which links are up was looked at before.
            try RecoveryRequest(step: step, adapter: adapter.address, endsLinks: true).send(to: helper)
        }
    }

    /// Takes a step, and waits until the adapter is there again and switched on.
    ///
    /// - Parameter note: Called before the step is taken, once no other program can take one; a failure prevents it.
    package func take(
        _ step: RecoveryPolicy.Step, _ adapter: ControllerInfo, noting note: () throws(RecoveryFailure) -> Void = {}
    ) throws(RecoveryFailure) {
        let claim = try self.claim(adapter)
        defer { withExtendedLifetime(claim) {} }
        if isEnding() { throw .unavailable("the program is to end") }
        try note()
        switch step {
        case .rescan, .eventMasks: throw .notApplicable
        case .power: try cyclePower(adapter)
        case .radioSwitch: try cycleSwitch(adapter)
        case .usbPort: return try resetPort(adapter)
        case .driver: try bindAgain(adapter)
        }
        try awaitReturn(of: adapter)
    }

    // MARK: Steps

    /// Switches the adapter off; `awaitReturn(of:)` switches it on. Without the management interface, which would keep
    /// the adapter under management afterwards (decision 11).
    private func cyclePower(_ adapter: ControllerInfo) throws(RecoveryFailure) {
        do throws(SystemCallError) {
            try power(adapter.index, false)
        } catch {
            // An error of the driver, as for a controller that does not respond, does not keep the kernel from
            // switching it off (`hci_dev_close_sync`).
            let isOff = ((try? list()) ?? []).contains {
                $0.index == adapter.index && Self.isSame($0, adapter) && !$0.isUp
            }
            guard adapter.isUp, isOff else { throw RecoveryFailure(error) }
        }
        pause(.milliseconds(500))
    }

    private func cycleSwitch(_ adapter: ControllerInfo) throws(RecoveryFailure) {
        let folder = root + "/sys/class/rfkill"
        let name = SystemFiles.names(in: folder).first { entry in
            SystemFiles.text("\(folder)/\(entry)/type") == "bluetooth"
                && SystemFiles.text("\(folder)/\(entry)/name") == adapter.name
        }
        guard let name else { throw .notApplicable }
        try writeTwice("1", "0", to: "\(folder)/\(name)/soft")
    }

    private func resetPort(_ adapter: ControllerInfo) throws(RecoveryFailure) {
        guard let device = usbDevice(of: adapter), let bus = number("busnum", of: device),
            let place = number("devnum", of: device)
        else { throw .notApplicable }
        // The folder of the port is the hub's, and stays.
        let port = Self.resolved(device + "/port")
        let identity = USBIdentity(device)
        let node = "\(root)/dev/bus/usb/\(Self.threeDigits(bus))/\(Self.threeDigits(place))"
        let file = try Self.opened(node, absence: .notPermitted("\(node) is not there for this program"))
        do throws(SystemCallError) {
            try reset(file.number)
        } catch {
            // The device has gone with the reset.
            guard error.meaning == .adapterGone else { throw RecoveryFailure(error) }
        }
        do throws(RecoveryFailure) {
            return try awaitReturn(of: adapter)
        } catch {
            // One that is not waited for may still come back by itself, and a program that is to end begins no more.
            guard error == .adapterGone, !isEnding() else { throw error }
        }
        try enumerateAgain(device, identity, at: port)
        try awaitReturn(of: adapter)
    }

    /// Has the kernel set up the device at a port again: the one that is there,
    /// or what the port finds when it is enabled.
    private func enumerateAgain(
        _ device: String, _ identity: USBIdentity, at port: String?
    ) throws(RecoveryFailure) {
        let name = device.split(separator: "/").last.map(String.init) ?? device
        if SystemFiles.text(device + "/authorized") != nil {
            guard USBIdentity(device).mayBe(identity) else {
                throw .failed("another device is at USB port \(name) by now")
            }
            do throws(RecoveryFailure) {
                return try authorizeAgain(device)
            } catch {
                // It has come back by itself meanwhile.
                guard error == .adapterGone else { throw error }
                return
            }
        }
        guard let port, SystemFiles.text(port + "/disable") != nil else {
            throw .failed(
                "nothing responds at USB port \(name) any more, and this kernel cannot enable the port again: "
                    + "unplug the adapter and plug it in again")
        }
        try writeTwice("1", "0", to: port + "/disable")
    }

    /// Unbinds the driver of a device, and binds it again.
    private func authorizeAgain(_ device: String) throws(RecoveryFailure) {
        let place = number("devnum", of: device)
        try write("0", to: device + "/authorized")
        pause(.seconds(1))
        // Whether one that has come to the port meanwhile may be used, another program decides.
        guard number("devnum", of: device) == place else { throw .adapterGone }
        try restore("1", to: device + "/authorized")
    }

    private func bindAgain(_ adapter: ControllerInfo) throws(RecoveryFailure) {
        if let device = usbDevice(of: adapter) { return try authorizeAgain(device) }
        let device = "\(root)/sys/class/bluetooth/\(adapter.name)/device"
        guard let target = SystemFiles.destination(ofLink: device),
            let name = target.split(separator: "/").last.map(String.init),
            // The link is gone once the driver is unbound.
            let folder = Self.resolved(device + "/driver")
        else { throw .notApplicable }
        // Some drivers cannot be unbound.
        try write(name, to: folder + "/unbind", absence: .notApplicable)
        pause(.seconds(1))
        try restore(name, to: folder + "/bind")
    }

    private func awaitReturn(of adapter: ControllerInfo) throws(RecoveryFailure) {
        let end = ble_boot_nanoseconds() + Int64(returnTime / .nanoseconds(1))
        while true {
            var failure: RecoveryFailure?
            // Where several adapters have the address, the number has to be the same as well.
            let found = ((try? list()) ?? []).filter { Self.isSame($0, adapter) }
            if let found = found.count > 1 ? found.first(where: { $0.index == adapter.index }) : found.first {
                do throws(SystemCallError) {
                    if !found.isUp { try power(found.index, true) }
                    return
                } catch {
                    let reason = RecoveryFailure(error)
                    // One that has just come back is not ready for it yet.
                    guard error.meaning == .adapterGone || error.meaning == .noResponse else { throw reason }
                    failure = reason
                }
            }
            // One that is there and does not respond is not gone: harsher steps may help it.
            guard ble_boot_nanoseconds() < end, !isEnding() else { throw failure ?? .adapterGone }
            pause(.milliseconds(500))
        }
    }

    private static func isSame(_ found: ControllerInfo, _ wanted: ControllerInfo) -> Bool {
        wanted.address == .zero ? found.name == wanted.name : found.address == wanted.address
    }

    // MARK: Files

    /// The folder of an adapter's USB device; `nil` for one that is not on USB.
    private func usbDevice(of adapter: ControllerInfo) -> String? {
        // Its device is the interface of the driver, which is in the folder of the USB device.
        Self.resolved("\(root)/sys/class/bluetooth/\(adapter.name)/device/..").flatMap { folder in
            SystemFiles.text(folder + "/idVendor") == nil ? nil : folder
        }
    }

    private func number(_ file: String, of device: String) -> Int? {
        SystemFiles.text("\(device)/\(file)").flatMap { Int($0) }.flatMap { (1...999).contains($0) ? $0 : nil }
    }

    /// Writes what takes something away, and then what restores it, which is tried several times.
    private func writeTwice(
        _ first: String, _ second: String, to path: String
    ) throws(RecoveryFailure) {
        try write(first, to: path)
        pause(.seconds(1))
        try restore(second, to: path)
    }

    private func restore(_ text: String, to path: String) throws(RecoveryFailure) {
        for _ in 1...4 {
            do throws(RecoveryFailure) {
                return try write(text, to: path)
            } catch {
                pause(.milliseconds(500))
            }
        }
        try write(text, to: path)
    }

    private func write(
        _ text: String, to path: String, absence: RecoveryFailure = .adapterGone
    ) throws(RecoveryFailure) {
        let file = try Self.opened(path, absence: absence)
        let bytes = Array(text.utf8)
        let count = SystemCallError.repeated { unsafe Glibc.write(file.number, bytes, bytes.count) }
        guard count == bytes.count else { throw RecoveryFailure(SystemCallError(call: "write", errno: errno)) }
    }

    /// Opens a file of root's. A service may have been given a view of the system that it cannot write to.
    ///
    /// - Parameter absence: What it means that the file is not there.
    private static func opened(_ path: String, absence: RecoveryFailure) throws(RecoveryFailure) -> OwnedDescriptor {
        let number = SystemCallError.repeated { unsafe open(path, O_WRONLY | O_CLOEXEC) }
        if number >= 0 { return OwnedDescriptor(number) }
        let error = SystemCallError(call: "open", errno: errno)
        switch error.errno {
        case ENOENT: throw absence
        case EROFS: throw .notPermitted(error.description)
        default: throw RecoveryFailure(error)
        }
    }

    private static func resolved(_ path: String) -> String? {
        guard let text = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(text) }
        return unsafe String(cString: text)
    }

    private static func threeDigits(_ number: Int) -> String {
        String(repeating: "0", count: max(0, 3 - String(number).count)) + String(number)
    }

}

/// The identity of a USB device, by which it is recognized after a reset.
private struct USBIdentity {
    private let numbers: [String?]
    private let serial: String?

    /// - Parameter device: The folder of the device.
    init(_ device: String) {
        numbers = ["idVendor", "idProduct"].map { SystemFiles.text("\(device)/\($0)") }
        serial = SystemFiles.text(device + "/serial")
    }

    /// Whether both may be the same device; a missing serial number matches any.
    func mayBe(_ other: USBIdentity) -> Bool {
        numbers == other.numbers && (serial == nil || other.serial == nil || serial == other.serial)
    }
}

/// The signals that ask this program to end. They wait from its creation on: between taking something away and
/// restoring it, an end would leave the adapter without it.
package struct EndSignals: Sendable {
    private let signals: [Int32]

    /// Has the signals wait on this thread, for good.
    ///
    /// One that is ignored, as SIGHUP by a program that `nohup` has started, would wait like the others; it does not
    /// ask the program to end.
    package init(_ signals: [Int32] = [SIGINT, SIGTERM, SIGHUP]) {
        self.signals = signals.filter { !Self.isIgnored($0) }
        var mask = sigset_t()
        unsafe sigemptyset(&mask)
        for signal in signals { unsafe sigaddset(&mask, signal) }
        unsafe sigprocmask(SIG_BLOCK, &mask, nil)
    }

    /// Returns whether this program ignores a signal.
    package static func isIgnored(_ signal: Int32) -> Bool { ble_ignores_signal(signal) == 1 }

    /// A Boolean value that indicates whether one of them has come.
    package var haveCome: Bool {
        var pending = sigset_t()
        guard unsafe sigpending(&pending) == 0 else { return false }
        for signal in signals {
            if unsafe sigismember(&pending, signal) == 1 { return true }
        }
        return false
    }
}

extension RecoveryFailure {
    init(_ error: SystemCallError) {
        switch error.meaning {
        case .notPermitted: self = .notPermitted(error.description)
        case .blocked: self = .blocked
        case .adapterGone: self = .adapterGone
        default: self = .failed(error.description)
        }
    }
}

/// A request to the helper program, and its response: a packet of text each.
package struct RecoveryRequest: Hashable, Sendable {
    package let step: RecoveryPolicy.Step
    package let adapter: BluetoothAddress
    /// A Boolean value that indicates whether links may end.
    package let endsLinks: Bool

    /// The largest number of bytes in a request or a response.
    package static let byteLimit = 512
    /// Longer than the unit of the helper program lets it run and stop (`bareble-recover@.service`), in milliseconds.
    static let responseTime: Int32 = 70_000

    package init(step: RecoveryPolicy.Step, adapter: BluetoothAddress, endsLinks: Bool = false) {
        self.step = step
        self.adapter = adapter
        self.endsLinks = endsLinks
    }

    /// Decodes a request; `nil` for anything else.
    package init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2 || words.count == 3 && words[2] == "links",
            let step = RecoveryPolicy.Step(name: String(words[0])), step.endsLinks,
            let adapter = BluetoothAddress(String(words[1])), adapter != .zero
        else { return nil }
        self.init(step: step, adapter: adapter, endsLinks: words.count == 3)
    }

    package var text: String { "\(step) \(adapter)\(endsLinks ? " links" : "")" }

    /// Sends the request, and waits for the response.
    package func send(to path: String) throws(RecoveryFailure) {
        // Others may have none either.
        guard adapter != .zero else {
            throw .notPermitted("the helper program knows adapters by their addresses, and this one has none")
        }
        var socket: LinkSocket
        do throws(SystemCallError) {
            socket = try LinkSocket.connectedUnix(path: path)
        } catch {
            // So many connections wait that there is no room for another one.
            if error.errno == EAGAIN { throw .unavailable("the helper program takes no further request") }
            throw .notPermitted("the helper program is not there (\(path): \(error.description))")
        }
        try exchange(on: &socket)
    }

    /// Sends the request on a connected socket, and waits for the response for so many milliseconds.
    func exchange(on socket: inout LinkSocket, within time: Int32 = RecoveryRequest.responseTime)
        throws(RecoveryFailure)
    {
        // A service manager that starts no further process accepts the connection, and closes it.
        guard socket.send(Array(text.utf8)) == .sent else {
            throw .unavailable("the helper program took no request")
        }
        guard ble_wait_for_packet(socket.descriptor, time) > 0 else {
            throw .noResponse("the helper program did not respond in \(time / 1000) s")
        }
        guard let response = socket.receivePacket(), !response.isEmpty else {
            throw .unavailable("the helper program has ended without a response")
        }
        try Self.check(response: String(decoding: response.prefix(Self.byteLimit), as: UTF8.self))
    }

    /// The response to a request.
    package static func response(_ failure: RecoveryFailure?) -> String {
        switch failure {
        case nil: "done"
        case .notPermitted(let text): "not permitted: \(text)"
        case .linksOfOthers(let count), .linksInUse(let count): "links: \(count)"
        case .blocked: "blocked"
        case .notApplicable: "not applicable"
        case .adapterGone: "gone"
        case .underWay: "busy"
        case .refused(let text), .unavailable(let text): "refused: \(text)"
        case .noResponse(let text), .failed(let text): "failed: \(text)"
        }
    }

    static func check(response: String) throws(RecoveryFailure) {
        let parts = response.split(separator: ":", maxSplits: 1).map(String.init)
        let text = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : "it has named no reason"
        switch parts.first {
        case "done": return
        case "not permitted": throw .notPermitted("the helper program: \(text)")
        case "links": throw .linksOfOthers(Int(text) ?? 1)
        case "blocked": throw .blocked
        case "not applicable": throw .notApplicable
        case "gone": throw .adapterGone
        case "busy": throw .underWay
        case "refused": throw .refused("the helper program: \(text)")
        case "failed": throw .failed("the helper program: \(text)")
        default: throw .failed("the helper program has sent something else than a response")
        }
    }
}

/// The socket of one client of the helper program, which a service manager has accepted.
package struct RequestSocket: ~Copyable {
    private var socket: LinkSocket

    private static let requestTime: Int32 = 2_000

    /// The standard input, where it is such a socket; `nil` otherwise.
    package static var standardInput: RequestSocket? {
        let copy = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
        guard copy >= 0 else { return nil }
        return RequestSocket(adopting: copy)
    }

    /// Takes a descriptor over; `nil` for one that is no socket with packets.
    package init?(adopting descriptor: Int32) {
        var type: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        let result = unsafe getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size)
        guard result == 0, type == Int32(SOCK_SEQPACKET.rawValue) else {
            close(descriptor)
            return nil
        }
        socket = LinkSocket(adopting: descriptor)
    }

    /// Returns the request; `nil` if none comes within 2 s, or it is too long.
    package mutating func request() -> String? {
        guard ble_wait_for_packet(socket.descriptor, Self.requestTime) > 0, let bytes = socket.receivePacket(),
            bytes.count <= RecoveryRequest.byteLimit
        else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    package mutating func respond(_ text: String) {
        // A client that has gone needs no response.
        _ = socket.send(Array(text.utf8.prefix(RecoveryRequest.byteLimit)))
    }
}
