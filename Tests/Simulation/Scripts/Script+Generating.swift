// What a seed brings. Each seed leaves out a random part of what may happen, so that what is left happens often.

import BLECore
import BareBLETestKit

extension Script {
    /// The script of a seed.
    init(seed: UInt64) {
        self.init(seed: seed, adapters: [])
        var world = Numbers(seed: seed, .world)
        var kinds = Numbers(seed: seed, .peers)
        var schedule = Numbers(seed: seed, .schedule)
        adapters = (0..<(world.chance(80) ? 1 : 2)).map { _ in
            world.chance(40) ? Self.usualAdapter : world.pick(Self.adapterNames)
        }
        // Most worlds are small, so that many of them fit into a minute.
        let count = world.chance(70) ? world.pick(1...2) : world.chance(80) ? world.pick(3...4) : world.pick(5...8)
        length = 1000 * (world.chance(80) ? world.pick(5...25) : world.pick(25...90))
        let usual = kinds.some(of: [PeerKind.vendor, .adversary, .slow, .amnesiac]) + [.honest]
        peers = (0..<count).map { _ in kinds.chance(40) ? .honest : kinds.pick(usual) }
        steps = applications(&schedule) + disturbances(&schedule)
        var limits = Numbers(seed: seed, .recovery)
        recovery = limits.pick([.rescan] + Self.recoveryLimits)
        addNeighbour()
        addSecurity()
        addLostBonds()
        addLinkLimits()
        addDataLosses()
        steps.sort { ($0.time, $0.number) < ($1.time, $1.number) }
    }

    private func applications(_ schedule: inout Numbers) -> [Step] {
        var numbers = Numbers(seed: seed, .applications)
        var steps: [Step] = []
        func add(_ step: Step) {
            var step = step
            step.number = steps.count
            steps.append(step)
        }
        // The peers that need a link, and how.
        for peer in peers.indices {
            let verb: Verb = numbers.chance(50) ? .session : .connect
            add(Step(number: 0, time: schedule.pick(0...1500), verb: verb, subject: peer))
        }
        if numbers.chance(40) {
            add(
                Step(
                    number: 0, time: schedule.pick(0...length / 2), verb: .scan, subject: numbers.pick(0...1),
                    first: numbers.pick(500...length), second: numbers.pick([1, 2, 64])))
        }
        for peer in peers.indices {
            for verb in Self.favourites[peers[peer]] ?? [] where numbers.chance(60) {
                var step = Step(number: 0, time: schedule.pick(1000...length), verb: verb, subject: peer)
                step.first = numbers.pick(0...1)
                step.second = verb == .write ? 200 : length * 8 + 7
                add(step)
            }
        }
        let verbs = usedVerbs(&numbers)
        for _ in 0..<numbers.pick(5...20) * (peers.count < 4 ? 1 : 2) {
            let verb = numbers.pick(verbs)
            var step = Step(
                number: 0, time: schedule.pick(500...length), verb: verb, subject: numbers.pick(0...peers.count - 1))
            step.first = numbers.pick(0...11)
            step.second = numbers.pick([4, 12, 20, 60, 200, 512])
            step.limit = numbers.chance(25) ? numbers.pick([1, 30, 200, 1000, 5000]) : 0
            switch verb {
            case .subscribe: step.second = numbers.pick([50, 500, 3000, length]) * 8 + numbers.pick([1, 2, 7])
            case .burst: step.second = numbers.pick([2, 3, 10, 70])
            case .exclusively: step.second = numbers.pick([0, 100, 2000])
            case .cancel: step.first = steps.isEmpty ? 0 : numbers.pick(0...steps.count - 1)
            case .notify: step.second = numbers.pick([1, 5, 40])
            case .disconnect, .discover, .changeServices: step.first = numbers.pick(0...1)
            case .scan:
                step.subject = numbers.pick(0...1)
                step.first = numbers.pick([100, 3000, length])
                step.second = numbers.pick([1, 2, 64])
            default: break
            }
            // One that no peer has, now and then.
            if verb == .read, numbers.chance(5) { step.first = -1 }
            // Calls that begin at one moment, and a cancel while a call is under way.
            if let last = steps.last, numbers.chance(20) { step.time = last.time }
            if verb == .cancel, let aim = steps.first(where: { $0.number == step.first }) {
                step.time = aim.time + numbers.pick([0, 1, 31, 100, 700])
            }
            add(step)
        }
        return steps
    }

    /// The steps that are typical for a kind of peer.
    private static let favourites: [PeerKind: [Verb]] = [
        .amnesiac: [.subscribe, .changeServices, .changeServices, .outOfSync], .adversary: [.provoke, .provoke],
        .vendor: [.discover, .write, .write],
    ]

    private func usedVerbs(_ numbers: inout Numbers) -> [Verb] {
        let rare: [Verb] = [
            .connect, .disconnect, .endSession, .session, .discover, .command, .burst, .exclusively, .cancelAll, .rssi,
            .cancel, .scan, .changeServices, .outOfSync, .provoke,
        ]
        return [.read, .read, .write, .subscribe, .notify] + numbers.some(of: rare)
    }

    /// Another program on one of the adapters, in some worlds.
    private mutating func addNeighbour() {
        var numbers = Numbers(seed: seed, .neighbours)
        guard numbers.chance(30) else { return }
        let adapter = numbers.pick(0...adapters.count - 1)
        let near = peers.indices.filter { $0 % adapters.count == adapter }
        neighbours = [adapter]
        for index in 0..<numbers.pick(1...6) {
            let isScan = near.isEmpty || numbers.chance(40)
            var step = Step(
                number: 2000 + index, time: numbers.pick(0...length), verb: isScan ? .neighbourScan : .neighbourConnect,
                subject: isScan ? adapter : numbers.pick(near))
            step.first = numbers.pick([1, 100, 1000, 3000, length])
            step.second = numbers.pick([1, 2, 64])
            steps.append(step)
            guard numbers.chance(25) else { continue }
            let pause = numbers.pick([0, 1, 31, 100, 700])
            steps.append(
                Step(number: 3000 + index, time: step.time + pause, verb: .cancel, subject: 0, first: step.number))
        }
    }

    /// Bonds, in some of the worlds without another program.
    private mutating func addSecurity() {
        var numbers = Numbers(seed: seed, .security)
        guard neighbours.isEmpty, numbers.chance(40) else { return }
        security = numbers.chance(80) ? Array(adapters.indices) : [numbers.pick(0...adapters.count - 1)]
        // A bonded peer with private addresses is found by a scan alone.
        let hearing = adapters.indices.filter { personality($0).scansBesideLinks && personality($0).deafness == nil }
        security = security.filter(hearing.contains)
        guard !security.isEmpty else { return }
        var verbs: [Verb] = [.pair, .pair, .connectPairing, .connectBonded, .forget]
        if numbers.chance(30) { verbs.append(.crash) }
        for index in 0..<numbers.pick(2...8) + peers.count {
            // Each peer is paired at first, in most worlds.
            let isFirst = index < peers.count
            let verb = isFirst ? .pair : numbers.pick(verbs)
            if isFirst, !numbers.chance(80) { continue }
            var step = Step(
                number: 4000 + index, time: isFirst ? numbers.pick(500...length / 2) : numbers.pick(500...length),
                verb: verb, subject: isFirst ? index : numbers.pick(0...peers.count - 1))
            step.first = numbers.pick([0, 0, 0, 1, 2]) + 4 * numbers.pick([0, 0, 0, 1, 2])
            step.second = numbers.pick(0...7)
            if verb == .crash {
                step.first = numbers.pick([0, 1, 2, 3, 4, 5, 6, 8])
                step.second = numbers.pick([100, 2000])
            }
            step.limit = numbers.chance(20) ? numbers.pick([30, 200, 1000, 5000]) : 0
            steps.append(step)
            guard numbers.chance(25) else { continue }
            let pause = numbers.pick([0, 1, 20, 31, 45, 60, 100, 700])
            steps.append(
                Step(number: 5000 + index, time: step.time + pause, verb: .cancel, subject: 0, first: step.number))
        }
        let kinds = numbers.some(of: Self.bondFaults)
        guard !kinds.isEmpty else { return }
        for index in 0..<numbers.pick(0...10) { steps.append(bondFault(numbers.pick(kinds), 6000 + index, &numbers)) }
    }

    /// Peers that have lost their bonds, and connects that find it out: in the other steps something else mostly
    /// happens first.
    private mutating func addLostBonds() {
        var numbers = Numbers(seed: seed, .lostBonds)
        guard !security.isEmpty, numbers.chance(50) else { return }
        for index in 0..<numbers.pick(1...3) {
            let peer = numbers.pick(0...peers.count - 1)
            let time = numbers.pick(length / 2...length - 1000)
            let number = 9000 + 3 * index
            steps.append(Step(number: number, time: time, verb: .loseBonds, subject: peer))
            steps.append(Step(number: number + 1, time: time + 1, verb: .hangUp, subject: peer, first: 0x13))
            let pause = numbers.pick([31, 200, 700])
            steps.append(Step(number: number + 2, time: time + pause, verb: .connectBonded, subject: peer))
        }
    }

    /// Limits of links, where nothing but the controller's limit takes a link away, and no bonds: the kernel makes
    /// links for these, beyond any limit.
    private mutating func addLinkLimits() {
        var numbers = Numbers(seed: seed, .linkLimits)
        guard security.isEmpty else { return }
        let drawn = adapters.indices.map { _ in
            LinkLimit(
                links: numbers.chance(50) ? numbers.pick(1...4) : numbers.pick(1...16),
                reaction: numbers.pick(Self.reactions))
        }
        let stalling = stallingAdapters()
        linkLimits = adapters.indices.map { index in
            guard Self.imitation(adapters[index]).isSteady else { return .ample }
            var limit = drawn[index]
            if stalling.contains(index) { limit.reaction = .neverCompletes }
            return limit
        }
    }

    /// The adapters whose controllers do not complete an attempt beyond their limits: those that imitate one of that
    /// kind, and some others. Not where another program shares the adapter: while a controller initiates it does not
    /// scan for that program, and nothing is promised of how long that lasts.
    private func stallingAdapters() -> [Int] {
        var numbers = Numbers(seed: seed, .stalls)
        return adapters.indices.filter { index in
            let isDrawn = numbers.chance(10)
            let isImitated = Self.imitation(adapters[index]).beyondLimit == .neverCompletes
            return (isDrawn || isImitated) && !neighbours.contains(index)
        }
    }

    /// Controllers that lose the data of their links, where they report what they hear, and no bonds are kept: what a
    /// pairing loses, the faults of bonds simulate.
    private mutating func addDataLosses() {
        var numbers = Numbers(seed: seed, .dataLosses)
        guard security.isEmpty else { return }
        for index in adapters.indices where numbers.chance(15) {
            let losses: [VirtualPersonality.DataLoss] = [
                .received, .receivedEvery(numbers.pick([3, 10, 40])), .reordersEvery(numbers.pick([2, 5, 20])),
                .sentBeyond(numbers.pick(1...4)),
            ]
            let loss = numbers.pick(losses)
            guard Self.imitation(adapters[index]).isSteady else { continue }
            dataLosses.append(DataLoss(adapter: index, loss: loss))
        }
    }

    /// What controllers do about an attempt beyond their limits.
    private static let reactions: [VirtualPersonality.BeyondLimit] = [
        .fails(.connectionLimitExceeded), .refuses(.connectionLimitExceeded),
        .fails(.connectionRejectedLimitedResources), .refuses(.connectionRejectedLimitedResources),
        .fails(.memoryCapacityExceeded), .refuses(.memoryCapacityExceeded),
    ]

    private func bondFault(_ verb: Verb, _ number: Int, _ numbers: inout Numbers) -> Step {
        var step = Step(
            number: number, time: numbers.pick(0...length), verb: verb,
            subject: numbers.pick(0...(verb.isOnAdapter ? 1 : peers.count - 1)))
        switch verb {
        case .requestSecurity, .emptyLists: step.first = numbers.pick(1...3)
        case .forge: step.first = numbers.pick([500, 3000, 12_000])
        case .failPairings:
            step.first = numbers.pick([500, 3000, 12_000])
            step.second = numbers.pick(0...2)
        case .changeSetting:
            step.first = numbers.pick(0...2)
            step.second = numbers.pick([1, 40, 500, 3000])
        case .unpair:
            step.first = numbers.pick(0...peers.count - 1)
            step.second = numbers.pick(0...1)
        case .failDisk:
            step.first = numbers.pick([500, 3000, 12_000])
            step.second = numbers.pick(0...2) + 4 * numbers.pick(0...5)
        default: break
        }
        return step
    }

    private func disturbances(_ schedule: inout Numbers) -> [Step] {
        var numbers = Numbers(seed: seed, .faults)
        let kinds = numbers.some(of: Self.faults)
        guard !kinds.isEmpty else { return [] }
        return (0..<numbers.pick(0...8)).map { index in
            let verb = numbers.pick(kinds)
            var step = Step(
                number: 1000 + index, time: schedule.pick(0...length), verb: verb,
                subject: numbers.pick(0...(verb.isOnAdapter ? 1 : peers.count - 1)))
            switch verb {
            case .hangUp: step.first = numbers.pick([0x08, 0x13, 0x14, 0x15, 0x22, 0x3D])
            case .refuse:
                step.first = numbers.pick([0x3E, 0x0D, 0x09, 0x3C])
                step.second = numbers.pick(1...4)
            case .dropResponses: step.first = numbers.pick(1...3)
            case .suspend: step.first = numbers.pick([1, 20, 60, 8 * 3600])
            default: step.first = numbers.pick([1, 40, 500, 3000, 12_000, 40_000])
            }
            return step
        }
    }
}

extension VirtualPersonality {
    /// Whether it reports all that it hears.
    fileprivate var isSteady: Bool { deafness == nil && losesEvery == nil && scansBesideLinks }
}
