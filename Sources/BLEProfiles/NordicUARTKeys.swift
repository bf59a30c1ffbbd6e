public import BLECore

// Nordic Semiconductor's serial port over GATT: bytes in both directions, in values of at most MTU - 3. Message
// boundaries are up to the application. Names are from the device's point of view.
// Source: nRF Connect SDK, Nordic UART Service (NUS).

extension BluetoothUUID {
    /// The Nordic UART service.
    public static let nordicUART = BluetoothUUID("6e400001-b5a3-f393-e0a9-e50e24dcca9e")
}

extension CharacteristicKey where Value == [UInt8] {
    /// The device's receive characteristic: write to it.
    public static var nordicUARTReceive: Self {
        Self("6e400002-b5a3-f393-e0a9-e50e24dcca9e", in: .nordicUART)
    }

    /// The device's transmit characteristic: subscribe to it.
    public static var nordicUARTTransmit: Self {
        Self("6e400003-b5a3-f393-e0a9-e50e24dcca9e", in: .nordicUART)
    }
}
