package local

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// gpuSampling is how often the use of GPUs is sampled; gpuRetry is the pause before the helper is
// started again after it has ended by itself.
const (
	gpuSampling = "10" // seconds
	gpuRetry    = time.Minute
)

// gpuMeter samples how busy the GPUs of running attempts are, by one helper process for the machine
// (cmd/cox-gpuprobe) that runs as long as an attempt holds a GPU that NVML may know. A server that
// restarts begins anew: Samples says how many there were.
type gpuMeter struct {
	e *Engine

	mu       sync.Mutex
	attempts map[engine.Ref][]*meteredGPU
	stop     context.CancelFunc // of the helper; nil: none runs
}

// meteredGPU is a GPU that an attempt holds.
type meteredGPU struct {
	node, uuid string
	use        rusage.GPU
	sum        int
	busy       int // samples that say how busy it was

	now int64 // memory in use at the last sample, bytes
}

// begin measures the GPUs of an attempt from now on, once.
func (m *gpuMeter) begin(ref engine.Ref, nodes []fleet.Node, claims []fleet.Claim) {
	var held []*meteredGPU
	for _, n := range nodes {
		for _, d := range fleet.ClaimedDevices(n, claims) {
			if d.UUID != "" && !d.Declared && d.Profile == "" {
				held = append(held, &meteredGPU{node: n.Name, uuid: d.UUID, use: rusage.GPU{Index: d.Index}})
			}
		}
	}
	if len(held) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.attempts[ref] != nil {
		return
	}
	if m.attempts == nil {
		m.attempts = map[engine.Ref][]*meteredGPU{}
	}
	m.attempts[ref] = held
	if helper := m.e.cfg.GPUHelper; m.stop == nil && helper != "" && m.e.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(m.e.ctx)
		m.stop = cancel
		m.e.wg.Go(func() { m.runHelper(ctx, helper) })
	}
}

// end is what the GPUs of an attempt were used for, by node; they are measured no longer.
func (m *gpuMeter) end(ref engine.Ref) map[string][]rusage.GPU {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.attempts[ref]
	delete(m.attempts, ref)
	if len(m.attempts) == 0 && m.stop != nil {
		m.stop()
		m.stop = nil
	}
	return usedGPUs(held, false)
}

// read is the same so far.
func (m *gpuMeter) read(ref engine.Ref) map[string][]rusage.GPU {
	m.mu.Lock()
	defer m.mu.Unlock()
	return usedGPUs(m.attempts[ref], true)
}

// usedGPUs leaves out those of which nothing is known. Memory in use now is that of an attempt which runs.
func usedGPUs(held []*meteredGPU, runs bool) map[string][]rusage.GPU {
	out := map[string][]rusage.GPU{}
	for _, g := range held {
		if g.busy > 0 {
			u := g.use
			u.Busy = float64(g.sum) / float64(g.busy)
			if runs {
				u.Now = g.now
			}
			out[g.node] = append(out[g.node], u)
		}
	}
	return out
}

// runHelper reads samples until ctx ends.
func (m *gpuMeter) runHelper(ctx context.Context, helper string) {
	for ctx.Err() == nil {
		if err := m.readHelper(ctx, helper); ctx.Err() == nil {
			m.e.cfg.Log.Warn("the use of GPUs is not measured for a minute", "helper", helper, "err", err)
		}
		select {
		case <-time.After(gpuRetry):
		case <-ctx.Done():
		}
	}
}

// readHelper runs the helper once.
func (m *gpuMeter) readHelper(ctx context.Context, helper string) error {
	cmd := exec.CommandContext(ctx, helper, "watch", gpuSampling)
	cmd.WaitDelay = time.Second
	if _, err := cmd.StdinPipe(); err != nil { // it ends when this process does
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = out.Close() })() // whoever else may hold the other end
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var load probe.Load
		if json.Unmarshal(lines.Bytes(), &load) == nil && load.Version == probe.Version {
			m.addSample(&load)
		}
	}
	return cmd.Wait()
}

func (m *gpuMeter) addSample(load *probe.Load) {
	byUUID := map[string]*probe.GPULoad{}
	for i := range load.GPUs {
		byUUID[load.GPUs[i].UUID] = &load.GPUs[i]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, held := range m.attempts {
		for _, g := range held {
			now := byUUID[g.uuid]
			if now == nil {
				continue
			}
			g.use.Memory, g.use.Of = max(g.use.Memory, now.UsedBytes), max(g.use.Of, now.MemoryBytes)
			g.now = now.UsedBytes
			if now.Busy >= 0 {
				g.sum += now.Busy
				g.busy++
				g.use.Samples, g.use.MaxBusy = g.busy, max(g.use.MaxBusy, float64(now.Busy))
			}
		}
	}
}
