package scontrol

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestScontrolHostLists(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("a1\na2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ args, list, out, err string }{
		{"show hostnames", "v[1-2]", "v1\nv2\n", ""},
		{"show hostname", "v[1-2]", "v1\nv2\n", ""},
		{"SHOW hostnames n[01-03],x", "", "n01\nn02\nn03\nx\n", ""},
		{"show hostnames " + file, "", "a1\na2\n", ""},
		{"show hostnames", "", "", ""},
		{"show hostlist n3,n1,n1,n2", "", "n[3,1,1-2]\n", ""},
		{"show hostlistsorted n3,n1,n1,n2", "", "n[1,1-3]\n", ""},
		{"show hostlist", "", "", "invalid encode argument"},
		{"show hostnames n[1-", "", "", "no closing"},
		{"show", "", "", "too few arguments"},
		{"show hostnames v1 v2", "", "", "too many arguments for keyword:show"},
		{"show hostlist v1 v2", "", "", "too many arguments for keyword:show"},
		{"show node v1", "", "", "show node: not built yet"},
		{"requeue 1", "", "", "requeue: not built yet"},
		{"--foo", "", "", "unrecognized option '--foo'"},
		{"--json show job", "", "", "--json: not built yet"},
		{"-F -M all show hostnames v[1-2]", "", "v1\nv2\n", ""},
		{"show hostnames v[1-2] --clusters=lab -aQ", "", "v1\nv2\n", ""},
		{"show --future hostname", "v3", "v3\n", ""},
		{"wait_job 1", "", "", ""},
	} {
		env := func(name string) string {
			if name == "SLURM_JOB_NODELIST" {
				return tc.list
			}
			return ""
		}
		out, err := runScontrol(strings.Fields(tc.args), env, io.Discard)
		if out != tc.out || (err == nil) != (tc.err == "") || err != nil && !regexp.MustCompile(tc.err).MatchString(err.Error()) {
			t.Errorf("%s: %q, %v", tc.args, out, err)
		}
	}
}
