#!/usr/bin/env bash
# Apache Kafka for the tests and for trying things out: one process (KRaft), on this machine only.
#
#   dev/kafka/broker.sh prepare           fetch the jars from Maven Central, unless they are there
#   dev/kafka/broker.sh run [option …]    run a broker until Ctrl-C
#
#   --port N              clients without authentication (9092)
#   --sasl-port N         clients with SASL (9094): PLAIN and SCRAM know alice with password alice-secret
#   --controller-port N   the broker itself (9093)
#   --data DIR            where topics are kept; without it, a directory that goes with the broker
#   --lifeline            end when standard input does: no broker outlives the test that started it
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's|.*<kafka.version>\(.*\)</kafka.version>.*|\1|p' "$here/pom.xml")
# Whoever changes the pom or this script gets a directory of his own.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/thalweg/kafka-$version-$(cat "$here/pom.xml" "$0" | cksum | cut -d' ' -f1)

fail() { echo "kafka: $*" >&2; exit 1; }
# A small heap, and no compiler that pays off after minutes only.
jvm=(java -Xmx512m -Xms128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1
  -Dorg.slf4j.simpleLogger.defaultLogLevel="${KAFKA_LOG_LEVEL:-warn}")

# Settings that do not depend on where a broker runs.
settings() {
  cat <<'EOF'
process.roles=broker,controller
node.id=1
listener.security.protocol.map=PLAIN:PLAINTEXT,AUTH:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAIN
controller.listener.names=CONTROLLER
listener.name.auth.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
listener.name.auth.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret";
listener.name.auth.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.auth.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.auth.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice";
auto.create.topics.enable=false
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
message.max.bytes=33554432
num.network.threads=2
num.io.threads=2
log.cleaner.dedupe.buffer.size=4194304
log.index.size.max.bytes=65536
# Records keep their age in tests: those of 1970 must not be gone before they are read.
log.retention.ms=-1
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=0
file.delete.delay.ms=0
EOF
}

prepare() {
  [ -f "$cache/template/meta.properties" ] && return
  command -v java >/dev/null && command -v mvn >/dev/null ||
    fail "java and mvn are needed for the broker that the tests run: make setup installs them"
  echo "kafka: fetching Apache Kafka $version from Maven Central into $cache" >&2
  mkdir -p "$(dirname "$cache")"
  made=$(mktemp -d "$cache.XXXXXX")
  trap 'rm -rf "$made"' EXIT
  mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$made/jars" >"$made/log" 2>&1 ||
    { cat "$made/log" >&2; fail "the jars could not be fetched"; }
  # Formatted storage is the same for every broker: made once, copied for each.
  { settings; echo "log.dirs=$made/template"; addresses 9092 9093 9094; } >"$made/format.properties"
  "${jvm[@]}" -cp "$made/jars/*" kafka.tools.StorageTool format --config "$made/format.properties" \
    --cluster-id dGhhbHdlZy10ZXN0cy0tLQ --add-scram 'SCRAM-SHA-256=[name=alice,password=alice-secret]' \
    --add-scram 'SCRAM-SHA-512=[name=alice,password=alice-secret]' >"$made/log" 2>&1 ||
    { cat "$made/log" >&2; fail "the storage could not be formatted"; }
  # Another process may have been faster, and what it made is as good.
  [ -e "$cache" ] || mv "$made" "$cache" 2>/dev/null || true
  [ -f "$cache/template/meta.properties" ] || fail "$cache could not be made"
}

addresses() {
  echo "controller.quorum.voters=1@127.0.0.1:$2"
  echo "listeners=PLAIN://127.0.0.1:$1,AUTH://127.0.0.1:$3,CONTROLLER://127.0.0.1:$2"
}

run() {
  local port=9092 controller_port=9093 sasl_port=9094 data="" lifeline=""
  while [ $# -gt 0 ]; do
    case $1 in
      --port) port=$2; shift 2 ;;
      --controller-port) controller_port=$2; shift 2 ;;
      --sasl-port) sasl_port=$2; shift 2 ;;
      --data) data=$2; shift 2 ;;
      --lifeline) lifeline=1; shift ;;
      *) fail "unknown option $1" ;;
    esac
  done
  local scratch=""
  [ -n "$data" ] || { data=$(mktemp -d "${TMPDIR:-/tmp}/thalweg-kafka.XXXXXX"); scratch=$data; }
  [ -f "$data/log/meta.properties" ] || { mkdir -p "$data" && cp -R "$cache/template" "$data/log"; }
  { settings; echo "log.dirs=$data/log"; addresses "$port" "$controller_port" "$sasl_port"; } \
    >"$data/server.properties"
  # This process becomes the broker, so that a signal to it is a signal to the broker.
  local self=$$
  if [ -n "$lifeline" ]; then
    exec 3<&0
    ( cat <&3 >/dev/null; kill -9 $self 2>/dev/null; [ -z "$scratch" ] || rm -rf "$scratch" ) >/dev/null 2>&1 &
  elif [ -n "$scratch" ]; then
    echo "kafka: bootstrap_servers = 'localhost:$port'; Ctrl-C ends it and removes its topics" >&2
    ( trap '' INT TERM HUP; while kill -0 $self 2>/dev/null; do sleep 1; done; rm -rf "$scratch" ) >/dev/null 2>&1 &
  fi
  exec 3<&- </dev/null
  exec "${jvm[@]}" -cp "$cache/jars/*" kafka.Kafka "$data/server.properties"
}

case ${1:-} in
  prepare) prepare ;;
  run) shift; prepare; trap - EXIT; run "$@" ;;
  *) fail "prepare or run, see the head of $0" ;;
esac
