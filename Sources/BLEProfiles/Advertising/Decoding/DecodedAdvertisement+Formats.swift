internal import BLECore

// Dispatch by company or service: each format is tried in turn until one accepts the bytes. Every decoder gets its own
// reader, positioned after the company identifier or UUID.

extension DecodedAdvertisement {
    /// Decodes one structure; `whole` is the payload that contains it.
    static func of(
        _ type: AdvertisingDataType, _ value: inout ByteReader, in whole: AdvertisingData, _ keys: SenderKeys?
    ) -> DecodedAdvertisement? {
        if type == .manufacturerSpecificData {
            guard let company = value.u16() else { return nil }
            return of(company: company, &value, in: whole, keys)
        }
        guard let size = type.serviceDataUUIDSize, let service = value.uuid(size), let short = service.short else {
            return nil
        }
        return of(service: short, &value, in: whole, keys)
    }

    private static func of(
        company: UInt16, _ value: inout ByteReader, in whole: AdvertisingData, _ keys: SenderKeys?
    ) -> DecodedAdvertisement? {
        var copy = value
        if let beacon = AltBeacon(&copy) { return beacon.meaning }
        return of(registered: company, &value, in: whole, keys) ?? of(misused: company, &value, in: whole)
    }

    private static func of(
        registered company: UInt16, _ value: inout ByteReader, in whole: AdvertisingData, _ keys: SenderKeys?
    ) -> DecodedAdvertisement? {
        var value = value
        switch company {
        case 0x0001, 0x8801, 0xEC88: return Govee.decode(company, &value, in: whole)
        case 0x0006: return MicrosoftBeacon.decode(&value)
        case 0x004C: return AppleContinuity.decode(&value)
        case 0x0059: return Mopeka.decode(&value, in: whole)
        case 0x00DC: return OralB.decode(&value)
        case 0x02E1: return Victron.decode(&value, keys)
        case 0x0334: return Airthings.decode(&value)
        case 0x0499: return RuuviTag.decode(&value)
        case 0x0702: return Aranet.decode(&value)
        default: return nil
        }
    }

    /// Decodes formats that begin with a measurement where the company belongs.
    private static func of(
        misused first: UInt16, _ value: inout ByteReader, in whole: AdvertisingData
    ) -> DecodedAdvertisement? {
        var copy = value
        if let sensor = ThermoPro.decode(first, &copy, in: whole) { return sensor }
        copy = value
        return Inkbird.decode(first, &copy, in: whole) ?? SensorPush.decode(first, &value, in: whole)
    }

    private static func of(
        service: UInt16, _ value: inout ByteReader, in whole: AdvertisingData, _ keys: SenderKeys?
    ) -> DecodedAdvertisement? {
        switch service {
        case 0x0D00, 0xFD3D: return SwitchBot.decode(&value, in: whole)
        case 0x181A: return ATCThermometer.decode(&value)
        case 0x181B: return XiaomiScale.bodyCompositionScale(&value)
        case 0x181D: return XiaomiScale.smartScale(&value)
        case 0xFCD2: return BTHome.decode(&value, keys)
        case 0xFD5A: return SmartTag.decode(&value)
        case 0xFDCD: return Qingping.decode(&value)
        case 0xFD6F: return ExposureNotification.decode(&value)
        case 0xFE2C: return FastPair.decode(&value)
        case 0xFE95: return MiBeacon.decode(&value, keys)
        case 0xFEAA:
            var copy = value
            return Eddystone.decode(&copy) ?? FindHub.decode(&value)
        case 0xFEEC, 0xFEED: return Tile.decode(&value)
        case 0xFFF6: return MatterCommissioning.decode(&value)
        default: return nil
        }
    }
}
