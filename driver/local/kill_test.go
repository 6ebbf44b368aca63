package local_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// engineMain is an engine in a process of its own, which somebody kills. It says
// what it launched and forgot once the engine has confirmed it.
func engineMain(root, first string) {
	e, err := local.New(local.Config{Root: root, Nodes: killNodes(root)})
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	ctx := context.Background()
	go func() {
		_ = e.Watch(ctx, "", func(ev engine.Event) error {
			if r := ev.Report; r.Gone {
				fmt.Println("ended", r.Ref.Allocation, r.Cause, r.Exit.Status)
				if r.Ref.Allocation%3 == 0 && e.Forget(ctx, r.Ref) == nil {
					fmt.Println("forgot", r.Ref.Allocation)
				}
			}
			return nil
		})
	}()
	n, _ := strconv.Atoi(first)
	for room := 0; ; n++ {
		if err := e.Launch(ctx, killLaunch(root, n)); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		fmt.Println("launched", n)
		if room++; room%6 == 0 {
			time.Sleep(20 * time.Millisecond) // some have time to end
		}
	}
}

func killNodes(root string) []fleet.Node {
	return local.VirtualRoom(local.RoomConfig{Seed: root}, four())
}

// killLaunch is a job of one or two nodes that exits with 3.
func killLaunch(root string, n int) *engine.Launch {
	l := &engine.Launch{
		Ref: engine.Ref{Allocation: uint64(n), Attempt: 1},
		Job: &job.Job{ID: job.ID(n), Attempt: 1, Spec: &job.Spec{
			Name: "kill", WorkDir: "/tmp", Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}}},
			Program: job.Program{Kind: job.Batch}, Output: job.Output{Stdout: os.DevNull},
		}},
		Script: fmt.Appendf(nil, "#!/bin/sh\nsleep 0.0%d\nexit 3\n", n%7), Env: []string{"PATH=" + os.Getenv("PATH")}, Grace: time.Second,
	}
	for _, node := range killNodes(root)[n%4 : n%4+1+n%2*(3-n%4)/2] {
		l.Claims = append(l.Claims, fleet.Claim{Node: node.Name, Tasks: 1})
	}
	return l
}

// An engine is killed again and again, at any instruction: no launch that it
// confirmed is unknown afterwards, none that it forgot comes back, every exit code is
// there, and it is the same each time it is told.
func TestKilledEngine(t *testing.T) {
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const seed = 1 // the moments are the machine's all the same
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	root := t.TempDir()
	launched, forgot, next := map[int]bool{}, map[int]bool{}, 1
	for range 8 {
		cmd := exec.CommandContext(t.Context(), me, "engine", root, strconv.Itoa(next))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(30+rnd.IntN(120)) * time.Millisecond) // any moment will do
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for s := bufio.NewScanner(&out); s.Scan(); {
			f := strings.Fields(s.Text())
			n, _ := strconv.Atoi(f[1])
			switch {
			case f[0] == "launched":
				launched[n], next = true, n+1
			case f[0] == "forgot":
				forgot[n] = true
			case f[0] == "ended" && len(f) == 4 && (f[2] != string(engine.Exited) || f[3] != "3"):
				t.Error(s.Text())
			case f[0] == "failed":
				t.Fatal(s.Text())
			}
		}
		next++ // the one that was on its way
	}
	e := newEngine(t, local.Config{Root: root, Nodes: killNodes(root)})
	for n := range launched {
		ref := engine.Ref{Allocation: uint64(n), Attempt: 1}
		if forgot[n] {
			if _, err := e.Inspect(t.Context(), ref); err == nil {
				t.Errorf("%d was forgotten", n)
			}
			continue
		}
		if n%3 == 0 { // it may have been forgotten without a word
			if _, err := e.Inspect(t.Context(), ref); err != nil {
				continue
			}
		}
		if r := until(t, e, ref, gone); r.Cause != engine.Exited || r.Exit.Status != 3 {
			t.Errorf("%d: %s, %s, %s", n, r.Cause, r.Exit, r.Message)
		}
	}
	t.Logf("%d launched, %d forgotten", len(launched), len(forgot))
}
