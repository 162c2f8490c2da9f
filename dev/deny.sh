#!/usr/bin/env bash
# Licences, sources, duplicates and known vulnerabilities of the dependencies (deny.toml).
set -euo pipefail
cd "$(dirname "$0")/.."

PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
if ! command -v cargo-deny >/dev/null; then
  echo "deny: installing cargo-deny (a few minutes, once)"
  cargo install --locked cargo-deny
fi

cargo deny --locked check --hide-inclusion-graph bans licenses sources
# The advisories come from a git repository, which an isolated machine may not reach: not knowing
# of a vulnerability is worth a line, not a failed build. A known one is a failure.
if timeout 120 cargo deny --locked fetch db 2>/dev/null; then
  cargo deny --locked check --disable-fetch advisories
else
  echo "deny: the advisory database cannot be reached, advisories were not checked"
fi
