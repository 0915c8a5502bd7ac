#!/bin/bash
# Makes the screenshots in docs/pictures: the report on the load in docs/observing.md, and its map of partitions. Needs
# a headless browser (Debian's package chromium; CHROMIUM names another) and two minutes.
# pictures.sh BINARY FOLDER
set -euo pipefail
binary=$(realpath "$1") out=$(realpath "$2")
browser=${CHROMIUM:-chromium}
command -v "$browser" >/dev/null || { echo "pictures need a browser: $browser" >&2; exit 2; }
dir=$(mktemp -d)
trap 'kill "${serve:-}" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
"$binary" gen student-cards --rows 300000 -o cards.csv
tail -n +2 cards.csv | cut -d, -f1 | sort -un | awk 'NR % 10 == 0' > ids.txt
"$binary" serve --listen 127.0.0.1:0 --store s --sync none --partitions 8 --sample-file ids.txt --partition-wcu 2500 --slow 5:0.2 --latency 5ms --jitter 0.2 > serve.txt 2>&1 &
serve=$!
until endpoint=$(grep -oE 'http://[0-9.:]+' serve.txt | head -1) && [ -n "$endpoint" ]; do kill -0 $serve; sleep 0.1; done
export TABLESTORE_ACCESS_KEY_ID=tsimport-local TABLESTORE_ACCESS_KEY_SECRET=tsimport-local-secret
"$binary" load cards.csv --endpoint "$endpoint" --instance tsimport --table cards --create \
    --pk CardID --pk DeviceID --pk OrderNumber --memory 64MiB --settle 2s --quiet
cp tsimport-runs/*-cards/report.html report.html
shot() { # page, width, height, file
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-color-profile=srgb --window-size="$2,$3" --screenshot="$out/$4" "file://$dir/$1" 2>/dev/null >/dev/null
}
shot report.html 1100 760 report.png
{ cat report.html; echo '<style>body > :not(#heat):not(script) { display: none !important }</style>'; } > heat.html
shot heat.html 1100 330 heatmap.png
ls -l "$out"/*.png
