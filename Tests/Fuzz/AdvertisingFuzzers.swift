@testable import BLECore
@testable import BLEProfiles

/// Whatever the cipher makes of encrypted data is decoded too: with these keys, the data itself.
private let keysThatOpenEverything: AdvertisementKeys = {
    var keys = AdvertisementKeys { $0.bytes }
    for first in [0x00, 0xAA] as [UInt8] {
        keys.set([first] + [UInt8](repeating: 0, count: 15), for: BluetoothAddress(rawValue: UInt64(first)))
    }
    return keys
}()

func fuzzAdvertisingData(_ input: [UInt8]) {
    let data = AdvertisingData(input)
    let structures = data.structures
    require(structures.reduce(0) { $0 + $1.value.count + 2 } <= input.count, "structures are part of the payload")
    use((data.defects, data.flags, data.localName?.text, data.shortenedLocalName, data.broadcastName))
    use((data.txPowerLevel, data.appearance, data.classOfDevice, data.leRole, data.deviceAddress, data.targetAddresses))
    use((data.uri, data.deviceID, data.meshProvisioning, data.meshMessage, data.meshBeacon, data.transportDiscovery))
    use((data.indoorPositioning, data.threeDInformation, data.electronicShelfLabel, data.outOfBandFlags))
    use((data.securityManagerTKValue, data.resolvableSetIdentifier, data.encryptedData, data.broadcastCode))
    use((data.serviceUUIDs, data.solicitedServiceUUIDs, data.hasIncompleteServiceList))
    use((data.serviceData, data.manufacturerData, data.connectionIntervalRange?.shortest, data.advertisingInterval))
    use((data.leSupportedFeatures, data.channelMapUpdate, data.periodicResponseTiming, data.eddystone, data.iBeacon))
    use((data.altBeacon, data.decoded.map(\.description)))
    use(data.decoded(with: keysThatOpenEverything, from: nil).map(\.description))
}

func fuzzHCIEvent(_ input: [UInt8]) {
    guard let event = try? HCIEvent(input.span) else { return }
    guard case .advertisingReports(let batch) = event else { return }
    for report in batch.reports { require(report.data.count <= input.count, "a report's data is part of its event") }
}

/// Several events in a row, through everything that a scan does with them.
func fuzzReports(_ input: [UInt8]) {
    var script = FuzzInput(input)
    var assembler = ReportAssembler()
    var table = DeviceTable(capacity: 4)
    var pinned: Set<PeerID> = []
    var gate = ScanGate(.passive.duplicates([.changed, .all, .every(.seconds(1))][Int(script.byte() % 3)]))
    var list = DeviceList()
    var now = BootInstant.zero
    var received = 0
    while !script.isAtEnd {
        let pause = script.pause()
        now = now + pause
        guard let event = try? HCIEvent(script.piece().span), case .advertisingReports(let batch) = event else {
            continue
        }
        for report in batch.reports {
            received += report.data.count
            guard let whole = assembler.received(report, at: now) else { continue }
            require(whole.data.count <= ReportAssembler.limit, "assembled data is bounded")
            fuzzAdvertisingData(whole.data)
            if let peer = whole.peer, script.byte() & 15 == 0 {
                pinned.insert(peer)
                table.pin(pinned)
            }
            guard let outcome = table.record(whole, at: now) else { continue }
            let scanResult = table[outcome.place]
            for evicted in outcome.evicted {
                list.lost(evicted)
                _ = gate.forget(evicted.id)
            }
            if gate.admit(scanResult, outcome.change, at: now, listened: .zero) != nil { list.heard(scanResult) }
        }
        require(assembler.openChains <= ReportAssembler.capacity, "open chains are bounded")
        require(table.count <= 4 && table.scanResults.count == table.count, "the table is bounded")
        for lost in table.expire(olderThan: now.advanced(by: .seconds(-60))) {
            list.lost(lost)
            require(table[lost.id] == nil, "what is lost is not in the table")
        }
        if let change = list.takeChange() { require(!change.isEmpty, "a change changes something") }
    }
}
