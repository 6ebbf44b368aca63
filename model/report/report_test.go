package report

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// midnight is the beginning of the window of the tests, which lasts ten hours.
var midnight = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

func at(h float64) int64 { return midnight.Unix() + int64(h*hour) }

func gpus(n float64) Amounts {
	a := Amounts{Nodes: 1, CPUs: 4, Memory: 8 << 30}
	if n > 0 {
		a.AddDevice("h100", n)
	}
	return a
}

// ran is a job that ran from an hour to another one; to 0: it runs.
func ran(from, to, limit, devices float64) Record {
	r := Record{User: "anna", Account: "nlp", QOS: "normal", Pool: "a", Submitted: at(from - 1), Eligible: at(from - 1), Limit: int64(limit * hour), Asked: gpus(devices)}
	a := Attempt{Started: at(from), Held: gpus(devices)}
	if to != 0 {
		a.Ended, r.Ended = at(to), at(to)
	}
	r.Attempts = []Attempt{a}
	return r
}

func makeReport(q Query, records ...Record) *Report {
	q.From, q.To, q.Now, q.Scope = midnight, midnight.Add(10*time.Hour), midnight.Add(10*time.Hour), ScopeAll
	if q.By == nil {
		q.By = []Key{ByAccount}
	}
	b := NewBuilder(q)
	for i := range records {
		b.Add(&records[i])
	}
	return b.Report()
}

// TestUsage: hours are of the part of an attempt within the window; what was asked for is the time
// limit, and without one what was held; every attempt counts; suspended time does not.
//
// Seen to fail with: the limit of a job without one taken for nothing; a window that cuts nothing.
func TestUsage(t *testing.T) {
	half := ran(-2, 2, 8, 2) // half of it before the window
	again := ran(4, 5, 2, 1)
	again.Attempts = slices.Insert(again.Attempts, 0, Attempt{Started: at(2), Ended: at(3), Held: gpus(1), Lost: true})
	asleep := ran(1, 4, 0, 1)
	asleep.Attempts[0].Suspended = hour
	measured := ran(0, 4, 4, 2)
	measured.Attempts[0].Used = &rusage.Record{Total: rusage.Use{Known: rusage.CPU, User: 6 * time.Hour, System: 2 * time.Hour}, GPUs: rusage.GPUs{Count: 2, Busy: 25}}
	for _, c := range []struct {
		name                  string
		r                     Record
		jobs, asked, gpu, cpu float64
		used, busy            float64
	}{
		{"whole", ran(1, 3, 4, 2), 1, 8, 4, 8, -1, -1},
		{"without a limit", ran(1, 3, 0, 2), 1, 4, 4, 8, -1, -1},
		{"half of it before", half, 1, 8, 4, 8, -1, -1},
		{"running", ran(8, 0, 24, 1), 1, 24, 2, 8, -1, -1},
		{"two attempts", again, 1, 4, 2, 8, -1, -1},
		{"suspended", asleep, 1, 2, 2, 8, -1, -1},
		{"before", ran(-3, -1, 4, 2), 0, 0, 0, 0, -1, -1},
		{"after", ran(10, 12, 4, 2), 0, 0, 0, 0, -1, -1},
		{"a part of a device", ran(1, 3, 2, 0.25), 1, 0.5, 0.5, 8, -1, -1},
		{"measured", measured, 1, 8, 8, 16, 2, 25},
	} {
		r := makeReport(Query{Kind: Usage}, c.r)
		got := []float64{*r.Total.Jobs, *r.Total.GPUAsked, *r.Total.GPUHeld, *r.Total.CPUHeld, number(r.Total.GPUUsed), number(r.Total.GPUBusy)}
		if want := []float64{c.jobs, c.asked, c.gpu, c.cpu, c.used, c.busy}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
	}
}

// TestNoteOnMeasured: a report says on how many of the GPU-hours what was idle rests.
//
// Seen to fail with the part alone, without the hours.
func TestNoteOnMeasured(t *testing.T) {
	measured, other := ran(0, 4, 4, 2), ran(0, 4, 4, 6)
	measured.Attempts[0].Used = &rusage.Record{GPUs: rusage.GPUs{Count: 2, Busy: 25}}
	for _, c := range []struct {
		jobs []Record
		want []string
	}{
		{[]Record{measured}, nil},
		{[]Record{measured, other}, []string{"What of the GPUs was used and idle is of 8.00 of the 32.0 GPU-hours allocated (25 %): nobody measured the others."}},
		{[]Record{other}, []string{"Nobody measured how these GPUs were used: what was idle is not known."}},
	} {
		if r := makeReport(Query{Kind: Efficiency}, c.jobs...); !slices.Equal(r.Notes, c.want) {
			t.Errorf("%q, want %q", r.Notes, c.want)
		}
	}
}

func number(x *float64) float64 {
	if x == nil {
		return -1
	}
	return *x
}

// TestWindowsAddUp: the hours of windows that follow each other are those of all of them, and rows
// add up to the total.
//
// Seen to fail with: an asked time that is whole in each window.
func TestWindowsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs []Record
		for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
			from := rapid.Float64Range(-5, 9).Draw(t, "from")
			r := ran(from, from+rapid.Float64Range(0.01, 9).Draw(t, "length"), rapid.Float64Range(0, 20).Draw(t, "limit"), float64(rapid.IntRange(0, 8).Draw(t, "devices")))
			r.Account = []string{"nlp", "vision", ""}[i%3]
			jobs = append(jobs, r)
		}
		hours := func(from, to float64) (sum [3]float64) {
			q := Query{Kind: Usage, By: []Key{ByAccount}, From: time.Unix(at(from), 0), To: time.Unix(at(to), 0), Now: time.Unix(at(30), 0)}
			b := NewBuilder(q)
			for i := range jobs {
				b.Add(&jobs[i])
			}
			r := b.Report()
			var rows [3]float64
			for i := range r.Rows {
				rows[0] += *r.Rows[i].GPUAsked
				rows[1] += *r.Rows[i].GPUHeld
				rows[2] += *r.Rows[i].CPUHeld
			}
			sum = [3]float64{*r.Total.GPUAsked, *r.Total.GPUHeld, *r.Total.CPUHeld}
			for i := range sum {
				if math.Abs(sum[i]-rows[i]) > 1e-4 {
					t.Fatalf("rows come to %v, the total is %v", rows, sum)
				}
			}
			return sum
		}
		cut := rapid.Float64Range(-4, 19).Draw(t, "cut")
		whole, first, second := hours(-10, 30), hours(-10, cut), hours(cut, 30)
		for i := range whole {
			if math.Abs(whole[i]-first[i]-second[i]) > 1e-4 {
				t.Fatalf("%v and %v are not %v", first, second, whole)
			}
		}
	})
}

// TestWaits: quantiles of the waits of those that started in the window, by size and account; those
// that wait are counted apart.
//
// Seen to fail with: waits from the submission of a job that was not eligible.
func TestWaits(t *testing.T) {
	var jobs []Record
	for i := range 100 {
		r := ran(5, 6, 2, 1)
		r.Submitted, r.Eligible = at(0), r.Attempts[0].Started-int64(i+1) // it waited for something else before
		jobs = append(jobs, r)
	}
	large := ran(5, 6, 2, 128)
	large.Submitted, large.Eligible = at(3), at(3)
	waits := Record{Account: "nlp", Submitted: at(6), Eligible: at(7), Waits: true, Asked: gpus(0)}
	never := Record{Account: "nlp", Submitted: at(6), Ended: at(7), Asked: gpus(0)}
	r := makeReport(Query{Kind: Waits}, append(jobs, large, waits, never, ran(-3, 4, 0, 1))...)
	var got []string
	for i := range r.Rows {
		x := &r.Rows[i]
		got = append(got, fmt.Sprint(x.Account, " ", x.Size, " ", *x.Jobs, " ", number(x.WaitMedian), number(x.WaitP90), number(x.WaitP99), number(x.WaitMost), " ", *x.Waiting, number(x.WaitingFor)))
	}
	want := []string{
		"nlp 1 node, no GPU 0 -1 -1 -1 -1 1 10800",
		"nlp 1 GPU or less 100 50 90 99 100 0 -1",
		"nlp 65+ GPUs 1 7200 7200 7200 7200 0 -1",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
}

// TestHistogram: a quantile is that of the numbers, sorted: exact below 256, else at most one per cent
// too small.
//
// Seen to fail with: buckets of half as many numbers.
func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64Range(0, 1<<uint(rapid.IntRange(1, 40).Draw(t, "bits"))), 1, 200).Draw(t, "numbers")
		var h histogram
		for _, n := range all {
			h.add(n)
		}
		slices.Sort(all)
		part := rapid.Float64Range(0.01, 1).Draw(t, "part")
		want := all[max(int(math.Ceil(part*float64(len(all))))-1, 0)]
		if got := h.quantile(part); got > want || want < 256 && got != want || float64(want-got) > 0.01*float64(want) {
			t.Fatalf("quantile %g of %v is %d, not %d", part, all, got, want)
		}
	})
}

// TestEfficiency: what was idle, asked for too much, or lost.
func TestEfficiency(t *testing.T) {
	measured := ran(0, 4, 8, 2)
	measured.Attempts[0].Used = &rusage.Record{
		Total: rusage.Use{Known: rusage.CPU | rusage.Memory, User: 4 * time.Hour, Memory: 2 << 30}, GPUs: rusage.GPUs{Count: 2, Busy: 25},
	}
	failed := ran(1, 2, 0, 4)
	failed.Attempts[0].Lost = true
	evicted := ran(5, 6, 10, 1)
	evicted.Attempts[0].CutShort = true
	r := makeReport(Query{Kind: Efficiency}, measured, failed, ran(9, 0, 100, 1), evicted).Total
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"GPU-hours", *r.GPUHeld, 14},
		{"measured", *r.GPUMeasured, 8},
		{"idle", *r.GPUIdle, 6},
		{"busy", *r.GPUBusy, 25},
		{"overasked: that which runs or was cut short is not", *r.GPUOver, 8},
		{"lost", *r.GPULost, 4},
		{"CPU idle", *r.CPUIdle, 12},
		{"CPU busy", *r.CPUBusy, 25},
		{"GiB-hours unused", *r.MemoryIdle, 24},
		{"memory used", *r.MemoryUsed, 25},
		{"time used", *r.TimeUsed, 50},
	} {
		if c.got != c.want {
			t.Errorf("%s: %g, want %g", c.what, c.got, c.want)
		}
	}
}

// TestFreeDevices: by pool, what no job held of the devices that pools have; also of pools without jobs.
func TestFreeDevices(t *testing.T) {
	devices := map[string]int{"a": 2, "b": 8}
	var got []string
	r := makeReport(Query{Kind: Efficiency, By: []Key{ByPool}, Devices: devices}, ran(-1, 5, 0, 2))
	for i := range r.Rows {
		got = append(got, fmt.Sprint(r.Rows[i].Pool, " ", *r.Rows[i].GPUHeld, " ", *r.Rows[i].GPUFree))
	}
	if diff := cmp.Diff(got, []string{"a 10 10", "b 0 80"}); diff != "" {
		t.Error(diff)
	}
	if r := makeReport(Query{Kind: Efficiency, By: []Key{ByPool, ByUser}, Devices: devices}, ran(-1, 5, 0, 2)); r.Rows[0].GPUFree != nil || len(r.Rows) != 1 {
		t.Errorf("by user, %+v", r.Rows)
	}
}

// TestOverTime: the parts of the window add up to the total.
//
// Seen to fail with: an attempt that counts whole where it began.
func TestOverTime(t *testing.T) {
	asleep := ran(1, 4, 0, 1)
	asleep.Attempts[0].Suspended = hour
	r := makeReport(Query{Kind: Cost, Prices: priced.Prices}, ran(-1, 2.5, 0, 2), asleep, ran(9, 0, 0, 1))
	if r.OverTime.Step != hour || len(r.OverTime.Points) != 10 || !r.OverTime.Points[0].From.Equal(midnight) {
		t.Fatalf("%+v", r.OverTime)
	}
	gpu, cost := 0.0, 0.0
	for _, p := range r.OverTime.Points {
		gpu, cost = gpu+p.GPUHours, cost+*p.Cost
	}
	if math.Abs(gpu-*r.Total.GPUHeld) > 1e-5 || math.Abs(cost-*r.Total.CostAll) > 1e-5 {
		t.Errorf("%g GPU-hours and %g, not %g and %g", gpu, cost, *r.Total.GPUHeld, *r.Total.CostAll)
	}
	if p := r.OverTime.Points; p[0].GPUHours != 2 || p[2].GPUHours != 1.666667 || p[5].GPUHours != 0 || p[9].GPUHours != 1 {
		t.Errorf("%+v", p)
	}
}

// TestFairness: an account's use is that of its users and of the accounts below it; its share is its
// part of the whole machine.
//
// Seen to fail with: use of the account alone.
func TestFairness(t *testing.T) {
	shares := []Share{
		{Account: "root", Norm: 1},
		{Account: "nlp", Parent: "root", Depth: 1, Raw: 3, Norm: 0.75, UsedPart: 0.5},
		{Account: "nlp", User: "anna", Parent: "nlp", Depth: 2, Raw: 1, Norm: 0.5},
		{Account: "speech", Parent: "nlp", Depth: 2, Raw: 1, Norm: 0.5},
		{Account: "vision", Parent: "root", Depth: 1, Raw: 1, Norm: 0.25},
	}
	speech, gone := ran(1, 3, 0, 1), ran(1, 3, 0, 1)
	speech.Account, speech.User, gone.Account = "speech", "ben", "gone"
	for _, c := range []struct {
		by   []Key
		want []string
	}{
		{[]Key{ByAccount}, []string{"root  100 75 0.75", "nlp  75 75 1", "speech  37.5 25 0.666667", "vision  25 0 0", "gone  -1 25 -1"}},
		{[]Key{ByUser}, []string{"root  100 75 0.75", "nlp  75 75 1", "nlp anna 37.5 50 1.333333", "speech  37.5 25 0.666667", "vision  25 0 0", "gone  -1 25 -1", "gone anna -1 25 -1", "speech ben -1 25 -1"}},
	} {
		r := makeReport(Query{Kind: Fairness, By: c.by, Shares: shares}, ran(1, 3, 0, 2), speech, gone)
		var got []string
		for i := range r.Rows {
			x := &r.Rows[i]
			got = append(got, fmt.Sprint(x.Account, " ", x.User, " ", number(x.Share), number(x.UsePart), number(x.UseRatio)))
		}
		if diff := cmp.Diff(got, c.want); diff != "" {
			t.Error(c.by, diff)
		}
	}
}

func price(x float64) *float64 { return &x }

// priced are rules with prices and a budget.
var priced = &account.Policy{
	Accounts: []account.Account{{Name: "org"}, {Name: "nlp", Parent: "org"}, {Name: "vision"}},
	Prices: account.Prices{Currency: "EUR", Rates: []account.Rate{
		{Name: "h100", Pool: "a", GPU: "h100", GPUHour: price(2)},
		{Name: "a", Pool: "a", CPUHour: price(0.5)},
		{Name: "all", CPUHour: price(10), MemoryHour: price(0.25)},
	}},
	Budgets: []account.Budget{{Name: "o", Account: "org", Amount: 24, Warn: 50}, {Name: "v", Account: "vision", Amount: 1, Period: "yearly"}},
}

// TestCost: the first rate that fits and has a price counts; what has none is said.
func TestCost(t *testing.T) {
	elsewhere := ran(1, 2, 0, 1)
	elsewhere.Pool, elsewhere.Account = "b", "vision"
	r := makeReport(Query{Kind: Cost, Prices: priced.Prices}, ran(1, 3, 0, 2), elsewhere)
	var got []string
	for i := range r.Rows {
		x := &r.Rows[i]
		got = append(got, fmt.Sprint(x.Account, " ", *x.CostAll, *x.CostGPU, *x.CostCPU, *x.CostMemory, *x.GPUUnpriced))
	}
	if diff := cmp.Diff(got, []string{"vision 42 0 40 2 1", "nlp 16 8 4 4 0"}); diff != "" {
		t.Error(diff)
	}
	if len(r.Notes) != 1 || r.Currency != "EUR" || r.Units["cost"] != "EUR" {
		t.Errorf("%q, %q, %q", r.Notes, r.Currency, r.Units)
	}
}

// TestBudgets: what the account and those below it cost in the period counts, up to the moment.
//
// Seen to fail with: jobs of the account alone; a period that began with the window.
func TestBudgets(t *testing.T) {
	s := NewSpending(priced, midnight.Add(10*time.Hour), midnight.Add(10*time.Hour))
	if since, ok := s.Since(); !ok || !since.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the first period begins at %s", since)
	}
	in, before := ran(1, 3, 0, 2), ran(-30, -28, 0, 2) // the month began a day before midnight
	s.Add(&in)
	s.Add(&before)
	late := ran(12, 14, 0, 2)
	s.Add(&late)
	got := s.Budgets()
	if b := got[0]; b.Spent != 16 || b.State != SpentWarn || !b.Until.Equal(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", b)
	}
	if got[1].Spent != 0 || got[1].Warning("EUR") != "" || len(s.Of("nlp")) != 1 || len(s.Of("gone")) != 0 {
		t.Errorf("%+v", got[1])
	}
	if w := got[0].Warning("EUR"); w != "budget o: account org has spent 16.00 EUR of 24.00 EUR, 67 %; the monthly period ends 2026-12-01" {
		t.Errorf("%q", w)
	}
	other := ran(4, 6, 0, 2)
	other.Account = "org"
	if s.Add(&other); s.Budgets()[0].State != SpentOver {
		t.Errorf("%+v", s.Budgets()[0])
	}
}

// TestBudgetsOfAnEndedPeriod: a window that ends when a period does shows what was spent of that period.
//
// Seen to fail with: the period that begins at the end of the window.
func TestBudgetsOfAnEndedPeriod(t *testing.T) {
	end := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	s := NewSpending(priced, end, end.Add(48*time.Hour))
	in := ran(1, 3, 0, 2)
	s.Add(&in)
	if b := s.Budgets()[0]; b.Spent != 16 || !b.From.Equal(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)) || !b.Until.Equal(end) {
		t.Errorf("%+v", b)
	}
}

// TestMemoryIsBounded: further groups than MostGroups are one row, and nothing is lost.
//
// Seen to fail without the bound.
func TestMemoryIsBounded(t *testing.T) {
	q := Query{Kind: Usage, By: []Key{ByUser}, From: midnight, To: midnight.Add(10 * time.Hour), Now: midnight.Add(10 * time.Hour)}
	b := NewBuilder(q)
	r := ran(1, 2, 0, 1)
	for i := range MostGroups + 50 {
		r.User = fmt.Sprint("user", i)
		b.Add(&r)
	}
	out := b.Report()
	if len(out.Rows) != MostGroups+1 || *out.Total.GPUHeld != MostGroups+50 || len(out.Notes) == 0 {
		t.Errorf("%d rows, %g GPU-hours, %q", len(out.Rows), *out.Total.GPUHeld, out.Notes)
	}
	if first := out.Rows[0]; first.User != Others || *first.Jobs != 50 {
		t.Errorf("%+v", first)
	}
}

// TestTextOfNumbers: numbers for people are short and never wrong by much.
func TestTextOfNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{hoursText(0), "0"},
		{hoursText(0.00001), "<0.001"},
		{hoursText(0.0123), "0.012"},
		{hoursText(1.234), "1.23"},
		{hoursText(123.45), "123.5"},
		{hoursText(12345.6), "12346"},
		{secondsText(5), "5 s"},
		{secondsText(60), "1 min"},
		{secondsText(8040), "2 h 14 min"},
		{secondsText(90000), "1 d 1 h"},
		{percentText(0.26), "0.3 %"},
		{percentText(99.6), "100 %"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
