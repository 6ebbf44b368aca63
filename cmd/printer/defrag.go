package printer

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// Defrag is what is proposed to move and what moves, as a text.
func Defrag(p Page, d *api.Defrag) string {
	var b strings.Builder
	switch x := d.Proposal; {
	case x != nil:
		fmt.Fprintf(&b, "proposal %s: job %s would start on %s", p.Paint(Accent, x.ID), Clean(cmp.Or(x.Job, "(hidden)")), Clean(Hosts(x.Nodes)))
		if !x.Starts.IsZero() {
			fmt.Fprintf(&b, ", otherwise at %s", p.Time(x.Starts))
		}
		fmt.Fprintf(&b, "\n%s would move; that costs %s\n\n", countWords(len(x.Moves), "job"), priceOf(x.Cost, x.CoreCost))
		_ = defragMoves(x.Moves, true).Write(&b, p)
		b.WriteString("\ncox defrag approve " + x.ID + "\n")
	case d.Idle != "":
		fmt.Fprintf(&b, "nothing is moved or proposed: preemption.defrag is %s, and has no effect beside %s\n", d.Mode, d.Idle)
	case d.Mode == "ask":
		b.WriteString("nothing is proposed\n")
	case d.Mode == "automatic":
		b.WriteString("jobs are moved without asking (preemption.defrag: automatic)\n")
	default:
		b.WriteString("nothing is moved or proposed: the site's rules have preemption.defrag off\n")
	}
	if len(d.Moving) > 0 {
		b.WriteString("\nmoving:\n")
		_ = defragMoves(d.Moving, false).Write(&b, p)
	}
	return b.String()
}

func countWords(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// priceOf is what is lost; CPU-seconds where no GPU is part of it.
func priceOf(gpu, cpu int64) string {
	if gpu > 0 {
		return fmt.Sprintf("%d GPU-seconds", gpu)
	}
	return fmt.Sprintf("%d CPU-seconds", cpu)
}

func defragMoves(list []api.DefragMove, proposed bool) *Table {
	t := &Table{Columns: []Column{{Title: "JOB"}, {Title: "USER"}, {Title: "GPUS", Right: true}, {Title: "FROM", Least: 8}, {Title: "TO", Least: 8}}}
	if proposed {
		t.Columns = append(t.Columns, Column{Title: "DONE AGAIN", Right: true}, Column{Title: "COST", Right: true})
	} else {
		t.Columns = append(t.Columns, Column{Title: "FOR"})
	}
	for i := range list {
		m := &list[i]
		row := []Cell{{Text: cmp.Or(m.Job, "-"), Tone: Accent}, textCell(cmp.Or(m.User, "-")), textCell(strconv.FormatFloat(m.GPUs, 'g', -1, 64)), textCell(Hosts(m.From)), textCell(Hosts(m.To))}
		if proposed {
			row = append(row, textCell(strconv.FormatInt(m.Lost, 10)+" s"), textCell(priceOf(m.Cost, m.CoreCost)))
		} else {
			row = append(row, textCell(m.For))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
