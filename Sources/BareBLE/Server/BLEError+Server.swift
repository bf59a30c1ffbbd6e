internal import BLECore
internal import BLELinux
internal import Glibc

extension BLEError {
    init(_ failure: ServerDatabase.Failure, during operation: String) {
        let (reason, hint): (String, String?) =
            switch failure {
            case .noHandlesLeft:
                ("there are not enough handles left", "Withdrawn services keep theirs until the program ends.")
            case .reservedService(let uuid):
                ("the library publishes \(uuid) itself", "Set its values in `LocalPeripheral.Settings`.")
            case .reservedDescriptor(let uuid):
                ("the library adds the descriptor \(uuid) itself, as the properties require", "Leave it out.")
            case .reservedType(let uuid):
                ("\(uuid) is the type of a declaration or of a descriptor", "Use a UUID of your own.")
            case .valueTooLong(let uuid):
                ("the value of \(uuid) has more than \(ATTLimits.valueLength) bytes", nil)
            case .fixedValueWritable(let uuid):
                ("the value of \(uuid) is fixed, and its properties permit writes", "Use a stored or a handled value.")
            case .noSuchService: ("no such service is published", nil)
            case .isIncluded(let handle):
                (
                    "the service at \(CharacteristicReference.handle(handle)) includes it",
                    "Withdraw that one first."
                )
            }
        self.init(.invalidArgument, during: operation, because: reason, hint: hint)
    }

    init(_ error: SystemCallError, acceptingAt path: String, during operation: String) {
        let (code, reason, hint): (Code, String, String?) =
            switch error.errno {
            case EADDRINUSE where SystemFiles.isFolder(path):
                (.invalidArgument, "it is a directory", "Name the path of a socket in it.")
            case EADDRINUSE where SystemFiles.isOther(thanSocket: path):
                (.invalidArgument, "a file that is no socket is there", "Name another path.")
            case EADDRINUSE: (.busy, "the path is in use", "End the other program, or name another path.")
            case ENAMETOOLONG: (.invalidArgument, "the path of a socket has 107 bytes at most", "Name a shorter path.")
            case EACCES, EPERM, EROFS: (.notPermitted, "this process may not create the socket there", error.remedy)
            case ENOENT, ENOTDIR:
                (.invalidArgument, "there is no such directory", "Create the directory, or name another path.")
            default: (.system, "\(error.call) failed", error.remedy)
            }
        self.init(
            code, subject: "unix:\(path)", during: operation, because: reason, hint: hint, errorNumber: error.errno)
    }

    init(_ error: SystemCallError, acceptingOn adapter: String, during operation: String) {
        self.init(
            .system, subject: adapter, during: operation, because: "\(error.call) failed", hint: error.adapterRemedy,
            errorNumber: error.errno)
    }
}
