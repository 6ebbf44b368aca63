package podagent

import (
	"context"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestMemberHasEnded: a connection that is refused is told of, but not when it is to a member that was there before.
func TestMemberHasEnded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	var d net.Dialer
	_, refused := d.DialContext(t.Context(), "tcp", address)
	tun := newTunnel(&memberCert{}, 0)
	defer tun.close()
	if tun.hasEnded(1, refused) {
		t.Errorf("never met, and %v means that it has ended", refused)
	}
	tun.noteMet(1)
	if !tun.hasEnded(1, refused) {
		t.Errorf("met before, and %v does not mean that it has ended", refused)
	}
	if tun.hasEnded(1, context.DeadlineExceeded) || tun.hasEnded(2, refused) {
		t.Error("silence, or another member, counts as the end")
	}
}

// TestOutcomeFits: whatever happened, the message is one that a kubelet keeps whole, and
// what was said of failures is left out last.
func TestOutcomeFits(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	var tasks []engine.TaskReport
	for i := range 1000 {
		r := engine.TaskReport{Step: 0, Rank: i, Node: "cox-ab-7-1-12", PID: 4711, Started: now, Ended: now.Add(time.Duration(1000-i) * time.Second), Cause: engine.Exited, Log: "/cox/run/ranks/7.1/0.1.log"}
		if i%100 == 7 {
			r.Exit = job.ExitCode{Status: 3}
		}
		tasks = append(tasks, r)
	}
	texts := map[string]string{
		"plain": strings.Repeat("x", 10<<10), "runes": strings.Repeat("日本語", 10<<10/9), "quotes": strings.Repeat(`"\<&`, 10<<10/4),
		"bytes": strings.Repeat("a\xff", 5<<10), "control": strings.Repeat("\x01", 10<<10),
	}
	for name, text := range texts {
		o := Outcome{Ref: engine.Ref{Allocation: 1 << 63, Attempt: 1 << 31}, Cause: engine.NodeLost, Started: now, Ended: now, Message: text, Tasks: tasks}
		got := o.Text()
		back, err := ParseOutcome(string(got))
		if err != nil || len(got) > MaxOutcome || len(got) < MaxOutcome-16 || !utf8.Valid(got) {
			t.Fatalf("%s: %d bytes, %v", name, len(got), err)
		}
		whole := strings.ToValidUTF8(text, "?")
		if cut, ok := strings.CutSuffix(back.Message, "…"); !ok || !strings.HasPrefix(whole, cut) || strings.ContainsRune(cut, utf8.RuneError) {
			t.Errorf("%s: the message is cut to %.40q…", name, back.Message)
		}
		if len(back.Tasks) != 0 || back.Left != 1000 || back.Ref != o.Ref || back.Cause != o.Cause {
			t.Errorf("%s: %d tasks, %d left out, %v", name, len(back.Tasks), back.Left, back.Ref)
		}
	}
	o := Outcome{Message: "short", Tasks: tasks}
	back, err := ParseOutcome(string(o.Text()))
	if err != nil || back.Message != "short" || len(back.Tasks) < 11 || len(back.Tasks)+back.Left != 1000 {
		t.Fatalf("%d tasks and %d left out, %v", len(back.Tasks), back.Left, err)
	}
	for i, r := range back.Tasks[:11] {
		if want := 907 - 100*i; i < 10 && r.Rank != want || i == 10 && r.Rank != 0 {
			t.Errorf("task %d is rank %d, want %d: those that failed stand first, the first failure before all", i, r.Rank, want)
		}
		if r.PID != 0 || r.Log != "" {
			t.Errorf("what ends with the pod is said: %+v", r)
		}
	}
	if tasks[0].PID == 0 {
		t.Error("the caller's tasks were changed")
	}
}

// TestOutcomeAlwaysFits draws sizes on both sides of every bound.
func TestOutcomeAlwaysFits(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	letters := []string{"x", "é", "日", "🚢", `"`, "\n", "\xff", "\u2028"}
	for range 300 {
		var b strings.Builder
		for range r.IntN(5000) {
			b.WriteString(letters[r.IntN(len(letters))])
		}
		o := Outcome{Message: b.String(), Tasks: make([]engine.TaskReport, r.IntN(60))}
		got := o.Text()
		back, err := ParseOutcome(string(got))
		if err != nil || len(got) > MaxOutcome || len(back.Tasks)+back.Left != len(o.Tasks) {
			t.Fatalf("%d bytes, %d tasks of %d, %v", len(got), len(back.Tasks), len(o.Tasks), err)
		}
		if back.Left == 0 && back.Message != strings.ToValidUTF8(o.Message, "?") && len(o.Tasks) > 0 {
			t.Fatal("the message was cut before the tasks")
		}
	}
}
