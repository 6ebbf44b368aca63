package intake

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/schedule"
)

// cronJob is a CronJob with what is not said left to Kubernetes' defaults.
const cronJob = `apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
MORE  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: busybox, command: [date]}]
`

// TestScheduleOfAText: when a job runs, by its file, by the command line, by both.
func TestScheduleOfAText(t *testing.T) {
	usual := schedule.DefaultSettings()
	usual.Cron = "0 3 * * *"
	whole := schedule.Settings{Cron: "@daily", Zone: "Europe/Zurich", Overlap: schedule.Replace, Late: 2 * time.Hour, Suspend: true, Keep: schedule.History{Done: 3, Failed: 3}}
	kube := schedule.Settings{Cron: "0 3 * * *", Overlap: schedule.Allow, CatchUp: true, Keep: schedule.KubernetesHistory}
	kubeWhole := schedule.Settings{Cron: "0 3 * * *", Zone: "Asia/Tokyo", Overlap: schedule.Skip, Late: 90 * time.Second, Suspend: true, CatchUp: true, Keep: schedule.History{Done: 0, Failed: 7}}
	const native = "name: nightly\nschedule: \"0 3 * * *\"\ncommand: date\n"
	for name, c := range map[string]struct {
		form, text string
		times      *api.ScheduleTimes
		once       bool
		want       *schedule.Settings
	}{
		"no schedule":    {api.FormNative, "command: date\n", nil, false, nil},
		"short":          {api.FormNative, native, nil, false, &usual},
		"once":           {api.FormNative, native, &api.ScheduleTimes{Cron: "@daily"}, true, nil},
		"whole":          {api.FormNative, "command: date\nschedule: {cron: '@daily', time_zone: Europe/Zurich, overlap: replace, missed: 2h, suspend: true, keep: 3}\n", nil, false, &whole},
		"command line":   {api.FormSbatch, "#!/bin/sh\ndate\n", &api.ScheduleTimes{Cron: "0 3 * * *"}, false, &usual},
		"over the file":  {api.FormNative, strings.Replace(native, "0 3", "0 4", 1), &api.ScheduleTimes{Cron: "0 3 * * *"}, false, &usual},
		"CronJob":        {api.FormManifest, strings.Replace(cronJob, "MORE", "", 1), nil, false, &kube},
		"whole CronJob":  {api.FormManifest, strings.Replace(cronJob, "MORE", "  timeZone: Asia/Tokyo\n  concurrencyPolicy: Forbid\n  startingDeadlineSeconds: 90\n  suspend: true\n  successfulJobsHistoryLimit: 0\n  failedJobsHistoryLimit: 7\n", 1), nil, false, &kubeWhole},
		"missed skip":    {api.FormNative, "command: date\nschedule: {cron: 0 3 * * *, missed: skip, overlap: Forbid}\n", nil, false, &schedule.Settings{Cron: "0 3 * * *", Overlap: schedule.Skip, Late: schedule.OnTime, Keep: usual.Keep}},
		"an array":       {api.FormNative, native + "array: 0-3\n", nil, false, &usual},
		"several groups": {api.FormNative, native + "groups: [{tasks: 1}, {tasks: 2}]\n", nil, false, &usual},
	} {
		r, err := Read(Text{Form: c.form, Name: "job.yaml", Data: []byte(c.text)}, Options{Dir: "/", Schedule: c.times, Once: c.once})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, r.Schedule); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if spec := r.Scheduled(); (spec == nil) != (c.want == nil) || spec != nil && (spec.Check() != nil || spec.Job.Name != spec.Name) {
			t.Errorf("%s: %+v", name, spec)
		}
	}
}

// TestNoSchedule: what cannot run at times is refused where it stands, with what to do.
func TestNoSchedule(t *testing.T) {
	const native = "name: nightly\nschedule: \"0 3 * * *\"\ncommand: date\n"
	daily := &api.ScheduleTimes{Cron: "@daily"}
	for want, c := range map[string]struct {
		form, text string
		args       []string
		times      *api.ScheduleTimes
	}{
		`job.yaml:4:8: begin: a run begins at`:                                 {api.FormNative, native + "begin: now+1hour\n", nil, nil},
		`job.yaml:4:11: deadline: a deadline is one time`:                      {api.FormNative, native + "deadline: now+1day\n", nil, nil},
		`job.yaml:4:10: depends: a run depends on no other job`:                {api.FormNative, native + "depends: afterok:7\n", nil, nil},
		`job.yaml:4:7: hold: each run would wait`:                              {api.FormNative, native + "hold: true\n", nil, nil},
		`--begin=now+1hour: a run begins at`:                                   {api.FormNative, native, []string{"--begin=now+1hour"}, nil},
		`job.yaml:2: --dependency=afterok:7: a run depends on no`:              {api.FormSbatch, "#!/bin/sh\n#SBATCH --dependency=afterok:7\ndate\n", nil, daily},
		`--schedule: an allocation has nobody`:                                 {api.FormAllocation, "", nil, daily},
		`--schedule: job.yaml is a service`:                                    {api.FormNative, "kind: service\nname: web\ncommand: ./web\nports: [http]\n", nil, daily},
		`schedule: a service runs all the time`:                                {api.FormNative, "kind: service\nname: web\ncommand: ./web\nports: [http]\nschedule: '@daily'\n", nil, nil},
		`job.yaml:1:7: name: the name of a schedule: "a/b" is not`:             {api.FormNative, "name: a/b\nschedule: '@daily'\ncommand: date\n", nil, nil},
		`--schedule: hour "25": it takes 0-23`:                                 {api.FormSbatch, "#!/bin/sh\ndate\n", nil, &api.ScheduleTimes{Cron: "0 25 * * *"}},
		`--time-zone: "Mars" is no time zone`:                                  {api.FormSbatch, "#!/bin/sh\ndate\n", nil, &api.ScheduleTimes{Cron: "@daily", TimeZone: "Mars"}},
		`--overlap: "never" is none of`:                                        {api.FormSbatch, "#!/bin/sh\ndate\n", nil, &api.ScheduleTimes{Cron: "@daily", Overlap: "never"}},
		`--missed: "all" is none of`:                                           {api.FormSbatch, "#!/bin/sh\ndate\n", nil, &api.ScheduleTimes{Cron: "@daily", Missed: "all"}},
		`schedule: does not say when: cron is missing`:                         {api.FormNative, "command: date\nschedule: {overlap: skip}\n", nil, nil},
		`schedule.overlap: "never" is none of`:                                 {api.FormNative, "command: date\nschedule: {cron: '@daily', overlap: never}\n", nil, nil},
		`schedule.missed: "all" is none of latest, skip`:                       {api.FormNative, "command: date\nschedule: {cron: '@daily', missed: all}\n", nil, nil},
		`schedule.timezone: no such field; did you mean time_zone`:             {api.FormNative, "command: date\nschedule: {cron: '@daily', timezone: Etc/UTC}\n", nil, nil},
		`no such field; did you mean schedule?`:                                {api.FormNative, "command: date\ncron: '@daily'\n", nil, nil},
		`job.yaml:5:3: CronJob nightly: spec.schedule: 6 fields where five`:    {api.FormManifest, strings.NewReplacer("MORE", "", "0 3", "0 0 3").Replace(cronJob), nil, nil},
		`job.yaml:6:3: CronJob nightly: spec.timeZone: "Mars" is no time zone`: {api.FormManifest, strings.Replace(cronJob, "MORE", "  timeZone: Mars\n", 1), nil, nil},
	} {
		_, err := Read(Text{Form: c.form, Name: "job.yaml", Data: []byte(c.text)}, Options{Dir: "/", Schedule: c.times, Args: c.args})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant: %s", err, want)
		}
	}
}
