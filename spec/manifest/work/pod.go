package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/model/schedule"
)

// podRole is the name of the one role of a kind that has no other.
const podRole = "pod"

// compilePod makes a job of a Pod. Without a controller Kubernetes keeps it where it is, and begins its
// containers anew as restartPolicy says; a job runs once, or again after a failure with OnFailure.
func (f *file) compilePod(b *builder) error {
	var doc struct {
		Spec struct {
			RestartPolicy         string `json:"restartPolicy"`
			ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds"`
			Hostname              string `json:"hostname"`
			Subdomain             string `json:"subdomain"`
		} `json:"spec"`
	}
	var raw struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := errors.Join(b.d.decode(&doc), b.d.decode(&raw)); err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": b.d.Labels, "annotations": b.d.Annotations}, "spec": raw.Spec})
	if err != nil {
		return err
	}
	switch doc.Spec.RestartPolicy {
	case "Always":
		b.warn("spec.restartPolicy", "is taken as Never: a Pod is a job, which runs once; a Deployment is kept alive")
	case "OnFailure":
		b.setRetries(defaultBackoffLimit)
	}
	b.setLimit(doc.Spec.ActiveDeadlineSeconds)
	role := podspec.Role{Name: podRole, Replicas: 1, PodName: firstText(doc.Spec.Hostname, b.w.Name), Subdomain: doc.Spec.Subdomain, Template: text}
	_, err = b.addRole(role, "")
	if err == nil && doc.Spec.Subdomain != "" {
		b.addService(doc.Spec.Subdomain, "")
	}
	return err
}

// defaultBackoffLimit is Kubernetes' of a Job.
const defaultBackoffLimit = 6

// maxTasks bounds the pods of one work.
const maxTasks = 100_000

// jobSpec is the spec of a Job, wherever it stands.
type jobSpec struct {
	Parallelism           *int     `json:"parallelism"`
	Completions           *int     `json:"completions"`
	CompletionMode        string   `json:"completionMode"`
	BackoffLimit          *int     `json:"backoffLimit"`
	BackoffLimitPerIndex  *int     `json:"backoffLimitPerIndex"`
	ActiveDeadlineSeconds *int64   `json:"activeDeadlineSeconds"`
	Suspend               bool     `json:"suspend"`
	Template              template `json:"template"`
	SuccessPolicy         *struct {
		Rules []struct {
			SucceededIndexes string `json:"succeededIndexes"`
			SucceededCount   *int   `json:"succeededCount"`
		} `json:"rules"`
	} `json:"successPolicy"`
}

// templateLimit is the time limit that a pod template says.
func templateLimit(p *podspec.PodTemplate) *int64 { return p.Spec.ActiveDeadlineSeconds }

// completionIndex is the variable and the annotation in which a pod of an Indexed Job finds its number.
const (
	completionIndex      = "JOB_COMPLETION_INDEX"
	completionAnnotation = "batch.kubernetes.io/job-completion-index"
)

// compileJob makes a job of a Job (batch/v1). All pods of an Indexed Job that run at the same time are one
// gang. Others are the tasks of an array, which begin one by one, parallelism at once.
func (f *file) compileJob(b *builder) error {
	var doc struct {
		Spec jobSpec `json:"spec"`
	}
	if err := b.d.decode(&doc); err != nil {
		return err
	}
	return b.addJob(&doc.Spec, "spec")
}

// addJob adds the pods of a Job whose spec stands at path.
func (b *builder) addJob(s *jobSpec, path string) error {
	parallel, count, err := b.countPods(s, path)
	if err != nil {
		return err
	}
	indexed := s.CompletionMode == "Indexed"
	r := podspec.Role{
		Name: podRole, Replicas: 1, PodName: b.w.Name, Template: s.Template.RawMessage,
		Labels: map[string]string{"job-name": b.w.Name, "batch.kubernetes.io/job-name": b.w.Name},
	}
	index := ""
	switch {
	case count == 1:
		index = "0"
	case indexed && parallel >= count:
		r.Replicas, r.PodName, index = count, b.w.Name+"-{i}", "{i}"
	default:
		r.PodName, index = b.w.Name+"-{task}", "{task}"
		b.w.Job.Array = arrayOf(count, parallel)
	}
	if indexed {
		r.Env = []podspec.EnvVar{{Name: completionIndex, Value: index}}
		r.Labels[completionAnnotation] = index
		r.Annotations = map[string]string{completionAnnotation: index}
	}
	p, err := b.addRole(r, path+".template")
	if err != nil {
		return err
	}
	if name := p.Spec.Subdomain; name != "" {
		b.w.Set.Roles[0].Subdomain = name
		b.addService(name, "")
	}
	limit := defaultBackoffLimit
	switch {
	case s.BackoffLimitPerIndex != nil:
		limit = *s.BackoffLimitPerIndex
	case s.BackoffLimit != nil:
		limit = *s.BackoffLimit
	}
	b.setRetries(limit)
	b.setLimit(s.ActiveDeadlineSeconds)
	b.setLimit(templateLimit(p))
	b.w.Job.Held = s.Suspend
	return b.setJobSuccess(s, path)
}

// countPods is how many pods of a Job run at once, and how many have to succeed.
func (b *builder) countPods(s *jobSpec, path string) (parallel, count int, err error) {
	parallel, count = orOne(s.Parallelism), orOne(s.Completions)
	switch {
	case s.Completions == nil && parallel > 1:
		return 0, 0, b.fail(path+".parallelism", "write completions: so many pods have to succeed", "the Job has %d pods at once and no completions, and pods that share a queue of their own decide when it is done", parallel)
	case parallel < 1:
		return 0, 0, b.fail(path+".parallelism", "write 1 or more; suspend: true holds it", "no pod is to run")
	case count < 1 || count > maxTasks:
		return 0, 0, b.fail(path+".completions", fmt.Sprintf("write 1 to %d", maxTasks), "%d is no number of pods", count)
	}
	return min(parallel, count), count, nil
}

// arrayOf is the array of count tasks of which so many run at once.
func arrayOf(count, parallel int) *job.ArraySpec {
	a := &job.ArraySpec{Text: fmt.Sprintf("0-%d", count-1), Indices: make([]uint32, count)}
	for i := range a.Indices {
		a.Indices[i] = uint32(i)
	}
	if parallel < count {
		a.MaxRunning = uint32(parallel)
		a.Text += fmt.Sprintf("%%%d", parallel)
	}
	return a
}

// setJobSuccess reads a Job's success policy: one rule with one index of a gang, or any one pod.
func (b *builder) setJobSuccess(s *jobSpec, path string) error {
	if s.SuccessPolicy == nil || len(s.SuccessPolicy.Rules) == 0 {
		return nil
	}
	at, rules := path+".successPolicy.rules", s.SuccessPolicy.Rules
	var index int
	r := rules[0]
	one, err := fmt.Sscanf(r.SucceededIndexes, "%d", &index)
	switch {
	case len(rules) > 1 || b.w.Job.Array != nil:
		return b.fail(at, "write one rule, for a Job all of whose pods run at once", "the success policy is more than a gang of pods can have here")
	case r.SucceededIndexes == "" && r.SucceededCount != nil && *r.SucceededCount == 1:
		b.w.Set.Complete = &podspec.Complete{Any: true}
	case err == nil && one == 1 && fmt.Sprint(index) == r.SucceededIndexes && (r.SucceededCount == nil || *r.SucceededCount == 1):
		b.w.Set.Complete = &podspec.Complete{Index: &index}
	default:
		return b.fail(at, "write succeededIndexes with one number, or succeededCount: 1", "the success policy is more than a gang of pods can have here")
	}
	return nil
}

// compileCron makes the job of a CronJob, with its schedule.
func (f *file) compileCron(b *builder) error {
	var doc struct {
		Spec struct {
			Schedule          string `json:"schedule"`
			TimeZone          string `json:"timeZone"`
			ConcurrencyPolicy string `json:"concurrencyPolicy"`
			Deadline          *int64 `json:"startingDeadlineSeconds"`
			Suspend           bool   `json:"suspend"`
			Successes         *int   `json:"successfulJobsHistoryLimit"`
			Failures          *int   `json:"failedJobsHistoryLimit"`
			Template          struct {
				Spec jobSpec `json:"spec"`
			} `json:"jobTemplate"`
		} `json:"spec"`
	}
	if err := b.d.decode(&doc); err != nil {
		return err
	}
	s := &doc.Spec
	if err := b.setSchedule(s.Schedule, s.TimeZone); err != nil {
		return err
	}
	set := b.w.Schedule
	switch s.ConcurrencyPolicy {
	case "Forbid":
		set.Overlap = schedule.Skip
	case "Replace":
		set.Overlap = schedule.Replace
	}
	if s.Deadline != nil {
		set.Late = time.Duration(max(*s.Deadline, 1)) * time.Second
	}
	set.Suspend = s.Suspend
	set.Keep.Done, set.Keep.Failed = min(orNumber(s.Successes, set.Keep.Done), schedule.MostHistory), min(orNumber(s.Failures, set.Keep.Failed), schedule.MostHistory)
	return b.addJob(&s.Template.Spec, "spec.jobTemplate.spec")
}

// setSchedule reads when a CronJob runs; what it does not say is as Kubernetes has it.
func (b *builder) setSchedule(cron, zone string) error {
	var wrong *schedule.CronError
	var unknown *schedule.ZoneError
	switch _, err := schedule.ParseCron(cron, zone); {
	case errors.As(err, &unknown):
		return b.fail("spec.timeZone", unknown.Remedy(), "%v", unknown)
	case errors.As(err, &wrong):
		return b.fail("spec.schedule", wrong.Remedy, "%v", wrong)
	case err != nil:
		return b.fail("spec.schedule", "write five fields, such as \"0 3 * * *\"", "%v", err)
	}
	b.w.Schedule = &schedule.Settings{Cron: cron, Zone: zone, Overlap: schedule.Allow, CatchUp: true, Keep: schedule.KubernetesHistory}
	return nil
}
