import BLECore
import TestSupport

extension SeededNumbers {
    mutating func chance(_ percent: Int) -> Bool {
        Int.random(in: 0..<100, using: &self) < percent
    }

    mutating func uuid(_ base: UInt16) -> BluetoothUUID {
        let number = UInt16.random(in: 0..<64, using: &self)
        return chance(60) ? BluetoothUUID(base + number) : long(UInt64(base) << 16 + UInt64(number))
    }
}

/// A random, lawful database: everything that peers have, in every combination that the specification allows.
struct RandomDatabase {
    private(set) var database = ModelDatabase()
    private var numbers: SeededNumbers
    /// How often handles are left out, in percent.
    private let sparseness: Int
    /// The services so far, to include them.
    private var services: [(handles: ClosedRange<AttributeHandle>, uuid: BluetoothUUID)] = []

    init(seed: UInt64) {
        numbers = SeededNumbers(seed: seed)
        sparseness = numbers.chance(50) ? 0 : Int.random(in: 5...40, using: &numbers)
        let count = Int.random(in: 1...12, using: &numbers)
        for index in 0..<count {
            let isLast = index == count - 1
            appendService(isPrimary: isLast || numbers.chance(85), isLast: isLast)
        }
    }

    private mutating func maybeSkip(_ limit: Int = 4) {
        if numbers.chance(sparseness) { database.skip(Int.random(in: 1...limit, using: &numbers)) }
    }

    private mutating func appendService(isPrimary: Bool, isLast: Bool) {
        maybeSkip(200)
        let uuid = numbers.uuid(0x1800)
        let start = database.service(uuid, isPrimary: isPrimary)
        if numbers.chance(20) { appendIncludes() }
        if !numbers.chance(10) {
            for _ in 0..<Int.random(in: 1...8, using: &numbers) { appendCharacteristic() }
        }
        if isLast, numbers.chance(30) { return database.endService(at: 0xFFFF) }
        maybeSkip()
        let end = AttributeHandle(database.next - 1)
        database.endService(at: end)
        services.append((start...end, uuid))
    }

    private mutating func appendIncludes() {
        for _ in 0..<Int.random(in: 1...3, using: &numbers) {
            guard let service = services.randomElement(using: &numbers) else { return }
            maybeSkip()
            database.include(service.handles, uuid: service.uuid)
        }
    }

    private mutating func appendCharacteristic() {
        maybeSkip()
        var properties: CharacteristicProperties = numbers.chance(70) ? .read : .write
        if numbers.chance(35) { properties.insert(numbers.chance(70) ? .notify : .indicate) }
        let distance = numbers.chance(sparseness / 3) ? 2 : 1
        database.characteristic(numbers.uuid(0x2A00), properties, distance: distance)
        var descriptors: [BluetoothUUID] = []
        if numbers.chance(35) {
            for _ in 0..<Int.random(in: 1...4, using: &numbers) {
                let known = [0x2900, 0x2901, 0x2904, 0x2906].randomElement(using: &numbers) ?? 0x2901
                descriptors.append(numbers.chance(80) ? BluetoothUUID(UInt16(known)) : numbers.uuid(0x2980))
            }
        }
        if properties.canSubscribe {
            let place = Int.random(in: 0...descriptors.count, using: &numbers)
            descriptors.insert(.clientCharacteristicConfiguration, at: place)
        }
        for descriptor in descriptors {
            maybeSkip()
            if descriptor == .clientCharacteristicConfiguration {
                database.cccd()
            } else {
                database.append(descriptor)
            }
        }
    }
}
