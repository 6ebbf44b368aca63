# Targets a contributor needs. Everything downloaded or built for them is kept in
# $(CACHE), outside the work tree.
CACHE ?= $(or $(COX_CACHE),$(HOME)/.cache/coxswain)
BIN   := $(CACHE)/bin
GO    ?= go

# Without the folder's name in binaries, clones and work trees share Go's build cache.
export GOFLAGS := -trimpath $(filter-out -trimpath,$(GOFLAGS))

# The packages in test/ that are not part of make unit: the proofs of the five promises.
# Those of the first line compute, those of the second run whole servers and real processes.
COMPUTED := simulate linear tables
RUN      := hardcase kill load security
PROOFS   := $(COMPUTED) $(RUN)
# The packages with goroutines of their own, which make race runs under the race detector; those of
# the second line for their goroutines alone, since make unit runs all of their tests.
RACY  := ./agent/... ./gateway ./engine/... ./driver/kube/... ./driver/slurm/... ./cmd/internal/localrun ./api/... ./auth/... ./server/daemon ./server/notify ./server/series ./service/controller ./service/endpoints ./service/handover/controller ./service/handover/ondemand ./service/nodehealth ./test/testcluster/...
# those of CALM are of the first line's folders and start no goroutine (internal/archtest): make unit runs them.
RACY2 := ./driver/local ./control/... ./store/... ./server ./server/admin ./server/jobs ./server/reports ./server/transport
CALM  := ./agent/asuser ./agent/cgroup ./agent/deviceenv ./agent/devicelock ./agent/freeport ./agent/hostsfile ./agent/ownlimit ./agent/proc ./agent/registry \
	./agent/step ./agent/step/scontrol ./api ./api/address ./api/column ./auth ./auth/fileperm ./auth/token ./engine/fence \
	./driver/kube/gang ./driver/kube/podstatus ./driver/kube/preflight ./driver/kube/quota ./driver/kube/render ./driver/kube/settings \
	./driver/slurm/explain ./driver/slurm/ownerfile ./driver/slurm/script ./driver/slurm/srunargs ./driver/slurm/validate
racy   = $(GO) list $(RACY) | grep -vxF "$$($(GO) list $(CALM))"
# The package whose tests take longest is first, so that it is not what the others are waited for with.
PKGS  ?= ./driver/local $(shell $(GO) list ./... | grep -vxF "$$($(racy))" | grep -v $(foreach p,$(PROOFS),-e /test/$(p)))

# A test of real processes on a loaded machine may fail once for a reason of the
# machine. It is run again at most RERUN times; the report at the end counts it as failed
# all the same, since a test that needs this is a defect (CONTRIBUTING.md). A data race is
# never run again. RERUN=0 forbids it.
RERUN ?= 2
# What the tests said, one file for each suite: scripts/testreport.py reads it.
REPORT := $(or $(COX_REPORT),$(CACHE)/report)
# tests PACKAGES,ARGUMENTS runs tests by gotestsum.
tests  = mkdir -p $(REPORT) && $(BIN)/gotestsum --format pkgname-and-test-fails --hide-summary=skipped --jsonfile $(REPORT)/$@.json \
	--rerun-fails=$(RERUN) --rerun-fails-max-failures=10 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race \
	--packages="$(1)" -- -count=1 -vet=off -ldflags=-w -timeout 25m $(2)

# Properties are drawn from one seed, so that a run says of this change what it said of
# the last one; SEED=0 draws others each time, as torture does.
SEED ?= 1
export RAPID_SEED := $(SEED)

.PHONY: web test quick cross lint unit race proofs proofs-computed proofs-run slurm kube kube-batch clients clients-main console arm64 bench bench-slurm bench-kube bench-grow bench-traces bench-handover torture fuzz build release clean docs site

test: $(BIN)/.tools           ## everything that must pass before a commit lands, side by side
	COX_REPORT=$(REPORT) scripts/test.sh

quick: $(BIN)/.tools          ## vet and unit tests of the packages that changed and of those that import them
	scripts/quick.sh

web:                          ## web/dist: the web console, from web/ui (Node 20 or newer)
	scripts/web.sh

build:                        ## bin/: cox (with the web console where Node 20 is there), Slurm's names, what runs in pods, the live view, the GPU probe, the PMIx server
	@if [ -f web/ui/package.json ]; then scripts/web.sh --try; fi
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/ ./cmd/cox ./cmd/cox-slurm ./cmd/cox-pod ./cmd/cox-top ./cmd/cox-gpuprobe ./cmd/cox-pmix

# VERSION=v1.2.3 outranks the commit's tag, SOURCE_DATE_EPOCH its time.
release:                      ## dist/: archives for Linux and macOS, Debian packages, images, Helm chart, SBOM, licences of third parties, checksums
	@if [ -f web/ui/package.json ]; then scripts/web.sh; fi
	$(GO) run ./internal/release/make -o $(or $(OUT),dist)

cross:                        ## the client builds for macOS
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) vet ./cmd/cox ./cmd/cox-top ./api ./api/client ./api/address ./cmd/printer/...

# What has changed is read anew by both: with a larger heap that takes a third less time.
lint: export GOGC := 400
lint: export GOMEMLIMIT := 3GiB
lint: $(BIN)/.tools           ## go vet, gofumpt, staticcheck
	$(GO) vet ./...
	@out=$$($(BIN)/gofumpt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofumpt -w these:"; echo "$$out"; exit 1; fi
	$(BIN)/staticcheck ./...

unit: $(BIN)/.tools           ## tests, with real processes, as the user who calls
	$(call tests,$(PKGS),$(if $(COX_LONG),-timeout 2h))
	CGO_ENABLED=0 $(GO) test -count=1 -vet=off ./cmd/cox -run '^TestScript$$/^server-manifest$$' # cox as it is shipped

# A process of the race detector sleeps a second as it exits, if nothing says otherwise.
race: export GORACE := atexit_sleep_ms=20
race: export CGO_ENABLED := 1
race: $(BIN)/.tools           ## the packages with goroutines of their own, under the race detector
	$(call tests,$(RACY2) $(shell $(racy)),-race -short -p 4)

proofs: proofs-computed proofs-run    ## simulation, kills, faults, hard cases, load, security, published tables

proofs-computed: $(BIN)/.tools
	$(call tests,$(shell $(GO) list ./test/... | grep $(foreach p,$(COMPUTED),-e /test/$(p))),-p 1)

proofs-run: $(BIN)/.tools
	$(call tests,$(shell $(GO) list ./test/... | grep $(foreach p,$(RUN),-e /test/$(p))),-p 1)

slurm: $(BIN)/.tools          ## the sbatch reader and the engine beside real Slurm, 22.05 and 24.11 (as root: installs Debian's packages)
	COX_TESTS=$(BIN)/gotestsum COX_REPORT=$(REPORT) scripts/slurm/test.sh

kube: $(BIN)/.tools           ## the engine beside real Kubernetes, built from its modules the first time (as root: installs Debian's packages)
	COX_TESTS=$(BIN)/gotestsum COX_REPORT=$(REPORT) scripts/kube/test.sh

kube-batch: $(BIN)/.tools     ## … beside Volcano, Kueue and coscheduling too, built from their modules the first time
	COX_TESTS=$(BIN)/gotestsum COX_REPORT=$(REPORT) scripts/kube/test.sh batch

clients: $(BIN)/.tools        ## programs that others wrote for Slurm, from their registries, unchanged with the names of Slurm's commands
	COX_TESTS=$(BIN)/gotestsum COX_REPORT=$(REPORT) scripts/clients/test.sh

clients-main: $(BIN)/.tools   ## … the most used of them
	COX_TESTS=$(BIN)/gotestsum COX_REPORT=$(REPORT) COX_SUITE=$@ scripts/clients/test.sh submitit snakemake nextflow parsl torch debian-mpi

console: $(BIN)/.tools        ## the web console in a real browser (as root: installs Debian's chromium; needs Node 20)
	COX_TESTS=$(BIN)/gotestsum COX_REPORT=$(REPORT) scripts/console/test.sh

arm64:                        ## the core decides on arm64 as on amd64 (as root: installs Debian's qemu-user-static)
	scripts/arm64.sh

# With SEEDS it is the simulation alone, over so many seeds from SIM_SEED on; SEEDS=forever
# never ends, nor does torture itself.
torture:                      ## the long runs: minutes to hours, then the simulation until it is stopped
ifndef SEEDS
	COX_LONG=1 COX_SLURM_ALL=1 COX_STORM=$(or $(STORM),30m) COX_SLURM_TIMEOUT=2h $(MAKE) unit race proofs slurm RERUN=0 SEED=0
	COX_LONG=1 COX_STORM=$(or $(STORM),20m) COX_KUBE_TIMEOUT=2h $(MAKE) kube kube-batch RERUN=0 SEED=0
	FUZZTIME=$(or $(FUZZTIME),20m) scripts/fuzz.sh
endif
	COX_SIM_SEEDS=$(or $(SEEDS),forever) COX_SIM_SEED=$(or $(SIM_SEED),100001) $(GO) test -count=1 -timeout 0 -v -run '^TestSeeds$$' ./test/simulate

bench:                        ## figures of docs/explanation/benchmarks.md
	scripts/bench.sh

bench-slurm:                  ## hand-over to real Slurm beside clients that do nothing else, and what watching costs (as root)
	COX_SLURM=1 COX_LONG=1 $(GO) test -count=1 -timeout 60m -v -run '^Test(HandOver|Cost)$$' ./driver/slurm

bench-kube:                   ## gangs of our driver on Kubernetes beside kube-scheduler's own, on nodes of kwok (as root)
	COX_KUBE=1 COX_BENCH=1 $(GO) test -count=1 -timeout 90m -v -run '^TestSpeed$$' ./driver/kube

bench-grow:                   ## how the core's figures grow with the fleet and the queue
	scripts/bench-grow.sh

bench-traces:                 ## whole simulated outcomes on the published GPU traces
	scripts/bench-traces.sh

bench-handover:               ## hand-over of machines on demand against static splits, on the published traces
	scripts/bench-handover.sh

fuzz:                         ## every fuzz target for FUZZTIME each
	scripts/fuzz.sh

docs:                         ## write the generated tables of docs/ anew
	$(GO) test -count=1 ./model/job ./server/config ./policy ./policy/slurm ./spec/sbatch ./spec/native ./spec/manifest/fields ./spec/route ./agent/step/env ./agent/step/srun ./server ./cmd/cox -run '^Test(Docs?|Document|DocTable|DocStates|EnvironmentDocument|SrunDocument)' -update

site:                         ## the documentation as a static site with a search, in bin/site
	scripts/site/build.sh

$(BIN)/.tools: scripts/tools/go.mod scripts/tools/go.sum
	mkdir -p $(BIN)
	cd scripts/tools && GOBIN=$(BIN) $(GO) install tool
	touch $@

clean:
	rm -rf bin dist
