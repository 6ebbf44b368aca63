package sbatch

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
)

// realSbatch asks an installed sbatch how it reads a script. It needs no
// controller: sbatch prints what it has read before it connects.
type realSbatch struct{ dir string }

func newRealSbatch(t *testing.T) realSbatch {
	if os.Getenv("COXSWAIN_SBATCH") == "" {
		t.Skip("COXSWAIN_SBATCH=1 compares with the sbatch in PATH (Slurm 22.05 or later)")
	}
	r := realSbatch{t.TempDir()}
	conf := "ClusterName=x\nSlurmctldHost=localhost\nSlurmctldPort=1\nAuthType=auth/munge\nGresTypes=gpu\nSelectType=select/cons_tres\n" +
		"NodeName=n[1-4] CPUs=8\nPartitionName=p Nodes=ALL Default=YES\n"
	if err := os.WriteFile(filepath.Join(r.dir, "slurm.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// read returns the options of each component as sbatch prints them, or its first
// error. It waits for as many components as are wanted, at most half a minute.
func (r realSbatch) read(script []byte, want int) (components []map[string]string, refused string, err error) {
	file := filepath.Join(r.dir, "job.sbatch")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sbatch", "-vv", "--test-only", file)
	cmd.Env = []string{"SLURM_CONF=" + filepath.Join(r.dir, "slurm.conf"), "PATH=" + os.Getenv("PATH")}
	cmd.Dir = r.dir
	var out bytes.Buffer
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	defer func() { _ = cmd.Wait() }()
	defer cancel()
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		line := strings.TrimPrefix(lines.Text(), "sbatch: ")
		out.WriteString(line + "\n")
		option, value, isOption := strings.Cut(line, ": ")
		switch {
		case line == "defined options":
			components = append(components, map[string]string{})
		case line == "end of defined options" && want > 1 && len(components) == want:
			return components, "", nil
		case (strings.Contains(line, "auth/munge") || strings.HasPrefix(line, "select/cons_res")) && len(components) >= want:
			return components, "", nil // what follows concerns the controller
		case strings.HasPrefix(line, "error:"), strings.HasPrefix(line, "fatal:"), strings.HasPrefix(line, "option '"), strings.HasPrefix(line, "unrecognized option"),
			strings.HasPrefix(line, "Invalid"), strings.Contains(line, "invalid option"), strings.HasPrefix(line, "option requires"):
			return nil, line, nil
		case isOption && len(components) > 0:
			components[len(components)-1][strings.TrimSpace(option)] = value
		}
	}
	return components, "", fmt.Errorf("sbatch ended with: %s", out.String())
}

// compared are the options whose values sbatch prints as they are.
var compared = []string{"job-name", "comment", "partition", "account", "qos", "constraint", "reservation", "wckey"}

// differs describes the first difference of one component, "" if there is none.
func differs(real map[string]string, ours []Directive) string {
	last := map[string]string{}
	for _, d := range ours {
		last[d.Option] = d.Value
	}
	for _, o := range compared {
		if real[o] != last[o] {
			return fmt.Sprintf("--%s: sbatch reads %q, we %q", o, real[o], last[o])
		}
	}
	if t, ok := last["time"]; ok {
		d, err := slurmfmt.ParseTimeLimit(t)
		if got := slurmfmt.FormatTimeLimit(d); err != nil || got != real["time"] {
			return fmt.Sprintf("--time: sbatch reads %q, we %q, %v", real["time"], got, err)
		}
	}
	return ""
}

func (r realSbatch) compare(script []byte) string {
	ours := readLines(spec.Source{Data: script}).Components
	real, refused, err := r.read(script, len(ours))
	if err != nil {
		return err.Error()
	}
	_, _, strict := Parse(spec.Source{Name: "job.sbatch", Data: script}, Options{Dir: "/d", Strict: true})
	if (strict != nil) != (refused != "") {
		return fmt.Sprintf("sbatch says %q, we %v", refused, strict)
	}
	if refused != "" {
		return ""
	}
	if len(real) > len(ours) {
		return fmt.Sprintf("sbatch reads %d components, we %d", len(real), len(ours))
	}
	if len(real) < len(ours) {
		return fmt.Sprintf("sbatch reads %d components, we %d", len(real), len(ours))
	}
	for i := range real {
		var mine []Directive
		for _, d := range ours[0] {
			if i > 0 && isPropagated(d.Option) {
				mine = append(mine, d)
			}
		}
		if d := differs(real[i], append(mine, ours[i]...)); d != "" {
			return d
		}
	}
	return ""
}

// Words are split as the real sbatch splits them.
func TestWordsAgainstSbatch(t *testing.T) {
	r := newRealSbatch(t)
	pieces := []string{
		"-J", "-J", "--comment", "--comment=", "-p", "-N1 ", "-H", "--", "\"", "'", "\\", "\\\\", "#", " ", " ", "\t", "z", "y w", "=", ":", "hetjob", "\"\"",
		"\n#SBATCH ", "\n#SBATCH ", "\n# x\n#SBATCH ", "\n##SBATCH ", "\nx\n#SBATCH ", "--job-n", "--com=x", "$a",
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 12).Draw(t, "pieces")
		script := "#!/bin/sh\n#SBATCH " + strings.Join(parts, "") + "\n"
		if d := r.compare([]byte(script)); d != "" {
			t.Fatalf("%s\n%s", script, d)
		}
	})
}

// Values are taken and refused as the real sbatch does. (It checks generic
// resources later, when it has found a controller.)
func TestValuesAgainstSbatch(t *testing.T) {
	r := newRealSbatch(t)
	for option, values := range map[string]string{
		"time":             "5|5:30|1:2:3|0:0:90|1-2|1-2:3|1-2:3:4|1-25|0|-1|INFINITE|unlimited|UnLim|1:|:30|1-|a||1-2-3|1.5|+5|5m|03-00:00:|1-1:",
		"mem":              "5|5k|1025K|5MB|5GiB|5P|0|-1|1.5G||G|5GBs|5B|5 G|+5|5tb",
		"nodes":            "4|1-4|4-1|4k|a||1-2-3|1-",
		"ntasks":           "4|0|-1|a|4k|4.5|",
		"cpus-per-task":    "4|0|-1|a",
		"ntasks-per-node":  "4|-1|a",
		"signal":           "USR1|10|B:USR1@30|R:TERM|SIGUSR1|B@3|USR1@|USR1@x|@5|foo|B:|usr2@100|KILL@70000",
		"open-mode":        "append|truncate|a|t|foo",
		"exclusive":        "user|mcs|foo|exclusive",
		"begin":            "now|now+5|now+1hour|now+2days|16:00|4:00PM|4:00 pm|010127|01/20/27|2027-01-20|2027-01-20T12:34|tomorrow|noon|now+|foo|25:00|20.01.27|2027-13-01|tomorrow+1hour|now+1fortnight|1767225600",
		"gpus":             "2|h100:2|h100:2,h200:1|h100|0|2k",
		"gres":             "gpu|gpu:2|gpu:h100|gpu:h100:2|gpu:0|none",
		"threads-per-core": "2",
	} {
		for value := range strings.SplitSeq(values, "|") {
			script := fmt.Sprintf("#!/bin/sh\n#SBATCH --%s='%s'\n", option, value)
			if d := r.compare([]byte(script)); d != "" {
				t.Errorf("--%s=%q: %s", option, value, d)
			}
		}
	}
}

// A sample of the public headers is read as the real sbatch reads it.
func TestHeadersAgainstSbatch(t *testing.T) {
	r := newRealSbatch(t)
	for i, h := range readHeaders(t) {
		text := strings.Join(h.Lines, "\n")
		switch {
		case i%4 != 0 && h.Accepted, strings.Contains(text, "\r"):
			continue
		case strings.Contains(text, "container-"):
			continue // of a plugin
		case strings.Contains(text, "--get-user-env=L"), strings.Contains(text, "--gpus-per-node=0"):
			continue // newer versions refuse it, Slurm 22.05 takes it
		case strings.HasSuffix(h.Source, "jobspec-cfg/run_fine_tuning_job.sh"):
			continue // it names more nodes than it asks for: 24.11 takes it, 22.05 does not
		}
		if d := r.compare(h.script().Data); d != "" {
			t.Errorf("%s: %s", h.Source, d)
		}
	}
}
