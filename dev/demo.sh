#!/usr/bin/env bash
# Builds the binary and runs the sample pipeline. Called by `make demo`, which installs first.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "demo: building thalweg (the first time compiles every dependency: some minutes)"
cargo build --locked --workspace --bin thalweg
echo "demo: thalweg run sample/demo.sql"
exec "$CARGO_TARGET_DIR/debug/thalweg" run sample/demo.sql
