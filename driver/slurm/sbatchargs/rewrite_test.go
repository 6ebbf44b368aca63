package sbatchargs

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// TestNoNodefileIsRead: sbatch would read --nodefile where it runs, as whoever runs it, and say
// in its errors what stands there. The nodes are said that it had when the job was submitted.
//
// Seen to fail with: the directive as it stands.
func TestNoNodefileIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		args []string
	}{
		"directive": {text: "#!/bin/sh\n#SBATCH -F /root/secret\nexit\n"},
		"option":    {text: "#!/bin/sh\nexit\n", args: []string{"--nodefile=/root/secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, err := sbatch.Parse(spec.Source{Name: "job", Data: []byte(c.text)}, sbatch.Options{
				Args: c.args, Dir: "/w", ReadFile: func(string) ([]byte, error) { return []byte("n1,n2"), nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			s.Program.Kind, s.Source.Form = job.Batch, Form
			got, err := told(t, s, c.text)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got, "\n--nodelist=n[1-2]\n") || strings.Contains(got, "--nodefile") || strings.Contains(got, "\n#SBATCH -F") {
				t.Error(got)
			}
		})
	}
}

// TestNoFileOfNodesIsRead: a name with a slash in --nodelist or --exclude is a file's to sbatch.
//
// Seen to fail with: no look for slashes.
func TestNoFileOfNodesIsRead(t *testing.T) {
	for _, option := range []string{"nodelist", "exclude"} {
		text := "#!/bin/sh\n#SBATCH --" + option + "=/root/secret\nexit\n"
		s, _, err := sbatch.Parse(spec.Source{Name: "job", Data: []byte(text)}, sbatch.Options{Dir: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		s.Program.Kind, s.Source.Form = job.Batch, Form
		if got, err := told(t, s, text); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: %v\n%s", option, err, got)
		}
	}
}
