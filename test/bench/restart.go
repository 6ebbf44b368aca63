package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// benchRestart is part f: a server that finds a million ended jobs and a hundred thousand
// that wait. The store is filled with copies of one job of each kind that a server
// wrote itself.
func (b *bench) benchRestart() {
	final, live := b.scaledSize(1000000), b.scaledSize(100000)
	b.cox.startFresh()
	if out, err := runOf(b.cox, "sbatch", "-W", "-o", "/dev/null", "--wrap", "true"); err != nil {
		panic(out)
	}
	if out, err := runOf(b.cox, "sbatch", "-H", "-o", "/dev/null", "--wrap", "true"); err != nil {
		panic(out)
	}
	for try := 0; ; try++ { // until the store's projection has both; it is written every second
		time.Sleep(2 * time.Second)
		b.cox.stopServer()
		err := fillStore(b.cox.state, final, live)
		if err == nil {
			break
		}
		if try == 20 {
			panic(err)
		}
		b.cox.start()
	}
	var took, cpu, memory, list sample
	for range b.rounds {
		before := b.cox.usedCPU()
		took.addFigure(b.cox.start().Seconds())
		cpu.addFigure((b.cox.usedCPU() - before).Seconds())
		out, err := runOf(b.cox, "squeue", "-h", "-o", "%i")
		if n := strings.Count(out, "\n"); err != nil || n != live {
			panic(fmt.Sprintf("after the start there are %d jobs instead of %d: %v %.300s", n, live, err, out))
		}
		list.addDuration(leastOfThree(b.cox, "squeue"))
		memory.addFigure(float64(b.cox.usedMemory()) / (1 << 20))
		b.cox.stopServer()
	}
	b.cox.start() // so that stop finds what it expects
	t := table{title: fmt.Sprintf("(f) Start with %s finished and %s waiting jobs in the store", formatNumber(float64(final)), formatNumber(float64(live)))}
	t.addRow("until the list of jobs is answered, s", took, nil)
	t.addRow("CPU until then, s", cpu, nil)
	t.addRow("memory then, MiB", memory, nil)
	t.addRow("squeue, ms", list, nil)
	t.printTable()
}

// fillStore copies the finished and the waiting job of a store.
func fillStore(dir string, final, live int) error {
	ctx := context.Background()
	s, err := sqlite.Open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	var ended, waits store.JobRow
	if err := s.History(ctx, store.Query{}, func(r store.JobRow) error {
		if r.Final {
			ended = r
		} else {
			waits = r
		}
		return nil
	}); err != nil {
		return err
	}
	if ended.ID == 0 || waits.ID == 0 {
		return fmt.Errorf("the store has no finished and waiting job to copy: %v %v", ended.ID, waits.ID)
	}
	epoch, err := s.Lead(ctx, "bench")
	if err != nil {
		return err
	}
	seq, err := s.Projected(ctx)
	if err != nil {
		return err
	}
	base := max(ended.ID, waits.ID)
	const chunk = 2000
	for first := 0; first < final+live-1; first += chunk {
		var rows []store.JobRow
		for i := first; i < min(first+chunk, final+live-1); i++ {
			from := &ended
			if i >= final {
				from = &waits
			}
			rows = append(rows, copyOf(from, base+1+uint64(i)))
		}
		if err := s.Project(ctx, epoch, seq, rows, nil); err != nil {
			return err
		}
	}
	return nil
}

// copyOf is a row with another number.
func copyOf(r *store.JobRow, id uint64) store.JobRow {
	c := *r
	c.ID = id
	old, now := []byte(`"id":`+strconv.FormatUint(r.ID, 10)), []byte(`"id":`+strconv.FormatUint(id, 10))
	c.Detail = bytes.Replace(r.Detail, old, now, 1)
	if c.Final { // long ago, so that it is not one of those which lists still show
		c.Submitted, c.Started, c.Ended = c.Submitted.Add(-48*time.Hour), c.Started.Add(-48*time.Hour), c.Ended.Add(-24*time.Hour)
	}
	return c
}
