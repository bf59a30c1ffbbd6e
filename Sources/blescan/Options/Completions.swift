import ArgumentParser
import BLECore
import BLELinux
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

    /// The same, each before the equals sign and the bytes to write.
    static let written = CompletionKind.custom { words, _, word in
        word.contains("=") ? [] : attributes(words, word).map { $0 + "=" }
    }

    /// What can be served: virtual devices, and files.
    static let served = CompletionKind.custom { _, _, word in matching(word, virtualPeers) + files(word) }

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

    private static var knownPeers: [String] { virtualPeers + bondedDevices }

    private static var virtualPeers: [String] { VirtualDevice.presets.map { "demo:" + $0.name } }

    /// Returns the paths that begin with `word`, those of directories with a slash. bash expands what it is offered, so
    /// paths with characters that have a meaning in a shell are left out.
    private static func files(_ word: String) -> [String] {
        let folder = word.lastIndex(of: "/").map { String(word[...$0]) } ?? ""
        let start = String(word.dropFirst(folder.count))
        let names = SystemFiles.names(in: folder.isEmpty ? "." : folder).filter { name in
            name.hasPrefix(start) && (start.hasPrefix(".") || !name.hasPrefix("."))
        }
        let paths = names.map { name in
            SystemFiles.isFolder(folder + name) ? folder + name + "/" : folder + name
        }
        return paths.filter { path in
            path.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "._-+,@%/".contains($0)) }
        }
    }

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
