import BLECore
import BLELinux

// The parts of the kernel's management interface that are read here, and its monitor.
//
// Reading an adapter's settings switches nothing, and any user may do it. As the first management command that names
// the adapter it makes the kernel treat the adapter as a managed one, as bluetoothctl and btmgmt do when they start.
//
// Spec: Bluetooth Management API, Read Controller Information Command; Linux monitor's Control Open packet.

/// Queries about adapters that the kernel itself responds to.
enum ManagementInterface {
    private static let readInformation: UInt16 = 0x0004
    private static let patience: Duration = .seconds(2)

    /// Returns the kernel's description of an adapter; `nil` if it does not respond, or not for this one.
    static func facts(of index: UInt16) async -> ManagementFacts? {
        guard var socket = try? HCISocket(channel: .control, adapter: nil) else { return nil }
        let packet = [readInformation, index, 0].flatMap {
            [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)]
        }
        guard case .sent = socket.send(packet) else { return nil }
        var buffer = [UInt8](repeating: 0, count: HCISocket.bufferSize)
        let clock = ContinuousClock()
        let end = clock.now + patience
        while clock.now < end, !Task.isCancelled {
            guard case .packet(let count, _) = socket.receive(into: &buffer) else {
                try? await Task.sleep(for: .milliseconds(2))
                continue
            }
            if let answer = answer(in: buffer.span.extracting(first: count), about: index) { return answer.facts }
        }
        return nil
    }

    /// Decodes an event: event 2, adapter 2, length 2, then command 2, status 1 and the return parameters: address 6,
    /// version 1, company 2, supported settings 4, current settings 4, and unused ones.
    ///
    /// `nil` for events that are not a response for this adapter; a response without facts is a refusal.
    static func answer(in event: Span<UInt8>, about index: UInt16) -> (facts: ManagementFacts?, status: UInt8)? {
        var reader = ByteReader(event)
        guard let code = reader.u16(), code == 1 || code == 2, reader.u16() == index, reader.u16() != nil,
            reader.u16() == readInformation, let status = reader.u8()
        else { return nil }
        guard code == 1, status == 0, reader.skip(6), let version = reader.u8(), let company = reader.u16(),
            let supported = reader.u32(), let current = reader.u32()
        else { return (nil, status) }
        return (ManagementFacts(version: version, company: company, supported: supported, current: current), status)
    }

    /// Returns the programs with open sockets, as the monitor reports them to a new listener; `nil` without
    /// CAP_NET_RAW.
    ///
    /// This process must have none open, or it finds itself.
    static func openers() -> [SocketOpener]? {
        guard var monitor = try? HCISocket(channel: .monitor, adapter: nil) else { return nil }
        var buffer = [UInt8](repeating: 0, count: HCISocket.bufferSize)
        var found: [SocketOpener] = []
        let clock = ContinuousClock()
        let end = clock.now + patience
        // The existing ones are reported at once; events of adapters may go on without end.
        while clock.now < end, case .packet(let count, _) = monitor.receive(into: &buffer) {
            if let opener = opener(in: buffer.span.extracting(first: count)) { found.append(opener) }
        }
        return found
    }

    /// Decodes a monitor packet: kind 2, adapter 2, length 2; of kind 14 then number 4, channel 2, version 3, flags 4,
    /// length of the program's name 1, name. `nil` for all other kinds.
    static func opener(in packet: Span<UInt8>) -> SocketOpener? {
        var reader = ByteReader(packet)
        guard reader.u16() == 14, let index = reader.u16(), reader.u16() != nil, reader.skip(4),
            let channel = reader.u16(), reader.skip(3), reader.skip(4), let length = reader.u8(),
            let name = reader.array(Int(length))
        else { return nil }
        let kind: SocketOpener.Kind
        switch channel {
        case 0: kind = .raw
        case 1: kind = .user
        case 2: kind = .management
        default: return nil
        }
        return SocketOpener(
            program: String(decoding: name.prefix { $0 != 0 }, as: UTF8.self), kind: kind,
            adapter: index == 0xFFFF ? nil : index)
    }
}
