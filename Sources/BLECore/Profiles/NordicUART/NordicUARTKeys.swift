// Nordic Semiconductor's serial port over GATT: bytes in both directions, cut into values of at most MTU - 3. Where one
// message ends is up to the two programs. The names are the device's view.
// Source: nRF Connect SDK, Nordic UART Service (NUS).

extension BluetoothUUID {
    /// The Nordic UART service.
    public static let nordicUART = BluetoothUUID("6e400001-b5a3-f393-e0a9-e50e24dcca9e")
}

extension CharacteristicKey where Value == [UInt8] {
    /// What the device receives: write to it.
    public static var nordicUARTReceive: Self {
        Self("6e400002-b5a3-f393-e0a9-e50e24dcca9e", in: .nordicUART)
    }

    /// What the device transmits: subscribe to it.
    public static var nordicUARTTransmit: Self {
        Self("6e400003-b5a3-f393-e0a9-e50e24dcca9e", in: .nordicUART)
    }
}
