internal import BLECore

extension AttributeTable {
    /// Assigns a handle to every attribute of a device. Attributes beyond 0xFFFF are omitted.
    init(_ device: VirtualDevice) {
        var layout = Layout()
        for service in device.services { layout.add(service) }
        layout.resolveIncludes(device.services)
        self.init(layout.attributes)
        digestDeclarations()
    }
}

/// Assigns handles in order.
private struct Layout {
    var attributes: [ServedAttribute] = []
    private var ranges: [(start: AttributeHandle, end: AttributeHandle)] = []
    private var pendingIncludes: [(position: Int, service: Int)] = []
    private var next: UInt32 = 1

    mutating func add(_ service: VirtualService) {
        if let handle = service.handle, handle >= next { next = UInt32(handle) }
        let position = attributes.count
        let type =
            service.isPrimary
            ? AttributeTable.Declaration.primaryService : AttributeTable.Declaration.secondaryService
        append(type, service.uuid.attBytes)
        for included in service.includes {
            pendingIncludes.append((attributes.count, included))
            append(AttributeTable.Declaration.include, [])
        }
        for characteristic in service.characteristics { add(characteristic) }
        guard attributes.count > position, let end = attributes.last?.handle else { return }
        ranges.append((attributes[position].handle, end))
        attributes[position].role = .group(end: end)
    }

    /// Resolves includes, which may refer to a later service.
    mutating func resolveIncludes(_ services: [VirtualService]) {
        for (position, index) in pendingIncludes
        where attributes.indices.contains(position) && ranges.indices.contains(index)
            && services.indices.contains(index)
        {
            let range = ranges[index]
            let uuid = services[index].uuid
            attributes[position].value =
                range.start.littleEndianBytes + range.end.littleEndianBytes + (uuid.short == nil ? [] : uuid.attBytes)
        }
    }

    private mutating func add(_ characteristic: VirtualCharacteristic) {
        let properties = characteristic.properties
        guard next < 0xFFFF else { return }
        let valueHandle = AttributeHandle(truncatingIfNeeded: next + 1)
        append(
            AttributeTable.Declaration.characteristic,
            [properties.rawValue] + valueHandle.littleEndianBytes + characteristic.uuid.attBytes)
        append(characteristic.uuid, characteristic.value) { value in
            value.readError = properties.contains(.read) ? nil : .readNotPermitted
            value.writeError =
                properties.isDisjoint(with: [.write, .writeWithoutResponse]) ? .writeNotPermitted : nil
            value.onRead = characteristic.onRead
            value.onWrite = characteristic.onWrite
            value.plan = characteristic.plan
            value.protection = characteristic.protection
        }
        if properties.canSubscribe {
            append(AttributeTable.Declaration.clientConfiguration, [0, 0]) { configuration in
                configuration.role = .clientConfiguration(value: valueHandle)
                configuration.writeError = nil
                configuration.protection = characteristic.protection
            }
        }
        for descriptor in characteristic.descriptors { append(descriptor.uuid, descriptor.value) }
    }

    private mutating func append(
        _ type: BluetoothUUID, _ value: [UInt8], _ configure: (inout ServedAttribute) -> Void = { _ in }
    ) {
        guard next <= 0xFFFF else { return }
        var attribute = ServedAttribute(handle: AttributeHandle(truncatingIfNeeded: next), type: type, value: value)
        configure(&attribute)
        attributes.append(attribute)
        next += 1
    }
}

extension UInt16 {
    var littleEndianBytes: [UInt8] { [UInt8(truncatingIfNeeded: self), UInt8(truncatingIfNeeded: self >> 8)] }
}
