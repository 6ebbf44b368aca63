package study_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/sim/study"
	"github.com/coxswain-sched/coxswain/sim/trace"
)

const cluster = `
nodes:
  - names: gpu[1-4]
    cpus: 64
    memory: 512G
    gpus: 8
    gpu_type: H100
    gpu_memory: 80G
    leaf: 2
    features: [ib]
`

// swf is four jobs of 8, 8, 4 and 1 processors on 8.
const swf = `; MaxProcs: 8
1 0 -1 100 8 -1 -1 8 100 -1 1 1 1 -1 -1 -1 -1 -1
2 10 -1 50 8 -1 -1 8 60 -1 1 2 2 -1 -1 -1 -1 -1
3 20 -1 30 4 -1 -1 4 30 -1 1 1 1 -1 -1 -1 -1 -1
4 30 -1 90 1 -1 -1 1 40 -1 1 2 2 -1 -1 -1 -1 -1
`

func read(t *testing.T, name, text string) *trace.Log {
	t.Helper()
	log, err := trace.Read(name, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

// TestMeasures: a study small enough to work out by hand. 1 runs 0–100, 2 runs
// 100–150, then 3 (150–180) and 4 beside it, which its limit ends (150–190).
func TestMeasures(t *testing.T) {
	log := read(t, "a.swf", swf)
	r := study.Study{Name: "x", Log: log, Nodes: study.One(log.Procs), Limits: study.Recorded}.Run()
	if r.Jobs != 4 || r.Never != 0 || r.Cut != 1 || r.Makespan != 190 {
		t.Errorf("%+v", r)
	}
	if !near(r.Wait.Mean, (0+90+130+120)/4.0) || r.Wait.Most != 130 || r.Wait.Median != 120 {
		t.Errorf("waits %+v", r.Wait)
	}
	if want := (1 + 140/50.0 + 160/30.0 + 160/40.0) / 4; !near(r.Slowdown.Mean, want) {
		t.Errorf("slowdown %v, want %v", r.Slowdown.Mean, want)
	}
	if r.Promises.Jobs == 0 || r.Promises.Late != 0 {
		t.Errorf("promises %+v", r.Promises)
	}
	if len(r.Owners) != 2 || r.Owners[0].Name != "1" || !near(r.Owners[0].Used, (100*8+30*4)/3600.0) || r.Fairness <= 0 || r.Fairness > 1 {
		t.Errorf("owners %+v, fairness %v", r.Owners, r.Fairness)
	}
	if len(r.Bands) != 3 || r.Bands[2].Name != "5–8" || r.Bands[2].Jobs != 2 {
		t.Errorf("bands %+v", r.Bands)
	}
	// Between the first and the last submission all 8 are held.
	if !near(r.Allocation, 1) || r.Blocked != 0 {
		t.Errorf("allocation %v, idle in vain %v", r.Allocation, r.Blocked)
	}
}

// TestGangs: whole nodes and a rest, below switches, and a job larger than the cluster.
func TestGangs(t *testing.T) {
	nodes, err := study.ReadCluster("c.yaml", []byte(cluster))
	if err != nil || len(nodes) != 4 || nodes[0].Path[0] == nodes[2].Path[0] || len(nodes[3].Devices) != 8 || nodes[0].Devices[0].Type != "h100" {
		t.Fatalf("%+v, %v", nodes, err)
	}
	log := read(t, "a.csv", ",run_time,wait_time,submit_time,gpu_num\n0,100,0,0,20\n1,100,0,1,12\n2,100,0,2,40\n")
	r := study.Study{Log: log, Nodes: nodes, Limits: study.Recorded}.Run()
	if r.Never != 1 || r.Wait.Most != 0 {
		t.Errorf("%+v", r)
	}
	// 20 GPUs take 2 nodes and a part of a third: 2 leaves. 12 take the fourth and
	// the rest of the third: on one leaf.
	if r.Leaves != 1 {
		t.Errorf("leaves %v", r.Leaves)
	}
}

func TestLimits(t *testing.T) {
	log := read(t, "a.swf", swf)
	for limits, want := range map[study.Limits]int{study.Recorded: 1, study.Rounded: 0, study.Exact: 0, study.NoLimits: 0} {
		if r := (study.Study{Log: log, Nodes: study.One(8), Limits: limits}).Run(); r.Cut != want || r.Never != 0 {
			t.Errorf("%s: %d cut, want %d", limits, r.Cut, want)
		}
	}
}

// TestCycle: what happens between two cycles is seen at the next one.
func TestCycle(t *testing.T) {
	log := read(t, "a.swf", swf)
	r := study.Study{Log: log, Nodes: study.One(8), Limits: study.NoLimits, Cycle: 30 * time.Second}.Run()
	// 1 runs 0–100, seen at 120; 2 120–170, seen at 180; 3 and 4 from 180.
	if r.Wait.Mean != (0+110+160+150)/4.0 || r.Makespan != 270 {
		t.Errorf("mean wait %v, makespan %v", r.Wait.Mean, r.Makespan)
	}
}

// TestPoliciesDiffer: without backfill the small job does not pass.
func TestPoliciesDiffer(t *testing.T) {
	log := read(t, "a.swf", strings.Replace(swf, "0 -1 100 8 -1 -1 8", "0 -1 100 6 -1 -1 6", 1))
	with := study.Study{Log: log, Nodes: study.One(8), Limits: study.Recorded}.Run()
	without := study.Study{Log: log, Nodes: study.One(8), Limits: study.Recorded, Strict: true, Policy: &account.Policy{}}.Run()
	if with.Wait.Mean >= without.Wait.Mean {
		t.Errorf("mean wait %v with backfill, %v without", with.Wait.Mean, without.Wait.Mean)
	}
}

// TestDeterministic: the same study twice is the same, to the byte of the page.
func TestDeterministic(t *testing.T) {
	var text strings.Builder
	text.WriteString(",run_time,wait_time,submit_time,gpu_num\n")
	for i := range 500 {
		fmt.Fprintf(&text, "%d,%d,0,%d,%d\n", i, 60+i*37%5000, i*i%9000, 1<<(i%5))
	}
	nodes, err := study.ReadCluster("c.yaml", []byte(cluster))
	if err != nil {
		t.Fatal(err)
	}
	var pages [2]bytes.Buffer
	var results [2][]byte
	for i := range pages {
		log := read(t, "a.csv", text.String())
		clock := time.Unix(0, 0)
		r := study.Study{Name: "<x>", Log: log, Nodes: nodes, Limits: study.Rounded, Clock: func() time.Time { return clock }}.Run()
		if err := study.Page(&pages[i], "a & b", []*study.Result{r, r}); err != nil {
			t.Fatal(err)
		}
		if results[i], err = json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(results[0], results[1]) || !bytes.Equal(pages[0].Bytes(), pages[1].Bytes()) {
		t.Error("two runs differ")
	}
	page := pages[0].String()
	for _, want := range []string{"a &amp; b", "&lt;x&gt;", "Use over time", "Mean wait by size", "Who ran where", "<polyline", "</html>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, not := range []string{"NaN", "Inf", "http://", "https://", "<script"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q", not)
		}
	}
}

func TestBadClusters(t *testing.T) {
	for text, want := range map[string]string{
		"nodes: [{names: a, gpuz: 8}]":        `c.yaml:1:20: unknown field "gpuz"`,
		"nodes: 3":                            "c.yaml:1:8: ",
		"":                                    "it has no nodes",
		"nodes: [{cpus: 3}]":                  "nodes[0]: names: which?",
		"nodes: [{names: 'a[3-1]', cpus: 1}]": "nodes[0]: names: ",
		"nodes: [{names: a}]":                 "a node has cpus or gpus",
		"nodes: [{names: a, cpus: -1}]":       "not negative",
		"nodes: [{names: a, gpus: 1, gpu_type: v100, mig: [1g.5gb]}]":           `mig: gpu_type "v100" cannot be divided`,
		"nodes: [{names: a, gpus: 1, gpu_type: h100, mig: [4g.40gb, 4g.40gb]}]": "mig: 4g.40gb, 4g.40gb take 8 of 7 compute slices",
		"nodes: [{names: a, gpus: 17}]":                                         "at most 16",
		"nodes: [{names: a, cpus: 1, memory: 3X}]":                              `memory: "3X" is not a size`,
		"nodes: [{names: a, cpus: 1}, {names: a, cpus: 1}]":                     "nodes[1]: names: a was named before",
		"nodes: [{names: a, cpus: 1, memory: 999999999999T}]":                   "too large",
		"nodes: [{names: a, cpus: 1, leaf: 2, path: [s]}]":                      "path: leaf says it already",
	} {
		if _, err := study.ReadCluster("c.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
