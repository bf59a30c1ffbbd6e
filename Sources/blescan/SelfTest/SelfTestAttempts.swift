import BLECore
import BLELinux
import BareBLE

// S12 and S13: a connection attempt to an unused address, and commands that have to be refused.

// MARK: - S12

/// An attempt to connect to an unused address.
struct SelfTestAttempt: Hashable, Sendable {
    typealias Reply = SelfTestChannel.Reply

    /// The event that ends an attempt.
    struct Completion: Hashable, Sendable {
        let status: UInt8
        /// The time since the cancel.
        let time: Duration
    }

    /// While a scan runs.
    var whileScanning: Reply?
    /// Without a scan, if it was refused beside one.
    var alone: Reply?
    /// The extended command, where it was refused as unknown and the legacy one was used.
    var refusedExtended: Reply?
    /// A second attempt during the first one.
    var second: Reply?
    /// Parameters of a scan during the attempt.
    var scanParameters: Reply?
    /// The status of an event that ended the attempt before it was cancelled.
    var early: UInt8?
    var cancel: Reply?
    /// The event after the cancel; `nil` if it did not come.
    var completion: Completion?
    /// Scanning afterwards.
    var scanAfterwards: Reply?

    static let limit: Duration = .seconds(1)

    func judged() -> SelfTestJudgement {
        func status(_ reply: Reply?) -> JSONLine? { reply.map { .optional($0.status.map { Int($0) }) } }
        func word(_ reply: Reply?) -> String { reply?.status.map { Hex.encode([$0]) } ?? "none" }
        var judgement = SelfTestJudgement(
            .fit,
            "beside a scan \(word(whileScanning)), second attempt \(word(second)), cancel \(word(cancel))"
                + (completion.map { ", completion \(Hex.encode([$0.status])) after \($0.time.short)" } ?? ""),
            values: [
                "whileScanning": status(whileScanning), "alone": status(alone), "second": status(second),
                "scanParameters": status(scanParameters), "cancel": status(cancel),
                "completion": completion.map { .integer(Int($0.status)) },
                "completionTime": completion.map { .milliseconds($0.time) },
                "scanAfterwards": status(scanAfterwards),
            ])
        if refusedExtended != nil {
            judgement.remark("it lists the extended connect and refuses it; the legacy command is used", "W05")
        }
        guard [whileScanning, alone].contains(where: { $0?.isSuccess ?? false }) else {
            judgement.remark(
                "it accepts no connection attempt (\(word(alone ?? whileScanning)))", verdict: .unfit)
            return judgement
        }
        if let second {
            if second.isSuccess {
                judgement.remark("it accepts a second attempt during the first one")
            } else if second.status != HCIStatus.commandDisallowed.rawValue {
                judgement.remark(
                    "it refuses a second attempt with \(word(second)) instead of 0c", "W38")
            }
        }
        if scanParameters?.status == HCIStatus.commandDisallowed.rawValue { judgement.quirk("W36") }
        if let early {
            judgement.remark(
                "the attempt to connect to an unused address ended by itself with \(Hex.encode([early]))")
        } else if cancel?.status == nil {
            judgement.remark("the cancel had no response", "W37", verdict: .unfit)
        } else if cancel?.isSuccess == false {
            judgement.remark("the cancel was refused with \(word(cancel))", verdict: .unfit)
        } else if let completion {
            if completion.status != HCIStatus.unknownConnection.rawValue {
                judgement.remark("the cancelled attempt ended with \(Hex.encode([completion.status])) instead of 02")
            }
            if completion.time >= Self.limit {
                judgement.remark("the cancelled attempt ended \(completion.time.short) late")
            }
        } else {
            judgement.remark("the event that ends a cancelled attempt did not come", "W34", verdict: .unfit)
        }
        if let scanAfterwards, !scanAfterwards.isSuccess {
            judgement.remark("it does not scan after the attempt (\(word(scanAfterwards)))", verdict: .unfit)
        }
        return judgement
    }
}

extension SelfTestRunner {
    /// A static address that is made up.
    private static let nobody = PeerID(
        address: BluetoothAddress(rawValue: 0xF1_5E_1F_7E_57_01), type: .random)

    var connectToNobody: HCICommandPacket {
        let initiation = LEInitiation(
            peer: Self.nobody, ownAddressType: controller.scanner?.ownAddressType ?? .public)
        return controller.connectsExtended
            ? HCICommandPacket(LEExtendedCreateConnection(initiation))
            : HCICommandPacket(LECreateConnection(initiation))
    }

    func attempt() async throws(SelfTestEnd) -> SelfTestJudgement {
        guard controller.scanner != nil else { return .notRun(Self.noScan) }
        var measured = SelfTestAttempt()
        _ = try await scanOn(ScanPlan(.passive))
        var reply = try await access.ask(connectToNobody)
        if controller.connectsExtended, reply.status == HCIStatus.unknownCommand.rawValue {
            measured.refusedExtended = reply
            controller.refusesExtendedConnect()
            reply = try await access.ask(connectToNobody)
        }
        measured.whileScanning = reply
        if !reply.isSuccess {
            try await scanOff()
            measured.alone = try await access.ask(connectToNobody)
        }
        if [measured.whileScanning, measured.alone].contains(where: { $0?.isSuccess ?? false }) {
            measured.second = try await access.ask(connectToNobody)
            if measured.alone != nil, let scanner = controller.scanner {
                measured.scanParameters = try await access.ask(scanner.parameters(for: ScanPlan(.passive)))
            }
            try await cancel(&measured)
        }
        if measured.alone == nil { try await scanOff() }
        measured.scanAfterwards = try await scanOn(ScanPlan(.passive))
        try await scanOff()
        return measured.judged()
    }

    private func cancel(_ measured: inout SelfTestAttempt) async throws(SelfTestEnd) {
        for packet in await access.channel.drain() {
            if case .event(.connectionComplete(let complete)) = packet.content {
                measured.early = complete.status.rawValue
            }
        }
        let start = machine.loop.now()
        measured.cancel = try await access.ask(HCICommandPacket(LECreateConnectionCancel()))
        guard measured.early == nil || measured.cancel?.isSuccess == true else { return access.attemptEnded() }
        measured.completion = try await access.wait(for: .seconds(3)) { packet -> SelfTestAttempt.Completion? in
            guard case .event(.connectionComplete(let complete)) = packet.content else { return nil }
            return SelfTestAttempt.Completion(status: complete.status.rawValue, time: packet.time - start)
        }
        if measured.completion != nil { access.attemptEnded() }
    }
}

// MARK: - S13

/// Commands that a controller has to refuse.
struct SelfTestRefusals: Hashable, Sendable {
    /// A scan with a random address of its own, where none was set.
    var randomAddress: SelfTestChannel.Reply?
    /// A command that does not exist.
    var unknown: SelfTestChannel.Reply
    /// The signal strength of a link that does not exist.
    var link: SelfTestChannel.Reply

    func judged() -> SelfTestJudgement {
        func word(_ reply: SelfTestChannel.Reply?) -> String { reply?.status.map { Hex.encode([$0]) } ?? "none" }
        let slowest = SelfTestTimes([randomAddress, unknown, link].compactMap { $0?.time }).maximum ?? .zero
        var judgement = SelfTestJudgement(
            .fit,
            "no random address \(word(randomAddress)), unknown command \(word(unknown)), unknown link \(word(link)), "
                + "within \(slowest.short)",
            values: [
                "randomAddress": .optional(randomAddress?.status.map { Int($0) }),
                "unknownCommand": .optional(unknown.status.map { Int($0) }),
                "unknownLink": .optional(link.status.map { Int($0) }), "slowest": .milliseconds(slowest),
            ])
        if let randomAddress {
            switch randomAddress.end {
            // The kernel or another program may have set an address.
            case .status(0), .status(HCIStatus.invalidParameters.rawValue): break
            case .status(let status):
                judgement.remark(
                    "a scan without the address that it needs is refused as \(Hex.encode([status])) instead of 12",
                    "W12")
            default: judgement.remark("a scan without the address that it needs had no response", "W17")
            }
        }
        refusal(of: "an unknown command", unknown, [.unknownCommand], &judgement)
        refusal(
            of: "a command for an unknown link", link, [.unknownConnection, .invalidParameters], &judgement)
        if slowest >= SelfTestResponses.limit { judgement.remark("refusals take up to \(slowest.short)", "W15") }
        return judgement
    }

    private func refusal(
        of what: String, _ reply: SelfTestChannel.Reply, _ expected: [HCIStatus], _ judgement: inout SelfTestJudgement
    ) {
        guard let status = reply.status else {
            judgement.remark("\(what) had no response", "W17")
            return
        }
        guard !expected.map(\.rawValue).contains(status) else { return }
        judgement.remark("\(what) got \(Hex.encode([status])) instead of \(Hex.encode([expected[0].rawValue]))")
    }
}

extension SelfTestRunner {
    private static let unknownCommand = HCIOpcode(rawValue: 0x20FF)
    private static let unknownLink: ConnectionHandle = 0x0EFE

    func refusals() async throws(SelfTestEnd) -> SelfTestJudgement {
        var randomAddress: SelfTestChannel.Reply?
        if var random = controller.scanner, random.ownAddressType == .public {
            random.ownAddressType = .random
            var plan = ScanPlan(.passive)
            plan.isActive = true
            let parameters = try await access.ask(random.parameters(for: plan))
            randomAddress = parameters
            if parameters.isSuccess {
                randomAddress = try await access.ask(random.scanOn(for: plan))
                try await scanOff()
            }
            if let scanner = controller.scanner {
                _ = try await access.ask(scanner.parameters(for: ScanPlan(.passive)))
            }
        }
        let unknown = try await access.ask(HCICommandPacket(opcode: Self.unknownCommand, parameters: []))
        let link = try await access.ask(HCICommandPacket(HCIReadRSSI(handle: Self.unknownLink)))
        return SelfTestRefusals(randomAddress: randomAddress, unknown: unknown, link: link).judged()
    }
}
