import BLECore
import BLELinux
import BareBLE
import FoundationEssentials

/// Queries the kernel's Bluetooth sockets, and through them the controllers.
enum RadioProbe {
    /// Returns the sockets and the adapters as the kernel lists them; no controller is queried.
    static func kernelFacts(_ selector: AdapterSelector) throws(Failure) -> RadioFacts {
        let families = SocketFamilies.current()
        var facts = RadioFacts(
            controllerSocket: families.controller, managementSocket: families.management, linkSocket: families.link)
        guard families.controller == 0 else { return facts }
        facts.adapters = ((try? Central.adapters()) ?? []).map { AdapterFacts($0) }
        try facts.choose(selector)
        return facts
    }

    /// Queries each controller that is on: its settings from the management interface, and with CAP_NET_RAW the
    /// controller itself; listens for a scan of others; and unless `scanning` is `nil`, makes a scan of that length if
    /// there is no other.
    ///
    /// The scan is passive: an active one would leave the kernel in a state in which others' connects may hang.
    static func ask(_ facts: inout RadioFacts, mayCommand: Bool, scanning: Duration?) async {
        guard facts.controllerSocket == 0 else { return }
        // Before this process opens any of its own.
        facts.openers = ManagementInterface.openers()
        let unconfigured = await ManagementInterface.unconfigured()
        for position in facts.adapters.indices {
            let index = facts.adapters[position].index
            facts.adapters[position].configuration = unconfigured[index]
            facts.adapters[position].management = await ManagementInterface.facts(of: index)
            guard mayCommand, facts.adapters[position].isUp, var dialogue = try? ControllerDialogue(adapter: index)
            else { continue }
            let heard = await dialogue.listen(for: silence)
            facts.adapters[position].before = heard
            let (controller, scanner) = await dialogue.describe()
            facts.adapters[position].controller = controller
            guard let scanning, let scanner, heard.reports == 0 else { continue }
            facts.adapters[position].scan = await dialogue.scan(scanner, for: scanning)
        }
    }

    /// The time to listen for other scans.
    private static let silence: Duration = .seconds(1)

    /// Reads the file that replaces the sockets of a simulated machine; without one, the kernel has no Bluetooth.
    static func pretendedFacts(root: String, _ selector: AdapterSelector) throws(Failure) -> RadioFacts {
        let path = root + "/bluetooth.json"
        guard let text = SystemFiles.text(path) else {
            return RadioFacts(controllerSocket: 97, managementSocket: 97, linkSocket: 97)
        }
        guard var facts = try? JSONDecoder().decode(RadioFacts.self, from: Data(text.utf8)) else {
            throw Failure(message: "\(path) does not have the form of what the sockets report", status: .usage)
        }
        try facts.choose(selector)
        return facts
    }
}

extension RadioFacts {
    /// Removes all adapters except the requested one, if any.
    fileprivate mutating func choose(_ selector: AdapterSelector) throws(Failure) {
        let all = adapters
        switch selector {
        case .first: return
        case .named(let name): adapters = all.filter { $0.name == name }
        case .address(let address): adapters = all.filter { $0.address == address.description }
        }
        guard adapters.isEmpty else { return }
        let names = all.map { "\($0.name) (\($0.address))" }.joined(separator: ", ")
        throw Failure(
            message: "there is no \(selector)",
            hint: names.isEmpty ? "No adapter is there." : "There are: \(names).",
            status: .noAdapter)
    }
}

extension AdapterFacts {
    fileprivate init(_ adapter: AdapterDescription) {
        self.init(
            index: UInt16(clamping: adapter.index), name: adapter.name,
            address: (adapter.address ?? .zero).description, isUp: adapter.isUp, isRunning: adapter.isPowered,
            bus: adapter.bus?.rawValue)
        links = (try? Controllers.links(of: index))?.filter(\.isConnected).map {
            LinkFacts(handle: $0.handle, address: $0.address.description, isCentral: $0.isCentral)
        }
    }
}
