// A peer that was configured on an earlier link to announce changes does so on the next one as well, perhaps before
// this side has discovered from which handle. Such indications are kept until that is known.

extension DatabaseKnowledge {
    /// Whether a change would make known handles wrong, and the handle from which the peer announces changes is
    /// unknown.
    ///
    /// Attributes that a user lists by hand do not count: such a user alone decides what is requested from the peer.
    package var lacksAnnouncer: Bool {
        coverage != .nothing && !coverage.includes(.genericAttribute, to: .structure)
    }

    /// The peer has sent an indication that may be an announcement, from an unknown handle.
    ///
    /// - Returns: Whether it can be one. Then `missedChanges` returns it once that is certain; if no task is finding
    ///   that out yet, one should.
    package mutating func indicated(
        _ handles: ClosedRange<AttributeHandle>, at handle: AttributeHandle
    ) -> Bool {
        guard serviceChangedHandle == nil, database?.type(at: handle) == nil else { return false }
        if runningDiscoveries == 0 {
            // If nothing is known of a peer, nothing can be wrong.
            guard lacksAnnouncer else { return false }
        }
        guard unplaced[handle] != nil || unplaced.count < Self.rangeLimit else { return false }
        unplaced[handle, default: HandleRanges()].insert(handles, atMost: Self.rangeLimit)
        return true
    }

    /// Returns the changes that the peer announced before the handle of its announcements was known, once.
    package mutating func missedChanges() -> [ClosedRange<AttributeHandle>] {
        if let handle = serviceChangedHandle {
            defer { unplaced = [:] }
            return unplaced[handle]?.ranges ?? []
        }
        if runningDiscoveries == 0, coverage.includes(.genericAttribute, to: .structure) { unplaced = [:] }
        return []
    }
}
