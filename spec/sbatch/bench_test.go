package sbatch

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
)

// typical is a script of 4 KB with the options that public scripts have most, and
// the 60 variables of a login shell.
func typical() (spec.Source, Options) {
	text := `#!/bin/bash
#SBATCH --job-name=train
#SBATCH --partition=gpu
#SBATCH --account=nlp
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8   # one a GPU
#SBATCH --cpus-per-task=12
#SBATCH --gres=gpu:h100:8
#SBATCH --mem=512G
#SBATCH --time=1-00:00:00
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err
#SBATCH --mail-type=END,FAIL --mail-user=anna@example.org
#SBATCH -d singleton
##SBATCH --exclusive

set -euo pipefail
module load cuda
`
	for len(text) < 4096 {
		text += fmt.Sprintf("srun --ntasks=32 python train.py --step %d --out \"$SLURM_SUBMIT_DIR/out\"\n", len(text))
	}
	env := []string{"SBATCH_ACCOUNT=nlp", "SLURM_CONF=/etc/slurm/slurm.conf", "PATH=/usr/bin:/bin", "HOME=/home/anna"}
	for i := len(env); i < 60; i++ {
		env = append(env, fmt.Sprintf("VARIABLE_%d=%s", i, strings.Repeat("v", i)))
	}
	return spec.Source{Name: "train.sbatch", Data: []byte(text[:4096])}, Options{
		Dir: "/home/anna", Environ: env, Owner: job.Owner{User: "anna", UID: 1000, GID: 1000}, Host: "login1",
		Now: time.Date(2026, 11, 21, 13, 29, 8, 0, time.UTC), Mail: true,
	}
}

// What a submission costs the server: aim at 25 µs.
func BenchmarkParse(b *testing.B) {
	src, opts := typical()
	b.ReportAllocs()
	b.SetBytes(int64(len(src.Data)))
	for b.Loop() {
		if _, _, err := Parse(src, opts); err != nil {
			b.Fatal(err)
		}
	}
}

// The parser stands in the path of every submission: it must not begin to allocate
// by the character.
func TestParseAllocatesLittle(t *testing.T) {
	src, opts := typical()
	if n := testing.AllocsPerRun(100, func() {
		if _, _, err := Parse(src, opts); err != nil {
			t.Fatal(err)
		}
	}); n > 45 {
		t.Errorf("%.0f allocations for a typical script", n)
	}
}

// A job keeps its directives in memory and nothing else of its script.
func TestJobsKeepNoScripts(t *testing.T) {
	text := "#!/bin/sh\n" + strings.Repeat("# a comment\n", 1<<16) + "#SBATCH -J train -d afterok:7 --comment='a b'\n" + strings.Repeat("true\n", 1<<16)
	var kept []*job.Spec
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for range 50 {
		s, _, err := Parse(source(text), Options{Dir: "/d"})
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, s)
	}
	if each := (heap() - before) / int64(len(kept)); each > 16<<10 {
		t.Errorf("a job keeps %d bytes", each)
	}
	runtime.KeepAlive(kept)
}
