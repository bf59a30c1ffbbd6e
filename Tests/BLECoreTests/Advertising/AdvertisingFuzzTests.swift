import BLECore
import BLEProfiles
import TestSupport
import Testing

/// Damages every recorded report at every byte: whatever a radio or a hostile device sends, nothing traps and every
/// walk ends.
@Suite(.enabled(if: SharedVectors.available(for: "AdvertisingFuzzTests")))
struct AdvertisingFuzzTests {
    @Test func everyPrefixOfEveryEventIsParsed() throws {
        for event in try AdvertisingVectors.events() {
            let packet = try Hex.decode(event.hex)
            for length in 0..<packet.count { consume(Array(packet[..<length])) }
        }
    }

    @Test(arguments: [0x01, 0xFF] as [UInt8])
    func everyByteOfEveryEventFlipped(mask: UInt8) throws {
        for event in try AdvertisingVectors.events() {
            var packet = try Hex.decode(event.hex)
            for index in packet.indices {
                packet[index] ^= mask
                consume(packet)
                packet[index] ^= mask
            }
        }
    }

    @Test func everyPayloadCutAndFlipped() throws {
        for record in try AdvertisingVectors.payloads() {
            var bytes = try Hex.decode(record.hex)
            for index in bytes.indices {
                readEverything(AdvertisingData(Array(bytes[..<index])))
                bytes[index] ^= 0xFF
                readEverything(AdvertisingData(bytes))
                bytes[index] ^= 0xFF
            }
        }
    }

    /// Values of every length for every type, filled with the same byte: no typed view reads past its value.
    @Test(arguments: [0x00, 0xFF] as [UInt8])
    func everyTypeIsParsedAtEveryLength(fill: UInt8) {
        for type in 0...UInt8.max {
            for length in 0...40 {
                let value = [UInt8](repeating: fill, count: length)
                readEverything(AdvertisingData([UInt8(length + 1), type] + value))
            }
        }
    }

    private func consume(_ packet: [UInt8]) {
        var assembler = ReportAssembler()
        for report in AdvertisingVectors.parse(packet)?.reports ?? [] {
            guard let whole = assembler.received(report, at: .zero) else { continue }
            var count = 0
            whole.advertisingData.forEachStructure { _, value in count += value.count }
            if count > 255 { Issue.record("more than there is") }
        }
    }

    private func readEverything(_ data: AdvertisingData) {
        var all: [Any] = [data.structures, data.defects, data.serviceUUIDs, data.solicitedServiceUUIDs]
        all += [data.serviceData, data.manufacturerData, data.targetAddresses, data.transportDiscovery]
        let views: [Any?] = [
            data.flags, data.name?.printable, data.broadcastName, data.txPowerLevel, data.appearance,
            data.classOfDevice,
            data.leRole, data.deviceAddress, data.uri?.text, data.deviceID, data.connectionIntervalRange,
            data.advertisingInterval, data.leSupportedFeatures, data.channelMapUpdate, data.periodicResponseTiming,
            data.bigInfo, data.securityManagerTKValue, data.outOfBandFlags, data.resolvableSetIdentifier,
            data.encryptedData, data.meshProvisioning, data.meshMessage, data.meshBeacon, data.indoorPositioning,
            data.threeDInformation, data.electronicShelfLabel, data.broadcastCode, data.iBeacon, data.eddystone,
            data.altBeacon, data.decoded,
        ]
        if views.count + all.count == 0 { Issue.record("nothing was read") }
    }
}
