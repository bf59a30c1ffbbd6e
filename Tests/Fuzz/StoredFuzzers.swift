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

/// The table of clients, and a link that is served, as a restart finds them.
func fuzzServed(_ input: [UInt8]) {
    use(try? ClientTable(bytes: input))
    use(try? ServedLinkState(bytes: input))
    let clients = FileEnvelope("client table", signature: [0x42, 0x4C, 0x45, 0x57], version: 1, limit: 1 << 20)
    if let table = try? ClientTable(bytes: clients.enclose(input)) {
        require((try? ClientTable(bytes: table.bytes)) == table, "a stored table reads as itself")
        require(table.count <= ClientTable.limit, "a table from a file is bounded")
    }
    let links = FileEnvelope("served link", signature: [0x42, 0x4C, 0x45, 0x56], version: 1, limit: 1 << 21)
    guard let state = try? ServedLinkState(bytes: links.enclose(input)) else { return }
    require((try? ServedLinkState(bytes: state.bytes)) == state, "a served link reads as itself")
    var database = ServerDatabase(name: "Fuzz", appearance: 0)
    let now = BootInstant(nanoseconds: 1_000_000_000)
    let change = database.outline.difference(from: state.outline)
    var server = GATTServer(
        limits: GATTServer.Limits(mtu: state.server.offeredMTU), remains: state.server, change: change, in: database,
        at: now)
    require(server.mtu >= 23 && server.mtu <= state.server.offeredMTU, "the MTU is one that there can be")
    use(server.resume(in: database))
    use(server.received([0x18, 1], in: &database, at: now))
    use(server.timePassed(in: database, at: now + .seconds(31)))
    use(server.ended(in: database))
}

/// The lines of a file of bonds: those that are bonds read as themselves, and none shows a key.
func fuzzBonds(_ input: [UInt8]) {
    use(try? BondFile(bytes: input))
    if let peer = BondFile.peers(ofUnused: input).first {
        let rest = BondFile.bytes(ofUnused: input, without: peer)
        require(rest.map { !BondFile.peers(ofUnused: $0).contains(peer) } == true, "what is forgotten is gone")
    }
    let body = Array("BareBLE bonds 1 generation 7\n".utf8) + input + [0x0A]
    let checksum = CRC32.checksum(body)
    let digits = Hex.encode([24, 16, 8, 0].map { UInt8(truncatingIfNeeded: checksum >> UInt32($0)) })
    guard let file = try? BondFile(bytes: body + Array("checksum \(digits)\n".utf8)) else { return }
    let lines = input.split(separator: 0x0A, omittingEmptySubsequences: false).count
    require(file.records.count + file.damagedLines.count == lines, "each line is a bond or is reported")
    let again = try? BondFile(bytes: file.bytes)
    require(again?.records == file.records && again?.damagedLines.isEmpty == true, "stored bonds read as themselves")
    for record in file.records {
        for other in file.records {
            let accepted = try? BondRules.accept(
                record, isForStorage: true, replacing: record.identity, minimumKeySize: 7, among: [other])
            require(accepted.map { ($0.centralKey?.size ?? 0) >= 7 } ?? true, "a stored key has a size")
        }
    }
    let lists = BondRules.keyLists(of: file.records)
    require(lists.longTermKeys.keys.allSatisfy { $0.kind.rawValue < 4 && $0.size <= 16 }, "the kernel skips no key")
    let owners = Set(lists.longTermKeys.keys.map(\.peer))
    let omitted = Set(lists.omissions.map(\.identity))
    require(
        file.records.allSatisfy { owners.contains(ManagementPeer($0.identity)) || omitted.contains($0.identity) },
        "what is not loaded is reported")
}
