# CI runs `make check manifests memory node python e2e`. Checks report faults and never repair them.

GO ?= go
FUZZTIME ?= 30s

# Releases are built without cgo, too. With it, an unused zstd takes a seventh of the first build, and a C linker links
# each test of the engine.
export CGO_ENABLED ?= 0

.PHONY: build test e2e check markers format tidy vet staticcheck race fuzz metamorphic composition bench small laws constants wire outages nights scaleout scaling model crash hostile memory real links schema errors corpus size sample typos notices notices-check vuln node python java values lake dumps dist dist-check cross manifests sources sources-cost cutover site pictures pods flink machines suites mutants cold flaky nightly rename

build:
	$(GO) build -o tsimport ./cmd/tsimport

# Go stops a package's tests after 10 minutes by default. Those of pipeline may take longer on a slow machine.
test:
	$(GO) test -timeout 40m ./...

# Runs the tests of the built binary that are not run by default, except those of make memory.
e2e:
	$(GO) test -tags e2e -timeout 60m ./e2e -skip "StaysWithinItsMemory|StayWithinTheirMemory|^($$(grep -L '^//go:build e2e' e2e/*_test.go | xargs sed -n 's/^func \(Test[A-Za-z0-9]*\)(.*/\1/p' | paste -sd '|'))$$"
	$(GO) test -tags e2e ./cmd/tsbench -skip PerRow -timeout 20m
	$(GO) test ./cmd/tsimport/commands -run '^TestEveryEndingIsReportedAndCounted$$' -every-form -count 1

# make rename PATH=host/name changes the module path. Commands are found by the PATH of make's own environment.
SEARCH = $(or $(shell /usr/bin/tr '\0' '\n' 2>/dev/null </proc/$$PPID/environ | /usr/bin/sed -n 's/^PATH=//p'),$(shell echo "$$PATH"))

rename:
	@PATH='$(SEARCH)' exec /bin/sh packaging/rename.sh '$(PATH)'

check: markers format tidy vet staticcheck test race

# Finds conflict markers left by a merge. A line of equals signs alone may be a heading.
markers:
	@found=$$(git grep --no-index --exclude-standard -nIE '^(<<<<<<<|>>>>>>>|[|]{7})( |$$)'); code=$$?; \
		if [ $$code -gt 1 ]; then exit $$code; fi; \
		if [ -n "$$found" ]; then echo "left by a merge:"; echo "$$found"; exit 1; fi

format:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not gofmt-ed: $$unformatted"; exit 1; fi

tidy:
	$(GO) mod tidy -diff

# notices writes the licences of all code in the binary; notices-check fails if they do not match the build.
notices:
	$(GO) test ./internal/notices -update -count 1

notices-check:
	$(GO) test ./internal/notices -count 1

# Finds known vulnerabilities in code that the binary calls. Not part of check, because it needs the Go vulnerability
# database. GOVULNDB names a copy, as https://… or file:///….
GOVULNCHECK ?= golang.org/x/vuln/cmd/govulncheck@v1.1.4
GOVULNDB ?= https://vuln.go.dev

vuln:
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && GOBIN=$$tools GOFLAGS= $(GO) install $(GOVULNCHECK) || { echo "NOT CHECKED: govulncheck cannot be installed"; exit 1; }; \
		$$tools/govulncheck -db $(GOVULNDB) ./... && exit 0; code=$$?; \
		if [ $$code -ne 3 ]; then echo "NOT CHECKED: govulncheck failed, perhaps because the database $(GOVULNDB) is unreachable; set GOVULNDB to a copy"; fi; exit $$code

vet:
	$(GO) vet -tags e2e ./...

staticcheck:
	$(GO) tool staticcheck -tags e2e ./...

# The rooms in which code other than tests starts goroutines.
GOROUTINES = $$(git grep --no-index --exclude-standard -lE '^[[:space:]]*go [[:alnum:]_.]+[([]|\.Go\(' -- '*.go' ':!*_test.go' ':!packaging/k8s' ':!*/testdata/*' | sed 's|[^/]*$$||; s|^|./|' | sort -u)

# -short makes random tests draw fewer seeds, because the race detector is slow in virtual time. Needs a C compiler.
race:
	CGO_ENABLED=1 $(GO) test -race -short -timeout 40m $(GOROUTINES)

# Tests the SDK for Node against tsimport serve. Needs node 18 or newer and npm's registry.
node:
	cd e2e/node && npm ci --ignore-scripts --no-audit --no-fund
	TSIMPORT_TEST_SDK=node $(GO) test -tags e2e ./e2e -run '^TestNodeSDK' -count 1

# Does the same for Python. Needs python3 with venv and pip.
python:
	python3 -m venv e2e/python/venv
	e2e/python/venv/bin/pip install --quiet --disable-pip-version-check -r e2e/python/requirements.txt
	TSIMPORT_TEST_SDK=python $(GO) test -tags e2e ./e2e -run '^TestPythonSDK' -count 1

# Does the same for Java. Not part of check. Needs a JDK and Maven.
java:
	cd e2e/java && mvn -q -B package dependency:copy-dependencies -DoutputDirectory=target/lib
	TSIMPORT_TEST_SDK=java $(GO) test -tags e2e ./e2e -run '^TestJavaSDK' -count 1

# Runs the test suites of the SDKs for Go and Node. Needs the module proxy, node and npm's registry.
suites: build
	bash e2e/suites/run.sh ./tsimport

# Makes dumps with PostgreSQL, MariaDB and SQLite (installed if missing, as root on Debian), loads them and compares
# each cell with the database's. The dumps are kept in e2e/dumps/made for the default tests.
dumps:
	bash e2e/dumps/make.sh
	$(GO) test -tags e2e ./e2e -run '^TestDumps' -count 1 -v

# Compares every cell of a collection of files, as loaded, with independent readers (Python's csv and json, pyarrow).
# VALUES names a folder with a manifest.json. The default is the whole collection if it is next to the tree, or else the
# part in the tree. WORD selects files by path. Needs python3 with venv and pip.
VALUES ?= $(or $(TSIMPORT_SHARED_DATA),$(wildcard ../shared/data),reader/testdata)

values: build
	python3 -m venv e2e/values/venv
	e2e/values/venv/bin/pip install --quiet --disable-pip-version-check -r e2e/values/requirements.txt
	e2e/values/venv/bin/python e2e/values/values.py ./tsimport $(VALUES) $(WORD)

# Exports ROWS rows to each of several folders, is killed KILLS times per folder, and reads them with DuckDB and
# pyarrow. Needs python3 with venv and pip.
lake: build
	python3 -m venv e2e/values/venv
	e2e/values/venv/bin/pip install --quiet --disable-pip-version-check -r e2e/values/requirements.txt
	e2e/values/venv/bin/python e2e/values/lake.py ./tsimport $(or $(ROWS),100000) $(or $(KILLS),5)

# Makes the release in dist: binaries for six platforms with SBOMs, deb and rpm packages, the image and checksums.
# PLATFORMS="linux/amd64" selects some. Needs git and the module proxy, for the tools.
dist:
	GO=$(GO) bash packaging/dist.sh

# Checks that two releases for Linux of the commit, built in different paths, are equal, and runs binary, deb, rpm and
# image in an empty root file system. Needs root, jq, dpkg-deb and bsdtar (Debian's package libarchive-tools).
dist-check:
	GO=$(GO) bash packaging/reproducible.sh
	GO=$(GO) bash packaging/emptyroot.sh

# Builds the site of docs/ in dist/site/html, in English and Chinese. The program prints the page of commands and flags.
# Needs python3 with venv and pip.
site: build
	python3 -m venv dist/site/venv
	dist/site/venv/bin/pip install --quiet --disable-pip-version-check -r packaging/site/requirements.txt
	dist/site/venv/bin/python packaging/site/pages.py . ./tsimport dist/site/pages
	cp packaging/site/mkdocs.yml dist/site/
	NO_MKDOCS_2_WARNING=1 dist/site/venv/bin/mkdocs build --strict --quiet -f dist/site/mkdocs.yml

# Makes the screenshots in docs/pictures with a headless browser (Debian's package chromium).
pictures: build
	bash packaging/pictures.sh ./tsimport docs/pictures

# Runs manifests of loads as Kubernetes would, with processes as pods. Some of them are killed.
pods:
	$(GO) test -tags e2e ./e2e -run '^TestPlannedLoadRunsAsIndexedJob' -k8s-rounds 5 -k8s-kills 1 -count 1 -v -timeout 60m

# Vets, and so compiles, the code and the tests for other systems.
CROSS ?= windows/amd64 darwin/arm64

cross:
	@set -e; for p in $(CROSS); do echo "go vet for $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) vet -tags e2e ./...; done

# Tests the separate modules, which decode the files for Kubernetes and cron with Kubernetes' API types, parse the
# Dockerfile with BuildKit's parser, and make the image of dist from it.
manifests:
	cd packaging/k8s && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test ./... -count 1
	cd packaging/oci && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test ./... -count 1

# Loads FLINK_ROWS rows on a real Flink on this machine, with the commands in docs/flink.md; some loads are killed or
# cancelled. Not part of check. Needs a JDK, Maven and pip. Flink's jars come from PyPI (230 MB).
FLINK_ROWS ?= 100000
FLINK = packaging/flink/target/flink-1.19.3

flink: $(FLINK)
	$(GO) test -tags e2e ./e2e -run '^TestLoadsOnFlink' -flink "$$(pwd)/$(FLINK)" -flink-rows $(FLINK_ROWS) -count 1 -v -timeout 60m

$(FLINK):
	mkdir -p $(@D)
	pip download --quiet --disable-pip-version-check --no-deps apache-flink-libraries==1.19.3 -d $(@D)/pip
	mkdir -p $(@D)/made && tar -xzf $(@D)/pip/apache*flink*libraries-1.19.3.tar.gz -C $(@D)/made --strip-components 2 --wildcards '*/deps/lib/*'
	rm -r $(@D)/pip && mv $(@D)/made $@

# Measures a first build: the download, CPU and seconds to the first loaded row, binary size, and CPU by dependency.
cold:
	@GO=$(GO) bash packaging/cold.sh

# Finds flaky tests: runs all tests COUNT times (3) and those of rooms with goroutines MORE times (20) on a busy
# machine. Takes an hour or two.
flaky:
	@GO=$(GO) bash packaging/flaky.sh $(GOROUTINES)

# Runs the sweeps below in turn, each for a share of NIGHT, such as 8h or 90m, and prints a table of their findings.
NIGHT ?= 8h

nightly:
	@NIGHT=$(NIGHT) bash packaging/nightly.sh

# The targets below take longer. They are not part of check.

fuzz:
	$(GO) test ./reader/parquet -run TestDamagedFilesNeither -every-damage -count 1
	$(GO) test ./reader/compress -run "TestDamagedBlocks|TestFlippedBits" -every-damage -count 1
	$(GO) test ./reader/charset -run TestDecodingAgrees -sequences 2000000 -count 1
	$(GO) test ./internal/keyexpr -run TestEqualResultsHaveEqualTellsColumns -programs 5000 -count 1
	@code=0; for p in jobs/job jobs/job/datax pipeline/checkpoint internal/lifecycle internal/keyexpr internal/tablestore/plainbuffer reader/csv reader/jsonl reader/pgdump reader/mysqldump reader/parquet reader/arrow reader/compress reader/charset engine/wire engine/filter engine/server writer; do \
		for f in $$($(GO) test ./$$p -list Fuzz | grep Fuzz); do \
			$(GO) test ./$$p -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x || code=1; done; done; exit $$code

# Runs random loads, 300 of each mode: each must leave the table that its records imply.
metamorphic:
	$(GO) test ./pipeline -run '^TestAnyLoad' -drawn-seeds 300 -timeout 120m
	$(GO) test ./partitioner -run 'DespiteFailures$$' -cutter-seeds 5000 -timeout 60m
	$(GO) test ./pipeline -run 'TestLiveSourceRows|TestPartsAreRead' -live-seeds 200 -timeout 60m
	$(GO) test ./pipeline/intake -run TestScheduleKeepsRecords -switch-seeds 200 -timeout 60m
	$(GO) test ./reader -run TestFaultyRecord -dialect-files 3000 -timeout 60m

# Loads pairs of inputs that differ in formats, units, encodings, columns, types and more, together and in turn. Each
# load must leave the table that its records imply, or be refused, or name the records that it rejects.
composition:
	$(GO) test ./cmd/tsimport/commands -run '^TestTwoInputs' -composition-seeds 400 -count 1 -v -timeout 60m

# Runs concurrent histories of writes, reads and transactions: for each, some order must exist in which a model gives
# the engine's answers.
model:
	CGO_ENABLED=1 $(GO) test -race ./engine/model -run 'TransactionHistories' -transaction-histories 500 -timeout 30m
	$(GO) test ./engine/model -run 'TransactionHistories' -transaction-histories 10000 -timeout 60m

# Tests databases as sources, with real servers from Debian on loopback.
sources:
	TSIMPORT_SOURCES=1 $(GO) test . -run TestLibraryLoadsDatabaseServerTables -count 1
	TSIMPORT_SOURCES=1 $(GO) test ./reader/postgres/... ./reader/mysql/... ./reader/pgdump ./reader/mysqldump -count 1
	TSIMPORT_SOURCES=1 $(GO) test -tags e2e ./e2e -run 'TestDatabases|RoundTrip' -count 1 -timeout 90m

# Moves a table while eight sessions write to it: a load, changes from a real Debezium engine, and a comparison. ROWS is
# the initial number of rows. Needs PostgreSQL, MariaDB, a JDK and Maven.
cutover:
	cd e2e/debezium && mvn -q -B package dependency:copy-dependencies -DoutputDirectory=target/lib
	TSIMPORT_SOURCES=1 TSIMPORT_CUTOVER=$(or $(ROWS),200000) $(GO) test -tags e2e ./e2e -run '^TestTableMoves' -v -count 1 -timeout 60m

# Compares the cost of a row loaded from a database with that of reading it by the driver alone.
sources-cost:
	TSIMPORT_SOURCES=1 $(GO) test ./reader/postgres ./reader/mysql -run '^$$' -bench Beside -benchtime 5x

# Tests kill -9, power losses and damaged files.
crash:
	$(GO) test -tags e2e ./e2e -run '^TestKilledServers' -kills 100 -timeout 30m
	$(GO) test -tags e2e ./e2e -run '^TestKilledCommands' -kills 5 -rounds 100 -timeout 120m
	$(GO) test ./engine/store -run 'Power|Torn|Index|RemainingRows' -power-rounds 300 -torn-rounds 200 -index-rounds 400 -timeout 30m
	$(GO) test ./pipeline -run '^TestAnyLoad/loads/.*power' -drawn-seeds 200 -timeout 60m
	$(GO) test ./pipeline -run '^TestAnyLoad/loads/.*own_store' -drawn-seeds 200 -timeout 60m
	$(GO) test ./pipeline -run '^TestAnyLoad/loads/.*checkpoint' -drawn-seeds 200 -timeout 60m
	$(GO) test -tags e2e ./e2e -run TestSIGTERM -sigterm-limit 5s -count 1
	$(GO) test -tags e2e ./e2e -run TestKilledStoppedAndStarved -troubled-rounds 100 -parallel 8 -count 1 -timeout 60m
	$(GO) test -tags e2e ./e2e -run TestResumeCost -resume-rows 10000 -count 1 -timeout 30m

# Tests loads through a network that cuts, delays, changes and repeats traffic.
hostile:
	$(GO) test -tags e2e ./e2e -run TestHostileNetwork -rounds 40 -timeout 60m

# Makes docs/job.schema.json from the flags. A test fails if it is not up to date.
schema:
	$(GO) test ./cmd/tsimport/commands -run '^TestJobFileSchema' -count 1 -update

# Tests every one-edit typo of every command and flag.
typos:
	$(GO) test ./cmd/tsimport/commands -run '^TestEveryTypo' -every-typo -count 1 -v

# Makes the pages of error codes and of endings from the code.
errors:
	$(GO) test ./internal/errorcodes -run '^TestErrorsPage' -count 1 -update
	$(GO) test ./cmd/tsimport/commands -run '^TestPageOfEndingsIsCurrent' -count 1 -update-endings

# Prints the size of the tree by room and command. BASE=COMMIT adds the difference to a commit.
size:
	@GO=$(GO) bash packaging/size.sh $(BASE)

# Draws sixty pieces of prose by SEED, for an editor to review.
sample:
	@SEED=$(SEED) bash packaging/sample.sh

# Adds files of each kind that a process leaves on disk to testdata if the kind is missing there. Existing files stand
# for the version that made them.
corpus:
	$(GO) test ./e2e/compatibility -count 1 -update

# Checks assumptions about the real service on the instance that TABLESTORE_TEST_… names
# (docs/internals/real-service.md).
real:
	@for v in ENDPOINT INSTANCE ACCESS_KEY_ID ACCESS_KEY_SECRET; do \
		if [ -z "$$(printenv TABLESTORE_TEST_$$v)" ]; then echo "set TABLESTORE_TEST_$$v (docs/internals/real-service.md)"; exit 2; fi; done
	$(GO) test ./engine/contract -run TestAssumptions -count 1 -v -timeout 30m
	$(GO) test -tags e2e ./e2e -run TestSmallLoad -count 1 -v -timeout 30m
	$(GO) test ./engine/contract -skip TestAssumptions -parallel 8 -count 1 -timeout 60m

# Measures, in virtual time, the share of slow, long and lossy links that loads use.
links:
	$(GO) test ./pipeline -run '^TestLinksInVirtualTime$$' -link-table -count 1 -v -timeout 30m

# Simulates 60 nights of a job of six tables with 200 seeds, and a year of nights. Files are late, changed,
# half-written, renamed, repeated and wrong; pods overlap and die; services fail.
nights:
	$(GO) test ./cmd/tsimport/commands -run '^TestNightlyJobSurvivesFaults$$' -count 1 -timeout 300m -v -night-seeds 200 -nights 60 -night-seed $(SEED)
	$(GO) test ./cmd/tsimport/commands -run '^TestNightlyJobSurvivesFaults$$' -count 1 -timeout 60m -v -nights 365 -night-seed $(SEED)

# Simulates 5,000 random jobs, each one load by many processes, which may die between any two steps or continue after
# their leases have ended. Takes half an hour.
scaleout:
	$(GO) test ./jobs/scaleout -run 'TestAnyOrderOfTasks|AnyStepIs' -count 1 -timeout 120m -scaleout-seeds 5000 -scaleout-deaths

# Compares a load by one process with the same load by 1, 2, 4 and 8 processes with a job directory: seconds, CPU per
# row, requests and throttled rows. ROWS, UNITS, LATENCY and CONCURRENCY change the load. Takes four minutes.
scaling:
	@GO=$(GO) bash packaging/scaling.sh

# Measures in virtual time how much more machines help: loads into 64 to 512 partitions by 1 to 32 processes, each on
# its own machine. Takes ten minutes.
machines:
	$(GO) test ./jobs/scaleout -run '^TestMoreMachinesLoadFaster$$' -scaleout-machines -count 1 -v -timeout 60m

# Measures, in virtual time, by how much longer than an outage of the service a load is delayed, and counts missing and
# duplicate rows: five kinds of outages of 5, 15 and 60 s, at the first write or 3 s later, with 1 and 32 partitions,
# with keys from the rows or from the service.
outages:
	$(GO) test ./pipeline -run '^TestOutagesInVirtualTime$$' -outage-table -count 1 -v -timeout 60m

# Measures the memory of loads and other commands for every hostile file, and the allocations of commands per row.
memory:
	$(GO) test -tags e2e ./e2e -run 'StaysWithinItsMemory|StayWithinTheirMemory' -every-memory-file -count 1 -v -timeout 40m
	$(GO) test -tags e2e ./cmd/tsbench -run PerRow -every-memory-file -count 1 -v -timeout 40m

# Finds changes that the tests would not notice: draws N small changes in each room of a load by SEED, and lists those
# for which no test fails. ROOM names rooms as for go list. MUTANT, a printed identifier, selects one mutant of a room.
# Takes two minutes for each minute of the tests of the room and its importers. BUDGET=40s limits the time of tests per
# mutant; quick tests run first, and survivors are listed with the number of tests not run.
SEED ?= 1
N ?= 30

mutants:
	$(GO) test ./internal/mutants -run '^TestMutants$$' -mutants $(N) -seed '$(SEED)' -room '$(ROOM)' -mutant '$(MUTANT)' -budget $(or $(BUDGET),1h) -count 1 -v -timeout 24h

bench:
	$(GO) test ./... -run '^$$' -bench . -benchmem

# Measures time and CPU of loads with few rows: one row, and a job of 200 tables.
small:
	$(GO) test -tags e2e ./e2e -run '^$$' -bench SmallLoads -benchtime $(or $(TIMES),5)x -timeout 20m

# Simulates the rate controller of a lane with 86 limiters and networks, in virtual time. WORD selects some of them.
laws:
	$(GO) test ./ratelimit -run '^TestLaws$$|^TestLanesOfLimitedTable' -v -law-seeds 20 -law-cell '$(WORD)' -timeout 60m

# Finds the tests that fail when a constant of the rate controller is halved or doubled. WORD selects constants. Takes
# hours.
constants:
	$(GO) test ./ratelimit -run '^TestConstantsHaveTests$$' -v -constants '$(or $(WORD),.)' -timeout 4h

# Compares the rates of real loads into an engine, with each limiter, with the simulated rates: 20 loads of 20 s or
# more. WORD selects limiters.
wire:
	$(GO) build -o tsbench ./cmd/tsbench
	$(GO) test ./ratelimit -run '^TestWireReachesSimulatedRates$$' -v -wire-binary $(CURDIR)/tsbench -wire-cell '$(WORD)' -timeout 60m

# Measures an engine as its table grows: loads BIG student cards in ten parts, with single-row reads after each, scans
# the table, and reports bytes on disk. With 20,000,000 it takes about 5 GB under TMPDIR. Linux only.
BIG ?= 20000000

big:
	$(GO) test -tags e2e ./e2e -run '^TestBigTable$$' -big-rows $(BIG) -big-reads 5000 -count 1 -v -timeout 60m

# Compares the cost of loads by the official SDKs for Java, Node and Python with tsimport's (bench/peers), for PEER_ROWS
# rows. Needs a JDK with Maven, node with npm, python3 with venv, and their registries.
PEER_ROWS ?= 500000

peers:
	$(GO) build -o tsbench ./cmd/tsbench
	bash bench/peers/peers.sh ./tsbench $(PEER_ROWS)
