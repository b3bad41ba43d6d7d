FUZZTIME ?= 10s
GOLANGCI ?= golangci-lint
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## compile the programs into bin/
	go build -o bin/ ./cmd/...

.PHONY: demo
demo: ## run everything on this machine, send commands and show what became of them
	go run ./cmd/processor demo

.PHONY: test
test: ## all tests, with the race detector, on real Postgres and real Kafka
	@$(MAKE) --no-print-directory versions || [ "$$CI" != true ]
	go test -race -timeout 15m ./...

.PHONY: versions
versions: ## say which Go, Postgres, Kafka and Java the tests run on
	@go version
	@go run ./internal/pgtest/version
	@go run ./internal/kafkatest/fetch

.PHONY: check
check: ## what needs no server: formatting, vet, build
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt these:"; echo "$$unformatted"; exit 1; }
	go vet ./...

.PHONY: lint
lint: check ## check, and golangci-lint where installed, else staticcheck
	@if command -v $(GOLANGCI) >/dev/null; then $(GOLANGCI) run; else go run $(STATICCHECK) ./...; fi

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (10s)
	@# Where the time is up in the middle of an input, the tool reports its own deadline as a failure: not one of ours.
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r -n 1 dirname | sort -u | while read -r dir; do \
		for target in $$(go test -list '^Fuzz' "$$dir" | grep '^Fuzz'); do \
			echo "$$dir $$target"; \
			out=$$(go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" 2>&1) && ok=yes || ok=no; \
			echo "$$out" | tail -n 4; \
			[ $$ok = yes ] && continue; \
			echo "$$out" | grep -q 'Failing input' && exit 1; \
			echo "$$out" | grep -q 'context deadline exceeded' || exit 1; \
		done; \
	done

.PHONY: bench
bench: ## measure throughput and latency against COPY and a plain loop
	go run ./bench

.PHONY: prove
prove: ## the crash test with 50,000 commands and more
	WRIT_PROVE=50000 go test ./tests/... -run Crash -v -timeout 60m

.PHONY: mutants
mutants: ## show that the tests find each mutant in tests/mutations
	go run ./tests/mutations

.PHONY: memory
memory: ## measure the memory of a processor at its worst
	go run ./tests/memory

.PHONY: clean
clean: ## remove what was built and the demo's data
	rm -rf bin data
