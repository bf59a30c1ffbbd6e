import ArgumentParser

/// Scans, explores, reads and writes Bluetooth LE devices without a daemon, and looks into recorded packets.
@main
struct Blescan: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "blescan",
        abstract: "See, explore and talk to Bluetooth LE devices, without bluetoothd.",
        usage: "blescan <command> [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan                                nearby devices; q quits
              sudo blescan explore AA:BB:CC:DD:EE:FF      what a device offers
              sudo blescan read AA:BB:CC:DD:EE:FF 2a19    one value
              sudo blescan notify AA:BB:CC:DD:EE:FF 2a37  values as they come
              sudo blescan watch AA:BB:CC:DD:EE:FF 2a19   a value, again and again
              blescan browse demo:heart-rate              a screen of attributes
              blescan talk demo:uart                      several operations
              sudo blescan pair AA:BB:CC:DD:EE:FF         pair, and keep the bond
              blescan explore demo:heart-rate             virtual device, no radio
              blescan replay capture.btsnoop              recorded packets
              blescan decode --hex 02010603030d18         decode these bytes
              sudo blescan doctor                         diagnose Bluetooth here
              sudo blescan selftest                       qualify an adapter

            A peer is AA:BB:CC:DD:EE:FF, with /random or /public where the type is
            known; unix:PATH, an ATT server on a SEQPACKET socket; or a virtual device:
            demo:heart-rate, demo:battery, demo:uart, demo:long-value, demo:lock.

            name:NAME, as 'name:Thermo*', and service:UUID, as service:heart-rate, are
            the only device near that advertises this and accepts connections; it is
            searched for first, and several are an error that lists them. Any device
            may advertise any name: to pair, and to forget, give the address. Virtual
            devices are not on air, and are not found.

            Without a command, blescan scans. With a peer in its place, it explores
            that: `blescan demo:battery` is `blescan explore demo:battery`.
            `blescan -V` is `blescan --version`.

            A value is named by its UUID (2a19), by its handle (0x0022), or by the
            Bluetooth SIG's name for it in lower case with dashes (battery-level); a
            part of a name, such as `level`, lists the names that contain it.

            EXIT STATUS
               0  done                         74  link lost, or output not written
               1  nothing was found            75  timed out, try again
              64  wrong usage                  76  peer refused or violated the protocol
              65  invalid input                77  not permitted
              69  no usable adapter           130  interrupted while something
                                                   was unfinished
            """,
        version: "0.2.0",
        subcommands: [
            Scan.self, Explore.self, Browse.self, Read.self, Write.self, Notify.self, Watch.self, Talk.self, Serve.self,
            Advertise.self,
            Pair.self,
            Forget.self, Bonds.self,
            Decode.self,
            Replay.self, Doctor.self, SelfTest.self,
        ],
        defaultSubcommand: Scan.self)
}
