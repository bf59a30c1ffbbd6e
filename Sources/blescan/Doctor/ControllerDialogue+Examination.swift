import BLECore

extension ControllerDialogue {
    private static let acceptListSize = HCIOpcode(rawValue: 0x200F)
    private static let resolvingListSize = HCIOpcode(rawValue: 0x202A)
    private static let bufferSize = HCIOpcode(rawValue: 0x2002)

    /// Queries the controller's features, and how it scans; no scanner if it does not report its features.
    mutating func describe() async -> (ControllerFacts, ScanSession.Controller?) {
        var facts = ControllerFacts()
        facts.version = await values(of: HCICommandPacket(HCIReadLocalVersion()), &facts)
            .flatMap { try? HCIReadLocalVersion.parameters(from: $0.span) }.map { VersionFacts($0) }
        let features = await values(of: HCICommandPacket(LEReadLocalFeatures()), &facts)
            .flatMap { try? LEReadLocalFeatures.parameters(from: $0.span) }
        facts.features = features?.rawValue
        let commands = await values(of: HCICommandPacket(HCIReadLocalSupportedCommands()), &facts)
            .flatMap { try? HCIReadLocalSupportedCommands.parameters(from: $0.span) }
        facts.listsExtendedScan = commands?.hasExtendedScan
        facts.acceptListSize = await values(of: HCICommandPacket(opcode: Self.acceptListSize, parameters: []), &facts)?
            .first
        if features?.contains(.addressResolution) ?? false {
            facts.resolvingListSize =
                await values(of: HCICommandPacket(opcode: Self.resolvingListSize, parameters: []), &facts)?.first
        }
        if let sizes = await values(of: HCICommandPacket(opcode: Self.bufferSize, parameters: []), &facts) {
            var reader = ByteReader(sizes.span)
            facts.bufferLength = reader.u16()
            facts.bufferCount = reader.u8()
        }
        let address = await values(of: HCICommandPacket(HCIReadAddress()), &facts)
            .flatMap { try? HCIReadAddress.parameters(from: $0.span) }
        guard let features else { return (facts, nil) }
        let type: AddressType = address == .zero ? .random : .public
        return (facts, ScanSession.Controller(features: features, commands: commands, ownAddressType: type))
    }

    /// Makes a passive scan: parameters, on, listening for a time, off. Ends at the first command that fails; what was
    /// switched on is switched off in any case.
    mutating func scan(_ controller: ScanSession.Controller, for time: Duration) async -> ScanFacts {
        let plan = ScanPlan(.passive)
        var facts = ScanFacts(isExtended: controller.hasExtendedScan, steps: [])
        for packet in [controller.parameters(for: plan), controller.scanOn(for: plan)] {
            let result = await ask(packet).result
            facts.steps.append(result)
            guard result.status == 0 else { return facts }
        }
        facts.heard = await listen(for: time)
        facts.steps.append(await ask(controller.scanOff).result)
        return facts
    }

    /// Returns the return parameters of a command; a failed one is noted.
    private mutating func values(of packet: HCICommandPacket, _ facts: inout ControllerFacts) async -> [UInt8]? {
        let response = await ask(packet)
        guard response.result.status != 0 else { return response.values }
        facts.failures.append(response.result)
        return nil
    }
}

extension VersionFacts {
    init(_ version: HCIVersion) {
        self.init(
            hciRevision: version.hciRevision, company: version.company, linkSubversion: version.linkSubversion)
    }
}
