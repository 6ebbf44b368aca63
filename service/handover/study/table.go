package study

import (
	"fmt"
	"strings"
)

// Mean is the mean of results of the same study with several seeds.
func Mean(all []*Result) *Result {
	out := &Result{Name: all[0].Name}
	n := float64(len(all))
	for _, r := range all {
		out.Jobs += r.Jobs
		out.Unstarted += r.Unstarted
		out.Requeued += r.Requeued
		out.Moves += r.Moves
		out.Back += r.Back
		out.MeanWait += r.MeanWait / n
		out.P95Wait += r.P95Wait / n
		out.Slowdown += r.Slowdown / n
		out.LostHours += r.LostHours / n
		out.Requests += r.Requests / n
		out.Misses += r.Misses / n
		out.Use += r.Use / n
		out.BatchShare += r.BatchShare / n
	}
	for _, x := range []*int{&out.Jobs, &out.Unstarted, &out.Requeued, &out.Moves, &out.Back} {
		*x = (*x + len(all)/2) / len(all)
	}
	return out
}

// Table is results as a table in Markdown.
func Table(rows []*Result) string {
	var b strings.Builder
	b.WriteString("| | batch machines % | mean wait h | 95 % wait h | mean bounded slowdown | jobs not started | misses % | GPU use % | moves | requeued | lost GPU-h |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %.0f | %.2f | %.1f | %.0f | %d/%d | %.2f | %.1f | %d | %d | %.0f |\n",
			r.Name, 100*r.BatchShare, r.MeanWait/3600, r.P95Wait/3600, r.Slowdown, r.Unstarted, r.Jobs, 100*r.Misses, 100*r.Use, r.Moves, r.Requeued, r.LostHours)
	}
	return b.String()
}
