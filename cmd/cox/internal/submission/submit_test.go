package submission_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
)

func TestSubmitAsks(t *testing.T) {
	f := newFake(t)
	f.Answer("POST /v1/jobs", func(*http.Request) (any, error) {
		return api.Submitted{ID: 7, Name: "train", Warnings: []api.Warning{{File: "x", Line: 3, Option: "--mail-user", Message: "has no effect"}}}, nil
	})
	script := clitest.WriteFile(t, "train.sbatch", "#!/bin/sh\n#SBATCH -N2\nsrun hostname\n")
	f.Cox(t, "submit", "-s", "--mem=4G", "-N", "4", "-H", script, "--epochs", "3").Check(t, 0, "7 train submitted\n", "  ! line 3  --mail-user has no effect\n")
	var got api.Submit
	f.Last(t, &got)
	if got.Form != "sbatch" || got.File != script || !cmp.Equal(got.Args, []string{"--nodes=4", "--hold", "--mem=4G"}) || !cmp.Equal(got.ScriptArgs, []string{"--epochs", "3"}) {
		t.Errorf("%+v", got)
	}
	if got.Umask == nil || got.Dir == "" || len(got.Environ) == 0 || got.Provenance == nil || len(got.Provenance.Files) != 1 {
		t.Errorf("umask %v, directory %q, provenance %+v", got.Umask, got.Dir, got.Provenance)
	}
	f.Cox(t, "submit", "--parsable", "--", "hostname", "-f").Check(t, 0, "7\n", "~line 3")
	if f.Last(t, &got); got.Form != "command" || !cmp.Equal(got.Command, []string{"hostname", "-f"}) {
		t.Errorf("%+v", got)
	}
	coxAt(t, f.URL, "name: x\ncommand: hostname\n", "submit", "--no-provenance", "-").Check(t, 0, "7 train submitted\n", "~line 3")
	got = api.Submit{}
	if f.Last(t, &got); got.Form != "native" || got.File != "-" || got.Provenance != nil {
		t.Errorf("%+v", got)
	}
}

func TestFilesThatOptionsNameAreSent(t *testing.T) {
	f := newFake(t)
	f.Answer("POST /v1/jobs", func(*http.Request) (any, error) { return api.Submitted{ID: 7}, nil })
	hosts := clitest.WriteFile(t, "hosts", "v1\nv2\n")
	f.Cox(t, "submit", "-s", "--nodefile="+hosts, "--", "true").Check(t, 0, "7 submitted\n", "")
	var got api.Submit
	if f.Last(t, &got); got.Files[hosts] != "v1\nv2\n" {
		t.Errorf("%q", got.Files)
	}
	before := len(f.Asked)
	f.Cox(t, "submit", "--env", "COX_NOT_SET", clitest.WriteFile(t, "a.yaml", "command: true\n")).Check(t, 2, "", "~--env COX_NOT_SET: there is no such variable")
	f.Cox(t, "submit", "-o", "json", clitest.WriteFile(t, "a.yaml", "command: true\n")).Check(t, 2, "", "~--format json for the format; -o ./json for a file of that name")
	f.Cox(t, "submit", "--gpu", "4", "x").Check(t, 2, "", "~did you mean --gpus?")
	f.Cox(t, "submit", "-q", "x").Check(t, 2, "", "~there is nothing to submit")
	if len(f.Asked) != before {
		t.Error("it was submitted all the same")
	}
}

func TestARefusedSubmissionShowsThePlace(t *testing.T) {
	f := newFake(t)
	f.Mux.HandleFunc("POST /v1/jobs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(400)
		io.WriteString(w, `{"status":400,"title":"invalid request","detail":"x","errors":[{"file":"job.sbatch","line":4,"col":16,"len":11,"text":"#SBATCH --gres=gpu:h100:16","message":"--gres=gpu:h100:16: no node has 16 h100","remedy":"for 16 in all: --nodes=2"}]}`)
	})
	f.Cox(t, "submit", clitest.WriteFile(t, "job.sbatch", "#!/bin/sh\n")).Check(t, 2, "", `job.sbatch:4: --gres=gpu:h100:16: no node has 16 h100
      #SBATCH --gres=gpu:h100:16
                     ^^^^^^^^^^^
  for 16 in all: --nodes=2
not submitted                                                exit 2 (invalid request)
`)
	f.Cox(t, "submit").Check(t, 2, "", "~there is nothing to submit")
	f.Cox(t, "submit", "/nowhere").Check(t, 2, "", "~not submitted")
	coxAt(t, "unix:///nowhere/s", "", "submit", "--", "true").Check(t, 75, "", "~not submitted                                                exit 75 (unavailable)")
}

func TestSubmitWaitEndsAsTheJob(t *testing.T) {
	f := newFake(t)
	f.Answer("POST /v1/jobs", func(*http.Request) (any, error) { return api.Submitted{ID: 7, Name: "train"}, nil })
	f.Answer("GET /v1/jobs/7/wait", func(*http.Request) (any, error) { return clitest.Job("7", "FAILED", 5), nil })
	f.Cox(t, "submit", "--wait", "--", "false").Check(t, 5, "7 train submitted\n", "job 7 FAILED after 1 min, waited 1 min, exit 5\n")
}

func TestAdvise(t *testing.T) {
	const nowhere = "unix:///nowhere/s"
	script := clitest.WriteFile(t, "train.sbatch", "#!/bin/sh\n#SBATCH -N4 --gpus-per-node=8\nsrun python -m torch.distributed.run train.py\n")
	coxAt(t, nowhere, "", "advise", script).Check(t, 0, "~line 2: #SBATCH -N4", "")
	coxAt(t, nowhere, "", "advise", script, "-o", "json", "--nodes", "1").Check(t, 0, "~\"engine\":", "")
	coxAt(t, nowhere, "", "advise", "--nodes", "8", "--tightly-coupled", "--bare-metal", "--expect", "slurm").Check(t, 0, "~slurm", "")
	coxAt(t, nowhere, "", "advise", "--nodes", "8", "--tightly-coupled", "--bare-metal", "--expect", "k3s").Check(t, 4, "~slurm", "~expected k3s")
	coxAt(t, nowhere, "", "advise", "--nodes", "8", "--expect", "nomad").Check(t, 2, "~", "~is no advice that can be expected")
	coxAt(t, nowhere, "", "advise").Check(t, 2, "", "~cox advise needs a file, or facts about the work")
	coxAt(t, nowhere, "", "advise", "--nodes", "0").Check(t, 2, "", "~one node or more")
	coxAt(t, nowhere, "", "advise", clitest.WriteFile(t, "bad.sbatch", "#!/bin/sh\n#SBATCH -N x\n")).Check(t, 2, "", "~no advice")
	f := newFake(t)
	f.Mux = http.NewServeMux()
	f.Answer("GET /v1", func(*http.Request) (any, error) {
		return api.ServerInfo{Pools: []api.Pool{{Name: "room", Engine: "local", Gang: "strict"}}}, nil
	})
	f.Cox(t, "advise", script).Check(t, 0, "~pool room", "")
}
