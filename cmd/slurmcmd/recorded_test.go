package slurmcmd_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmcmdtest"
)

// recording is command lines with what Slurm's own commands printed
// (testdata/recorded).
type recording struct {
	lines []string
	out   map[string]string
}

func readRecording(t *testing.T, file string) *recording {
	b, err := os.ReadFile("testdata/recorded/" + file)
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{out: map[string]string{}}
	for _, part := range strings.Split(string(b), "\n$ ")[1:] {
		line, out, _ := strings.Cut(part, "\n")
		r.lines = append(r.lines, line)
		r.out[line] = strings.TrimRight(out, "\n")
	}
	return r
}

// table reads what was printed with a delimiter, by column.
func table(t *testing.T, out string) (rows []map[string]string) {
	lines := strings.Split(out, "\n")
	head := strings.Split(lines[0], "|")
	for _, l := range lines[1:] {
		row := map[string]string{}
		for i, v := range strings.Split(l, "|") {
			row[head[i]] = v
		}
		rows = append(rows, row)
	}
	if len(rows) < 5 {
		t.Fatalf("only %d lines in a recording", len(rows))
	}
	return rows
}

func number(s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return x
}

// minutes reads cpu=79,mem=7931 as the server tells it.
func minutes(s string) map[string]float64 {
	out := map[string]float64{}
	for _, part := range slurmcmd.Split(s) {
		name, n, _ := strings.Cut(part, "=")
		switch {
		case name == "mem":
			out["memory"] = number(n) / 1024
		case number(n) != 0:
			out[name] = number(n)
		}
	}
	return out
}

// recordedShares is what the server would say where Slurm's said what was recorded.
func recordedShares(t *testing.T, r *recording) *api.Shares {
	rows := table(t, r.out["sshare -a -o acc,u,eff,fa,raws,rawu,norms,normu,lev,grptresm,grptresr,tresr -P"])
	out := &api.Shares{}
	var above []string
	for i, row := range rows {
		name := strings.TrimLeft(row["Account"], " ")
		depth := len(row["Account"]) - len(name)
		s := api.Share{
			Account: name, User: row["User"], Depth: depth, Norm: number(row["NormShares"]), Used: number(row["RawUsage"]),
			OfAll: number(row["NormUsage"]), Usage: number(row["EffectvUsage"]), Factor: number(row["FairShare"]), Raw: int64(number(row["RawShares"])),
			Limits: minutes(row["GrpTRESMins"]), Minutes: minutes(row["GrpTRESRaw"]), Rest: minutes(row["TRESRunMins"]),
		}
		switch level := row["LevelFS"]; {
		case i == 0:
			s.Raw, s.Norm = 1, 1
		case row["RawShares"] == "parent":
			s.Raw, s.Norm = -1, 0
		case level != "inf":
			x := number(level)
			s.Level = &x
		}
		if depth > 0 {
			s.Parent = above[depth-1]
		}
		if s.User == "" {
			above = append(above[:depth], name)
		}
		out.Shares = append(out.Shares, s)
	}
	return out
}

// recordedPriorities is the same for sprio. A job in several partitions has a line for
// each in Slurm.
func recordedPriorities(r *recording) *api.Priorities {
	weights := map[string]float64{
		"age": 1000, "association": 300, "fair_share": 10000, "job_size": 500, "partition": 700, "qos": 2000, "tres/cpu": 1000, "tres/memory": 3000,
	}
	out := &api.Priorities{Weights: weights}
	for _, line := range strings.Split(r.out[r.lines[0]], "\n") {
		v := strings.Split(line, "|") // i r u Y y S aA bB fF jJ pP qQ N t T
		p := api.Priority{Job: v[0], ID: uint64(number(v[0])), Partition: v[1], User: v[2], Priority: int64(number(v[3]))}
		sum := 0.0
		part := func(name string, factor, points float64) {
			p.Parts = append(p.Parts, api.PriorityPart{Name: name, Factor: factor, Points: points, Weight: weights[name]})
			sum += points
		}
		if v[19] != "" { // it was not set
			for i, name := range []string{"age", "association", "fair_share", "job_size", "partition", "qos"} {
				part(name, number(v[6+2*i]), number(v[6+2*i])*weights[name])
			}
			part("site", number(v[5]), number(v[5]))
			part("nice", number(v[18]), -number(v[18]))
			cpus, norm := 8.0, minutes(v[19]) // of 512
			if v[0] == "8" {
				cpus = 16
			}
			part("tres/cpu", norm["cpu"], cpus/512*1000)
			part("tres/memory", norm["memory"]*1024, number(v[4])*math.MaxUint32-sum)
		}
		out.Jobs = append(out.Jobs, p)
	}
	return out
}

// fine is a priority as a part of the highest, and a number with an exponent: of their
// last digits the record's other columns do not tell enough.
var fine = regexp.MustCompile(`(0\.0000\d{5}|\d\.\d{4})\d+(e-\d\d)|(0\.0000\d{5})\d+`)

// TestRecorded: sshare and sprio print what Slurm's own printed where they are told the
// same, to the byte. Standard error stands before or behind.
//
// What differs by intent: help texts; sprio -w writes the names of TRES as jobs have
// them, not as slurm.conf was written.
func TestRecorded(t *testing.T) {
	for _, file := range []string{"sshare-22.05.txt", "sprio-22.05.txt"} {
		r := readRecording(t, file)
		s := slurmcmdtest.New(t)
		if strings.HasPrefix(file, "sshare") {
			s.Answer["GET /v1/shares"] = recordedShares(t, r)
		} else {
			s.Answer["GET /v1/priorities"] = recordedPriorities(r)
		}
		for _, line := range r.lines {
			w := words(t, line)
			if line == "sshare" && slurmcmd.MyName() != "root" {
				continue // it shows whoever asks
			}
			got := s.Run(mains[w[0]], "", w[1:]...)
			want, code, failed := strings.Cut(r.out[line], "\nexit ")
			if n, _ := strconv.Atoi(code); failed && n != got.Code || !failed && got.Code != 0 {
				t.Errorf("%s: exit %d, Slurm's %s", line, got.Code, code)
			}
			want = strings.ReplaceAll(fine.ReplaceAllString(want, "$1$2$3"), "CPU=1000,Mem=3000", "cpu=1000,mem=3000")
			first := strings.TrimRight(fine.ReplaceAllString(got.Err+got.Out, "$1$2$3"), "\n")
			second := strings.TrimRight(fine.ReplaceAllString(got.Out+got.Err, "$1$2$3"), "\n")
			if want = strings.TrimRight(want, "\n"); first != want && second != want {
				t.Errorf("%s prints\n%s\nSlurm's\n%s", line, first, want)
			}
		}
	}
}
