import BLEProfiles
import BareBLE
import Glibc

/// Follows heart rates, and hands the link over to the next program when it has had so many: `bpm` and the number for
/// each.
///
/// `connected` and `adopted` say where the link is from.
struct HandOverTrial {
    let central: Central
    let after: Int
    let peer: PeerID

    /// Hands the link to this program, executed again in this process; `times` times, and then disconnects.
    ///
    /// - Parameter handed: What the program before has passed, if there was one.
    func execute(times: Int, handed: String?) async throws {
        let device = try await device(try handed.map { try DetachedLink(passedAcrossExec: $0) })
        guard times > 0 else {
            _ = try await follow(device, handingOver: false)
            return await device.disconnect()
        }
        guard let text = try await follow(device, handingOver: true)?.passAcrossExec() else { return }
        execute(["link-trials", "execute", "\(after)", "\(times - 1)", "\(peer)", text])
    }

    /// Leaves the link to the service manager, and ends; the next run begins with it.
    func store() async throws {
        let contents = DescriptorStore.take()
        for (name, error) in contents.damaged { LinkTrials.say("damaged \(name) \(error)") }
        let device = try await device(contents.links.first)
        guard let notifier = ServiceNotifier() else { LinkTrials.fail("no service manager", 64) }
        try notifier.ready()
        guard let link = try await follow(device, handingOver: true) else { return }
        LinkTrials.say("stored \(try await DescriptorStore(notifier).put(link))")
    }

    private func device(_ link: DetachedLink?) async throws -> Peripheral {
        if let link {
            let device = try await central.adopt(link)
            LinkTrials.say("adopted \(device.name)")
            return device
        }
        try await central.ready(powerOn: true)
        let device = try await central.connect(peer)
        LinkTrials.say("connected \(device.name)")
        return device
    }

    /// Writes what comes. What waits when the link is detached still belongs to this program, so it is written too.
    private func follow(_ device: Peripheral, handingOver: Bool) async throws -> DetachedLink? {
        let beats: TypedValueSequence<HeartRateMeasurement>
        if let restored = await device.restoredSubscriptions.first {
            beats = try await restored.adopt(as: HeartRateMeasurement.self)
        } else {
            beats = try await device.subscribe(to: .heartRateMeasurement)
        }
        var link: DetachedLink?
        var count = 0
        for try await beat in beats {
            LinkTrials.say("bpm \(beat.beatsPerMinute)")
            count += 1
            guard count == after else { continue }
            guard handingOver else { break }
            link = try await device.detach()
        }
        return link
    }

    private func execute(_ words: [String]) -> Never {
        unsafe withArguments(words) { arguments in
            unsafe execv("/proc/self/exe", arguments)
        }
        LinkTrials.fail("execv: \(errno)", 1)
    }

    private func withArguments(
        _ words: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Int32
    ) {
        var pointers: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) } + [nil]
        _ = unsafe pointers.withUnsafeMutableBufferPointer { buffer in
            unsafe buffer.baseAddress.map { unsafe body($0) }
        }
    }
}
