import BLECore
import BLELinux
import BareBLE

// S14 to S17: connects, and what works on a link.

extension SelfTestRunner {
    /// Why a check that needs a link cannot run.
    static let noLink = "the peer could not be connected"
}

// MARK: - S14

/// One connect.
struct SelfTestConnect: Hashable, Sendable {
    /// The time to the link, and to the first response of the Attribute Protocol; `nil` if there was none.
    var time: Duration?
    var firstResponse: Duration?
    /// The time from the link to the peer's features.
    var features: Duration?
    /// How many connection attempts the controller has got.
    var attempts = 0
    /// The statuses with which attempts, or links right after their beginning, ended.
    var failures: [UInt8] = []
    /// Why there was no first response.
    var error: String?
    /// Data of the link before the event of its beginning.
    var early = 0

    /// Takes what the controller has sent and received meanwhile.
    mutating func add(_ packets: [SelfTestChannel.Packet], since start: BootInstant) {
        var data: [ConnectionHandle: Int] = [:]
        var beginning: BootInstant?
        for packet in packets {
            switch packet.content {
            case .command(let command):
                if command.opcode == .leCreateConnection || command.opcode == .leExtendedCreateConnection {
                    attempts += 1
                }
            case .data(let handle, isIncoming: true): data[handle, default: 0] += 1
            case .event(.connectionComplete(let complete)):
                guard complete.status.isSuccess else {
                    failures.append(complete.status.rawValue)
                    continue
                }
                early += data[complete.handle] ?? 0
                beginning = packet.time
                time = packet.time - start
            case .event(.disconnectionComplete(let end)): failures.append(end.reason.rawValue)
            case .event(.remoteFeaturesComplete(let complete)):
                if let beginning, complete.status.isSuccess { features = packet.time - beginning }
            default: break
            }
        }
    }
}

/// All connects.
struct SelfTestConnects: Hashable, Sendable {
    var connects: [SelfTestConnect] = []

    private static let limit: Duration = .seconds(1)

    func judged() -> SelfTestJudgement {
        let times = SelfTestTimes(connects.compactMap(\.time))
        let responses = SelfTestTimes(connects.compactMap(\.firstResponse))
        let features = SelfTestTimes(connects.compactMap(\.features))
        let good = connects.count { $0.firstResponse != nil }
        let quick = connects.count { $0.firstResponse != nil && $0.attempts <= 2 }
        let failures = connects.flatMap(\.failures)
        let errors = connects.compactMap(\.error)
        let early = connects.reduce(0) { $0 + $1.early }
        var counts: [UInt8: Int] = [:]
        for status in failures { counts[status, default: 0] += 1 }
        var judgement = SelfTestJudgement(
            .fit,
            "\(good) of \(connects.count) connects"
                + (times.median.map { ", after \($0.short) (p95 \((times.p95 ?? $0).short))" } ?? "")
                + (responses.median.map { ", first response after \($0.short)" } ?? ""),
            values: [
                "connects": .integer(connects.count), "good": .integer(good), "withinTwoAttempts": .integer(quick),
                "p50": times.median.map { .milliseconds($0) }, "p95": times.p95.map { .milliseconds($0) },
                "firstResponseP50": responses.median.map { .milliseconds($0) },
                "featuresP50": features.median.map { .milliseconds($0) }, "dataAheadOfCompletion": .integer(early),
                "failures": .object(
                    counts.sorted { $0.key < $1.key }.map {
                        JSONLine.Member(key: Hex.number($0.key), value: .integer($0.value))
                    }),
                "errors": errors.isEmpty ? nil : .array(errors.map { .string($0) }),
            ])
        if good * 2 < connects.count {
            judgement.remark("most connects fail" + (errors.last.map { " (\($0))" } ?? ""), verdict: .unfit)
        } else if quick * 100 < connects.count * 95 {
            judgement.remark(
                "\(quick) of \(connects.count) connects needed two attempts at most; 95 % are expected"
                    + (errors.last.map { " (\($0))" } ?? ""))
        }
        if let p95 = times.p95, p95 >= Self.limit {
            judgement.remark("connects take up to \(p95.short); less than \(Self.limit.short) is expected")
        }
        if counts[HCIStatus.connectionFailedToBeEstablished.rawValue] != nil { judgement.quirk("W41") }
        if counts[HCIStatus.advertisingTimeout.rawValue] != nil { judgement.quirk("W39") }
        if early > 0 {
            judgement.remark("\(early.counted("data packet")) came before the event of the connection", "W44")
        }
        return judgement
    }
}

extension SelfTestRunner {
    private static let connectCount = 15

    func connects() async throws(SelfTestEnd) -> SelfTestJudgement {
        if let obstacle = peering.obstacle(needsAdapter: false) { return .notRun(obstacle) }
        guard let target = peering.target else { return .notRun(Self.noLink) }
        await peering.unlink()
        var measured = SelfTestConnects()
        let central = peering.centralUnderTest()
        for _ in 0..<Self.connectCount {
            await access.channel.forget()
            var connect = SelfTestConnect()
            let start = machine.loop.now()
            var device: Peripheral?
            do throws(BLEError) {
                device = try await central.connect(target, ConnectOptions(timeout: .seconds(10)))
                connect.firstResponse = machine.loop.now() - start
            } catch {
                if error.code == .cancelled { throw .interrupted }
                if await access.channel.isGone { break }
                connect.error = error.description
            }
            connect.add(await access.channel.drain(), since: start)
            measured.connects.append(connect)
            await device?.disconnect()
            // Of dead connects, three are enough.
            if measured.connects.count >= 3, measured.connects.allSatisfy({ $0.firstResponse == nil }) { break }
            _ = try await access.wait(for: .milliseconds(300)) { packet -> Bool? in
                if case .event(.disconnectionComplete) = packet.content { return true }
                return nil
            }
        }
        return measured.judged()
    }
}

// MARK: - S15

/// A scan while a link is up.
struct SelfTestScanWhileLinked: Hashable, Sendable {
    /// The response to the command that begins it.
    var start: SelfTestChannel.Reply?
    var heard: SelfTestHeard?
    /// The peer's addresses, whose reports do not count.
    var peers: Set<PeerID> = []
    /// Reports in a second without a link.
    var rateBefore: Double

    func judged() -> SelfTestJudgement {
        let status = start?.status
        guard let heard else {
            var judgement = SelfTestJudgement(.fit, "the scan was refused")
            let isBusy = status == HCIStatus.commandDisallowed.rawValue
            judgement.remark(
                "it does not scan while a link is up (\(status.map { Hex.encode([$0]) } ?? "no response"))")
            if isBusy { judgement.quirk("W02") }
            return judgement
        }
        let rate = heard.rate(without: peers)
        let share = rateBefore > 0 ? rate / rateBefore : nil
        var judgement = SelfTestJudgement(
            .fit,
            "\(JSONLine.measure(rate).text) reports/s of others while a link is up, "
                + "\(JSONLine.measure(rateBefore).text) without one",
            values: [
                "perSecond": .measure(rate), "perSecondBefore": .measure(rateBefore),
                "share": share.map { .measure($0) },
            ])
        // Of few reports, that share is chance.
        if let share, share < 0.3, rate > 0 || rateBefore > 20 {
            judgement.remark(
                "it hears \(Int((share * 100).rounded())) % of the reports while a link is up; 30 % are expected", "W33"
            )
        }
        return judgement
    }
}

extension SelfTestRunner {
    func scanWhileLinked() async throws(SelfTestEnd) -> SelfTestJudgement {
        if let obstacle = peering.obstacle(needsAdapter: false) { return .notRun(obstacle) }
        guard controller.scanner != nil else { return .notRun(Self.noScan) }
        guard try await peering.linked() != nil else { return .notRun(Self.noLink) }
        // The peer does not advertise as before while it is linked: its own reports mean nothing.
        let own = Set(heard.map { Array($0.marks.values) } ?? []).union([peering.target].compactMap(\.self))
        var measured = SelfTestScanWhileLinked(peers: own, rateBefore: heard?.rate(without: own) ?? 0)
        measured.start = try await scanOn(ScanPlan(.passive))
        if measured.start?.isSuccess == true {
            measured.heard = try await access.listen(for: .seconds(3))
            try await scanOff()
        }
        return measured.judged()
    }
}

// MARK: - S16

/// A procedure on a link.
struct SelfTestProcedure: Hashable, Sendable {
    let name: String
    var status: UInt8?
    /// The status of the event that ends it; `nil` if it did not come.
    var end: UInt8?
    var time: Duration?
    /// Whether the event comes only if something has changed.
    var isQuiet = false
    /// What the link has after it instead of what was asked for.
    var deviation: String?
}

extension SelfTestProcedure {
    /// What a link has instead of a PHY in both directions; `nil` if it has that, or the change has failed.
    static func deviation(of update: LEPHYUpdateComplete, from wanted: PHY) -> String? {
        guard update.status.isSuccess, update.transmit != wanted || update.receive != wanted else { return nil }
        return "\(update.transmit) to the peer and \(update.receive) from it"
    }

    /// What a link has instead of an interval, in units of 1.25 ms.
    static func deviation(of update: LEConnectionUpdateComplete, from wanted: UInt16) -> String? {
        let interval = update.parameters.intervalMin
        guard update.status.isSuccess, interval != wanted else { return nil }
        return "an interval of \((Duration.microseconds(1250) * Int(interval)).short)"
    }
}

/// All of them.
struct SelfTestProcedures: Hashable, Sendable {
    var mtu: Int
    var procedures: [SelfTestProcedure] = []
    var isAlive = true

    func judged() -> SelfTestJudgement {
        let parts = procedures.map { procedure in
            let result =
                switch (procedure.status, procedure.end) {
                case (0?, 0?):
                    (procedure.time.map { "after \($0.short)" } ?? "done")
                        + (procedure.deviation.map { ", but \($0)" } ?? "")
                case (0?, let end?): "failed with \(Hex.encode([end]))"
                case (0?, nil): procedure.isQuiet ? "unchanged" : "no event"
                case (let status?, _): "refused with \(Hex.encode([status]))"
                case (nil, _): "no response"
                }
            return "\(procedure.name) \(result)"
        }
        var judgement = SelfTestJudgement(
            .fit, (["MTU \(mtu)"] + parts).joined(separator: ", "),
            values: [
                "mtu": .integer(mtu), "alive": .bool(isAlive),
                "procedures": .object(
                    procedures.map { procedure in
                        JSONLine.Member(
                            key: procedure.name,
                            value: .object([
                                "status": .optional(procedure.status.map { Int($0) }),
                                "end": .optional(procedure.end.map { Int($0) }),
                                "time": procedure.time.map { .milliseconds($0) },
                                "instead": procedure.deviation.map { .string($0) },
                            ]))
                    }),
            ])
        for procedure in procedures {
            if procedure.status == nil {
                judgement.remark("\(procedure.name): no response", "W17", verdict: .unfit)
            } else if procedure.status == 0, procedure.end == nil, !procedure.isQuiet {
                judgement.remark("\(procedure.name) was accepted, and the event that ends it did not come")
            } else if let deviation = procedure.deviation {
                judgement.remark("\(procedure.name) was done, and the link has \(deviation)")
            }
        }
        if !isAlive { judgement.remark("the link did not survive it", "W46", verdict: .unfit) }
        return judgement
    }
}

extension SelfTestRunner {
    func procedures() async throws(SelfTestEnd) -> SelfTestJudgement {
        if let obstacle = peering.obstacle(needsAdapter: false) { return .notRun(obstacle) }
        guard let link = try await peering.linked() else { return .notRun(Self.noLink) }
        let handle = link.handle
        var measured = SelfTestProcedures(mtu: await link.device.mtu)
        if controller.features?.contains(.dataLengthExtension) ?? false {
            let length = SelfTestProcedure(name: "data length", isQuiet: true)
            try await measure(length, HCICommandPacket(LESetDataLength(handle: handle)), &measured) { event in
                if case .dataLengthChange(let change) = event, change.handle == handle { return (0, nil) }
                return nil
            }
        }
        if controller.features?.contains(.le2M) ?? false {
            for (name, phys, wanted) in [("2M", LEPHYs.le2M, PHY.le2M), ("1M", .le1M, .le1M)] {
                let command = LESetPHY(handle: handle, transmit: phys, receive: phys)
                try await measure(SelfTestProcedure(name: name), HCICommandPacket(command), &measured) { event in
                    if case .phyUpdateComplete(let update) = event, update.handle == handle {
                        return (update.status.rawValue, SelfTestProcedure.deviation(of: update, from: wanted))
                    }
                    return nil
                }
            }
        }
        for (name, interval) in [("7.5 ms", UInt16(6)), ("50 ms", 40), ("400 ms", 320)] {
            let parameters = ConnectionParameters(
                intervalMin: interval, intervalMax: interval, latency: 0, timeout: 500)
            let command = LEConnectionUpdate(handle: handle, parameters: parameters)
            try await measure(SelfTestProcedure(name: name), HCICommandPacket(command), &measured) { event in
                if case .connectionUpdateComplete(let update) = event, update.handle == handle {
                    return (update.status.rawValue, SelfTestProcedure.deviation(of: update, from: interval))
                }
                return nil
            }
        }
        measured.isAlive = await link.device.disconnectReason == nil
        // Later checks measure with the usual interval.
        await peering.unlink()
        return measured.judged()
    }

    private func measure(
        _ procedure: SelfTestProcedure, _ command: HCICommandPacket, _ measured: inout SelfTestProcedures,
        _ result: (HCIEvent) -> (status: UInt8, deviation: String?)?
    ) async throws(SelfTestEnd) {
        var procedure = procedure
        await access.channel.forget()
        let start = machine.loop.now()
        procedure.status = try await access.ask(command).status
        if procedure.status == 0 {
            let timeLimit: Duration = procedure.isQuiet ? .seconds(1) : .seconds(5)
            let end = try await access.wait(for: timeLimit) { packet -> (UInt8, String?, BootInstant)? in
                guard case .event(let event) = packet.content else { return nil }
                return result(event).map { ($0.status, $0.deviation, packet.time) }
            }
            procedure.end = end?.0
            procedure.deviation = end?.1
            procedure.time = end.map { $0.2 - start }
        }
        measured.procedures.append(procedure)
    }
}

// MARK: - S17

/// Values in one direction for some seconds.
struct SelfTestThroughput: Hashable, Sendable {
    struct Direction: Hashable, Sendable {
        var sent = 0
        var received = SelfTestPeer.Received()
        var time: Duration

        var bytesPerSecond: Double { Double(received.bytes) / max(time / .seconds(1), 0.001) }
        var lost: Int { max(0, sent - received.count) }
    }

    var notifications: Direction
    var writes: Direction

    var notificationsPerSecond: Double {
        Double(notifications.received.count) / max(notifications.time / .seconds(1), 0.001)
    }

    func judged() -> SelfTestJudgement {
        var judgement = SelfTestJudgement(
            .fit,
            "\(Int(notifications.bytesPerSecond)) bytes/s in notifications, \(Int(writes.bytesPerSecond)) in write commands, "
                + "\(notifications.lost + writes.lost) lost",
            values: [
                "notificationBytesPerSecond": .measure(notifications.bytesPerSecond),
                "notificationsSent": .integer(notifications.sent),
                "notificationsReceived": .integer(notifications.received.count),
                "writeBytesPerSecond": .measure(writes.bytesPerSecond), "writesSent": .integer(writes.sent),
                "writesReceived": .integer(writes.received.count),
                "outOfOrder": .integer(notifications.received.gaps + writes.received.gaps),
            ])
        for (name, direction) in [("notification", notifications), ("write command", writes)] {
            if direction.sent == 0 {
                judgement.remark("no \(name) could be sent", verdict: .unfit)
            } else if direction.lost > 0 || direction.received.gaps > 0 {
                judgement.remark(
                    "\(direction.lost.counted(name)) lost, \(direction.received.gaps) out of order", verdict: .unfit)
            }
        }
        return judgement
    }
}

extension SelfTestRunner {
    func throughput() async throws(SelfTestEnd) -> SelfTestJudgement {
        if let obstacle = peering.obstacle(needsAdapter: true) { return .notRun(obstacle) }
        guard let peer = peering.peer, let link = try await peering.linked() else { return .notRun(Self.noLink) }
        do throws(BLEError) {
            let notifications = try await notifications(from: peer, to: link.device)
            if Task.isCancelled { throw BLEError(.cancelled, during: "self-test", because: "it was interrupted") }
            let writes = try await writes(from: link.device, to: peer)
            let measured = SelfTestThroughput(notifications: notifications, writes: writes)
            report.limits.notificationsPerSecond = measured.notificationsPerSecond
            return measured.judged()
        } catch {
            if error.code == .cancelled { throw .interrupted }
            var judgement = SelfTestJudgement(.unfit, "it ended early")
            judgement.remark("the exchange of values ended early: \(error)", verdict: .unfit)
            return judgement
        }
    }

    private static let throughputTime: Duration = .seconds(5)

    private func notifications(
        from peer: SelfTestPeer, to device: Peripheral
    ) async throws(BLEError) -> SelfTestThroughput.Direction {
        let values = try await device.subscribe(
            to: .uuid(SelfTestPeer.notified), SubscribeOptions(capacity: 100_000, byteLimit: 64 << 20))
        let length = min(244, await device.mtu - 3)
        let clock = CentralClock(loop: machine.loop)
        let start = clock.now
        var number: UInt32 = 0
        while clock.now < start + Self.throughputTime, !Task.isCancelled {
            let result = try await peer.local.update(
                SelfTestPeer.value(number, count: length), of: .uuid(SelfTestPeer.notified),
                timeout: .seconds(2))
            guard result.sentCount > 0 else { break }
            number += 1
        }
        let time = clock.now - start
        // What is on its way arrives.
        try? await clock.sleep(for: .seconds(1))
        var direction = SelfTestThroughput.Direction(sent: Int(number), time: time)
        // The end of the subscription ends the sequence, after what it has buffered.
        try await values.unsubscribe()
        do {
            for try await value in values { direction.received.add(value.bytes) }
        } catch {
            // The link has ended; what came before counts.
        }
        return direction
    }

    private func writes(
        from device: Peripheral, to peer: SelfTestPeer
    ) async throws(BLEError) -> SelfTestThroughput.Direction {
        let length = min(244, await device.mtu - 3)
        let clock = CentralClock(loop: machine.loop)
        _ = peer.takeReceived()
        let start = clock.now
        var number: UInt32 = 0
        while clock.now < start + Self.throughputTime, !Task.isCancelled {
            try await device.write(
                SelfTestPeer.value(number, count: length), to: .uuid(SelfTestPeer.written), .withoutResponse)
            number += 1
        }
        let time = clock.now - start
        // They leave in order, so that all have arrived before the response.
        _ = try? await device.read(.uuid(SelfTestPeer.notified))
        return SelfTestThroughput.Direction(sent: Int(number), received: peer.takeReceived(), time: time)
    }
}
