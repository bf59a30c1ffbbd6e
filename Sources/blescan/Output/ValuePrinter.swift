import BLECore
import BareBLE

/// Prints values that come again and again, for `notify` and `watch`: the header first, then a line or a plot for each.
struct ValuePrinter {
    private let lines: OperationOutput
    private var plots: PlotOutput?
    private let output: LineOutput
    private var hasHeader = false
    private var hasPrinted = false

    init(_ lines: OperationOutput, plots: PlotOutput?, to output: LineOutput) {
        self.lines = lines
        self.plots = plots
        self.output = output
    }

    /// Prints the header now, before the first value.
    mutating func begin() async throws {
        guard !hasHeader else { return }
        hasHeader = true
        if let header = lines.header { _ = try await write(header) }
    }

    /// Prints a value that was read; returns whether the reader of the output has taken it.
    mutating func print(_ reading: ReadValue, label: String?) async throws -> Bool {
        let line = plotted(reading.value, at: reading.handle, reading.uuid, label)
        return try await print(
            line
                ?? lines.line(ofReading: reading.value, at: reading.handle, reading.uuid, label: label, isTimed: true))
    }

    /// Prints the signal strength of the link; returns whether the reader of the output has taken it.
    mutating func print(rssi: Int, label: String?) async throws -> Bool {
        let line = plots?.line(ofRSSI: rssi, label: label, in: Console.width ?? 80)
        return try await print(line ?? lines.line(ofRSSI: rssi, label: label))
    }

    /// Prints a value that the peer has sent; returns whether the reader of the output has taken it.
    mutating func print(_ value: ReceivedValue, _ uuid: BluetoothUUID?, label: String?) async throws -> Bool {
        if value.droppedBefore > 0, !lines.isJSON {
            Console.note("\(value.droppedBefore.counted("value")) dropped here")
        }
        let line = plotted(value.bytes, at: value.handle, uuid, label)
        return try await print(line ?? lines.line(of: value, uuid, label: label))
    }

    /// No value follows.
    func end() {
        plots?.end()
    }

    private mutating func plotted(
        _ bytes: [UInt8], at handle: AttributeHandle, _ uuid: BluetoothUUID?, _ label: String?
    ) -> [UInt8]? {
        plots?.line(of: bytes, at: handle, uuid, label: label, in: Console.width ?? 80)
    }

    private mutating func print(_ line: [UInt8]) async throws -> Bool {
        if !hasPrinted { Console.progress.end() }
        hasPrinted = true
        try await begin()
        guard try await write(line) else { return false }
        plots?.wrote()
        return true
    }

    private func write(_ line: [UInt8]) async throws -> Bool {
        let outcome = try await output.write(line)
        if outcome == .closed { Interrupt.end(.done) }
        return outcome == .written
    }
}
