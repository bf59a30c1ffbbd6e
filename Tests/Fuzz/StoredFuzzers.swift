// Files that were stored, or handed over. The frame around them has a checksum that no fuzzer guesses, so the input is
// what stands inside, and once more as it is.

@testable import BLECore

func fuzzCache(_ input: [UInt8]) {
    use(try? GATTCache(bytes: input))
    let form = FileEnvelope("GATT cache", signature: [0x42, 0x4C, 0x45, 0x43], version: 1, limit: GATTCache.byteLimit)
    guard let cache = try? GATTCache(bytes: form.enclose(input)) else { return }
    require(cache.database.attributeCount <= GATTDatabase.attributeLimit, "a database from a file is bounded")
    require((try? GATTCache(bytes: cache.bytes)) == cache, "a stored cache reads as itself")
    var knowledge = DatabaseState(cache: cache, validation: .whenPossible)
    knowledge.hashRead(cache.databaseHash.map { .value($0) } ?? .absent)
    _ = knowledge.serviceChanged(3...9)
    use((knowledge.cache, DatabaseHashMessage(cache.database)))
}

func fuzzDaemonState(_ input: [UInt8]) {
    use(try? RestorationState(bytes: input))
    guard let state = try? RestorationState(bytes: RestorationState.form.enclose(input)) else { return }
    require((try? RestorationState(bytes: state.bytes)) == state, "a stored state reads as itself")
}

func fuzzLinkState(_ input: [UInt8]) {
    use(try? LinkState(bytes: input))
    let form = FileEnvelope("link state", signature: [0x42, 0x4C, 0x45, 0x4C], version: 1, limit: 1 << 19)
    guard let state = try? LinkState(bytes: form.enclose(input)) else { return }
    require((try? LinkState(bytes: state.bytes)) == state, "a link's state reads as itself")
    let now = BootInstant(nanoseconds: 1_000_000_000)
    var client = GATTClient(limits: ATTQueue.Limits(), remains: state.client, at: now)
    require((23...517).contains(client.mtu), "the MTU is one that there can be")
    use(client.resume(at: now))
}
