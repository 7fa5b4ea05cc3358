# The two commands: make demo, make test. Everything else is below in `make help`.
# PRESET=debug|asan|tsan selects another build for build, test and bench.
PRESET ?= release
SHELL := /bin/bash
BUILD := build/$(PRESET)
JOBS ?= $(shell nproc)
# Tests wait more than they compute: for deadlines, for processes that end, for each other.
TEST_JOBS ?= $(shell expr 2 \* $(JOBS))
PREFIX ?= /usr/local
override PREFIX := $(abspath $(PREFIX))
# Options for the CMake configuration, e.g. CMAKE_ARGS=-DCMAKE_PREFIX_PATH=/opt/libtorch
CMAKE_ARGS ?=
# Options for ctest, e.g. CTEST_ARGS='-R ddp'
CTEST_ARGS ?=
# What make bench measures, and on which libtorch (the one that CMake finds where empty).
SUITE ?= all
ENGINE ?=
BENCH_BUILD := $(if $(ENGINE),build/engine,$(BUILD))
# The folder with the packages of an earlier release that make abi-check compares with.
EARLIER ?=
# What make fuzz runs, and for how long each.
TARGET ?= all
SECONDS ?= 600
# The libtorch for CUDA that make engine-cuda unpacks.
TORCH ?= $(shell sed -n 's/^torch==//p' benchmarks/peers/requirements.txt)
VERSION := $(shell sed -n "s,^project.argosy VERSION \([0-9.]*\) .*,\1,p" CMakeLists.txt)
# A Python with torch and paddle; make peers makes one.
PEERS ?= $(wildcard .venv-peers/bin/python)

.DEFAULT_GOAL := help
# Installing comes before configuring, configuring before building; ninja does the rest in parallel.
.NOTPARALLEL:
.PHONY: help demo test docs deb deb-check bundle bundle-check wheel wheel-check torch torch-tests paddle paddle-check need-root abi-check image image-check slurm-check release release-check reproduce test-clusters build bench fuzz peers engine-cuda readers format lint lint-all install clean deps-% configure configure-lint

help: ## This list
	@echo "Argosy: distributed training on libtorch. Targets:"
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 16

demo: deps-build ## Install what is missing, build, train a CNN on Fashion-MNIST with two processes
	@scripts/quiet.sh "configuring" build/demo-configure.log cmake --preset $(PRESET) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DARGOSY_BUILD_TESTS=OFF) $(CMAKE_ARGS)
	@scripts/quiet.sh "building$(if $(wildcard $(BUILD)/bin/fashion_mnist),, (a few minutes the first time))" build/demo-build.log cmake --build --preset $(PRESET) -j $(JOBS) --target argosy_cli fashion_mnist
	@scripts/demo.sh $(BUILD)/bin

test: deps-test configure ## Install what is missing, build and run all tests
	cmake --build --preset $(PRESET) -j $(JOBS)
	set -o pipefail; ctest --preset $(PRESET) -j $(TEST_JOBS) $(CTEST_ARGS) | scripts/failed_cases.sh; \
	status=$$?; scripts/skipped.sh $(BUILD); exit $$status

build: deps-test configure ## Build everything (PRESET=release|debug|asan|tsan)
	cmake --build --preset $(PRESET) -j $(JOBS)

test-clusters: deps-clusters configure ## Also installs Slurm, OpenMPI, MPICH and sshd, and trains under each of them and as Kubernetes' pods (root)
	cmake --build --preset $(PRESET) -j $(JOBS) --target argosy_cli argosy_torch_cli 03_fleet
	ctest --preset $(PRESET) -L clusters $(CTEST_ARGS)

bench: deps-bench ## Benchmarks: SUITE=ddp|collectives|optim|input|launch|epoch|fit|memory|layout|ops|parallel|ps|python|rpc|scaling|traffic|virtual|all beside PEERS=<python>; ENGINE=<libtorch prefix>
	cmake --preset $(PRESET) $(if $(ENGINE),-B $(BENCH_BUILD) -DCMAKE_PREFIX_PATH=$(abspath $(ENGINE))) -DARGOSY_BUILD_BENCHMARKS=ON $(if $(wildcard $(BENCH_BUILD)/CMakeCache.txt),,-DARGOSY_BUILD_TESTS=OFF) $(CMAKE_ARGS)
	cmake --build $(BENCH_BUILD) -j $(JOBS)
	python3 benchmarks/compare.py --bin $(BENCH_BUILD)/bin --suites $(SUITE) $(if $(ENGINE),--engine own) $(if $(PEERS),--peers $(PEERS)) $(BENCH_ARGS)

fuzz: deps-fuzz ## Fuzz the readers with clang's sanitizers: TARGET=<name>|all, SECONDS=<each>
	tests/fuzz/run.sh $(TARGET) $(SECONDS)

peers: deps-peers ## A Python with the official PyTorch, PaddlePaddle and DALI in .venv-peers, to measure and test beside
	@scripts/peers.sh

engine-cuda: deps-peers ## The official CUDA build of libtorch in build/cuda-<version>, to build against without a GPU: TORCH=2.15.0
	@scripts/engine_cuda.sh $(TORCH) build/cuda-$(TORCH)

readers: deps-readers deps-browser ## What reads our files, for tests: a Python with tensorboard, visualdl, safetensors in .venv-readers; Chromium
	@scripts/readers.sh

docs: deps-docs ## The site, in build/site: open index.html. PROGRAMS=<folder with argosy>, else they are built
ifeq ($(PROGRAMS),)
	@$(MAKE) --no-print-directory deps-build
	@scripts/quiet.sh "configuring" build/docs-configure.log cmake --preset $(PRESET) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DARGOSY_BUILD_TESTS=OFF) $(CMAKE_ARGS)
	@scripts/quiet.sh "building$(if $(wildcard $(BUILD)/bin/argosy-torch),, (a few minutes the first time))" build/docs-build.log cmake --build --preset $(PRESET) -j $(JOBS) --target argosy_cli argosy_torch_cli argosy_checkpoint_cli argosy_data_cli argosy_runs_cli
endif
	@site/build.sh $(or $(PROGRAMS),$(BUILD)/bin)/argosy build/site

format: deps-test ## Format all sources in place
	scripts/sources.sh | xargs clang-format-14 -i

lint: deps-lint configure-lint ## Formatting, and clang-tidy on what differs from main (BASE=<revision>)
	scripts/lint.sh build/lint changed $(BASE)

lint-all: deps-lint configure-lint ## clang-tidy on every source and header
	scripts/lint.sh build/lint all

install: deps-build ## Build and install library, headers and launcher under PREFIX (/usr/local)
	@mkdir -p "$(PREFIX)" 2>/dev/null && [ -w "$(PREFIX)" ] || { echo "argosy: $(PREFIX) is not yours to write: make install PREFIX=\$$HOME/argosy, or sudo make install" >&2; exit 1; }
	@scripts/quiet.sh "configuring" build/install-configure.log cmake --preset $(PRESET) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DARGOSY_BUILD_TESTS=OFF) $(CMAKE_ARGS)
	@scripts/quiet.sh "building$(if $(wildcard $(BUILD)/bin/argosy),, (a few minutes the first time))" build/install-build.log cmake --build --preset $(PRESET) -j $(JOBS) --target argosy_installed
	@scripts/quiet.sh "installing under $(PREFIX)" build/install.log cmake --install $(BUILD) --prefix $(PREFIX)
	@echo "argosy: installed: $(PREFIX)/bin/argosy; in a project: -DCMAKE_PREFIX_PATH=$(PREFIX); docs/guides: in $(PREFIX)/share/doc/argosy"

deb: deps-deb ## Debian packages of what is committed, in build/deb; RELEASE=trixie: in a root of that release, in build/deb-trixie (root)
	@packaging/deb.sh build/deb$(RELEASE:%=-%) $(RELEASE)

deb-check: deps-deb ## Install build/deb's packages (RELEASE=trixie) in a bare root, run their tests, upgrade and purge them (root)
	@packaging/root.sh $(or $(RELEASE),$(shell . /etc/os-release && echo $$VERSION_CODENAME)) build/deb$(RELEASE:%=-%) -- /mnt/source/packaging/try_deb.sh /mnt

abi-check: deps-abi ## Do programs of an earlier release run with build/deb's library? EARLIER=<folder of that release>, else the last tag's is built
	@packaging/abi_check.sh "$(EARLIER)" build/deb build/abi

bundle: deps-bundle ## argosy-<version>-linux-x86_64.tar.zst in build/packages: all that training needs, without root or network
	@packaging/bundle.sh build/packages

wheel: deps-wheel ## The launcher for pip, in build/packages
	@packaging/wheel.sh build/packages

image: deps-image ## An OCI image with argosy, argosy-torch and Fashion-MNIST from build/deb's packages, in build/image (root)
	@packaging/image.sh build/deb build/image

image-check: deps-image ## Start the image of build/image in namespaces, as a user without network, and train there (root)
	@packaging/try_image.sh build/image

slurm-check: deps-clusters deps-image ## Train with the bundle and with the image's root under a real Slurm, as an ordinary user without network (root)
	@packaging/try_slurm.sh build/packages build/image

torch: deps-torch ## PyTorch's backend "argosy" for pip, in build/packages; compiled where it is installed
	@packaging/python_backend.sh torch build/packages

paddle: deps-torch ## Paddle's process groups over Argosy for pip, in build/packages; compiled where it is installed
	@packaging/python_backend.sh paddle build/packages

torch-tests: torch $(if $(PEERS),,peers) ## PyTorch's own tests on Gloo and on the backend "argosy", compared, in build/torch-tests: PEERS=<python>
	@tests/torch/run.sh "$(or $(PEERS),.venv-peers/bin/python)" build/packages/argosy_torch-$(VERSION).tar.gz build/torch-tests

paddle-check: paddle $(if $(PEERS),,peers) ## Compile the package for Paddle with pip, and reduce with it: PEERS=<python>
	@packaging/static_launcher.sh build/wheel/argosy build/wheel/sources
	@tests/paddle/backend_test.sh $(CURDIR)/build/wheel/argosy $(CURDIR)/build/packages/argosy_paddle-$(VERSION).tar.gz $(CURDIR)/build/paddle-check "$(abspath $(or $(PEERS),.venv-peers/bin/python))"
	@echo "argosy: argosy_paddle was installed by pip, and reduces as Gloo does"

need-root:
	@[ "$$(id -u)" -eq 0 ] || { echo "argosy: roots of Debian are made by root: sudo make $(MAKECMDGOALS)" >&2; exit 1; }

release: need-root deb bundle wheel torch paddle image ## All packages with checksums and an SBOM each, in build/release-files (root)
	@packaging/deb.sh build/deb-trixie trixie
	@packaging/release.sh build/packages build/image build/release-files build/deb build/deb-trixie

release-check: need-root deb-check bundle-check wheel-check image-check slurm-check torch-tests paddle-check reproduce ## Try all packages in bare roots, run PyTorch's own tests, and build again to the bit (root; three quarters of an hour)
	@packaging/root.sh trixie build/deb-trixie -- /mnt/source/packaging/try_deb.sh /mnt
	@packaging/release_tried.sh build/release-files build/deb build/deb-trixie build/packages build/image

reproduce: deps-deb deps-wheel ## Build Debian's packages and the wheel in another folder and compare them to the bit
	@packaging/reproduce.sh build/deb build/packages

wheel-check: deps-deb ## Install the wheel with pip in bare roots of Debian 11, 12 and 13, and start Python programs (root)
	@cp packaging/try_wheel.sh build/packages
	@for release in bullseye bookworm trixie; do packaging/root.sh $$release build/packages -- /mnt/try_wheel.sh /mnt || exit 1; done

bundle-check: deps-deb ## Unpack the bundle in bare roots of Debian 11, 12 and 13, train there and use its commands (root)
	@cp packaging/try_bundle.sh build/packages
	@for release in bullseye bookworm trixie; do packaging/root.sh $$release build/packages -- /mnt/try_bundle.sh /mnt || exit 1; done

clean: ## Remove the build folder
	rm -rf build

# Each source by itself, nothing of it built but the code that is generated.
configure-lint:
	@mkdir -p build
	@cmake --preset $(PRESET) -B build/lint -DARGOSY_UNITY=OFF -DARGOSY_BUILD_TESTS=ON -DARGOSY_BUILD_BENCHMARKS=ON -DCMAKE_CXX_FLAGS_RELEASE="-O0 -DNDEBUG" $(CMAKE_ARGS) >build/lint-configure.log 2>&1 || { cat build/lint-configure.log; exit 1; }
	@cmake --build build/lint --target argosy_generated >/dev/null

configure:
	cmake --preset $(PRESET) -DARGOSY_BUILD_TESTS=ON $(CMAKE_ARGS)

deps-%:
	@scripts/install_deps.sh $*
