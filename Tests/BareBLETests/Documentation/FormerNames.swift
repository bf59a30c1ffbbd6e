import BLECapture
import BLECore
import BLEProfiles
import BareBLE
import BareBLETestKit

// Former names, which work for one release. Nothing here runs: it must compile, as it did with the release before.

@available(*, deprecated)
func formerNamesOfSubscriptions(_ device: Peripheral, _ session: Session) async throws {
    let several: NotificationSequence = try await device.notifications(of: [0x2A19, .handle(3)])
    for try await value in several { print(value.handle, several.handles) }
    let values: SessionValues<ReceivedValue> = await session.values(of: 0x2A19)
    var iterator: SessionValues<ReceivedValue>.AsyncIterator = values.makeAsyncIterator()
    let element: SessionValues<ReceivedValue>.Element? = try await iterator.next()
    if case .value(let value) = element { print(value.bytes) }
    for try await element in await session.values(of: CharacteristicKey<UInt8>(0x2A19)) { print(element) }
}

@available(*, deprecated)
func formerNamesOfSequences(_ session: Session, _ central: Central, _ monitor: DeviceMonitor) async throws {
    let events: ConnectionEvents = session.events
    var iterator: ConnectionEvents.AsyncIterator = events.makeAsyncIterator()
    _ = try await iterator.next()
    let states: AdapterStates = central.adapterStates
    for try await state in states where state == .poweredOn { break }
    let changes: DeviceMonitor.Changes = monitor.changes
    for try await change in changes { print(change.left) }
}

/// A switch over all events of sessions: a further case would break the source of programs.
@available(*, deprecated)
func formerCasesOfEvents(_ event: ConnectionEvent) {
    switch event {
    case .connecting(let attempt): print(attempt)
    case .disconnected(let loss): print(loss.error)
    case .servicesChanged(let handles): print(handles)
    case .gaveUp(let error): print(error)
    case .missed(let count): print(count)
    case .connected, .ready, .ended: print(event)
    }
}

@available(*, deprecated)
func formerNamesOfDiscoveryAndReads(_ device: Peripheral) async throws {
    try await device.discover(.full)
    try await device.discover(.full, ignoringCache: true, timeout: .seconds(1))
    try await device.discover(.full, afresh: true)
    try await device.discover(services: [0x180F], level: .full, afresh: true)
    let joined = try await device.readMultiple([3, 5])
    let separated = try await device.readMultiple([3, 5], lengths: [1])
    let variable = try await device.readMultipleVariable([3, 5], timeout: .seconds(1))
    print(joined == [1], separated == [[1]], variable == [[1]])
}

@available(*, deprecated)
func formerNamesOfStatistics(_ statistics: ATTStatistics, _ adapter: AdapterStatistics, _ link: DetachedLink) {
    var statistics = statistics
    statistics.unwantedValues += 1
    statistics.shortValues += 1
    print(statistics.answers, statistics.lateAnswers, statistics.malformedAnswers, statistics.unexplainedAnswers)
    print(statistics.oversizedAnswers, adapter.unansweredCommands, link.hasUnansweredRequest)
}

@available(*, deprecated)
func formerNamesOfRestoration(
    _ state: DaemonState, _ peer: RestoredPeer, _ values: RestoredValues, _ scan: RestoredScan
) {
    let wanted: (WantedPeer, WantedSubscription, WantedScan) = (peer.wanted, values.wanted, scan.wanted)
    print(state, wanted, wanted.0.provenAfter, SessionOptions(provenAfter: .seconds(1)).provenAfter)
}

@available(*, deprecated)
func formerNamesOfScansAndLinks(_ central: Central, _ device: Peripheral, _ monitored: MonitoredDevice, _ peer: PeerID)
    async throws
{
    let result: Sighting? = await central.sighting(of: peer) ?? monitored.sighting
    print(result == nil, LEPHYs.coded)
    await device.disconnect(.afterQueue)
    try await device.exclusively(.waiting) { _ in }
    try await device.exclusively(.failFast) { _ in }
    let framing: Assembly = .length(3)
    print(framing)
}

@available(*, deprecated)
func formerNamesOfProfilesAndCaptures(
    _ data: AdvertisingData, _ result: ScanResult, _ response: any ControlPointAnswer, _ summary: PacketPrinter.Summary
) {
    let decoded: [AdvertisementMeaning] = data.meanings + result.meanings
    print(decoded == data.structures.compactMap { data.meaning(of: $0) }, response)
    var summary = summary
    summary.slowestReply = .seconds(1)
    print(summary.slowestReply == nil)
}

@available(*, deprecated)
func formerNamesOfVirtualDevices(_ radio: VirtualRadio, _ peripheral: VirtualPeripheral) async {
    await peripheral.stopAnswering()
    await peripheral.resumeAnswering()
    await radio.hangUp(peripheral)
    await radio.hangUp(peripheral, because: .localHostTerminated)
    await radio.interrupt(peripheral, afterPDU: 1, by: .hangUp(.remoteUserTerminated))
    let recovery: VirtualPersonality.Recovery = .replug
    print(recovery)
}

@available(*, deprecated)
func formerNamesOfTypesThatAreNested() {
    let advertising: [Any.Type] = [
        LERole.self, DeviceID.self, AdvertisedURI.self, MeshProvisioning.self, MeshBeacon.self, TransportBlock.self,
        ThreeDInformation.self, OutOfBandFlags.self, ResolvableSetIdentifier.self, EncryptedAdvertisingData.self,
        ConnectionIntervalRange.self, ChannelMapUpdate.self, PeriodicResponseTiming.self, BIGInfo.self,
        AdvertisingFlags.self, AddressKind.self,
    ]
    let attributes: [Any.Type] = [
        GATTInclude.self, GATTQuirk.self, DiscoveryCoverage.self, CacheValidation.self,
        CharacteristicAggregateFormat.self, CharacteristicExtendedProperties.self,
        CharacteristicPresentationFormat.self, PresentedValue.self, ValidRange.self,
        ClientCharacteristicConfiguration.self, ServerCharacteristicConfiguration.self,
    ]
    let links: [Any.Type] = [
        ServiceChange.self, AttributeReading.self, WriteKind.self, DisconnectMode.self, QueuedCall<Int>.self,
        ActiveSubscription.self, RestoredSubscription.self, LinkPHY.self, ChannelOptions.self, SecurityRequest.self,
        SubscriptionKind.self, SubscriptionSharing.self, MalformedValuePolicy.self,
    ]
    let sessions: [Any.Type] = [
        SessionOptions.self, Disconnection.self, SessionState.self, ConnectionEvent.self, SessionHandlers.self,
        StateStatus.self, RestoredPeer.self, RestoredValues.self, RestoredScan.self,
    ]
    print(advertising, attributes, links, sessions)
}
