import BLECore
import BLELinux

// Commands to one controller, one at a time, for a program that has nothing else to do meanwhile.
//
// The socket is beside the kernel's own host: completions of others' commands arrive here too, and ours is recognized
// by its opcode. Nothing blocks: the kernel's Bluetooth sockets hold a lock while they are read.

/// A raw channel to a controller, for commands and events.
struct ControllerDialogue: ~Copyable {
    /// The result of a command.
    struct Response: Hashable, Sendable {
        let result: CommandResult
        /// The return parameters after the status; empty unless the command succeeded.
        let values: [UInt8]
    }

    /// The kernel's timeout for a command is two seconds.
    private static let commandTimeout: Duration = .milliseconds(2500)
    private static let pause: Duration = .milliseconds(2)
    /// More than the kernel keeps for a socket that is not read.
    private static let queueLimit = 512
    /// The place of the subevent code in an LE Meta event, after the packet's type, the event code and the length.
    private static let subeventOffset = 3
    /// LE Advertising Report.
    private static let legacyReports: UInt8 = 0x02

    private var socket: HCISocket
    private var buffer = [UInt8](repeating: 0, count: HCISocket.bufferSize)

    /// Opens the channel; without CAP_NET_RAW no LE event arrives.
    init(adapter index: UInt16) throws(SystemCallError) {
        let opened = try HCISocket(adapter: index)
        try opened.setFilter(HCIFilter(events: [0x0E, 0x0F, 0x3E]))
        socket = opened
    }

    /// Adopts a socket that stands in for one of the kernel.
    init(adopting socket: consuming HCISocket) {
        self.socket = socket
    }

    /// Sends a command and waits for its response, even in a cancelled task: a scan has to be ended all the same.
    mutating func ask(_ packet: HCICommandPacket) async -> Response {
        let command = packet.opcode.rawValue
        let none = Response(result: CommandResult(command: command, status: nil), values: [])
        guard case .sent = socket.send(packet.bytes) else { return none }
        let clock = ContinuousClock()
        let end = clock.now + Self.commandTimeout
        while clock.now < end {
            guard let event = next() else {
                await Self.rest()
                continue
            }
            if case .commandComplete(let complete) = event, complete.opcode == packet.opcode {
                guard let status = complete.returnParameters.first else { return none }
                let values = status == 0 ? Array(complete.returnParameters.dropFirst()) : []
                return Response(result: CommandResult(command: command, status: status), values: values)
            }
            if case .commandStatus(let status) = event, status.opcode == packet.opcode {
                return Response(result: CommandResult(command: command, status: status.status.rawValue), values: [])
            }
        }
        return none
    }

    /// Counts the advertising reports of a time, with those that wait to be read at its end; cancellation of the task
    /// ends it.
    mutating func listen(for time: Duration) async -> HeardFacts {
        let clock = ContinuousClock()
        let start = clock.now
        var heard = HeardFacts(milliseconds: time.milliseconds)
        var fromLegacyScan = 0
        var addresses: Set<BluetoothAddress> = []
        var remaining = Self.queueLimit
        while !Task.isCancelled, remaining > 0 {
            let isOver = clock.now >= start + time
            if isOver { remaining -= 1 }
            guard let event = next() else {
                if isOver { break }
                await Self.rest()
                continue
            }
            guard case .advertisingReports(let batch) = event else { continue }
            if buffer.dropFirst(Self.subeventOffset).first == Self.legacyReports {
                fromLegacyScan += batch.reports.count
            }
            for report in batch.reports {
                heard.reports += 1
                if report.payload.isEmpty { heard.empty += 1 }
                if report.isLegacy { heard.legacy += 1 }
                if let address = report.address { addresses.insert(address) }
            }
        }
        heard.addresses = addresses.count
        heard.fromLegacyScan = fromLegacyScan
        return heard
    }

    /// Returns the next event; `nil` if there is none. A packet of another type counts as an empty event.
    private mutating func next() -> HCIEvent? {
        guard case .packet(let count, let length) = socket.receive(into: &buffer) else { return nil }
        guard length == count, count > 1, buffer.first == HCIPacketType.event.rawValue else { return .emptyMeta }
        let packet = buffer.span.extracting(first: count)
        return (try? HCIEvent(packet.extracting(droppingFirst: 1))) ?? .emptyMeta
    }

    /// Pauses shortly, even in a cancelled task.
    private static func rest() async {
        await Task { try? await Task.sleep(for: pause) }.value
    }
}
