# Builds name the workspace, not a package of it: cargo would choose other features of the dependencies
# and compile them again. Every build goes to one directory outside the checkout, which clones and worktrees share.
# Prefer it to a bare `cargo` call, or export CARGO_TARGET_DIR yourself.
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/thalweg/target
# A toolchain that `make setup` has just installed is found without a new login.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

CARGO := cargo
LOCKED := --locked

.DEFAULT_GOAL := help
.PHONY: help setup build release test kafka check fmt deny demo bench docs clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Builds go to $(CARGO_TARGET_DIR)"

setup: ## Install the system packages and the toolchain that are missing; says what and why
	@dev/setup.sh

build: ## Build everything, for development
	$(CARGO) build $(LOCKED) --workspace --all-targets

release: ## Build the optimised binary `thalweg`
	$(CARGO) build $(LOCKED) --release --workspace --bin thalweg
	@echo "built $(CARGO_TARGET_DIR)/release/thalweg"

test: kafka ## Run every test there is
	$(CARGO) test $(LOCKED) --workspace
	@dev/debezium/test.sh run $(CARGO_TARGET_DIR)/debug/thalweg

kafka: ## Fetch the Kafka broker that the tests run, unless it is there
	@dev/kafka/broker.sh prepare

check: ## Format, lints as errors, licences and advisories of dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(LOCKED) --workspace --all-targets -- -D warnings
	@dev/deny.sh

fmt: ## Format the code
	$(CARGO) fmt --all

deny: ## Only the check of dependencies
	@dev/deny.sh

demo: setup ## Install, build and run the sample pipeline over a week of real flights
	@dev/demo.sh

bench: ## Compare with batch DataFusion over the same bytes (ROWS=…, QUERIES=a,b,d), or MODE=kafka with a bare client
	$(CARGO) build $(LOCKED) --release --workspace --bins
	@$(CARGO_TARGET_DIR)/release/thalweg-bench $(or $(MODE),run)

docs: ## Build the API documentation of the crates
	$(CARGO) doc $(LOCKED) --workspace --no-deps

clean: ## Remove what was built
	$(CARGO) clean
