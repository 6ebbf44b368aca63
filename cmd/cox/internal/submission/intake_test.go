package submission

import (
	"testing"
)

func TestWhatAFileIs(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a.yaml", "#!/bin/sh", "native"},
		{"a.JSON", "", "native"},
		{"a", "#!/bin/sh\nname: x\n", "sbatch"},
		{"a", "#SBATCH -N1\nname: x\n", "sbatch"},
		{"a", "# a comment\n\nname: x\n", "native"},
		{"a", "---\nname: x\n", "native"},
		{"-", "{\"name\": \"x\"}", "native"},
		{"a", "echo hello: world\n", "sbatch"},
		{"a", "", "sbatch"},
		{"a.sbatch", "export A=1\n", "sbatch"},
	} {
		if got, err := formOf("", c.name, []byte(c.text)); err != nil || got != c.want {
			t.Errorf("%s %q: %s, %v", c.name, c.text, got, err)
		}
	}
	if got, err := formOf("sbatch", "a.yaml", nil); err != nil || got != "sbatch" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := formOf("pbs", "a", nil); err == nil {
		t.Error("an unknown form was taken")
	}
}
