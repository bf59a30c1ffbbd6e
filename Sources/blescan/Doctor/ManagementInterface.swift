import BLECore
import BLELinux

// Queries about adapters that the kernel itself responds to.
//
// Reading an adapter's settings or its configuration switches nothing, and any user may do it. As the first management
// command that names the adapter it makes the kernel treat the adapter as a managed one, as bluetoothctl and btmgmt do
// when they start.

/// Queries the kernel's management interface and its monitor.
enum ManagementInterface {
    private static let commandTimeout: Duration = .seconds(2)

    /// Returns the kernel's description of an adapter; `nil` if it does not respond, or not for this one.
    static func facts(of index: UInt16) async -> ManagementFacts? {
        guard var socket = try? ManagementSocket() else { return nil }
        return await facts(of: index, from: &socket)
    }

    static func facts(of index: UInt16, from socket: inout ManagementSocket) async -> ManagementFacts? {
        await response(to: ManagementReadControllerInformation(), of: index, from: &socket).map { ManagementFacts($0) }
    }

    /// Returns what the adapters lack that are not configured, by their indices; empty if the kernel does not respond.
    static func unconfigured() async -> [UInt16: ConfigurationFacts] {
        guard var socket = try? ManagementSocket() else { return [:] }
        return await unconfigured(from: &socket)
    }

    static func unconfigured(from socket: inout ManagementSocket) async -> [UInt16: ConfigurationFacts] {
        let indices = await response(to: ManagementReadUnconfiguredIndexList(), of: nil, from: &socket) ?? []
        var found: [UInt16: ConfigurationFacts] = [:]
        for index in indices {
            let information = await response(to: ManagementReadConfigurationInformation(), of: index, from: &socket)
            found[index] = ConfigurationFacts(company: information?.company, missing: information?.missing.rawValue)
        }
        return found
    }

    /// Returns the kernel's response to a command; `nil` if it refuses it, or does not respond in time.
    static func response<Command: ManagementCommand>(
        to command: Command, of index: UInt16?, from socket: inout ManagementSocket
    ) async -> Command.Response? {
        guard case .sent = socket.send(command, adapter: index) else { return nil }
        let clock = ContinuousClock()
        let end = clock.now + commandTimeout
        while clock.now < end, !Task.isCancelled {
            switch socket.receive() {
            case .event(let event):
                switch event.response(to: Command.self, of: index) {
                case .success(let response): return response
                case .failure: return nil
                case nil: continue
                }
            case .malformed: continue
            case .wouldBlock: try? await Task.sleep(for: .milliseconds(2))
            case .gone: return nil
            }
        }
        return nil
    }

    /// Returns the programs with open sockets, as the monitor reports them to a new listener; `nil` without
    /// CAP_NET_RAW.
    ///
    /// This process must have none open, or it finds itself.
    static func openers() -> [SocketOpener]? { HCISocket.openSockets()?.compactMap { SocketOpener($0) } }
}

extension ManagementFacts {
    init(_ information: ManagementControllerInformation) {
        self.init(
            version: information.hciVersion, company: information.company,
            supported: information.supportedSettings.rawValue, current: information.currentSettings.rawValue)
    }
}

extension SocketOpener {
    /// `nil` for channels that disturb nobody.
    init?(_ socket: MonitorControlOpen) {
        switch socket.format {
        case .raw: kind = .raw
        case .user: kind = .user
        case .control: kind = .management
        default: return nil
        }
        program = socket.program
        adapter = socket.adapter
    }
}
