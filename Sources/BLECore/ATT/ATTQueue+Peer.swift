// What the peer begins: values it tells, and requests of its own.

extension ATTQueue {
    mutating func receivedNotification(_ opcode: ATTOpcode, _ pdu: [UInt8], _ actions: inout ATTActions) {
        guard opcode == .multipleHandleValueNotification else {
            if let value = value(of: pdu, &actions) {
                statistics.notifications += 1
                actions.append(.deliver(value.handle, value.value, .notification))
            }
            return
        }
        guard pdu.count <= Int(receiveLimit) else {
            statistics.oversizedValues += 1
            return
        }
        do throws(MalformedPacket) {
            for entry in try ATTMultipleHandleValueNotification(pdu).entries where isDeliverable(entry) {
                statistics.notifications += 1
                actions.append(.deliver(entry.handle, entry.value, .notification))
            }
        } catch {
            statistics.malformedLists += 1
        }
    }

    /// Delivers an indication and owes its confirmation, also when the value is of no use: the peer waits for it.
    mutating func receivedIndication(_ pdu: [UInt8], _ actions: inout ATTActions) {
        if confirmationsDue > 0 {
            statistics.overlappingIndications += 1
            if limits.isStrict || confirmationsDue >= Self.mostConfirmationsDue {
                return close(.overlappingIndications, &actions)
            }
        }
        let value = value(of: pdu, &actions)
        if isClosed { return }
        if let value {
            statistics.indications += 1
            actions.append(.deliver(value.handle, value.value, .indication))
        }
        confirmationsDue += 1
    }

    mutating func receivedConfirmation(_ actions: inout ATTActions) {
        statistics.strayConfirmations += 1
        if limits.isStrict { close(.unexplainedResponses, &actions) }
    }

    /// Answers the peer's own request: the MTU with ours, everything else with an error.
    mutating func receivedRequest(_ opcode: ATTOpcode, _ pdu: [UInt8], _ actions: inout ATTActions) {
        if answer != nil { return close(.overlappingRequests, &actions) }
        var code = ATTErrorCode.requestNotSupported
        if opcode == .exchangeMTURequest {
            do throws(MalformedPacket) {
                let request = try ATTExchangeMTURequest(pdu)
                statistics.peerMTURequests += 1
                peerMTU = max(request.mtu, Self.defaultMTU)
                answer = ATTExchangeMTUResponse(mtu: limits.mtu).bytes
                return
            } catch {
                code = .invalidPDU
            }
        }
        statistics.peerRequestsRefused += 1
        answer = ATTErrorResponse(requestOpcode: opcode, handle: 0, code: code).bytes
    }

    /// The handle and value of a notification or indication, when both are there and of a size that was agreed on.
    private mutating func value(
        of pdu: [UInt8], _ actions: inout ATTActions
    ) -> ATTMultipleHandleValueNotification.Entry? {
        var reader = ByteReader(pdu.span)
        guard reader.skip(1), let handle = reader.u16() else {
            statistics.shortValues += 1
            if statistics.shortValues >= limits.shortValues { close(.shortValues, &actions) }
            return nil
        }
        guard pdu.count <= Int(receiveLimit) else {
            statistics.oversizedValues += 1
            return nil
        }
        let value = ATTMultipleHandleValueNotification.Entry(handle: handle, value: reader.rest())
        return isDeliverable(value) ? value : nil
    }

    private mutating func isDeliverable(_ value: ATTMultipleHandleValueNotification.Entry) -> Bool {
        if value.handle == 0 {
            statistics.valuesWithoutHandle += 1
            return false
        }
        if value.value.count > limits.valueLength {
            statistics.oversizedValues += 1
            return false
        }
        return true
    }
}
