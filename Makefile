# BareBLE: everything a person or a machine runs. `make help` lists it.
# Works on Debian (bookworm and newer) with a Swift toolchain, as root or with sudo.

SHELL  := /bin/bash
TOOLS  := Tests/Tools
PREFIX ?= /usr/local
# Without --disable-local-rpath the program would load libraries that another user has put beside it. The toolset leaves out the
# table of symbols for other libraries, of which there are none, and packs the relocations: 3 MB less of each process.
CONFIG := -c release --static-swift-stdlib --disable-local-rpath --toolset Docs/packaging/release.json
FORMATTED := Package.swift Sources Tests Docs/examples Docs/companions

.DEFAULT_GOAL := help
.PHONY: help run build test test-fast test-vm simulate embedded api reliability man lint format bench soak cycles sanitize fuzz coverage mutations docs deb install uninstall install-corebluetooth uninstall-corebluetooth clean

help: ## List the targets
	@awk -F ':[^#]*## ' '/^[a-z-]+:[^#]*## / { printf "  make %-23s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## Build a release and show the main functions: a live scan, or recorded packets and a virtual peripheral
	@$(TOOLS)/show-main-job .build/release/blescan

build: ## Build blescan for release (static Swift runtime)
	@$(TOOLS)/require libbluetooth-dev
	swift build $(CONFIG) --product blescan
	swift build $(CONFIG) --product bareble-recover

test: ## Run everything: unit, socketpair, interface, example, simulation, sanitizer, fuzz, Embedded, linkage, load, packaging and kernel tests
	@$(TOOLS)/require python3 python3-venv libbluetooth-dev tshark tmux mosquitto mosquitto-clients man-db zsh fish dpkg-dev lintian libcap2-bin mmdebstrap systemd
	@python3 $(TOOLS)/checks.py unit api examples simulation sanitized fuzz embedded linkage load packaging kernel

test-fast: ## Run the unit and socketpair tests only (debug)
	@$(TOOLS)/require python3 python3-venv libbluetooth-dev tshark tmux mosquitto mosquitto-clients
	@python3 $(TOOLS)/checks.py unit

test-vm: ## Run the kernel tests only, in a virtual machine; KERNELS=6.1,6.12 or KERNELS=all chooses its kernels
	@$(TOOLS)/require python3 libbluetooth-dev
	@KERNELS='$(KERNELS)' python3 $(TOOLS)/checks.py kernel

simulate: ## Play SEEDS (0..<10000) of the simulation, in a release build
	@$(TOOLS)/require libbluetooth-dev
	@SEEDS='$(or $(SEEDS),0..<10000)' python3 $(TOOLS)/checks.py simulation

embedded: ## Compile BLECore as Embedded Swift
	@$(TOOLS)/compile-embedded

api: ## Compare the public interface of the debug build with Docs/users/api.md; UPDATE=1 writes the page
	swift build
	@$(TOOLS)/list-api $(if $(UPDATE),--update)

reliability: ## Compare the catalogue of faults with its tests and Docs/users/reliability.md; UPDATE=1 writes its table
	@$(TOOLS)/list-reliability $(if $(UPDATE),--update)

man: ## Write the manual pages and completions, from the debug build
	swift build --product blescan
	@$(TOOLS)/write-manuals .build/debug/blescan

lint: ## Check the format of all Swift, the syntax of all scripts, what each module imports, and that the mutations fit the sources
	swift format lint --strict --parallel --recursive $(FORMATTED)
	@$(TOOLS)/check-scripts
	@$(TOOLS)/check-imports
	@Tests/Mutations/run --check

format: ## Format all Swift files
	swift format --in-place --parallel --recursive $(FORMATTED)

bench: ## Measure requests, parsing, round trips and size, and compare with the thresholds
	@$(TOOLS)/require python3 libbluetooth-dev
	@Tests/Benchmarks/run

soak: ## Put the library under load: many links, values, reports, cycles, simulated days; SHORT=1 for a fraction
	@$(TOOLS)/require libbluetooth-dev
	swift build $(CONFIG) --product load-trials
	.build/release/load-trials $(if $(SHORT),--short)

cycles: ## Have centrals come and go CYCLES (1000) times in a virtual machine, and show what is left of them
	@$(TOOLS)/require python3 libbluetooth-dev
	swift build $(CONFIG) --product blescan
	swift build --product link-trials
	@python3 Tests/VM/run.py centrals --only centrals_that_come_and_go_leave_nothing_behind --cycles $(or $(CYCLES),1000)

sanitize: ## Run all Swift tests with the address, thread and undefined behaviour sanitizers, and optimised; CHECK=threads for one
	@$(TOOLS)/require python3 python3-venv libbluetooth-dev tshark tmux mosquitto mosquitto-clients
	@python3 $(TOOLS)/checks.py $(or $(CHECK),addresses threads undefined optimised)

fuzz: ## Fuzz every parser of foreign bytes and whole sessions, each for SECONDS_EACH (20) seconds or all for EXECUTIONS inputs, from SEED (a new one); KEEP=1 minimises the corpus
	@Tests/Fuzz/run

coverage: ## Print the line coverage of the core's folders; at least 95 % of each with parsers or state machines
	@$(TOOLS)/coverage

mutations: ## Put faults, such as those of other Bluetooth stacks, into copies of the sources; the tests have to catch at least 85 %
	@Tests/Mutations/run

docs: ## Build the DocC documentation of the public modules
	@$(TOOLS)/require libbluetooth-dev
	swift package --disable-sandbox generate-documentation \
		--target BLECore --target BLEProfiles --target BLECapture --target BareBLE --target BareBLECrypto --target BareBLEFoundation --target BareBLETestKit --target CoreBluetooth --target CoreBluetoothTestKit --warnings-as-errors

deb: build ## Build a Debian package of blescan in .build/deb
	@$(TOOLS)/require dpkg-dev
	@Docs/packaging/build-deb

install: build ## Install blescan, its manual pages and completions below PREFIX (/usr/local)
	@$(TOOLS)/install-files install "$(DESTDIR)$(PREFIX)"

uninstall: ## Remove what install put below PREFIX
	@$(TOOLS)/install-files uninstall "$(DESTDIR)$(PREFIX)"

install-corebluetooth: ## Install the module CoreBluetooth below PREFIX, with a toolset for packages whose manifests do not name it
	@$(TOOLS)/require python3 libbluetooth-dev
	swift build $(CONFIG) --product corebluetooth-scanner
	@$(TOOLS)/install-corebluetooth install "$(PREFIX)" "$(DESTDIR)"

uninstall-corebluetooth: ## Remove what install-corebluetooth put below PREFIX
	@$(TOOLS)/install-corebluetooth uninstall "$(PREFIX)" "$(DESTDIR)"

clean: ## Remove everything that was built
	rm -rf .build
