// A long extended advertisement arrives as several reports, all but the last marked incomplete. The assembler joins
// them into one report.
//
// Invariants:
// - Fragments belong together if address type, address, SID and both PHYs agree. A fragment with other properties (an
//   advertisement next to a scan response) abandons the open chain with its key: chains are never merged.
// - Fragments are not numbered, so a lost one is not detectable. A chain that was idle for `chainTimeout` is therefore
//   abandoned: its last fragment was lost, and what follows is a new advertisement.
// - At most `capacity` chains are open. One more evicts the oldest.
// - A chain ends at `limit` bytes: it is delivered as truncated, and its remaining fragments are discarded, because
//   on their own they would parse as garbage.
// - Every report that is not a fragment passes through at once, unchanged; without long advertisements the cost is
//   zero.
// - Every loss is counted.

/// Joins the fragments of extended advertisements.
package struct ReportAssembler: ~Copyable {
    /// Counts of what was lost.
    package struct Losses: Hashable, Sendable {
        /// Chains evicted because too many were open.
        package var evicted = 0
        /// Chains abandoned because their last fragment never arrived.
        package var abandoned = 0
        /// Chains truncated because they were too long.
        package var cut = 0
        /// Fragments discarded after a truncation.
        package var swallowedFragments = 0
    }

    /// Counts of what was lost so far.
    package private(set) var losses = Losses()

    /// The number of open chains.
    package var openChains: Int { chains.count }

    private var chains: [Chain] = []

    package init() {}

    /// Processes the next report, in order of arrival.
    ///
    /// - Returns: The report to deliver: the given one, the joined one, or `nil` while the chain is open.
    package mutating func received(_ report: AdvertisingReport, at now: BootInstant) -> AdvertisingReport? {
        if report.isLegacy || report.dataStatus != .incomplete && chains.isEmpty { return report }
        let key = Key(report)
        var open = chains.firstIndex { $0.key == key }
        if let index = open, !chains[index].accepts(report, at: now) {
            chains.remove(at: index)
            losses.abandoned &+= 1
            open = nil
        }
        guard let index = open else { return begin(report, key, at: now) }
        return chains[index].isCut ? swallow(report, index, at: now) : join(report, index, at: now)
    }

    private mutating func begin(_ report: AdvertisingReport, _ key: Key, at now: BootInstant) -> AdvertisingReport? {
        guard report.dataStatus == .incomplete else { return report }
        if chains.count >= Self.capacity {
            chains.removeFirst()
            losses.evicted &+= 1
        }
        chains.append(Chain(key: key, properties: report.properties, data: report.data, isCut: false, lastHeard: now))
        return nil
    }

    private mutating func join(_ report: AdvertisingReport, _ index: Int, at now: BootInstant) -> AdvertisingReport? {
        chains[index].data.append(contentsOf: report.data)
        chains[index].lastHeard = now
        let tooLong = chains[index].data.count > Self.limit
        guard tooLong || report.dataStatus != .incomplete else { return nil }
        var whole = report
        whole.data = Array(chains[index].data.prefix(Self.limit))
        if tooLong {
            whole.dataStatus = .truncated
            losses.cut &+= 1
        }
        if report.dataStatus == .incomplete {
            chains[index].isCut = true
            chains[index].data = []
        } else {
            chains.remove(at: index)
        }
        return whole
    }

    private mutating func swallow(_ report: AdvertisingReport, _ index: Int, at now: BootInstant) -> AdvertisingReport?
    {
        losses.swallowedFragments &+= 1
        chains[index].lastHeard = now
        if report.dataStatus != .incomplete { chains.remove(at: index) }
        return nil
    }

    private struct Key: Equatable {
        let address: BluetoothAddress?
        let addressType: AddressType?
        let sid: UInt8?
        let primaryPHY: PHY
        let secondaryPHY: PHY?

        init(_ report: AdvertisingReport) {
            address = report.address
            addressType = report.addressType
            sid = report.sid
            primaryPHY = report.primaryPHY
            secondaryPHY = report.secondaryPHY
        }
    }

    private struct Chain {
        let key: Key
        let properties: AdvertisingReport.Properties
        var data: [UInt8]
        var isCut: Bool
        var lastHeard: BootInstant

        func accepts(_ report: AdvertisingReport, at now: BootInstant) -> Bool {
            properties == report.properties && now - lastHeard <= ReportAssembler.chainTimeout
        }
    }

    /// The maximum number of open chains.
    package static let capacity = 32
    /// The maximum length of advertising data, in bytes: Core Vol 4 Part E, 7.8.57.
    package static let limit = 1650
    /// The maximum time between fragments. Controllers deliver them within one advertising event.
    package static let chainTimeout: Duration = .seconds(2)
}
