extension LocalPeripheral {
    /// The result of `LocalPeripheral.restore(from:)`: what the run before has left.
    public struct RestorationResult: Sendable {
        /// The number of bonded centrals whose configurations are known.
        public internal(set) var knownCentrals = 0
        /// The names of the centrals whose links are up, to be served again from `LocalPeripheral.acceptCentrals()` on.
        public internal(set) var links: [String] = []
        /// The descriptors that were handed over and cannot be used, by their names at the service manager. They are
        /// closed.
        public internal(set) var lost: [String: BLEError] = [:]
        /// The reason that the file with the configurations was not used (`.unusableState`) and moved aside; `nil` if
        /// it was used, or if there was none.
        public internal(set) var damage: BLEError?
        /// The path to which that file was moved.
        public internal(set) var movedTo: String?
    }
}
