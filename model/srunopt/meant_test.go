package srunopt

import "testing"

// TestMeant: what people type for an option of srun, and what they mean.
func TestMeant(t *testing.T) {
	for name, want := range map[string]string{
		"memory": "mem", "num-nodes": "nodes", "num_nodes": "nodes", "Walltime": "time", "queue": "partition", "procs": "ntasks",
		"num-gpus": "gpus", "outfile": "output", "dependencies": "dependency", "tiem": "time", "gpu-per-task": "gpus-per-task",
		"cpus-on-task": "cpus-per-task", "quux": "", "": "", "x-y": "",
	} {
		if got := Meant(name, len(table), Table{}.Option); got != want {
			t.Errorf("--%s: %q, want %q", name, got, want)
		}
	}
	for word, option := range meant {
		if ByName(word) != nil {
			t.Errorf("--%s is an option of srun itself", word)
		}
		if ByName(option) == nil && option != "array" && option != "requeue" { // sbatch alone has these
			t.Errorf("--%s is to mean --%s, which is no option", word, option)
		}
	}
}
