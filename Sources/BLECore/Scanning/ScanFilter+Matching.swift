// The cheapest conditions are checked first: strength and address are fields, everything else walks the payloads.

extension ScanFilter {
    /// Returns a Boolean value that indicates whether a device matches.
    public func matches(_ scanResult: ScanResult) -> Bool {
        if let minimumRSSI, let rssi = scanResult.rssi, rssi < minimumRSSI { return false }
        if connectableOnly && !scanResult.isConnectable { return false }
        return matchesAddress(of: scanResult) && matchesServices(of: scanResult) && matchesManufacturer(of: scanResult)
            && matchesServiceData(of: scanResult) && matchesName(of: scanResult)
    }

    private func matchesAddress(of scanResult: ScanResult) -> Bool {
        guard let peer = scanResult.peer else { return peers.isEmpty && addresses.isEmpty }
        let identity = scanResult.identity
        if excluding.contains(peer) || identity.map(excluding.contains) ?? false { return false }
        if peers.isEmpty && addresses.isEmpty { return true }
        return isNamed(peer) || identity.map(isNamed) ?? false
    }

    private func isNamed(_ peer: PeerID) -> Bool { peers.contains(peer) || addresses.contains(peer.address) }

    private func matchesServices(of scanResult: ScanResult) -> Bool {
        if services.isEmpty && solicitedServices.isEmpty { return true }
        if !services.isEmpty, scanResult.serviceUUIDs.contains(where: { services.contains($0) }) { return true }
        if solicitedServices.isEmpty { return false }
        return scanResult.solicitedServiceUUIDs.contains { solicitedServices.contains($0) }
    }

    private func matchesManufacturer(of scanResult: ScanResult) -> Bool {
        if companies.isEmpty && manufacturerData.isEmpty { return true }
        return scanResult.manufacturerData.contains { carried in
            if companies.contains(carried.company) { return true }
            return manufacturerData.contains { wanted in
                wanted.company == carried.company && carried.data.starts(with: wanted.prefix)
            }
        }
    }

    private func matchesServiceData(of scanResult: ScanResult) -> Bool {
        if serviceData.isEmpty { return true }
        return scanResult.serviceData.contains { carried in
            serviceData.contains { wanted in
                wanted.service == carried.service && carried.data.starts(with: wanted.prefix)
            }
        }
    }

    private func matchesName(of scanResult: ScanResult) -> Bool {
        if names.isEmpty && namePrefix == nil && nameContains == nil { return true }
        guard let name = scanResult.name else { return false }
        if let namePrefix, name.utf8.starts(with: namePrefix.utf8) { return true }
        if let nameContains, Self.contains(name, nameContains) { return true }
        return names.contains { $0.utf8.elementsEqual(name.utf8) }
    }

    private static func contains(_ name: String, _ text: String) -> Bool {
        // Letters beyond ASCII need a copy of the text, and most names have none.
        if isASCII(name.utf8) && isASCII(text.utf8) { return contains(name.utf8, text.utf8) }
        return contains(name.lowercased().utf8, text.lowercased().utf8)
    }

    private static func isASCII(_ text: String.UTF8View) -> Bool { text.allSatisfy { $0 < 0x80 } }

    private static func contains(_ name: String.UTF8View, _ text: String.UTF8View) -> Bool {
        var rest = name[...]
        while true {
            let matches = zip(rest, text).allSatisfy { folded($0) == folded($1) }
            if matches, rest.count >= text.count { return true }
            guard rest.popFirst() != nil else { return false }
        }
    }

    private static func folded(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}
