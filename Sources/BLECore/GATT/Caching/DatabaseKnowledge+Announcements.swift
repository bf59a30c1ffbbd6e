// A peer that was told on an earlier link to announce changes does so on the next one as well, and perhaps before this side
// has found out where. Such indications are kept until that is known.

extension DatabaseKnowledge {
    /// Whether handles are known that a change would make wrong, and not where the peer announces one, if it does.
    ///
    /// What a user lists by hand does not count: such a user decides alone what the peer is asked for.
    package var lacksAnnouncer: Bool {
        coverage != .nothing && !coverage.includes(.genericAttribute, to: .structure)
    }

    /// The peer has indicated what an announcement would be, from a handle of which nothing is known.
    ///
    /// - Returns: Whether it can be one. Then `missedChanges` tells it as soon as it is known to be one, and where nobody
    ///   looks for that yet, somebody should.
    package mutating func indicated(
        _ handles: ClosedRange<AttributeHandle>, at handle: AttributeHandle
    ) -> Bool {
        guard serviceChangedHandle == nil, database?.type(at: handle) == nil else { return false }
        if runningDiscoveries == 0 {
            // Of a peer of which nothing is known, nothing can be wrong.
            guard lacksAnnouncer else { return false }
        }
        guard unplaced[handle] != nil || unplaced.count < Self.rangeLimit else { return false }
        unplaced[handle, default: HandleRanges()].insert(handles, atMost: Self.rangeLimit)
        return true
    }

    /// The changes that the peer announced before it was known where it does, once.
    package mutating func missedChanges() -> [ClosedRange<AttributeHandle>] {
        if let handle = serviceChangedHandle {
            defer { unplaced = [:] }
            return unplaced[handle]?.ranges ?? []
        }
        if runningDiscoveries == 0, coverage.includes(.genericAttribute, to: .structure) { unplaced = [:] }
        return []
    }
}
