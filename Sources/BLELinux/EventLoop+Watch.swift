internal import CBluetooth

extension EventLoop {
    /// What one descriptor is watched for.
    struct Watch {
        /// Tells it from what was watched before under the same number.
        let generation: UInt32
        var readable: Handler?
        var writable: Handler?

        var interest: Int32 {
            (readable == nil ? 0 : BLE_READABLE) | (writable == nil ? 0 : BLE_WRITABLE)
        }
    }
}
