extension RestorationState {
    /// A description of what `bytes` would leave out; `nil` if everything is stored.
    package var excess: String? {
        if peers.count > Self.limit { return "\(peers.count) peers" }
        for peer in peers where peer.subscriptions.count > Self.limit {
            return "\(peer.subscriptions.count) subscriptions of one peer"
        }
        return scan?.settings.filter.excess
    }
}

extension ScanFilter {
    fileprivate var excess: String? {
        let counts = [
            services.count, solicitedServices.count, peers.count, addresses.count, companies.count,
            manufacturerData.count, serviceData.count, names.count, excluding.count,
        ]
        let most = counts.max() ?? 0
        if most > RestorationState.limit { return "a filter with \(most) entries of one kind" }
        for name in names where name.utf8.count > 255 { return "a name of \(name.utf8.count) bytes in its filter" }
        for text in [namePrefix, nameContains].compactMap({ $0 }) where text.utf8.count > 255 {
            return "a name of \(text.utf8.count) bytes in its filter"
        }
        for data in manufacturerData where data.prefix.count > 255 { return Self.long(data.prefix) }
        for data in serviceData where data.prefix.count > 255 { return Self.long(data.prefix) }
        return nil
    }

    private static func long(_ prefix: [UInt8]) -> String { "data of \(prefix.count) bytes in its filter" }
}
