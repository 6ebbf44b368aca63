package trace_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/sim/trace"
	"github.com/coxswain-sched/coxswain/sim/trace/tracetest"
)

// TestPublishedTraces: each of them is read as a whole, with the number of rows that
// its manifest says.
func TestPublishedTraces(t *testing.T) {
	for _, x := range []struct {
		name, format string
		rows         int
		procs        int
		width        int // the largest
	}{
		{"swf/KTH-SP2-1996-2.1-cln.swf.gz", "swf", 28476, 100, 100},
		{"swf/LANL-CM5-1994-4.1-cln.swf.gz", "swf", 122060, 1024, 1024},
		{"swf/NASA-iPSC-1993-3.1-cln.swf.gz", "swf", 18239, 128, 128},
		{"swf/lublin_256.swf.gz", "swf", 10000, 256, 256},
		{"swf/predictsim_KTH-SP2_log.swf.gz", "swf", 28489, 100, 0},
		{"lumos/data_mira.csv.gz", "lumos-mira", 22508, 0, 0},
		{"lumos/philly_df_schedule.csv.gz", "lumos-philly", 151816, 0, 128},
		{"philly/sia_philly.csv.gz", "sia", 82247, 0, 0},
		{"philly/chronus_trace_job_Philly_SLO.csv.gz", "chronus", 30940, 0, 0},
		{"philly/muri_trace1.csv", "muri", 1494, 0, 32},
		{"philly/muri_trace1_pr.csv", "muri", 1494, 0, 32},
		{"philly/muri_trace3.csv", "muri", 992, 0, 32},
		{"philly/muri_trace3_pr.csv", "muri", 992, 0, 32},
		{"philly/muri_cluster_trace.csv", "muri", 400, 0, 0},
		{"openb2023/openb_pod_list_default.csv.gz", "openb", 8152, 0, 0},
		{"openb2023/openb_pod_list_gpuspec33.csv.gz", "openb", 8152, 0, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			log, err := trace.Open(tracetest.Path(t, x.name))
			if err != nil {
				t.Fatal(err)
			}
			width := 0
			var last time.Duration
			for _, j := range log.Jobs {
				width = max(width, j.CPUs, j.GPUs)
				if j.Submit < last {
					t.Fatalf("job %d of line %d is before the one before it", j.ID, j.Line)
				}
				last = j.Submit
			}
			if log.Format != x.format || log.Procs != x.procs || x.width != 0 && width != x.width {
				t.Errorf("%s, %d processors, widest %d", log.Format, log.Procs, width)
			}
			if got := len(log.Jobs) + log.Left; got != x.rows {
				t.Errorf("%d rows, want %d (%d of them could not have run)", got, x.rows, log.Left)
			}
		})
	}
}

func TestPublishedLists(t *testing.T) {
	nodes, err := trace.Machines(tracetest.Path(t, "openb2023/openb_node_list_gpu_node.csv"))
	gpus := 0
	for _, n := range nodes {
		gpus += n.GPUs
	}
	if err != nil || len(nodes) != 1213 || gpus != 6212 {
		t.Errorf("%d nodes with %d GPUs, %v; want 1213 with 6212", len(nodes), gpus, err)
	}
	pods, err := trace.Pods(tracetest.Path(t, "openb2023/openb_pod_list_multigpu20.csv.gz"))
	if err != nil || len(pods) != 8324 || pods[0].Name != "openb-pod-0000" {
		t.Errorf("%d pods, %v", len(pods), err)
	}
}

const line = "1 10 -1 60 4 -1 -1 8 120 -1 1 3 2 -1 -1 -1 -1 -1\n"

func TestRecords(t *testing.T) {
	log, err := trace.Read("x.swf", strings.NewReader("; MaxProcs: 64\n; UnixStartTime: 100\n\n"+line+
		"2 5 3 60 4 -1 -1 -1 -1 -1 1 3 2 -1 -1 -1 -1 -1\n3 5 3 -1 4 -1 -1 -1 -1 -1 5 3 2 -1 -1 -1 -1 -1\n"))
	if err != nil || len(log.Jobs) != 2 || log.Left != 1 || log.Procs != 64 || log.Start.Unix() != 105 {
		t.Fatalf("%+v, %v", log, err)
	}
	if a, b := log.Jobs[0], log.Jobs[1]; a.ID != 2 || a.CPUs != 4 || a.Limit != 0 || a.Waited != 3*time.Second ||
		b.ID != 1 || b.CPUs != 8 || b.Submit != 5*time.Second || b.Limit != 2*time.Minute || b.User != "3" {
		t.Errorf("%+v", log.Jobs)
	}
}

// TestBadLines: what is wrong is said with file, line and field.
func TestBadLines(t *testing.T) {
	lumos := ",run_time,wait_time,submit_time,gpu_num\n"
	for _, x := range []struct{ name, text, want string }{
		{"a.swf", line + "1 2 3\n", "a.swf:2: a record has 18 fields, this line has 3"},
		{"a.swf", strings.Replace(line, "60", "6o", 1), `a.swf:1: field 4 run time: "6o" is not a number`},
		{"a.swf", strings.Replace(line, " 8 ", " 8.5 ", 1), `a.swf:1: field 8 requested processors: "8.5" is not a whole number`},
		{"a.swf", strings.Replace(line, "120 -1 1", "120 -1 9", 1), `a.swf:1: field 11 status: "9" is not a status`},
		{"a.swf", "; MaxProcs: many\n", `a.swf:1: field MaxProcs: "many" is not a number of processors`},
		{"a.swf", strings.Replace(line, "60", "1e300", 1), `field 4 run time: "1e300"`},
		{"a.swf", "", "there is no job"},
		{"a.csv", "a,b\n", "a.csv:1: this is not the heading of a trace that cox reads (swf, muri"},
		{"a.csv", "", "a.csv:1: this is not the heading"},
		{"a.csv", lumos + "0,1,2,3\n", "a.csv:2: a row has 5 fields, this one has 4"},
		{"a.csv", lumos + "0,1,2,3,4\n1,x,2,3,4\n", `a.csv:3: field run_time: "x" is not a number`},
		{"a.csv", lumos + "0,1,2,3,NaN\n", `a.csv:2: field gpu_num: "NaN" is not a number`},
		{"a.csv", "timestamp,duration,num_gpus,gpu_time,cluster\n2017,1,1,1,a\n", `a.csv:2: field timestamp: "2017" is not a time`},
		{"a.csv.gz", "\x1f\x8b\x08", "a.csv.gz:1: it is not whole"},
		{"a.swf", strings.Repeat("1", 1<<21), "a.swf:1: the line is longer"},
	} {
		_, err := trace.Read(x.name, strings.NewReader(x.text))
		var where *trace.Error
		if err == nil || !errors.As(err, &where) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%.40q: %v, want %s", x.text, err, x.want)
		}
	}
}

// FuzzRead: nothing makes the readers panic, and what they hand out could have run.
func FuzzRead(f *testing.F) {
	f.Add("a.swf", line)
	f.Add("a.csv", ",run_time,wait_time,submit_time,gpu_num\n0,1,2,3,4\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		log, err := trace.Read(name, strings.NewReader(text))
		if err != nil {
			return
		}
		for _, j := range log.Jobs {
			if j.Run <= 0 || j.CPUs+j.GPUs <= 0 || j.Submit < 0 {
				t.Fatalf("%+v", j)
			}
		}
	})
}
