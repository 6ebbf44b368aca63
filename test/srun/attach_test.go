package srun

import (
	"slices"
	"strings"
	"testing"
)

// TestCopyToNodes: sbcast writes a file whole or not at all, in a job and from outside of it.
func TestCopyToNodes(t *testing.T) {
	s := newShell(t)
	const job = "sbatch -Q -W -N2 -o o --wrap '"
	for name, c := range map[string]struct{ script, want string }{
		"in a job":     {"seq 100000 > f; chmod 750 f; " + job + `sbcast f $PWD/g; srun -l sh -c "wc -l < g; stat -c %a g"'; cat o; cmp f g`, "0: 100000\n0: 750\n1: 100000\n1: 750"},
		"its name":     {"echo a > f; mkdir d; " + job + "sbcast f d'; cat o d/f; ls d", "a\nf"},
		"there":        {"echo a > f; echo b > g; " + job + "sbcast f g || sbcast -f f g'; cat o g", "a\nsbcast:   --force replaces it\nsbcast: error: v1: g: File exists"},
		"attributes":   {"echo a > f; touch -d 2020-02-02 f; " + job + "sbcast -p f g; sbcast f h'; cat o; date -r g +%F; [ h -nt f ] && echo newer", "2020-02-02\nnewer"},
		"no folder":    {"echo a > f; " + job + "sbcast f no/g; echo $?'; grep -o 'v1.*no/' o; tail -n1 o; ls", "1\nf\no\nv1: open no/"},
		"no source":    {job + "sbcast f g'; cat o", "sbcast: error: Can't open `f`: no such file or directory"},
		"no job":       {"echo a > f; sbcast f g; echo $?", "1\nsbcast:   run sbcast in a job's script, or name the job with --jobid\nsbcast: error: Need a job id to run this command."},
		"one name":     {"sbcast f; echo $?", "1\nUsage: sbcast [-CfFjpstvV] SOURCE DEST\nsbcast: error: Need two file names, have 1 names"},
		"libraries":    {"sbcast --send-libs f g", "sbcast:   copy the libraries by sbcast too, and name their folder in LD_LIBRARY_PATH\nsbcast: error: --send-libs is not built yet"},
		"from outside": {`echo a > f; j=$(sbatch --parsable -o /dev/null --wrap 'until [ -e stop ]; do sleep 0.02; done'); while [ -z "$(squeue -h -t R -j $j)" ]; do sleep 0.02; done; sbcast -j $j f $PWD/g; cat g; touch stop`, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, out := s.command(t, c.script)
			_ = cmd.Run()
			if got, want := lines(out.String()), lines(c.want); !slices.Equal(got, want) {
				t.Errorf("%s\nprints:\n%s\nwant:\n%s", c.script, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestAttachToStep: sattach from outside of a job, to the step of a batch script.
func TestAttachToStep(t *testing.T) {
	s := newShell(t)
	cmd, out := s.command(t, `j=$(sbatch --parsable -N2 -n2 -o o --wrap 'srun -l sh -c "until [ -e go ]; do echo tick; sleep 0.02; done; exit 4"')
		until sattach --layout $j.0 >layout 2>/dev/null; do sleep 0.02; done; cat layout
		sattach -l $j.0 </dev/null >heard & until grep -q "1: tick" heard; do sleep 0.02; done; touch go; wait $!; echo $?
		sattach $j.0; sattach 12; sattach $j.7 >/dev/null`)
	_ = cmd.Run()
	got := out.String()
	for _, want := range []string{
		"Job step layout:\n  2 tasks, 2 nodes (v[1-2])\n\n  Node 0 (v1), 1 task(s): 0 \n  Node 1 (v2), 1 task(s): 1 \n",
		"\n4\n", "sattach: error: \"12\" is not a step\nsattach:   write JOB.STEP, as in 15.0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("prints\n%s\nwithout\n%s", got, want)
		}
	}
}
