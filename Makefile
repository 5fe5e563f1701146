# A thin front for meson: see README.md for what each target is for.
#   build  optimised binaries in build/          check  what guards the tree
#   check-ebpf  its tests that have nodes, with the datapath ebpf on all of them, then on every other one
#   check-attack  attacks on all of it by tenants, nodes, neighbours and others (docs/threat-model.md)
#   check-containers  pods, volumes, streams and labs on a real containerd: too long for "check", so CI runs it after that
#   check-kernels  what depends on the kernel, in virtual machines with kernels of Debian and, if UBUNTU
#          is the address of that archive, Ubuntu
#   check-clients  every kind of the API by clients of npm, Ansible's collections, and older and newer kubectls
#   demo   a three-node cluster on this machine  demo-down  removes it
#   bench  measures beside named peers, into bench/results and docs/performance.md
#   fuzz   every parser, longer (FUZZ_SECONDS each)
#   soak   SOAK_ROUNDS pods come and go, some killed in the middle: nothing may be left behind
#   soak-kubelet  HISTORIES random histories of the kubelet's pods under faults; KILLS of the kubelet and of a real
#          containerd under load; a host that starts anew; and 110 pods up and down in 20 rounds
#   model  MODEL_CLUSTERS random clusters: flows in a real switch against the model in plain C; and MODEL_FRAMES frames
#          that model, switch and eBPF programs judge, all three
#   mutate  changes lines of FOLDER (below src/; default all) one by one, and prints the changes that no unit test noticed:
#          of each folder until tests/mutation/results.tsv has COUNT
#   check-cnitool  the CNI project's own tool attaches containers, in chains too: fetches and builds it
#   check-monitoring  alert rules by promtool, and a real Prometheus that scrapes a lab: every query of alerts and dashboard
#   deb    packages for Debian, built in a clean chroot without network, into build-packages/VERSION/
#   rpm    packages for RPM, into build-packages/rpm/
#   release  tarball, packages, container images, SBOM and checksums, into build-packages/release/
#   check-packages  the packages on a Debian 12 with systemd: installed, upgraded, downgraded, removed, purged, and interrupted;
#          and built twice with equal bytes
#   check-tidy  clang-tidy over src/, of which "check" says the same
#   coverage  which lines of src/ the unit tests run, by folder
#   generate  rewrites the texts in the tree that are made from descriptions of kinds, rows of C, docs/seeds.tsv and
#          bench/results
#   install  into DESTDIR and PREFIX             deps   the Debian packages of packaging/packages.txt
#   deps-build  those that building needs, which is all that "build" and "install" ask for

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 300
SOAK_ROUNDS ?= 10000
HISTORIES ?= 3000
KILLS ?= 100
MODEL_CLUSTERS ?= 20000
MODEL_FRAMES ?= 1000000
COUNT ?= 25
export PYTHONDONTWRITEBYTECODE = 1

# Targets that make namespaces, mounts or virtual machines.  They say so before they build anything, whatever -j does.
AS_ROOT = bench check check-attack check-clients check-containers check-ebpf check-kernels \
          check-monitoring check-packages deb demo demo-down release rpm soak soak-kubelet
ifneq ($(filter $(AS_ROOT),$(MAKECMDGOALS)),)
ifneq ($(shell id -u),0)
$(error "make $(firstword $(filter $(AS_ROOT),$(MAKECMDGOALS)))" needs root, because it makes network namespaces and mounts: \
run "sudo make $(MAKECMDGOALS)". Nothing was built or installed. "make" alone needs no root)
endif
endif

.PHONY: build demo demo-down check check-ebpf check-attack check-containers check-kernels check-cnitool check-clients check-monitoring check-tidy bench fuzz soak soak-kubelet model mutate generate coverage install deps format clean deps-build deb rpm release check-packages

build: deps-build
	@test -f $(BUILD)/build.ninja || { mkdir -p $(BUILD) && echo "building in $(BUILD)/" && \
	    meson setup $(BUILD) --prefix=$(PREFIX) --buildtype=release -Db_lto=true -Dtests=false -Dfuzz=off \
	    >$(BUILD)/setup.log 2>&1; } || { cat $(BUILD)/setup.log >&2; exit 1; }
	@ninja -C $(BUILD) --quiet

demo: deps build
	@tools/demo up $(BUILD)

demo-down:
	@tools/demo down $(BUILD)

check: deps
	@tools/check

check-ebpf: deps
	@tools/check --datapath ebpf
	@tools/check --datapath mixed

check-attack: deps
	@tools/check --attack

check-containers: deps
	@tools/check --containers

check-kernels: deps
	@tools/check-kernels $(if $(UBUNTU),--ubuntu $(UBUNTU))

check-cnitool: deps build
	@tools/deps packaging/cnitool-packages.txt
	@tools/check-cnitool $(BUILD)

check-clients: deps
	@tools/deps packaging/clients-packages.txt
	@tools/check --only build
	@tools/check-clients build-check

check-monitoring: deps
	@tools/deps packaging/monitoring-packages.txt
	@tools/check --monitoring

check-tidy: deps
	@tools/check --only build --only tidy

coverage: deps
	@tools/coverage

bench: deps build
	@tools/bench --build $(BUILD)

fuzz: deps
	@tools/check --only fuzz --fuzz-seconds $(FUZZ_SECONDS)

soak: deps build
	@/usr/bin/python3 tests/soak/soak.py --build $(BUILD) --rounds $(SOAK_ROUNDS)

# The rounds measure memory, which AddressSanitizer keeps after it was freed: they run the optimised program.
soak-kubelet: deps build
	@tools/check --only build
	@TENET_HISTORIES=$(HISTORIES) build-check/tests/unit/test_kubelet_worker_histories
	@TENET_BUILD=$(CURDIR)/build-check TENET_KILLS=$(KILLS) TENET_PODS=110 \
	    /usr/bin/python3 -B -m pytest -p no:cacheprovider -q -s tests/containers/test_kills.py -k "not rounds"
	@TENET_BUILD=$(abspath $(BUILD)) TENET_PODS=110 TENET_POD_ROUNDS=20 \
	    /usr/bin/python3 -B -m pytest -p no:cacheprovider -q -s tests/containers/test_kills.py -k rounds

model: deps
	@tools/check --only build
	@TENET_MODEL_CLUSTERS=$(MODEL_CLUSTERS) build-check/tests/unit/test_model_trace
	@TENET_THREE_FRAMES=$(MODEL_FRAMES) build-check/tests/unit/test_ebpf_model

mutate: deps
	@tools/mutate --resume --count $(COUNT) $(FOLDER) || tools/mutate --lived --sanitize $(FOLDER)

deb rpm release:
	@tools/package $@

check-packages: deps
	@tools/package deb
	@tools/package previous
	@tools/package reproducible
	@tools/package host
	@tools/package release
	@tools/check --only packages --jobs 1

generate: build
	@tools/generate $(BUILD)

install: build
	@meson configure $(BUILD) --prefix=$(PREFIX)
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild

deps:
	@tools/deps

deps-build:
	@tools/deps packaging/packages.txt build

format:
	clang-format -i $$(git ls-files '*.c' '*.h')


clean:
	rm -rf build build-check build-fuzz build-kernels build-mutate build-threads build-coverage build-packages
