# The few commands a person needs, from a fresh clone to a running demo. Each does its own set-up and works as
# root and as an ordinary user.
#
# Demo and tests use the same profile, so that few things are compiled twice: a clean debug build takes about as long as
# a clean release build, and the demo waits for PostgreSQL more than for our code. For figures: make demo PROFILE=release

PROFILE ?= dev
ARGS ?=
# Where cargo puts what it builds: `dev` is called `debug` there.
OUT := $(or $(CARGO_TARGET_DIR),target)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))

.PHONY: help setup build demo test lint
.DEFAULT_GOAL := help

help: ## Lists the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup: ## Checks the toolchain and installs PostgreSQL's server if there is none and it may
	@.ci/setup

build: setup ## Builds every program of the workspace
	cargo build --locked --workspace --bins --profile $(PROFILE)

demo: build ## Starts everything, applies the example landing zone and shows its progress
	$(OUT)/converge demo $(ARGS)

# All targets: with the tests' own features switched on, exactly what `cargo test` needs and nothing that it builds again.
test: setup ## Runs all tests against one throw-away PostgreSQL server
	cargo build --locked --workspace --all-targets --profile $(PROFILE)
	$(OUT)/xtask test --profile $(if $(filter dev,$(PROFILE)),test,$(PROFILE)) $(ARGS)

lint: setup ## Checks formatting, clippy and the repository's own rules
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo xtask tidy
