// Check 15: one peer, if one was named.
extension Check {
    static func connection(_ facts: SystemFacts) -> [Finding] {
        guard let connection = facts.connection else {
            return [.skip("connect", "connection to a device: name one with --connect ADDRESS")]
        }
        // Masked names are of devices on air.
        let isInTheAir = (try? PeerArgument(argument: connection.peer))?.isInTheAir ?? true
        let explore = "\(isInTheAir ? "sudo " : "")blescan explore \(connection.peer) --trace"
        if let failure = connection.failure {
            return [
                .fail(
                    "connect-failed", failure,
                    remedy: "see the lines above; then: \(explore)",
                    status: connection.status)
            ]
        }
        var parts = [
            connection.searching.map { "found in \($0) ms" }, "connected in \(connection.connecting ?? 0) ms",
            connection.isEncrypted ? "encrypted with the key of its bond" : nil, "MTU \(connection.mtu)",
        ].compactMap(\.self)
        parts.append(
            "\(connection.attributes.counted("attribute")) in \(connection.discovering ?? 0) ms and "
                + "\(connection.requests.counted("request"))")
        parts.append(connection.hasHash ? "with a Database Hash" : "without a Database Hash")
        let text = "\(connection.peer): " + parts.joined(separator: ", ")
        guard connection.strays == 0 else {
            return [
                .warn(
                    "stray-packets", text + ", \(connection.strays.counted("unexpected response"))",
                    remedy: "the device's attribute server is at fault; send a trace to its maker: blescan explore "
                        + "\(connection.peer) --trace")
            ]
        }
        return [.ok("connect", text)]
    }
}
