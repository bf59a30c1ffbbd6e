// Nordic Semiconductor's serial port over GATT: bytes in both directions, cut into values of at most MTU - 3. Where one
// message ends is up to the two programs. The names are the device's view.
// Source: nRF Connect SDK, Nordic UART Service (NUS).

extension BluetoothUUID {
    /// The Nordic UART service.
    public static let nordicUART = BluetoothUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)
}

extension CharacteristicKey where Value == [UInt8] {
    /// What the device receives: write to it.
    public static var nordicUARTReceive: Self {
        Self(BluetoothUUID(high: 0x6E40_0002_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E), in: .nordicUART)
    }

    /// What the device transmits: subscribe to it.
    public static var nordicUARTTransmit: Self {
        Self(BluetoothUUID(high: 0x6E40_0003_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E), in: .nordicUART)
    }
}
