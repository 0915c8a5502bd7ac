#!/usr/bin/env bash
# Compares the cost of loads by other loaders with tsimport's: peers.sh TSBENCH ROWS. Builds the loaders in this folder,
# checks that each writes the rows of the file (into an engine, compared by verify), and measures each with tsbench
# client, in turn with tsimport. Prints a table. Needs a JDK with Maven, node with npm, python3 with venv, and their
# registries. Java loads ROWS rows, Node and Python a fifth. PEERS selects loaders, ROUNDS is the number of runs, SHAPE
# the shape of rows.
set -euo pipefail
binary=$(realpath "$1")
rows=$2
cd "$(dirname "$0")"
here=$PWD
peers=${PEERS:-java-writer java-bulk java-batches node python}
shape=${SHAPE:-12}
rounds=${ROUNDS:-3}
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$tmp"' EXIT

build() {
  case " $peers " in *" java"*) (cd java && mvn -q -B package dependency:copy-dependencies -DoutputDirectory=target/lib >"$tmp/mvn" 2>&1 || { cat "$tmp/mvn"; exit 1; }) ;; esac
  case " $peers " in *" node "*) (cd node && npm ci --ignore-scripts --no-audit --no-fund --silent) ;; esac
  case " $peers " in *" python "*)
    python3 -m venv python/venv
    python/venv/bin/pip install --quiet --disable-pip-version-check -r python/requirements.txt ;;
  esac
}

# command_of prints the shell command line of a peer, for any working folder.
command_of() {
  case $1 in
    java-writer) echo "exec java -cp '$here/java/target/peers-1.jar:$here/java/target/lib/*' Loader writer" ;;
    java-bulk) echo "exec java -cp '$here/java/target/peers-1.jar:$here/java/target/lib/*' Loader bulk" ;;
    java-batches) echo "exec java -cp '$here/java/target/peers-1.jar:$here/java/target/lib/*' Loader batches" ;;
    node) echo "exec node '$here/node/loader.js'" ;;
    python) echo "exec '$here/python/venv/bin/python' '$here/python/loader.py'" ;;
    *) echo "peers.sh: $1: want java-writer, java-bulk, java-batches, node or python" >&2; return 2 ;;
  esac
}

# version_of prints a peer's platform and how it sends.
version_of() {
  local java="tablestore 5.17.6, OpenJDK $(java -version 2>&1 | sed -n 's/.*version "\([^"]*\)".*/\1/p;q')"
  case $1 in
    java-writer) echo "Java $java: TableStoreWriter, BatchWriteRow, 4 buckets, 32 in flight" ;;
    java-bulk) echo "Java $java: TableStoreWriter, BulkImport, 4 buckets, 32 in flight" ;;
    java-batches) echo "Java $java: SyncClient, 100 rows a request, 5 threads" ;;
    node) echo "Node tablestore 5.6.5, $(node --version): 200 rows a request, 8 in flight" ;;
    python) echo "Python tablestore 6.4.8, $(python/venv/bin/python --version): 200 rows a request, 4 threads" ;;
  esac
}

# check loads 2,000 rows with each peer into an engine, and compares them with the file.
check() {
  local columns
  "$binary" client --only tsimport --shape "$shape" --rows 2000 --rounds 1 --keep "$tmp/check" >/dev/null 2>&1
  coproc SERVE { exec "$binary" tsimport serve --memory --listen 127.0.0.1:0 2>"$tmp/serve"; }
  server=$SERVE_PID
  local line
  read -r line <&"${SERVE[0]}"
  export TABLESTORE_ENDPOINT TABLESTORE_INSTANCE TABLESTORE_ACCESS_KEY_ID TABLESTORE_ACCESS_KEY_SECRET
  TABLESTORE_ENDPOINT=$(sed -n 's/.*url=\([^ ]*\).*/\1/p' <<<"$line")
  TABLESTORE_INSTANCE=$(sed -n 's/.*instance=\([^ ]*\).*/\1/p' <<<"$line")
  TABLESTORE_ACCESS_KEY_ID=$(sed -n 's/.*access_key_id=\([^ ]*\).*/\1/p' <<<"$line")
  TABLESTORE_ACCESS_KEY_SECRET=$(sed -n 's/.*access_key_secret=\([^ ]*\).*/\1/p' <<<"$line")
  head -2 "$tmp/check/rows.csv" >"$tmp/one.csv"
  columns=$("$binary" client --shape "$shape" --rows 1 --rounds 1 --only tsimport,external \
    --baseline-cmd 'printf %s "$BENCH_COLUMNS" >'"$tmp/columns; exit 1" >/dev/null 2>&1 || cat "$tmp/columns")
  local types=()
  for c in ${columns//,/ }; do types+=(--type "${c%:*}=${c##*:}"); done
  for p in $peers; do
    local table=peer_${p//-/_}
    "$binary" tsimport load "$tmp/one.csv" --table "$table" --create --pk id:integer "${types[@]:2}" --run-dir "$tmp/run-$p" --quiet
    (cd "$tmp" && BENCH_FILE=$tmp/check/rows.csv BENCH_TABLE=$table BENCH_ROWS=2000 BENCH_COLUMNS=$columns \
      timeout 120 /bin/sh -c "$(command_of "$p")" >"$tmp/out" 2>&1) || { echo "$p: $(tail -3 "$tmp/out")" >&2; exit 1; }
    "$binary" tsimport verify "$tmp/check/rows.csv" --table "$table" --pk id:integer "${types[@]:2}" >"$tmp/out" 2>&1 ||
      { echo "$p does not write what the file has:" >&2; cat "$tmp/out" >&2; exit 1; }
    echo "$p: the table equals the file" >&2
  done
  kill "$server"
  wait "$server" 2>/dev/null || true
  server=
  unset TABLESTORE_ENDPOINT TABLESTORE_INSTANCE TABLESTORE_ACCESS_KEY_ID TABLESTORE_ACCESS_KEY_SECRET
}

measure() {
  printf '| loader | rows | CPU, µs a row | tsimport in the same run | times tsimport | rows a second | peak MiB |\n|---|---|---|---|---|---|---|\n'
  for p in $peers; do
    local n=$rows
    case $p in node | python) n=$((rows / 5)) ;; esac
    "$binary" client --shape "$shape" --rows "$n" --rounds "$rounds" --only tsimport,external \
      --baseline-cmd "$(command_of "$p" | sed 's/^exec /exec timeout 10m /')" --json >"$tmp/$p.json" 2>"$tmp/err" || { tail -1 "$tmp/err" >&2; exit 1; }
    python3 - "$tmp/$p.json" "$(version_of "$p")" "$n" <<'PY'
import json, sys
loads = json.load(open(sys.argv[1]))["loads"]
peer, own = loads["external"], loads["tsimport"]
if peer.get("rows_again"):
    print("%s: %d rows were sent again" % (sys.argv[2], peer["rows_again"]), file=sys.stderr)
print("| %s | %s | %.1f | %.2f | %.1f | %s | %d |" % (
    sys.argv[2], format(int(sys.argv[3]), ","), peer["cpu_us_per_row"], own["cpu_us_per_row"], peer["cpu_us_per_row"] / own["cpu_us_per_row"],
    format(round(peer["rows_per_second"]), ","), peer["peak_rss_bytes"] >> 20))
PY
  done
}

for p in $peers; do command_of "$p" >/dev/null; done
build
check
measure
