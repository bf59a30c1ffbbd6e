// The scan for a device that the command line describes by what it advertises.
//
// Duties: the wait for the first device that matches; a second, short scan for others, because the first one is not
// necessarily the one that is meant; the message about none and about several.
//
// Invariants:
// - A device is counted once, by its identity if the address is private and its bond is known.
// - Nothing is connected to where more than one device has matched.

import BLECore
import BareBLE

/// The devices that match a description.
struct PeerSearch: Sendable {
    /// A device that matches.
    struct Match: Hashable, Sendable {
        let peer: PeerID
        var name: String?
        var rssi: Int8?

        var description: String {
            [peer.description, name.map { "\"\($0.printable)\"" }, rssi.map { "\($0) dBm" }].compactMap(\.self)
                .joined(separator: " ")
        }
    }

    /// The time for others to be heard, after the first device that matches.
    static let settling: Duration = .seconds(2)
    /// The most devices that a message lists.
    private static let listed = 8

    let wanted: AdvertisedPeer
    private(set) var matches: [Match] = []

    init(_ wanted: AdvertisedPeer) {
        self.wanted = wanted
    }

    /// Scans until one device has matched, and for others for a short time.
    ///
    /// - Parameter timeLimit: The time for the first device to be heard.
    /// - Returns: The device.
    /// - Throws: `Failure` for none and for several; `BLEError` of the adapter.
    static func run(_ wanted: AdvertisedPeer, by central: Central, for timeLimit: Duration) async throws -> Match {
        var search = PeerSearch(wanted)
        try await search.listen(by: central, for: timeLimit, endsWithMatch: true)
        if !search.matches.isEmpty { try await search.listen(by: central, for: settling, endsWithMatch: false) }
        return try search.result(after: timeLimit)
    }

    /// Takes the results of one scan.
    private mutating func listen(by central: Central, for duration: Duration, endsWithMatch: Bool) async throws {
        for try await event in central.scan(wanted.filter, duration: duration) {
            switch event {
            case .found(let scanResult), .updated(let scanResult): take(scanResult)
            case .paused: throw Scan.adapterGone(await central.adapterName)
            case .lost, .dropped, .resumed: continue
            }
            if endsWithMatch, !matches.isEmpty { break }
        }
        try Task.checkCancellation()
    }

    /// Takes a result of the scan.
    mutating func take(_ scanResult: ScanResult) {
        guard let peer = scanResult.identity ?? scanResult.peer, wanted.matches(scanResult) else { return }
        let match = Match(peer: peer, name: scanResult.unpaddedName, rssi: scanResult.rssi)
        if let index = matches.firstIndex(where: { $0.peer == peer }) {
            matches[index] = match
        } else {
            matches.append(match)
        }
    }

    private static func words(_ time: Duration) -> String {
        let (seconds, rest) = time.components
        return rest == 0 ? "\(seconds) s" : DeviceLine.seconds(time)
    }

    /// Returns the only device that has matched.
    ///
    /// - Throws: `Failure` for none and for several.
    func result(after timeLimit: Duration) throws(Failure) -> Match {
        guard let first = matches.first else {
            throw Failure(
                message: "no device that matches \(wanted.description.printable) and accepts connections was heard in "
                    + Self.words(timeLimit),
                hint: "`sudo blescan scan \(wanted.scanOptions)` shows who is near; --timeout allows more time.",
                status: .notFound)
        }
        guard matches.count > 1 else { return first }
        let strongest = matches.sorted { ($0.rssi ?? .min) > ($1.rssi ?? .min) }.prefix(Self.listed)
        let more = matches.count - strongest.count
        throw Failure(
            message: "\(wanted.description.printable) matches \(matches.count) devices: "
                + strongest.map(\.description).joined(separator: ", ") + (more > 0 ? " and \(more) more" : ""),
            hint: "Name one by its address.", status: .usage)
    }
}
