package place

import (
	"fmt"
	"strconv"
	"strings"
)

// distributionWord is how ranks are dealt: the first word of --distribution.
func (p *placer) distributionWord() string {
	word, _, _ := strings.Cut(p.request.Distribution, ",")
	word, _, _ = strings.Cut(word, ":")
	return word
}

// spreadTasks settles how many tasks each node gets; each gets at least one.
func (p *placer) spreadTasks() error {
	caps := make([]int, len(p.chosen))
	asJob := make([]int, len(p.chosen))
	for i, part := range p.chosen {
		caps[i] = p.taskCapacity(part)
		asJob[i] = p.group.Parts[part].Tasks
	}
	dist := p.distributionWord()
	if p.request.Distribution == "" && p.request.TasksPerNode == 0 && fitsCapacity(asJob, caps, p.tasks) {
		p.counts = asJob
		return nil
	}
	run := 1
	switch word, arg, _ := strings.Cut(dist, "="); {
	case word == "plane":
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 {
			return fmt.Errorf("Invalid plane size in --distribution=%s", p.request.Distribution)
		}
		run = n
	case strings.HasSuffix(strings.ToLower(p.request.Distribution), ",pack"):
		run = p.tasks
	}
	p.counts = make([]int, len(caps))
	left := p.tasks
	for i := range p.counts {
		p.counts[i]++
		left--
	}
	for round := 0; left > 0; round++ {
		before := left
		for i := range p.counts {
			n := min(run, caps[i]-p.counts[i], left)
			if round == 0 && run < p.tasks {
				n = min(run-1, n) // the first round's one is already there
			}
			p.counts[i] += n
			left -= n
		}
		if left == before && (round > 0 || run > 1) {
			return errTooMany
		}
	}
	return nil
}

// fitsCapacity reports whether counts sum to the tasks, give every node one, and no node
// more than it can take.
func fitsCapacity(counts, caps []int, tasks int) bool {
	sum := 0
	for i, n := range counts {
		if n < 1 || n > caps[i] {
			return false
		}
		sum += n
	}
	return sum == tasks
}

// dealRanks deals ranks to nodes: in blocks, in turn (cyclic), or in turn by planes.
func dealRanks(counts []int, dist string) [][]int {
	run := 1 << 30
	switch {
	case dist == "cyclic":
		run = 1
	case strings.HasPrefix(dist, "plane="):
		if n, err := strconv.Atoi(dist[len("plane="):]); err == nil && n > 0 {
			run = n
		}
	}
	out := make([][]int, len(counts))
	rank, total := 0, 0
	for _, n := range counts {
		total += n
	}
	for rank < total {
		for i, n := range counts {
			for k := 0; k < run && len(out[i]) < n; k++ {
				out[i] = append(out[i], rank)
				rank++
			}
		}
	}
	return out
}
