package hostlist

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Lists are read and written as an installed scontrol does. Left out is what it
// accepts by mistake, and its sorted lists with duplicates, which ours have not.
func TestAgainstScontrol(t *testing.T) {
	if os.Getenv("COXSWAIN_SBATCH") == "" {
		t.Skip("COXSWAIN_SBATCH=1 compares with the scontrol in PATH")
	}
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	text := "ClusterName=x\nSlurmctldHost=localhost\nNodeName=n1\nPartitionName=p Nodes=ALL\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(what, list string) string {
		cmd := exec.Command("scontrol", "show", what, list)
		cmd.Env = []string{"SLURM_CONF=" + conf, "PATH=" + os.Getenv("PATH")}
		out, err := cmd.Output()
		if err != nil {
			return "error"
		}
		return strings.TrimSpace(string(out))
	}
	pieces := []string{"n", "m", "1", "2", "09", "[", "[", "]", "]", "[1-3]", "[08-11]", "[5,7-8]", ",", ",", "-", "0"}
	rapid.Check(t, func(t *rapid.T) {
		list := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 8).Draw(t, "pieces"), "")
		names, err := Expand(list)
		switch {
		case err != nil || len(names) == 0 || slices.ContainsFunc(names, isOption) || suffixed(list):
			return // newer versions take a suffix, Slurm 22.05 does not
		}
		if want := ask("hostnames", list); strings.Join(names, "\n") != want {
			t.Fatalf("%s expands to %q, scontrol says %q", list, names, want)
		}
		plain := strings.Join(names, ",")
		if got, want := CompressInOrder(names), ask("hostlist", plain); got != want {
			t.Fatalf("%s compresses to %s, scontrol says %s", plain, got, want)
		}
		if got, want := Compress(names), ask("hostlistsorted", strings.Join(sortedOnce(names), ",")); got != want {
			t.Fatalf("%s sorts to %s, scontrol says %s", plain, got, want)
		}
	})
}

func isOption(name string) bool { return strings.HasPrefix(name, "-") }

// suffixed reports whether text follows the last bracket of an item.
func suffixed(list string) bool {
	for i := range len(list) - 1 {
		if list[i] == ']' && list[i+1] != ',' && list[i+1] != '[' {
			return true
		}
	}
	return false
}
