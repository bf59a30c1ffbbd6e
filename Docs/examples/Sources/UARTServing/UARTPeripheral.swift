public import BareBLE
public import ServiceLifecycle
internal import UARTBridging

/// A serial port for centrals over an LE channel: what a central sends can be read from a terminal, and what is written
/// to the terminal goes to the central.
///
/// The terminal is there while a central has a channel, like the device of a USB cable that is plugged in. Further
/// channels wait until the first one ends. Both directions have flow control from end to end, and no byte is lost while
/// the channel is open: the kernel grants a central credits only as fast as a program reads the terminal.
public struct UARTPeripheral: Service, CustomStringConvertible {
    /// The service that names the PSM.
    public static let service = BluetoothUUID("4c9a0001-6b1f-4e0d-9d53-7f0b8a2c61e4")
    /// What it advertises.
    public static let advertisement: Advertisement = [
        .flags([.generalDiscoverable, .classicNotSupported]), .services([service]), .localName("UART"),
    ]

    private let peripheral: LocalPeripheral
    private let listener: ChannelListener
    private let link: String
    private let report: @Sendable (String) -> Void

    /// Creates a serial port of this peripheral, and publishes where centrals find it. Programs open it at `link`.
    ///
    /// - Throws: `BLEError` with the errors of `LocalPeripheral.listenForChannels(psm:security:_:)` and `publish(_:)`.
    public init(
        _ peripheral: LocalPeripheral, linkedAt link: String, report: @escaping @Sendable (String) -> Void
    ) async throws(BLEError) {
        self.peripheral = peripheral
        self.link = link
        self.report = report
        listener = try await peripheral.listenForChannels(ChannelListener.Options(maximumChannels: 1))
        try await peripheral.publish(
            LocalService(Self.service, [LocalCharacteristic(.l2capPSM, .read, value: .fixed(listener.psm))]))
    }

    /// The service's name in the log.
    public var description: String { "UART peripheral" }

    /// Where a test attaches a channel.
    package var channels: ChannelListener { listener }

    /// Carries bytes until the daemon is stopped; then the channels and the links end.
    ///
    /// - Throws: `TerminalError` if there can be no terminal.
    public func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await serve() }
        } catch {
            await peripheral.stop()
            throw error
        }
        await peripheral.stop()
    }

    private func serve() async throws {
        for try await incoming in listener.channels {
            let name = incoming.central.name
            do {
                try await carry(incoming.channel, of: name)
                report("\(name) has closed its channel")
            } catch let error as BLEError {
                report("\(name) is gone: \(error)")
            } catch is CancellationError {
                await incoming.channel.close()
            }
        }
    }

    /// Carries both directions; the end of one ends the other.
    private func carry(_ channel: L2CAPChannel, of name: String) async throws {
        let terminal = try PseudoTerminal(linkedAt: link)
        defer { terminal.removeLink() }
        report("\(name) has opened a channel: terminal \(terminal.path)")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for try await packet in channel.packets { try await terminal.write(packet) }
            }
            group.addTask {
                let length = min(channel.sendMTU, 4_096)
                while true { try await channel.send(try await terminal.read(upTo: length)) }
            }
            defer { group.cancelAll() }
            _ = try await group.next()
        }
    }
}
