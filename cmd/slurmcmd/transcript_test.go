package slurmcmd_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sacct"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scancel"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scontrol"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sinfo"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmcmdtest"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sprio"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/squeue"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sshare"
)

var update = flag.Bool("update", false, "write the transcripts anew")

var mains = map[string]func([]string, slurmcmd.Stdio) int{
	"squeue": squeue.Main, "sinfo": sinfo.Main, "sacct": sacct.Main, "scontrol": scontrol.Main, "scancel": scancel.Main, "sshare": sshare.Main, "sprio": sprio.Main,
}

// TestTranscripts runs the command lines of testdata/*.txt (those that begin with $)
// against one queue and compares what they print, and how they end.
func TestTranscripts(t *testing.T) {
	t.Setenv("TZ", "UTC")
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := slurmcmdtest.New(t).Queue()
			var got strings.Builder
			for _, line := range strings.Split(string(want), "\n") {
				switch {
				case strings.HasPrefix(line, "#"):
					fmt.Fprintln(&got, line)
				case strings.HasPrefix(line, "$ "):
					fmt.Fprintln(&got, line)
					words := words(t, line[2:])
					main := mains[words[0]]
					if main == nil {
						t.Fatalf("no command %s", words[0])
					}
					r := s.Run(main, "", words[1:]...)
					got.WriteString(r.Out)
					for _, l := range strings.Split(strings.TrimSuffix(r.Err, "\n"), "\n") {
						if r.Err != "" {
							fmt.Fprintln(&got, "! "+l)
						}
					}
					if r.Code != 0 {
						fmt.Fprintf(&got, "exit %d\n", r.Code)
					}
					fmt.Fprintln(&got)
				}
			}
			text := strings.TrimRight(got.String(), "\n") + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if text != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", text, want)
			}
		})
	}
}

// words splits a line at blanks outside of single quotes.
func words(t *testing.T, line string) (out []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out[len(out)-1] += part
			continue
		}
		if i > 0 && part != "" && part[0] != ' ' {
			t.Fatalf("a blank is missing behind a quote: %s", line)
		}
		out = append(out, strings.Fields(part)...)
		if strings.HasSuffix(part, " ") || part == "" {
			out = append(out, "")
		}
	}
	if out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}
