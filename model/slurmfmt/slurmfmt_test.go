package slurmfmt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseTimeLimit(t *testing.T) {
	for s, want := range map[string]string{
		"5": "00:05:00", "5:30": "00:06:00", "1:2:3": "01:03:00", "0:0:90": "00:02:00", "0:30": "00:01:00",
		"1-2": "1-02:00:00", "1-2:3": "1-02:03:00", "1-2:3:4": "1-02:04:00", "1-25": "2-01:00:00",
		"1-0:61": "1-01:01:00", "1:60": "00:02:00", "1-": "1-00:00:00", "99:59:59": "4-04:00:00",
		"0": "UNLIMITED", "-1": "UNLIMITED", "INFINITE": "UNLIMITED", "infinite": "UNLIMITED", "Unlimited": "UNLIMITED",
	} {
		d, err := ParseTimeLimit(s)
		if got := FormatTimeLimit(d); err != nil || got != want {
			t.Errorf("ParseTimeLimit(%q) = %s, %v; want %s", s, got, err, want)
		}
	}
	for _, s := range []string{
		"28:00:00:00", "UnLim", "1:", ":30", "a", "", "1-2-3", " 5", "5 ", "1.5", "+5", "1:2:3.5", "5m", "-2",
		"1-1:1:1:1", "99999999999", "99999999999999999999", "40000-0", "-",
	} {
		if d, err := ParseTimeLimit(s); err == nil {
			t.Errorf("ParseTimeLimit(%q) = %v, want an error", s, d)
		}
	}
}

func TestTimeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, int64(MaxTimeLimit/time.Minute)).Draw(t, "minutes")) * time.Minute
		got, err := ParseTimeLimit(FormatTimeLimit(d))
		if err != nil || got != d {
			t.Fatalf("%v prints %s, reads %v, %v", d, FormatTimeLimit(d), got, err)
		}
	})
}

func TestFormatElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0:00", 5*time.Minute + 3*time.Second + 999*time.Millisecond: "5:03",
		65*time.Minute + 3*time.Second: "1:05:03", 49*time.Hour + 63*time.Second: "2-01:01:03", -time.Second: "0:00",
	} {
		if got := FormatElapsed(d); got != want {
			t.Errorf("FormatElapsed(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestParseWhen(t *testing.T) {
	now := time.Date(2026, 11, 21, 13, 29, 8, 0, time.UTC)
	const form = "2006-01-02T15:04:05"
	for s, want := range map[string]string{
		"now": "2026-11-21T13:29:08", "now+5": "2026-11-21T13:29:13", "now+1hour": "2026-11-21T14:29:08",
		"now + 2 days": "2026-11-23T13:29:08", "now+1weeks": "2026-11-28T13:29:08", "now+3min": "2026-11-21T13:32:08",
		"now-5": "2026-11-21T13:29:03", "16:00": "2026-11-21T16:00:00", "4:00PM": "2026-11-21T16:00:00",
		"4:00 pm": "2026-11-21T16:00:00", "12:05am": "2026-11-22T00:05:00", "12:00": "2026-11-22T12:00:00",
		"010127": "2027-01-01T00:00:00", "0102": "2027-01-02T00:00:00", "1231": "2026-12-31T00:00:00",
		"01/20/27": "2027-01-20T00:00:00", "1/20": "2027-01-20T00:00:00", "01.20.27": "2027-01-20T00:00:00",
		"2027-01-20": "2027-01-20T00:00:00", "2027-01-20T12:34": "2027-01-20T12:34:00",
		"2027-01-20T12:34:56": "2027-01-20T12:34:56", "2027-01-20 12:34": "2027-01-20T12:34:00",
		"today": "2026-11-21T00:00:00", "tomorrow": "2026-11-22T00:00:00", "midnight": "2026-11-22T00:00:00",
		"noon": "2026-11-22T12:00:00", "teatime": "2026-11-21T16:00:00", "fika": "2026-11-21T15:00:00",
		"elevenses": "2026-11-22T11:00:00", "noon tomorrow": "2026-11-22T12:00:00", "0229": "2028-02-29T00:00:00",
	} {
		got, err := ParseWhen(s, now)
		if err != nil || got.Format(form) != want {
			t.Errorf("ParseWhen(%q) = %s, %v; want %s", s, got.Format(form), err, want)
		}
	}
	for _, s := range []string{
		"", "now+", "foo", "25:00", "20.01.27", "2027-13-01", "2027-02-29", "tomorrow+1hour", "16:00+1hour",
		"now+1fortnight", "uptime", "1767225600", "13:00pm", "12:60", "16:00 17:00", "now 5", "0230", "now+99999999999weeks",
		"9999-01-01", "uts99999999999", "2262-01-01",
	} {
		if got, err := ParseWhen(s, now); err == nil {
			t.Errorf("ParseWhen(%q) = %v, want an error", s, got)
		}
	}
}

func TestParseMemory(t *testing.T) {
	for s, want := range map[string]int64{
		"5": 5 << 20, "5k": 1 << 20, "1025K": 2 << 20, "5m": 5 << 20, "5MB": 5 << 20, "5mb": 5 << 20, "5g": 5 << 30,
		"5Gb": 5 << 30, "5T": 5 << 40, "5TB": 5 << 40, "0": 0, "+5": 5 << 20,
	} {
		if got, err := ParseMemory(s); err != nil || got != want {
			t.Errorf("ParseMemory(%q) = %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"5GiB", "5P", "-1", "1.5G", "", "G", "5X", "5GBs", "5B", "5 G", "99999999999999", "99999999T", "b", "1bb"} {
		if got, err := ParseMemory(s); err == nil {
			t.Errorf("ParseMemory(%q) = %d, want an error", s, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<40).Draw(t, "MiB") << 20
		if got, err := ParseMemory(FormatMemory(n)); err != nil || got != n {
			t.Fatalf("%d prints %s, reads %d, %v", n, FormatMemory(n), got, err)
		}
	})
}

func TestCounts(t *testing.T) {
	for s, want := range map[string][]int{"72(x2),36": {72, 72, 36}, "2(x3),1": {2, 2, 2, 1}, "4": {4}, "1,2,1": {1, 2, 1}} {
		got, err := ParseCounts(s)
		if err != nil || !slices.Equal(got, want) || FormatCounts(want) != s {
			t.Errorf("ParseCounts(%q) = %v, %v; FormatCounts = %s", s, got, err, FormatCounts(want))
		}
	}
	for _, s := range []string{"", "a", "2(x)", "2(x0)", "2(x3", "2x3", "2,", "-1", "2(x99999999999)"} {
		if got, err := ParseCounts(s); err == nil {
			t.Errorf("ParseCounts(%q) = %v, want an error", s, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 30).Draw(t, "counts")
		if got, err := ParseCounts(FormatCounts(want)); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v prints %s, reads %v, %v", want, FormatCounts(want), got, err)
		}
	})
}

func TestParseArray(t *testing.T) {
	for s, want := range map[string]string{
		"1": "[1] 0", "0-3": "[0 1 2 3] 0", "1,3": "[1 3] 0", "1-7:2": "[1 3 5 7] 0", "1-7:2%3": "[1 3 5 7] 3",
		"1-3%0": "[1 2 3] 0", "5,1,1-2": "[1 2 5] 0", "[1-3]": "[1 2 3] 0", "[1-3]%2": "[1 2 3] 2", "63-65": "[63 64 65] 0",
		"1-9:100": "[1] 0", "1000": "[1000] 0",
		"1-3%2,5": "[1 2 3 5] 2", "1%1,3-4,6": "[1 3 4 6] 1",
	} {
		a, err := ParseArray(s, DefaultMaxArraySize)
		if got := fmt.Sprint(a.Indices(), a.MaxRunning); err != nil || got != want {
			t.Errorf("ParseArray(%q) = %s, %v; want %s", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", "a", "3-1", "1-5:0", "%3", "1-3%2,x", "1-3%2,5%1", "1%2,1001", "[1-3", "1-3%", "1-", "-1", "1:2", "1001", "0-1001", "1,,2", "1-2-3",
		"99999999999999999999", strings.Repeat("0-1000,", 9000) + "1",
	} {
		_, err := ParseArray(s, DefaultMaxArraySize)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("ParseArray(%.40q) gives %v, want an *Error", s, err)
		} else if e.Offset+e.Len > len(s) {
			t.Errorf("ParseArray(%.40q) blames bytes %d+%d", s, e.Offset, e.Len)
		}
	}
}

func TestArrayRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfNDistinct(rapid.Uint32Range(0, 60), 1, 30, rapid.ID[uint32]).Draw(t, "indices")
		slices.Sort(want)
		text := FormatArrayIndices(want)
		a, err := ParseArray(text, DefaultMaxArraySize)
		if err != nil || !slices.Equal(a.Indices(), want) {
			t.Fatalf("%v prints %s, reads %v, %v", want, text, a.Indices(), err)
		}
	})
	for want, idx := range map[string][]uint32{"1-3,7": {1, 2, 3, 7}, "1-7:2": {1, 3, 5, 7}, "1-2": {1, 2}, "1,3": {1, 3}, "0": {0}, "1,3,6-8": {1, 3, 6, 7, 8}} {
		if got := FormatArrayIndices(idx); got != want {
			t.Errorf("FormatArrayIndices(%v) = %s, want %s", idx, got, want)
		}
	}
}

func TestParseJobID(t *testing.T) {
	for _, s := range []string{"123", "123_4", "123_[1-9%3]", "123_[1,3-5]", "93+1", "123.0", "123.batch", "123_4.0", "93+1.extern"} {
		id, err := ParseJobID(s)
		if err != nil || id.String() != s {
			t.Errorf("ParseJobID(%q) = %v, %v", s, id, err)
		}
	}
	if id, _ := ParseJobID("7_3"); id.Job != 7 || id.Het != -1 {
		t.Errorf("ParseJobID(7_3) = %+v", id)
	} else if task, ok := id.Task(); !ok || task != 3 {
		t.Errorf("task of 7_3 is %d, %v", task, ok)
	}
	for _, s := range []string{"", "0", "a", "1_", "1_a", "1_1-3", "1_[1", "1+", "1+x", "1.", "1.foo", "-1", "1 ", "1_[]"} {
		if id, err := ParseJobID(s); err == nil {
			t.Errorf("ParseJobID(%q) = %+v, want an error", s, id)
		}
	}
}

func printGRES(list []GRES) string {
	var b strings.Builder
	for _, g := range list {
		fmt.Fprintf(&b, "%s/%s=%d ", g.Name, g.Type, g.Count)
	}
	return strings.TrimSpace(b.String())
}

func TestParseGRES(t *testing.T) {
	for s, want := range map[string]string{
		"gpu": "gpu/=1", "gpu:2": "gpu/=2", "gpu:h100": "gpu/h100=1", "gpu:h100:2": "gpu/h100=2", "gpu:0": "gpu/=0",
		"gpu:1,vmem:20g": "gpu/=1 vmem/=21474836480", "gres:gpu:2": "gpu/=2", "none": "", "": "", "gpu:1g.10gb:2": "gpu/1g.10gb=2",
		"gpu:a100_1g.5gb": "gpu/a100_1g.5gb=1", "gpu:P100_SXM:4": "gpu/P100_SXM=4", "mps:50": "mps/=50",
		"gpu=2": "gpu/=2", "gpu:a100=2": "gpu/a100=2", "gres/gpu=1": "gpu/=1",
	} {
		if got, err := ParseGRES(s); err != nil || printGRES(got) != want {
			t.Errorf("ParseGRES(%q) = %s, %v; want %s", s, printGRES(got), err, want)
		}
	}
	for _, s := range []string{"gpu:h100:x", "gpu=x", "gpu=2=2", "gpu:=2", "=2", "gpu:-1", "gpu:2(S:0)", "gpu:a:b:2", ":2", "gpu:", "gpu:1,", "gpu::2", "gpu:2x", "gpu:2.5", "gpu:99999999999999999999"} {
		if got, err := ParseGRES(s); err == nil {
			t.Errorf("ParseGRES(%q) = %s, want an error", s, printGRES(got))
		}
	}
	for s, want := range map[string]string{
		"2": "gpu/=2", "h100:2": "gpu/h100=2", "h100:2,a100:1": "gpu/h100=2 gpu/a100=1", "h100": "gpu/h100=1", "gpu:2": "gpu/=2", "0": "gpu/=0",
	} {
		if got, err := ParseGPUs(s); err != nil || printGRES(got) != want {
			t.Errorf("ParseGPUs(%q) = %s, %v; want %s", s, printGRES(got), err, want)
		}
	}
	for _, s := range []string{"", "a:b:c", "-1", "h100:", ":2", "h100:x", "2,"} {
		if got, err := ParseGPUs(s); err == nil {
			t.Errorf("ParseGPUs(%q) = %s, want an error", s, printGRES(got))
		}
	}
}

func TestParseTRES(t *testing.T) {
	got, err := ParseTRES("cpu=3,mem:4G,gres/gpu:h100=2,gres:gpu,license/x:1")
	if err != nil || len(got) != 5 {
		t.Fatalf("ParseTRES = %v, %v", got, err)
	}
	if got[0].Value != "3" || got[1].Value != "4G" || got[2].Type != "h100" || got[2].GRES.Count != 2 || got[3].GRES.Count != 1 || got[4].Name != "license/x" {
		t.Errorf("ParseTRES = %+v", got)
	}
	for _, s := range []string{"", "cpu", "gres/", "gres/gpu:a:b:c", "cpu:1,,"} {
		if got, err := ParseTRES(s); err == nil {
			t.Errorf("ParseTRES(%q) = %+v, want an error", s, got)
		}
	}
}

func TestParseSignal(t *testing.T) {
	for s, want := range map[string]Signal{
		"USR1": {10, time.Minute, false, false}, "10": {10, time.Minute, false, false}, "B:USR1@30": {10, 30 * time.Second, true, false},
		"R:TERM": {15, time.Minute, false, true}, "SIGUSR1": {10, time.Minute, false, false}, "BR:usr2@100": {12, 100 * time.Second, true, true},
		"USR1@": {10, 0, false, false},
	} {
		if got, err := ParseSignal(s); err != nil || got != want {
			t.Errorf("ParseSignal(%q) = %+v, %v; want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "B@3", "USR1@x", "@5", "foo", "B:", "KILL@70000", "X:USR1", "0", "99"} {
		if got, err := ParseSignal(s); err == nil {
			t.Errorf("ParseSignal(%q) = %+v, want an error", s, got)
		}
	}
}

func TestExpandName(t *testing.T) {
	n := Names{Job: 128, ArrayJob: 36, Task: 17, JobName: "train", User: "anna", Node: "v1", NodeRank: 2, Rank: 3, Step: "0", Restarts: 1}
	for p, want := range map[string]string{
		"slurm-%j.out": "slurm-128.out", "slurm-%A_%a.out": "slurm-36_17.out", "job%J.out": "job128.0.out", "job%4j.out": "job0128.out",
		"job%j-%2t.out": "job128-03.out", "%x/%u.%N.%n.%s.%b.%r": "train/anna.v1.2.0.7.1", "100%%": "100%", "%5N": "v1",
		"%z%": "%z%", "%9": "%9", `\%j`: "%j", `a\\%x`: "a%x", "%99999999999999999999j": "0000000128", "%4s": "0000",
	} {
		if got := ExpandName(p, n); got != want {
			t.Errorf("ExpandName(%q) = %q, want %q", p, got, want)
		}
	}
	batch := Names{Job: 5, Task: NotArray, Step: "batch"}
	if got := ExpandName("%A_%a-%J", batch); got != "5_4294967294-5" {
		t.Errorf("outside an array: %s", got)
	}
}

func TestStates(t *testing.T) {
	for _, s := range stateCodes {
		code, ok := StateCode(s.name)
		name, err := ParseState(strings.ToLower(code))
		if !ok || err != nil || name != s.name {
			t.Errorf("%s → %s → %s, %v", s.name, code, name, err)
		}
	}
	if _, err := ParseState("XX"); err == nil {
		t.Error("ParseState(XX) succeeded")
	}
}

func FuzzTime(f *testing.F) {
	for _, s := range []string{"5", "1:2:3", "1-2:3:4", "UNLIMITED", "now+1hour", "2027-01-20T12:34", "4:00 pm", "0229"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 21, 13, 29, 8, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		_, err := ParseWhen(s, now)
		checkError(t, s, err)
		d, err := ParseTimeLimit(s)
		checkError(t, s, err)
		if err != nil {
			return
		}
		if d < 0 || d%time.Minute != 0 {
			t.Fatalf("limit %v", d)
		}
		if again, err := ParseTimeLimit(FormatTimeLimit(d)); err != nil || again != d {
			t.Fatalf("%v prints %s, reads %v, %v", d, FormatTimeLimit(d), again, err)
		}
	})
}

func FuzzMemory(f *testing.F) {
	for _, s := range []string{"5", "5k", "1.5G", "5TB", "8796093022207"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseMemory(s)
		checkError(t, s, err)
		if err != nil {
			return
		}
		if again, err := ParseMemory(FormatMemory(n)); err != nil || again != n {
			t.Fatalf("%d prints %s, reads %d, %v", n, FormatMemory(n), again, err)
		}
	})
}

func FuzzValues(f *testing.F) {
	for _, s := range []string{"1-7:2%3", "72(x2),36", "gpu:h100:2,mps:5", "B:USR1@30", "123_[1-9%3]", "%5j-%%%x", "gres/gpu=2,cpu:3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, errA := ParseArray(s, DefaultMaxArraySize)
		_, errC := ParseCounts(s)
		_, errG := ParseGRES(s)
		_, errP := ParseGPUs(s)
		_, errS := ParseSignal(s)
		_, errT := ParseTRES(s)
		id, errJ := ParseJobID(s)
		for _, err := range []error{errA, errC, errG, errP, errS, errT, errJ} {
			checkError(t, s, err)
		}
		if errJ == nil {
			if again, err := ParseJobID(id.String()); err != nil || again != id {
				t.Fatalf("%+v prints %s, reads %+v, %v", id, id, again, err)
			}
		}
		ExpandName(s, Names{})
	})
}

// checkError wants an *Error whose span lies in the text.
func checkError(t *testing.T, s string, err error) {
	var e *Error
	if err != nil && (!errors.As(err, &e) || e.Text != s || e.Offset < 0 || e.Len < 0 || e.Offset+e.Len > len(s)) {
		t.Fatalf("%q: error %#v", s, err)
	}
}
