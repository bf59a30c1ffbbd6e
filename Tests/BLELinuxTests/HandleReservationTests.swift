import BLECore
import BLELinux
import Testing

@Suite struct HandleReservationTests {
    /// No adapter of a machine has these addresses, and no other test.
    private let adapter = BluetoothAddress(rawValue: 0x00AA_7E57_0001)
    private let other = BluetoothAddress(rawValue: 0x00AA_7E57_0002)

    @Test func aHandleIsReservedOnceOnEachAdapter() throws {
        let first = try HandleReservation(0xE0, of: adapter)
        #expect(throws: HandleReservation.Failure.taken) { _ = try HandleReservation(0xE0, of: adapter) }
        let second = try HandleReservation(0xE1, of: adapter)
        let third = try HandleReservation(0xE0, of: other)
        _ = consume first
        let again = try HandleReservation(0xE0, of: adapter)
        _ = consume again
        _ = consume second
        _ = consume third
    }
}
