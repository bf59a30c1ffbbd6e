import ArgumentParser
import BLECore
import BareBLE
import BareBLETestKit

/// What a shell offers at the place of an argument: only what is known without privileges and without a radio.
enum Completions {
    /// Virtual devices, and the devices that this user has bonds with.
    static let peer = CompletionKind.custom { _, _, word in
        matching(word, VirtualDevice.presets.map { "demo:" + $0.name } + bondedDevices)
    }

    /// The devices that this user has bonds with.
    static let bond = CompletionKind.custom { _, _, word in matching(word, bondedDevices) }

    /// The adapters of this machine.
    static let adapter = CompletionKind.custom { _, _, word in
        matching(word, ((try? Central.adapters()) ?? []).map { "hci\($0.index)" })
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
