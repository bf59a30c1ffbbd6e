extension HCIStatus {
    /// The specification's name of the code; `Unknown Status` for one that has none.
    public var name: String { text?.name ?? "Unknown Status" }

    /// What the code means for somebody who has not read the specification.
    public var sentence: String { text?.sentence ?? "The controller gave a code that the specification does not name." }

    private var text: (name: String, sentence: String)? {
        switch rawValue {
        case 0x00: ("Success", "It worked.")
        case 0x01: ("Unknown HCI Command", "The controller does not know this command.")
        case 0x02: ("Unknown Connection Identifier", "There is no link with this handle.")
        case 0x03: ("Hardware Failure", "Something inside the controller is broken.")
        case 0x04: ("Page Timeout", "The device did not answer the call.")
        case 0x05: ("Authentication Failure", "Pairing or authentication went wrong; the keys may not match.")
        case 0x06: ("PIN or Key Missing", "One side has lost the key that both shared; pair again.")
        case 0x07: ("Memory Capacity Exceeded", "The controller has no memory left for this.")
        case 0x08:
            (
                "Connection Timeout",
                "The device was not heard any more: out of range, switched off or disturbed."
            )
        case 0x09: ("Connection Limit Exceeded", "The controller holds as many links as it can.")
        case 0x0A:
            (
                "Synchronous Connection Limit To A Device Exceeded",
                "There are as many audio channels to this device as there can be."
            )
        case 0x0B: ("ACL Connection Already Exists", "A link to this device is there already.")
        case 0x0C:
            (
                "Command Disallowed",
                "The controller's present state does not allow this; something else is using that part of it."
            )
        case 0x0D: ("Connection Rejected due to Limited Resources", "The device has no room for another link.")
        case 0x0E:
            (
                "Connection Rejected due To Security Reasons",
                "The device refuses links that are not secure enough."
            )
        case 0x0F:
            (
                "Connection Rejected due to Unacceptable BD_ADDR",
                "The device does not accept links from this address."
            )
        case 0x10: ("Connection Accept Timeout Exceeded", "The device did not accept the link in time.")
        case 0x11: ("Unsupported Feature or Parameter Value", "The controller does not support this feature or value.")
        case 0x12: ("Invalid HCI Command Parameters", "A parameter of the command is not allowed.")
        case 0x13: ("Remote User Terminated Connection", "The device ended the link.")
        case 0x14:
            (
                "Remote Device Terminated Connection due to Low Resources",
                "The device ended the link because it ran out of resources."
            )
        case 0x15:
            (
                "Remote Device Terminated Connection due to Power Off",
                "The device ended the link because it is switching off."
            )
        case 0x16: ("Connection Terminated by Local Host", "This host ended the link.")
        case 0x17: ("Repeated Attempts", "Too many attempts in a short time; wait before the next.")
        case 0x18: ("Pairing Not Allowed", "The device does not allow pairing now.")
        case 0x19: ("Unknown LMP PDU", "The device sent a link message that the controller does not know.")
        case 0x1A: ("Unsupported Remote Feature", "The device does not support this feature.")
        case 0x1B: ("SCO Offset Rejected", "The offset of the audio channel was refused.")
        case 0x1C: ("SCO Interval Rejected", "The interval of the audio channel was refused.")
        case 0x1D: ("SCO Air Mode Rejected", "The coding of the audio channel was refused.")
        case 0x1E: ("Invalid LMP/LL Parameters", "A link message carried a value that is not allowed.")
        case 0x1F: ("Unspecified Error", "The controller or the device gives no reason.")
        case 0x20: ("Unsupported LMP/LL Parameter Value", "A link message carried a value that is not supported.")
        case 0x21: ("Role Change Not Allowed", "The roles of the link cannot be exchanged now.")
        case 0x22: ("LMP/LL Response Timeout", "The device did not answer a link message in time.")
        case 0x23:
            (
                "LMP Error Transaction Collision / LL Procedure Collision",
                "Both sides began the same procedure at once; try again."
            )
        case 0x24: ("LMP PDU Not Allowed", "The device sent a link message at the wrong moment.")
        case 0x25: ("Encryption Mode Not Acceptable", "The two sides do not agree on encryption.")
        case 0x26: ("Link Key cannot be Changed", "The key of this link is fixed.")
        case 0x27: ("Requested QoS Not Supported", "The quality of service that was asked for is not supported.")
        case 0x28: ("Instant Passed", "The moment agreed for a change had gone by before the change could happen.")
        case 0x29:
            (
                "Pairing with Unit Key Not Supported",
                "Pairing with a key common to a whole product line is not supported."
            )
        case 0x2A: ("Different Transaction Collision", "Another procedure is running on the link; try again.")
        case 0x2C: ("QoS Unacceptable Parameter", "The quality of service that was asked for cannot be given.")
        case 0x2D: ("QoS Rejected", "The quality of service that was asked for was refused.")
        case 0x2E: ("Channel Classification Not Supported", "The controller cannot rate channels.")
        case 0x2F: ("Insufficient Security", "The link is not secure enough for this.")
        case 0x30:
            (
                "Parameter Out Of Mandatory Range",
                "A value lies outside the range that every device has to support."
            )
        case 0x32: ("Role Switch Pending", "The roles of the link are being exchanged.")
        case 0x34: ("Reserved Slot Violation", "A time slot that was reserved was used by something else.")
        case 0x35: ("Role Switch Failed", "The roles of the link could not be exchanged.")
        case 0x36: ("Extended Inquiry Response Too Large", "The inquiry response does not fit into its packet.")
        case 0x37: ("Secure Simple Pairing Not Supported By Host", "The device does not support this way of pairing.")
        case 0x38: ("Host Busy - Pairing", "The device is busy pairing with another one.")
        case 0x39:
            (
                "Connection Rejected due to No Suitable Channel Found",
                "No radio channel was good enough for the link."
            )
        case 0x3A: ("Controller Busy", "The controller is busy; try again.")
        case 0x3B: ("Unacceptable Connection Parameters", "The interval, latency or time-out of the link was refused.")
        case 0x3C: ("Advertising Timeout", "Advertising ended before any link was made.")
        case 0x3D:
            (
                "Connection Terminated due to MIC Failure",
                "A packet failed its integrity check: the keys differ, or somebody interferes."
            )
        case 0x3E:
            (
                "Connection Failed to be Established",
                "The device did not answer the first packets of the link; it is often the distance, and the next attempt often works."
            )
        case 0x3F: ("MAC Connection Failed", "The other radio that was to carry the link failed.")
        case 0x40:
            (
                "Coarse Clock Adjustment Rejected but Will Try to Adjust Using Clock Dragging",
                "The clock cannot be moved at once, and is being moved slowly."
            )
        case 0x41: ("Type0 Submap Not Defined", "A slot map of the link is missing.")
        case 0x42: ("Unknown Advertising Identifier", "There is no advertising set or train with this number.")
        case 0x43: ("Limit Reached", "The count or time that was set as a limit is used up.")
        case 0x44: ("Operation Cancelled by Host", "This host cancelled the operation.")
        case 0x45: ("Packet Too Long", "The packet is longer than the link can carry.")
        default: nil
        }
    }
}
