# What CI runs is `make check`; checks fail, they never repair.

GO ?= go
FUZZTIME ?= 30s

.PHONY: build test check format tidy vet staticcheck race fuzz metamorphic bench

build:
	$(GO) build -o tsimport ./cmd/tsimport

# The README's test command.
test:
	$(GO) test ./...

check: format tidy vet staticcheck test race

format:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not gofmt-ed: $$unformatted"; exit 1; fi

tidy:
	$(GO) mod tidy -diff

vet:
	$(GO) vet ./...

staticcheck:
	$(GO) tool staticcheck ./...

race:
	$(GO) test -race ./...

# Longer runs, not part of check.

fuzz:
	$(GO) test ./reader -run '^$$' -fuzz FuzzSplits -fuzztime $(FUZZTIME)
	$(GO) test ./plainbuffer -run '^$$' -fuzz FuzzRowEqualsSDK -fuzztime $(FUZZTIME)
	@set -e; for f in $$($(GO) test ./engine/wire -list Fuzz | grep Fuzz); do \
		$(GO) test ./engine/wire -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME); done
	@set -e; for f in $$($(GO) test ./engine/server -list Fuzz | grep Fuzz); do \
		$(GO) test ./engine/server -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME); done

metamorphic:
	$(GO) test ./pipeline -run TestAnyRun -seeds 500 -timeout 60m

bench:
	$(GO) test ./... -run '^$$' -bench . -benchmem
