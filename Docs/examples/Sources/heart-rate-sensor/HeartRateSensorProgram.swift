import BareBLE
import HeartRateSensing
import SystemService

/// `heart-rate-sensor`: a heart-rate sensor on the adapter.
@main
enum HeartRateSensorProgram {
    static func main() async {
        guard let place = ServingPlace(CommandLine.arguments.dropFirst()) else {
            Daemon.refuse("heart-rate-sensor [unix:PATH]")
        }
        await Daemon.serve("heart-rate-sensor") { central in
            // Appearance 0x0340: a heart-rate sensor.
            let peripheral = LocalPeripheral(.init(name: "Heart Rate Sensor", appearance: 0x0340), on: central)
            let sensor = try await HeartRateSensor(peripheral, of: SimulatedHeart(), clock: central.clock)
            let advertising = try await place.open(peripheral, of: central, HeartRateSensor.advertisement)
            return (peripheral, OnAir(advertising, sensor))
        }
    }
}
