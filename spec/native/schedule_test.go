package native

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// TestRenderSchedule: what is written is read as the same, and what cannot be written is said.
func TestRenderSchedule(t *testing.T) {
	usual := schedule.DefaultSettings()
	usual.Cron = "*/5 * * * MON-FRI"
	whole := schedule.Settings{Cron: "@daily", Zone: "Europe/Zurich", Overlap: schedule.Replace, Late: 26 * time.Hour, Suspend: true, Keep: schedule.History{Done: 3, Failed: 3}}
	kube := schedule.Settings{Cron: "@daily", Overlap: schedule.Allow, Keep: schedule.KubernetesHistory, CatchUp: true}
	for _, c := range []struct {
		s       schedule.Settings
		missing int
	}{{usual, 0}, {whole, 0}, {kube, 2}} {
		line, missing := RenderSchedule(&c.s)
		if len(missing) != c.missing {
			t.Errorf("%s: %v", line, missing)
		}
		doc, err := yaml.Parse(spec.Source{Name: "job.yaml", Data: []byte("command: date\n" + line)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ScheduleOf(doc, "job.yaml", options())
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if c.missing > 0 {
			c.s.CatchUp, c.s.Keep.Failed = false, c.s.Keep.Done
		}
		if diff := cmp.Diff(&c.s, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}
