package localrun

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
)

// jobHeadline says in one line what a job asks for:
// "train.sbatch: 4 nodes × 2 gpu, 8 tasks, 10 min".
func jobHeadline(s *job.Spec) string {
	var groups []string
	for i := range s.Groups {
		groups = append(groups, groupText(&s.Groups[i]))
	}
	text := sourceName(s) + ": " + strings.Join(groups, " + ")
	if s.Array != nil {
		text += fmt.Sprintf(", array of %d", len(s.Array.Indices))
		if s.Array.MaxRunning > 0 {
			text += fmt.Sprintf(", %d at a time", s.Array.MaxRunning)
		}
	}
	if s.TimeLimit > 0 {
		text += ", " + limitText(int(s.TimeLimit.Minutes()))
	}
	switch from, to := s.Source.Lines[0], s.Source.Lines[1]; {
	case s.Source.Form != "sbatch":
	case from > 0 && from == to:
		text += fmt.Sprintf("    from #SBATCH line %d", from)
	case from > 0:
		text += fmt.Sprintf("    from #SBATCH lines %d–%d", from, to)
	}
	return text
}

func sourceName(s *job.Spec) string {
	switch {
	case s.Source.File == "-":
		return "standard input"
	case s.Source.File != "":
		return s.Source.File
	}
	return s.Name
}

func groupText(g *job.TaskGroup) string {
	nodes := nodesOf(g)
	text := plural(nodes, "node")
	per, name := 0, "gpu"
	for _, d := range g.PerNode.Devices {
		per += d.Count
		if d.Type != "" {
			name = d.Type
		}
	}
	for _, d := range g.PerTask.Devices {
		per += d.Count * tasksOn(g, nodes)
		if d.Type != "" {
			name = d.Type
		}
	}
	if per > 0 {
		text += fmt.Sprintf(" × %d %s", per, name)
	}
	for _, d := range g.Total.Devices {
		if d.Type != "" {
			name = d.Type
		}
		text += fmt.Sprintf(", %d %s in all", d.Count, name)
	}
	tasks := g.Tasks.Want
	if tasks == 0 && g.TasksPerNode > 0 {
		tasks = nodes * g.TasksPerNode
	}
	if tasks > 0 {
		text += ", " + plural(tasks, "task")
	}
	return text
}

func limitText(minutes int) string {
	switch {
	case minutes >= 24*60 && minutes%(24*60) == 0:
		return plural(minutes/(24*60), "day")
	case minutes >= 60 && minutes%60 == 0:
		return fmt.Sprintf("%d h", minutes/60)
	case minutes >= 60:
		return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
	}
	return fmt.Sprintf("%d min", minutes)
}
