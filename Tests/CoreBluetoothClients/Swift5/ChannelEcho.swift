// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

import CoreBluetooth

/// Publishes a channel for which the link must be encrypted, with its PSM in a characteristic, and sends back what a
/// central sends on it. The streams are scheduled on the main run loop.
public class ChannelEcho: NSObject, CBPeripheralManagerDelegate, StreamDelegate {
    let service = CBUUID(string: "9D5A0005-3C7E-4B1F-8A26-E4710C95B3D8")

    var manager: CBPeripheralManager!
    var channel: CBL2CAPChannel?
    var pending: [UInt8] = []
    public var onStep: ((String) -> Void)?

    override public init() { super.init() }

    public func start() { manager = CBPeripheralManager(delegate: self, queue: .main) }

    public func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        if peripheral.state == .poweredOn { peripheral.publishL2CAPChannel(withEncryption: true) }
    }

    public func peripheralManager(
        _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: Error?
    ) {
        onStep?("published \(error == nil)")
        let number = CBMutableCharacteristic(
            type: CBUUID(string: CBUUIDL2CAPPSMCharacteristicString), properties: .read,
            value: Data([UInt8(PSM & 0xFF), UInt8(PSM >> 8)]), permissions: .readable)
        let offered = CBMutableService(type: service, primary: true)
        offered.characteristics = [number]
        peripheral.add(offered)
        peripheral.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [service]])
    }

    public func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: Error?) {
        onStep?("advertising \(error == nil)")
    }

    public func peripheralManager(
        _ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: Error?
    ) {
        guard let channel = channel else { return }
        self.channel = channel
        pending = []
        begin(channel.inputStream)
        begin(channel.outputStream)
        onStep?("opened")
    }

    func begin(_ stream: Stream) {
        stream.delegate = self
        stream.schedule(in: .main, forMode: .default)
        stream.open()
    }

    public func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        switch eventCode {
        case .hasBytesAvailable, .hasSpaceAvailable: forward()
        case .endEncountered where aStream === channel?.inputStream:
            channel?.inputStream.close()
            channel?.outputStream.close()
            channel = nil
            onStep?("closed")
        default: break
        }
    }

    func forward() {
        guard let input = channel?.inputStream, let output = channel?.outputStream else { return }
        var buffer = [UInt8](repeating: 0, count: 512)
        while true {
            if pending.isEmpty {
                guard input.hasBytesAvailable else { return }
                let count = input.read(&buffer, maxLength: buffer.count)
                guard count > 0 else { return }
                pending = Array(buffer.prefix(count))
            }
            guard output.hasSpaceAvailable else { return }
            let count = output.write(pending, maxLength: pending.count)
            guard count > 0 else { return }
            pending.removeFirst(count)
        }
    }
}
