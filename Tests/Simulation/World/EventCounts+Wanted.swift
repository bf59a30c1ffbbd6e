extension EventCounts {
    /// The events that are required in a run of a thousand seeds and more; otherwise the run shows little about them.
    static let wanted: [String] =
        (Script.faults + Script.bondFaults).map { "fault.\($0.rawValue)" }
        + Conduct.Violation.allCases.map { "violation.\($0.rawValue)" }
        + Conduct.Quirk.allCases.map { "quirk.\($0.rawValue)" }
        + [
            "done.read", "done.write", "done.command", "done.discover", "done.connect", "done.subscribed", "done.value",
            "done.exclusively", "done.rssi", "done.scan", "done.disconnect", "done.endSession", "call.cancelAll",
        ]
        + ["connecting", "connected", "ready", "disconnected", "servicesChanged", "ended"].map { "session.\($0)" }
        + [
            "requested", "byPeer", "supervisionTimeout", "attTimeout", "protocolViolation", "adapterLost", "other",
        ].map { "reason.\($0)" }
        + [
            "noAdapter", "adapterDown", "busy", "timedOut", "connectFailed", "disconnected", "disconnecting",
            "attributeNotFound", "refusedByPeer", "insufficientSecurity", "notSupported", "malformedReply", "tooLong",
            "servicesChanged", "queueFull", "cancelled",
        ].map { "error.\($0)" }
        + ["scan.heard", "scan.dropped", "scan.paused", "scan.resumed", "slow.within", "slow.beyond"]
        + [
            "effect.responseDropped", "effect.valuesDropped", "effect.servicesChanged", "effect.outOfSync",
            "effect.linkLimit", "effect.linkLimitUnreported", "dataLoss.received", "dataLoss.receivedEvery",
            "dataLoss.reordersEvery", "dataLoss.sentBeyond",
        ]
        + ["done.neighbourScan", "done.neighbourConnect", "done.neighbourRead"]
        + Script.adapterNames.map { "controller.\($0)" }
        + ["recovered.link", "recovered.read", "recovered.scan", "recovered.deaf", "exhausted.deaf"]
        + ["done.pair", "done.connectPairing", "done.forget", "done.crash", "call.cancel"]
        + ["bond.made", "bond.kept", "recovered.bond"]
        + ["asked.confirm", "asked.compare", "asked.enter", "asked.show"]
        + ["pairingFailed", "pairingRefused", "bondRejected", "notBonded", "bondNotStored"].map { "error.\($0)" }
        + ["bonded", "bondRejected", "securityRequested", "pairingRefused", "otherManager"]
        .map { "security.\($0)" }

    /// The same for the peripheral role.
    private static let wantedServing: [String] =
        ServingWorld.Act.allCases.map { "central.\($0.rawValue)" }
        + [
            "newcomer", "connected", "disconnected", "subscribed", "unsubscribed", "written", "writeDropped",
            "servicesChanged", "reason.byPeer", "reason.requested", "reason.supervisionTimeout", "reason.attTimeout",
            "reason.protocolViolation", "reason.other",
        ].map { "serving.\($0)" }
        + ["notified", "confirmed", "timedOut", "tooLong", "disconnected", "tried"].map { "update.\($0)" }

    /// The required events that have not happened.
    var missing: [String] { (Self.wanted + Self.wantedServing).filter { counts[$0] == nil } }
}
