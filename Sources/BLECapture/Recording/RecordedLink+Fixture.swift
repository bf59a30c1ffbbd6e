internal import BLECore

extension RecordedLink {
    /// Returns the link as a dialogue for a test: each packet with its name, and without pauses.
    ///
    /// `ScriptedPeripheral` plays it for a client that repeats the session, `Replay` also for a server. It contains all
    /// values in clear text.
    package func fixture(named name: String) -> Dialogue {
        let file = source.split(separator: "/").last.map(String.init) ?? source
        var headers = [Dialogue.Header("test", name), Dialogue.Header("origin", "recorded, \(file)")]
        if isServed { headers.append(Dialogue.Header(Self.roleHeader, Self.servedRole)) }
        if let peer { headers.append(Dialogue.Header(Self.peerHeader, "\(peer)")) }
        if let mtu = dialogue.header("mtu") { headers.append(Dialogue.Header("mtu", mtu)) }
        var printer = PacketPrinter()
        var steps: [Dialogue.Step] = []
        for step in dialogue.steps {
            switch step.event {
            case .wait: continue
            case .linkLost: steps.append(Dialogue.Step(.linkLost))
            case .sent, .received:
                let title = printer.print(Dialogue.Step(step.event)).title
                steps.append(Dialogue.Step(step.event, comment: title))
            }
        }
        return Dialogue(headers: headers, steps: steps)
    }

    /// The number of packets.
    package var packetCount: Int {
        dialogue.steps.count { step in
            switch step.event {
            case .sent, .received: true
            case .wait, .linkLost: false
            }
        }
    }
}
