#!/usr/bin/env bash
# Puts what a Flink of one machine needs into the folder given: Flink 1.19.3 from PyPI (its package has the jars, without scripts) and Beam's Flink
# runner 2.62.0 with its job server from Maven Central. Needs a JDK, Maven and pip. What is there already stays.
set -euo pipefail
made=$(mkdir -p "$1" && cd "$1" && pwd)
[ -e "$made/complete" ] && exit 0
here=$(cd "$(dirname "$0")" && pwd)
mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$made/beam"
rm -f "$made"/beam/flink-*.jar # of another patch release; flink-dist has them all
pip download --quiet --disable-pip-version-check --no-deps apache-flink-libraries==1.19.3 -d "$made/pip"
mkdir -p "$made/flink"
tar -xzf "$made"/pip/apache*flink*libraries-1.19.3.tar.gz -C "$made/flink" --strip-components 3 --wildcards '*/deps/lib/flink-dist-*.jar' '*/deps/lib/log4j-*.jar'
rm -rf "$made/pip"
touch "$made/complete"
