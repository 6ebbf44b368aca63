package intake

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/rlimit"
)

// TestLimitsOfTheSubmitter: a script and a command carry the limits of their submitter that
// --propagate chooses, whatever the environment said of an outer job; a native text carries none.
func TestLimitsOfTheSubmitter(t *testing.T) {
	for _, c := range []struct {
		form, text string
		args       []string
		want       string
		usual      string // by the site's rules
	}{
		{api.FormSbatch, "#!/bin/sh\ntrue\n", nil, "NOFILE=77 CORE=0", ""},
		{api.FormSbatch, "#!/bin/sh\ntrue\n", nil, "CORE=0", "CORE,STACK"},
		{api.FormSbatch, "#!/bin/sh\ntrue\n", []string{"--propagate"}, "NOFILE=77 CORE=0", "NONE"},
		{api.FormSbatch, "#!/bin/sh\n#SBATCH --propagate=CORE\ntrue\n", nil, "CORE=0", ""},
		{api.FormSbatch, "#!/bin/sh\n#SBATCH --propagate=CORE\ntrue\n", []string{"--propagate"}, "NOFILE=77 CORE=0", ""},
		{api.FormSbatch, "#!/bin/sh\ntrue\n", []string{"--propagate=NONE"}, "", ""},
		{api.FormCommand, "", []string{"--propagate=nofile"}, "NOFILE=77", ""},
		{api.FormNative, "command: \"true\"\n", nil, "", ""},
	} {
		text := Text{Form: c.form, Name: "job", Data: []byte(c.text)}
		if c.form == api.FormCommand {
			text.Command = []string{"true"}
		}
		r, err := Read(text, Options{Args: c.args, Dir: "/", Environ: []string{"A=1", "SLURM_RLIMIT_AS=1"}})
		if err != nil {
			t.Fatalf("%s %q %q: %v", c.form, c.text, c.args, err)
		}
		if err := r.setLimits([]string{"NOFILE=77", "CORE=0"}, c.usual); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range rlimit.OfEnvironment(r.Env) {
			got = append(got, l.String())
		}
		if s := strings.Join(got, " "); s != c.want || r.Env[0] != "A=1" {
			t.Errorf("%s %q %q: %q, want %s", c.form, c.text, c.args, r.Env, c.want)
		}
		if err := r.setLimits([]string{"NOFILE"}, ""); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "limits: ") {
			t.Errorf("a limit without a value: %v", err)
		}
	}
}
