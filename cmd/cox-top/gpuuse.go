package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// unknownUse is said of GPUs whose use nobody here can see.
const unknownUse = "unknown"

// deviceUse is what a GPU does at the moment.
type deviceUse struct {
	busy   float64 // per cent of the last moments in which something ran on it
	memory int64   // bytes that are used
}

// useMsg is what the GPUs of this machine do, by UUID. A GPU that is not there is not of
// this machine, or does not say it.
type useMsg map[string]deviceUse

// useTime is how long nvidia-smi may take; it takes seconds where the driver has to wake up.
const useTime = 10 * time.Second

// readUse asks the driver of this machine. The server says nothing of the use of GPUs; a
// UUID is that of one GPU in the world, so what is seen here is true wherever the server is.
func (r *remote) readUse() tea.Msg {
	ctx, stop := context.WithTimeout(r.ctx, useTime)
	defer stop()
	out, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=uuid,utilization.gpu,memory.used", "--format=csv,noheader,nounits").Output()
	if err != nil {
		return useMsg{} // none is known
	}
	return parseUse(string(out))
}

// parseUse reads lines of "UUID, per cent, MiB". A field that is no number, as of a GPU that
// is split, leaves its GPU out.
func parseUse(text string) useMsg {
	use := useMsg{}
	for line := range strings.Lines(text) {
		f := strings.Split(line, ",")
		if len(f) != 3 {
			continue
		}
		busy, err := strconv.ParseFloat(strings.TrimSpace(f[1]), 64)
		if err != nil {
			continue
		}
		memory, err := strconv.ParseInt(strings.TrimSpace(f[2]), 10, 64)
		if err != nil {
			continue
		}
		use[strings.TrimSpace(f[0])] = deviceUse{busy: busy, memory: memory << 20}
	}
	return use
}

// startUse asks for the use of GPUs, if some may be of this machine and no question is open.
func (m *model) startUse() tea.Cmd {
	if m.askingUse {
		return nil
	}
	for i := range m.seen.nodes {
		for k := range m.seen.nodes[i].Devices {
			if d := &m.seen.nodes[i].Devices[k]; d.UUID != "" && !d.Declared {
				m.askingUse = true
				return m.src.readUse
			}
		}
	}
	return nil
}

// sumUse counts the GPUs for which want holds, those of them whose use is known, and sums up
// their per cents.
func (m *model) sumUse(devices []api.Device, want func(*api.Device) bool) (known, all int, busy float64) {
	for i := range devices {
		d := &devices[i]
		if d.Kind != "gpu" || !want(d) {
			continue
		}
		all++
		if u, ok := m.use[d.UUID]; ok && d.UUID != "" {
			known, busy = known+1, busy+u.busy
		}
	}
	return known, all, busy
}

// formatUse is how busy GPUs are in the mean: "37%", with how many of them say it where not
// all do, "unknown" if none does, "" if there are none.
func formatUse(known, all int, busy float64) string {
	switch {
	case all == 0:
		return ""
	case known == 0:
		return unknownUse
	case known < all:
		return fmt.Sprintf("%.0f%% of %d", busy/float64(known), known)
	}
	return fmt.Sprintf("%.0f%%", busy/float64(all))
}

// nodeUse is how busy the GPUs of a node are.
func (m *model) nodeUse(n *api.Node) string {
	return formatUse(m.sumUse(n.Devices, func(*api.Device) bool { return true }))
}

// jobUse is how busy the GPUs are that a job holds.
func (m *model) jobUse(r *printer.QueueRow) string {
	if r.GPUs == 0 {
		return ""
	}
	var known, all int
	var busy float64
	for i := range m.seen.nodes {
		k, a, b := m.sumUse(m.seen.nodes[i].Devices, func(d *api.Device) bool {
			return slices.Contains(d.Jobs, r.Name)
		})
		known, all, busy = known+k, all+a, busy+b
	}
	return formatUse(known, max(all, 1), busy)
}

// useLines are what the GPUs of a node do, one a line.
func (m *model) useLines(n *api.Node) string {
	var b strings.Builder
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Kind != "gpu" {
			continue
		}
		text := unknownUse
		if u, ok := m.use[d.UUID]; ok && d.UUID != "" {
			text = fmt.Sprintf("%.0f%% busy, %s of memory used", u.busy, printer.Bytes(u.memory))
		}
		label := ""
		if b.Len() == 0 {
			label = "use"
		}
		fmt.Fprintf(&b, "%-10sgpu %d: %s\n", label, d.Index, text)
	}
	return b.String()
}
