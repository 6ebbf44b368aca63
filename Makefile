# Targets a contributor needs. Everything downloaded or built for them is kept in
# $(CACHE), outside the work tree.
CACHE ?= $(or $(COX_CACHE),$(HOME)/.cache/coxswain)
BIN   := $(CACHE)/bin
GO    ?= go
PKGS  ?= ./...

.PHONY: test cross lint unit race slurm bench torture fuzz build clean docs

test: lint cross unit race slurm    ## everything that must pass before a commit lands

build:                        ## bin/: cox, Slurm's names, the live view, the GPU probe
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/ ./cmd/cox ./cmd/cox-slurm ./cmd/cox-top ./cmd/cox-gpuprobe

cross:                        ## the client builds for macOS
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) vet ./cmd/cox ./cmd/cox-top ./api ./api/client ./api/address ./show/...

lint: $(BIN)/.tools           ## go vet, gofumpt, staticcheck
	$(GO) vet ./...
	@out=$$($(BIN)/gofumpt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofumpt -w these:"; echo "$$out"; exit 1; fi
	$(BIN)/staticcheck ./...

unit:                         ## tests, with real processes, as the user who calls
	$(GO) test -count=1 $(PKGS)

# The packages with goroutines of their own, under the race detector.
race:
	CGO_ENABLED=1 $(GO) test -count=1 -race -short ./control/... ./dispatch/... ./event/... ./store/... ./step/... ./engine/... ./run/... ./server/... ./api/... ./notify/... ./serve/... ./auth/...

slurm:                        ## the sbatch reader beside a real sbatch (as root: installs Debian's packages)
	scripts/slurm/test.sh

torture:                      ## the long runs: minutes to hours
	COX_LONG=1 COX_SLURM_ALL=1 $(MAKE) unit slurm
	FUZZTIME=$(or $(FUZZTIME),20m) scripts/fuzz.sh

bench:                        ## figures of docs/benchmarks.md
	scripts/bench.sh

fuzz:                         ## every fuzz target for FUZZTIME each
	scripts/fuzz.sh

docs:                         ## write the generated tables of docs/ anew
	$(GO) test -count=1 ./job ./config ./spec/sbatch ./spec/native ./advise ./step ./server ./cmd/cox -run '^Test(Docs?|Document|DocTable|DocStates)' -update

$(BIN)/.tools: tools/go.mod tools/go.sum
	mkdir -p $(BIN)
	cd tools && GOBIN=$(BIN) $(GO) install tool
	touch $@

clean:
	rm -rf bin
