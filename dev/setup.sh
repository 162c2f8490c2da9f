#!/usr/bin/env bash
# Installs what a build needs and is not there. Does nothing, quickly, when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

# Package and reason; the reasons are what a user is told before anything is installed.
packages=(
  "build-essential:C and C++ compilers, for RocksDB and the compression libraries"
  "clang:used by bindgen to find the system headers"
  "libclang-dev:read by bindgen to make the bindings of RocksDB"
  "libssl-dev:TLS and SASL of the Kafka client"
  "postgresql-client:psql, which the tests of \`thalweg serve\` connect with"
  "mold:the linker that .cargo/config.toml asks for"
  "git:to clone and to work"
  "curl:to fetch the Rust installer"
  "postgresql:the database that the tests follow through Debezium"
  "python3-venv:keeps Debezium's engine, a package of Python, to itself"
  "ca-certificates:to trust the Rust installer's and the registry's server"
)

# Any Java from 17 on will do, wherever it comes from.
has_java() {
  have java && [ "$(java -version 2>&1 | sed -n '1s/.*version "\([0-9]*\).*/\1/p')" -ge 17 ] 2>/dev/null
}

# The package of such a Java, which differs from one distribution to the next.
java_package() {
  local jre
  for jre in openjdk-21-jre-headless openjdk-17-jre-headless openjdk-25-jre-headless; do
    apt-cache show "$jre" >/dev/null 2>&1 && echo "$jre" && return
  done
  echo default-jre-headless
}

have() { command -v "$1" >/dev/null 2>&1; }
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

system_packages() {
  if ! have apt-get; then
    local needed=(cc c++ clang mold git curl java mvn) tool gone=()
    for tool in "${needed[@]}"; do have "$tool" || gone+=("$tool"); done
    [ ${#gone[@]} -eq 0 ] && return
    echo "setup: this is not a Debian or Ubuntu system; please install these yourself: ${gone[*]}" >&2
    echo "setup: libclang with its headers is needed too (clang-devel, llvm or clang-libs elsewhere)" >&2
    exit 1
  fi

  local entry missing=()
  has_java || missing+=("java:runs the Kafka broker of the tests")
  have mvn || missing+=("maven:fetches that broker from Maven Central")
  for entry in "${packages[@]}"; do
    installed "${entry%%:*}" || missing+=("$entry")
  done
  [ ${#missing[@]} -eq 0 ] && return

  echo "setup: installing with apt-get:"
  for entry in "${missing[@]}"; do printf '  %-16s %s\n' "${entry%%:*}" "${entry#*:}"; done

  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    have sudo || { echo "setup: run this as root, or install sudo" >&2; exit 1; }
    sudo=(sudo)
  fi
  export DEBIAN_FRONTEND=noninteractive
  "${sudo[@]}" apt-get update -qq
  local names=("${missing[@]%%:*}")
  "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${names[@]/#java/$(java_package)}" </dev/null
}

# The channel of rust-toolchain.toml: the only place where the version is written.
pinned() { sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml; }

toolchain() {
  local channel
  channel=$(pinned)
  PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
  if ! have rustup; then
    if have cargo && [[ "$(cargo --version)" == "cargo $channel "* ]] && have rustfmt && have cargo-clippy; then
      return # A distribution's own toolchain of the right version.
    fi
    echo "setup: installing rustup and Rust $channel into ${CARGO_HOME:-$HOME/.cargo}"
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
      sh -s -- -y --no-modify-path --profile minimal --default-toolchain "$channel" -c rustfmt -c clippy || {
      echo "setup: Rust could not be installed; see https://rustup.rs, then run 'make setup' again" >&2
      exit 1
    }
    return
  fi
  if ! rustup toolchain list | grep -q "^$channel-" ||
    ! rustup component list --toolchain "$channel" --installed | grep -q '^clippy'; then
    echo "setup: installing Rust $channel, which rust-toolchain.toml pins"
    rustup toolchain install "$channel" --profile minimal -c rustfmt -c clippy </dev/null || {
      echo "setup: 'rustup toolchain install $channel' failed; the pinned toolchain is needed" >&2
      exit 1
    }
  fi
}

# gcc knows mold from version 12 on. Better to say so here than in a page of linker output.
linker() {
  echo 'int main(void) { return 0; }' | cc -fuse-ld=mold -x c -o /dev/null - 2>/dev/null && return
  echo "setup: this C compiler cannot link with mold (gcc before 12 cannot); build without it:" >&2
  echo "  export CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')_RUSTFLAGS=" >&2
  exit 1
}

system_packages
toolchain
linker
echo "setup: everything is there"
