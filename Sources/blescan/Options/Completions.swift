import ArgumentParser
import BLECore
import BareBLE
import BareBLETestKit

/// What a shell offers at the place of an argument: only what is known without privileges and without a radio.
enum Completions {
    /// Virtual devices, the devices that this user has bonds with, and what a device may advertise.
    static let peer = CompletionKind.custom { _, _, word in
        let services = AssignedNumbers.serviceNames.map { "service:" + NearNames.written($0) }
        let advertised = word.hasPrefix("service:") ? services : ["name:", "service:"]
        return matching(word, knownPeers + advertised)
    }

    /// The names of all services.
    static let service = CompletionKind.custom { _, _, word in
        matching(word, AssignedNumbers.serviceNames.map(NearNames.written))
    }

    /// The devices whose addresses are known: virtual ones, and those that this user has bonds with.
    static let knownPeer = CompletionKind.custom { _, _, word in matching(word, knownPeers) }

    /// The devices that this user has bonds with.
    static let bond = CompletionKind.custom { _, _, word in matching(word, bondedDevices) }

    /// The adapters of this machine.
    static let adapter = CompletionKind.custom { _, _, word in
        matching(word, ((try? Central.adapters()) ?? []).map { "hci\($0.index)" })
    }

    /// The adapters of this machine, and virtual ones, which are tested.
    static let testedAdapter = CompletionKind.custom { _, _, word in
        matching(word, ((try? Central.adapters()) ?? []).map { "hci\($0.index)" } + SelfTestDemo.allNames)
    }

    /// The attributes of the peer on the command line, if it is a virtual device or its attributes are in the file of
    /// `--cache`; otherwise the names of all characteristics.
    static let attribute = CompletionKind.custom { words, _, word in attributes(words, word) }

    /// The same, and the signal strength where there is a radio.
    static let watched = CompletionKind.custom { words, _, word in
        attributes(words, word) + (Self.peer(in: words)?.isInTheAir == false ? [] : matching(word, ["rssi"]))
    }

    private static func attributes(_ words: [String], _ word: String) -> [String] {
        guard let known = characteristics(of: words) else {
            // Without a letter there are too many.
            return word.isEmpty ? [] : matching(word, AssignedNumbers.characteristicNames.map(NearNames.written))
        }
        let handles = known.compactMap(\.handle).map { CharacteristicReference.handle($0).description }
        return matching(word, word.hasPrefix("0x") ? handles : names(of: known.map(\.uuid)))
    }

    /// Returns the words for characteristics, each once: their names, or their UUIDs if they have none.
    static func names(of characteristics: [BluetoothUUID]) -> [String] {
        var seen: Set<String> = []
        let names = characteristics.map { uuid in
            AssignedNumbers.characteristicName(uuid).map(NearNames.written) ?? uuid.description
        }
        return names.filter { seen.insert($0).inserted }
    }

    private static func characteristics(of words: [String]) -> [(handle: AttributeHandle?, uuid: BluetoothUUID)]? {
        guard let peer = Self.peer(in: words) else { return nil }
        if case .demo(let name) = peer {
            let services = VirtualPeer(named: name)?.device.services
            return services?.flatMap { $0.characteristics.map { (nil, $0.uuid) } }
        }
        guard let path = value(of: "--cache", in: words),
            let cache = try? GATTCacheFile(path, of: peer.identity.printable).load()
        else { return nil }
        return cache.database.characteristics.map { ($0.valueHandle, $0.uuid) }
    }

    private static func peer(in words: [String]) -> PeerArgument? {
        words.dropFirst(2).lazy.compactMap { try? PeerArgument(argument: $0) }.first
    }

    /// Returns the value of an option, in a word of its own or after an equals sign.
    private static func value(of option: String, in words: [String]) -> String? {
        if let joined = words.lazy.compactMap({ $0.dropped(prefix: option + "=") }).first { return joined }
        return words.firstIndex(of: option).flatMap { words.dropFirst($0 + 1).first }
    }

    private static var knownPeers: [String] { VirtualDevice.presets.map { "demo:" + $0.name } + bondedDevices }

    private static var bondedDevices: [String] {
        // A user without bonds has no directory, which is no error.
        guard let path = BondDirectory.usual(), let stored = try? BondDirectory(usual: path).stored() else { return [] }
        return Set(stored.flatMap(\.records).map(\.identity.address.description)).sorted()
    }

    /// Letters of addresses may be typed in any case.
    private static func matching(_ word: String, _ all: [String]) -> [String] {
        all.filter { $0.lowercased().hasPrefix(word.lowercased()) }
    }
}
