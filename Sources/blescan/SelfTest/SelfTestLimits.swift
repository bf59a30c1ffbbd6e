import BLECore
import BLELinux
import BareBLE

// S18 to S21: how many links it has, advertising beside links, a peer that falls silent, and power cycles.

// MARK: - S18

/// Links that were made one after the other.
struct SelfTestLinkLimit: Hashable, Sendable {
    /// How many were up at once.
    var held = 0
    /// How many of them were up five seconds later.
    var alive = 0
    /// How many were wanted.
    var wanted: Int
    /// The status that refused the next one, and the error in words; `nil` if none was refused.
    var refusal: UInt8?
    var failure: String?
    /// Why there could be no more.
    var obstacle: String?

    private static let expected = 5

    /// Whether the peer has ended the check before there were enough links to judge by.
    private var isInconclusive: Bool { held < Self.expected && refusal == nil && obstacle != nil }

    func judged() -> SelfTestJudgement {
        var judgement = SelfTestJudgement(
            isInconclusive ? .note : .fit,
            "\(held.counted("link")) at once, \(alive) of them after 5 s"
                + (refusal.map { ", the next one refused with \(Hex.encode([$0]))" } ?? "")
                + (obstacle.map { "; \($0)" } ?? ""),
            values: [
                "held": .integer(held), "alive": .integer(alive), "refusal": .optional(refusal.map { Int($0) }),
                "failure": .optional(failure),
            ])
        if held == 0 {
            judgement.remark("no link could be made\(failure.map { ": \($0)" } ?? "")", verdict: .unfit)
        } else if alive < held {
            judgement.remark("\((held - alive).counted("link")) ended within 5 s", "W48", verdict: .unfit)
        } else if held < Self.expected, !isInconclusive {
            judgement.remark("only \(held.counted("link")) at once; \(Self.expected) are expected", "W49")
        } else if held < wanted, refusal != nil {
            judgement.quirk("W49")
        }
        return judgement
    }
}

extension SelfTestRunner {
    private static let mostLinks = 8

    func linkLimit() async throws(SelfTestEnd) -> SelfTestJudgement {
        if let obstacle = peering.obstacle(needsAdapter: true) { return .notRun(obstacle) }
        guard let peer = peering.peer else { return .notRun(Self.noLink) }
        await peering.unlink()
        await peer.stopAdvertising()
        let advertiser = SelfTestChannel(
            peer.adapter.index, name: peer.adapter.name, system: machine.system, loop: machine.loop, trace: nil)
        var devices: [Peripheral] = []
        var measured = SelfTestLinkLimit(wanted: Self.mostLinks)
        do {
            try await advertiser.open()
            try await peer.local.acceptCentrals()
            try await addLinks(from: advertiser, &devices, &measured)
        } catch let error as SelfTestEnd {
            await end(devices, advertiser, peer)
            throw error
        } catch {
            measured.obstacle = "\(peer.adapter.name) cannot advertise under several addresses: \(error)"
        }
        do throws(SelfTestEnd) {
            measured.alive = try await waitForEnds(of: devices)
        } catch {
            await end(devices, advertiser, peer)
            throw error
        }
        report.limits.linksHeld = measured.held
        report.limits.linksRefusedWith = measured.refusal
        await end(devices, advertiser, peer)
        return measured.judged()
    }

    private func waitForEnds(of devices: [Peripheral]) async throws(SelfTestEnd) -> Int {
        if !devices.isEmpty { _ = try await access.wait(for: .seconds(5)) { _ -> Bool? in nil } }
        var alive = 0
        for device in devices where await device.disconnectReason == nil { alive += 1 }
        return alive
    }

    private func addLinks(
        from advertiser: SelfTestChannel, _ devices: inout [Peripheral], _ measured: inout SelfTestLinkLimit
    ) async throws(SelfTestEnd) {
        for number in 0...Self.mostLinks {
            let address = BluetoothAddress(rawValue: 0xC5_5E_1F_7E_57_00 | UInt64(number))
            if let refusal = await Self.advertise(as: address, advertiser) {
                measured.obstacle = "the peer does not advertise under another address (\(refusal))"
                return
            }
            await access.channel.forget()
            do throws(BLEError) {
                let device = try await peering.centralUnderTest().connect(
                    PeerID(address: address, type: .random), ConnectOptions(timeout: .seconds(8), mtu: 23))
                devices.append(device)
                measured.held += 1
            } catch {
                if error.code == .cancelled { throw .interrupted }
                measured.failure = error.reason
                measured.refusal = error.hciStatus?.rawValue
                return
            }
            if Task.isCancelled { throw .interrupted }
        }
    }

    /// The handle of the advertising set that changes its address.
    fileprivate static let setHandle: UInt8 = 0xEE

    /// Advertises with an address of its own.
    ///
    /// - Returns: The command that was refused, and its status; `nil` for none.
    private static func advertise(as address: BluetoothAddress, _ channel: SelfTestChannel) async -> String? {
        let data: [UInt8] = [0x02, 0x01, 0x06]
        let extended: [HCICommandPacket] = [
            HCICommandPacket(
                LESetExtendedAdvertisingParameters(
                    handle: setHandle, properties: [.connectable, .scannable, .legacy], interval: 96...144,
                    ownAddressType: .random)),
            HCICommandPacket(LESetAdvertisingSetRandomAddress(handle: setHandle, address: address)),
            HCICommandPacket(
                LESetExtendedAdvertisingData(
                    handle: setHandle, fragment: AdvertisingDataFragment.fragments(of: data)[0])),
            HCICommandPacket(LESetExtendedAdvertisingEnable(isEnabled: true, handles: [setHandle])),
        ]
        let legacy: [HCICommandPacket] = [
            HCICommandPacket(LESetAdvertisingEnable(isEnabled: false)) as HCICommandPacket?,
            HCICommandPacket(LESetRandomAddress(address: address)),
            HCICommandPacket(
                LESetAdvertisingParameters(kind: .connectable, interval: 96...144, ownAddressType: .random)),
            LESetAdvertisingData(data: data).map { HCICommandPacket($0) },
            HCICommandPacket(LESetAdvertisingEnable(isEnabled: true)),
        ].compactMap(\.self)
        _ = await channel.ask(HCICommandPacket(LESetExtendedAdvertisingEnable(isEnabled: false, handles: [setHandle])))
        let commands = await channel.ask(HCICommandPacket(LEReadNumberOfSupportedAdvertisingSets())).isSuccess
        for command in commands ? extended : legacy {
            let reply = await channel.ask(command)
            let isIdle = command.parameters == [0] && reply.status == HCIStatus.commandDisallowed.rawValue
            guard reply.isSuccess || isIdle else {
                return "\(command.opcode): \(reply.status.map { HCIStatus(rawValue: $0).description } ?? "no response")"
            }
        }
        return nil
    }

    private func end(_ devices: [Peripheral], _ advertiser: SelfTestChannel, _ peer: SelfTestPeer) async {
        for device in devices { await device.disconnect() }
        _ = await advertiser.ask(
            HCICommandPacket(LESetExtendedAdvertisingEnable(isEnabled: false, handles: [Self.setHandle])))
        let removed = await advertiser.ask(HCICommandPacket(LERemoveAdvertisingSet(handle: Self.setHandle)))
        if !removed.isSuccess { _ = await advertiser.ask(HCICommandPacket(LESetAdvertisingEnable(isEnabled: false))) }
        await advertiser.close()
        try? await peer.advertise()
    }
}

// MARK: - S19

/// The statuses of advertising beside a link, and beside a connection attempt.
struct SelfTestAdvertising: Hashable, Sendable {
    var whileLinked: SelfTestChannel.Reply?
    var whileInitiating: SelfTestChannel.Reply?
    /// The status with which the attempt ended meanwhile, by itself.
    var attempt: UInt8?

    func judged() -> SelfTestJudgement {
        func word(_ reply: SelfTestChannel.Reply?) -> String { reply?.status.map { Hex.encode([$0]) } ?? "none" }
        var judgement = SelfTestJudgement(
            .note,
            "linked \(word(whileLinked)), initiating \(word(whileInitiating))"
                + (attempt.map { ", the attempt ended with \(Hex.encode([$0]))" } ?? ""),
            values: [
                "whileLinked": .optional(whileLinked?.status.map { Int($0) }),
                "whileInitiating": .optional(whileInitiating?.status.map { Int($0) }),
                "attemptEnd": .optional(attempt.map { Int($0) }),
            ])
        if whileLinked?.status == HCIStatus.commandDisallowed.rawValue { judgement.quirk("W40") }
        if attempt == HCIStatus.advertisingTimeout.rawValue { judgement.quirk("W39") }
        return judgement
    }
}

extension SelfTestRunner {
    func advertiseWhileLinked() async throws(SelfTestEnd) -> SelfTestJudgement {
        if let obstacle = peering.obstacle(needsAdapter: true) { return .notRun(obstacle) }
        guard try await peering.linked() != nil else { return .notRun(Self.noLink) }
        var measured = SelfTestAdvertising()
        measured.whileLinked = try await advertiseShortly()
        await peering.unlink()
        if try await access.ask(connectToNobody).isSuccess {
            await access.channel.forget()
            measured.whileInitiating = try await advertiseShortly()
            for packet in await access.channel.drain() {
                if case .event(.connectionComplete(let complete)) = packet.content {
                    measured.attempt = complete.status.rawValue
                }
            }
            var hasEnded = measured.attempt != nil
            if !hasEnded {
                _ = try await access.ask(HCICommandPacket(LECreateConnectionCancel()))
                hasEnded =
                    try await access.wait(for: .seconds(1)) { packet -> Bool? in
                        if case .event(.connectionComplete) = packet.content { return true }
                        return nil
                    } ?? false
            }
            // One that has not is cancelled at the end.
            if hasEnded { access.attemptEnded() }
        }
        return measured.judged()
    }

    /// Switches an advertisement that can be connected on and off.
    ///
    /// - Returns: The response to switching it on.
    private func advertiseShortly() async throws(SelfTestEnd) -> SelfTestChannel.Reply {
        let on: [HCICommandPacket]
        let off: [HCICommandPacket]
        if controller.commands?.contains(octet: 36, bit: 5) ?? false {
            let handle = Self.setHandle
            on = [
                HCICommandPacket(
                    LESetExtendedAdvertisingParameters(
                        handle: handle, properties: [.connectable, .scannable, .legacy], interval: 160...320)),
                HCICommandPacket(LESetExtendedAdvertisingEnable(isEnabled: true, handles: [handle])),
            ]
            off = [
                HCICommandPacket(LESetExtendedAdvertisingEnable(isEnabled: false, handles: [handle])),
                HCICommandPacket(LERemoveAdvertisingSet(handle: handle)),
            ]
        } else {
            on = [
                HCICommandPacket(LESetAdvertisingParameters(kind: .connectable, interval: 160...320)),
                HCICommandPacket(LESetAdvertisingEnable(isEnabled: true)),
            ]
            off = [HCICommandPacket(LESetAdvertisingEnable(isEnabled: false))]
        }
        do throws(SelfTestEnd) {
            var reply = try await access.ask(on[0])
            if reply.isSuccess { reply = try await access.ask(on[1]) }
            for command in off { _ = await access.channel.ask(command) }
            return reply
        } catch {
            // The parameters alone make a set, which would stay.
            for command in off { _ = await access.channel.ask(command) }
            throw error
        }
    }
}

// MARK: - S20

/// The end of a link whose peer has fallen silent.
struct SelfTestSupervision: Hashable, Sendable {
    static let timeout: Duration = .seconds(2)
    private static let tolerance: Duration = .milliseconds(500)

    /// The reason of the end, and the time from the silence to it; `nil` if it did not come.
    var reason: UInt8?
    var time: Duration?

    func judged() -> SelfTestJudgement {
        guard let reason, let time else {
            return SelfTestJudgement(
                .note, "the link did not end within \((Self.timeout * 4).short) after its peer was reset",
                values: ["requested": .milliseconds(Self.timeout)])
        }
        var judgement = SelfTestJudgement(
            .fit,
            "the link ended with \(Hex.encode([reason])) after \(time.short), \(Self.timeout.short) were requested",
            values: [
                "requested": .milliseconds(Self.timeout), "time": .milliseconds(time), "reason": .integer(Int(reason)),
            ])
        if reason != HCIStatus.connectionTimeout.rawValue {
            // The peer has ended the link instead of falling silent.
            return SelfTestJudgement(.note, judgement.text, values: [:]).with(judgement.values)
        }
        let difference = time > Self.timeout ? time - Self.timeout : Self.timeout - time
        if difference > Self.tolerance {
            judgement.remark("a link whose peer is silent ends after \(time.short), not after \(Self.timeout.short)")
        }
        return judgement
    }
}

extension SelfTestJudgement {
    fileprivate func with(_ values: [JSONLine.Member]) -> SelfTestJudgement {
        var judgement = self
        judgement.values = values
        return judgement
    }
}

extension SelfTestRunner {
    func supervision() async throws(SelfTestEnd) -> SelfTestJudgement {
        if let obstacle = peering.obstacle(needsAdapter: true) { return .notRun(obstacle) }
        guard machine.system.privileges().has(.netAdmin) else {
            return .notRun("silencing the peer, by a reset of its controller, needs CAP_NET_ADMIN")
        }
        guard let peer = peering.peer, let link = try await peering.linked() else { return .notRun(Self.noLink) }
        let parameters = ConnectionParameters(intervalMin: 24, intervalMax: 40, latency: 0, timeout: 200)
        _ = try await access.ask(HCICommandPacket(LEConnectionUpdate(handle: link.handle, parameters: parameters)))
        _ = try await access.wait(for: .seconds(3)) { packet -> Bool? in
            if case .event(.connectionUpdateComplete) = packet.content { return true }
            return nil
        }
        let (silence, index) = (machine.silence, peer.adapter.index)
        let claim: RecoveryClaim?
        do throws(SelfTestPowerFailure) {
            claim = try machine.claimPower(of: index)
        } catch {
            await peering.unlink()
            return .notRun("\(peer.adapter.name) cannot be silenced: \(error)")
        }
        defer { withExtendedLifetime(claim) {} }
        await access.channel.forget()
        let start = machine.loop.now()
        _ = try? await machine.loop.offload { try? silence(index) }
        var measured = SelfTestSupervision()
        let handle = link.handle
        let end: (UInt8, BootInstant)?
        do throws(SelfTestEnd) {
            end = try await access.wait(for: SelfTestSupervision.timeout * 4) { packet -> (UInt8, BootInstant)? in
                guard case .event(.disconnectionComplete(let end)) = packet.content, end.handle == handle else {
                    return nil
                }
                return (end.reason.rawValue, packet.time)
            }
        } catch {
            await peer.setUpAgain()
            throw error
        }
        measured.reason = end?.0
        measured.time = end.map { $0.1 - start }
        await peering.unlink()
        await peer.setUpAgain()
        return measured.judged()
    }
}

// MARK: - S21

/// Power cycles.
struct SelfTestPowerCycles: Hashable, Sendable {
    /// The time from the power-up to the first report, for each; `nil` if none came.
    var times: [Duration?] = []
    /// Whether the adapter has kept its address and its index.
    var isSame = true
    /// The error that ended them.
    var failure: String?

    private static let limit: Duration = .seconds(5)

    func judged() -> SelfTestJudgement {
        var judgement = SelfTestJudgement(
            .fit,
            "first report after " + times.map { $0?.short ?? "never" }.joined(separator: ", "),
            values: [
                "firstReports": .array(times.map { $0.map { .milliseconds($0) } ?? .null }),
                "sameAdapter": .bool(isSame),
            ])
        if let failure { judgement.remark("it could not be switched off and on: \(failure)", verdict: .unfit) }
        if times.contains(nil) {
            judgement.remark("nothing was heard after a power cycle", verdict: .unfit)
        } else if let slowest = times.compactMap(\.self).max(), slowest >= Self.limit {
            judgement.remark("the first report came \(slowest.short) after the power-up", "W62")
        }
        if !isSame { judgement.remark("it came back with another address or index", "W59") }
        return judgement
    }
}

extension SelfTestRunner {
    func powerCycles() async throws(SelfTestEnd) -> SelfTestJudgement {
        if let obstacle = peering.obstacle(needsAdapter: true) { return .notRun(obstacle) }
        guard controller.scanner != nil else { return .notRun(Self.noScan) }
        guard machine.system.privileges().has(.netAdmin) else {
            return .notRun("switching the adapter off and on needs CAP_NET_ADMIN")
        }
        var measured = SelfTestPowerCycles()
        for _ in 0..<3 {
            if let failure = try await powerCycle() {
                // That is no evidence about the controller.
                if failure == .claimed {
                    return .notRun("it could not be switched off and on: \(failure)")
                }
                measured.failure = "\(failure)"
                break
            }
            let start = machine.loop.now()
            try await unmask()
            guard try await scanOn(ScanPlan(.passive))?.isSuccess == true else {
                measured.times.append(nil)
                continue
            }
            let heard = try await access.listen(for: .seconds(5)) { $0.reports > 0 }
            measured.times.append(heard.reports > 0 ? machine.loop.now() - start : nil)
            try await scanOff()
            if let now = try? machine.system.info(adapter.index) {
                measured.isSame = measured.isSame && now.address.description == adapter.address
            }
        }
        return measured.judged()
    }
}
