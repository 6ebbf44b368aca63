package srunargs_test

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/srunargs"
)

// TestChatter: however what is printed is cut into pieces, those lines alone are left out.
func TestChatter(t *testing.T) {
	const line = "srun: error: n2: task 0: Exited with exit code 7"
	for in, want := range map[string]string{
		line + "\n": "", "err\n" + line + "\r\nmore": "err\nmore", "err" + line + "\n": "err" + line + "\n",
		"srun: error: n2: task 0: Killed\n": "srun: error: n2: task 0: Killed\n", "srun: error: n3: task 0: Exited with exit code 7\n": "srun: error: n3: task 0: Exited with exit code 7\n",
		line + " or so\n": line + " or so\n", "srun: err": "srun: err", "\n\n" + line + "\n\n": "\n\n\n", "": "",
		"srun: cluster configuration lacks support for cpu binding\nx": "x", "srun: cluster configuration lacks support\n": "srun: cluster configuration lacks support\n",
	} {
		for size := 1; size <= len(in)+1; size++ {
			var out strings.Builder
			e := srunargs.Chatter{To: &out, Node: "n2"}
			for rest := in; rest != ""; {
				n := min(size, len(rest))
				if k, err := e.Write([]byte(rest[:n])); err != nil || k != n {
					t.Fatal(k, err)
				}
				rest = rest[n:]
			}
			e.Flush()
			if out.String() != want {
				t.Errorf("%q in pieces of %d: %q, want %q", in, size, out.String(), want)
			}
		}
	}
}
