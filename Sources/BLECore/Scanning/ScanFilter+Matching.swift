// The cheapest conditions are checked first: strength and address are fields, everything else walks the payloads.

extension ScanFilter {
    /// Returns a Boolean value that indicates whether a device matches.
    public func matches(_ sighting: Sighting) -> Bool {
        if let minimumRSSI, let rssi = sighting.rssi, rssi < minimumRSSI { return false }
        if connectableOnly && !sighting.isConnectable { return false }
        return matchesAddress(of: sighting) && matchesServices(of: sighting) && matchesManufacturer(of: sighting)
            && matchesServiceData(of: sighting) && matchesName(of: sighting)
    }

    private func matchesAddress(of sighting: Sighting) -> Bool {
        guard let peer = sighting.peer else { return peers.isEmpty && addresses.isEmpty }
        if excluding.contains(peer) { return false }
        if peers.isEmpty && addresses.isEmpty { return true }
        return peers.contains(peer) || addresses.contains(peer.address)
    }

    private func matchesServices(of sighting: Sighting) -> Bool {
        if services.isEmpty && solicitedServices.isEmpty { return true }
        if !services.isEmpty, sighting.serviceUUIDs.contains(where: { services.contains($0) }) { return true }
        if solicitedServices.isEmpty { return false }
        return sighting.solicitedServiceUUIDs.contains { solicitedServices.contains($0) }
    }

    private func matchesManufacturer(of sighting: Sighting) -> Bool {
        if companies.isEmpty && manufacturerData.isEmpty { return true }
        return sighting.manufacturerData.contains { carried in
            if companies.contains(carried.company) { return true }
            return manufacturerData.contains { wanted in
                wanted.company == carried.company && carried.data.starts(with: wanted.prefix)
            }
        }
    }

    private func matchesServiceData(of sighting: Sighting) -> Bool {
        if serviceData.isEmpty { return true }
        return sighting.serviceData.contains { carried in
            serviceData.contains { wanted in
                wanted.service == carried.service && carried.data.starts(with: wanted.prefix)
            }
        }
    }

    private func matchesName(of sighting: Sighting) -> Bool {
        if names.isEmpty && namePrefix == nil { return true }
        guard let name = sighting.name else { return false }
        if let namePrefix, name.utf8.starts(with: namePrefix.utf8) { return true }
        return names.contains { $0.utf8.elementsEqual(name.utf8) }
    }
}
