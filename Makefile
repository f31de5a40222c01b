# The two commands are `make demo` and `make test`; both install what they need (as root on Debian).
# All builds share one target folder in the user's cache and one profile, so that DataFusion is compiled once.

CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/avocet
export CARGO_TARGET_DIR ?= $(CACHE)/target
CARGO_FLAGS := --release --locked

.PHONY: build demo demo-attach test check fuzz clean

## build: the release binary, $(CARGO_TARGET_DIR)/release/avocet. Always the whole workspace: the set of packages decides
## the features of dependencies, and another set would compile DataFusion anew.
build:
	cargo build $(CARGO_FLAGS) --workspace

## demo: load, transactions beside analytics, a kill -9, and nothing lost (ARGS="--warehouses 2 --seconds 60")
demo:
	bench/run demo $(ARGS)

## demo-attach: a real MySQL 9.7 with running transactions, Avocet before it: fresh analytics, and the same rows (ARGS="--warehouses 2")
demo-attach:
	bench/run demo-attach $(ARGS)

## test: everything that CI runs
test:
	scripts/test

## check: the fast inner loop: formatting, lints, repository rules
check:
	cargo run -q $(CARGO_FLAGS) -p xtask -- check

## fuzz: coverage-guided fuzzing of what reads bytes, a minute for each target (ARGS="--seconds 600 record")
fuzz:
	fuzz/run $(ARGS)

clean:
	cargo clean
