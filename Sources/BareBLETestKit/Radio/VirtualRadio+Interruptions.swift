public import BLECore
internal import BLELinux

/// A fault on a link at a chosen moment.
public enum VirtualInterruption: Hashable, Sendable {
    /// The peripheral disconnects, with the reason that the controller then reports.
    case disconnect(HCIStatus)
    /// The peripheral goes out of range.
    case outOfRange
    /// The peripheral is reset and loses its state.
    case reset
    /// The adapter of this name is switched off.
    case powerOff(String)
    /// The adapter of this name is reset.
    case adapterReset(String)
    /// The adapter of this name is unplugged.
    case unplug(String)

    /// The former name of `disconnect(_:)`.
    @available(*, deprecated, renamed: "disconnect(_:)")
    public static func hangUp(_ reason: HCIStatus) -> VirtualInterruption { .disconnect(reason) }
}

extension VirtualRadio {
    /// Interrupts a peripheral's link at the PDU with this number, counted in both directions from now on.
    ///
    /// If it is the client's PDU, the peripheral has read it and does not respond; if it is the peripheral's, it was
    /// sent, and the client receives it together with the interruption. It happens once; 0 cancels an earlier one.
    public func interrupt(
        _ peripheral: VirtualPeripheral, afterPDU number: Int, by interruption: VirtualInterruption
    ) {
        guard number > 0 else { return peripheral.assumeIsolated { $0.observe(nil) } }
        let left = Lock(number)
        let observer: @Sendable (Bool) -> Void = { [weak self, weak peripheral] _ in
            let isDue = left.withLock { left in
                left -= 1
                return left == 0
            }
            guard isDue, let self, let peripheral else { return }
            peripheral.assumeIsolated { $0.observe(nil) }
            self.assumeIsolated { $0.happen(interruption, to: peripheral) }
        }
        peripheral.assumeIsolated { $0.observe(observer) }
    }

    /// Applies an interruption to a peripheral and its links now.
    package func happen(_ interruption: VirtualInterruption, to peripheral: VirtualPeripheral) {
        switch interruption {
        case .disconnect(let reason): disconnect(peripheral, because: reason)
        case .outOfRange: move(peripheral, to: .outOfRange)
        case .reset: reset(peripheral)
        case .powerOff(let name): powerOff(name)
        case .adapterReset(let name): reset(name)
        case .unplug(let name): unplug(name)
        }
    }

    /// Reports the end of a peripheral's links, which are closed later by `finishEnd`: what it sends in between arrives
    /// after the event.
    package func announceEnd(of peripheral: VirtualPeripheral, because reason: HCIStatus) {
        for link in links.names(of: peripheral) {
            send(VirtualController.disconnectionComplete(link.handle, reason), link.adapter)
        }
    }

    package func finishEnd(of peripheral: VirtualPeripheral, because reason: HCIStatus) {
        for link in links.names(of: peripheral) { end(link, reason, reporting: false) }
    }
}
