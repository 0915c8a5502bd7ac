# What CI runs is `make check manifests memory node python e2e`; checks fail, they never repair.

GO ?= go
FUZZTIME ?= 30s

# As what is released. With C, a zstd that nothing needs takes a seventh of the first build, and a linker of C links each test of the engine.
export CGO_ENABLED ?= 0

.PHONY: build test e2e check markers format tidy vet staticcheck race fuzz metamorphic composition bench small laws constants wire outages nights scaleout scaling model crash hostile memory real links schema errors corpus size sample typos notices notices-check vuln node python java values lake dumps dist dist-check cross manifests sources sources-cost cutover site pictures pods flink machines suites mutants cold flaky nightly rename

build:
	$(GO) build -o tsimport ./cmd/tsimport

# Go ends a package's tests after 10 minutes, which those of pipeline may take on a slow machine.
test:
	$(GO) test -timeout 40m ./...

# The tests of the built binary that the default ones leave out, except those of make memory.

e2e:
	$(GO) test -tags e2e -timeout 60m ./e2e -skip "StaysWithinItsMemory|StayWithinTheirMemory|^($$(grep -L '^//go:build e2e' e2e/*_test.go | xargs sed -n 's/^func \(Test[A-Za-z0-9]*\)(.*/\1/p' | paste -sd '|'))$$"
	$(GO) test -tags e2e ./cmd/tsbench -skip ForARow -timeout 20m
	$(GO) test ./cmd/tsimport/commands -run '^TestEveryEndingIsReportedAndCounted$$' -every-form -count 1

# make rename PATH=host/name gives the module another path. Commands are found where make's own environment says, not in that path.
SEARCH = $(or $(shell /usr/bin/tr '\0' '\n' 2>/dev/null </proc/$$PPID/environ | /usr/bin/sed -n 's/^PATH=//p'),$(shell echo "$$PATH"))

rename:
	@PATH='$(SEARCH)' exec /bin/sh packaging/rename.sh '$(PATH)'

check: markers format tidy vet staticcheck test race

# Lines that a merge left behind. A row of equals signs alone may be a heading.
markers:
	@found=$$(git grep --no-index --exclude-standard -nIE '^(<<<<<<<|>>>>>>>|[|]{7})( |$$)'); code=$$?; \
		if [ $$code -gt 1 ]; then exit $$code; fi; \
		if [ -n "$$found" ]; then echo "left by a merge:"; echo "$$found"; exit 1; fi

format:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not gofmt-ed: $$unformatted"; exit 1; fi

tidy:
	$(GO) mod tidy -diff

# The licences of what the binary contains. notices writes them; notices-check fails if they are not those of what is built.
notices:
	$(GO) test ./internal/notices -update -count 1

notices-check:
	$(GO) test ./internal/notices -count 1

# Known vulnerabilities in what the binary calls. Not part of check: it needs the Go vulnerability database; GOVULNDB names a copy,
# as https://… or file:///….
GOVULNCHECK ?= golang.org/x/vuln/cmd/govulncheck@v1.1.4
GOVULNDB ?= https://vuln.go.dev

vuln:
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && GOBIN=$$tools GOFLAGS= $(GO) install $(GOVULNCHECK) || { echo "NOT CHECKED: govulncheck cannot be installed"; exit 1; }; \
		$$tools/govulncheck -db $(GOVULNDB) ./... && exit 0; code=$$?; \
		if [ $$code -ne 3 ]; then echo "NOT CHECKED: govulncheck failed, perhaps because the database $(GOVULNDB) cannot be had; GOVULNDB names a copy"; fi; exit $$code

vet:
	$(GO) vet -tags e2e ./...

staticcheck:
	$(GO) tool staticcheck -tags e2e ./...

# The rooms whose code starts goroutines, tests apart.
GOROUTINES = $$(git grep --no-index --exclude-standard -lE '^[[:space:]]*go [[:alnum:]_.]+[([]|\.Go\(' -- '*.go' ':!*_test.go' ':!packaging/k8s' ':!*/testdata/*' | sed 's|[^/]*$$||; s|^|./|' | sort -u)

# -short: the detector is slow in virtual time, so random tests draw fewer seeds. It needs a C compiler.
race:
	CGO_ENABLED=1 $(GO) test -race -short -timeout 40m $(GOROUTINES)

# The SDK for Node against tsimport serve. Needs node 18 or newer, and npm's registry to install it from.
node:
	cd e2e/node && npm ci --ignore-scripts --no-audit --no-fund
	TSIMPORT_TEST_SDK=node $(GO) test -tags e2e ./e2e -run '^TestNodeSDK' -count 1

# The same with the SDK for Python. Needs python3 with venv and pip.
python:
	python3 -m venv e2e/python/venv
	e2e/python/venv/bin/pip install --quiet --disable-pip-version-check -r e2e/python/requirements.txt
	TSIMPORT_TEST_SDK=python $(GO) test -tags e2e ./e2e -run '^TestPythonSDK' -count 1

# The same with the SDK for Java, not part of check. Needs a JDK and Maven.
java:
	cd e2e/java && mvn -q -B package dependency:copy-dependencies -DoutputDirectory=target/lib
	TSIMPORT_TEST_SDK=java $(GO) test -tags e2e ./e2e -run '^TestJavaSDK' -count 1

# The suites that the SDKs for Go and Node bring with them. Needs the module proxy, node and npm's registry.
suites: build
	bash e2e/suites/run.sh ./tsimport

# Dumps by the databases themselves (PostgreSQL, MariaDB, SQLite; installed where missing, as root of a Debian machine), loaded
# and compared cell by cell with what the databases say that they hold. The results stay in e2e/dumps/made for the default tests.
dumps:
	bash e2e/dumps/make.sh
	$(GO) test -tags e2e ./e2e -run '^TestDumps' -count 1 -v

# Every cell of a collection of files, as a load delivers it, against independent readers (Python's csv and json, pyarrow):
# VALUES names a folder with a manifest.json; by default the whole collection, where it stands beside the tree, or the part in the tree. Needs python3
# with venv and pip. WORD picks files by their paths.
VALUES ?= $(or $(TSIMPORT_SHARED_DATA),$(wildcard ../shared/data),reader/testdata)

values: build
	python3 -m venv e2e/values/venv
	e2e/values/venv/bin/pip install --quiet --disable-pip-version-check -r e2e/values/requirements.txt
	e2e/values/venv/bin/python e2e/values/values.py ./tsimport $(VALUES) $(WORD)

# Exports of ROWS rows to folders, killed KILLS times each, as DuckDB and pyarrow read them. Needs python3 with venv and pip.
lake: build
	python3 -m venv e2e/values/venv
	e2e/values/venv/bin/pip install --quiet --disable-pip-version-check -r e2e/values/requirements.txt
	e2e/values/venv/bin/python e2e/values/lake.py ./tsimport $(or $(ROWS),100000) $(or $(KILLS),5)

# What is released, in dist: binaries for six platforms with SBOMs, deb and rpm, the image, sums. PLATFORMS="linux/amd64" makes some. Needs git and
# the module proxy, for the tools.
dist:
	GO=$(GO) bash packaging/dist.sh

# Two releases of the commit for Linux, from two paths, are equal; binary, deb, rpm and image each run in an empty root file system. Needs
# root, jq, dpkg-deb and bsdtar (Debian's package libarchive-tools).
dist-check:
	GO=$(GO) bash packaging/reproducible.sh
	GO=$(GO) bash packaging/emptyroot.sh

# The site of docs/ in dist/site/html, in English and Chinese, with the flags and errors as the program prints them. Needs python3 with
# venv and pip.
site: build
	python3 -m venv dist/site/venv
	dist/site/venv/bin/pip install --quiet --disable-pip-version-check -r packaging/site/requirements.txt
	dist/site/venv/bin/python packaging/site/pages.py . ./tsimport dist/site/pages
	cp packaging/site/mkdocs.yml dist/site/
	NO_MKDOCS_2_WARNING=1 dist/site/venv/bin/mkdocs build --strict --quiet -f dist/site/mkdocs.yml

# The screenshots in docs/pictures, with a headless browser (Debian's package chromium).
pictures: build
	bash packaging/pictures.sh ./tsimport docs/pictures

# Loads whose manifest is run as Kubernetes would run them, with processes for pods: some are killed, as by their node or by themselves.
pods:
	$(GO) test -tags e2e ./e2e -run '^TestAPlannedLoadRunsAsAnIndexedJob' -k8s-rounds 5 -k8s-kills 1 -count 1 -v -timeout 60m

# Vets the code and the tests for the other systems, which compiles both.
CROSS ?= windows/amd64 darwin/arm64

cross:
	@set -e; for p in $(CROSS); do echo "go vet for $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) vet -tags e2e ./...; done

# The modules of their own: what there is for Kubernetes and cron, decoded by the types of its API, and the Dockerfile, parsed as BuildKit
# does; the image that dist makes of the Dockerfile.
manifests:
	cd packaging/k8s && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test ./... -count 1
	cd packaging/oci && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test ./... -count 1

# Loads on a real Flink of this machine, by the commands of docs/flink.md, of which some are killed or cancelled: FLINK_ROWS each. Not part of
# check. Needs a JDK, Maven and pip; Flink itself comes from PyPI (230 MB), whose package has its jars without its scripts.
FLINK_ROWS ?= 100000
FLINK = packaging/flink/target/flink-1.19.3

flink: $(FLINK)
	$(GO) test -tags e2e ./e2e -run '^TestLoadsOnFlink' -flink "$$(pwd)/$(FLINK)" -flink-rows $(FLINK_ROWS) -count 1 -v -timeout 60m

$(FLINK):
	mkdir -p $(@D)
	pip download --quiet --disable-pip-version-check --no-deps apache-flink-libraries==1.19.3 -d $(@D)/pip
	mkdir -p $(@D)/made && tar -xzf $(@D)/pip/apache*flink*libraries-1.19.3.tar.gz -C $(@D)/made --strip-components 2 --wildcards '*/deps/lib/*'
	rm -r $(@D)/pip && mv $(@D)/made $@

# What a first build costs: the download, CPU and seconds to the first loaded row, the size of the binary, CPU by dependency.
cold:
	@GO=$(GO) bash packaging/cold.sh

# What fails now and then: all tests 3 times and those of the rooms with goroutines 20 times, beside other load; COUNT and MORE say other
# numbers. An hour or two.
flaky:
	@GO=$(GO) bash packaging/flaky.sh $(GOROUTINES)

# The sweeps below, one after the other, each for its share of NIGHT, such as 8h or 90m; what they found in a table.
NIGHT ?= 8h

nightly:
	@NIGHT=$(NIGHT) bash packaging/nightly.sh

# Longer runs, not part of check.

fuzz:
	$(GO) test ./reader/parquet -run TestDamagedBytesNeither -every-damage -count 1
	$(GO) test ./reader/compress -run "TestBlocksCutOrDamaged|TestAFlippedBit" -every-damage -count 1
	$(GO) test ./reader/charset -run TestDecodingAgrees -sequences 2000000 -count 1
	$(GO) test ./internal/keyexpr -run TestTellsMeansDifferentValues -programs 5000 -count 1
	@code=0; for p in jobs/job jobs/job/datax pipeline/checkpoint internal/lifecycle internal/keyexpr internal/tablestore/plainbuffer reader/csv reader/jsonl reader/pgdump reader/mysqldump reader/parquet reader/arrow reader/compress reader/charset engine/wire engine/filter engine/server writer; do \
		for f in $$($(GO) test ./$$p -list Fuzz | grep Fuzz); do \
			$(GO) test ./$$p -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x || code=1; done; done; exit $$code

# Loads that are drawn, 300 of each mode: each must leave the table that its records mean.
metamorphic:
	$(GO) test ./pipeline -run '^TestAnyLoad' -drawn-seeds 300 -timeout 120m
	$(GO) test ./partitioner -run 'DespiteFailures$$' -cutter-seeds 5000 -timeout 60m
	$(GO) test ./pipeline -run 'TestLiveSourceRows|TestPartsAreRead' -live-seeds 200 -timeout 60m
	$(GO) test ./pipeline/intake -run TestScheduleKeepsRecords -switch-seeds 200 -timeout 60m
	$(GO) test ./reader -run TestFaultyRecord -dialect-files 3000 -timeout 60m

# Pairs of inputs that disagree in formats, units, encodings, columns, types and more, loaded together and one after the other: each load
# leaves the table that its records mean, or is refused, or rejects records by name.
composition:
	$(GO) test ./cmd/tsimport/commands -run '^TestTwoInputs' -composition-seeds 400 -count 1 -v -timeout 60m

# Concurrent histories of writes, reads and transactions: each must have an order in which a model answers like the engine.
model:
	CGO_ENABLED=1 $(GO) test -race ./engine/model -run 'TransactionHistories' -transaction-histories 500 -timeout 30m
	$(GO) test ./engine/model -run 'TransactionHistories' -transaction-histories 10000 -timeout 60m

# Databases as sources, against real servers of Debian on loopback.
sources:
	TSIMPORT_SOURCES=1 $(GO) test . -run TestLibraryLoadsDatabaseServerTables -count 1
	TSIMPORT_SOURCES=1 $(GO) test ./reader/postgres/... ./reader/mysql/... ./reader/pgdump ./reader/mysqldump -count 1
	TSIMPORT_SOURCES=1 $(GO) test -tags e2e ./e2e -run 'TestDatabases|RoundTrip' -count 1 -timeout 90m

# A table moves while eight sessions write to it: load, changes of a real Debezium engine, comparison. ROWS rows at first. Needs PostgreSQL,
# MariaDB, a JDK and Maven.
cutover:
	cd e2e/debezium && mvn -q -B package dependency:copy-dependencies -DoutputDirectory=target/lib
	TSIMPORT_SOURCES=1 TSIMPORT_CUTOVER=$(or $(ROWS),200000) $(GO) test -tags e2e ./e2e -run '^TestATableMoves' -v -count 1 -timeout 60m

# What a row costs beside reading it by the driver alone.
sources-cost:
	TSIMPORT_SOURCES=1 $(GO) test ./reader/postgres ./reader/mysql -run '^$$' -bench Beside -benchtime 5x

# kill -9, losses of power, damaged files.
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

# Loads through a network that cuts, delays, changes and repeats.
hostile:
	$(GO) test -tags e2e ./e2e -run TestAHostileNetwork -rounds 40 -timeout 60m

# docs/job.schema.json from the flags; a test fails if it is not current.
schema:
	$(GO) test ./cmd/tsimport/commands -run '^TestJobFileSchema' -count 1 -update

# Every typo of one edit of every command and flag.
typos:
	$(GO) test ./cmd/tsimport/commands -run '^TestEveryTypo' -every-typo -count 1 -v

# The page of error codes, made from their catalogue.
errors:
	$(GO) test ./internal/errorcodes -run '^TestThePageOfErrors' -count 1 -update
	$(GO) test ./cmd/tsimport/commands -run '^TestPageOfEndingsIsCurrent' -count 1 -update-endings

# How large the tree is, by rooms and commands; with BASE=COMMIT, beside the difference to a commit.
size:
	@GO=$(GO) bash packaging/size.sh $(BASE)

# Sixty places at which a reader meets words, drawn with SEED, for an editor.
sample:
	@SEED=$(SEED) bash packaging/sample.sh

# What a process leaves on disk, written by the present program where testdata has no such kind: what is there stands for the version that has
# made it.
corpus:
	$(GO) test ./e2e/compatibility -count 1 -update

# What is assumed of the real service, asked of the instance that TABLESTORE_TEST_… names (docs/internals/real-service.md).
real:
	@for v in ENDPOINT INSTANCE ACCESS_KEY_ID ACCESS_KEY_SECRET; do \
		if [ -z "$$(printenv TABLESTORE_TEST_$$v)" ]; then echo "set TABLESTORE_TEST_$$v (docs/internals/real-service.md)"; exit 2; fi; done
	$(GO) test ./engine/contract -run TestAssumptions -count 1 -v -timeout 30m
	$(GO) test -tags e2e ./e2e -run TestASmallLoad -count 1 -v -timeout 30m
	$(GO) test ./engine/contract -skip TestAssumptions -parallel 8 -count 1 -timeout 60m

# What share of slow, long and bad links loads fill, in virtual time.
links:
	$(GO) test ./pipeline -run '^TestLinksInVirtualTime$$' -link-table -count 1 -v -timeout 30m

# 200 seeds of 60 simulated nights of a job of six tables, and a year of them: files late, changed, half-written, renamed, repeated and wrong, pods
# that overlap and die, services that fail.
nights:
	$(GO) test ./cmd/tsimport/commands -run '^TestNightlyJobSurvivesFaults$$' -count 1 -timeout 300m -v -night-seeds 200 -nights 60 -night-seed $(SEED)
	$(GO) test ./cmd/tsimport/commands -run '^TestNightlyJobSurvivesFaults$$' -count 1 -timeout 60m -v -nights 365 -night-seed $(SEED)

# One load by many processes: 5,000 random jobs over a simulated store, with deaths between any two acts and processes that continue after their
# leases. Half an hour.
scaleout:
	$(GO) test ./jobs/scaleout -run 'TestAnyOrderOfTasks|AnyStepIs' -count 1 -timeout 120m -scaleout-seeds 5000 -scaleout-deaths

# The same load by one process and by 1, 2, 4 and 8 with a job directory: seconds, CPU a row, requests, throttled rows. Four minutes; ROWS, UNITS,
# LATENCY and CONCURRENCY say another one.
scaling:
	@GO=$(GO) bash packaging/scaling.sh

# What more machines bring: loads of 64 to 512 partitions by 1 to 32 processes, each on a machine of its own, in virtual time. Ten minutes.
machines:
	$(GO) test ./jobs/scaleout -run '^TestMoreMachinesLoadFaster$$' -scaleout-machines -count 1 -v -timeout 60m

# What outages of the service cost loads beyond their own seconds, what is missing and what is there twice: 5, 15 and 60 s of five kinds, 1
# and 32 partitions, rows with keys of their own and rows that the service numbers; from the first write, and 3 s later. In virtual time.
outages:
	$(GO) test ./pipeline -run '^TestOutagesInVirtualTime$$' -outage-table -count 1 -v -timeout 60m

# The memory that loads and the other commands take for every hostile file, and what each command allocates for a row.
memory:
	$(GO) test -tags e2e ./e2e -run 'StaysWithinItsMemory|StayWithinTheirMemory' -every-memory-file -count 1 -v -timeout 40m
	$(GO) test -tags e2e ./cmd/tsbench -run ForARow -every-memory-file -count 1 -v -timeout 40m

# What the tests would not notice: N small changes of each room of a load, drawn by SEED, and which of them no test fails for. ROOM names
# rooms as go list does; MUTANT, an identifier that was printed, runs one of a room. About two minutes of a quiet machine for each minute
# that the tests of the room and of its importers take. BUDGET=40s gives each mutant no more of their time, quick tests first; what survives
# then is listed with the number of tests left.
SEED ?= 1
N ?= 30

mutants:
	$(GO) test ./internal/mutants -run '^TestMutants$$' -mutants $(N) -seed '$(SEED)' -room '$(ROOM)' -mutant '$(MUTANT)' -budget $(or $(BUDGET),1h) -count 1 -v -timeout 24h

bench:
	$(GO) test ./... -run '^$$' -bench . -benchmem

# What loads cost of which rows are the least part, by the clock and in CPU: one row, and a job of 200 tables.
small:
	$(GO) test -tags e2e ./e2e -run '^$$' -bench SmallLoads -benchtime $(or $(TIMES),5)x -timeout 20m

# The rate controller of a lane in front of 86 limiters and ways to them, in virtual time. WORD picks cells.
laws:
	$(GO) test ./ratelimit -run '^TestLaws$$|^TestLanesOfLimitedTable' -v -law-seeds 20 -law-cell '$(WORD)' -timeout 60m

# Which tests fail when a constant of the rate controller is half or twice as large. WORD picks constants. Hours.
constants:
	$(GO) test ./ratelimit -run '^TestConstantsHaveTests$$' -v -constants '$(or $(WORD),.)' -timeout 4h

# What a load reaches in front of an engine with each limiter, beside what the simulation says: 20 loads of 20 s and more. WORD picks
# limiters.
wire:
	$(GO) build -o tsbench ./cmd/tsbench
	$(GO) test ./ratelimit -run '^TestWireReachesSimulatedRates$$' -v -wire-binary $(CURDIR)/tsbench -wire-cell '$(WORD)' -timeout 60m

# How an engine does as its table grows: BIG student cards in ten parts, reads of one row after each, a scan of all at the end, bytes on
# disk. With 20,000,000 it takes about 5 GB of disk under TMPDIR. Linux.
BIG ?= 20000000

big:
	$(GO) test -tags e2e ./e2e -run '^TestABigTable$$' -big-rows $(BIG) -big-reads 5000 -count 1 -v -timeout 60m

# What loads by the official SDKs for Java, Node and Python cost beside tsimport's (bench/peers): PEER_ROWS rows. Needs a JDK with Maven, node
# with npm, python3 with venv, and their registries.
PEER_ROWS ?= 500000

peers:
	$(GO) build -o tsbench ./cmd/tsbench
	bash bench/peers/peers.sh ./tsbench $(PEER_ROWS)
