import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import Testing

/// A wait that was not ended by a callback.
struct NoCallback: Error, CustomStringConvertible {
    let wanted: String
    let recorded: [String]

    var description: String { "no callback \(wanted); there were \(recorded)" }
}

/// A delegate of everything, which keeps each callback as a line, and lets a test wait for one.
final class CallbackRecorder: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, CBPeripheralManagerDelegate,
    @unchecked Sendable
{
    private struct State {
        var lines: [String] = []
        var peripherals: [CBPeripheral] = []
        var advertisements: [[String: Any]] = []
        var errors: [any Error] = []
        var requests: [CBATTRequest] = []
        var channels: [CBL2CAPChannel] = []
        var restored: [[String: Any]] = []
        var timestamps: [CFAbsoluteTime] = []
        var waiting: [(id: Int, line: String, count: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        var lastID = 0
        /// Called on the delegate's queue with each line.
        var react: (@Sendable (String) -> Void)?
    }

    private let state = Lock(State())
    private let time: VirtualTime

    init(_ time: VirtualTime) {
        self.time = time
    }

    /// The lines of the callbacks.
    var lines: [String] { state.withLock { $0.lines } }
    /// The same without `didDiscover`: one may be on its way when a test stops its scan, and come at any time after that.
    var linesWithoutDiscoveries: [String] { lines.filter { !$0.hasPrefix("didDiscover ") } }
    var peripherals: [CBPeripheral] { state.withLock { $0.peripherals } }
    var advertisements: [[String: Any]] { state.withLock { $0.advertisements } }
    var errors: [any Error] { state.withLock { $0.errors } }
    var requests: [CBATTRequest] { state.withLock { $0.requests } }
    var channels: [CBL2CAPChannel] { state.withLock { $0.channels } }
    var restored: [[String: Any]] { state.withLock { $0.restored } }
    /// The times of the disconnections.
    var timestamps: [CFAbsoluteTime] { state.withLock { $0.timestamps } }

    func clear() {
        state.withLock { state in
            state.lines = []
            state.errors = []
        }
    }

    /// Drops all objects of CoreBluetooth.
    func forget() {
        let dropped = state.withLock { state in
            defer { state = State(lines: state.lines) }
            return state
        }
        _ = dropped
    }

    func react(_ body: @escaping @Sendable (String) -> Void) { state.withLock { $0.react = body } }

    /// Returns the first device that was discovered.
    func peripheral() throws -> CBPeripheral { try #require(peripherals.first) }

    /// Returns the number of callbacks whose lines begin with `line`.
    func count(of line: String) -> Int { lines.count { $0.hasPrefix(line) } }

    /// Waits until there were `count` callbacks whose lines begin with `line`, an hour at most.
    func wait(for line: String, count: Int = 1) async throws {
        let timeout = Lock<Task<Void, any Error>?>(nil)
        let isThere = await withCheckedContinuation { continuation in
            let id: Int? = state.withLock { state in
                if state.lines.count(where: { $0.hasPrefix(line) }) >= count { return nil }
                state.lastID += 1
                state.waiting.append((state.lastID, line, count, continuation))
                return state.lastID
            }
            guard let id else { return continuation.resume(returning: true) }
            let task = time.task { [time] in
                try await time.clock.sleep(for: .seconds(3_600))
                self.giveUp(id)
            }
            timeout.withLock { $0 = task }
        }
        timeout.withLock { $0 }?.cancel()
        guard isThere else { throw NoCallback(wanted: line, recorded: lines) }
    }

    private func giveUp(_ id: Int) {
        let continuation = state.withLock { state in
            let index = state.waiting.firstIndex { $0.id == id }
            return index.map { state.waiting.remove(at: $0).continuation }
        }
        continuation?.resume(returning: false)
    }

    private func note(_ line: String, _ error: (any Error)? = nil, _ change: (inout State) -> Void = { _ in }) {
        let (ready, react) = state.withLock { state in
            state.lines.append(line)
            if let error { state.errors.append(error) }
            change(&state)
            var ready: [CheckedContinuation<Bool, Never>] = []
            state.waiting.removeAll { waiting in
                guard line.hasPrefix(waiting.line),
                    state.lines.count(where: { $0.hasPrefix(waiting.line) }) >= waiting.count
                else { return false }
                ready.append(waiting.continuation)
                return true
            }
            return (ready, state.react)
        }
        react?(line)
        for continuation in ready { continuation.resume(returning: true) }
    }

    private func text(_ error: (any Error)?) -> String {
        guard let error else { return "nil" }
        if let error = error as? CBError { return "CB \(error.errorCode)" }
        if let error = error as? CBATTError { return "ATT \(error.errorCode)" }
        return "\(error)"
    }

    // MARK: Central manager

    func centralManagerDidUpdateState(_ central: CBCentralManager) { note("state \(central.state.rawValue)") }

    func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
        note("willRestoreState \(central.state.rawValue)") { $0.restored.append(dict) }
    }

    func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi: NSNumber
    ) {
        note("didDiscover \(peripheral.name ?? "nil") \(rssi)") { state in
            if !state.peripherals.contains(where: { $0 === peripheral }) { state.peripherals.append(peripheral) }
            state.advertisements.append(advertisementData)
        }
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        note("didConnect \(peripheral.state.rawValue)")
    }

    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?) {
        note("didFailToConnect \(text(error))", error)
    }

    func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, timestamp: CFAbsoluteTime,
        isReconnecting: Bool, error: (any Error)?
    ) {
        note("didDisconnect \(text(error)) \(isReconnecting) \(peripheral.state.rawValue)", error) {
            $0.timestamps.append(timestamp)
        }
    }

    func centralManager(
        _ central: CBCentralManager, connectionEventDidOccur event: CBConnectionEvent, for peripheral: CBPeripheral
    ) {
        note("connectionEvent \(event.rawValue)")
    }

    // MARK: Peripheral

    func peripheralDidUpdateName(_ peripheral: CBPeripheral) { note("didUpdateName \(peripheral.name ?? "nil")") }

    func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {
        note("didModifyServices \(invalidatedServices.map(\.uuid.uuidString))")
    }

    func peripheral(_ peripheral: CBPeripheral, didReadRSSI rssi: NSNumber, error: (any Error)?) {
        note("didReadRSSI \(rssi) \(text(error))", error)
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
        note("didDiscoverServices \(text(error))", error)
    }

    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: (any Error)?
    ) {
        note("didDiscoverIncludedServicesFor \(service.uuid) \(text(error))", error)
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?) {
        note("didDiscoverCharacteristicsFor \(service.uuid) \(text(error))", error)
    }

    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        note("didDiscoverDescriptorsFor \(characteristic.uuid) \(text(error))", error)
    }

    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?)
    {
        let value = characteristic.value.map { [UInt8]($0).description } ?? "nil"
        note("didUpdateValueFor \(characteristic.uuid) \(error == nil ? value : text(error))", error)
    }

    func peripheral(_ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?)
    {
        note("didWriteValueFor \(characteristic.uuid) \(text(error))", error)
    }

    func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        note("didUpdateNotificationStateFor \(characteristic.uuid) \(characteristic.isNotifying) \(text(error))", error)
    }

    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?) {
        note("didUpdateValueForDescriptor \(descriptor.uuid) \(text(error))", error)
    }

    func peripheral(_ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?) {
        note("didWriteValueForDescriptor \(descriptor.uuid) \(text(error))", error)
    }

    func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) { note("isReady") }

    func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
        note("didOpen \(channel?.psm ?? 0) \(text(error))", error) { state in
            if let channel { state.channels.append(channel) }
        }
    }

    func peripheral(_ peripheral: CBPeripheral, didCompleteChannelSoundingSession error: (any Error)?) {
        note("didCompleteChannelSoundingSession \(text(error))", error)
    }

    // MARK: Peripheral manager

    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        note("state \(peripheral.state.rawValue)")
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any]) {
        note("willRestoreState") { $0.restored.append(dict) }
    }

    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
        note("didStartAdvertising \(text(error))", error)
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
        note("didAdd \(service.uuid) \(text(error))", error)
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
    ) {
        note("didSubscribeTo \(characteristic.uuid) \(central.maximumUpdateValueLength)")
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
    ) {
        note("didUnsubscribeFrom \(characteristic.uuid)")
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        note("didReceiveRead \(request.characteristic.uuid) \(request.offset)") { $0.requests.append(request) }
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        let values = requests.map { [UInt8]($0.value ?? Data()) }
        note("didReceiveWrite \(values)") { $0.requests += requests }
    }

    func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { note("isReadyToUpdate") }

    func peripheralManager(
        _ peripheral: CBPeripheralManager, didPublishL2CAPChannel psm: CBL2CAPPSM, error: (any Error)?
    ) {
        note("didPublish \(text(error)) \(psm)", error)
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager, didUnpublishL2CAPChannel psm: CBL2CAPPSM, error: (any Error)?
    ) {
        note("didUnpublish \(text(error)) \(psm)", error)
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
        note("didOpen \(channel?.psm ?? 0) \(text(error))", error) { state in
            if let channel { state.channels.append(channel) }
        }
    }
}
