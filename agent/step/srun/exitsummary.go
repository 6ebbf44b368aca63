package srun

import (
	"fmt"
	"slices"
	"time"
)

// summaryDelay is how long the ends of a node's tasks are gathered before they are
// printed if not all of them have ended, so that tasks that end alike take one line.
// Tests alone change it.
var summaryDelay = 200 * time.Millisecond

// exitSummary gathers the ends of tasks.
type exitSummary struct{ list []taskEnd }

// addExit notes an end.
func (n *exitSummary) addExit(e taskEnd) { n.list = append(n.list, e) }

// takeLines returns a line for every group of tasks of a node that ended alike, and
// forgets them. Only those of one node are taken if one is given. Good ends are told
// only if all is set.
func (n *exitSummary) takeLines(of *remote, all bool) (lines []string) {
	type group struct {
		node  string
		text  string
		bad   bool
		ranks []int
	}
	var groups []*group
	var kept []taskEnd
	for _, e := range n.list {
		if of != nil && e.from != of {
			kept = append(kept, e)
			continue
		}
		bad := !e.how.Exit.OK() || e.how.Text != ""
		if !bad && !all {
			continue
		}
		text := exitText(e.how)
		if !bad {
			text = "Completed"
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return g.node == e.from.name && g.text == text })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{node: e.from.name, text: text, bad: bad})
		}
		groups[i].ranks = append(groups[i].ranks, e.rank)
		if e.how.Text != "" {
			lines = append(lines, fmt.Sprintf("error: %s: task %d: %s", e.from.name, e.rank, e.how.Text))
		}
	}
	n.list = kept
	for _, g := range groups {
		word := ""
		if g.bad {
			word = "error: "
		}
		lines = append(lines, fmt.Sprintf("%s%s: %s: %s", word, g.node, rankText(g.ranks), g.text))
	}
	return lines
}

// rankText is "task 3" or "tasks 0-1,4".
func rankText(ranks []int) string {
	slices.Sort(ranks)
	word, out := "task", ""
	for i := 0; i < len(ranks); {
		k := i
		for k+1 < len(ranks) && ranks[k+1] == ranks[k]+1 {
			k++
		}
		if out != "" {
			out += ","
		}
		out += fmt.Sprint(ranks[i])
		if k > i {
			out += fmt.Sprintf("-%d", ranks[k])
		}
		i = k + 1
	}
	if len(ranks) > 1 {
		word = "tasks"
	}
	return word + " " + out
}

// signalNames are the C library's texts, which srun prints.
var signalNames = map[int]string{
	1: "Hangup", 2: "Interrupt", 3: "Quit", 4: "Illegal instruction", 5: "Trace/breakpoint trap", 6: "Aborted",
	7: "Bus error", 8: "Floating point exception", 9: "Killed", 10: "User defined signal 1", 11: "Segmentation fault",
	12: "User defined signal 2", 13: "Broken pipe", 14: "Alarm clock", 15: "Terminated", 16: "Stack fault",
	18: "Continued", 24: "CPU time limit exceeded", 25: "File size limit exceeded", 31: "Bad system call",
}
