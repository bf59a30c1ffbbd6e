/// When the driver passed a packet to the kernel, by the kernel's wall clock.
///
/// It is only compared: events and the data of links reach a process by different sockets, and this is their order at
/// the controller's driver.
package struct ArrivalTime: Hashable, Comparable, Sendable {
    private let nanoseconds: Int64

    /// - Parameter nanoseconds: The time; `nil` is returned for 0, which stands for a packet without one.
    package init?(nanoseconds: Int64) {
        guard nanoseconds != 0 else { return nil }
        self.nanoseconds = nanoseconds
    }

    package static func < (left: ArrivalTime, right: ArrivalTime) -> Bool { left.nanoseconds < right.nanoseconds }
}
