import BLECore
import BareBLE

// Check 16: the bonds of this user, and what the kernel has of them.
extension Check {
    static func bonds(_ facts: SystemFacts) -> [Finding] {
        guard let found = facts.bonds else { return [.ok("bonds", "no bonds")] }
        if let failure = found.failure {
            return [
                .warn(
                    "bonds-refused", "\(found.directory) is not used: \(failure)",
                    remedy: found.remedy ?? "name another directory with --bonds")
            ]
        }
        var findings = found.damage.map { reason in
            Finding.warn(
                "bonds-damaged", reason,
                remedy: "restore \(found.directory) from a copy, or pair again: blescan pair PEER")
        }
        if !found.movedFiles.isEmpty {
            let names = found.movedFiles.joined(separator: ", ")
            findings.append(
                .warn(
                    "bonds-moved", "bonds were moved aside, with their keys, as damaged or newer: \(names)",
                    remedy: "pair again what is missing in blescan bonds, and remove them from \(found.directory)"))
        }
        findings += found.bonds.filter(\.isRejected).map { bond in
            .warn(
                "bond-rejected", "\(bond.peer) rejects its bond: it has lost it, or another device uses its address",
                remedy: "if it is the right device: blescan forget \(bond.peer), then blescan pair \(bond.peer)")
        }
        findings += found.faults.map { fault in
            .warn(
                fault.isOfAddresses ? "bond-addresses" : "bond-unusable",
                fault.isOfAddresses
                    ? "the private addresses of \(fault.peer) are not recognized by the kernel: \(fault.reason)"
                    : "the bond with \(fault.peer) cannot be used: \(fault.reason)",
                remedy: "pair again: blescan forget \(fault.peer), then blescan pair \(fault.peer)")
        }
        for adapter in facts.radio.adapters { findings += missingKeys(of: adapter, found.bonds, facts) }
        guard findings.isEmpty else { return findings }
        return [.ok("bonds", found.bonds.isEmpty ? "no bonds" : "\(found.bonds.count.counted("bond")) can be used")]
    }

    /// Programs load all keys of an adapter before they connect. So a list without any was not loaded yet, and one that
    /// lacks some was loaded by another program, or not taken whole.
    private static func missingKeys(
        of adapter: AdapterFacts, _ bonds: [BondFacts.Bond], _ facts: SystemFacts
    ) -> [Finding] {
        guard let owners = facts.keyOwners?[adapter.name], !owners.isEmpty else { return [] }
        let address = BluetoothAddress(adapter.address)
        let unusable = Set(facts.bonds?.faults.filter { !$0.isOfAddresses }.map(\.peer) ?? [])
        let missing = bonds.filter {
            $0.adapter == address && !owners.contains($0.peer.address) && !unusable.contains($0.peer)
        }
        guard !missing.isEmpty else { return [] }
        let peers = missing.map { "\($0.peer)" }.joined(separator: ", ")
        return [
            .warn(
                "bonds-not-loaded", "the kernel has keys, but not those of \(peers)", adapter: adapter.name,
                remedy: "end other programs that manage the adapter, such as bluetoothd; the next connection loads them"
            )
        ]
    }
}
