extension HCIStatus {
    /// The specification's name of the code, or "Unknown Status" if it has none.
    public var name: String { text?.name ?? "Unknown Status" }

    /// An explanation for readers who do not know the specification.
    public var sentence: String { text?.sentence ?? "The controller reported an undefined code." }

    private var text: (name: String, sentence: String)? {
        switch rawValue {
        case 0x00: ("Success", "It worked.")
        case 0x01: ("Unknown HCI Command", "The controller does not support this command.")
        case 0x02: ("Unknown Connection Identifier", "There is no link with this handle.")
        case 0x03: ("Hardware Failure", "The controller has a hardware failure.")
        case 0x04: ("Page Timeout", "The device did not respond to the connection request.")
        case 0x05: ("Authentication Failure", "Pairing or authentication failed; the keys may not match.")
        case 0x06: ("PIN or Key Missing", "One side has lost the shared key; pair again.")
        case 0x07: ("Memory Capacity Exceeded", "The controller is out of memory.")
        case 0x08:
            (
                "Connection Timeout",
                "The device was not heard any more: out of range, switched off or subject to interference."
            )
        case 0x09: ("Connection Limit Exceeded", "The controller supports no more links.")
        case 0x0A:
            (
                "Synchronous Connection Limit To A Device Exceeded",
                "The maximum number of audio channels to this device is reached."
            )
        case 0x0B: ("ACL Connection Already Exists", "There is already a link to this device.")
        case 0x0C:
            (
                "Command Disallowed",
                "The controller's current state does not allow this; another program may be using it."
            )
        case 0x0D: ("Connection Rejected due to Limited Resources", "The device has no resources for another link.")
        case 0x0E:
            (
                "Connection Rejected due To Security Reasons",
                "The device rejects links that are not secure enough."
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
        case 0x18: ("Pairing Not Allowed", "The device does not allow pairing at this time.")
        case 0x19: ("Unknown LMP PDU", "The device sent a link message that is unknown to the controller.")
        case 0x1A: ("Unsupported Remote Feature", "The device does not support this feature.")
        case 0x1B: ("SCO Offset Rejected", "The offset of the audio channel was rejected.")
        case 0x1C: ("SCO Interval Rejected", "The interval of the audio channel was rejected.")
        case 0x1D: ("SCO Air Mode Rejected", "The coding of the audio channel was rejected.")
        case 0x1E: ("Invalid LMP/LL Parameters", "A link message carried an invalid value.")
        case 0x1F: ("Unspecified Error", "The controller or the device did not specify a reason.")
        case 0x20: ("Unsupported LMP/LL Parameter Value", "A link message carried an unsupported value.")
        case 0x21: ("Role Change Not Allowed", "The roles of the link cannot be switched now.")
        case 0x22: ("LMP/LL Response Timeout", "The device did not respond to a link message in time.")
        case 0x23:
            (
                "LMP Error Transaction Collision / LL Procedure Collision",
                "Both sides started the same procedure at once; try again."
            )
        case 0x24: ("LMP PDU Not Allowed", "The device sent a link message at the wrong time.")
        case 0x25: ("Encryption Mode Not Acceptable", "The two sides do not agree on encryption.")
        case 0x26: ("Link Key cannot be Changed", "The key of this link is fixed.")
        case 0x27: ("Requested QoS Not Supported", "The requested quality of service is not supported.")
        case 0x28: ("Instant Passed", "The instant of an agreed change had passed before the change could take effect.")
        case 0x29:
            (
                "Pairing with Unit Key Not Supported",
                "Pairing with a unit key is not supported."
            )
        case 0x2A: ("Different Transaction Collision", "Another procedure is in progress on the link; try again.")
        case 0x2C: ("QoS Unacceptable Parameter", "The requested quality of service is not available.")
        case 0x2D: ("QoS Rejected", "The requested quality of service was rejected.")
        case 0x2E: ("Channel Classification Not Supported", "The controller cannot classify channels.")
        case 0x2F: ("Insufficient Security", "The link is not secure enough for this.")
        case 0x30:
            (
                "Parameter Out Of Mandatory Range",
                "A value is outside the range that every device must support."
            )
        case 0x32: ("Role Switch Pending", "The roles of the link are being switched.")
        case 0x34: ("Reserved Slot Violation", "A reserved time slot was used by something else.")
        case 0x35: ("Role Switch Failed", "The roles of the link could not be switched.")
        case 0x36: ("Extended Inquiry Response Too Large", "The inquiry response does not fit into its packet.")
        case 0x37: ("Secure Simple Pairing Not Supported By Host", "The device does not support this pairing method.")
        case 0x38: ("Host Busy - Pairing", "The device is busy pairing with another device.")
        case 0x39:
            (
                "Connection Rejected due to No Suitable Channel Found",
                "No radio channel was good enough for the link."
            )
        case 0x3A: ("Controller Busy", "The controller is busy; try again.")
        case 0x3B: ("Unacceptable Connection Parameters", "The link's interval, latency or timeout was rejected.")
        case 0x3C: ("Advertising Timeout", "Advertising ended before a link was established.")
        case 0x3D:
            (
                "Connection Terminated due to MIC Failure",
                "A packet failed its integrity check: the keys differ, or an attacker interferes."
            )
        case 0x3E:
            (
                "Connection Failed to be Established",
                "The device did not respond to the link's first packets; often it is too far away, and a retry succeeds."
            )
        case 0x3F: ("MAC Connection Failed", "The alternate radio failed to establish the link.")
        case 0x40:
            (
                "Coarse Clock Adjustment Rejected but Will Try to Adjust Using Clock Dragging",
                "The clock cannot be adjusted at once and is being adjusted slowly."
            )
        case 0x41: ("Type0 Submap Not Defined", "A slot map of the link is missing.")
        case 0x42: ("Unknown Advertising Identifier", "There is no advertising set or train with this identifier.")
        case 0x43: ("Limit Reached", "The configured count or time limit was reached.")
        case 0x44: ("Operation Cancelled by Host", "This host cancelled the operation.")
        case 0x45: ("Packet Too Long", "The packet is longer than the link can carry.")
        default: nil
        }
    }
}
