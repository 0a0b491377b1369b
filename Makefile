# Short names for what people do here; the build itself is CMake's (CMakePresets.json).
#   make demo          build, plan a real model, train a small one
#   make test          everything that must pass, as CI runs it
#   make               the development build, in build/dev
.POSIX:
.PHONY: build demo test check lint format bench fuzz coverage install-deps ci-long clean

MODEL = examples/models/llama-3.2-1b
MESH = dp=2,tp=4
SECONDS = 60

build:
	@cmake --preset dev >/dev/null && cmake --build --preset dev

demo:
	@scripts/install-deps.sh build runtime
	@mkdir -p build/release
	@{ cmake --preset release && cmake --build --preset release; } >build/release/build.log 2>&1 || { tail -n 30 build/release/build.log; exit 1; }
	@MODEL=$(MODEL) MESH=$(MESH) scripts/demo.sh build/release/bin

test:
	@scripts/install-deps.sh build runtime test
	@scripts/install-deps.sh lint || echo "going on without them: the checks that need them are skipped"
	@scripts/test.sh

# The quick rules only, without a compiler.
check:
	@scripts/check.sh

# All rules: quick ones, format, clang-tidy, manuals.
lint: build
	@ctest --preset dev -L check

format:
	@scripts/format.sh

bench:
	@scripts/install-deps.sh build runtime
	@bench/run.sh

# One minute a target; SECONDS=3600 for longer.
fuzz:
	@scripts/install-deps.sh build lint
	@scripts/fuzz.sh $(SECONDS)

coverage:
	@scripts/coverage.sh

install-deps:
	@scripts/install-deps.sh

# What takes too long for every change: run before a release and before an issue is closed.
ci-long: test
	@scripts/test-long.sh

clean:
	rm -rf build
