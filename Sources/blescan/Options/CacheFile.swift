import BareBLE

/// The file of `--cache`. Trouble with it is told once and is no failure of the command, and a file that is not a cache of
/// this peer is left as it is: whoever mistypes a name must not lose what has it.
struct CacheFile: Sendable {
    private let file: GATTCacheFile
    private var loaded: GATTCache?
    private var isToldOfTrouble = false

    /// The file for `peer`, whose name it has inside.
    init(_ path: String, of peer: PeerArgument) {
        file = GATTCacheFile(path, of: peer.identity.printable)
    }

    /// What the file holds; `nil` for one that is not there or cannot be used.
    mutating func load() -> GATTCache? {
        do {
            loaded = try file.load()
        } catch {
            Console.note("blescan: \(error.description.printable)")
            isToldOfTrouble = true
        }
        return loaded
    }

    /// Writes what is known of the peer, where the file holds something else.
    func keep(_ peripheral: Peripheral) async {
        do {
            guard let cache = try await peripheral.cache(), cache != loaded, file.mayBeReplaced else { return }
            try file.save(cache)
        } catch {
            if !isToldOfTrouble { Console.note("blescan: \(error.description.printable)") }
        }
    }
}
