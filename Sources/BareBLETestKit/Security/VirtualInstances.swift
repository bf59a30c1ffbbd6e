internal import BLECore

// The advertising instances of one adapter in the virtual kernel, and the commands by which it puts them on air.
//
// Invariants
// - On a controller with advertising sets, each instance has the set of its number. Without sets the newest instance is
//   on air: the kernel's rotation is not simulated.
// - An instance by which a central has connected is off air until a link ends.
// - Instances outlive power cycles and the sockets that have added them. That Set Powered removes those of a controller
//   with sets, as in the kernel's sources, is not simulated.
// - Read Advertising Features leaves out the numbers that are greater than the number of instances, as the kernel does
//   since 6.1.
// - An instance is removed while the adapter is off too. Kernels that refuse that do so with an error number of the
//   socket, which is not simulated.

/// The advertising instances of an adapter of a virtual machine.
struct VirtualInstances {
    private struct Instance {
        let number: UInt8
        let flags: ManagementAdvertisingFlags
        let interval: ClosedRange<UInt32>
        let power: Int8?
        var data: [UInt8] = []
        var scanResponse: [UInt8] = []
        /// True until it has data.
        var isPending = true
        /// True if the controller has its set.
        var isSetUp = false
        /// True if a central has connected by it.
        var isUsed = false

        var isExtended: Bool { !flags.isDisjoint(with: [.secondary1M, .secondary2M, .secondaryCoded]) }
        var isConnectable: Bool { flags.contains(.connectable) }
        var isScannable: Bool { flags.contains(.scanResponse) || !scanResponse.isEmpty }
    }

    /// The result of a command.
    struct Outcome {
        var status = ManagementStatus.success
        var returned: [UInt8] = []
        var commands: [HCICommandPacket] = []
        /// Whether there is an instance that was not there before.
        var isNew = false

        static func failure(_ status: ManagementStatus) -> Outcome { Outcome(status: status) }
    }

    /// The number of instances of a controller without sets.
    private static let rotated: UInt8 = 5

    private var instances: [Instance] = []
    private var hasSets = true
    private var chosenLimit: UInt8?

    private var limit: UInt8 {
        chosenLimit ?? (hasSets ? UInt8(truncatingIfNeeded: VirtualAdvertiser.setLimit) : Self.rotated)
    }

    private var capacity: UInt8 { hasSets ? UInt8(truncatingIfNeeded: VirtualAdvertiser.maximumDataLength) : 31 }

    private var supported: ManagementAdvertisingFlags {
        var flags: ManagementAdvertisingFlags = [.connectable, .intervals, .txPower, .scanResponse]
        if hasSets { flags.formUnion([.secondary1M, .secondary2M, .secondaryCoded]) }
        return flags
    }

    /// Keeps whether the controller has advertising sets.
    mutating func use(hasSets: Bool) { self.hasSets = hasSets }

    /// Sets how many instances there can be; `nil` for as many as the controller allows.
    mutating func limit(to count: UInt8?) { chosenLimit = count }

    /// The numbers of the instances, in the order in which they were added.
    var numbers: [UInt8] { instances.map(\.number) }

    // MARK: Commands

    /// What Read Advertising Features returns.
    var features: [UInt8] {
        var writer = ByteWriter()
        writer.u32(supported.rawValue)
        writer.u8(capacity)
        writer.u8(capacity)
        writer.u8(limit)
        let listed = numbers.filter { Int($0) <= instances.count }
        writer.u8(UInt8(truncatingIfNeeded: listed.count))
        writer.array(listed)
        return writer.bytes
    }

    /// Add Extended Advertising Parameters.
    mutating func setParameters(_ parameters: [UInt8], isUp: Bool) -> Outcome {
        var reader = ByteReader(parameters.span)
        guard let number = reader.u8(), let bits = reader.u32(), reader.skip(4), let shortest = reader.u32(),
            let longest = reader.u32(), let power = reader.i8(), number >= 1, number <= limit
        else { return .failure(.invalidParameters) }
        let flags = ManagementAdvertisingFlags(rawValue: bits)
        guard supported.isSuperset(of: flags) else { return .failure(.invalidParameters) }
        guard isUp else { return .failure(.rejected) }
        let interval: (UInt32, UInt32) = flags.contains(.intervals) ? (shortest, longest) : (0x0800, 0x0800)
        guard interval.0 >= 0x20, interval.0 <= interval.1, interval.1 <= 0x4000 else {
            return .failure(.invalidParameters)
        }
        var instance = Instance(
            number: number, flags: flags, interval: interval.0...interval.1,
            power: flags.contains(.txPower) ? power : nil)
        if let index = index(of: number) {
            // It is replaced, and no other program is notified.
            instance.isPending = instances[index].isPending
            instance.isSetUp = instances[index].isSetUp
            instances[index] = instance
        } else {
            instances.append(instance)
        }
        return Outcome(returned: [number, UInt8(bitPattern: instance.power ?? 0x7F), capacity, capacity])
    }

    /// Add Extended Advertising Data.
    mutating func setData(_ parameters: [UInt8], isUp: Bool) -> Outcome {
        var reader = ByteReader(parameters.span)
        guard let number = reader.u8(), let count = reader.u8(), let countOfResponse = reader.u8(),
            let index = index(of: number)
        else { return .failure(.invalidParameters) }
        guard isUp else {
            instances.remove(at: index)
            return .failure(.rejected)
        }
        guard let data = reader.array(Int(count)), let response = reader.array(Int(countOfResponse)), reader.isAtEnd,
            isValid(data), isValid(response)
        else {
            instances.remove(at: index)
            return .failure(.invalidParameters)
        }
        let isNew = instances[index].isPending
        instances[index].data = data
        instances[index].scanResponse = response
        instances[index].isPending = false
        instances[index].isUsed = false
        return Outcome(returned: [number], commands: setUp(index), isNew: isNew)
    }

    /// Remove Advertising.
    ///
    /// - Returns: The commands, and the numbers of what was removed.
    mutating func remove(_ number: UInt8) -> (commands: [HCICommandPacket], removed: [UInt8]) {
        let removed = instances.filter { number == 0 || $0.number == number }
        instances.removeAll { number == 0 || $0.number == number }
        guard !removed.isEmpty else { return ([], []) }
        var commands: [HCICommandPacket] = []
        if hasSets {
            for instance in removed where instance.isSetUp {
                commands.append(enable(false, instance))
                commands.append(HCICommandPacket(LERemoveAdvertisingSet(handle: instance.number)))
            }
        } else {
            commands.append(HCICommandPacket(LESetAdvertisingEnable(isEnabled: false)))
            if let next = instances.indices.last, !instances[next].isPending { commands += setUp(next) }
        }
        return (commands, removed.map(\.number))
    }

    // MARK: What happens

    /// A central has connected by an advertising set.
    mutating func centralConnected(by handle: UInt8) {
        guard hasSets, let index = index(of: handle) else { return }
        instances[index].isUsed = true
    }

    mutating func linkEnded() {
        for index in instances.indices { instances[index].isUsed = false }
    }

    /// Returns the commands that put on air what a connection attempt or a link has taken off air.
    func resuming() -> [HCICommandPacket] {
        if hasSets {
            return instances.filter { $0.isSetUp && !$0.isPending && !$0.isUsed }.map { enable(true, $0) }
        }
        return instances.last?.isPending == false
            ? [HCICommandPacket(LESetAdvertisingEnable(isEnabled: true))] : []
    }

    /// The adapter was switched on or off; returns the commands that follow.
    mutating func powerChanged(_ isUp: Bool) -> [HCICommandPacket] {
        for index in instances.indices {
            instances[index].isSetUp = false
            instances[index].isUsed = false
        }
        guard isUp else { return [] }
        var commands: [HCICommandPacket] = []
        for index in hasSets ? Array(instances.indices) : Array(instances.indices.suffix(1)) {
            if !instances[index].isPending { commands += setUp(index) }
        }
        return commands
    }

    // MARK: The controller

    private func enable(_ isEnabled: Bool, _ instance: Instance) -> HCICommandPacket {
        HCICommandPacket(LESetExtendedAdvertisingEnable(isEnabled: isEnabled, handles: [instance.number]))
    }

    /// Returns the commands that put an instance on air with its present contents.
    private mutating func setUp(_ index: Int) -> [HCICommandPacket] {
        let instance = instances[index]
        defer { instances[index].isSetUp = true }
        return hasSets ? setUpSet(instance) : setUpAdvertiser(instance)
    }

    private func setUpSet(_ instance: Instance) -> [HCICommandPacket] {
        var properties: LESetExtendedAdvertisingParameters.Properties = instance.isExtended ? [] : .legacy
        if instance.isConnectable {
            properties.formUnion(instance.isExtended ? .connectable : [.connectable, .scannable])
        } else if instance.isScannable {
            properties.insert(.scannable)
        }
        let isCoded = instance.flags.contains(.secondaryCoded)
        var commands = instance.isSetUp ? [enable(false, instance)] : []
        commands.append(
            HCICommandPacket(
                LESetExtendedAdvertisingParameters(
                    handle: instance.number, properties: properties, interval: instance.interval,
                    txPower: instance.power, primaryPHY: isCoded ? .leCoded : .le1M,
                    secondaryPHY: isCoded ? .leCoded : instance.flags.contains(.secondary2M) ? .le2M : .le1M)))
        if !instance.data.isEmpty {
            commands += AdvertisingDataFragment.fragments(of: instance.data).map {
                HCICommandPacket(LESetExtendedAdvertisingData(handle: instance.number, fragment: $0))
            }
        }
        if !instance.scanResponse.isEmpty {
            commands += AdvertisingDataFragment.fragments(of: instance.scanResponse).map {
                HCICommandPacket(LESetExtendedScanResponseData(handle: instance.number, fragment: $0))
            }
        }
        commands.append(enable(true, instance))
        return commands
    }

    private func setUpAdvertiser(_ instance: Instance) -> [HCICommandPacket] {
        let kind: LESetAdvertisingParameters.Kind =
            instance.isConnectable ? .connectable : instance.isScannable ? .scannable : .nonconnectable
        var commands = [
            HCICommandPacket(LESetAdvertisingEnable(isEnabled: false)),
            HCICommandPacket(
                LESetAdvertisingParameters(
                    kind: kind,
                    interval: UInt16(
                        truncatingIfNeeded: instance.interval.lowerBound)...UInt16(
                            truncatingIfNeeded: instance.interval.upperBound))),
        ]
        if let data = LESetAdvertisingData(data: instance.data) { commands.append(HCICommandPacket(data)) }
        if let response = LESetScanResponseData(data: instance.scanResponse) {
            commands.append(HCICommandPacket(response))
        }
        commands.append(HCICommandPacket(LESetAdvertisingEnable(isEnabled: true)))
        return commands
    }

    private func index(of number: UInt8) -> Int? { instances.firstIndex { $0.number == number } }

    /// Whether data fits, and consists of whole structures.
    private func isValid(_ data: [UInt8]) -> Bool {
        guard data.count <= Int(capacity) else { return false }
        var reader = ByteReader(data.span)
        while let length = reader.u8() {
            guard reader.skip(Int(length)) else { return false }
        }
        return true
    }
}
