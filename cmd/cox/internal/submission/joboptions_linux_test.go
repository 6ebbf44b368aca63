package submission

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// TestRunAndSubmitHaveSbatchsOptions: every option of sbatch that concerns the job is a flag of
// cox run and cox submit, by its name and its letter.
func TestRunAndSubmitHaveSbatchsOptions(t *testing.T) {
	for _, cmd := range []*cobra.Command{runCommand(cli.New()), submitCommand(cli.New())} {
		for _, o := range sbatch.Table() {
			if o.Command && o.Name != "clusters" {
				continue
			}
			f := cmd.Flags().Lookup(o.Name)
			switch {
			case f == nil:
				t.Errorf("cox %s has no --%s", cmd.Name(), o.Name)
			case o.Name == "oversubscribe": // -s is older here
			case o.Short != 0 && f.Shorthand != string(o.Short):
				t.Errorf("cox %s: -%c is not --%s", cmd.Name(), o.Short, o.Name)
			}
		}
		for name := range shownOptions {
			if f := cmd.Flags().Lookup(name); f == nil || f.Hidden {
				t.Errorf("cox %s --help does not show --%s", cmd.Name(), name)
			}
		}
	}
}

// TestOptionsAsSbatchTakesThem: flags become options of sbatch, in the order of the command line.
func TestOptionsAsSbatchTakesThem(t *testing.T) {
	for words, want := range map[string]string{
		"-N2 -n 4 --gpus=8 -G1 f":              "--nodes=2 --ntasks=4 --gpus=8 --gpus=1",
		"-H --exclusive --exclusive=user f":    "--hold --exclusive --exclusive=user",
		"-t 4h --time-min 90m f":               "--time=04:00:00 --time-min=01:30:00",
		"-t 10 -t 1-0 f":                       "--time=10 --time=1-0",
		"--requeue --tasks-per-node 2 -k f":    "--requeue --tasks-per-node=2 --no-kill",
		"-o out -e err -D /x -q hi -A me f -q": "--output=out --error=err --chdir=/x --qos=hi --account=me",
	} {
		for _, add := range []string{"run", "submit"} {
			var o jobOptions
			cmd := &cobra.Command{Use: add}
			cmd.Flags().SetInterspersed(false)
			o.addTo(cli.New(), cmd)
			if err := cmd.ParseFlags(strings.Fields(words)); err != nil || strings.Join(o.args(), " ") != want {
				t.Errorf("cox %s %s: %q, %v; want %q", add, words, o.args(), err, want)
			}
		}
	}
	var o jobOptions
	cmd := &cobra.Command{}
	o.addTo(cli.New(), cmd)
	if err := cmd.ParseFlags([]string{"--hold=no"}); err == nil {
		t.Error("--hold=no is taken")
	}
}

// TestHintAboutArguments: what follows FILE goes to the script; where it looks like an option, a
// hint says so.
func TestHintAboutArguments(t *testing.T) {
	for words, want := range map[string]string{
		"--gpus 8": "--gpus", "--gpus=8": "--gpus=8", "-N2": "-N2", "--epochs 3": "", "3 --lr 0.1 -n 4": "-n", "-- --gpus 8": "", "- -": "", "-Z": "",
	} {
		var out bytes.Buffer
		a := cli.New()
		a.Err = &out
		hintAboutArgs(a, submitCommand(a), "train.sh", strings.Fields(words))
		got := out.String()
		if want == "" && got != "" || want != "" && !strings.HasPrefix(got, "hint: "+want+" after train.sh goes to the script") {
			t.Errorf("%s: %q", words, got)
		}
	}
}

// TestOutputIsAFile: -o is the job's output file; a format there is refused with the flag for it.
func TestOutputIsAFile(t *testing.T) {
	for _, name := range []string{"json", "yaml", "name"} {
		o := jobOptions{given: []string{"--output=" + name}}
		if err := o.checkOutput("json", "yaml", "name"); err == nil || !strings.Contains(err.Error(), "-o "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&jobOptions{given: []string{"--output=json.txt", "--error=json"}}).checkOutput("json"); err != nil {
		t.Error(err)
	}
}

// TestHelpShowsNoHiddenOption: help names what people type, and leaves the rest to docs/reference/sbatch.md.
func TestHelpShowsNoHiddenOption(t *testing.T) {
	cmd := submitCommand(cli.New())
	text := cli.FlagUsages(cmd.Flags())
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if shown := strings.Contains(text, "--"+f.Name+" ") || strings.Contains(text, "--"+f.Name+"\n") || strings.Contains(text, "--"+f.Name+"["); shown == f.Hidden {
			t.Errorf("--%s: hidden %t, shown %t", f.Name, f.Hidden, shown)
		}
	})
}
